//! Whole deployments on loopback: switches in threads of their own, and members.
use quorumwire_client::planes::{ClientKey, ClientKeys};
use quorumwire_paxos_process::{
    DeploymentFile, Durability, Lives, Member, MemberError, MemberOptions, Recovered, Role,
    STATUS_PAUSE, StatusCell, SwitchError, SwitchOptions, SwitchSignals, make_folder, run,
};
use quorumwire_wire::packet::{Header, Kind};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(30);
const PORT: u16 = 7500;

struct Switch {
    options: SwitchOptions,
    told: SwitchSignals,
    status: Arc<StatusCell>,
    thread: Option<JoinHandle<Result<(), SwitchError>>>,
}

impl Switch {
    fn start(options: SwitchOptions) -> Self {
        let told = SwitchSignals::default();
        let status = Arc::new(StatusCell::default());
        let (its, heard, shown) = (options.clone(), told.clone(), Arc::clone(&status));
        let thread = std::thread::spawn(move || run(&its, &heard, &shown));
        Self {
            options,
            told,
            status,
            thread: Some(thread),
        }
    }

    fn stop(&mut self) {
        self.told.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic").expect("it ran");
        }
    }

    /// Waits until it votes, or coordinates.
    fn wait_until_on(&self) {
        wait_for("a role that is on", || self.status.get().is_on);
    }

    fn restart(&mut self) {
        self.stop();
        *self = Self::start(self.options.clone());
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.told.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

struct World {
    folder: tempfile::TempDir,
    file: DeploymentFile,
    coordinators: Vec<Switch>,
    acceptors: Vec<Switch>,
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE, "waited in vain: {what}");
        std::thread::sleep(STATUS_PAUSE);
    }
}

/// A host each, on loopback, that no other deployment of this process or of one beside it has.
fn addresses(count: usize) -> Vec<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (net, deployment) = (
        std::process::id() % 200,
        NEXT.fetch_add(1, Ordering::Relaxed),
    );
    let address = |host| format!("127.{}.{deployment}.{host}:{PORT}", 20 + net);
    (1..=count).map(address).collect()
}

impl World {
    fn begin(acceptors: usize, learners: usize, durability: Durability, more: &str) -> Self {
        let mut world = Self::without_coordinators(acceptors, learners, durability, more);
        world.start_coordinators();
        world
    }

    fn start_coordinators(&mut self) {
        let one = &self.acceptors[0].options;
        let start = |number| {
            Switch::start(SwitchOptions {
                role: Role::Coordinator,
                number,
                ..one.clone()
            })
        };
        self.coordinators = (0..2).map(start).collect();
    }

    fn without_coordinators(
        acceptors: usize,
        learners: usize,
        durability: Durability,
        more: &str,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = ClientKeys::new(1, vec![ClientKey::new(1, [7; 16])]).expect("keys");
        keys.write(&folder.path().join("keys")).expect("written");
        let all = addresses(2 + acceptors + learners);
        let text = format!(
            "name = \"test\"\nkey-file = \"keys\"\ncoordinators = {:?}\nacceptors = {:?}\nlearners = {:?}\n{more}\n",
            &all[..2],
            &all[2..2 + acceptors],
            &all[2 + acceptors..],
        );
        let path = folder.path().join("deployment.toml");
        std::fs::write(&path, text).expect("written");
        let file = DeploymentFile::load(&path).expect("sound");
        let options = |number: usize| SwitchOptions {
            deployment: file.clone(),
            role: Role::Acceptor,
            number: u8::try_from(number).expect("few"),
            listen: None,
            dir: Some(folder.path().join(format!("acceptor-{number}"))),
            memory: None,
            durability,
            busy_poll: Duration::ZERO,
            plane: None,
            declare_lost: None,
        };
        let start_acceptor = |number| {
            let options = options(number);
            make_folder(&options, Lives::First).expect("made");
            Switch::start(options)
        };
        let acceptors = (0..acceptors).map(start_acceptor).collect();
        Self {
            folder,
            file,
            coordinators: Vec::new(),
            acceptors,
        }
    }

    fn dir(&self, learner: u8) -> PathBuf {
        self.folder.path().join(format!("learner-{learner}"))
    }

    fn member(&self, learner: u8) -> Member {
        member(&self.file, learner, &self.dir(learner))
    }
}

fn member(file: &DeploymentFile, learner: u8, dir: &Path) -> Member {
    Member::open(&options(file, learner, dir)).expect("a member")
}

fn options(file: &DeploymentFile, learner: u8, dir: &Path) -> MemberOptions {
    MemberOptions {
        deadline: DEADLINE,
        ..MemberOptions::new(file.clone(), learner, dir)
    }
}

/// The next values that this member is given.
fn take(member: &Member, count: usize) -> Vec<(u64, Vec<u8>)> {
    let begun = Instant::now();
    let mut taken = Vec::new();
    while taken.len() < count {
        assert!(begun.elapsed() < DEADLINE, "only {} values", taken.len());
        let next = member.next_within(Duration::from_millis(100));
        taken.extend(next.expect("not behind"));
    }
    taken
}

fn number(value: u32) -> Vec<u8> {
    format!("value {value}").into_bytes()
}

#[test]
fn values_come_to_all_learners_in_one_order() {
    let world = World::begin(3, 2, Durability::Sync, "");
    let (one, other) = (world.member(0), world.member(1));
    for value in 0..20 {
        let submitting = if value % 2 == 0 { &one } else { &other };
        submitting.submit(&number(value)).expect("decided");
    }
    one.submit(&vec![5; 64 << 10]).expect("in pieces");
    one.submit(b"").expect("an empty one");
    let taken = take(&one, 22);
    assert_eq!(taken, take(&other, 22));
    let expected: Vec<_> = (0..20).map(number).collect();
    let values: Vec<_> = taken.iter().map(|(_, value)| value.clone()).collect();
    assert_eq!(values[..20], expected);
    assert_eq!((values[20].len(), &values[21][..]), (64 << 10, &b""[..]));
    assert!(taken.is_sorted_by_key(|(instance, _)| *instance));
    let long = one.submit(&vec![0; 64 << 20]).unwrap_err();
    assert!(matches!(long, MemberError::TooLong { .. }), "{long}");
}

/// Proposals leave once for all acceptors, where the deployment has an address for that.
#[test]
fn proposals_go_to_all_acceptors_at_once() {
    let group = Ipv4Addr::new(239, 77, 9, 1);
    let world = World::begin(
        3,
        1,
        Durability::Memory,
        &format!("multicast = \"{group}\""),
    );
    let heard = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
    heard.set_reuse_address(true).expect("refused by none");
    let at = SocketAddrV4::new(group, PORT);
    heard.bind(&at.into()).expect("others are there, too");
    let own = Ipv4Addr::LOCALHOST;
    heard.join_multicast_v4(&group, &own).expect("loopback");
    let heard: UdpSocket = heard.into();
    let patience = Some(DEADLINE);
    heard.set_read_timeout(patience).expect("a time");
    let member = world.member(0);
    let mut instances = Vec::new();
    for value in 0..20 {
        instances.push(member.submit(&number(value)).expect("decided"));
    }
    let mut bytes = [0; 2048];
    let mut proposed = BTreeSet::new();
    while !instances.iter().all(|it| proposed.contains(it)) {
        let (length, _) = heard.recv_from(&mut bytes).expect("proposals");
        let header = bytes[..length].first_chunk().map(Header::decode);
        let header = header.expect("a packet");
        assert_eq!(header.kind, Kind::P2a as u8, "nothing else goes there");
        proposed.insert(header.index);
    }
}

#[test]
fn what_was_not_checkpointed_is_delivered_again() {
    let world = World::begin(3, 2, Durability::Sync, "");
    let (one, other) = (world.member(0), world.member(1));
    for value in 0..10 {
        one.submit(&number(value)).expect("decided");
    }
    let taken = take(&one, 10);
    let early = other.checkpoint(taken[0].0).unwrap_err();
    assert!(matches!(early, MemberError::NotDelivered(_)), "{early}");
    one.checkpoint(taken[5].0).expect("kept");
    drop(one);
    let one = world.member(0);
    assert_eq!(take(&one, 4), taken[6..]);
    let again = one.recover(taken[2].0, b"").unwrap_err();
    assert!(matches!(again, MemberError::Delivered(_)), "{again}");
    // Nobody has proposed anything there.
    let next = taken[9].0 + 1;
    let recovered = one.recover(next + 1, b"nothing").expect("decided");
    assert_eq!(recovered, Recovered::NoOp(b"nothing".to_vec()));
    let far = one.recover(next + (1 << 20), b"").unwrap_err();
    assert!(matches!(far, MemberError::TooFar { .. }), "{far}");
    assert_eq!(take(&other, 10), taken);
}

/// More values than the window has instances, while every switch is restarted once.
fn nothing_is_lost(durability: Durability) {
    let mut world = World::begin(3, 2, durability, "window = 64");
    let (one, other) = (world.member(0), world.member(1));
    let mut all = Vec::new();
    for step in 0..6 {
        for value in 0..40 {
            one.submit(&number(100 * step + value)).expect("decided");
        }
        let taken = take(&one, 40);
        assert_eq!(taken, take(&other, 40), "{step}");
        let upto = taken[39].0;
        one.checkpoint(upto).expect("kept");
        other.checkpoint(upto).expect("kept");
        all.extend(taken);
        match step {
            0..3 => {
                let acceptor = &mut world.acceptors[step as usize];
                acceptor.restart();
                acceptor.wait_until_on();
            }
            3..5 => world.coordinators[step as usize - 3].restart(),
            _ => {}
        }
    }
    let expected = (0..6).flat_map(|step| (0..40).map(move |value| number(100 * step + value)));
    let values: Vec<_> = all.into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, expected.collect::<Vec<_>>());
}

#[test]
fn nothing_is_lost_when_switches_restart_with_votes_on_disk() {
    nothing_is_lost(Durability::Sync);
}

#[test]
fn nothing_is_lost_when_switches_restart_without_their_memory() {
    nothing_is_lost(Durability::Memory);
}

/// Nobody has asked them anything yet. They have begun all the same: they are no newcomers.
#[test]
fn acceptors_may_restart_before_there_is_a_coordinator() {
    let mut world = World::without_coordinators(3, 1, Durability::Sync, "");
    for acceptor in &mut world.acceptors {
        acceptor.wait_until_on();
        acceptor.restart();
        acceptor.wait_until_on();
    }
    world.start_coordinators();
    world.member(0).submit(b"first").expect("decided");
}

#[test]
fn a_lost_folder_is_replaced_as_a_new_life() {
    let mut world = World::begin(3, 1, Durability::Sync, "");
    let one = world.member(0);
    one.submit(b"before").expect("decided");
    let acceptor = &mut world.acceptors[1];
    acceptor.stop();
    let dir = acceptor.options.dir.clone().expect("it has one");
    let twice = make_folder(&acceptor.options, Lives::ReplacesLost).unwrap_err();
    assert!(twice.to_string().contains("already"), "{twice}");
    std::fs::remove_dir_all(&dir).expect("removed");
    let gone = run(
        &acceptor.options,
        &SwitchSignals::default(),
        &StatusCell::default(),
    )
    .unwrap_err();
    assert!(
        matches!(gone, SwitchError::Folder(..) | SwitchError::Votes(..)),
        "{gone}"
    );
    make_folder(&acceptor.options, Lives::ReplacesLost).expect("made");
    *acceptor = Switch::start(acceptor.options.clone());
    one.submit(b"behind").expect("decided");
    world.acceptors[1].wait_until_on();
    // It counts again: with it two of three are enough.
    world.acceptors[0].stop();
    one.submit(b"without another one").expect("decided");
    world.acceptors[1].restart();
    one.submit(b"with its votes").expect("decided");
    assert_eq!(take(&one, 4).len(), 4);
}

#[test]
fn who_only_submits_fills_no_window() {
    let world = World::begin(3, 1, Durability::Memory, "window = 16");
    let one = Member::open(&MemberOptions {
        only_submits: true,
        ..options(&world.file, 0, &world.dir(0))
    });
    let one = one.expect("a member");
    for value in 0..100 {
        one.submit(&number(value)).expect("decided");
    }
    assert!(
        one.next_within(Duration::ZERO)
            .expect("not behind")
            .is_none()
    );
}

/// One learner never comes. What it lacks fills the window, until it is declared lost.
#[test]
fn what_is_declared_lost_is_waited_for_by_nobody() {
    let mut world = World::begin(3, 2, Durability::Sync, "window = 16");
    let one = world.member(0);
    let (mut last, mut decided) = (0, 0);
    let (tell, told) = std::sync::mpsc::channel();
    for value in 0.. {
        let tell = tell.clone();
        let done = move |outcome| {
            tell.send(outcome).ok();
        };
        one.submit_then(number(value), done).expect("not closed");
        match told.recv_timeout(Duration::from_millis(300)) {
            Ok(outcome) => last = outcome.expect("decided"),
            Err(_) => break, // the window is full
        }
        decided += 1;
        assert!(value < 16, "never full");
    }
    let taken = take(&one, decided);
    one.checkpoint(taken.last().expect("some").0).expect("kept");
    let acceptor = &mut world.acceptors[0];
    acceptor.stop();
    acceptor.options.declare_lost = Some(last + 1000);
    let beyond = run(
        &acceptor.options,
        &SwitchSignals::default(),
        &StatusCell::default(),
    );
    let beyond = beyond.unwrap_err().to_string();
    assert!(
        beyond.contains("declare-lost") && beyond.contains("allowed: 0 to"),
        "{beyond}"
    );
    for acceptor in &mut world.acceptors {
        acceptor.options.declare_lost = Some(last);
        acceptor.restart();
    }
    for coordinator in &mut world.coordinators {
        let blamed = || coordinator.status.get().last_checkpoint;
        wait_for("the one to blame", || blamed() == Some((1, 0)));
        coordinator.options.declare_lost = Some(last);
        coordinator.restart();
    }
    one.submit(b"goes on").expect("decided");
    let waited = told.recv_timeout(DEADLINE).expect("in time");
    waited.expect("decided");
    let other = world.member(1);
    let begun = Instant::now();
    let behind = loop {
        match other.next_within(Duration::from_millis(50)) {
            Err(error) => break error,
            Ok(None) => assert!(begun.elapsed() < DEADLINE, "it is not told"),
            Ok(Some(next)) => panic!("{next:?} was declared lost"),
        }
    };
    assert!(
        matches!(behind, MemberError::Behind { upto } if upto >= last),
        "{behind}"
    );
    // Who submits is told what to do.
    let error = other
        .submit(b"at once")
        .expect_err("nobody tells it of its session");
    let said = error.to_string();
    assert!(
        matches!(error, MemberError::LateBehind { upto } if upto >= last),
        "{said}"
    );
    // With what the other one has kept it goes on, and with what was submitted meanwhile.
    let (tell, told) = std::sync::mpsc::channel();
    let done = move |outcome| {
        tell.send(outcome).ok();
    };
    other
        .submit_then(b"meanwhile".to_vec(), done)
        .expect("taken");
    let last = take(&one, 2);
    one.checkpoint(last[1].0).expect("kept");
    other.begin_behind(one.kept()).expect("a checkpoint");
    let instance = told.recv_timeout(DEADLINE).expect("in time");
    let instance = instance.expect("decided");
    let taken = take(&other, 2);
    assert_eq!(taken[0].1, b"at once");
    assert_eq!(taken[1], (instance, b"meanwhile".to_vec()));
}

#[test]
fn a_learner_that_is_behind_begins_from_anothers_folder() {
    let world = World::begin(3, 2, Durability::Sync, "window = 64");
    let (one, other) = (world.member(0), world.member(1));
    let mut last = 0;
    for value in 0..10 {
        last = one.submit(&number(value)).expect("decided");
    }
    let taken = take(&one, 10);
    assert_eq!(take(&other, 10), taken);
    drop(other);
    one.checkpoint(last).expect("kept");
    // The other one's folder is lost, and what it had is not.
    let copy = world.dir(9);
    std::fs::create_dir(&copy).expect("made");
    drop(one);
    let name = world.dir(0).join("learner");
    std::fs::copy(name, copy.join("learner")).expect("copied");
    let one = world.member(0);
    let other = member(&world.file, 1, &copy);
    let next = one.submit(b"next").expect("decided");
    assert_eq!(take(&other, 1), [(next, b"next".to_vec())]);
}

/// A program compares its checkpoint with what it finds when it starts again: a state that is older is lost.
#[test]
fn a_checkpoint_is_kept_as_it_was_said_though_nothing_behind_it_fills_the_window() {
    let world = World::begin(3, 1, Durability::Sync, "window = 16");
    let one = world.member(0);
    let last = one.submit(b"the last").expect("decided");
    take(&one, 1);
    one.checkpoint(last).expect("kept");
    for instance in last + 1..last + 40 {
        let recovered = one.recover(instance, b"nothing").expect("decided");
        assert_eq!(recovered, Recovered::NoOp(b"nothing".to_vec()));
    }
    drop(one);
    let one = world.member(0);
    assert_eq!(one.taken(), last);
    let next = one.submit(b"next").expect("decided");
    assert_eq!(take(&one, 1), [(next, b"next".to_vec())]);
}

/// Else a program that checkpoints every so many values could wait for values, and they for its checkpoint.
#[test]
fn a_checkpoint_makes_room_though_more_had_been_learned_before_the_one_before_it() {
    let world = World::begin(3, 1, Durability::Sync, "window = 32");
    let one = world.member(0);
    let submit = |value| one.submit(&number(value)).expect("decided");
    let instances: Vec<_> = (0..20).map(submit).collect();
    take(&one, 20);
    one.checkpoint(instances[0]).expect("kept");
    one.checkpoint(instances[17]).expect("kept");
    for value in 20..40 {
        submit(value);
    }
}

/// A program that has ended fills no window with what it had checkpointed.
#[test]
fn what_was_checkpointed_last_is_said_though_the_program_ends_at_once() {
    let world = World::begin(3, 1, Durability::Sync, "");
    let one = world.member(0);
    let last = one.submit(b"a value").expect("decided");
    take(&one, 1);
    one.checkpoint(last).expect("kept");
    drop(one);
    for switch in &world.acceptors {
        wait_for("what it has checkpointed", || {
            let checkpoint = switch.status.get().last_checkpoint;
            checkpoint.is_some_and(|(_, upto)| upto >= last)
        });
    }
}

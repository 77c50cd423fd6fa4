//! An acceptor's process: a coordinator, the acceptor, and a learner with a proposer, as `paxos/process` runs
//! them; the values that were decided; and a TCP port, at which values are submitted and given.
use crate::evpaxos::founding::{self, Begins, Founded, Record, Standing, Tag};
use crate::evpaxos::frames::{self, Fields, Kind};
use crate::evpaxos::history::{BYTES_MAX, Entry, Found, History};
use crate::evpaxos::queue::Queue;
use crate::evpaxos::server::{Server, Service};
use crate::evpaxos::{log, peers};
use quorumwire_paxos_process::{
    Addresses, DeploymentFile, DeploymentParts, Durability, LearnerCheckpoint, Lives, Member,
    MemberError, MemberOptions, MemoryDisk, Role, StatusCell, SwitchOptions, VALUE_BYTES_MAX,
    make_folder,
};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Ports of coordinators and learners are so much higher than those of the file.
const COORDINATOR_PORTS: u16 = 1000;
const LEARNER_PORTS: u16 = 2000;
/// The highest port of an acceptor.
const PORT_MAX: u16 = u16::MAX - LEARNER_PORTS;
/// Instances that can be open.
const WINDOW: u32 = 4096;
/// A backup takes over after so long.
const SILENCE: Duration = Duration::from_millis(200);
/// What was not answered is sent again after this. Where disks answer, sooner would be in vain, and a value
/// that is sent twice takes two instances.
const RETRY_OF_MEMORY: Duration = Duration::from_millis(40);
const RETRY_OF_DISKS: Duration = Duration::from_millis(100);
/// Bytes of values that the learner has and the process has not taken yet.
const WINDOW_BYTES: usize = 8 << 20;
/// Others are asked this often.
const ASKING_PAUSE: Duration = Duration::from_millis(50);
/// Whoever waits for others says so, first after this time.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(5);
/// What was taken is checkpointed after so long, or after so many values.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(10);
const CHECKPOINT_VALUES: usize = 512;
/// While nothing comes, it looks this often whether it is to stop.
const IDLE_PAUSE: Duration = Duration::from_millis(50);
/// Values that are taken at a time, and their bytes.
const BATCH_VALUES: usize = 256;
const BATCH_BYTES: usize = 1 << 20;
/// A learner that waits for values hears this often that there are none.
const IDLE: Duration = Duration::from_secs(1);

/// How a process takes part.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The acceptors of the configuration, and which one this is.
    pub acceptors: Vec<SocketAddr>,
    pub me: u8,
    /// Where it keeps what has to survive it; nothing: nothing has to.
    pub dir: Option<PathBuf>,
    /// What is there is to be forgotten.
    pub is_to_begin_anew: bool,
    pub nodelay: bool,
}

/// Another port of the same host. [`check`] says that there is one.
fn shifted(address: SocketAddr, by: u16) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port().saturating_add(by))
}

/// Where the roles of these acceptors' processes are.
pub fn addresses(acceptors: &[SocketAddr]) -> Addresses {
    let all = |by| acceptors.iter().map(|it| shifted(*it, by)).collect();
    Addresses {
        coordinators: all(COORDINATOR_PORTS),
        acceptors: acceptors.to_vec(),
        learners: all(LEARNER_PORTS),
        all_acceptors: None,
    }
}

fn deployment(
    acceptors: &[SocketAddr],
    founded: &Founded,
    keeps: bool,
) -> Result<DeploymentFile, String> {
    let learners = u8::try_from(acceptors.len()).unwrap_or(u8::MAX);
    let mut file = DeploymentFile::of_parts(DeploymentParts {
        name: founded.name(),
        addresses: addresses(acceptors),
        // A learner that was away is given the values by another process.
        copies: learners / 2 + 1,
        window: WINDOW,
        silence: SILENCE,
        key: founded.identity,
    })?;
    file.timing.retry = if keeps {
        RETRY_OF_DISKS
    } else {
        RETRY_OF_MEMORY
    };
    Ok(file)
}

/// Whether these can be the acceptors of a deployment.
pub fn check(acceptors: &[SocketAddr]) -> Result<(), String> {
    if let Some(high) = acceptors.iter().find(|it| it.port() > PORT_MAX) {
        return Err(format!(
            "{high} is refused; allowed: ports up to {PORT_MAX}, since those {COORDINATOR_PORTS} and {LEARNER_PORTS} \
             above it are taken, too"
        ));
    }
    let nobody = Founded {
        identity: [0; 16],
        numbers: Vec::new(),
    };
    deployment(acceptors, &nobody, false).map(drop)
}

/// What its threads share.
struct Shared {
    options: HostOptions,
    tag: Tag,
    history: Arc<History>,
    queue: Queue,
    standing: Mutex<Standing>,
    member: Mutex<Option<Arc<Member>>>,
    /// Values up to this number are not needed any more, says the program; the others are to be told.
    trim: AtomicU64,
    /// It takes part.
    is_ready: AtomicBool,
    /// How its acceptor does.
    acceptor: StatusCell,
    stop: Arc<AtomicBool>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// It.
pub struct Host {
    shared: Arc<Shared>,
    server: Option<Server>,
    threads: Vec<JoinHandle<()>>,
}

impl Host {
    /// Begins. `listener` is told when there are more values.
    ///
    /// # Errors
    /// Why it cannot, for people.
    pub fn begin(options: HostOptions, listener: Box<dyn Fn() + Send>) -> Result<Self, String> {
        check(&options.acceptors)?;
        let me = usize::from(options.me);
        let own = *options.acceptors.get(me).ok_or("no such acceptor")?;
        for role in [
            own,
            shifted(own, COORDINATOR_PORTS),
            shifted(own, LEARNER_PORTS),
        ] {
            let bound = UdpSocket::bind(role);
            bound.map_err(|error| format!("cannot listen on {role}: {error}"))?;
        }
        let history = History::new(BYTES_MAX, Some(listener));
        let record = prepare(&options, &history)?;
        let shared = Arc::new(Shared {
            tag: founding::tag_of(&options.acceptors),
            options,
            history: Arc::new(history),
            queue: Queue::default(),
            standing: Mutex::new(record.standing),
            member: Mutex::default(),
            trim: AtomicU64::new(0),
            is_ready: AtomicBool::new(false),
            acceptor: StatusCell::default(),
            stop: Arc::default(),
        });
        let nodelay = shared.options.nodelay;
        let service = Arc::clone(&shared) as Arc<dyn Service>;
        let server = Server::begin(own, nodelay, service)
            .map_err(|error| format!("cannot listen on {own}: {error}"))?;
        let mut host = Self {
            shared,
            server: Some(server),
            threads: Vec::new(),
        };
        let to_make = record.to_make;
        host.spawn("evpaxos", move |shared| {
            if let Err(error) = run(shared, to_make) {
                log::error(&format!("The replica takes no part any more: {error}"));
            }
        })?;
        host.spawn("evpaxos-submit", submit)?;
        host.spawn("evpaxos-trim", tell_what_is_trimmed)?;
        Ok(host)
    }

    fn spawn(
        &mut self,
        name: &str,
        run: impl FnOnce(&Arc<Shared>) + Send + 'static,
    ) -> Result<(), String> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || run(&shared));
        let thread = thread.map_err(|error| format!("no thread: {error}"))?;
        self.threads.push(thread);
        Ok(())
    }

    /// The values.
    pub fn history(&self) -> &History {
        &self.shared.history
    }

    /// It takes part, and has what was decided before it began.
    pub fn is_ready(&self) -> bool {
        self.shared.is_ready.load(Ordering::Acquire)
    }

    /// Its acceptor votes: it has promised nothing before, or remembers it, or was let in.
    #[cfg(test)]
    fn votes(&self) -> bool {
        self.shared.acceptor.get().is_on
    }

    /// Has a value decided, unless too much waits.
    pub fn submit(&self, value: Vec<u8>) -> bool {
        self.shared.queue.put(value)
    }

    /// Nobody needs values up to this number any more, in any process.
    pub fn trim(&self, upto: u64) {
        self.shared.trim.fetch_max(upto, Ordering::AcqRel);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.queue.close();
        self.server = None;
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

fn founding_path(dir: &Path) -> PathBuf {
    dir.join("founding")
}

fn votes_path(dir: &Path) -> PathBuf {
    dir.join("votes")
}

/// What it has kept, if it keeps anything.
fn prepare(options: &HostOptions, history: &History) -> Result<Record, String> {
    let random = || getrandom::u64().map_err(|error| format!("no random number: {error}"));
    let new = |number| Record {
        standing: Standing {
            number,
            founded: None,
        },
        to_make: None,
    };
    let Some(dir) = &options.dir else {
        return Ok(new(random()?));
    };
    let failed = |error: io::Error| format!("{}: {error}", dir.display());
    fs::create_dir_all(dir).map_err(failed)?;
    let path = founding_path(dir);
    if options.is_to_begin_anew {
        for folder in ["votes", "learner"] {
            fs::remove_dir_all(dir.join(folder)).ok();
        }
        fs::remove_file(dir.join("history")).ok();
        fs::remove_file(&path).ok();
    }
    let record = match Record::load(&path, options.acceptors.len()) {
        Ok(Some(record)) => record,
        Ok(None) => {
            let record = new(random()?);
            record.save(&path).map_err(failed)?;
            record
        }
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    if record.standing.founded.is_some() {
        let (values, learner) = (dir.join("history"), dir.join("learner"));
        if learner.exists() && !values.exists() {
            let text = "its values are gone; without the folder, the others give this one all anew";
            return Err(format!("{}: {text}", dir.display()));
        }
        history.open(&values).map_err(failed)?;
    }
    Ok(record)
}

/// Takes part, until it is told to stop.
fn run(shared: &Arc<Shared>, to_make: Option<Begins>) -> Result<(), String> {
    let Some((founded, to_make)) = found(shared, to_make)? else {
        return Ok(());
    };
    let options = &shared.options;
    let deployment = deployment(&options.acceptors, &founded, options.dir.is_some())?;
    let memory = options.dir.is_none().then(MemoryDisk::new);
    let acceptor = SwitchOptions {
        deployment: deployment.clone(),
        role: Role::Acceptor,
        number: options.me,
        listen: None,
        dir: Some(votes_path(options.dir.as_deref().unwrap_or(Path::new("")))),
        memory,
        durability: if options.dir.is_some() {
            Durability::Sync
        } else {
            Durability::Memory
        },
        busy_poll: Duration::ZERO,
        plane: None,
        declare_lost: None,
    };
    make_votes(shared, &acceptor, &founded, to_make)?;
    let coordinator = SwitchOptions {
        role: Role::Coordinator,
        dir: None,
        memory: None,
        ..acceptor.clone()
    };
    thread::scope(|scope| {
        for switch in [&acceptor, &coordinator] {
            let told = quorumwire_paxos_process::SwitchSignals::to_stop(Arc::clone(&shared.stop));
            let run = move || {
                let coordinator = StatusCell::default();
                let status = match switch.role {
                    Role::Acceptor => &shared.acceptor,
                    Role::Coordinator => &coordinator,
                };
                let ended = quorumwire_paxos_process::run(switch, &told, status);
                if let Err(error) = ended {
                    log::error(&format!("The {:?} has ended: {error}", switch.role));
                }
            };
            let thread = thread::Builder::new().name("evpaxos-role".to_owned());
            let thread = thread.spawn_scoped(scope, run);
            thread.map_err(|error| format!("no thread: {error}"))?;
        }
        if let Err(error) = learn(shared, &deployment, &founded, to_make) {
            // The others need its votes all the same.
            log::error(&format!("The replica learns nothing any more: {error}"));
        }
        shared.is_ready.store(false, Ordering::Release);
        Ok(())
    })
}

/// The deployment that it takes part in, as soon as there is one, and how it begins there; none: it is to
/// stop.
fn found(
    shared: &Shared,
    to_make: Option<Begins>,
) -> Result<Option<(Founded, Option<Begins>)>, String> {
    let standing = locked(&shared.standing).clone();
    if let Some(founded) = standing.founded {
        return Ok(Some((founded, to_make)));
    }
    let options = &shared.options;
    let (me, count) = (usize::from(options.me), options.acceptors.len());
    let mut complain_at = Instant::now() + COMPLAINT_PAUSE;
    loop {
        let mut others = BTreeMap::new();
        for (place, address) in options.acceptors.iter().enumerate() {
            if place != me && !shared.stop.load(Ordering::Acquire) {
                let answer = peers::who(*address, &shared.tag, count);
                others.extend(answer.ok().map(|it| (place, it)));
            }
        }
        if shared.stop.load(Ordering::Acquire) {
            return Ok(None);
        }
        let decided = founding::decide(&shared.tag, me, standing.number, count, &others);
        if let Some((founded, begins)) = decided {
            let standing = Standing {
                number: standing.number,
                founded: Some(founded.clone()),
            };
            if let Some(dir) = &options.dir {
                let record = Record {
                    standing: standing.clone(),
                    to_make: Some(begins),
                };
                let failed = |error| format!("{}: {error}", dir.display());
                record.save(&founding_path(dir)).map_err(failed)?;
                shared.history.open(&dir.join("history")).map_err(failed)?;
            }
            // Only now: nobody hears of a deployment that this process could forget.
            *locked(&shared.standing) = standing;
            return Ok(Some((founded, Some(begins))));
        }
        if Instant::now() > complain_at {
            complain_at += 10 * COMPLAINT_PAUSE;
            let missing = (0..count).filter(|it| *it != me && !others.contains_key(it));
            let missing: Vec<_> = missing.map(|it| it.to_string()).collect();
            log::error(&format!(
                "Nothing is decided yet: replicas begin when all have been there once. Missing: {}",
                missing.join(", ")
            ));
        }
        thread::sleep(ASKING_PAUSE);
    }
}

/// The acceptor's folder, unless it was made before.
fn make_votes(
    shared: &Shared,
    acceptor: &SwitchOptions,
    founded: &Founded,
    to_make: Option<Begins>,
) -> Result<(), String> {
    let is_gone = |dir: &PathBuf| !votes_path(dir).exists();
    let lives = match to_make {
        Some(Begins::First) => Lives::First,
        Some(Begins::Lost) => Lives::ReplacesLost,
        None if shared.options.dir.as_ref().is_some_and(is_gone) => Lives::ReplacesLost,
        None => return Ok(()),
    };
    make_folder(acceptor, lives).map_err(|error| error.to_string())?;
    let Some(dir) = &shared.options.dir else {
        return Ok(());
    };
    let standing = Standing {
        number: locked(&shared.standing).number,
        founded: Some(founded.clone()),
    };
    let record = Record {
        standing,
        to_make: None,
    };
    let saved = record.save(&founding_path(dir));
    saved.map_err(|error| format!("{}: {error}", dir.display()))
}

/// Learns what is decided, until it is told to stop.
fn learn(
    shared: &Arc<Shared>,
    deployment: &DeploymentFile,
    founded: &Founded,
    begins: Option<Begins>,
) -> Result<(), String> {
    let dir = shared.options.dir.as_ref().map(|it| it.join("learner"));
    let memory = dir.is_none().then(MemoryDisk::new);
    let me = shared.options.me;
    let mut options = MemberOptions {
        memory,
        window_bytes: WINDOW_BYTES,
        ..MemberOptions::new(deployment.clone(), me, dir.unwrap_or_default())
    };
    if begins.is_none() {
        // What the others have by now need not be learned. If nobody answers, it is.
        options.begin_behind = try_to_join(shared, founded, 0)?;
    }
    if begins == Some(Begins::Lost) {
        options.begin_behind = join(shared, founded, 0)?;
    }
    if shared.stop.load(Ordering::Acquire) {
        return Ok(());
    }
    let member = Arc::new(Member::open(&options).map_err(|error| error.to_string())?);
    *locked(&shared.member) = Some(Arc::clone(&member));
    shared.is_ready.store(true, Ordering::Release);
    shared.history.wake();
    let ended = take(shared, founded, &member);
    *locked(&shared.member) = None;
    ended
}

/// Takes values from the member, and from other processes what only they have.
fn take(shared: &Shared, founded: &Founded, member: &Member) -> Result<(), String> {
    let said = |error: MemberError| error.to_string();
    let (mut taken, mut count) = (0, 0);
    let mut checkpoint_at = Instant::now();
    while !shared.stop.load(Ordering::Acquire) {
        let (mut batch, mut bytes, mut behind) = (Vec::new(), 0, None);
        let mut wait = if count > 0 {
            CHECKPOINT_PAUSE
        } else {
            IDLE_PAUSE
        };
        while batch.len() < BATCH_VALUES && bytes < BATCH_BYTES {
            match member.next_within(wait) {
                Ok(Some((instance, value))) => {
                    bytes += value.len();
                    let value = value.into();
                    batch.push(Entry { instance, value });
                    wait = Duration::ZERO;
                }
                Ok(None) => break,
                Err(MemberError::Behind { upto }) => {
                    behind = Some(upto);
                    break;
                }
                Err(error) => return Err(said(error)),
            }
        }
        if let Some(last) = batch.last() {
            taken = last.instance;
            count += batch.len();
            let added = shared.history.add(batch);
            added.map_err(|error| format!("writing values: {error}"))?;
        }
        let is_due = count >= CHECKPOINT_VALUES || Instant::now() >= checkpoint_at;
        if count > 0 && is_due {
            // Only now: what is forgotten is in this process's values.
            let marked = shared.history.mark();
            marked.map_err(|error| format!("writing values: {error}"))?;
            member.checkpoint(taken).map_err(said)?;
            count = 0;
            checkpoint_at = Instant::now() + CHECKPOINT_PAUSE;
        }
        if let Some(least) = behind
            && let Some(checkpoint) = join(shared, founded, least)?
        {
            member.begin_behind(checkpoint).map_err(said)?;
        }
    }
    Ok(())
}

/// Takes over another process's values, and where its learner stands, at or behind this instance. None: it is
/// to stop.
fn join(
    shared: &Shared,
    founded: &Founded,
    least: u64,
) -> Result<Option<LearnerCheckpoint>, String> {
    while !shared.stop.load(Ordering::Acquire) {
        let joined = try_to_join(shared, founded, least)?;
        if joined.is_some() {
            return Ok(joined);
        }
        thread::sleep(ASKING_PAUSE);
    }
    Ok(None)
}

/// Asks each once.
fn try_to_join(
    shared: &Shared,
    founded: &Founded,
    least: u64,
) -> Result<Option<LearnerCheckpoint>, String> {
    let (options, history) = (&shared.options, &shared.history);
    for (place, address) in options.acceptors.iter().enumerate() {
        if place == usize::from(options.me) || shared.stop.load(Ordering::Acquire) {
            continue;
        }
        let Ok(Some(joined)) = peers::join(*address, &shared.tag, founded, history.last()) else {
            continue;
        };
        if joined.checkpoint.state_at < least {
            continue;
        }
        log::debug(&format!(
            "Replica {place} gives this one {} values behind number {}",
            joined.entries.len(),
            joined.base
        ));
        let taken = history.join(joined.base, joined.instance, joined.entries);
        let marked = taken.and_then(|()| history.mark());
        marked.map_err(|error| format!("writing values: {error}"))?;
        return Ok(Some(joined.checkpoint));
    }
    Ok(None)
}

/// Hands values that were submitted to the member.
fn submit(shared: &Arc<Shared>) {
    while let Some(value) = shared.queue.take() {
        let bytes = value.len();
        while !shared.stop.load(Ordering::Acquire) {
            let member = locked(&shared.member).clone();
            let arrived = Arc::clone(shared);
            let done = move |outcome: Result<u64, MemberError>| {
                if let Err(error) = outcome {
                    log::debug(&format!("A value: {error}"));
                }
                arrived.queue.arrived(bytes);
            };
            match member.map(|it| it.submit_then(value.clone(), done)) {
                Some(Ok(())) => break,
                Some(Err(MemberError::TooLong { .. })) => {
                    shared.queue.arrived(bytes);
                    break;
                }
                Some(Err(_)) | None => thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

/// Tells all processes what the program does not need any more.
fn tell_what_is_trimmed(shared: &Arc<Shared>) {
    let mut told = vec![0; shared.options.acceptors.len()];
    while !shared.stop.load(Ordering::Acquire) {
        thread::sleep(ASKING_PAUSE);
        let upto = shared.trim.load(Ordering::Acquire);
        for (place, address) in shared.options.acceptors.iter().enumerate() {
            if told[place] < upto && peers::trim(*address, &shared.tag, upto).is_ok() {
                told[place] = upto;
            }
        }
    }
}

fn must_be(ours: &Tag, theirs: Tag) -> io::Result<()> {
    if theirs == *ours {
        return Ok(());
    }
    let text = "it has another configuration: its acceptors' lines differ";
    Err(io::Error::new(io::ErrorKind::InvalidData, text))
}

impl Service for Shared {
    fn take(&self, kind: Kind, body: Vec<u8>, stream: &mut TcpStream) -> io::Result<()> {
        let mut fields = Fields::of(&body);
        match kind {
            Kind::Submit if body.len() <= VALUE_BYTES_MAX => {
                if self.queue.put_when_there_is_room(body) {
                    Ok(())
                } else {
                    Err(io::ErrorKind::ConnectionAborted.into())
                }
            }
            Kind::Who => {
                must_be(&self.tag, fields.bytes()?)?;
                let standing = locked(&self.standing).to_bytes();
                frames::write(stream, Kind::IAm, &[&standing])
            }
            Kind::Subscribe => {
                must_be(&self.tag, fields.bytes()?)?;
                let from = fields.u64()?;
                self.give(from, stream)
            }
            Kind::Trim => {
                must_be(&self.tag, fields.bytes()?)?;
                self.history.trim(fields.u64()?)
            }
            Kind::Join => {
                must_be(&self.tag, fields.bytes()?)?;
                let identity = fields.bytes()?;
                let number = fields.u64()?;
                self.let_join(identity, number, stream)
            }
            Kind::Submit
            | Kind::IAm
            | Kind::Value
            | Kind::Trimmed
            | Kind::Idle
            | Kind::Checkpoint
            | Kind::Kept
            | Kind::End
            | Kind::NotReady => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{kind:?} is sent to no acceptor"),
            )),
        }
    }
}

impl Shared {
    /// Gives a learner all values from this number on, for as long as it takes them.
    fn give(&self, from: u64, stream: &mut TcpStream) -> io::Result<()> {
        while !self.is_ready.load(Ordering::Acquire) {
            self.must_go_on()?;
            frames::write(stream, Kind::Idle, &[])?;
            thread::sleep(ASKING_PAUSE);
        }
        let mut next = match from {
            0 => self.history.last() + 1,
            from => from,
        };
        loop {
            self.must_go_on()?;
            match self.history.wait_for(next, IDLE) {
                Found::Value(entry) => {
                    let number = next.to_le_bytes();
                    frames::write(stream, Kind::Value, &[&number, &entry.value])?;
                    next += 1;
                }
                Found::NotYet => frames::write(stream, Kind::Idle, &[])?,
                Found::Gone(upto) => {
                    frames::write(stream, Kind::Trimmed, &[&upto.to_le_bytes()])?;
                    thread::sleep(IDLE);
                }
            }
        }
    }

    fn must_go_on(&self) -> io::Result<()> {
        if self.stop.load(Ordering::Acquire) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    /// Gives a process of this deployment what it lacks.
    fn let_join(&self, identity: [u8; 16], number: u64, stream: &mut TcpStream) -> io::Result<()> {
        let founded = locked(&self.standing).founded.clone();
        let is_ours = founded.is_some_and(|it| it.identity == identity);
        let member = locked(&self.member).clone().filter(|_| is_ours);
        // In this order: all values up to the checkpoint are among those that are read then.
        let Some(kept) = member.map(|it| it.kept()) else {
            return frames::write(stream, Kind::NotReady, &[]);
        };
        let (base, instance, entries) = self.history.behind(number);
        let numbers = [kept.upto, kept.state_at, base, instance].map(u64::to_le_bytes);
        frames::write(
            stream,
            Kind::Checkpoint,
            &[numbers.as_flattened(), &kept.state],
        )?;
        for entry in entries {
            let instance = entry.instance.to_le_bytes();
            frames::write(stream, Kind::Kept, &[&instance, &entry.value])?;
        }
        frames::write(stream, Kind::End, &[])
    }
}

#[cfg(test)]
#[path = "host_test.rs"]
mod tests;

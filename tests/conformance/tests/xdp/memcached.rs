//! Memcached clients whose datagrams the program sees before the host does: a plain `set` goes into the log,
//! a `get` is answered out of the host's table, and what may not be done reaches the host as it was sent.
use crate::hammered::{side_by_side, wait_for_more};
use crate::tagged::Tagged;
use crate::veth::{OUTSIDE, counted, plane_ip, test_ip};
use crate::{Driver, Generic, How, Kernel, ON_THE_WAY_MAX};
use quorumwire_conformance_tests::cluster::{Cluster, START};
use quorumwire_conformance_tests::{PlaneSpec, next_datagram};
use quorumwire_fastpath::{RECENT_OFFERS_TO_REPLACE, recent_place};
use quorumwire_interfaces::{
    Command, DataPlane, EntryKind, Index, Leave, Offload, PlaneError, PlaneEvent,
};
use quorumwire_plane_xdp::XdpPlane;
use rustix::time::{ClockId, clock_gettime};
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where memcached clients ask.
const MEMCACHED: u16 = 11_211;
/// Reads of the test that looks for torn ones.
const READS: u64 = 30_000;
/// Answers that the host keeps there one behind the other before it looks at its counters.
const KEPT_AT_ONCE: usize = 20;
/// Reads of the one where the host keeps the same answer again and again.
const READS_KEPT_AGAIN: u16 = 10_000;
/// Times that sets are forbidden while they come in.
const LEAVES_TAKEN_BACK: u64 = 10_000;
/// At so many different moments of a set's way.
const MOMENTS: u64 = 512;
/// Longest that it may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// An engaged cluster, and a memcached client of its leader.
struct ServedCluster<H: How> {
    cluster: Cluster<Kernel<H>>,
    /// The hosts' own sockets, by slot.
    hosts: Vec<UdpSocket>,
    client: UdpSocket,
}

pub fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let (seconds, rest) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.expect("since the start"), rest.expect("a fraction"))
}

/// Everything is allowed.
fn leave() -> Leave {
    let hour = now() + Duration::from_hours(1);
    Leave {
        writes_until: hour,
        reads_until: hour,
        applied: Index(START),
    }
}

fn datagram(request: u16, body: &[u8]) -> Vec<u8> {
    let frame = [request, 0, 1, 0].map(u16::to_be_bytes).concat();
    [&frame, body].concat()
}

impl<H: How> ServedCluster<H> {
    fn new(replicas: usize, ring_slots: u32) -> Self {
        let mut cluster = Cluster::<Kernel<H>>::engaged_with(PlaneSpec {
            replicas,
            ring_slots,
            window: ring_slots,
        });
        let fabric = &mut cluster.fabric;
        let mut hosts = Vec::new();
        for slot in 0..replicas {
            fabric.namespaces.enter_plane(slot);
            let socket = UdpSocket::bind((plane_ip(slot), MEMCACHED)).expect("a free port");
            socket.set_nonblocking(true).expect("a socket");
            let other = socket.try_clone().expect("a socket");
            fabric.planes[slot].serve_memcached(other).expect("bound");
            fabric.planes[slot].allow(&leave());
            hosts.push(socket);
        }
        fabric.namespaces.enter_test();
        let client = UdpSocket::bind((test_ip(0, OUTSIDE), 0)).expect("an address of the test");
        client.set_nonblocking(true).expect("a socket");
        Self {
            cluster,
            hosts,
            client,
        }
    }

    fn leader(&mut self) -> &mut XdpPlane {
        &mut self.cluster.fabric.planes[0]
    }

    fn send(&self, bytes: &[u8]) {
        let to = (plane_ip(0), MEMCACHED);
        assert_eq!(self.client.send_to(bytes, to).expect("a veth"), bytes.len());
    }

    /// What the leader's program does with a datagram: its answer, or `None` if the host gets it unchanged.
    fn ask(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.send(bytes);
        let begun = Instant::now();
        loop {
            if let Some(answer) = next_datagram(&self.client) {
                return Some(answer);
            }
            if let Some(passed) = next_datagram(&self.hosts[0]) {
                assert_eq!(passed, bytes, "the host gets what was sent");
                return None;
            }
            assert!(begun.elapsed() < ON_THE_WAY_MAX, "the datagram is lost");
            std::thread::yield_now();
        }
    }

    fn wait_for_taken(&self, count: u64) {
        let begun = Instant::now();
        while counted(&self.cluster.fabric.planes[0], "memcached_taken") < count {
            assert!(begun.elapsed() < ON_THE_WAY_MAX, "the set was not taken");
            std::thread::yield_now();
        }
    }
}

/// What the store reads for `set KEY 7 0 n`.
fn command(key: &[u8], value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(key.len()).expect("a key");
    let head = [0x11, length, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0];
    [&head, key, value].concat()
}

fn set(key: &[u8], value: &[u8], rest: &str) -> Vec<u8> {
    let line = format!(" 7 0 {}{rest}\r\n", value.len());
    [b"set ", key, line.as_bytes(), value, b"\r\n"].concat()
}

#[test]
fn a_set_is_replicated_and_answered_once_it_is_committed() {
    let mut served = ServedCluster::<Driver>::new(3, 64);
    let key = b"a-key-of-many-letters".repeat(11);
    let value = vec![b'v'; 1000];
    let sets = [
        (1, set(b"k", b"hello", "")),
        (2, set(&key, b"", "")),
        (3, set(&key, &value, "")),
        (4, set(b"k", b"quiet", " noreply")),
        (5, set(b"k", b"last", "")),
    ];
    for (request, body) in &sets {
        served.send(&datagram(*request, body));
    }
    served.wait_for_taken(5);
    assert_eq!(next_datagram(&served.client), None, "nobody else has them");
    // The program's answers do not come to the socket that the fabric counts them at.
    let begun = Instant::now();
    let mut answers = Vec::new();
    while answers.len() < 4 {
        assert!(begun.elapsed() < ON_THE_WAY_MAX, "answers: {answers:?}");
        for frame in served.cluster.fabric.take_what_is_there() {
            use quorumwire_conformance_tests::Fabric as _;
            served.cluster.fabric.deliver(&frame);
        }
        for slot in 0..3 {
            served.cluster.poll(slot);
        }
        answers.extend(std::iter::from_fn(|| next_datagram(&served.client)));
    }
    answers.sort();
    assert_eq!(
        answers,
        [1, 2, 3, 5].map(|request| datagram(request, b"STORED\r\n"))
    );
    let commands = [
        command(b"k", b"hello"),
        command(&key, b""),
        command(&key, &value),
        command(b"k", b"quiet"),
        command(b"k", b"last"),
    ];
    for host in &served.cluster.hosts {
        assert_eq!(host.payloads(), commands.each_ref().map(|it| &it[..]));
    }
    assert_eq!(next_datagram(&served.hosts[0]), None);
}

#[test]
pub fn what_the_program_may_not_take_reaches_the_host_as_it_was_sent() {
    reaches_the_host_as_it_was_sent::<Driver>();
    reaches_the_host_as_it_was_sent::<Tagged<Driver>>();
}

fn reaches_the_host_as_it_was_sent<H: How>() {
    let mut served = ServedCluster::<H>::new(1, 2);
    let hello = datagram(1, &set(b"k", b"hello", ""));
    let stored = datagram(1, b"STORED\r\n");
    assert_eq!(
        served.ask(&hello),
        Some(stored.clone()),
        "alone, it is committed"
    );
    for body in [
        &b"set k 0 60 1\r\nv\r\n"[..],
        b"add k 0 0 1\r\nv\r\n",
        b"set k 0 0 2\r\nv\r\n",
        b"get a b\r\n",
        b"gets a\r\n",
        b"get \r\n",
        b"version\r\n",
        b"x",
    ] {
        assert_eq!(served.ask(&datagram(2, body)), None);
    }
    let mut second_of_two = hello.clone();
    second_of_two[3] = 1;
    assert_eq!(served.ask(&second_of_two), None);
    let (now_over, allowed) = (Leave::default(), leave());
    served.leader().allow(&now_over);
    assert_eq!(served.ask(&hello), None, "not allowed");
    served.leader().allow(&allowed);
    assert_eq!(served.ask(&hello), Some(stored));
    // The host has taken nothing, so the ring is full.
    let long = datagram(3, &set(&[b'k'; 250], &[b'v'; 1100], ""));
    assert_eq!(served.ask(&long), None, "full");
    assert_eq!(served.ask(&hello), None, "full");
    served.leader().disengage();
    assert_eq!(served.ask(&hello), None, "off");
}

#[test]
pub fn a_follower_takes_nothing() {
    let mut served = ServedCluster::<Driver>::new(2, 64);
    let follower = &mut served.cluster.fabric.planes[1];
    follower.keep_answer(b"k", Some(b"VALUE k 0 0\r\n\r\nEND\r\n"));
    follower.allow(&leave());
    let socket = UdpSocket::bind((test_ip(1, OUTSIDE), 0)).expect("an address of the test");
    socket.set_nonblocking(true).expect("a socket");
    for body in [&set(b"k", b"v", "")[..], b"get k\r\n"] {
        let bytes = datagram(9, body);
        socket
            .send_to(&bytes, (plane_ip(1), MEMCACHED))
            .expect("a veth");
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < ON_THE_WAY_MAX, "the datagram is lost");
            if let Some(passed) = next_datagram(&served.hosts[1]) {
                assert_eq!(passed, bytes);
                break;
            }
        }
    }
    assert_eq!(next_datagram(&socket), None);
}

#[test]
pub fn a_get_is_answered_only_while_that_is_linearizable() {
    let mut served = ServedCluster::<Driver>::new(1, 64);
    let get = datagram(0x0203, b"get key\r\n");
    let text = b"VALUE key 7 5\r\nhello\r\nEND\r\n";
    let answer = Some(datagram(0x0203, text));
    assert_eq!(served.ask(&get), None, "nothing is known");
    served.leader().keep_answer(b"key", Some(text));
    assert_eq!(served.ask(&get), answer);
    for begin in ["", "key"] {
        let other = format!("get {}\r\n", neighbour_of("key", begin));
        assert_eq!(served.ask(&datagram(1, other.as_bytes())), None, "{other}");
    }
    assert_eq!(
        served.ask(&datagram(1, b"get kez\r\n")),
        None,
        "another key"
    );
    let allowed = leave();
    let over = Leave {
        reads_until: now(),
        ..allowed
    };
    served.leader().allow(&over);
    assert_eq!(served.ask(&get), None, "the lease is over");
    served.leader().allow(&allowed);
    assert_eq!(served.ask(&get), answer);
    // A write that the table does not show is committed.
    let stored = datagram(4, b"STORED\r\n");
    assert_eq!(served.ask(&datagram(4, &set(b"x", b"1", ""))), Some(stored));
    assert_eq!(served.ask(&get), None, "the table is behind");
    let applied = Leave {
        applied: Index(START + 1),
        ..allowed
    };
    served.leader().allow(&applied);
    assert_eq!(served.ask(&get), answer);
    served.leader().keep_answer(b"key", None);
    assert_eq!(served.ask(&get), None, "it was taken away");
    served.leader().keep_answer(b"key", Some(text));
    served.leader().forget_answers();
    assert_eq!(served.ask(&get), None, "all was forgotten");
    served.leader().keep_answer(b"key", Some(text));
    assert_eq!(served.ask(&get), answer);
    served.leader().disengage();
    assert_eq!(served.ask(&get), None, "off");
}

/// Most of them are longer than the frame that came in has room for.
#[test]
pub fn an_answer_is_no_amplifier_and_never_longer_than_a_datagram() {
    is_no_amplifier::<Driver>();
    is_no_amplifier::<Generic>();
    is_no_amplifier::<Tagged<Generic>>();
}

fn is_no_amplifier<H: How>() {
    let mut served = ServedCluster::<H>::new(1, 64);
    let most = served.leader().answer_bytes_max();
    let long_key = [b'k'; 30];
    for (key, bytes, is_answered) in [
        (&b"k"[..], 64 * 15 - 8, true),
        (b"k", 64 * 15 - 7, false),
        (&long_key, most, true),
        (&long_key, most + 1, false),
    ] {
        served.leader().keep_answer(key, Some(&vec![b'a'; bytes]));
        let asked = [b"get ", key, b"\r\n"].concat();
        let answer = served.ask(&datagram(1, &asked));
        assert_eq!(answer.is_some(), is_answered, "{} {bytes}", key.len());
    }
}

/// The name of a key that begins so and has the same place as this one.
fn neighbour_of(key: &str, begin: &str) -> String {
    let place = recent_place(key.as_bytes());
    (0..u32::MAX)
        .map(|number| format!("{begin}{number}"))
        .find(|name| recent_place(name.as_bytes()) == place)
        .expect("places are few")
}

#[test]
fn two_keys_with_one_place_do_not_take_it_from_each_other_with_every_read() {
    let mut served = ServedCluster::<Driver>::new(1, 64);
    let second = neighbour_of("first", "second");
    let get = |key: &str| datagram(5, format!("get {key}\r\n").as_bytes());
    let (first, second) = ("first", second.as_str());
    let text = |key: &str| format!("VALUE {key} 0 1\r\nx\r\nEND\r\n").into_bytes();
    served
        .leader()
        .keep_answer(first.as_bytes(), Some(&text(first)));
    for offer in 1..RECENT_OFFERS_TO_REPLACE {
        let leader = served.leader();
        leader.keep_answer(second.as_bytes(), Some(&text(second)));
        let said = (served.ask(&get(first)), served.ask(&get(second)));
        assert_eq!(said, (Some(datagram(5, &text(first))), None), "{offer}");
        // Its own offers do not count.
        let leader = served.leader();
        leader.keep_answer(first.as_bytes(), Some(&text(first)));
    }
    served
        .leader()
        .keep_answer(second.as_bytes(), Some(&text(second)));
    assert_eq!(served.ask(&get(second)), Some(datagram(5, &text(second))));
    assert_eq!(served.ask(&get(first)), None, "another one has its place");
    served.leader().keep_answer(second.as_bytes(), None);
    served
        .leader()
        .keep_answer(first.as_bytes(), Some(&text(first)));
    assert_eq!(served.ask(&get(first)), Some(datagram(5, &text(first))));
}

/// As when many ask for a key at once that the table does not hold: each is told by the host, and offers it.
#[test]
fn no_answer_is_lost_because_the_same_one_is_kept_again() {
    let mut served = ServedCluster::<Driver>::new(1, 64);
    let text = [
        &b"VALUE the-name-of-a-key 0 1200\r\n"[..],
        &[b'a'; 1200],
        b"\r\nEND\r\n",
    ]
    .concat();
    served
        .leader()
        .keep_answer(b"the-name-of-a-key", Some(&text));
    let over = AtomicBool::new(false);
    let plane = &mut served.cluster.fabric.planes[0];
    let client = &served.client;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                plane.keep_answer(b"the-name-of-a-key", Some(&text));
            }
        });
        let asked = std::panic::catch_unwind(|| {
            for number in 0..READS_KEPT_AGAIN {
                let get = datagram(number, b"get the-name-of-a-key\r\n");
                client
                    .send_to(&get, (plane_ip(0), MEMCACHED))
                    .expect("a veth");
                let begun = Instant::now();
                let answer = loop {
                    assert!(begun.elapsed() < ON_THE_WAY_MAX, "read {number} is lost");
                    if let Some(answer) = next_datagram(client) {
                        break answer;
                    }
                };
                assert_eq!(answer, datagram(number, &text));
            }
        });
        over.store(true, Ordering::Relaxed);
        asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Takes all entries that there are; how many.
fn take_all(plane: &mut XdpPlane) -> u64 {
    let (mut entries, mut last) = (0, None);
    while plane.poll(64, &mut |event| {
        if let PlaneEvent::Entry(entry) = event {
            entries += 1;
            last = Some(entry.index);
        }
    }) > 0
    {}
    if let Some(last) = last {
        plane.release(last).expect("it was taken");
    }
    entries
}

/// A `set` waits for its step while the host takes its leave back and submits what has to be ahead of it.
#[test]
pub fn no_set_goes_behind_what_the_host_has_submitted_since() {
    let mut served = ServedCluster::<Driver>::new(1, 1024);
    let (over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let plane = &mut served.cluster.fabric.planes[0];
    let client = &served.client;
    // Long ones, whose checksums take long; nobody would read their answers.
    let datagram = datagram(1, &set(b"k", &[b'v'; 1300], " noreply"));
    let sets = || {
        while !over.load(Ordering::Acquire) {
            match client.send_to(&datagram, (plane_ip(0), MEMCACHED)) {
                Ok(_) => {
                    sent.fetch_add(1, Ordering::AcqRel);
                }
                // As many as the socket holds are on their way.
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => panic!("a veth: {error}"),
            }
        }
    };
    let none = Leave {
        writes_until: Duration::ZERO,
        ..leave()
    };
    let mut entries = 0;
    side_by_side(&over, sets, || {
        let end = Instant::now() + PATIENCE;
        let wait_for_sets = |count| wait_for_more(&sent, count, end);
        for round in 0..LEAVES_TAKEN_BACK {
            plane.allow(&leave());
            wait_for_sets(2);
            // At another moment of the next one's way each time.
            for _ in 0..round % MOMENTS {
                std::hint::spin_loop();
            }
            plane.allow(&none);
            let command = Command {
                kind: EntryKind::Command,
                session: 0,
                sequence: round,
                payload: b"ahead",
            };
            let (index, _) = loop {
                match plane.submit(&[command]) {
                    // Many came before.
                    Err(PlaneError::Full) if Instant::now() < end => entries += take_all(plane),
                    done => break done.expect("it leads"),
                }
            };
            // What was under way is over.
            wait_for_sets(2);
            assert_eq!(plane.registers().last_index, index, "round {round}");
            entries += take_all(plane);
        }
    });
    // Without these nothing would be shown.
    let sets = entries - LEAVES_TAKEN_BACK;
    assert!(sets > LEAVES_TAKEN_BACK / 10, "{sets} sets");
}

/// On another processor, the host writes the same place all the time, and each of its two halves with one
/// text after the other.
#[test]
pub fn no_answer_is_ever_torn() {
    let mut served = ServedCluster::<Driver>::new(1, 64);
    // Two that have room in the frame that came in, and one that has none.
    let texts = [(b'a', 20), (b'b', 1200), (b'c', 21)].map(|(letter, bytes)| {
        let value = vec![letter; bytes];
        let line = format!("VALUE the-name-of-a-key 0 {bytes}\r\n");
        [line.as_bytes(), &value, b"\r\nEND\r\n"].concat()
    });
    let answers = texts.each_ref().map(|text| datagram(7, text));
    let (over, lost) = (AtomicBool::new(false), AtomicU64::new(0));
    let plane = &mut served.cluster.fabric.planes[0];
    let (client, host) = (&served.client, &served.hosts[0]);
    // Each text, left to the host, lost because the answer changed.
    let mut seen = [0_u64; 5];
    let keeps = || {
        let mut texts = texts.iter().cycle();
        while !over.load(Ordering::Relaxed) {
            for text in texts.by_ref().take(KEPT_AT_ONCE) {
                plane.keep_answer(b"the-name-of-a-key", Some(text));
            }
            lost.store(counted(plane, "lost_answer_changed"), Ordering::Relaxed);
        }
    };
    side_by_side(&over, keeps, || {
        let begun = Instant::now();
        while seen[..4].contains(&0) || seen.iter().sum::<u64>() < READS {
            let get = datagram(7, b"get the-name-of-a-key\r\n");
            client
                .send_to(&get, (plane_ip(0), MEMCACHED))
                .expect("a veth");
            let came = loop {
                assert!(begun.elapsed() < PATIENCE, "{seen:?}");
                if let Some(answer) = next_datagram(client) {
                    let known = answers.iter().position(|one| *one == answer);
                    break known.expect("an answer that the host never gave");
                }
                if next_datagram(host).is_some_and(|passed| passed == get) {
                    break 3;
                }
                if lost.load(Ordering::Relaxed) > seen[4] {
                    break 4;
                }
            };
            seen[came] += 1;
        }
    });
    println!("{seen:?}");
}

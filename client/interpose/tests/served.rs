//! Real servers, served: what clients send comes through the rings, and nothing else does.
mod harness;

use harness::{PATIENCE, Served, compiled};
use quorumwire_interpose::Refusal;
use quorumwire_replay::TurnEvent;
use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn redis_is_served() {
    let mut redis = Served::start("redis-server", &["--port", "6379", "--save", ""]);
    redis.until("a port", |it| !it.listens.is_empty());
    redis.connect(1, 6379);
    redis.connect(2, 6379);
    redis.ask(1, b"SET key value PX 100\r\nGET key\r\n");
    redis.answer(1, "+OK\r\n$5\r\nvalue\r\n");
    redis.ask(2, b"RPUSH list a b c\r\nLRANGE list 0 -1\r\nPTTL key\r\n");
    redis.answer(2, ":3\r\n*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n:90\r\n");
    for _ in 0..10 {
        redis.give(&[]);
    }
    redis.ask(
        2,
        b"GET key\r\nEVAL \"return redis.call('incr', KEYS[1])\" 1 n\r\n",
    );
    redis.answer(2, "$-1\r\n:1\r\n");
    redis.give(&[TurnEvent::End { connection: 1 }]);
    redis.until("its end", |it| it.closed.contains(&1));
}

const CHILDREN: [&str; 8] = [
    "fork", "vfork", "clone", "syscall", "spawn", "spawnp", "system", "popen",
];

#[test]
fn a_program_has_children_before_it_serves_and_none_after_and_no_io_uring() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), "asks");
    let mut asks = Served::start(&file, &CHILDREN);
    asks.until("a port", |it| !it.listens.is_empty());
    asks.connect(1, 7000);
    for child in CHILDREN {
        asks.ask(1, child.as_bytes());
        asks.answer(1, &format!("{}.", libc::EAGAIN));
    }
    asks.ask(1, b"thread");
    asks.answer(1, "0.");
    // The kernel takes and gives nothing that the log does not know.
    asks.ask(1, b"uring");
    asks.answer(1, &format!("{}.", libc::EPERM));
}

#[test]
fn nobody_listens_anywhere_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), "asks");
    let mut asks = Served::start(&file, &[]);
    asks.until("a port", |it| !it.listens.is_empty());
    assert_eq!(asks.rings.outbound(), (0, 0));
    asks.connect(1, 7000);
    let ways = [
        ("tcp", 7999),
        ("udp", 7999),
        ("datagram", 7999),
        ("name", 53),
        ("ask name-r", 53),
        ("ask name2-r", 53),
        ("ask names", 53),
        ("ask query", 53),
        ("ask search", 53),
    ];
    for (count, (way, port)) in (1..).zip(ways) {
        asks.ask(1, way.as_bytes());
        asks.answer(1, &format!("{}.", libc::ECONNREFUSED));
        assert_eq!(asks.rings.outbound(), (count, port));
    }
    for way in ["number", "known"] {
        asks.ask(1, way.as_bytes());
        asks.answer(1, "0.");
    }
}

#[test]
fn others_are_reached_if_that_is_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), "asks");
    let mut asks = Served::start_outbound(&file, &[]);
    asks.until("a port", |it| !it.listens.is_empty());
    asks.connect(1, 7000);
    // Where nobody listens the kernel takes datagrams, too.
    for way in ["udp", "datagram"] {
        asks.ask(1, way.as_bytes());
        asks.answer(1, "0.");
    }
    assert_eq!(asks.rings.outbound(), (0, 0));
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

/// It would outlive its replica.
#[test]
fn nothing_stays_in_the_background() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), "asks");
    for way in ["background", "far"] {
        let mut asks = Served::start(&file, &[way]);
        until("it ends", || {
            let ended = asks.started.child.try_wait().expect("it is ours");
            ended.is_some_and(|it| it.success())
        });
        // Its child ends before it has said who it is, or then.
        let named = asks.folder.path().join("background");
        let said_by = Instant::now() + Duration::from_millis(200);
        until("its child is gone", || {
            let Ok(name) = std::fs::read_to_string(&named) else {
                return Instant::now() > said_by;
            };
            let state = std::fs::read_to_string(format!("/proc/{name}/stat"));
            state.map_or(true, |it| it.contains(") Z "))
        });
    }
}

/// The kernel forgets it with another user.
#[test]
fn it_ends_with_its_replica_also_as_another_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), "asks");
    let mut asks = Served::start(&file, &["nobody"]);
    asks.until("a port", |it| !it.listens.is_empty());
    asks.connect(1, 7000);
    asks.ask(1, b"ends");
    asks.answer(1, "0.");
}

/// It ends, and says why.
fn is_refused(served: &mut Served, call: i64) {
    let end = Instant::now() + PATIENCE;
    while served
        .started
        .child
        .try_wait()
        .expect("it is ours")
        .is_none()
    {
        assert!(Instant::now() < end, "it goes on");
        std::thread::yield_now();
    }
    let call = u64::try_from(call).expect("a number");
    assert_eq!(served.rings.refusal(), Some(Refusal::Call(call)));
}

/// What would be wrong in silence ends the program, with the reason.
#[test]
fn a_connection_is_given_to_nobody_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), "asks");
    let ways = [
        ("hand", libc::SYS_sendmsg),
        ("async", libc::SYS_fcntl),
        ("exec", libc::SYS_execve),
    ];
    for (way, call) in ways {
        let mut asks = Served::start(&file, &[]);
        asks.until("a port", |it| !it.listens.is_empty());
        asks.connect(1, 7000);
        asks.ask(1, way.as_bytes());
        is_refused(&mut asks, call);
    }
}

#[test]
fn what_a_script_becomes_is_served_in_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script");
    let text = "#!/bin/sh\nexec redis-server --port 6379 --save '' \"$@\"\n";
    std::fs::write(&script, text).expect("a file");
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("it is ours");
    let mut redis = Served::start(&script.to_string_lossy(), &["--databases", "3"]);
    redis.until("a port", |it| !it.listens.is_empty());
    redis.connect(1, 6379);
    redis.ask(1, b"CONFIG GET databases\r\n");
    redis.answer(1, "*2\r\n$9\r\ndatabases\r\n$1\r\n3\r\n");
}

#[test]
fn a_script_becomes_no_program_that_cannot_be_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("static");
    let source = folder.path().join("static.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("a file");
    let status = Command::new("cc")
        .args(["-static", "-o"])
        .args([&program, &source])
        .status();
    assert!(status.expect("a C compiler").success());
    for way in ["exec", "exec env"] {
        let line = format!("{way} {}", program.display());
        is_refused(&mut Served::start("sh", &["-c", &line]), libc::SYS_execve);
    }
}

#[test]
fn redis_that_is_to_save_in_the_background_says_that_it_cannot() {
    let mut redis = Served::start("redis-server", &["--port", "6379", "--save", ""]);
    redis.until("a port", |it| !it.listens.is_empty());
    redis.connect(1, 6379);
    redis.ask(1, b"BGSAVE\r\n");
    let error = "-ERR Can't save in background: fork: Resource temporarily unavailable\r\n";
    redis.until(error, |it| {
        it.said.get(&1).is_some_and(|it| it.ends_with(b"\n"))
    });
    let said = redis.said.remove(&1).expect("it is there");
    assert!(
        said.starts_with(b"-ERR"),
        "{}",
        String::from_utf8_lossy(&said)
    );
    redis.ask(1, b"REPLICAOF 127.0.0.1 7999\r\nSET key value\r\n");
    redis.until("answers", |it| {
        it.said.get(&1).is_some_and(|it| it.ends_with(b"\n"))
    });
}

#[test]
fn datagrams_are_served_up_to_the_longest_and_those_without_room_are_lost() {
    const LONGEST: usize = 65_507;
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), "counts");
    let mut counts = Served::start(&file, &["5353"]);
    counts.until("a port", |it| !it.listens.is_empty());
    let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let long = vec![7; LONGEST];
    let datagram = |peer, bytes| TurnEvent::Datagram {
        peer: at(peer),
        own: at(5353),
        bytes,
    };
    counts.give(&[datagram(1000, b""), datagram(1001, &long)]);
    counts.until("answers", |it| it.datagrams.len() == 2);
    let [(first, empty), (second, longest)] = &counts.datagrams[..] else {
        panic!("two answers");
    };
    assert_eq!((*first, *second), (at(1000), at(1001)));
    assert!(empty.starts_with("1 0 "), "{empty}");
    assert!(longest.starts_with(&format!("2 {LONGEST} ")), "{longest}");
    counts.datagrams.clear();
    // The fourth has no room in one turn.
    counts.give(&[1, 2, 3, 4].map(|peer| datagram(peer, &long)));
    counts.give(&[datagram(5, b"x")]);
    counts.until("answers", |it| it.datagrams.len() == 4);
    let peers: Vec<u16> = counts.datagrams.iter().map(|(it, _)| it.port()).collect();
    assert_eq!(peers, [1, 2, 3, 5]);
    assert_eq!(counts.rings.lost_datagrams(), 1);
}

//! Commands about connections and the server, asked of a replica and of Redis itself: the same bytes come
//! back. Where the two differ on purpose stands in `docs/compatibility.md`, and here what is said instead.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// Where a client is answered.
trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// A Redis of our own; it ends with the test, also with one that fails.
struct Redis {
    process: Child,
    socket: PathBuf,
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended already; there is nothing else to be done here.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Redis {
    fn start(cluster: &Cluster<'_>) -> Result<Self> {
        let socket = cluster.scratch_file("redis");
        let process = Command::new("redis-server")
            .current_dir(socket.parent().context("a folder")?)
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--databases", "1", "--loglevel", "warning", "--unixsocket"])
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("this test needs the program redis-server: run `make setup`")?;
        let redis = Self { process, socket };
        cluster.wait_for("Redis", || Ok(redis.connect().is_ok()))?;
        Ok(redis)
    }

    fn connect(&self) -> Result<Box<dyn Stream>> {
        let stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        Ok(Box::new(stream))
    }
}

fn connect(cluster: &Cluster<'_>) -> Result<Box<dyn Stream>> {
    let stream = TcpStream::connect(cluster.redis(0))?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    Ok(Box::new(stream))
}

/// Says these lines, and listens until it is hung up.
fn say(mut stream: Box<dyn Stream>, lines: &str) -> Result<String> {
    stream.write_all(format!("{lines}\r\nQUIT\r\n").as_bytes())?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said).context(lines.to_owned())?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Answers one line after the other.
fn ask(stream: &mut dyn Stream, line: &str) -> Result<String> {
    stream.write_all(format!("{line}\r\n").as_bytes())?;
    hear(stream).context(line.to_owned())
}

/// One answer that is a line, or a string.
fn hear(stream: &mut dyn Stream) -> Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        line.extend(byte);
    }
    let mut text = String::from_utf8(line)?;
    if let Some(length) = text.strip_prefix('$') {
        let length: usize = length.trim_end().parse()?;
        let mut rest = vec![0; length + 2];
        stream.read_exact(&mut rest)?;
        text = String::from_utf8(rest)?;
    }
    text.truncate(text.len() - 2);
    Ok(text)
}

/// With `#` for every number.
fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars() {
        if !letter.is_ascii_digit() {
            shown.push(letter);
        } else if !shown.ends_with('#') {
            shown.push('#');
        }
    }
    shown
}

/// Answered by both with the same bytes, in either version of the protocol. Several of a line go to one
/// connection.
const SAME: &[&str] = &[
    "CLIENT",
    "CLIENT FOO",
    "client foo bar",
    "CLIENT PAUSE2 1",
    "CLIENT GETNAME",
    "CLIENT GETNAME x",
    "CLIENT SETNAME",
    "CLIENT SETNAME a;CLIENT GETNAME;CLIENT SETNAME \"\";CLIENT GETNAME",
    "CLIENT SETNAME \"a b\";CLIENT SETNAME \"a\\nb\";CLIENT GETNAME",
    "CLIENT ID x",
    "CLIENT INFO x",
    "CLIENT LIST ID x",
    "CLIENT LIST ID 1x 2",
    "CLIENT LIST ID",
    "CLIENT LIST ID -1 0 999999",
    "CLIENT LIST TYPE",
    "CLIENT LIST TYPE foo",
    "CLIENT LIST TYPE master",
    "CLIENT LIST TYPE pubsub",
    "CLIENT LIST TYPE normal ID 1",
    "CLIENT LIST FOO",
    "CLIENT KILL",
    "CLIENT KILL 1.2.3.4:5",
    "CLIENT KILL ID",
    "CLIENT KILL ID x",
    "CLIENT KILL ID x TYPE normal",
    "CLIENT KILL ID 0 TYPE normal",
    "CLIENT KILL ID 999999",
    "CLIENT KILL ID 1 ID 999999",
    "CLIENT KILL ADDR 1.2.3.4:5",
    "CLIENT KILL LADDR 1.2.3.4:5",
    "CLIENT KILL LADDR 1.2.3.4:5 ADDR",
    "CLIENT KILL USER nobody",
    "CLIENT KILL USER default ID 999999",
    "CLIENT KILL TYPE foo SKIPME yes",
    "CLIENT KILL TYPE master",
    "CLIENT KILL TYPE replica SKIPME no",
    "CLIENT KILL TYPE normal SKIPME maybe",
    "CLIENT KILL FOO bar",
    "CLIENT KILL a b c",
    "CLIENT UNBLOCK",
    "CLIENT UNBLOCK x",
    "CLIENT UNBLOCK 999999",
    "CLIENT UNBLOCK 999999 TIMEOUT",
    "CLIENT UNBLOCK 999999 error",
    "CLIENT UNBLOCK x maybe",
    "CLIENT UNBLOCK 999999 ERROR x",
    "client unblock 1 a b",
    "CLIENT NO-EVICT",
    "CLIENT NO-EVICT on;CLIENT NO-EVICT OFF",
    "CLIENT NO-EVICT maybe",
    "CLIENT GETREDIR",
    "CLIENT GETREDIR x",
    "CLIENT TRACKINGINFO",
    "CLIENT TRACKINGINFO x",
    "CLIENT TRACKING",
    "CLIENT TRACKING off",
    "CLIENT TRACKING OFF bcast noloop",
    "CLIENT TRACKING off prefix a",
    "CLIENT TRACKING off prefix",
    "CLIENT TRACKING off redirect x",
    "CLIENT TRACKING off foo",
    "CLIENT TRACKING maybe",
    "CLIENT TRACKING on foo",
    "CLIENT CACHING",
    "CLIENT CACHING yes",
    "CLIENT REPLY",
    "CLIENT REPLY maybe",
    "CLIENT REPLY on;CLIENT REPLY skip;PING a;PING b",
    "CLIENT REPLY off;PING a;CLIENT REPLY on;PING b",
    "CLIENT HELP x",
    "CONFIG",
    "CONFIG FOO",
    "config foo bar",
    "CONFIG GET",
    "CONFIG GET nosuch",
    "CONFIG GET nosuch nosuch[*",
    "CONFIG GET maxmemory",
    "CONFIG GET maxmemory MAXMEMORY",
    "CONFIG SET",
    "CONFIG SET maxmemory",
    "CONFIG SET maxmemory 1 x",
    "CONFIG SET maxmemory x",
    "CONFIG SET MaxMemory -1",
    "CONFIG SET MaxMemory 1 maxMEMORY 2",
    "CONFIG SET maxmemory x nosuch 1",
    "CONFIG SET maxmemory x maxmemory 1",
    "CONFIG SET NoSuch 1",
    "CONFIG SET DATABASES 3",
    "CONFIG SET databases 3 nosuch 1",
    "CONFIG SET nosuch 1 databases 3",
    "CONFIG SET maxmemory 100mb;CONFIG GET maxmemory;CONFIG SET maxmemory 0;CONFIG GET maxmemory",
    "SET a 1;INFO keyspace;DEL a;INFO keyspace",
    "CONFIG SET maxmemory-policy allkeys-lru;CONFIG GET maxmemory-policy;CONFIG SET maxmemory-policy noeviction",
    "CONFIG REWRITE",
    "CONFIG REWRITE x",
    "CONFIG RESETSTAT x",
    "CONFIG HELP x",
    "SLOWLOG",
    "SLOWLOG FOO",
    "SLOWLOG GET",
    "SLOWLOG GET -1",
    "SLOWLOG GET x",
    "SLOWLOG GET -2",
    "slowlog get 1 2",
    "SLOWLOG LEN",
    "SLOWLOG LEN x",
    "SLOWLOG RESET",
    "LATENCY",
    "LATENCY FOO",
    "LATENCY LATEST",
    "LATENCY LATEST x",
    "LATENCY HISTORY",
    "LATENCY HISTORY x",
    "LATENCY GRAPH",
    "LATENCY GRAPH x",
    "LATENCY RESET",
    "LATENCY RESET a b",
    "LATENCY HISTOGRAM nosuch",
    "LATENCY DOCTOR x",
    "MEMORY",
    "MEMORY FOO",
    "MEMORY USAGE",
    "DEBUG",
    "WAIT",
    "WAIT 0 0",
    "WAIT 1 1",
    "WAIT -5 0",
    "WAIT x 0",
    "WAIT +1 0",
    "WAIT 01 0",
    "WAIT 0 x",
    "WAIT 0 1.5",
    "WAIT 0 -1",
    "HELLO 4",
    "HELLO -1",
    "HELLO x",
    "HELLO 02",
    "HELLO 99999999999999999999",
    "HELLO 3 foo",
    "HELLO 3 AUTH a",
    "HELLO 3 AUTH a b",
    "HELLO 3 SETNAME",
    "HELLO 3 SETNAME \"a b\"",
    "AUTH",
    "AUTH a",
    "AUTH a b",
    "AUTH a b c",
    "AUTH default x",
    "INFO nosuch",
    "INFO nosuch neither",
    "READONLY",
    "READWRITE",
    "READONLY x",
    "ROLE x",
    "TIME x",
    "LASTSAVE x",
    "RESET x",
    "RESET;CLIENT GETNAME",
    "CLIENT SETNAME a;RESET;CLIENT GETNAME",
    "QUIT x;PING",
    "COMMAND FOO",
    "COMMAND LIST x PATTERN y",
    "COMMAND LIST FILTERBY x y",
    "COMMAND LIST FILTERBY PATTERN",
    "COMMAND INFO nosuch client|pause2 config|get",
    "client|list",
    "MULTI;PING;EXEC",
    "MULTI;MULTI;PING;EXEC",
    "MULTI;WATCH a;EXEC",
    "MULTI;CLIENT FOO;EXEC",
    "MULTI;CONFIG GET;PING;EXEC",
    "MULTI;RESET;EXEC",
    "MULTI;QUIT;EXEC",
    "EXEC",
    "DISCARD",
    "DISCARD x",
];

/// The same but for the numbers in them.
const SAME_BUT_FOR_NUMBERS: &[&str] = &[
    "CLIENT ID",
    "HELLO",
    "HELLO 3",
    "HELLO 2 AUTH default x SETNAME a;CLIENT GETNAME",
    "TIME",
    "LASTSAVE",
    "ROLE",
];

#[test]
fn what_is_said_about_connections_and_the_server_is_what_redis_says() {
    // In memory a write is done before the next question is answered; one that goes to the disk only later.
    for durability in [Durability::Memory, Durability::Sync] {
        run_started(Plan::new(1, durability), |cluster| says_the_same(cluster));
    }
}

fn says_the_same(cluster: &Cluster<'_>) -> Result<()> {
    let redis = Redis::start(cluster)?;
    let mut refused = 0;
    for version in [2, 3] {
        for (lines, is_exact) in SAME
            .iter()
            .map(|it| (it, true))
            .chain(SAME_BUT_FOR_NUMBERS.iter().map(|it| (it, false)))
        {
            let lines = lines.replace(';', "\r\n");
            let lines = match version {
                3 => format!("HELLO 3\r\n{lines}"),
                _ => lines,
            };
            let ours = say(connect(cluster)?, &lines)?;
            let theirs = say(redis.connect()?, &lines)?;
            // Each connection has a number, which `HELLO` shows.
            let same = if is_exact && version == 2 {
                ours == theirs
            } else {
                without_numbers(&ours) == without_numbers(&theirs)
            };
            ensure!(same, "{lines}\r\n  ours: {ours}\r\ntheirs: {theirs}");
            refused += usize::from(ours.contains("-ERR"));
        }
    }
    ensure!(refused > 100, "{refused} were refused");
    Ok(())
}

/// The names in a line of `CLIENT LIST`, in order.
fn fields(line: &str) -> Vec<String> {
    let fields = line.split_whitespace().filter_map(|it| it.split_once('='));
    fields.map(|(name, _)| name.to_owned()).collect()
}

fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let mut fields = line.split_whitespace().filter_map(|it| it.split_once('='));
    fields.find(|(one, _)| *one == name).map(|(_, value)| value)
}

#[test]
fn a_client_is_listed_as_by_redis() {
    run_started(Plan::new(1, Durability::Memory), |cluster| {
        let redis = Redis::start(cluster)?;
        let ours = ask(&mut *connect(cluster)?, "CLIENT INFO")?;
        let theirs = ask(&mut *redis.connect()?, "CLIENT INFO")?;
        let mut expected = fields(&theirs);
        ensure!(expected.len() > 25, "{theirs}");
        expected.extend(["lib-name", "lib-ver", "watch"].map(str::to_owned));
        ensure!(fields(&ours) == expected, "{ours}\n{theirs}");
        for name in [
            "db", "sub", "multi", "redir", "user", "cmd", "resp", "events",
        ] {
            ensure!(
                field(&ours, name) == field(&theirs, name),
                "{name}: {ours}\n{theirs}"
            );
        }
        let mut stream = connect(cluster)?;
        let at = cluster.redis(0).to_string();
        ask(&mut *stream, "CLIENT SETNAME me")?;
        ask(&mut *stream, "WATCH a b")?;
        ask(&mut *stream, "MULTI")?;
        ask(&mut *stream, "GET a")?;
        stream.write_all(b"*1\r\n$4\r\nEXE")?;
        let mut other = connect(cluster)?;
        cluster.wait_for("its bytes", || {
            let list = ask(&mut *other, "CLIENT LIST TYPE normal")?;
            let line = list.lines().find(|line| field(line, "name") == Some("me"));
            let line = line.context("it is listed")?;
            let is = |name, value: &str| {
                let found = field(line, name);
                ensure!(found == Some(value), "{name} is not {value}: {line}");
                Ok(())
            };
            is("laddr", &at)?;
            is("flags", "x")?;
            is("multi", "1")?;
            is("watch", "2")?;
            is("cmd", "get")?;
            let number = |name| anyhow::Ok(field(line, name).context("is there")?.parse::<u64>()?);
            ensure!(number("multi-mem")? > 0 && number("fd")? > 2, "{line}");
            ensure!(
                number("tot-mem")? >= number("qbuf")? + number("rbs")?,
                "{line}"
            );
            Ok(number("qbuf")? == 11)
        })?;
        Ok(())
    });
}

#[test]
fn a_wait_is_ended_by_another_client_as_by_redis() {
    run_started(Plan::new(1, Durability::Memory), |cluster| {
        let redis = Redis::start(cluster)?;
        let both: [&dyn Fn() -> Result<Box<dyn Stream>>; 2] =
            [&|| connect(cluster), &|| redis.connect()];
        let mut said = Vec::new();
        for connect in both {
            let (mut waiting, mut other) = (connect()?, connect()?);
            let id = ask(&mut *waiting, "CLIENT ID")?;
            let id = id.trim_start_matches(':').to_owned();
            let mut heard = Vec::new();
            for how in ["", " TIMEOUT", " error"] {
                waiting.write_all(b"WAIT 1 0\r\n")?;
                cluster.wait_for("it to wait", || {
                    let listed = ask(&mut *other, &format!("CLIENT LIST ID {id}"))?;
                    Ok(field(&listed, "flags").is_some_and(|flags| flags.contains('b')))
                })?;
                ensure!(ask(&mut *other, "INFO clients")?.contains("blocked_clients:1\r\n"));
                heard.push(ask(&mut *other, &format!("CLIENT UNBLOCK {id}{how}"))?);
                heard.push(hear(&mut *waiting)?);
                heard.push(ask(&mut *other, &format!("CLIENT UNBLOCK {id}{how}"))?);
            }
            ensure!(ask(&mut *other, "INFO clients")?.contains("blocked_clients:0\r\n"));
            heard.push(ask(&mut *waiting, "PING")?);
            said.push(heard);
        }
        ensure!(said[0] == said[1], "{said:?}");
        ensure!(said[0][..3] == [":1", ":0", ":0"], "{said:?}");
        ensure!(said[0][7].starts_with("-UNBLOCKED"), "{said:?}");
        Ok(())
    });
}

/// Whether the other side has hung up.
fn is_over(stream: &mut dyn Stream) -> bool {
    // To one that was ended at once nothing can be said, or nothing comes back.
    stream.write_all(b"PING\r\n").is_err() || hear(stream).is_err()
}

#[test]
fn clients_are_ended_by_their_user_and_by_where_they_connected_to() {
    let mut plan = Plan::new(1, Durability::Memory);
    let dir = std::env::temp_dir();
    let path = dir.join(format!("quorumwire-words-{}", std::process::id()));
    std::fs::write(&path, "ann:a secret\ndefault:secret\n").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, mode).expect("its mode");
    plan.options
        .push(("client-auth-file", path.display().to_string().leak()));
    run_started(plan, |cluster| {
        let of = |line: &str| {
            let mut stream = connect(cluster)?;
            ensure!(ask(&mut *stream, line)? == "+OK", "{line}");
            anyhow::Ok(stream)
        };
        let (mut ann, mut anns) = (of("AUTH ann \"a secret\"")?, of("AUTH ann \"a secret\"")?);
        let (mut me, mut other) = (of("AUTH secret")?, of("AUTH default secret")?);
        let list = ask(&mut *me, "CLIENT LIST")?;
        let users: Vec<_> = list
            .lines()
            .filter_map(|line| field(line, "user"))
            .collect();
        ensure!(users == ["ann", "ann", "default", "default"], "{list}");
        ensure!(ask(&mut *me, "CLIENT KILL USER bob")? == "-ERR No such user 'bob'");
        ensure!(ask(&mut *anns, "RESET")? == "+RESET");
        ensure!(ask(&mut *me, "CLIENT KILL USER ann")? == ":1");
        ensure!(is_over(&mut *ann) && !is_over(&mut *other));
        ensure!(
            !is_over(&mut *anns),
            "who has reset its connection is nobody"
        );
        let laddr = cluster.redis(0);
        ensure!(ask(&mut *me, &format!("CLIENT KILL LADDR {laddr}"))? == ":2");
        ensure!(is_over(&mut *other) && is_over(&mut *anns) && !is_over(&mut *me));
        let me_too = format!("CLIENT KILL LADDR {laddr} SKIPME no");
        ensure!(ask(&mut *me, &me_too)? == ":1" && is_over(&mut *me));
        Ok(())
    });
    std::fs::remove_file(path).expect("the file is ours");
}

/// What is not as in Redis, as `docs/compatibility.md` tells it.
#[test]
fn what_differs_is_said_in_so_many_words() {
    run_started(Plan::new(1, Durability::Memory), |cluster| {
        for (lines, said) in [
            (
                "CLIENT PAUSE 1",
                "-ERR unknown subcommand 'PAUSE'. Try CLIENT HELP.",
            ),
            (
                "CLIENT UNPAUSE",
                "-ERR unknown subcommand 'UNPAUSE'. Try CLIENT HELP.",
            ),
            ("CLIENT TRACKING on", "-ERR CLIENT TRACKING is not served"),
            ("CLIENT NO-TOUCH on", "+OK"),
            ("CLIENT NO-TOUCH maybe", "-ERR syntax error"),
            ("CLIENT SETINFO lib-name x", "+OK"),
            (
                "CLIENT SETINFO lib-name \"x y\"",
                "-ERR lib-name cannot contain spaces",
            ),
            (
                "CLIENT SETINFO nosuch x",
                "-ERR Unrecognized option 'nosuch'",
            ),
            ("CONFIG RESETSTAT", "-ERR counters are not reset"),
            ("MEMORY DOCTOR", "-ERR MEMORY DOCTOR is not served"),
            ("DEBUG JMAP", "-ERR DEBUG JMAP is not served"),
            (
                "MULTI\r\nCLIENT ID\r\nEXEC",
                "+OK\r\n-ERR Command not allowed inside a transaction\r\n-EXECABORT",
            ),
            (
                "MULTI\r\nINFO\r\nEXEC",
                "+OK\r\n-ERR Command not allowed inside a transaction\r\n-EXECABORT",
            ),
            ("INFO commandstats", "$0\r\n"),
        ] {
            let answer = say(connect(cluster)?, lines)?;
            ensure!(answer.starts_with(said), "{lines}: {answer}");
        }
        let long = "x".repeat(5_000);
        for line in [
            "CLIENT",
            "CLIENT KILL TYPE normal TYPE",
            "CONFIG SET a b",
            "HELLO 3",
            "LATENCY GRAPH",
        ] {
            let answer = say(connect(cluster)?, &format!("{line} {long}"))?;
            ensure!(
                answer.starts_with('-') && answer.len() < 300,
                "{line}: {answer}"
            );
        }
        let mut stream = connect(cluster)?;
        cluster.wait_for("some work to be counted", || {
            let info = ask(&mut *stream, "INFO cpu")?;
            let used = |name| {
                let line = info.lines().find_map(|line| line.strip_prefix(name));
                anyhow::Ok(line.context("it is told")?.parse::<f64>()?)
            };
            ensure!(info.starts_with("# CPU\r\n"), "{info}");
            Ok(used("used_cpu_user:")? + used("used_cpu_sys:")? > 0.0)
        })?;
        for container in ["CLIENT", "CONFIG", "SLOWLOG", "LATENCY", "MEMORY"] {
            let help = say(connect(cluster)?, &format!("{container} HELP"))?;
            ensure!(
                help.contains("\r\n+HELP\r\n+    Print this help.\r\n+OK"),
                "{help}"
            );
        }
        Ok(())
    });
}

//! Programs that take datagrams, served by `quorumwire run`: the real dnsmasq, and a server whose answers
//! depend on the order of all that it was sent.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;
use std::{io, thread};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run, run_started};
use quorumwire_cluster_tests::served::kill_leader_under;
use quorumwire_cluster_tests::status::page;

const DNS_PORT: u16 = 53;
const DNSMASQ: [&str; 7] = [
    "dnsmasq",
    "--no-daemon", // questions over TCP are answered by the process itself, and not by children of it
    "--conf-file=/dev/null",
    "--no-resolv",
    "--no-hosts",
    "--address=/answer.test/192.0.2.7",
    "--user=root",
];
/// Who ask it at once at each replica.
const QUESTIONERS_OF_EACH: u64 = 8;
/// What they get answered before the next thing happens.
const ANSWERS: u64 = 500;
/// Before a datagram is sent again.
const RETRY: Duration = Duration::from_millis(300);
/// How often, at most.
const TRIES: u32 = 60;
/// And of one that may be dead.
const TRIES_OF_DEAD: u32 = 5;
const LONGEST: usize = 65_507;

fn served(cluster: &Cluster<'_>, id: u16, port: u16) -> SocketAddr {
    SocketAddr::new(cluster.redis(id).ip(), port)
}

fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(RETRY))?;
    Ok(socket)
}

fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::ConnectionRefused
    )
}

/// What is answered, after some tries: a datagram may be lost. Only what comes from there is an answer.
fn ask(to: SocketAddr, question: &[u8]) -> Result<Vec<u8>> {
    ask_often(to, question, TRIES)
}

fn ask_often(to: SocketAddr, question: &[u8], tries: u32) -> Result<Vec<u8>> {
    let socket = socket()?;
    socket.connect(to)?;
    let mut answer = vec![0; LONGEST];
    for _ in 0..tries {
        match socket.send(question).and_then(|_| socket.recv(&mut answer)) {
            Ok(count) => {
                answer.truncate(count);
                return Ok(answer);
            }
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    anyhow::bail!("{to} does not answer")
}

/// A question for an address, in DNS.
fn question(name: &str) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).expect("short"));
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

fn metric(cluster: &Cluster<'_>, id: u16, name: &str) -> Result<u64> {
    let (_, metrics) = page(cluster.http(id), "/metrics")?;
    let start = format!("quorumwire_{name}");
    let line = metrics.lines().find(|it| it.starts_with(&start));
    let value = line.and_then(|it| it.rsplit(' ').next());
    Ok(value
        .with_context(|| format!("{name} in the metrics"))?
        .parse()?)
}

/// The answer is to this question, and right.
fn is_resolved(name: &str, answer: &[u8]) -> Result<()> {
    let asked = &question(name)[12..]; // behind the head, which says that it is one
    ensure!(
        answer[12..].starts_with(asked) && answer.ends_with(&[192, 0, 2, 7]),
        "{name}: {answer:?}"
    );
    Ok(())
}

/// All of them answer, and the same.
fn resolve(cluster: &Cluster<'_>, ids: &[u16]) -> Result<()> {
    let mut answers = BTreeMap::new();
    for id in ids {
        let name = "www.answer.test";
        let answer = ask(served(cluster, *id, DNS_PORT), &question(name))?;
        is_resolved(name, &answer).with_context(|| format!("replica {id}"))?;
        answers.entry(answer).or_insert(*id);
    }
    ensure!(answers.len() == 1, "{answers:?}");
    Ok(())
}

#[test]
fn dnsmasq_answers_on_every_replica_whatever_else_it_is_sent() {
    let plan = Plan {
        serves: DNSMASQ.to_vec(),
        ..Plan::new(3, Durability::Sync)
    };
    run_started(plan, |cluster| {
        resolve(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        for (id, byte) in (0..3).zip([0, 0xff, 0x12]) {
            let to = served(cluster, id, DNS_PORT);
            let rubbish = socket()?;
            for bytes in [0, 1, 11, 12, 13, 512, 1500, LONGEST] {
                rubbish.send_to(&vec![byte; bytes], to)?;
            }
            let mut cut = question("www.answer.test");
            while cut.pop().is_some() {
                rubbish.send_to(&cut, to)?;
            }
        }
        resolve(cluster, &[0, 1, 2])?;
        for id in 0..3 {
            ensure!(metric(cluster, id, "served_datagrams_in")? > 8, "{id}");
            ensure!(metric(cluster, id, "served_datagrams_to_unknown")? == 0);
            // It is served over TCP at the same port.
            TcpStream::connect(served(cluster, id, DNS_PORT))?;
        }
        let load = (QUESTIONERS_OF_EACH, ANSWERS);
        kill_leader_under(cluster, leader, load, |given| {
            let to = SocketAddr::new(given.address.ip(), DNS_PORT);
            let tries = if given.id == leader {
                TRIES_OF_DEAD
            } else {
                TRIES
            };
            for number in 0_u64.. {
                if !given.goes_on() {
                    break;
                }
                let name = format!("{}-{number}.answer.test", given.name);
                match ask_often(to, &question(&name), tries) {
                    Ok(answer) => is_resolved(&name, &answer)?,
                    Err(_) if given.id == leader => break, // it may be dead
                    Err(error) => return Err(error),
                }
                given.is_answered();
            }
            Ok(())
        })?;
        let others: Vec<u16> = (0..3).filter(|id| *id != leader).collect();
        resolve(cluster, &others)?;
        cluster.start(leader)?;
        resolve(cluster, &[0, 1, 2])
    });
}

const COUNTS_PORT: u16 = 7000;
const CLIENTS_OF_EACH: u16 = 4;
const DATAGRAMS: u32 = 100;

/// How many datagrams the program has got, and a digest of all of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Count {
    number: u64,
    digest: u64,
}

impl Count {
    fn of(answer: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(answer)?;
        let words: Vec<&str> = text.split(' ').collect();
        let [number, _, digest] = words[..] else {
            anyhow::bail!("{text:?} is no count");
        };
        Ok(Self {
            number: number.parse()?,
            digest: u64::from_str_radix(digest, 16)?,
        })
    }

    /// When it gets this one more.
    fn after(self, datagram: &[u8]) -> Self {
        let length = (datagram.len() as u64).to_le_bytes();
        let fold =
            |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self {
            number: self.number + 1,
            digest: datagram.iter().chain(&length).fold(self.digest, fold),
        }
    }
}

/// Asks one replica after the other: each goes on where the one before was.
fn go_round(cluster: &Cluster<'_>, ids: &[u16], text: &[u8]) -> Result<()> {
    let ask = |id: u16| Count::of(&ask(served(cluster, id, COUNTS_PORT), text)?);
    let first = *ids.first().context("a replica")?;
    let mut last = ask(first)?;
    for id in ids.iter().chain(ids) {
        let answer = ask(*id)?;
        // What was sent again may have come twice.
        let mut expected = last;
        while expected.number < answer.number {
            expected = expected.after(text);
        }
        ensure!(
            expected.number > last.number && expected == answer,
            "replica {id} says {answer:?}, and {expected:?} comes after {last:?}"
        );
        last = answer;
    }
    Ok(())
}

/// Asks all three from one socket at once: each answers for itself, once.
fn ask_all_at_once(cluster: &Cluster<'_>) -> Result<()> {
    let socket = socket()?;
    let asked: Vec<SocketAddr> = (0..3).map(|id| served(cluster, id, COUNTS_PORT)).collect();
    for _ in 0..20 {
        for to in &asked {
            socket.send_to(b"all", to)?;
        }
        let mut answered = Vec::new();
        let mut answer = [0; 100];
        while answered.len() < asked.len() {
            match socket.recv_from(&mut answer) {
                Ok((_, from)) => answered.push(from),
                Err(error) if is_late(&error) => break, // one is lost
                Err(error) => return Err(error.into()),
            }
        }
        answered.sort();
        ensure!(
            answered.iter().all(|it| asked.contains(it)),
            "answers of {answered:?}"
        );
        let count = answered.len();
        answered.dedup();
        ensure!(answered.len() == count, "one has answered twice");
    }
    Ok(())
}

/// Many clients of all replicas. What is counted is counted once, and never answered twice.
fn count_much(cluster: &Cluster<'_>) -> Result<()> {
    let counted: Mutex<BTreeMap<u64, (u64, SocketAddr)>> = Mutex::default();
    let count = |to: SocketAddr, client: u16| -> Result<()> {
        let socket = socket()?;
        socket.connect(to)?;
        let mut answer = [0; 100];
        for number in 0..DATAGRAMS {
            socket.send(format!("{client}.{number}").as_bytes())?;
            let bytes = match socket.recv(&mut answer) {
                Ok(bytes) => bytes,
                Err(error) if is_late(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            let said = Count::of(&answer[..bytes])?;
            let mut counted = counted.lock().expect("nobody panicked");
            let before = counted.insert(said.number, (said.digest, to));
            ensure!(before.is_none(), "{said:?} of {to}, and of {before:?}");
        }
        Ok(())
    };
    thread::scope(|scope| {
        let mut clients = Vec::new();
        for client in 0..3 * CLIENTS_OF_EACH {
            let to = served(cluster, client % 3, COUNTS_PORT);
            let count = &count;
            clients.push(scope.spawn(move || count(to, client)));
        }
        let mut clients = clients.into_iter();
        clients.try_for_each(|it| it.join().expect("a client"))
    })?;
    let answers = counted.into_inner().expect("nobody panicked").len();
    let sent = usize::from(3 * CLIENTS_OF_EACH) * DATAGRAMS as usize;
    ensure!(answers > sent / 2, "{answers} answers to {sent} datagrams");
    Ok(())
}

#[test]
fn datagrams_come_in_one_order_everywhere_and_are_answered_once() {
    run(Plan::new(3, Durability::Sync), |cluster| {
        let program = cluster.scratch_file("counts");
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../client/interpose/tests/programs/counts.c");
        let compiled = Command::new("cc")
            .arg("-o")
            .args([&program, &source])
            .status()?;
        ensure!(compiled.success(), "it does not compile");
        let program = program.to_str().context("a path")?.to_owned();
        cluster.plan().serves = vec![program.leak(), "7000"];
        cluster.start_all()?;
        go_round(cluster, &[0, 1, 2], b"first")?;
        count_much(cluster)?;
        ask_all_at_once(cluster)?;
        go_round(cluster, &[0, 1, 2], &vec![7; LONGEST])?;
        go_round(cluster, &[2, 1, 0], b"")?;
        let leader = cluster.wait_for_leader()?;
        cluster.kill(leader)?;
        let others: Vec<u16> = (0..3).filter(|id| *id != leader).collect();
        go_round(cluster, &others, b"without one")?;
        // The one that was killed gets all of it again, and answers what is new only.
        cluster.start(leader)?;
        go_round(cluster, &[leader, others[0], others[1]], b"again")?;
        let sent = metric(cluster, leader, "served_datagrams_out")?;
        ensure!(sent < 100, "{sent} answers of the one that was away");
        // All programs have sent the same.
        cluster.wait_for("a comparison", || {
            Ok(metric(cluster, others[0], "served_output_windows_equal")? > 0)
        })?;
        Ok(())
    });
}

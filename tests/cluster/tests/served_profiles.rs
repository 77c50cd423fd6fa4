//! Servers other than Redis, served by `quorumwire run`: each does what hangs on the order in which clients
//! of all replicas ask, loses its leader meanwhile, and has the same everywhere afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::client::{Client, Outcome};
use quorumwire_cluster_tests::cluster::{Cluster, Plan, run_started};
use quorumwire_cluster_tests::mqtt::{Message, Mqtt, Promise};
use quorumwire_cluster_tests::served::{Given, kill_leader_under, three};

const PATIENCE: Duration = Duration::from_secs(20);
/// Connections to each replica.
const CLIENTS_OF_EACH: u64 = 8;
/// What clients get answered before the next thing happens.
const ANSWERS: u64 = 500;

/// Files that programs are told to read.
macro_rules! told {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/served/", $name)
    };
}

fn connect(address: SocketAddr) -> Result<Client> {
    Ok(Client::connect(address, PATIENCE)?)
}

fn done<T>(outcome: Outcome<T>) -> Result<T> {
    outcome.done().context("no answer")
}

fn wait_for_programs(cluster: &Cluster<'_>, ids: &[u16]) -> Result<()> {
    cluster.wait_for("programs", || {
        Ok(ids
            .iter()
            .all(|id| TcpStream::connect(cluster.redis(*id)).is_ok()))
    })
}

/// How one of many clients adds a word to what the program keeps, and how all of it is read.
struct Words {
    add: fn(&mut Client, &str) -> Result<()>,
    read: fn(SocketAddr) -> Result<Vec<String>>,
}

impl Words {
    /// Words that this client was told are kept, until it is told to stop or, where it may be, cut.
    fn add_many(&self, given: &Given<'_>, may_be_cut: bool) -> Result<Vec<String>> {
        let mut client = connect(given.address)?;
        let mut kept = Vec::new();
        for number in 0_u64.. {
            let word = format!("{}.{number}", given.name);
            if !given.goes_on() {
                break;
            }
            match (self.add)(&mut client, &word) {
                Ok(()) => kept.push(word),
                Err(_) if may_be_cut && !client.is_usable() => break,
                Err(error) => return Err(error).context(word),
            }
            given.is_answered();
        }
        Ok(kept)
    }

    /// Clients of all replicas at once; the leader is killed under them, and comes back with only the log.
    fn outlive_a_leader(&self, cluster: &mut Cluster<'_>) -> Result<()> {
        let leader = cluster.wait_for_leader()?;
        let load = (CLIENTS_OF_EACH, ANSWERS);
        let kept = kill_leader_under(cluster, leader, load, |given| {
            self.add_many(given, given.id == leader)
        })?;
        let kept: Vec<_> = kept.into_iter().flat_map(|(_, kept)| kept).collect();
        cluster.start(leader)?;
        wait_for_programs(cluster, &[leader])?;
        self.compare(cluster, &kept)
    }

    /// All replicas' programs have the same words, in the same order, and none that was told to be kept is
    /// lost.
    fn compare(&self, cluster: &Cluster<'_>, kept: &[String]) -> Result<()> {
        let mut words = BTreeSet::new();
        cluster.wait_for("equal programs", || {
            let of_each = (0..3).map(|id| (self.read)(cluster.redis(id)));
            words = of_each.collect::<Result<_>>()?;
            Ok(words.len() == 1)
        })?;
        let words = words.pop_first().context("words")?;
        let once: BTreeSet<&str> = words.iter().filter_map(|it| it.split(':').next()).collect();
        ensure!(once.len() == words.len(), "a word is there twice");
        for word in kept {
            ensure!(once.contains(&**word), "{word} was kept, and is lost");
        }
        Ok(())
    }
}

const JOURNAL: [&str; 3] = ["/usr/bin/python3", told!("journal.py"), "6379"];

/// Those of that.
fn journal() -> Words {
    Words {
        add: |client, word| {
            let answer = done(client.line(word))?;
            answer.parse::<u64>().with_context(|| answer.clone())?;
            Ok(())
        },
        read: |address| {
            let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(b"?\n")?;
            let mut all = String::new();
            BufReader::new(stream).read_line(&mut all)?;
            Ok(all.split_whitespace().map(Into::into).collect())
        },
    }
}

#[test]
fn a_server_of_asyncio_draws_the_same_numbers_in_the_same_order() {
    run_started(three(&JOURNAL), |cluster| {
        wait_for_programs(cluster, &[0, 1, 2])?;
        journal().outlive_a_leader(cluster)
    });
}

/// It says by its file that it has saved itself.
const SNAPSHOT: &str = "kill -USR1 $QUORUMWIRE_PID && until [ -e journal ]; do sleep 0.02; done && \
                        mv journal \"$QUORUMWIRE_SAVE\"";
const RESTORE: &str = "cp \"$QUORUMWIRE_SAVE\"/journal .";

#[test]
fn a_server_of_asyncio_is_saved_by_command_and_begins_from_that_everywhere() {
    let mut options = vec![("snapshot-command", SNAPSHOT), ("restore-command", RESTORE)];
    options.extend([("log-tail-mib", "0"), ("log-kept-mib", "0")]);
    let plan = Plan {
        options,
        ..three(&JOURNAL)
    };
    let words = journal();
    run_started(plan, |cluster| {
        wait_for_programs(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        let mut kept = Vec::new();
        let mut add = |cluster: &Cluster<'_>, ids: &[u16]| -> Result<Vec<String>> {
            for id in ids {
                let mut client = connect(cluster.redis(*id))?;
                for _ in 0..20 {
                    let word = format!("word-{}", kept.len());
                    (words.add)(&mut client, &word)?;
                    kept.push(word);
                }
            }
            Ok(kept.clone())
        };
        let others: Vec<u16> = (0..3).filter(|id| *id != leader).collect();
        add(cluster, &[0, 1, 2])?;
        cluster.kill(others[0])?;
        add(cluster, &[leader, others[1]])?;
        cluster.command(&["snapshot", "--addr", &cluster.http(leader).to_string()])?;
        wait_for_programs(cluster, &[leader, others[1]])?;
        let kept = add(cluster, &[leader, others[1]])?;
        cluster.start(others[0])?;
        wait_for_programs(cluster, &[others[0]])?;
        let installed = cluster.status(others[0])?.snapshot_index;
        ensure!(installed > 0, "it began from the log's beginning");
        words.compare(cluster, &kept)?;
        let kept = add(cluster, &[0, 1, 2])?;
        words.compare(cluster, &kept)?;
        cluster.kill_all()?;
        cluster.start_all()?;
        wait_for_programs(cluster, &[0, 1, 2])?;
        words.compare(cluster, &kept)
    });
}

/// What nginx answers: the number of this connection among all that it has accepted.
fn number_of_connection(address: SocketAddr) -> Result<u64> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("a body")?;
    let number = body.split_whitespace().next().context("a number")?;
    Ok(number.parse()?)
}

#[test]
fn nginx_counts_the_connections_of_all_replicas() {
    let serves = ["nginx", "-p", "./", "-c", told!("nginx.conf")];
    run_started(three(&serves), |cluster| {
        wait_for_programs(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        let ask = |cluster: &Cluster<'_>, ids: &[u16], mut last: u64| -> Result<u64> {
            for id in ids.repeat(10) {
                let number = number_of_connection(cluster.redis(id))?;
                ensure!(number > last, "{number} behind {last}, at replica {id}");
                last = number;
            }
            Ok(last)
        };
        let last = ask(cluster, &[0, 1, 2], 0)?;
        let load = (CLIENTS_OF_EACH, ANSWERS);
        let numbers = kill_leader_under(cluster, leader, load, |given| {
            let mut numbers = Vec::new();
            while given.goes_on() {
                match number_of_connection(given.address) {
                    Ok(number) => numbers.push(number),
                    Err(_) if given.id == leader => break, // it may be dead
                    Err(error) => return Err(error),
                }
                given.is_answered();
            }
            Ok(numbers)
        })?;
        for (id, of_client) in &numbers {
            ensure!(of_client.is_sorted(), "a client of {id}: {of_client:?}");
        }
        let count = numbers.iter().map(|(_, it)| it.len()).sum::<usize>();
        let once: BTreeSet<_> = numbers.into_iter().flat_map(|(_, it)| it).collect();
        ensure!(once.len() == count, "two connections have one number");
        ensure!(once.first().is_some_and(|it| *it > last));
        let last = *once.last().context("a number")?;
        let others: Vec<_> = (0..3).filter(|id| *id != leader).collect();
        let last = ask(cluster, &others, last)?;
        cluster.start(leader)?;
        wait_for_programs(cluster, &[leader])?;
        ask(cluster, &[leader, others[0], others[1]], last)?;
        Ok(())
    });
}

/// Publishes numbers at replicas in turn, and as many retained messages.
fn publish(cluster: &Cluster<'_>, ids: &[u16], numbers: std::ops::Range<u64>) -> Result<()> {
    for (number, id) in numbers.zip(ids.iter().cycle()) {
        let at = cluster.redis(*id);
        let line = format!(
            "mosquitto_pub -h {host} -p {port} -q 1 -t queue/{id} -m {number} && \
             mosquitto_pub -h {host} -p {port} -q 1 -r -t kept/{number} -m {number}",
            host = at.ip(),
            port = at.port()
        );
        let said = cluster.run_program("sh", &["-c", &line])?;
        ensure!(said.success, "{}", said.stderr);
    }
    Ok(())
}

/// Takes so many messages in a session that lasts, or of what is retained.
fn take(cluster: &Cluster<'_>, id: u16, of: &str, count: u64) -> Result<Vec<u64>> {
    let at = cluster.redis(id);
    let line = format!(
        "mosquitto_sub -h {} -p {} {of} -C {count} -W 20",
        at.ip(),
        at.port()
    );
    let said = cluster.run_program("sh", &["-c", &line])?;
    let numbers = said.stdout.lines().map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
    ensure!(
        numbers.len() as u64 == count,
        "{numbers:?}: {}",
        said.stderr
    );
    Ok(numbers)
}

const OF_SESSION: &str = "-i reader -c -q 1 -t 'queue/#'";
const RETAINED: &str = "-t 'kept/#' --retained-only";

/// Whose session lasts.
const COLLECTOR: (&str, bool) = ("collector", true);
/// What many clients publish, and the last of it.
const LOAD: &str = "load/#";
const END: &str = "end";

fn mqtt(address: SocketAddr, who: (&str, bool)) -> Result<Mqtt> {
    Mqtt::connect(address, who, PATIENCE)
}

/// Messages that were acknowledged to one of many clients, until it is told to stop or, where it may be, cut.
fn publish_many(given: &Given<'_>, may_be_cut: bool) -> Result<Vec<Message>> {
    let mut client = mqtt(given.address, (&given.name, false))?;
    let topic = format!("load/{}", given.name);
    let mut told = Vec::new();
    for number in 0_u64.. {
        if !given.goes_on() {
            break;
        }
        let text = number.to_string();
        match client.publish(&topic, &text) {
            Ok(()) => told.push((topic.clone(), text)),
            Err(_) if may_be_cut => break,
            Err(error) => return Err(error).context(text),
        }
        given.is_answered();
    }
    Ok(told)
}

/// What clients were told is kept by all programs, the last of each topic, and queued, each once and in
/// order.
fn compare_messages(cluster: &Cluster<'_>, id: u16, told: &[Vec<Message>]) -> Result<()> {
    let mut kept = BTreeSet::new();
    for id in 0..3 {
        let mut reader = mqtt(cluster.redis(id), (&format!("reads-{id}"), false))?;
        reader.subscribe(LOAD, Promise::AtMostOnce)?;
        let of_it: BTreeMap<_, _> = reader.heard()?.iter().cloned().collect();
        kept.insert(of_it);
    }
    ensure!(kept.len() == 1, "programs differ: {kept:?}");
    let kept = kept.pop_first().context("what is kept")?;
    mqtt(cluster.redis(id), ("ends", false))?.publish("load/end", END)?;
    let mut collector = mqtt(cluster.redis(id), COLLECTOR)?;
    let mut queued: BTreeMap<String, Vec<String>> = BTreeMap::new();
    cluster.wait_for("what is queued", || {
        let heard = collector.heard()?;
        let is_all = heard.last().is_some_and(|(_, text)| text == END);
        if is_all {
            for (topic, text) in heard {
                queued.entry(topic.clone()).or_default().push(text.clone());
            }
        }
        Ok(is_all)
    })?;
    for told in told {
        let Some((topic, last)) = told.last() else {
            continue;
        };
        let queued = queued.get(topic).context("nothing is queued")?;
        // What it was not told of may have been done, too.
        let all = (0..).map(|number: u64| number.to_string());
        let is_whole = queued.iter().cloned().eq(all.take(queued.len()));
        let more = queued.len() - told.len().min(queued.len());
        ensure!(
            is_whole && queued.contains(last) && more <= 1,
            "{topic}: {last} was the last one acknowledged, and {queued:?} are queued"
        );
        ensure!(kept.get(topic) == queued.last(), "{topic} is not kept");
    }
    Ok(())
}

#[test]
fn mosquitto_queues_the_messages_of_all_replicas_also_over_a_cut() {
    let plan = Plan {
        options: vec![("save-signal", "TERM")],
        ..three(&["mosquitto", "-c", told!("mosquitto.conf")])
    };
    run_started(plan, |cluster| {
        wait_for_programs(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        let others: Vec<_> = (0..3).filter(|id| *id != leader).collect();
        publish(cluster, &[0], 0..1)?;
        let (host, port) = (cluster.redis(0).ip(), cluster.redis(0).port());
        let begin = format!("mosquitto_sub -h {host} -p {port} {OF_SESSION} -E");
        let said = cluster.run_program("sh", &["-c", &begin])?;
        ensure!(said.success, "{}", said.stderr);
        publish(cluster, &[0, 1, 2], 1..10)?;
        mqtt(cluster.redis(0), COLLECTOR)?.subscribe(LOAD, Promise::AtLeastOnce)?;
        let load = (CLIENTS_OF_EACH, ANSWERS);
        let told = kill_leader_under(cluster, leader, load, |given| {
            publish_many(given, given.id == leader)
        })?;
        let told: Vec<_> = told.into_iter().map(|(_, told)| told).collect();
        publish(cluster, &others, 10..20)?;
        cluster.start(leader)?;
        wait_for_programs(cluster, &[leader])?;
        cluster.command(&["snapshot", "--addr", &cluster.http(leader).to_string()])?;
        wait_for_programs(cluster, &[0, 1, 2])?;
        publish(cluster, &[0, 1, 2], 20..30)?;
        for id in 0..3 {
            let kept: BTreeSet<u64> = take(cluster, id, RETAINED, 30)?.into_iter().collect();
            ensure!(kept.into_iter().eq(0..30), "at replica {id}");
        }
        let queued = take(cluster, leader, OF_SESSION, 29)?;
        ensure!(queued.iter().copied().eq(1..30), "{queued:?}");
        compare_messages(cluster, leader, &told)
    });
}

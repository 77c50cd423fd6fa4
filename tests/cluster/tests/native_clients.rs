//! The client library against real clusters: leaders die, connections are cut, answers get lost, and each
//! command runs once; what the client says of it is so.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_client::{
    Account, AsyncClient, Client, Counters, Error, Outcome, Settings, Tls as ClientTls,
};
use quorumwire_cluster_tests::cluster::{
    Cluster, Durability, OnFollower, Plan, Tls, run, run_started,
};
use quorumwire_cluster_tests::network::Machine;
use quorumwire_cluster_tests::seed::seed;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const WORKERS: usize = 8;
const ROUNDS: usize = 12;
/// Some workers give up so soon that it is not always known what came of a command.
const IMPATIENT: Duration = Duration::from_millis(150);

fn addresses(cluster: &Cluster<'_>) -> Vec<String> {
    let address = |id| SocketAddr::to_string(&cluster.native(id));
    cluster.founders().map(address).collect()
}

fn settings(cluster: &Cluster<'_>) -> Settings {
    Settings {
        patience: Duration::from_millis(500),
        ..Settings::new(addresses(cluster))
    }
}

/// What became of each number that a worker appended to its line.
pub type Outcomes = BTreeMap<u64, Option<Outcome>>;

/// Appends one number after the other to a line of its own until told to stop.
pub fn append(client: &Client, worker: usize, stop: &AtomicBool, answered: &AtomicU64) -> Outcomes {
    let key = format!("line-{worker}");
    let mut said = Outcomes::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let word = format!("{number};");
        let result = client.command(&["APPEND", &key, &word]);
        let outcome = result.err().map(|error| error.outcome());
        answered.fetch_add(u64::from(outcome.is_none()), Ordering::Relaxed);
        said.insert(number, outcome);
    }
    said
}

/// How often each number stands in a line.
fn counted(line: &[u8]) -> Result<BTreeMap<u64, u32>> {
    let text = std::str::from_utf8(line)?;
    let mut counts = BTreeMap::new();
    for word in text.split_terminator(';') {
        *counts.entry(word.parse()?).or_insert(0) += 1;
    }
    Ok(counts)
}

/// Everything that was said of every number is so; how many of each outcome there were.
pub fn judge(client: &Client, workers: &[Outcomes]) -> Result<BTreeMap<&'static str, u64>> {
    let mut outcomes = BTreeMap::new();
    for (worker, said) in workers.iter().enumerate() {
        let line = client.get(format!("line-{worker}"))?.unwrap_or_default();
        let counts = counted(&line)?;
        for (number, outcome) in said {
            let count = counts.get(number).copied().unwrap_or(0);
            let (name, is_so) = match outcome {
                None => ("answered", count == 1),
                Some(Outcome::CarriedOut) => ("carried out", count == 1),
                Some(Outcome::NotCarriedOut) => ("not carried out", count == 0),
                Some(Outcome::Unknown) => ("unknown", count <= 1),
            };
            ensure!(
                is_so,
                "worker {worker}: {number} was {name} and stands there {count} times"
            );
            *outcomes.entry(name).or_insert(0) += 1;
        }
        let is_known = |number: &u64| said.contains_key(number);
        ensure!(counts.keys().all(is_known), "worker {worker}: strangers");
    }
    Ok(outcomes)
}

/// One thing that goes wrong, and is over when this returns.
fn go_wrong(cluster: &mut Cluster<'_>, round: usize, rng: &mut ChaCha8Rng) -> Result<()> {
    let leader = cluster.wait_for_leader()?;
    let there = Machine::Replica(leader);
    let a_while = Duration::from_millis(rng.random_range(700..1200));
    match round % 4 {
        0 => {
            cluster.kill(leader)?;
            cluster.wait_for_leader_other_than(leader)?;
            cluster.start(leader)?;
        }
        // What is asked arrives, and what is answered does not.
        1 => {
            cluster.network().cut_one_way(there, Machine::Client)?;
            thread::sleep(a_while);
            cluster.network().heal()?;
        }
        2 => {
            cluster.pause(leader)?;
            thread::sleep(a_while);
            cluster.resume(leader)?;
        }
        _ => {
            cluster.network().isolate(leader)?;
            thread::sleep(a_while);
            cluster.network().heal()?;
        }
    }
    cluster.wait_for_ready(&[0, 1, 2])
}

fn sum(clients: &[Client], count: impl Fn(&Counters) -> u64) -> u64 {
    clients.iter().map(|client| count(&client.counters())).sum()
}

fn once_each(plan: Plan) {
    let seed = seed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    run_started(plan, |cluster| {
        let patient = Client::connect(&settings(cluster))?;
        let impatient = Settings {
            deadline: IMPATIENT,
            patience: IMPATIENT,
            retry_max: IMPATIENT / 4,
            ..settings(cluster)
        };
        let clients = [
            patient.clone(),
            Client::connect(&settings(cluster))?,
            Client::connect(&impatient)?,
        ];
        let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
        let workers = thread::scope(|scope| -> Result<Vec<Outcomes>> {
            let (stop, answered, clients) = (&stop, &answered, &clients);
            let spawn = |worker| {
                let client = &clients[worker % clients.len()];
                scope.spawn(move || append(client, worker, stop, answered))
            };
            let workers: Vec<_> = (0..WORKERS).map(spawn).collect();
            let went = (0..ROUNDS).try_for_each(|round| {
                let before = answered.load(Ordering::Relaxed);
                cluster.wait_for("commands to be answered", || {
                    Ok(answered.load(Ordering::Relaxed) > before + 100)
                })?;
                go_wrong(cluster, round, &mut rng)
            });
            stop.store(true, Ordering::Relaxed);
            let workers = workers.into_iter().map(thread::ScopedJoinHandle::join);
            let said = workers.map(|said| said.expect("a worker")).collect();
            went.map(|()| said)
        })?;
        let outcomes = judge(&patient, &workers)?;
        let elsewhere = sum(&clients, |it| it.sent_elsewhere);
        let repeated = sum(&clients, |it| it.answered_repeated);
        println!("{outcomes:?}, sent elsewhere {elsewhere}, answered again {repeated}");
        ensure!(outcomes.get("answered").is_some_and(|it| *it > 1000));
        ensure!(outcomes.contains_key("unknown"), "void: all was known");
        ensure!(elsewhere > 0, "void: nothing was sent to another replica");
        ensure!(repeated > 0, "void: nothing was answered from the table");
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

#[test]
fn commands_run_once_while_leaders_die_and_connections_are_cut() {
    once_each(Plan::new(3, Durability::Sync));
}

#[test]
fn commands_run_once_in_fast_terms() {
    once_each(Plan::fast(3, Durability::Sync));
}

/// Many tasks on one client; some stop waiting in the middle, which takes nothing back and doubles nothing.
#[test]
fn many_tasks_share_a_client_and_some_stop_waiting() {
    run_started(Plan::new(3, Durability::Memory), |cluster| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let settings = settings(cluster);
        let leader = cluster.wait_for_leader()?;
        let (kept, dropped) = runtime.block_on(async {
            let client = AsyncClient::connect(settings.clone()).await?;
            let mut tasks = Vec::new();
            for task in 0..300_u32 {
                let client = client.clone();
                tasks.push(tokio::spawn(async move {
                    let added = client.increment("sum", 1);
                    if task % 3 == 0 {
                        let patience = Duration::from_micros(u64::from(task) * 20);
                        tokio::time::timeout(patience, added).await.ok()
                    } else {
                        Some(added.await)
                    }
                }));
                if task == 150 {
                    cluster.kill(leader)?;
                }
            }
            let (mut kept, mut dropped) = (0_i64, 0_i64);
            for task in tasks {
                match task.await? {
                    Some(result) => {
                        result?;
                        kept += 1;
                    }
                    None => dropped += 1,
                }
            }
            anyhow::Ok((kept, dropped))
        })?;
        println!("{kept} waited, {dropped} did not");
        ensure!(kept >= 200 && dropped > 0, "void");
        let client = Client::connect(&settings)?;
        let sum = client.increment("sum", 0)?;
        ensure!((kept..=kept + dropped).contains(&sum), "{sum}");
        Ok(())
    });
}

/// Commands and answers of every length, at a follower too, with planes and without.
#[test]
fn long_commands_and_answers_pass_everywhere() {
    for plan in [
        Plan::steady(3, Durability::Memory),
        Plan::fast(3, Durability::Memory),
    ] {
        run_started(plan, |cluster| {
            let leader = cluster.wait_for_settled_leader()?;
            for id in [leader, (leader + 1) % 3] {
                let client = Client::connect(&Settings::new([cluster.native(id).to_string()]))?;
                for bytes in [0, 1, 1300, 1400, 70_000, 1 << 20] {
                    let value = vec![b'v'; bytes];
                    client.set("long", &value)?;
                    ensure!(client.get("long")?.as_deref() == Some(&value[..]));
                }
                let error = client.set("long", vec![0; (1 << 20) + 1]).unwrap_err();
                ensure!(error.outcome() == Outcome::NotCarriedOut, "{error}");
            }
            Ok(())
        });
    }
}

/// A follower that refuses names the leader, and the client goes there.
#[test]
fn a_client_finds_the_leader() {
    let plan = Plan {
        on_follower: OnFollower::Refuse,
        ..Plan::steady(3, Durability::Memory)
    };
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_leader()?;
        let follower = cluster.native((leader + 1) % 3).to_string();
        let client = Client::connect(&Settings::new([follower]))?;
        client.set("a", "1")?;
        ensure!(client.get("a")?.as_deref() == Some(&b"1"[..]));
        ensure!(client.counters().leaders_followed == 1);
        Ok(())
    });
}

/// The typed commands, transactions, and what is refused before it is sent.
#[test]
fn the_stores_commands_do_what_they_say() {
    use quorumwire_client::kv::Value;
    run_started(Plan::new(3, Durability::Memory), |cluster| {
        let client = Client::connect(&settings(cluster))?;
        ensure!(client.get("a")?.is_none());
        ensure!(client.compare_and_set("a", None, "1")?);
        ensure!(!client.compare_and_set("a", None, "2")?);
        ensure!(client.compare_and_set("a", Some(b"1"), "2")?);
        ensure!(client.increment("a", 40)? == 42);
        client.set_for("b", "soon", Duration::from_mins(1))?;
        let ttl = client.command(&["TTL", "b"])?.as_integer();
        ensure!(ttl.is_some_and(|ttl| (55..=61).contains(&ttl)), "{ttl:?}");
        let watched = client.watch(&["a", "b"])?;
        let commands = [&["INCR", "a"][..], &["INCR", "b"], &["GET", "a"]];
        let values = client.transaction_if(&watched, &commands)?;
        let values = values.context("nothing had changed")?;
        ensure!(values[0] == Value::Integer(43) && values[2] == Value::Bytes(b"43".to_vec()));
        ensure!(matches!(values[1], Value::Error(_)));
        ensure!(client.transaction_if(&watched, &commands)?.is_none());
        ensure!(client.transaction(&[["DEL", "a"]])? == [Value::Integer(1)]);
        ensure!(client.delete("b")? && !client.delete("b")?);
        client.set("word", "x")?;
        let error = client.increment("word", 1).unwrap_err();
        ensure!(matches!(error, Error::Answered(_)), "{error}");
        let error = client.command(&["SUBSCRIBE", "a"]).unwrap_err();
        ensure!(matches!(error, Error::Invalid(_)), "{error}");
        // Other protocols see the same.
        let leader = cluster.wait_for_leader()?;
        let value = cluster.client(leader)?.get("word").expect("get");
        ensure!(value.as_deref() == Some(&b"x"[..]));
        Ok(())
    });
}

/// Under TLS, with accounts: who may is served, and nobody else is.
#[test]
fn who_may_is_served_and_nobody_else() {
    let plan = Plan {
        tls: Tls::All,
        ..Plan::steady(3, Durability::Memory)
    };
    run(plan, |cluster| {
        let accounts = cluster.accounts_file("kim:opensesame\n")?;
        cluster.set_options(vec![
            ("client-auth-file", accounts),
            ("election-timeout-ms", "10000"),
        ]);
        cluster.start_all()?;
        let tls = ClientTls::from_ca_file(cluster.keys().join("ca.pem"))?;
        let with = |tls: Option<&ClientTls>, password: &str| Settings {
            tls: tls.cloned(),
            account: Some(Account {
                name: "kim".to_owned(),
                password: password.to_owned(),
            }),
            ..settings(cluster)
        };
        let client = Client::connect(&with(Some(&tls), "opensesame"))?;
        client.set("a", "1")?;
        ensure!(client.get("a")?.as_deref() == Some(&b"1"[..]));
        let soon = |settings: Settings| Settings {
            deadline: Duration::from_secs(2),
            ..settings
        };
        let wrong = Client::connect(&soon(with(Some(&tls), "sesame"))).err();
        ensure!(matches!(wrong, Some(Error::NotLetIn(_))), "{wrong:?}");
        let clear = Client::connect(&soon(with(None, "opensesame"))).err();
        ensure!(matches!(clear, Some(Error::NoAnswer(_))), "{clear:?}");
        // Another name than the address: one that stands in the certificates, and one that does not.
        let [known, unknown] =
            ["localhost", "db.example"].map(|it| tls.clone().with_server_name(it));
        let client = Client::connect(&with(Some(&known?), "opensesame"))?;
        ensure!(client.get("a")?.as_deref() == Some(&b"1"[..]));
        let misnamed = Client::connect(&soon(with(Some(&unknown?), "opensesame"))).err();
        ensure!(matches!(misnamed, Some(Error::NoAnswer(_))), "{misnamed:?}");
        let elsewhere = cluster.scratch_file("elsewhere");
        cluster.make_keys(&elsewhere)?;
        let others = ClientTls::from_ca_file(elsewhere.join("ca.pem"))?;
        let stranger = Client::connect(&soon(with(Some(&others), "opensesame"))).err();
        ensure!(matches!(stranger, Some(Error::NoAnswer(_))), "{stranger:?}");
        Ok(())
    });
}

/// Clients come and go; the last handle takes the thread and the connection along.
#[test]
fn a_client_that_is_dropped_is_gone() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        cluster.wait_for_leader()?;
        let client = Client::connect(&settings(cluster))?;
        client.set("a", "1")?;
        let other = Arc::new(client.clone());
        drop(client);
        other.set("a", "2")?;
        // At whichever replica it was served.
        let ended_at = |id| Ok(cluster.status(id)?.counters["client_connections_closed_by_client"]);
        let ended = || (0..3).map(ended_at).sum::<Result<u64>>();
        let before = ended()?;
        drop(other);
        cluster.wait_for("the connection to end", || Ok(ended()? > before))
    });
}

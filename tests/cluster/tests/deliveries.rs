//! Values for learners on real clusters: replicas die one after the other and all at once, a learner is slow,
//! one never checkpoints, one is at a replica that is cut off. Each learner is given each value once, and all
//! learners in the same order.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_client::deliver::{
    Begin, Deliveries, Instance, Learner, Recovered, Refusal, Values,
};
use quorumwire_client::{Client, Error, Outcome, Settings};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const SUBMITTERS: u64 = 3;
/// A learner checkpoints each time that it has had so many.
const CHECKPOINT_EVERY: usize = 50;
const VALUE_BYTES_MAX: usize = 64 << 10;

fn plan(values_mib: &'static str) -> Plan {
    Plan {
        options: vec![("learners", "1,2"), ("values-mib", values_mib)],
        ..Plan::new(3, Durability::Sync)
    }
}

fn settings(cluster: &Cluster<'_>) -> Settings {
    let address = |id| SocketAddr::to_string(&cluster.native(id));
    Settings {
        patience: Duration::from_millis(500),
        ..Settings::new(cluster.founders().map(address))
    }
}

/// A value that no other one equals: who submitted it and its number, then anything.
fn value(submitter: u64, number: u64, length: usize) -> Vec<u8> {
    let mut value = format!("{submitter}-{number};").into_bytes();
    value.resize(value.len() + length, b'x');
    value
}

/// What became of each value.
type Said = BTreeMap<Vec<u8>, Result<Instance, Outcome>>;

fn submit_until(values: &Values, submitter: u64, stop: &AtomicBool) -> Said {
    let mut random = ChaCha8Rng::seed_from_u64(submitter);
    let mut said = Said::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let length = match random.random_range(0..10) {
            0 => random.random_range(0..VALUE_BYTES_MAX),
            _ => random.random_range(0..300),
        };
        let value = value(submitter, number, length);
        let result = values.submit(&value).map_err(|error| error.outcome());
        said.insert(value, result);
    }
    said
}

/// What a learner was given.
type Given = Arc<Mutex<Vec<(Instance, Vec<u8>)>>>;

/// Takes what comes until told to stop, and checkpoints it. After each value it rests this long.
fn learn(
    values: &Values,
    learner: Learner,
    given: &Given,
    rest: Duration,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut deliveries = values.deliver_within(learner, Begin::AtCheckpoint, 256 << 10)?;
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let Some((instance, value)) = deliveries.next_within(Duration::from_millis(100))? else {
            continue;
        };
        given.lock().unwrap().push((instance, value));
        thread::sleep(rest);
        count += 1;
        if count % CHECKPOINT_EVERY == 0 {
            // Nobody leads for a while now and then.
            values.checkpoint(learner, instance).ok();
        }
    }
    Ok(())
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
    let end = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        ensure!(Instant::now() < end, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Each value that was decided stands there once, at its instance; others at most once.
fn judge(said: &Said, given: &[(Instance, Vec<u8>)]) -> Result<()> {
    let ascend = given.windows(2).all(|pair| pair[0].0 < pair[1].0);
    ensure!(ascend, "instances do not ascend");
    let mut at: BTreeMap<&[u8], Vec<Instance>> = BTreeMap::new();
    for (instance, value) in given {
        at.entry(value).or_default().push(*instance);
    }
    for (value, result) in said {
        let found = at.remove(&value[..]).unwrap_or_default();
        let is_so = match result {
            Ok(instance) => found == [*instance],
            Err(Outcome::CarriedOut) => found.len() == 1,
            Err(Outcome::NotCarriedOut) => found.is_empty(),
            Err(Outcome::Unknown) => found.len() <= 1,
        };
        let name = String::from_utf8_lossy(&value[..value.len().min(20)]);
        ensure!(is_so, "{name}: {result:?}, and it stands at {found:?}");
    }
    ensure!(at.is_empty(), "values that nobody submitted");
    Ok(())
}

fn break_everything(cluster: &mut Cluster<'_>) -> Result<()> {
    let pause = Duration::from_millis(700);
    for round in 0..2 {
        for id in cluster.founders() {
            thread::sleep(pause);
            cluster.kill(id)?;
            thread::sleep(pause);
            cluster.start(id)?;
            cluster.wait_for_leader()?;
        }
        thread::sleep(pause);
        cluster.kill_all()?;
        thread::sleep(pause);
        cluster.start_all()?;
        cluster
            .wait_for_leader()
            .with_context(|| format!("round {round}"))?;
    }
    thread::sleep(pause);
    Ok(())
}

#[test]
fn each_learner_is_given_each_value_once_and_in_one_order_whatever_dies() {
    run_started(plan("64"), |cluster| {
        let settings = settings(cluster);
        let values = Values::connect(&settings)?;
        wait_until("the learners are known", || {
            values.status().is_ok_and(|it| it.learners.len() == 2)
        })?;
        let (stop_submitting, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let given: [Given; 2] = [Given::default(), Given::default()];
        let said = thread::scope(|scope| -> Result<Said> {
            let submitters: Vec<_> = (0..SUBMITTERS)
                .map(|it| {
                    scope.spawn({
                        let (values, stop) = (values.clone(), &stop_submitting);
                        move || submit_until(&values, it, stop)
                    })
                })
                .collect();
            let rests = [Duration::ZERO, Duration::from_millis(1)];
            let learners: Vec<_> = [1, 2]
                .into_iter()
                .zip(&given)
                .zip(rests)
                .map(|((learner, given), rest)| {
                    let (settings, stop) = (settings.clone(), &stop);
                    scope.spawn(move || {
                        let values = Values::connect(&settings)?;
                        learn(&values, learner, given, rest, stop)
                    })
                })
                .collect();
            let broke = break_everything(cluster);
            stop_submitting.store(true, Ordering::Relaxed);
            let mut said = Said::new();
            for submitter in submitters {
                said.append(&mut submitter.join().expect("it does not panic"));
            }
            let last = said.values().filter_map(|it| it.as_ref().ok()).max();
            let last = *last.context("some value was decided")?;
            let has_all = |given: &Given| {
                given
                    .lock()
                    .unwrap()
                    .last()
                    .is_some_and(|(instance, _)| *instance >= last)
            };
            let arrived = wait_until("both learners have all", || given.iter().all(has_all));
            stop.store(true, Ordering::Relaxed);
            for learner in learners {
                learner.join().expect("it does not panic")?;
            }
            broke.and(arrived)?;
            Ok(said)
        })?;
        let given = given.map(|it| it.lock().unwrap().clone());
        judge(&said, &given[0])?;
        // A value of which nobody heard may come behind the last one that was waited for.
        let both = given[0].len().min(given[1].len());
        ensure!(given[0][..both] == given[1][..both], "the learners differ");
        judge(&said, &given[1])?;
        let decided = said.values().filter(|it| it.is_ok()).count();
        ensure!(decided > 200, "only {decided} values were decided");
        look_back(&values, &given[0])
    });
}

/// What is kept and what is trimmed is said apart, and a learner goes on behind its checkpoint.
fn look_back(values: &Values, given: &[(Instance, Vec<u8>)]) -> Result<()> {
    let (last, value) = given.last().context("something was given")?;
    ensure!(values.recover(*last)? == Recovered::Decided(value.clone()));
    for learner in [1, 2] {
        values.checkpoint(learner, *last - 1)?;
    }
    let status = values.status()?;
    ensure!(status.trimmed == last - 1, "{status:?}");
    ensure!(values.recover(1)? == Recovered::Trimmed(last - 1));
    let Recovered::NotDecided(decided) = values.recover(u64::MAX)? else {
        bail!("the last instance there can be is decided");
    };
    ensure!(decided >= *last);
    let refused = values.deliver(1, Begin::At(1)).err();
    ensure!(
        refused == Some(Error::Trimmed { upto: last - 1 }),
        "{refused:?}"
    );
    let refused = values.deliver(9, Begin::AtCheckpoint).err();
    ensure!(refused == Some(Error::Refused(Refusal::UnknownLearner(9))));
    let mut again = values.deliver(1, Begin::AtCheckpoint)?;
    let next = again.next_within(Duration::from_secs(10))?;
    ensure!(next == Some((*last, value.clone())), "{next:?}");
    Ok(())
}

#[test]
fn values_are_refused_with_the_name_of_the_learner_that_never_checkpoints() {
    run_started(plan("4"), |cluster| {
        let values = Values::connect(&settings(cluster))?;
        wait_until("the learners are known", || {
            values.status().is_ok_and(|it| it.learners.len() == 2)
        })?;
        let mut diligent = values.deliver(1, Begin::AtCheckpoint)?;
        // Takes nothing, and so gets what it has room for and no more.
        let idle = values.deliver_within(2, Begin::AtCheckpoint, 100_000)?;
        let large = vec![7; VALUE_BYTES_MAX];
        let refused = loop {
            match values.submit(&large) {
                Ok(instance) => {
                    let next = diligent.next_within(Duration::from_secs(10))?;
                    ensure!(next == Some((instance, large.clone())), "another value");
                    values.checkpoint(1, instance)?;
                }
                Err(refused) => break refused,
            }
        };
        let Error::Refused(Refusal::Full { behind, .. }) = refused else {
            bail!("refused otherwise: {refused}");
        };
        ensure!(behind == Some((2, 0)), "{refused}");
        ensure!(refused.to_string().contains("learner 2 "), "{refused}");
        ensure!(idle.counters().values == 2, "{:?}", idle.counters());
        let leader = cluster.wait_for_leader()?;
        let faults = cluster.status(leader)?.faults;
        ensure!(
            faults
                .iter()
                .any(|it| it.contains("learner 2 is furthest behind")),
            "{faults:?}"
        );
        // The refusal is part of what is replicated: all are as full.
        cluster.kill_all()?;
        cluster.start_all()?;
        cluster.wait_for_leader()?;
        ensure!(values.submit(&large) == Err(refused));
        let last = values.status()?.last;
        values.checkpoint(2, last)?;
        values.submit(&large)?;
        let too_long = values.submit(&vec![0; (1 << 20) + 1]).err();
        let max = 1 << 20;
        ensure!(
            too_long
                == Some(Error::TooLong {
                    bytes: max + 1,
                    max
                })
        );
        let longest = vec![1; max];
        let instance = values.submit(&longest)?;
        ensure!(values.recover(instance)? == Recovered::Decided(longest));
        // An operator gives up on both.
        ensure!(values.declare_lost(instance)? == instance);
        ensure!(values.recover(instance)? == Recovered::Trimmed(instance));
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

/// A learner that is gone for good would keep all values for ever.
#[test]
fn what_only_one_learner_lacks_is_declared_lost_and_the_others_lose_nothing() {
    run_started(plan("4"), |cluster| {
        let values = Values::connect(&settings(cluster))?;
        wait_until("the learners are known", || {
            values.status().is_ok_and(|it| it.learners.len() == 2)
        })?;
        let large = vec![7; VALUE_BYTES_MAX];
        let first = values.submit(&large)?;
        let mut gone = values.deliver(2, Begin::AtCheckpoint)?;
        ensure!(next(&mut gone)? == first);
        drop(gone);
        let mut decided = vec![first];
        let refused = loop {
            match values.submit(&large) {
                Ok(instance) => decided.push(instance),
                Err(refused) => break refused,
            }
        };
        let text = refused.to_string();
        ensure!(text.contains("learner 1 has checkpointed none"), "{text}");
        // All but the last two.
        let kept = decided.len() - 2;
        let checkpoint = decided[kept - 1];
        values.checkpoint(1, checkpoint)?;
        let refused = values.submit(&large).map_err(|it| it.to_string());
        let names = |it: &String| it.contains("learner 2 has checkpointed none");
        ensure!(refused.as_ref().is_err_and(names), "{refused:?}");

        let address = cluster.http(cluster.wait_for_leader()?).to_string();
        let declare = |learner: &str, rest: &[&str]| {
            let words = [
                "values",
                "declare-lost",
                "--addr",
                &address,
                "--learner",
                learner,
            ];
            cluster.command(&[&words[..], rest].concat())
        };
        let refused = declare("1", &["--yes"]).err().context("it frees nothing")?;
        let text = format!("{refused:#}");
        ensure!(
            text.contains("nothing is kept for learner 1 only"),
            "{text}"
        );
        let refused = declare("2", &[]).err().context("nobody was asked")?;
        let text = format!("{refused:#}");
        ensure!(
            text.contains("learner 2 has not checkpointed all"),
            "{text}"
        );
        ensure!(values.status()?.kept == decided.len() as u64);
        let said = declare("2", &["--yes"])?;
        let expected = format!("values up to instance {checkpoint} are lost\n");
        ensure!(said == expected, "{said}");
        let listed = cluster.command(&["values", "list", "--addr", &address])?;
        ensure!(listed.contains("2 values are kept"), "{listed}");
        ensure!(
            listed.contains(&format!("all up to {checkpoint} are")),
            "{listed}"
        );

        // There is room again, and nobody but the one that was gone has lost anything.
        decided.push(values.submit(&large)?);
        let mut diligent = values.deliver(1, Begin::AtCheckpoint)?;
        let late = values.deliver(2, Begin::At(first + 1)).err();
        ensure!(
            late == Some(Error::Trimmed { upto: checkpoint }),
            "{late:?}"
        );
        let mut late = values.deliver(2, Begin::AtCheckpoint)?;
        for instance in &decided[kept..] {
            ensure!(next(&mut diligent)? == *instance);
            ensure!(next(&mut late)? == *instance);
        }
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

fn next(deliveries: &mut Deliveries) -> Result<Instance> {
    let next = deliveries.next_within(Duration::from_secs(20))?;
    Ok(next.context("no value came")?.0)
}

/// It would wait there for ever, since what it is connected to lives and answers.
#[test]
fn a_learner_leaves_a_replica_that_is_cut_off_from_the_others() {
    run_started(plan("64"), |cluster| {
        let settings = settings(cluster);
        let values = Values::connect(&settings)?;
        wait_until("the learners are known", || {
            values.status().is_ok_and(|it| it.learners.len() == 2)
        })?;
        let begin = values.status()?.last + 1;
        let first = values.submit(b"one")?;
        let leader = cluster.wait_for_leader()?;
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        // One that is at a follower.
        let (mut deliveries, at) = loop {
            let begin = Begin::At(begin);
            let seeded = Settings {
                seed: Some(random.random()),
                ..settings.clone()
            };
            let values = Values::connect(&seeded)?;
            let given_by = |id| {
                cluster
                    .status(id)
                    .map(|it| it.counters["client_port_values"])
            };
            let before = [given_by(0)?, given_by(1)?, given_by(2)?];
            let mut deliveries = values.deliver(1, begin)?;
            ensure!(next(&mut deliveries)? == first);
            let mut gave = None;
            for id in cluster.founders() {
                if given_by(id)? > before[usize::from(id)] {
                    gave = Some(id);
                }
            }
            let gave = gave.context("somebody gave it")?;
            if gave != leader {
                break (deliveries, gave);
            }
        };
        cluster.network().isolate(at)?;
        let second = values.submit(b"two")?;
        ensure!(next(&mut deliveries)? == second);
        cluster.network().heal()?;
        let third = values.submit(b"three")?;
        ensure!(next(&mut deliveries)? == third);
        Ok(())
    });
}

#[test]
fn a_store_keeps_no_values_and_values_are_no_store() {
    run_started(Plan::new(1, Durability::Sync), |cluster| {
        let values = Values::connect(&settings(cluster))?;
        let refused = values.deliver(1, Begin::AtCheckpoint).err();
        let text = refused.context("a store kept values")?.to_string();
        ensure!(text.contains("not") || text.contains("no "), "{text}");
        let address = cluster.http(0).to_string();
        let list = ["values", "list", "--addr", &address];
        let refused = cluster
            .command(&list)
            .err()
            .context("a store lists values")?;
        let text = format!("{refused:#}");
        ensure!(text.contains("keep no values for learners"), "{text}");
        Ok(())
    });
    run_started(plan("64"), |cluster| {
        let client = Client::connect(&settings(cluster))?;
        ensure!(client.set("key", "value").is_err());
        Ok(())
    });
}

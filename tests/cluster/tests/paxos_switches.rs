//! A Paxos deployment of real processes, on loopback and in the kernels of machines: each coordinator and
//! each acceptor is killed and comes back, and at the end all acceptors at once. Each value that a member was
//! told is decided comes to both learners once, in one order.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::deployment::{ACCEPTORS, DEADLINE, Deployment};
use quorumwire_cluster_tests::network::Network;
use quorumwire_cluster_tests::waiting::wait_within;
use quorumwire_paxos_process::{Instance, Member, MemberError, SwitchReport};
use rustix::process::Signal;
use serde_json::json;

/// A learner checkpoints each time that it has had so many values.
const CHECKPOINT_EVERY: usize = 40;
/// Values that each member has to have decided between two kills.
const VALUES_BETWEEN_KILLS: u64 = 60;

/// Submits until it is told to stop, and counts; which value has which instance.
fn submit(
    member: &Member,
    number: u8,
    count: &AtomicU64,
    stop: &AtomicBool,
) -> Result<BTreeMap<Vec<u8>, Instance>, MemberError> {
    let mut said = BTreeMap::new();
    for value in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut bytes = format!("{number}-{value};").into_bytes();
        if value.is_multiple_of(16) {
            bytes.resize(5000, b'x'); // in pieces
        }
        let instance = member.submit(&bytes)?;
        said.insert(bytes, instance);
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(said)
}

/// Takes all until nothing more comes after it was told to stop.
fn learn(member: &Member, stop: &AtomicBool) -> Result<Vec<(Instance, Vec<u8>)>, MemberError> {
    let mut taken: Vec<(Instance, Vec<u8>)> = Vec::new();
    loop {
        let was_told = stop.load(Ordering::Relaxed);
        match member.next_within(Duration::from_millis(500))? {
            Some(next) => taken.push(next),
            None if was_told => return Ok(taken),
            None => continue,
        }
        if taken.len().is_multiple_of(CHECKPOINT_EVERY)
            && let Some((upto, _)) = taken.last()
        {
            member.checkpoint(*upto)?;
        }
    }
}

#[test]
fn whoever_is_killed_no_value_is_lost_and_none_comes_twice() -> Result<()> {
    no_value_is_lost(Deployment::new("switches", 2)?, Remembers::Votes)
}

/// In the kernel's receive path, on a machine each; acceptors in memory.
#[test]
fn no_value_is_lost_by_switches_in_the_kernel() -> Result<()> {
    let network = Network::new(7)?;
    let options = ["--plane", "xdp", "--durability", "memory"];
    let deployment = Deployment::across(&network, "in-kernel", &options)?;
    no_value_is_lost(deployment, Remembers::Nothing)
}

/// The same with acceptors that have their votes on disk before they say them.
#[test]
fn no_value_is_lost_by_durable_switches_in_the_kernel() -> Result<()> {
    let network = Network::new(7)?;
    let deployment = Deployment::across(&network, "in-kernel-sync", &["--plane", "xdp"])?;
    no_value_is_lost(deployment, Remembers::Votes)
}

/// What `quorumwire bench --deployment` measures, and what it says where nothing is decided.
#[test]
fn a_load_of_values_is_measured() -> Result<()> {
    let mut deployment = Deployment::new("measured", 1)?;
    deployment.start_all()?;
    for (words, operations) in [
        (&["--operations", "300", "--in-flight", "1"][..], 300),
        (&["--operations", "50", "--value-bytes", "5000"], 50),
        (&["--rate", "200", "--seconds", "1", "--survive"], 200),
    ] {
        let (code, measured, said) = deployment.load(words)?;
        ensure!(code == Some(0), "{words:?}: {said}");
        let is_all = measured["operations"] == operations && measured["errors"] == json!({});
        let took = &measured["latency_us"]["p50"];
        ensure!(is_all && took.as_f64() > Some(1.0), "{words:?}: {measured}");
        let has_gap = measured["longest_gap"]["ms"].as_f64() > Some(0.0);
        ensure!(has_gap == words.contains(&"--survive"), "{measured}");
    }
    for (words, part) in [
        (
            &["--learner", "1"][..],
            "learner (from flag): \"1\" is refused; allowed: 0 to 0",
        ),
        (&["--in-flight", "200"], "at most 1024 in all"),
        (&["--protocol", "redis"], "cannot be used with '--protocol"),
    ] {
        let (code, _, said) = deployment.load(words)?;
        ensure!(code == Some(2) && said.contains(part), "{words:?}: {said}");
    }
    for number in 0..2 {
        deployment.kill(("coordinator", number))?;
    }
    let (code, _, said) = deployment.load(&["--seconds", "1", "--in-flight", "1"])?;
    for part in [
        "waiting for a first value to be decided; the coordinator's log says",
        "no answer in time",
    ] {
        ensure!(code == Some(1) && said.contains(part), "{said}");
    }
    let through_anything = ["--rate", "100", "--seconds", "1", "--survive"];
    let (code, measured, said) = deployment.load(&through_anything)?;
    let is_said = said.contains("not decided in time");
    ensure!(code == Some(1) && is_said, "{said}");
    ensure!(measured["operations"] == 0, "{measured}");
    Ok(())
}

/// What of an acceptor outlives its process.
#[derive(Clone, Copy, PartialEq)]
enum Remembers {
    Votes,
    Nothing,
}

fn no_value_is_lost(mut deployment: Deployment<'_>, remembers: Remembers) -> Result<()> {
    deployment.start_all()?;
    under_load(&mut deployment, |deployment, both_go_on| {
        both_go_on()?;
        let each = [
            ("coordinator", 0),
            ("acceptor", 0),
            ("acceptor", 1),
            ("coordinator", 1),
            ("acceptor", 2),
        ];
        for switch in each {
            deployment.kill(switch)?;
            both_go_on().with_context(|| format!("{switch:?} is dead"))?;
            deployment.start(switch)?;
            if switch.0 == "acceptor" && remembers == Remembers::Nothing {
                wait_within("an acceptor that is let in", DEADLINE, || {
                    Ok(deployment.log(switch)?.contains("was let in"))
                })?;
                // Learners have all that it does not count for.
                both_go_on()?;
            }
            both_go_on().with_context(|| format!("{switch:?} is back"))?;
        }
        if remembers == Remembers::Nothing {
            return Ok(());
        }
        for number in 0..ACCEPTORS {
            deployment.kill(("acceptor", number))?;
        }
        for number in 0..ACCEPTORS {
            deployment.start(("acceptor", number))?;
        }
        both_go_on().context("all acceptors are back")
    })?;
    Ok(())
}

/// Of five any three suffice. Of the three that the next coordinator can ask, only one has voted for what was
/// decided last; a learner that comes late is given the same as the others.
#[test]
fn of_five_acceptors_any_two_may_be_gone() -> Result<()> {
    let deployment = Deployment::of_acceptors("five", 5, 3)?;
    // The late learner checkpoints nothing: all values have to fit.
    let mut deployment = deployment.with_window(16384)?;
    deployment.start_all()?;
    let learned = under_load(&mut deployment, |deployment, both_go_on| {
        both_go_on()?;
        for (first, second) in [([0, 1], [2, 3]), ([2, 4], [0, 1])] {
            let [first, second] = [first, second].map(|it| it.map(|it| ("acceptor", it)));
            let coordinators = [0, 1].map(|number| ("coordinator", number));
            let kill = |deployment: &mut Deployment<'_>, all: [_; 2]| {
                all.into_iter().try_for_each(|it| deployment.kill(it))
            };
            let start = |deployment: &mut Deployment<'_>, all: [_; 2]| {
                all.into_iter().try_for_each(|it| deployment.start(it))
            };
            kill(deployment, first)?;
            both_go_on().with_context(|| format!("{first:?} are dead"))?;
            kill(deployment, coordinators)?;
            start(deployment, first)?;
            kill(deployment, second)?;
            start(deployment, coordinators)?;
            both_go_on().with_context(|| format!("{first:?} are back, {second:?} are dead"))?;
            start(deployment, second)?;
            both_go_on().with_context(|| format!("{second:?} are back"))?;
        }
        Ok(())
    })?;
    let late = deployment.member(2)?;
    for expected in &learned {
        let given = late.next_within(DEADLINE)?;
        ensure!(given.as_ref() == Some(expected), "{}", expected.0);
    }
    Ok(())
}

/// The first coordinator is a program in the kernel, its backup a process: values go by the one, by the other
/// while that is gone, and by the first again, because an operator says so, or because the backup dies.
#[test]
fn no_value_is_lost_between_a_device_and_its_backup_in_software() -> Result<()> {
    let network = Network::new(7)?;
    let options = ["--listen-http", "127.0.0.1:0", "--durability", "memory"];
    let (device, software) = (("coordinator", 0), ("coordinator", 1));
    let mut deployment = Deployment::across(&network, "device", &options)?.patient()?;
    for number in 0..ACCEPTORS {
        deployment = deployment.told_one(("acceptor", number), &["--plane", "xdp"]);
    }
    deployment = deployment.told_one(device, &["--plane", "xdp"]);
    deployment = deployment.told_one(software, &["--plane", "socket"]);
    deployment.start_all()?;
    // It may have been there before the device, which then waits.
    deployment.kill(software)?;
    under_load(&mut deployment, |deployment, both_go_on| {
        must_lead(deployment, device)?;
        deployment.start(software)?;
        must_follow(deployment, software, device)?;
        both_go_on()?;
        for by_operator in [true, false] {
            deployment.kill(device)?;
            must_lead(deployment, software)?;
            both_go_on().context("the device is dead")?;
            deployment.start(device)?;
            must_follow(deployment, device, software)?;
            if by_operator {
                deployment.signal(device, Signal::USR1)?;
            } else {
                deployment.kill(software)?;
            }
            must_lead(deployment, device)?;
            both_go_on().context("the device leads again")?;
            if !by_operator {
                deployment.start(software)?;
            }
            must_follow(deployment, software, device)?;
        }
        both_go_on()
    })?;
    Ok(())
}

/// Waits until it coordinates, as a program in the kernel if it is the first one, and has given values their
/// instances.
fn must_lead(deployment: &Deployment<'_>, switch: (&'static str, usize)) -> Result<()> {
    let (plane, state, counts) = match switch.1 {
        0 => ("xdp", "engaged", "plane_instances_assigned"),
        _ => ("socket", "process", "switch_values_assigned"),
    };
    let leads = |it: &SwitchReport| {
        let is_such = it.plane.name == plane && it.plane.state == state;
        it.coordinates && is_such && it.counters.get(counts) > Some(&0)
    };
    deployment.wait_until(switch, "one that coordinates", leads)?;
    Ok(())
}

fn must_follow(
    deployment: &Deployment<'_>,
    switch: (&'static str, usize),
    leader: (&'static str, usize),
) -> Result<()> {
    deployment.wait_until(switch, "a backup that knows who leads", |it| {
        it.state == "backup" && it.coordinator.map(usize::from) == Some(leader.1)
    })?;
    Ok(())
}

/// Two members submit and learn while `strike` does something to the deployment; it is given what waits until
/// both have had more decided. Both learn the same, each value once, and whatever they were told is decided:
/// what they have learned.
fn under_load<'n>(
    deployment: &mut Deployment<'n>,
    strike: impl FnOnce(&mut Deployment<'n>, &dyn Fn() -> Result<()>) -> Result<()>,
) -> Result<Vec<(Instance, Vec<u8>)>> {
    let members = [deployment.member(0)?, deployment.member(1)?];
    let counts = [const { AtomicU64::new(0) }; 2];
    let (stop, stop_learning) = (AtomicBool::new(false), AtomicBool::new(false));
    let (said, learned) = thread::scope(|scope| -> Result<_> {
        let learning: Vec<_> = members
            .iter()
            .map(|member| scope.spawn(|| learn(member, &stop_learning)))
            .collect();
        let submitting: Vec<_> = (0_u8..)
            .zip(members.iter().zip(&counts))
            .map(|(number, (member, count))| {
                let stop = &stop;
                scope.spawn(move || submit(member, number, count, stop))
            })
            .collect();
        let both_go_on = || {
            let before = [0, 1].map(|it: usize| counts[it].load(Ordering::Relaxed));
            wait_within("values decided by both", DEADLINE, || {
                Ok((0..2).all(|it| {
                    counts[it].load(Ordering::Relaxed) >= before[it] + VALUES_BETWEEN_KILLS
                }))
            })
        };
        let struck = strike(deployment, &both_go_on);
        stop.store(true, Ordering::Relaxed);
        let said: Vec<_> = submitting
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        stop_learning.store(true, Ordering::Relaxed);
        let learned: Vec<_> = learning
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        struck?;
        Ok((said, learned))
    })?;
    let mut learners = Vec::new();
    for one in learned {
        learners.push(one.expect("no panic")?);
    }
    ensure!(learners[0] == learners[1], "two orders");
    let mut instances = BTreeMap::new();
    for (instance, value) in &learners[0] {
        let earlier = instances.insert(value.clone(), *instance);
        ensure!(earlier.is_none(), "a value came twice");
    }
    for one in said {
        for (value, instance) in one.expect("no panic")? {
            let found = instances.get(&value);
            ensure!(found == Some(&instance), "{instance}, and {found:?}");
        }
    }
    println!("{} values", instances.len());
    Ok(learners.swap_remove(0))
}

#[test]
fn what_makes_no_sense_is_refused_by_name() -> Result<()> {
    let deployment = Deployment::new("refused", 1)?;
    let file = deployment.path("deployment.toml");
    let nowhere = deployment.path("nowhere");
    let with = |role: &str, more: &[&str]| {
        let words = ["switch", "--role", role, "--deployment", &file];
        let words = words.iter().chain(more).map(|word| match *word {
            "DIR" => nowhere.clone(),
            other => other.to_owned(),
        });
        words.collect::<Vec<_>>()
    };
    let run = |words: &[String]| {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        deployment.run(&words)
    };
    for (words, code, part) in [
        (
            with("acceptor", &["--number", "3", "--dir", "DIR"]),
            2,
            "allowed: 0 to 2",
        ),
        (
            with("coordinator", &["--number", "2"]),
            2,
            "allowed: 0 to 1",
        ),
        (with("acceptor", &["--number", "0"]), 2, "needs a folder"),
        (
            with("leader", &["--number", "0"]),
            2,
            "[possible values: coordinator, acceptor]",
        ),
        (
            with("coordinator", &["--number", "0", "--plane", "p4"]),
            2,
            "[possible values: socket, xdp]",
        ),
        (
            with("acceptor", &["--number", "0", "--dir", "DIR"]),
            1,
            &nowhere[..],
        ),
    ] {
        let (found, said) = run(&words)?;
        let is_expected = found == Some(code) && said.contains(part);
        ensure!(is_expected, "{words:?}: {found:?}: {said}");
    }
    fs::write(&file, "name = \"test\"")?;
    let (code, said) = run(&with("coordinator", &["--number", "0"]))?;
    ensure!(code == Some(2) && said.contains("coordinators"), "{said}");
    Ok(())
}

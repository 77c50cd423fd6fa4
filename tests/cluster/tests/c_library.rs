//! libquorumwire as a program finds it once it is installed: the example in C and a program in C++ against a
//! real cluster whose replicas are killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::c_programs::{
    self, client_file, install, lines, member_file, start, succeed,
};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::deployment::Deployment;
use quorumwire_cluster_tests::waiting::wait_within;

const VALUES: usize = 2000;
/// Values whose fate is known between two kills of switches.
const BETWEEN_KILLS: usize = 50;
/// What is submitted last.
const END: &str = "the end";
const DEADLINE: Duration = Duration::from_mins(2);

fn compile(prefix: &Path, compiler: &[&str], source: &str, name: &str) -> Result<PathBuf> {
    c_programs::compile(prefix, "quorumwire", compiler, source, name)
}

fn kill_replicas(cluster: &mut Cluster<'_>, until: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + DEADLINE;
    let mut round = 0;
    while !until()? {
        ensure!(Instant::now() < end, "it takes too long");
        thread::sleep(Duration::from_millis(300));
        if round % 3 == 2 {
            cluster.kill_all()?;
            cluster.start_all()?;
        } else {
            let leader = cluster.wait_for_leader()?;
            cluster.kill(leader)?;
            cluster.wait_for_leader_other_than(leader)?;
            cluster.start(leader)?;
        }
        cluster.wait_for_leader()?;
        round += 1;
    }
    ensure!(round >= 2, "nobody was killed meanwhile");
    Ok(())
}

/// What was decided stands there once, in the order of the instances; others at most once.
fn judge(submitted: &str, learned: &[String]) -> Result<()> {
    let mut at: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, line) in learned.iter().enumerate() {
        if let Some((number, _)) = line.split_once(';') {
            at.entry(number.parse()?).or_default().push(place);
        }
    }
    let (mut decided, mut count) = (Vec::new(), 0);
    for line in submitted.lines() {
        let words: Vec<i64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [number, error, instance] = words[..] else {
            anyhow::bail!("{line}");
        };
        count += 1;
        let found = at.remove(&number.try_into()?).unwrap_or_default();
        if error == 0 {
            ensure!(found.len() == 1, "{line}: it was learned at {found:?}");
            decided.push((instance, found[0]));
        } else {
            ensure!(found.len() <= 1, "{line}: it was learned at {found:?}");
        }
    }
    ensure!(
        count == VALUES && decided.len() > VALUES / 2,
        "{} of {count}",
        decided.len()
    );
    decided.sort_unstable();
    ensure!(
        decided.windows(2).all(|it| it[0].1 < it[1].1),
        "another order"
    );
    Ok(())
}

fn with_learners() -> Plan {
    Plan {
        options: vec![("learners", "1,2")],
        ..Plan::new(3, Durability::Sync)
    }
}

#[test]
fn a_program_in_c_declares_values_lost_and_begins_behind_them() {
    run_started(with_learners(), |cluster| {
        let prefix = cluster.scratch_file("prefix");
        install(&prefix)?;
        let source = "tests/cluster/tests/c_library/lost.c";
        let program = compile(&prefix, &["cc", "-std=c99"], source, "lost")?;
        let said = succeed(Command::new(program).arg(client_file(cluster)?))?;
        ensure!(said == "it goes on\n", "{said}");
        Ok(())
    });
}

#[test]
fn programs_in_c_and_cpp_submit_and_learn_while_replicas_are_killed() {
    run_started(with_learners(), |cluster| {
        let prefix = cluster.scratch_file("prefix");
        install(&prefix)?;
        let learner = compile(
            &prefix,
            &["cc", "-std=c99"],
            "docs/examples/c/learner.c",
            "learner",
        )?;
        let source = "tests/cluster/tests/c_library/submitter.cpp";
        let submitter = compile(&prefix, &["c++", "-std=c++11"], source, "submitter")?;
        let configuration = client_file(cluster)?;
        let configuration = configuration.to_str().context("a path")?;
        let said = |name: &str| cluster.scratch_file(name);
        let (first, second, results) = (said("first"), said("second"), said("results"));
        let learn = |number, said: &Path| {
            let arguments = [configuration, "learn", number, "1000000"];
            start(&learner, &arguments, said)
        };
        let _first = learn("1", &first)?;
        let _second = learn("2", &second)?;
        let arguments = [configuration, &VALUES.to_string(), "1"];
        let mut submits = start(&submitter, &arguments, &results)?;
        let mut code = None;
        kill_replicas(cluster, &mut || {
            code = submits.0.try_wait()?;
            Ok(code.is_some())
        })?;
        let text = fs::read_to_string(&results)?;
        let has_ended_well = code.is_some_and(|it| it.success());
        ensure!(
            has_ended_well,
            "{}",
            text.lines().next_back().unwrap_or_default()
        );
        let last = succeed(Command::new(&learner).args([configuration, "submit", END]))?;
        ensure!(last.starts_with("the end has instance "), "{last}");
        cluster.wait_for("both learners to have all", || {
            for said in [&first, &second] {
                if lines(said)?.last().is_none_or(|it| it != END) {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        let both = [lines(&first)?, lines(&second)?].map(|lines| {
            let values = lines.into_iter().filter(|it| !it.starts_with("checkpoint"));
            values.collect::<Vec<_>>()
        });
        ensure!(both[0] == both[1], "the learners differ");
        judge(&text, &both[0])
    });
}

#[test]
fn the_same_programs_submit_and_learn_while_switches_are_killed() -> Result<()> {
    let mut deployment = Deployment::new("c-switches", 3)?;
    let prefix = PathBuf::from(deployment.path("prefix"));
    install(&prefix)?;
    let cc = ["cc", "-std=c99"];
    let learner = compile(&prefix, &cc, "docs/examples/c/learner.c", "learner")?;
    let source = "tests/cluster/tests/c_library/submitter.cpp";
    let submitter = compile(&prefix, &["c++", "-std=c++11"], source, "submitter")?;
    deployment.start_all()?;
    let said = ["0", "1"].map(|number| PathBuf::from(deployment.path(&format!("said-{number}"))));
    let mut learners = Vec::new();
    for (number, said) in said.iter().enumerate() {
        let file = member_file(&deployment, number, &format!("learner-{number}"), "")?;
        let arguments = [&file, "learn", &number.to_string(), "1000000"];
        learners.push(start(&learner, &arguments, said)?);
    }
    let results = PathBuf::from(deployment.path("results"));
    let file = member_file(
        &deployment,
        2,
        "learner-2",
        "only_submits = true\ndeadline_ms = 60000\n",
    )?;
    let arguments = [&file, &VALUES.to_string(), "2"];
    let mut submits = start(&submitter, &arguments, &results)?;
    let roles = ["coordinator", "acceptor", "acceptor"];
    let mut killed = 0;
    let code = loop {
        let before = lines(&results)?.len();
        let mut code = None;
        wait_within("more values", DEADLINE, || {
            code = submits.0.try_wait()?;
            Ok(code.is_some() || lines(&results)?.len() > before + BETWEEN_KILLS)
        })?;
        if let Some(code) = code {
            break code;
        }
        let switch = (roles[killed % 3], killed % 2);
        deployment.kill(switch)?;
        thread::sleep(Duration::from_millis(50));
        deployment.start(switch)?;
        killed += 1;
    };
    let text = fs::read_to_string(&results)?;
    let last = text.lines().next_back().unwrap_or_default();
    ensure!(code.success() && killed >= 2, "{killed} killed: {last}");
    let ended = succeed(Command::new(&learner).args([&file[..], "submit", END]))?;
    ensure!(ended.starts_with("the end has instance "), "{ended}");
    for said in &said {
        wait_within("a learner to have all", DEADLINE, || {
            Ok(lines(said)?.last().is_some_and(|it| it == END))
        })?;
    }
    let both = [lines(&said[0])?, lines(&said[1])?];
    ensure!(both[0] == both[1], "the learners differ");
    judge(&text, &both[0])
}

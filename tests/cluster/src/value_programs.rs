//! Programs that submit values and learn them, on a library that is installed for a test: they are started
//! beside it, replicas or switches are killed meanwhile, and what the programs printed is judged.
//!
//! One that submits prints a line for each value: its number, its error or 0, and its instance. A value
//! begins with its number and a semicolon. One that learns prints a line for each value.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::c_programs::{Program, lines};
use crate::cluster::{Cluster, Durability, Plan};
use crate::deployment::Deployment;
use crate::waiting::wait_within;

/// Values whose fate is known between two kills.
const BETWEEN_KILLS: usize = 50;
/// Whatever is waited for comes within this time.
pub const DEADLINE: Duration = Duration::from_mins(2);

fn must_have_ended_well(code: ExitStatus, said: &Path) -> Result<()> {
    let text = fs::read_to_string(said)?;
    let last = text.lines().next_back().unwrap_or_default();
    ensure!(code.success(), "{last}");
    Ok(())
}

/// Strikes until this program has ended, whenever it has printed more; twice at least.
fn strike_while(
    until: &mut Program,
    said: &Path,
    mut strike: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let mut round = 0;
    let code = loop {
        let before = lines(said)?.len();
        let mut code = None;
        wait_within("more values", DEADLINE, || {
            code = until.0.try_wait()?;
            Ok(code.is_some() || lines(said)?.len() > before + BETWEEN_KILLS)
        })?;
        if let Some(code) = code {
            break code;
        }
        strike(round)?;
        round += 1;
    };
    must_have_ended_well(code, said)?;
    ensure!(round >= 2, "{round} were killed meanwhile");
    Ok(())
}

/// Kills the leader, or all replicas, until this program has ended.
pub fn kill_replicas(cluster: &mut Cluster<'_>, until: &mut Program, said: &Path) -> Result<()> {
    strike_while(until, said, |round| {
        if round % 3 == 2 {
            cluster.kill_all()?;
            cluster.start_all()?;
        } else {
            let leader = cluster.wait_for_leader()?;
            cluster.kill(leader)?;
            cluster.wait_for_leader_other_than(leader)?;
            cluster.start(leader)?;
        }
        cluster.wait_for_leader().map(drop)
    })
}

/// Kills one switch after the other until this program has ended.
pub fn kill_switches(
    deployment: &mut Deployment<'_>,
    until: &mut Program,
    said: &Path,
) -> Result<()> {
    let roles = ["coordinator", "acceptor", "acceptor"];
    strike_while(until, said, |round| {
        let switch = (roles[round % 3], round % 2);
        deployment.kill(switch)?;
        thread::sleep(Duration::from_millis(50));
        deployment.start(switch)
    })
}

/// What was decided was learned once, in the order of the instances; others at most once.
pub fn judge(submitted: &[String], count: usize, learned: &[String]) -> Result<()> {
    let mut at: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, line) in learned.iter().enumerate() {
        if let Some((number, _)) = line.split_once(';') {
            at.entry(number.parse()?).or_default().push(place);
        }
    }
    let mut decided = Vec::new();
    for line in submitted {
        let words: Vec<i64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [number, error, instance] = words[..] else {
            anyhow::bail!("{line}");
        };
        let found = at.remove(&number.try_into()?).unwrap_or_default();
        if error == 0 {
            ensure!(found.len() == 1, "{line}: it was learned at {found:?}");
            decided.push((instance, found[0]));
        } else {
            ensure!(found.len() <= 1, "{line}: it was learned at {found:?}");
        }
    }
    ensure!(
        submitted.len() == count && decided.len() > count / 2,
        "{} of {}",
        decided.len(),
        submitted.len()
    );
    decided.sort_unstable();
    ensure!(
        decided.windows(2).all(|it| it[0].1 < it[1].1),
        "another order"
    );
    Ok(())
}

/// A group of three for the learners 1 and 2.
#[must_use]
pub fn with_learners() -> Plan {
    Plan {
        options: vec![("learners", "1,2")],
        ..Plan::new(3, Durability::Sync)
    }
}

//! `quorumwire top` in a terminal, against a real cluster under load.

use std::time::Duration;

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::terminal::Terminal;
use quorumwire_cluster_tests::workload::{Load, Running};
use rustix::process::Signal;

/// What the screen may take to show what has happened. A tick is a second; two cores that others use, too,
/// may be slow.
const SHOWN_WITHIN: Duration = Duration::from_secs(30);
/// Lines and columns.
const SIZE: (u16, u16) = (30, 132);
/// Of the first table, on a screen of that size.
const COLUMNS: usize = 13;
const SMALL: (u16, u16) = (12, 60);

fn top(cluster: &Cluster<'_>, id: u16) -> Result<Terminal> {
    let arguments = ["top", "--addr", &cluster.http(id).to_string()].map(String::from);
    Terminal::start(cluster, cluster.binary(), &arguments, SIZE)
}

/// A replica's line of the first table.
fn line_of(text: &str, id: u16) -> Option<&str> {
    let mut lines = text.lines().skip_while(|line| !line.contains("ROLE"));
    lines.find(|line| line.split_whitespace().next() == Some(&id.to_string()))
}

fn role(text: &str, id: u16) -> Option<&str> {
    line_of(text, id)?.split_whitespace().nth(1)
}

fn shows_load(text: &str) -> bool {
    let writes = text.lines().find_map(|line| line.split_once("writes "));
    let writes = writes.and_then(|(_, rest)| rest.split_whitespace().next());
    writes.is_some_and(|rate| rate != "-" && rate != "0")
}

#[test]
fn three_replicas_a_dead_one_and_a_clean_end() {
    let seed = seed();
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let refused = cluster.try_command(&["top", "--addr", &cluster.http(0).to_string()])?;
        ensure!(!refused.success, "without a terminal");
        ensure!(
            refused.stderr.contains("quorumwire status"),
            "{}",
            refused.stderr
        );

        let load = Running::start(Load::modest("top"), &cluster.targets(), seed);
        let leader = cluster.wait_for_leader()?;
        let asked = (leader + 1) % 3;
        let mut terminal = top(cluster, asked)?;
        terminal.wait_for("all three and their load", SHOWN_WITHIN, |text| {
            let mut roles: Vec<_> = (0..3).filter_map(|id| role(text, id)).collect();
            roles.sort_unstable();
            roles == ["follower", "follower", "leader"] && shows_load(text)
        })?;
        println!("{}", terminal.text());
        ensure!(terminal.is_full_screen() && terminal.is_raw()?);

        terminal.press(b"?")?;
        terminal.wait_for("help", SHOWN_WITHIN, |text| text.contains("closes this"))?;
        terminal.press(b"?")?;
        terminal.wait_for("no help", SHOWN_WITHIN, |text| {
            !text.contains("closes this")
        })?;
        terminal.resize(SMALL)?;
        terminal.wait_for("a small screen", SHOWN_WITHIN, |text| {
            text.contains("BEHIND") && text.trim_end().ends_with("? help")
        })?;
        terminal.resize(SIZE)?;
        terminal.wait_for("the large screen again", SHOWN_WITHIN, |text| {
            text.contains("APPLIED") && (0..3).all(|id| role(text, id).is_some())
        })?;
        terminal.resize(SMALL)?;
        terminal.resize(SIZE)?; // both before anybody looks, perhaps
        let is_whole = |text: &str| {
            let columns = |id| line_of(text, id).map_or(0, |line| line.split_whitespace().count());
            (0..3).all(|id| columns(id) == COLUMNS)
        };
        terminal.wait_for("every column again", SHOWN_WITHIN, is_whole)?;

        // The one that was asked first may go, too: by then the others are known.
        cluster.kill(asked)?;
        terminal.wait_for("the dead one", SHOWN_WITHIN, |text| {
            role(text, asked) == Some("unreachable") && role(text, leader) == Some("leader")
        })?;
        println!("{}", terminal.text());
        terminal.press(b"q")?;
        let status = terminal.wait_for_end(SHOWN_WITHIN)?;
        ensure!(status.success(), "{status}");

        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            let mut terminal = top(cluster, leader)?;
            terminal.wait_for("the leader", SHOWN_WITHIN, |text| {
                role(text, leader) == Some("leader")
            })?;
            terminal.signal(signal)?;
            let status = terminal.wait_for_end(SHOWN_WITHIN)?;
            ensure!(status.success(), "{signal:?}: {status}");
        }
        load.finish()?.judge(&cluster.targets())?;
        Ok(())
    });
}

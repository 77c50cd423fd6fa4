//! The dashboard in a real browser, against a real cluster under load. What it looked like stands in
//! `target/tmp/dashboard-*.png` afterwards.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::ensure;
use quorumwire_cluster_tests::browser::{Browser, Scheme};
use quorumwire_cluster_tests::cluster::{Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

/// What a page may take to show what has happened. A tick is a second; two cores that others use, too, may be
/// slow.
const SHOWN_WITHIN: Duration = Duration::from_secs(30);
const WIDE: u32 = 1280;
const PHONE: u32 = 390;

fn picture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dashboard-{name}.png"))
}

/// Nothing has to be moved sideways to be read.
const FITS: &str = "document.documentElement.scrollWidth <= innerWidth";
const IS_LIVE: &str = "document.getElementById('connection').dataset.state === 'live'";
const IS_LOST: &str = "document.getElementById('connection').dataset.state === 'lost'
    && !document.getElementById('lost').hidden";
const ALL_SHOWN: &str = "document.querySelectorAll('.card[data-reachable=true]').length === 3
    && document.querySelectorAll('.card[data-role=leader]').length === 1
    && document.querySelectorAll('.card[data-role=follower]').length === 2
    && document.querySelectorAll('.uplot canvas').length === 2
    && document.getElementById('warnings').hidden";
/// Of a page whose charts were lost on the way.
const ALL_BUT_CHARTS_SHOWN: &str = "document.querySelectorAll('.card[data-reachable=true]').length === 3
    && [...document.querySelectorAll('.charts [role=img]')].every((it) => it.textContent.includes('lost on the way'))";
/// Under load.
const MOVES: &str = "parseFloat(document.getElementById('writes').textContent) > 0
    && parseFloat(document.getElementById('reads').textContent) > 0
    && parseFloat(document.getElementById('p50').textContent) > 0
    && parseFloat(document.getElementById('p99').textContent) > 0";

#[test]
fn the_page_shows_load_a_dead_leader_the_new_one_and_its_own_loss() {
    let seed = seed();
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let load = Running::start(Load::modest("page"), &cluster.targets(), seed);
        let leader = cluster.wait_for_leader()?;
        let shown_by = (leader + 1) % 3;
        let begun = Instant::now();
        let mut browser = Browser::start(cluster)?;
        browser.set_reader(WIDE, Scheme::Light)?;
        let page = format!("http://{}/", cluster.http(shown_by));
        browser.lose(&["*/uplot.js"])?;
        browser.open(&page)?;
        browser.wait_for(IS_LIVE, SHOWN_WITHIN)?;
        browser.wait_for(ALL_BUT_CHARTS_SHOWN, SHOWN_WITHIN)?;
        browser.lose(&[])?; // the page asks again by itself
        browser.wait_for(ALL_SHOWN, SHOWN_WITHIN)?;
        let lost = browser.take_complaints()?;
        ensure!(
            lost.iter().all(|it| it.contains("ERR_BLOCKED_BY_CLIENT")),
            "{lost:#?}"
        );
        browser.wait_for(MOVES, SHOWN_WITHIN)?;
        println!("shown after {:?}", begun.elapsed());
        let said = browser.evaluate("document.getElementById('leader').textContent")?;
        ensure!(said == format!("replica {leader}"), "{said}");
        browser.draw(&picture("light"))?;
        for (name, width, scheme) in [
            ("dark", WIDE, Scheme::Dark),
            ("phone", PHONE, Scheme::Light),
        ] {
            browser.set_reader(width, scheme)?;
            browser.wait_for(FITS, SHOWN_WITHIN)?;
            browser.draw(&picture(name))?;
        }
        browser.set_reader(WIDE, Scheme::Light)?;

        cluster.kill(leader)?;
        let killed = Instant::now();
        let other_leads = format!(
            "document.querySelectorAll('.card[data-role=leader]').length === 1
             && document.querySelector('.card[data-replica=\"{leader}\"]').dataset.role === 'unreachable'
             && document.querySelectorAll('.card[data-reachable=true]').length === 2
             && document.getElementById('warning-list').textContent.includes('Replica {leader}: does not answer')"
        );
        browser.wait_for(&other_leads, SHOWN_WITHIN)?;
        println!("the new leader was shown after {:?}", killed.elapsed());
        let next = cluster.wait_for_leader_other_than(leader)?;
        let it_leads =
            format!("document.getElementById('leader').textContent === 'replica {next}'");
        browser.wait_for(&it_leads, SHOWN_WITHIN)?;
        browser.draw(&picture("dead-leader"))?;
        load.finish()?.judge(&cluster.targets())?;
        let complaints = browser.take_complaints()?;
        ensure!(complaints.is_empty(), "{complaints:#?}");

        // Now the one that serves the page. Without it the page cannot but complain.
        cluster.kill(shown_by)?;
        browser.wait_for(IS_LOST, SHOWN_WITHIN)?;
        browser.draw(&picture("lost"))?;
        cluster.start(shown_by)?;
        cluster.start(leader)?;
        browser.wait_for(IS_LIVE, SHOWN_WITHIN)?;
        browser.wait_for(ALL_SHOWN, SHOWN_WITHIN)?;
        let complaints = browser.take_complaints()?;
        let of_the_loss = |it: &&String| it.contains("net::ERR_");
        ensure!(
            complaints.iter().all(|it| of_the_loss(&it)),
            "{complaints:#?}"
        );
        Ok(())
    });
}

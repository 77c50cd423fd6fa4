//! x
use quorumwire_model::*;
use stateright::{Checker, HasDiscoveries, Model};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n = |i: usize| a[i].parse::<u8>().unwrap();
    let d = if a[1] == "m" {
        Durability::Memory
    } else {
        Durability::Sync
    };
    let mut m = Handover::new(
        d,
        Bounds {
            term_max: n(2),
            index_max: n(3),
            crashes_max: n(4),
        },
    );
    let target: usize = a[5].parse().unwrap();
    for r in &a[6..] {
        let rule = Rule::ALL.iter().find(|x| format!("{x:?}") == *r).unwrap();
        m = m.without(*rule);
    }
    if let Ok(p) = std::env::var("PROP") {
        m = m.checking(*Safety::ALL.iter().find(|s| format!("{s:?}") == p).unwrap());
    }
    if std::env::var("SYM").is_ok() {
        m = m.nameless();
    }
    let t = std::time::Instant::now();
    let c = m.checker().threads(1).target_state_count(target);
    let c = if a.len() > 6 {
        c.finish_when(HasDiscoveries::AnyFailures)
    } else {
        c
    };
    let c = c.spawn_bfs().join();
    println!(
        "unique {} total {} depth {} {:?}",
        c.unique_state_count(),
        c.state_count(),
        c.max_depth(),
        t.elapsed()
    );
    for (name, path) in c.discoveries() {
        let acts = path.into_actions();
        println!("{name}: {} steps", acts.len());
        for x in acts {
            println!("    {x:?}");
        }
    }
}

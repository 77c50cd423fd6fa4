//! A switch's metrics page: every figure is there once, typed, with help.
use super::{OF_SWITCHES, documentation, text};
use quorumwire_paxos_process::{SwitchReport, WindowReport};
use std::collections::BTreeSet;

fn report() -> SwitchReport {
    let names = OF_SWITCHES.keys().cloned();
    let others = ["http_requests", "plane_socket_sent"].map(str::to_owned);
    SwitchReport {
        deployment: "a \"quoted\" name".to_owned(),
        role: "coordinator".to_owned(),
        number: 1,
        round: 769,
        coordinates: true,
        coordinator: Some(1),
        ready: true,
        window: Some(WindowReport {
            instances: 8,
            first_open: 5,
            next_instance: 7,
            free: 6,
            filled_by: Some(2),
            checkpointed: Some(4),
        }),
        counters: names.chain(others).zip(1..).collect(),
        ..SwitchReport::default()
    }
}

#[test]
fn figures_are_shown() {
    let page = text(report()).unwrap();
    for line in [
        "quorumwire_switch_coordinates 1",
        "quorumwire_switch_coordinator 1",
        "quorumwire_switch_round 769",
        "quorumwire_switch_window_free 6",
        "quorumwire_switch_next_instance 7",
        "quorumwire_switch_slowest_learner 2",
        "quorumwire_switch_plane_engaged 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
    }
    assert!(page.contains(r#"deployment="a \"quoted\" name""#), "{page}");
    assert!(page.ends_with("# EOF\n"));
}

#[test]
fn every_counter_is_shown_once_with_its_help() {
    let report = report();
    let page = text(report.clone()).unwrap();
    assert!(
        !page.contains("Counted since the process started"),
        "{page}"
    );
    for name in report.counters.keys() {
        let name = name.replace("_microseconds", "_seconds");
        let shown = format!("quorumwire_{name}_total ");
        assert!(page.contains(&shown), "{shown} in\n{page}");
    }
    let types = page.lines().filter_map(|it| it.strip_prefix("# TYPE "));
    let mut seen = BTreeSet::new();
    for name in types.filter_map(|it| it.split(' ').next()) {
        assert!(seen.insert(name), "{name} twice");
    }
}

#[test]
fn a_switch_that_is_off_shows_no_window() {
    let off = SwitchReport {
        window: None,
        coordinator: None,
        ..report()
    };
    let page = text(off).unwrap();
    assert!(page.contains("quorumwire_switch_coordinator -1\n") && !page.contains("window_free"));
}

#[test]
fn its_documentation_has_what_servers_have_not() {
    let told = documentation().unwrap();
    assert!(told.contains("| `quorumwire_switch_votes_total` | counter |"));
    assert!(told.contains("| `quorumwire_switch_window_free` | gauge |"));
    assert!(!told.contains("| `quorumwire_uptime"), "{told}");
}

//! What switches say of themselves over HTTP: who coordinates, before and after the coordinator is killed;
//! what they count; and that nobody who is slow there, or asks for something else, hinders them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::deployment::{ACCEPTORS, COORDINATORS, DEADLINE, Deployment};
use quorumwire_cluster_tests::network::{Machine, Network};
use quorumwire_cluster_tests::waiting::wait_within;
use quorumwire_paxos_process::{Member, SwitchReport};
use rustix::process::Signal;

const PAGE: [&str; 2] = ["--listen-http", "127.0.0.1:0"];
const FIRST: (&str, usize) = ("coordinator", 0);
const BACKUP: (&str, usize) = ("coordinator", 1);
/// More than a page has room for.
const SILENT_CLIENTS: usize = 100;
/// So often values are decided until the kernel takes some by itself. All of them fit the window, as one of
/// the learners never checkpoints.
const ROUNDS_MAX: usize = 100;
/// A client without a whole request is cut after 5 s.
const CUT_WITHIN: Duration = Duration::from_secs(30);

fn all() -> impl Iterator<Item = (&'static str, usize)> {
    let coordinators = (0..COORDINATORS).map(|number| ("coordinator", number));
    coordinators.chain((0..ACCEPTORS).map(|number| ("acceptor", number)))
}

fn decide(member: &Member, values: usize) -> Result<()> {
    for value in 0..values {
        let instance = member.submit(format!("value {value}").as_bytes())?;
        let mut upto = 0;
        while upto < instance {
            let next = member.next_within(DEADLINE)?;
            upto = next.context("a value that is decided is delivered")?.0;
        }
        member.checkpoint(upto)?;
    }
    Ok(())
}

/// Each figure of each page is explained.
fn every_metric_is_explained(deployment: &Deployment<'_>) -> Result<()> {
    let explained = include_str!("../../../docs/metrics.md");
    for switch in all() {
        let (code, page) = deployment.ask_page(switch, "GET", "/metrics")?;
        ensure!(code == 200, "{code}: {page}");
        let lines = page.lines().filter_map(|it| it.strip_prefix("# TYPE "));
        let mut count = 0;
        for name in lines.filter_map(|line| line.split(' ').next()) {
            let row = format!("| `{name}` |");
            ensure!(explained.contains(&row), "docs/metrics.md: {name}");
            count += 1;
        }
        ensure!(count > 40, "{page}");
    }
    Ok(())
}

/// `status` shows it, and what is for replicas says that it is none.
fn commands_know_a_switch(deployment: &Deployment<'_>) -> Result<()> {
    let [first, acceptor] = [FIRST, ("acceptor", 2)].map(|it| deployment.page_address(it));
    let (first, acceptor) = (first?.to_string(), acceptor?.to_string());
    let both = format!("{first},{acceptor}");
    let (code, text) = deployment.show(&["status", "--addr", &both])?;
    for part in [
        "coordinator 0 of the deployment test: coordinates",
        "acceptor 2 of the deployment test: votes; coordinator 0",
        "window: ",
    ] {
        ensure!(code == Some(0) && text.contains(part), "{code:?}: {text}");
    }
    let (code, text) = deployment.show(&["status", "--json", "--addr", &first])?;
    let said: serde_json::Value = serde_json::from_str(&text)?;
    ensure!(
        code == Some(0) && said["switches"][0]["state"] == "coordinates",
        "{code:?}: {text}"
    );
    let (code, said) = deployment.run(&["transfer", "--addr", &first])?;
    ensure!(
        code == Some(1) && said.contains("it is a switch of a Paxos deployment"),
        "{code:?}: {said}"
    );
    Ok(())
}

#[test]
fn pages_say_who_coordinates_and_counters_rise() -> Result<()> {
    let mut deployment = Deployment::new("switch-pages", 1)?.told(&PAGE).patient()?;
    deployment.start_all()?;
    for switch in all() {
        deployment.wait_until(switch, "a page that is ready", |it| it.ready)?;
    }
    deployment.wait_until(FIRST, "the first that coordinates", |it| {
        it.coordinates && it.coordinator == Some(0)
    })?;
    deployment.wait_until(BACKUP, "a backup that knows it", |it| {
        !it.coordinates && it.coordinator == Some(0)
    })?;
    let member = deployment.member(0)?;
    decide(&member, 20)?;
    let counted = |report: &SwitchReport, name: &str| report.counters[name];
    let values = |it: &SwitchReport| counted(it, "switch_values_assigned") >= 20;
    let one = deployment.wait_until(FIRST, "values that are counted", values)?;
    let window = one.window.expect("it coordinates");
    ensure!(window.next_instance > 20, "{window:?}");
    let votes = |it: &SwitchReport| {
        counted(it, "switch_votes") >= 20
            && counted(it, "switch_syncs") > 0
            && counted(it, "switch_sync_microseconds") > 0
    };
    let acceptor = deployment.wait_until(("acceptor", 1), "votes", votes)?;
    ensure!(
        acceptor.durability.as_deref() == Some("sync"),
        "{acceptor:?}"
    );
    for number in 0..ACCEPTORS {
        let switch = ("acceptor", number);
        deployment.wait_until(switch, "an acceptor that knows who coordinates", |it| {
            it.coordinator == Some(0)
        })?;
    }
    every_metric_is_explained(&deployment)?;
    commands_know_a_switch(&deployment)?;

    deployment.kill(FIRST)?;
    let takes_over = |it: &SwitchReport| it.coordinates && it.coordinator == Some(1);
    let second = deployment.wait_until(BACKUP, "a backup that takes over", takes_over)?;
    ensure!(second.round > one.round, "{second:?}");
    ensure!(
        counted(&second, "switch_take_overs") > 0 && counted(&second, "switch_rounds_asked") > 0
    );
    let (code, page) = deployment.ask_page(BACKUP, "GET", "/metrics")?;
    ensure!(
        code == 200 && page.contains("\nquorumwire_switch_coordinates 1\n"),
        "{page}"
    );
    decide(&member, 20)?;
    deployment.wait_until(("acceptor", 0), "who coordinates now", |it| {
        it.coordinator == Some(1)
    })?;

    // The one that was killed comes back as a backup.
    deployment.start(FIRST)?;
    deployment.wait_until(FIRST, "a backup that knows it", |it| {
        it.state == "backup" && it.coordinator == Some(1)
    })?;
    Ok(())
}

fn wait_until_it_coordinates(
    deployment: &Deployment<'_>,
    switch: (&'static str, usize),
) -> Result<()> {
    deployment.wait_until(switch, "one that coordinates", |it| it.coordinates)?;
    Ok(())
}

/// Two have one number, and values are decided all the time: the one that listens where others know no
/// coordinator stops, whoever was there first.
#[test]
fn of_two_with_one_number_the_one_that_listens_elsewhere_stops() -> Result<()> {
    let mut deployment = Deployment::new("twins", 1)?.told(&PAGE).patient()?;
    deployment.start_all()?;
    wait_until_it_coordinates(&deployment, FIRST)?;
    let member = deployment.member(0)?;
    decide(&member, 20)?;
    let twin = ("twin", 0);
    let free = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    for is_first in [false, true] {
        if is_first {
            deployment.kill(BACKUP)?;
            deployment.kill(FIRST)?;
        }
        deployment.start_twin(FIRST, free)?;
        if is_first {
            wait_until_it_coordinates(&deployment, twin)?;
            deployment.start(FIRST)?;
            deployment.start(BACKUP)?;
        }
        let mut said = None;
        wait_within("one that has stopped", DEADLINE, || {
            decide(&member, 20)?;
            said = deployment.report(twin).ok();
            Ok(said.as_ref().is_some_and(|it| it.state == "same-number"))
        })?;
        let said = said.context("it was so")?;
        let fault = "another coordinator has this number".to_owned();
        ensure!(!said.ready && said.faults.contains(&fault), "{said:?}");
        let log = deployment.log(twin)?;
        ensure!(log.contains("heard_from=\"127.0.0.1:"), "{log}");
        decide(&member, 20)?;
        let both = [FIRST, BACKUP].map(|it| deployment.report(it));
        for report in both {
            let report = report?;
            ensure!(
                ["coordinates", "backup"].contains(&&*report.state),
                "{report:?}"
            );
        }
        deployment.kill(twin)?;
    }
    Ok(())
}

/// Another acceptor of a number announces a new life from where nobody knows it. The right one goes on, and
/// counts; who is to blame is said.
#[test]
fn an_acceptor_that_runs_elsewhere_too_locks_nobody_out() -> Result<()> {
    let in_memory = ["--durability", "memory"];
    let deployment = Deployment::new("acceptors", 1)?
        .told(&PAGE)
        .told(&in_memory);
    let mut deployment = deployment.patient()?;
    deployment.start_all()?;
    wait_until_it_coordinates(&deployment, FIRST)?;
    let member = deployment.member(0)?;
    decide(&member, 20)?;
    let free = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    deployment.start_twin(("acceptor", 0), free)?;
    let blamed = format!("acceptor 0 announces itself from {free}");
    deployment.wait_until(FIRST, "one that says who is to blame", |it| {
        it.faults.iter().any(|fault| fault.contains(&blamed))
    })?;
    let twin = deployment.report(("twin", 0))?;
    let hears_nothing = format!("nothing has come to {free}");
    ensure!(
        !twin.ready && twin.faults.iter().any(|it| it.contains(&hears_nothing)),
        "{twin:?}"
    );
    // Without the right one there is no majority any more.
    deployment.kill(("acceptor", 1))?;
    decide(&member, 20)?;
    let right = deployment.report(("acceptor", 0))?;
    ensure!(
        right.ready && right.faults.is_empty() && right.state == "votes" && right.life == Some(0),
        "{right:?}"
    );
    deployment.kill(("twin", 0))?;
    deployment.wait_until(FIRST, "one that blames nobody", |it| it.faults.is_empty())?;
    Ok(())
}

#[test]
fn an_operator_has_a_coordinator_take_over_and_leave_it_to_others() -> Result<()> {
    let mut deployment = Deployment::new("operated", 1)?.told(&PAGE).patient()?;
    deployment.start_all()?;
    wait_until_it_coordinates(&deployment, FIRST)?;
    let member = deployment.member(0)?;
    decide(&member, 20)?;
    deployment.signal(BACKUP, Signal::USR1)?;
    wait_until_it_coordinates(&deployment, BACKUP)?;
    deployment.wait_until(FIRST, "a backup that knows it", |it| {
        it.state == "backup" && it.coordinator == Some(1)
    })?;
    decide(&member, 20)?;
    deployment.signal(BACKUP, Signal::USR2)?;
    wait_until_it_coordinates(&deployment, FIRST)?;
    decide(&member, 20)?;
    let report = deployment.report(BACKUP)?;
    ensure!(report.state == "retired" && !report.ready, "{report:?}");
    let acceptor = ("acceptor", 0);
    deployment.signal(acceptor, Signal::USR1)?;
    wait_within("an acceptor that says it does not", DEADLINE, || {
        let said = "an acceptor neither takes over nor retires";
        Ok(deployment.log(acceptor)?.contains(said))
    })?;
    decide(&member, 20)
}

#[test]
fn pages_are_only_read_and_slow_clients_are_cut() -> Result<()> {
    let mut deployment = Deployment::new("slow-pages", 1)?.told(&PAGE).patient()?;
    deployment.start_all()?;
    for switch in all() {
        deployment.wait_until(switch, "a page that is ready", |it| it.ready)?;
    }
    let address = deployment.page_address(FIRST)?;
    let connect = |_| TcpStream::connect(address);
    let mut silent: Vec<_> = (0..SILENT_CLIENTS)
        .map(connect)
        .collect::<std::io::Result<_>>()?;
    silent[1].write_all(b"GET /metrics HTTP/1.1\r\nhost: loc")?;
    let member = deployment.member(0)?;
    decide(&member, 20)?;
    for path in ["/healthz", "/readyz", "/metrics", "/v1/status"] {
        let (code, body) = deployment.ask_page(FIRST, "GET", path)?;
        ensure!(code == 200, "{path}: {code}: {body}");
        for method in ["POST", "DELETE"] {
            let (code, body) = deployment.ask_page(FIRST, method, path)?;
            ensure!(code == 405, "{method} {path}: {code}: {body}");
        }
    }
    for stream in &mut silent {
        stream.set_read_timeout(Some(CUT_WITHIN))?;
        // An answer says that the request took too long, or nothing does.
        let end = stream.read_to_end(&mut Vec::new());
        let goes_on =
            |it: &std::io::Error| matches!(it.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        ensure!(
            !end.as_ref().is_err_and(goes_on),
            "a silent client is not cut"
        );
    }
    ensure!(deployment.report(FIRST)?.coordinates);
    Ok(())
}

#[test]
fn a_page_beyond_loopback_has_to_be_asked_for() -> Result<()> {
    let deployment = Deployment::new("exposed-page", 1)?;
    let file = deployment.path("deployment.toml");
    let words = ["switch", "--role", "coordinator", "--deployment", &file];
    let run = |more: &[&str]| {
        // There is none with this number: it ends whatever is said of the page.
        let more = [&["--number", "9"], more].concat();
        deployment.run(&[&words[..], &more].concat())
    };
    let (code, said) = run(&["--listen-http", "0.0.0.0:0"])?;
    ensure!(
        code == Some(2) && said.contains("listen-http") && said.contains("--insecure"),
        "{code:?}: {said}"
    );
    let (code, said) = run(&["--listen-http", "7480"])?;
    ensure!(code == Some(2) && said.contains("--listen-http"), "{said}");
    let (code, said) = run(&["--insecure"])?;
    ensure!(code == Some(2) && said.contains("--listen-http"), "{said}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let (code, said) = run(&["--listen-http", &taken.local_addr()?.to_string()])?;
    ensure!(
        code == Some(1) && said.contains("option listen-http: cannot listen on"),
        "{said}"
    );
    Ok(())
}

/// What the kernel does by itself is on the page, too.
#[test]
fn pages_of_switches_in_the_kernel_have_its_counters() -> Result<()> {
    let network = Network::new(7)?;
    let options = [&PAGE[..], &["--plane", "xdp", "--durability", "memory"]].concat();
    let mut deployment = Deployment::across(&network, "kernel-pages", &options)?.patient()?;
    deployment.start_all()?;
    for switch in all() {
        deployment.wait_until(switch, "a page that is ready", |it| it.ready)?;
    }
    let member = deployment.member(0)?;
    let counts = |it: &SwitchReport, name: &str| it.counters.get(name).copied().unwrap_or(0);
    for (switch, name, of_plane) in [
        (FIRST, "switch_values_assigned", "plane_instances_assigned"),
        (("acceptor", 0), "switch_votes", "plane_entries_stored"),
    ] {
        // The first may go by the process. What is counted is shown a little later.
        let mut report = deployment.report(switch)?;
        for _ in 0..ROUNDS_MAX {
            if counts(&report, of_plane) >= 20 {
                break;
            }
            let before = counts(&report, name);
            decide(&member, 20)?;
            report = deployment.wait_until(switch, "values that are counted", |it| {
                counts(it, name) > before
            })?;
        }
        ensure!(
            counts(&report, of_plane) >= 20 && counts(&report, name) >= counts(&report, of_plane),
            "{report:?}"
        );
        ensure!(
            report.plane.name == "xdp" && report.plane.state == "engaged",
            "{report:?}"
        );
    }
    every_metric_is_explained(&deployment)?;
    // Another one at the same interface cannot start, and says who is there.
    let machine = Machine::Replica(0);
    let listen = format!("{}:7599", network.address(machine));
    let file = deployment.path("deployment.toml");
    let words = [
        "switch",
        "--role",
        "coordinator",
        "--number",
        "0",
        "--deployment",
        &file,
    ];
    let words = [&words[..], &["--plane", "xdp", "--listen", &listen]].concat();
    let (code, said) = network.run_in(machine, || deployment.run(&words))??;
    ensure!(
        code == Some(1) && said.contains("has another XDP program, number"),
        "{code:?}: {said}"
    );
    Ok(())
}

//! `quorumwire status`: what every replica of a cluster says about itself.
use super::ask;
use super::view::{ClusterView, ReplicaView, Target, as_text, listed};
use quorumwire_node::report::{FollowerReport, IncomingReport, PlaneChooser, Report};
use quorumwire_paxos_process::SwitchReport;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// Exit code 0 if a leader serves, 1 otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorumwire status --dir /tmp/try            # a cluster started by `quorumwire dev --dir /tmp/try`
  quorumwire status --addr 10.0.0.10:7480     # by any replica
  quorumwire status --json | jq .leader
  quorumwire status --addr 10.0.0.1:7480      # of a switch of a Paxos deployment (--listen-http)")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Shows the state.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let view = ClusterView::gather_patiently(&arguments.target)?;
    if view.reports().next().is_none() {
        let asked = view.barred.keys();
        let switches = asked.filter_map(|it| ask::switch(it, ask::REPORT_TIMEOUT));
        let switches: Vec<SwitchReport> = switches.collect();
        if !switches.is_empty() {
            return show_switches(&switches, arguments.json);
        }
    }
    if arguments.json {
        outln!("{}", as_json(&view))?;
    } else {
        out!("{}", as_table(&view))?;
    }
    if view.leader().is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    // Where nobody answers, the table has said why.
    if !arguments.json && view.reports().next().is_some() {
        outln!("{}", view.why_no_leader())?;
    }
    Ok(ExitCode::FAILURE)
}

/// What switches of a Paxos deployment say. Exit code 0 if each does what it is there for.
fn show_switches(switches: &[SwitchReport], is_json: bool) -> anyhow::Result<ExitCode> {
    if is_json {
        outln!("{}", serde_json::json!({ "switches": switches }))?;
    } else {
        let texts = switches.iter().map(of_switch);
        out!("{}", texts.collect::<Vec<_>>().join("\n"))?;
    }
    let are_ready = switches.iter().all(|it| it.ready && it.is_alive());
    Ok(if are_ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// For people.
fn of_switch(report: &SwitchReport) -> String {
    let mut text = String::new();
    push_wrapped(&mut text, &as_text(&report.in_words()));
    let of_life = report.life.map(|life| format!(", life {life}"));
    let durability = report.durability.as_ref().map(|it| format!(", {it}"));
    let [of_life, durability] = [of_life, durability].map(Option::unwrap_or_default);
    let plane = &report.plane;
    let line = format!(
        "round {}{of_life}{durability}; plane {} ({})",
        report.round, plane.name, plane.state
    );
    push_wrapped(&mut text, &as_text(&line));
    if let Some(window) = &report.window {
        let filled_by = window.filled_by.map(|learner| {
            let upto = window.checkpointed.unwrap_or(0);
            format!("; learner {learner} has checkpointed least, up to {upto}")
        });
        let line = format!(
            "window: {} of {} free, first open instance {}, next {}{}",
            window.free,
            window.instances,
            window.first_open,
            window.next_instance,
            filled_by.unwrap_or_default()
        );
        push_wrapped(&mut text, &line);
    }
    for fault in &report.faults {
        push_wrapped(&mut text, &as_text(&format!("fault: {fault}")));
    }
    text
}

/// For programs.
pub fn as_json(view: &ClusterView) -> serde_json::Value {
    let replicas: Vec<_> = view
        .replicas
        .iter()
        .map(|(id, seen)| match seen {
            ReplicaView::Report(report) => {
                serde_json::json!({ "id": id, "reachable": true, "report": report })
            }
            ReplicaView::Unreachable(reason) => {
                serde_json::json!({ "id": id, "reachable": false, "error": reason })
            }
        })
        .collect();
    serde_json::json!({
        "leader": view.leader().map(|leader| leader.id),
        "replicas": replicas,
        "unknown": view.strangers,
    })
}

const HEADINGS: [&str; 8] = [
    "ID", "ROLE", "TERM", "COMMIT", "APPLIED", "LAG", "DURABLE", "PLANE",
];

/// Columns of a terminal that is as wide as most are.
const TERMINAL_COLUMNS: usize = 80;

/// For people.
pub fn as_table(view: &ClusterView) -> String {
    let mut rows: Vec<Vec<String>> = vec![HEADINGS.map(str::to_owned).to_vec()];
    let mut notes = String::new();
    for (id, seen) in &view.replicas {
        match seen {
            ReplicaView::Report(report) => {
                rows.push(row(report, view.leader()));
                if let Some(line) = fast_term(report) {
                    note(&mut notes, *id, &line);
                }
                // What an option asks for needs no reason.
                let by_itself = report
                    .data_plane
                    .iter()
                    .filter(|it| it.chosen_by == PlaneChooser::Auto);
                for choice in by_itself {
                    note(
                        &mut notes,
                        *id,
                        &format!("data plane: {}", choice.in_words()),
                    );
                }
                if let Some(line) = snapshot(report, view.leader()) {
                    note(&mut notes, *id, &line);
                }
                let faults = report.faults.iter();
                for fault in faults.filter(|fault| !is_of_silent(view, fault)) {
                    note(&mut notes, *id, fault);
                }
            }
            ReplicaView::Unreachable(reason) => {
                let mut row = vec![id.to_string(), "unreachable".to_owned()];
                row.resize(HEADINGS.len(), "-".to_owned());
                rows.push(row);
                note(&mut notes, *id, &silence(view, *id, reason));
            }
        }
    }
    for (address, reason) in &view.strangers {
        let said = if reason.starts_with(address.as_str()) {
            reason.clone()
        } else {
            format!("{address}: {reason}")
        };
        push_wrapped(&mut notes, &as_text(&said));
    }
    if rows.len() == 1 {
        return notes;
    }
    let quorum = view.best_report().map_or(String::new(), |report| {
        format!("quorum: {}\n", as_text(&report.quorum))
    });
    let limited = view.leader().filter(|it| it.memory_limit_bytes > 0);
    let mut memory = String::new();
    if let Some(leader) = limited {
        let line = format!("memory: {}", as_text(&leader.memory_in_words()));
        push_wrapped(&mut memory, &line);
    }
    columns(&rows) + &quorum + &memory + &notes + &addresses(view)
}

/// Whether this fault is that of a replica which does not answer: it has a line of its own.
fn is_of_silent(view: &ClusterView, fault: &str) -> bool {
    let mut silent = view.replicas.iter();
    silent.any(|(id, seen)| {
        matches!(seen, ReplicaView::Unreachable(_)) && Report::tried_in(fault, *id).is_some()
    })
}

/// Why a replica does not answer, and what others say of it.
fn silence(view: &ClusterView, id: u16, reason: &str) -> String {
    let mut who = Vec::new();
    let mut tried = BTreeSet::new();
    for report in view.reports() {
        let of_it = report.faults.iter();
        for what in of_it.filter_map(|fault| Report::tried_in(fault, id)) {
            who.push(report.id);
            tried.insert(what);
        }
    }
    if who.is_empty() {
        return reason.to_owned();
    }
    let tried: Vec<&str> = tried.into_iter().collect();
    format!(
        "{reason}; no connection from replica {}: {}",
        listed(&who),
        tried.join("; ")
    )
}

/// Where each replica listens: the host once where its ports have the same, which fits most terminals.
fn addresses(view: &ClusterView) -> String {
    let serves_program = view.reports().any(|report| !report.program.is_empty());
    let services: &[&str] = if serves_program {
        &["PROGRAM"]
    } else {
        &["MEMCACHED", "REDIS"]
    };
    let headings = [&["ID", "HOST"], services, &["CLIENT", "HTTP", "PEER"]].concat();
    let mut rows = vec![headings.iter().map(|it| (*it).to_owned()).collect()];
    let mut lines = String::new();
    for (id, all) in all_addresses(view, serves_program) {
        let [.., http, peer] = &all[..] else {
            continue;
        };
        let host = if http.is_empty() {
            host_of(peer)
        } else {
            host_of(http)
        };
        let at_port = |address: &str| {
            // At any address of the host is at this one, too.
            let mut hosts = [host, "0.0.0.0", "[::]"].into_iter();
            let port = hosts.find_map(|host| address.strip_prefix(host)?.strip_prefix(':'));
            match port {
                Some(port) if !host.is_empty() => port.to_owned(),
                Some(_) | None if address.is_empty() => "-".to_owned(),
                Some(_) | None => address.to_owned(),
            }
        };
        let on_host = |addresses: &String| {
            let each: Vec<_> = addresses.split(',').map(at_port).collect();
            each.join(",")
        };
        let mut row = vec![id.to_string(), host.to_owned()];
        row.extend(all.iter().map(on_host));
        rows.push(row);
        for (heading, address) in headings[2..].iter().zip(&all) {
            if !address.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(lines, "{id:<4}{heading:<11}{}", as_text(address));
            }
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let table = columns(&rows);
    let fits = |line: &str| line.chars().count() <= TERMINAL_COLUMNS;
    if table.lines().all(fits) {
        format!("\n{table}")
    } else {
        format!("\n{:<4}{:<11}ADDRESS\n{lines}", "ID", "PORT")
    }
}

/// Of each replica its ports for memcached and Redis, or for a program's clients, for the native protocol,
/// HTTP and replicas: as it says itself, or else as the others know.
fn all_addresses(view: &ClusterView, serves_program: bool) -> Vec<(u16, Vec<String>)> {
    let all = |services: [String; 2], program: String, others: [String; 3]| {
        let services = if serves_program {
            vec![program]
        } else {
            services.to_vec()
        };
        [services, others.to_vec()].concat()
    };
    let known = |id: u16, seen: &ReplicaView| match seen {
        ReplicaView::Report(report) => Some(all(
            [report.memcached.clone(), report.redis.clone()],
            report.program.join(","),
            [
                report.client.clone(),
                report.http.clone(),
                report.peer.clone(),
            ],
        )),
        ReplicaView::Unreachable(_) => {
            let member = view.member(id)?;
            let said = |address: &Option<String>| address.clone().unwrap_or_default();
            Some(all(
                [said(&member.memcached), said(&member.redis)],
                String::new(), // only it knows
                [
                    said(&member.client),
                    said(&member.http),
                    member.peer.clone(),
                ],
            ))
        }
    };
    let replicas = view.replicas.iter();
    let known = replicas.filter_map(|(id, seen)| Some((*id, known(*id, seen)?)));
    known.collect()
}

/// What stands before the port.
fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or("", |(host, _)| host)
}

fn note(notes: &mut String, id: u16, line: &str) {
    push_wrapped(notes, &format!("replica {id}: {}", as_text(line)));
}

/// What goes on behind the first line of a note stands further in.
const INDENT: &str = "  ";

/// Adds a note, in lines that fit a terminal. A word that fits none stays whole, so that it can be copied.
fn push_wrapped(notes: &mut String, text: &str) {
    let mut columns = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if columns > INDENT.len() && columns + 1 + width > TERMINAL_COLUMNS {
            notes.push('\n');
            notes.push_str(INDENT);
            columns = INDENT.len();
        } else if columns > 0 {
            notes.push(' ');
            columns += 1;
        }
        notes.push_str(word);
        columns += width;
    }
    notes.push('\n');
}

fn row(report: &Report, leader: Option<&Report>) -> Vec<String> {
    let lag = leader.map(|leader| lag(report, leader));
    let cells = [
        report.id.to_string(),
        report.role.to_string(),
        report.term.to_string(),
        report.commit_index.to_string(),
        report.applied_index.to_string(),
        lag.map_or_else(|| "-".to_owned(), |lag| lag.to_string()),
        report.durability.to_string(),
        match report.fast_term {
            Some(_) => format!("{} +", report.plane_name()),
            None => report.plane_name().to_owned(),
        },
    ];
    cells.iter().map(|it| as_text(it)).collect()
}

/// Whether a replica's data plane runs a fast term, since when, and why the last one ended; none for a
/// replica that has no data plane.
fn fast_term(report: &Report) -> Option<String> {
    let now = match (&report.fast_term, &report.fast_term_ended) {
        (Some(fast), _) => format!("in fast term {} for {}", fast.term, lasting(fast.for_ms)),
        (None, Some(_)) => "in no fast term".to_owned(),
        (None, None) if report.plane_address.is_some() => {
            "in no fast term since its start".to_owned()
        }
        (None, None) => return None,
    };
    // The JSON has the same reasons as names, with `_` between their words.
    let ended = report.fast_term_ended.as_ref();
    let ended = ended.map(|reason| format!("; the last one ended: {}", reason.replace('_', " ")));
    Some(now + &ended.unwrap_or_default())
}

/// How far the snapshot is that a replica is brought up to date by: as it sees that itself, which goes on
/// when all was sent, or else as its leader does.
pub fn snapshot(report: &Report, leader: Option<&Report>) -> Option<String> {
    let followers = leader.map_or(&[][..], |leader| &leader.followers);
    let sent = followers.iter().find(|follower| follower.id == report.id);
    let sent = || sent.and_then(FollowerReport::snapshot_in_words);
    let incoming = report.incoming_snapshot.as_ref();
    incoming.map(IncomingReport::in_words).or_else(sent)
}

/// A time in its largest two units; below a minute in tenths of a second.
fn lasting(milliseconds: u64) -> String {
    let duration = Duration::from_millis(milliseconds);
    let seconds = duration.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match (hours / 24, hours, minutes) {
        (0, 0, 0) => format!("{seconds}.{} s", duration.subsec_millis() / 100),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        (days, _, _) => format!("{days} d {} h", hours % 24),
    }
}

/// Entries a replica is behind: as its leader counts them, or by what both say.
fn lag(report: &Report, leader: &Report) -> u64 {
    let followers = &leader.followers;
    let counted = followers.iter().find(|follower| follower.id == report.id);
    let by_index = leader.last_index.saturating_sub(report.last_index);
    counted.map_or(by_index, |follower| follower.lag)
}

/// Lines of columns as wide as their widest cell.
pub fn columns(rows: &[Vec<String>]) -> String {
    let column_count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..column_count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{:<width$}", as_text(cell)))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
#[path = "status_test.rs"]
mod tests;

//! What all replicas of a cluster say, gathered by asking one and following the addresses it knows.
use super::ask::{self, AskError, TlsFlags};
use super::local_cluster::ClusterRecord;
use super::progress::{Words, while_doing};
use anyhow::{Context as _, bail};
use quorumwire_node::foreign_text::is_plain;
use quorumwire_node::options::reachable_argument;
use quorumwire_node::report::{MemberReport, ReplicaRole, Report, ReportedDurability};
use quorumwire_node::server::HTTP_ADDRESS_FILE;
use quorumwire_wire::limits::{ADDRESS_BYTES_MAX, MEMBERS_MAX};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How often a wait looks again.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a command looks for a leader that carries it out.
pub const LEADER_TIMEOUT: Duration = Duration::from_secs(20);
/// Where nobody listens at any address, it looks only for so long: a replica of a cluster that moves its
/// leader answers.
const NOBODY_TIMEOUT: Duration = Duration::from_millis(500);
/// Most replicas asked in one go: the members, and as many that were removed.
const ASKED_MAX: usize = 2 * MEMBERS_MAX;

/// Which cluster a command is about.
#[derive(Clone, Debug, clap::Args)]
pub struct Target {
    /// HTTP address of any replica, or several, given again or with commas between: one that answers is
    /// enough [default: 127.0.0.1:7480, or what --dir says]
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "dir", value_delimiter = ',',
          value_parser = reachable_argument)]
    addr: Vec<String>,
    /// Folder of a cluster started by `quorumwire dev`, or of a server
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsFlags,
}

/// One replica: what it says, or why nothing is known.
#[derive(Clone, Debug)]
pub enum ReplicaView {
    /// Its report.
    Report(Box<Report>),
    /// It could not be asked.
    Unreachable(String),
}

/// What all replicas say.
#[derive(Clone, Debug)]
pub struct ClusterView {
    /// By id; replicas whose id is unknown are in `strangers`.
    pub replicas: BTreeMap<u16, ReplicaView>,
    /// Addresses that did not answer and belong to nobody known.
    pub strangers: BTreeMap<String, String>,
    /// Addresses that cannot be asked so, now or later, and why.
    pub barred: BTreeMap<String, String>,
    /// Addresses at which nobody listens.
    pub closed: BTreeSet<String>,
}

impl Target {
    /// The HTTP addresses it names, with the replica's id where that is known.
    pub fn addresses(&self) -> anyhow::Result<Vec<(Option<u16>, String)>> {
        self.tls.apply()?; // whoever asks begins here
        if !self.addr.is_empty() {
            return Ok(self.addr.iter().map(|addr| (None, addr.clone())).collect());
        }
        let Some(dir) = &self.dir else {
            return Ok(vec![(None, "127.0.0.1:7480".to_owned())]);
        };
        if let Some(recorded) = ClusterRecord::read(dir)? {
            let places = recorded.replicas.into_iter();
            return Ok(places.map(|place| (Some(place.id), place.http)).collect());
        }
        Ok(vec![(None, read_http_address(dir)?)])
    }
}

fn read_http_address(dir: &Path) -> anyhow::Result<String> {
    let path = dir.join(HTTP_ADDRESS_FILE);
    let mut text = String::new();
    let limit = ADDRESS_BYTES_MAX as u64 + 1;
    std::fs::File::open(&path)
        .and_then(|file| file.take(limit).read_to_string(&mut text))
        .with_context(|| {
            format!(
                "{} is the folder of no cluster and of no server: reading {}",
                dir.display(),
                path.display()
            )
        })?;
    Ok(text.trim().to_owned())
}

impl ClusterView {
    /// The same as [`Self::gather`]; who does not answer is waited for, and that is said.
    pub fn gather_patiently(target: &Target) -> anyhow::Result<Self> {
        let waits = || "waiting for replicas to answer".to_owned();
        while_doing(waits, || Self::gather(target))
    }

    /// Asks every replica the target names, and all members these know.
    pub fn gather(target: &Target) -> anyhow::Result<Self> {
        Ok(Self::gather_from(target.addresses()?, ask::REPORT_TIMEOUT))
    }

    /// The same from these addresses; each may take so long to answer.
    pub fn gather_from(mut next: Vec<(Option<u16>, String)>, timeout: Duration) -> Self {
        let mut view = Self {
            replicas: BTreeMap::new(),
            strangers: BTreeMap::new(),
            barred: BTreeMap::new(),
            closed: BTreeSet::new(),
        };
        let mut asked = BTreeSet::new();
        while !next.is_empty() && asked.len() < ASKED_MAX {
            next.retain(|(_, address)| asked.insert(address.clone()));
            view.ask_all(&next, timeout);
            next = view.unasked(&asked);
        }
        view.add_silent_members();
        view
    }

    /// Asks all of them at once.
    fn ask_all(&mut self, addresses: &[(Option<u16>, String)], timeout: Duration) {
        let answers: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = addresses
                .iter()
                .map(|(_, address)| scope.spawn(move || ask::report(address, timeout)))
                .collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined.collect()
        });
        for ((id, address), answer) in addresses.iter().zip(answers) {
            let answer = answer.expect("asking does not panic");
            if let Err(error) = &answer
                && error.is_final()
            {
                self.barred.insert(address.clone(), error.to_string());
            }
            let is_refused = |error: &AskError| {
                matches!(
                    error,
                    AskError::Unreachable {
                        is_refused: true,
                        ..
                    }
                )
            };
            if answer.as_ref().is_err_and(is_refused) {
                self.closed.insert(address.clone());
            }
            match (id, answer) {
                (_, Ok(report)) => {
                    let seen = ReplicaView::Report(Box::new(report.clone()));
                    self.replicas.insert(report.id, seen);
                }
                (Some(id), Err(error)) => {
                    let unreachable = ReplicaView::Unreachable(error.to_string());
                    self.replicas.entry(*id).or_insert(unreachable);
                }
                (None, Err(error)) => {
                    self.strangers.insert(address.clone(), error.to_string());
                }
            }
        }
    }

    /// Members known by a report and not asked yet.
    fn unasked(&self, asked: &BTreeSet<String>) -> Vec<(Option<u16>, String)> {
        let mut addresses = BTreeMap::new();
        // Who waits to be taken in knows no members, but one of them.
        let met = self.reports().filter_map(|report| report.met_http.clone());
        addresses.extend(
            met.filter(|http| !asked.contains(http))
                .map(|http| (http, None)),
        );
        for member in self.members() {
            let known = matches!(self.replicas.get(&member.id), Some(ReplicaView::Report(_)));
            if let Some(http) = member.http.as_ref()
                && !known
                && !asked.contains(http)
            {
                addresses.insert(http.clone(), Some(member.id));
            }
        }
        let room = ASKED_MAX.saturating_sub(asked.len());
        let addresses = addresses.into_iter().take(room);
        addresses.map(|(http, id)| (id, http)).collect()
    }

    /// Who was removed knows older members: what it says of them counts only where nobody else says anything.
    fn add_silent_members(&mut self) {
        let has_left = |report: &&Report| report.role == ReplicaRole::Removed;
        let mut of_members: Vec<&Report> = self.reports().filter(|it| !has_left(it)).collect();
        if of_members.iter().all(|report| report.members.is_empty()) {
            of_members = self.reports().collect();
        }
        let members = of_members.into_iter().flat_map(|report| &report.members);
        let ids: Vec<u16> = members.map(|member| member.id).collect();
        for id in ids {
            self.replicas.entry(id).or_insert_with(|| {
                ReplicaView::Unreachable("none of the replicas asked is connected to it".to_owned())
            });
        }
    }

    /// All reports.
    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.replicas.values().filter_map(|seen| match seen {
            ReplicaView::Report(report) => Some(report.as_ref()),
            ReplicaView::Unreachable(_) => None,
        })
    }

    /// All members any report knows; the same one may come several times.
    fn members(&self) -> impl Iterator<Item = &MemberReport> {
        self.reports().flat_map(|report| &report.members)
    }

    /// What is known of a member that cannot be asked itself.
    pub fn member(&self, id: u16) -> Option<&MemberReport> {
        let best = self.best_report().into_iter();
        let mut of = best
            .chain(self.reports())
            .flat_map(|report| &report.members);
        of.find(|member| member.id == id)
    }

    /// The report of the leader of the highest term, if one serves.
    #[must_use]
    pub fn leader(&self) -> Option<&Report> {
        let leaders = self
            .reports()
            .filter(|report| report.role == ReplicaRole::Leader);
        let leader = leaders.max_by_key(|report| report.term)?;
        leader.ready.then_some(leader)
    }

    /// The members as the leader, or else the replica that knows most, sees them.
    #[must_use]
    pub fn best_report(&self) -> Option<&Report> {
        let most = self
            .reports()
            .max_by_key(|report| (report.term, report.commit_index));
        self.leader().or(most)
    }

    /// Whether waiting helps to find a leader: not if nobody can be asked so, or the leader cannot.
    #[must_use]
    pub fn may_find_leader(&self) -> bool {
        let leader = self.best_report().and_then(|report| {
            let leader = report.leader?;
            let mut members = report.members.iter();
            members.find(|member| member.id == leader)?.http.as_ref()
        });
        let is_told = self.reports().next().is_some();
        match leader {
            Some(http) => !self.barred.contains_key(http),
            None => is_told || self.barred.is_empty(),
        }
    }

    /// Whether nobody listens at any of the addresses.
    fn is_nobody_there(&self) -> bool {
        self.reports().next().is_none()
            && self.closed.len() == self.replicas.len() + self.strangers.len()
    }

    /// Why there is no leader, in words.
    #[must_use]
    pub fn why_no_leader(&self) -> String {
        if self.reports().next().is_none() {
            let silent = self.replicas.values().filter_map(|seen| match seen {
                ReplicaView::Report(_) => None,
                ReplicaView::Unreachable(reason) => Some(reason),
            });
            let reasons: Vec<&str> = silent
                .chain(self.strangers.values())
                .map(String::as_str)
                .collect();
            return as_text(&match reasons[..] {
                [reason] => reason.to_owned(),
                _ => format!("no replica answers: {}", reasons.join("; ")),
            });
        }
        let roles: Vec<String> = self
            .replicas
            .iter()
            .map(|(id, seen)| match seen {
                ReplicaView::Report(report) if report.met_http.is_some() => {
                    format!("replica {id} is no member yet")
                }
                ReplicaView::Report(report) => format!("replica {id} is {}", report.role),
                ReplicaView::Unreachable(_) => format!("replica {id} is unreachable"),
            })
            .collect();
        let barred = self.barred.values().map(|why| format!("; {why}"));
        let barred: String = barred.collect();
        let forgotten = self.who_has_forgotten().unwrap_or_default();
        as_text(&format!(
            "no leader serves: {}{barred}{forgotten}",
            roles.join(", ")
        ))
    }

    /// In memory mode, where too few voters remember what they held: how many are needed, and what to do.
    fn who_has_forgotten(&self) -> Option<String> {
        let remembering = self.reports().filter(|it| {
            it.durability == ReportedDurability::Memory
                && it.members.iter().any(|own| own.id == it.id && own.voter)
        });
        let remembering: Vec<&Report> = remembering.collect();
        let most = remembering.iter().max_by_key(|it| it.applied_index)?;
        let voters = most.members.iter().filter(|it| it.voter).map(|it| it.id);
        let voters: Vec<u16> = voters.collect();
        let forgotten = self.reports().filter(|it| {
            it.role == ReplicaRole::Joining && it.members.is_empty() && voters.contains(&it.id)
        });
        let forgotten: Vec<u16> = forgotten.map(|it| it.id).collect();
        let needed = match most.quorum.as_str() {
            "all" => voters.len(),
            _ => voters.len() / 2 + 1,
        };
        if forgotten.is_empty() || remembering.len() >= needed {
            return None;
        }
        Some(format!(
            "; {needed} of {} voters that remember are needed to elect one; of those that answer, replica {} still \
             holds data, and replica {} has forgotten what it held: unless others come back, save the data before \
             you stop anything: quorumwire backup --stale --to FILE --addr {}",
            voters.len(),
            listed(&remembering.iter().map(|it| it.id).collect::<Vec<_>>()),
            listed(&forgotten),
            most.http
        ))
    }
}

/// Ids of replicas, for people.
pub fn listed(ids: &[u16]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(", ")
}

/// What a replica says, for one line of a terminal, which is to be told nothing by it: neither to move nor to
/// begin a line that could be another's.
pub fn as_text(said: &str) -> String {
    said.replace(|c: char| !is_plain(c), "\u{fffd}")
}

/// What all replicas say once one of them leads and serves, which is waited for.
pub fn gather_with_leader(target: &Target) -> anyhow::Result<ClusterView> {
    let patience = Patience::default();
    with_leader(target, patience, |view, _| Ok(view.clone()), |_| false)
}

/// Asks the leader for a change, finding it first and again if it moves. A change that may have been
/// carried out is never asked for twice.
pub fn ask_leader<T: DeserializeOwned>(
    target: &Target,
    path: &str,
    body: &impl Serialize,
) -> anyhow::Result<T> {
    ask_leader_while(target, path, body, try_again)
}

/// The same, with a choice of the answers after which to try again.
pub fn ask_leader_while<T: DeserializeOwned>(
    target: &Target,
    path: &str,
    body: &impl Serialize,
    try_again: impl Fn(&AskError) -> bool,
) -> anyhow::Result<T> {
    let ask = |http: &str| ask::post(http, path, body);
    ask_leader_at(target, Patience::default(), ask, try_again)
}

/// How long somebody waits for a leader, and what can be done instead.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// So long.
    pub lasts: Duration,
    /// Said of it meanwhile, if anything is.
    pub instead: &'static str,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            lasts: LEADER_TIMEOUT,
            instead: "",
        }
    }
}

/// The same for whatever is asked of the leader's HTTP address.
pub fn ask_leader_at<T>(
    target: &Target,
    patience: Patience,
    ask: impl Fn(&str) -> Result<T, AskError>,
    try_again: impl Fn(&AskError) -> bool,
) -> anyhow::Result<T> {
    with_leader(target, patience, |_, http| ask(http), try_again)
}

/// Does something with what all replicas say and the leader's HTTP address, once one of them leads and
/// serves.
fn with_leader<T>(
    target: &Target,
    patience: Patience,
    ask: impl Fn(&ClusterView, &str) -> Result<T, AskError>,
    try_again: impl Fn(&AskError) -> bool,
) -> anyhow::Result<T> {
    let begun = Instant::now();
    let end = begun + patience.lasts;
    let seconds = patience.lasts.as_secs();
    let was_anybody_there = Cell::new(false);
    let waits_for = Words::new("waiting for replicas to answer");
    let again = || loop {
        let view = ClusterView::gather(target)?;
        was_anybody_there.set(was_anybody_there.get() || !view.is_nobody_there());
        let is_hopeless = !was_anybody_there.get() && begun.elapsed() > NOBODY_TIMEOUT;
        let why = match view.leader() {
            None if is_hopeless || !view.may_find_leader() => bail!("{}", view.why_no_leader()),
            None => view.why_no_leader(),
            Some(leader) => {
                waits_for.are(format!("replica {} was asked and works on it", leader.id));
                match ask(&view, &leader.http) {
                    Ok(answer) => return Ok(answer),
                    Err(error) if try_again(&error) => as_text(&error.to_string()),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if Instant::now() > end {
            bail!("not done after {seconds} s: {why}");
        }
        let instead = patience.instead;
        waits_for.are(format!(
            "{why}; waits for a leader for {seconds} s{instead}"
        ));
        thread::sleep(POLL_INTERVAL);
    };
    while_doing(|| waits_for.now(), again)
}

/// Whether nothing has happened and a later try may succeed: the leader moved (421), or something
/// else is in progress (409).
pub fn try_again(error: &AskError) -> bool {
    match error {
        AskError::Unreachable { .. } => true,
        AskError::Barred { .. } | AskError::Unanswered { .. } => false,
        AskError::Refused { status, .. } => matches!(status, 409 | 421),
    }
}

#[cfg(test)]
#[path = "view_test.rs"]
mod tests;

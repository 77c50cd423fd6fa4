//! A switch's view of itself, for people and their tools: what it is, and what it has said last, in words.
//! Whoever asks makes it; the switch's loop has no part in that.
use crate::progress::UNDECIDED;
use crate::status::{Standing, SwitchCounters, SwitchStatus};
use crate::switch::{Durability, Role, SwitchOptions};
use quorumwire_datagrams::SocketCounters;
use quorumwire_fastpath::{PaxosCounters, PaxosReasonCounters};
use quorumwire_interfaces::{Counter, CounterSink};
use quorumwire_paxos::{CoordinatorStanding, owner_of};
use quorumwire_wire::packet::PacketReason;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What [`SwitchReport::kind`] is. A replica's report has no such field.
pub const KIND: &str = "switch";
/// A switch that has said nothing for so long hangs.
pub const SILENCE_MAX: Duration = Duration::from_secs(2);
/// What a plane counts, and no kind of plane declares because no replica's plane does.
const OF_BOXES: Counter = Counter {
    name: "instances_assigned",
    help: "Values that the data plane of a coordinator gave an instance by itself",
};

/// What of a switch stays as it is.
#[derive(Clone, Debug)]
pub struct SwitchIdentity {
    deployment: String,
    role: Role,
    number: u8,
    address: Option<SocketAddr>,
    /// Where it listens, if that is elsewhere.
    elsewhere: Option<SocketAddr>,
    durability: Durability,
    plane: &'static str,
    /// What its kind of plane counts.
    of_plane: BTreeSet<&'static str>,
    begun: Instant,
}

/// Instances that can be open.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct WindowReport {
    /// How many.
    pub instances: u64,
    /// The first that is not forgotten.
    pub first_open: u64,
    /// Of a coordinator: what the next value gets. Of an acceptor: behind the highest that it has voted for.
    pub next_instance: u64,
    /// How many more values have room.
    pub free: u64,
    /// The learner that has checkpointed least, and so fills the window.
    pub filled_by: Option<u8>,
    /// Up to where it has.
    pub checkpointed: Option<u64>,
}

/// Where the common case runs.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct SwitchPlaneReport {
    /// As the option calls it.
    pub name: String,
    /// `process`: the switch's process takes all packets; `engaged`: the plane takes what is common by
    /// itself.
    pub state: String,
    /// What is wrong with it.
    pub trouble: Option<String>,
}

/// A switch's view of itself. Field names are part of the public interface.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SwitchReport {
    /// [`KIND`].
    pub kind: String,
    /// The deployment's name.
    pub deployment: String,
    /// coordinator or acceptor.
    pub role: String,
    /// Its number among those.
    pub number: u8,
    /// Where it is in the deployment.
    pub address: String,
    /// Which version it runs.
    pub version: String,
    /// Since its process started.
    pub uptime_ms: u64,
    /// What it does: coordinates, asks, backup, retired, same-number or no-round-left; votes or newcomer;
    /// begins before that.
    pub state: String,
    /// A coordinator: whether it gives values their instances.
    pub coordinates: bool,
    /// Who does, as far as it knows.
    pub coordinator: Option<u8>,
    /// A coordinator: the round that it is in, or knows of. An acceptor: the one that it has promised, or
    /// voted in.
    pub round: u64,
    /// An acceptor's life.
    pub life: Option<u64>,
    /// None while its box is off.
    pub window: Option<WindowReport>,
    /// Where the common case runs.
    pub plane: SwitchPlaneReport,
    /// What an acceptor remembers: sync or memory.
    pub durability: Option<String>,
    /// Longest time that making votes durable took once, in microseconds.
    pub longest_sync_us: u64,
    /// Whether it does what it is there for: coordinates, is a backup of somebody who does, or votes.
    pub ready: bool,
    /// It has said nothing for so long.
    pub silent_ms: u64,
    /// What is wrong at this moment.
    pub faults: Vec<String>,
    /// Since its process started, by name.
    pub counters: BTreeMap<String, u64>,
}

impl SwitchIdentity {
    /// That of a switch with these options. Its process has just begun.
    #[must_use]
    pub fn of(options: &SwitchOptions) -> Self {
        let plane = options.plane.as_ref().map(|plane| plane.kind);
        let counted = plane.map_or(&[][..], |kind| kind.counters);
        let own = SocketCounters::DECLARED.iter().chain([&OF_BOXES]);
        let counted = counted.iter().copied().flatten().chain(own);
        Self {
            deployment: options.deployment.name.clone(),
            role: options.role,
            number: options.number,
            address: options.own_address().ok(),
            elsewhere: options
                .listen
                .filter(|_| !options.is_where_known().unwrap_or(true)),
            durability: options.durability,
            plane: plane.map_or("socket", |kind| kind.name),
            of_plane: counted.map(|it| it.name).collect(),
            begun: Instant::now(),
        }
    }
}

/// Each counter that a switch can have, but for those that its kind of plane declares.
pub fn declared_counters(sink: CounterSink<'_>) {
    PaxosCounters::default().each(sink);
    PaxosReasonCounters::default().each(sink);
    SwitchCounters::default().each(sink);
}

/// The one counter of planes that no kind of plane declares.
#[must_use]
pub fn declared_of_planes() -> &'static Counter {
    &OF_BOXES
}

fn in_a_word(standing: Option<Standing>) -> &'static str {
    match standing {
        None => "begins",
        Some(Standing::Votes) => "votes",
        Some(Standing::Newcomer) => "newcomer",
        Some(Standing::Coordinator(standing)) => match standing {
            CoordinatorStanding::Coordinates => "coordinates",
            CoordinatorStanding::Asks => "asks",
            CoordinatorStanding::Backup => "backup",
            CoordinatorStanding::Retired => "retired",
            CoordinatorStanding::SameNumber => "same-number",
            CoordinatorStanding::NoRoundLeft => "no-round-left",
        },
    }
}

fn counts(identity: &SwitchIdentity, status: &SwitchStatus) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut sink = |counter: &'static Counter, count: u64| {
        counts.insert(format!("switch_{}", counter.name), count);
    };
    status.counters.each_and_reasons(&mut sink);
    status.of_software.each(&mut sink);
    let of_plane = status.slow.of_plane.iter();
    let of_plane = of_plane.filter(|(name, _)| identity.of_plane.contains(*name));
    counts.extend(of_plane.map(|(name, count)| (format!("plane_{name}"), *count)));
    status.of_socket.each(&mut |counter, count| {
        counts.insert(format!("plane_{}", counter.name), count);
    });
    counts
}

fn window(role: Role, status: &SwitchStatus) -> Option<WindowReport> {
    if !status.is_on {
        return None;
    }
    let registers = &status.registers;
    let next_instance = match role {
        Role::Coordinator => registers.next_instance,
        Role::Acceptor => registers.highest.max(registers.trimmed) + 1,
    };
    let first_open = registers.trimmed + 1;
    let instances = u64::from(registers.window);
    let free = instances.saturating_sub(next_instance.saturating_sub(first_open));
    Some(WindowReport {
        instances,
        first_open,
        next_instance,
        free,
        filled_by: status.last_checkpoint.map(|it| it.0),
        checkpointed: status.last_checkpoint.map(|it| it.1),
    })
}

fn faults(
    identity: &SwitchIdentity,
    status: &SwitchStatus,
    window: Option<&WindowReport>,
) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(window) = window
        && window.free == 0
    {
        faults.push(match status.last_checkpoint {
            Some((learner, upto)) => {
                format!(
                    "the window is full: learner {learner} has checkpointed up to instance {upto}"
                )
            }
            None => "the window is full: nothing was heard of several learners".to_owned(),
        });
    }
    if status.undecided >= UNDECIDED {
        faults.push(format!(
            "nothing was decided for {} ms, though values are proposed: a majority of acceptors, or every learner, is \
             gone",
            millis(status.undecided)
        ));
    }
    let of_standing = match status.standing {
        Some(Standing::Coordinator(CoordinatorStanding::SameNumber)) => {
            Some("another coordinator has this number")
        }
        Some(Standing::Coordinator(CoordinatorStanding::NoRoundLeft)) => {
            Some("there are no higher rounds")
        }
        Some(Standing::Newcomer | Standing::Votes) if status.of_software.later_lives > 0 => {
            Some("somebody knows of a later life of this acceptor")
        }
        Some(Standing::Coordinator(_) | Standing::Votes | Standing::Newcomer) | None => None,
    };
    faults.extend(of_standing.map(str::to_owned));
    if let Some((acceptor, from)) = status.unreached {
        faults.push(format!(
            "acceptor {acceptor} announces itself from {from}, and does not answer where the deployment's file has it: \
             two have its number, or nothing reaches it there"
        ));
    }
    if let Some(listens) = identity.elsewhere
        && identity.role == Role::Acceptor
        && status.counters.received == 0
        && status.of_socket.received == 0
    {
        let known = identity.address.map_or(String::new(), |it| it.to_string());
        faults.push(format!(
            "nothing has come to {listens}, where it listens: the deployment's file has it at {known}"
        ));
    }
    if status.counters.reason(PacketReason::TwoValues) > 0 {
        faults.push("two values came in one round: two coordinators have one number".to_owned());
    }
    faults.extend(status.slow.surroundings.trouble.clone());
    faults
}

fn millis(lasted: Duration) -> u64 {
    u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX)
}

impl SwitchReport {
    /// What a switch says that has said `status` last.
    #[must_use]
    pub fn new(identity: &SwitchIdentity, status: &SwitchStatus, now: Instant) -> Self {
        let window = window(identity.role, status);
        let standing = status.standing;
        let coordinates = standing == Some(Standing::Coordinator(CoordinatorStanding::Coordinates));
        // Rounds begin above 0; their owner is who asked for them.
        let coordinator = match standing {
            Some(Standing::Coordinator(CoordinatorStanding::Coordinates)) => Some(identity.number),
            Some(Standing::Coordinator(CoordinatorStanding::Backup) | Standing::Votes) => {
                (status.round > 0).then(|| owner_of(status.round))
            }
            Some(Standing::Coordinator(_) | Standing::Newcomer) | None => None,
        };
        let is_backup = standing == Some(Standing::Coordinator(CoordinatorStanding::Backup));
        let said = status.at.unwrap_or(identity.begun);
        let silent = now.saturating_duration_since(said);
        let surroundings = &status.slow.surroundings;
        let is_acceptor = identity.role == Role::Acceptor;
        Self {
            kind: KIND.to_owned(),
            deployment: identity.deployment.clone(),
            role: identity.role.as_str().to_owned(),
            number: identity.number,
            address: identity.address.map_or(String::new(), |it| it.to_string()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_ms: millis(now.saturating_duration_since(identity.begun)),
            state: in_a_word(standing).to_owned(),
            coordinates,
            coordinator,
            round: status.round,
            life: status.life,
            faults: faults(identity, status, window.as_ref()),
            window,
            plane: SwitchPlaneReport {
                name: identity.plane.to_owned(),
                state: if surroundings.is_engaged {
                    "engaged".to_owned()
                } else {
                    "process".to_owned()
                },
                trouble: surroundings.trouble.clone(),
            },
            durability: is_acceptor.then(|| identity.durability.as_str().to_owned()),
            ready: (status.is_on && status.of_software.later_lives == 0)
                || (is_backup && coordinator.is_some()),
            longest_sync_us: status.of_software.sync_longest_us,
            silent_ms: millis(silent),
            counters: counts(identity, status),
        }
    }

    /// What was said as JSON, if a switch has said it.
    ///
    /// # Errors
    /// It is something else.
    pub fn of_json(said: &serde_json::Value) -> Result<Self, serde_json::Error> {
        let report = Self::deserialize(said)?;
        if report.kind == KIND {
            return Ok(report);
        }
        Err(serde_json::Error::custom("it is no switch's"))
    }

    /// Whether its loop still says how it does.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        Duration::from_millis(self.silent_ms) < SILENCE_MAX
    }

    /// What it does, in a sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self {
            role,
            number,
            deployment,
            ..
        } = self;
        let who = match self.coordinator {
            Some(coordinator) if !self.coordinates => {
                format!("; coordinator {coordinator} coordinates, as far as it knows")
            }
            Some(_) => String::new(),
            None => "; it knows of nobody who coordinates".to_owned(),
        };
        format!(
            "{role} {number} of the deployment {deployment}: {}{who}",
            self.state
        )
    }
}

#[cfg(test)]
#[path = "report_test.rs"]
mod tests;

//! What cluster a test asks for. Starts nothing.

use crate::switches;

/// When a replica may say that it has something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// It is on disk.
    Sync,
    /// It is in memory.
    Memory,
}

impl Durability {
    /// As the command line has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Memory => "memory",
        }
    }
}

/// What a follower does with a client's request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnFollower {
    /// Forwards it to the leader.
    Forward,
    /// Refuses it and names the leader.
    Refuse,
}

impl OnFollower {
    /// As the command line has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Refuse => "refuse",
        }
    }
}

/// The plane of a server that was built with the feature `fpga-sim`.
const SIMULATED_GATES: &str = "fpga-sim";
/// How many times fewer operations a cluster with these does than others.
const SLOWNESS_OF_GATES: u32 = 10;
/// The data planes that the environment may name; without it there is none.
const PLANES: [&str; 5] = ["none", "socket", "xdp", "auto", SIMULATED_GATES];
/// What the environment says for [`Tls::Peers`]; `off` is the other word.
const PEERS: &str = "peers";

/// How many times fewer operations are enough of a load, with the planes of this run of the tests.
pub(crate) fn slowness() -> u32 {
    match switches::word(switches::PLANE, &PLANES) {
        SIMULATED_GATES => SLOWNESS_OF_GATES,
        _ => 1,
    }
}

/// What is encrypted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tls {
    /// Nothing.
    Off,
    /// What replicas say to each other.
    Peers,
    /// That, and what is said to clients and over HTTP; servers are started without `--insecure`.
    All,
}

/// What cluster a test wants.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many replicas it starts with, ids 0 and up.
    pub replicas: u16,
    /// How many more may join later.
    pub spares: u16,
    /// The durability of all.
    pub durability: Durability,
    /// What followers do with requests.
    pub on_follower: OnFollower,
    /// Further options of all servers: name without dashes, value.
    pub options: Vec<(&'static str, &'static str)>,
    /// Options of all servers that take no value: name without dashes.
    pub switches: Vec<&'static str>,
    /// The program that they serve; none: they are servers of the store.
    pub serves: Vec<&'static str>,
    /// What these say to clients differs on purpose; else it is an error if it has when the test ends.
    pub outputs_differ: bool,
    /// Which data plane they have, as the option `plane` calls it.
    pub plane: String,
    /// Whether the data planes have IPv6 addresses; everything else has IPv4.
    pub planes_over_ipv6: bool,
    /// What is encrypted.
    pub tls: Tls,
    /// Each replica gets a disk of its own of this many MiB; one directory on the machine's disk if
    /// none is given.
    pub disk_mib: Option<u32>,
}

impl Plan {
    /// A cluster of `replicas` replicas, with the data plane that [`switches::PLANE`] names and else the
    /// server's defaults.
    #[must_use]
    pub fn new(replicas: u16, durability: Durability) -> Self {
        Self {
            replicas,
            spares: 0,
            durability,
            on_follower: OnFollower::Forward,
            options: Vec::new(),
            switches: Vec::new(),
            serves: Vec::new(),
            outputs_differ: false,
            plane: switches::word(switches::PLANE, &PLANES).into(),
            planes_over_ipv6: false,
            tls: match switches::word(switches::TLS, &["off", PEERS]) {
                PEERS => Tls::Peers,
                _ => Tls::Off,
            },
            disk_mib: None,
        }
    }

    /// What the full name of a cluster ends with that is no store.
    pub(crate) fn end_of_name(&self) -> &'static str {
        let has_learners = self.options.iter().any(|(name, _)| *name == "learners");
        match () {
            () if !self.serves.is_empty() => "/run",
            () if has_learners => "/values",
            () => "",
        }
    }

    /// The same with data planes: those over UDP unless the environment names others.
    #[must_use]
    pub fn fast(replicas: u16, durability: Durability) -> Self {
        let mut plan = Self::new(replicas, durability);
        if plan.plane == "none" {
            plan.plane = "socket".into();
        }
        plan
    }

    /// A cluster that keeps its leader although a busy machine stops it for a while now and then. The
    /// first leader comes at once all the same: a cluster's first election waits for no timeout.
    #[must_use]
    pub fn steady(replicas: u16, durability: Durability) -> Self {
        Self {
            options: vec![("election-timeout-ms", "10000")],
            ..Self::new(replicas, durability)
        }
    }
}

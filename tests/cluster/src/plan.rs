//! What cluster a test asks for. Starts nothing.

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

/// The environment variable that names the data plane of all clusters whose test does not choose one:
/// the same tests hold with each.
pub const PLANE_VARIABLE: &str = "QUORUMWIRE_TEST_PLANE";

/// The environment variable that has all clusters whose test does not choose speak TLS between replicas
/// (`peers`): the same tests hold with it.
pub const TLS_VARIABLE: &str = "QUORUMWIRE_TEST_TLS";

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
    /// A cluster of `replicas` replicas, with the data plane that [`PLANE_VARIABLE`] names and else the
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
            plane: std::env::var(PLANE_VARIABLE).unwrap_or_else(|_| "none".into()),
            planes_over_ipv6: false,
            tls: match std::env::var(TLS_VARIABLE).as_deref() {
                Ok("peers") => Tls::Peers,
                Ok(_) | Err(_) => Tls::Off,
            },
            disk_mib: None,
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

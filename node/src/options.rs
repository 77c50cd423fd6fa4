//! What a server is told at its start: every option checked, with its unit. Wrong ones are refused by
//! name; nothing is opened or connected here.
mod address_rules;
mod hosts;
mod origin;
mod refused;
mod resolve;
mod served;
mod table;
mod values;

pub use address_rules::{
    members_at_one_address, parse_members, parse_reachable, reachable_argument,
};
pub use hosts::{Hosts, PROGRAM, VALUES, is_of_program};
pub use origin::Origin;
pub use refused::{Fault, Refused};
#[cfg(test)]
pub(crate) use resolve::resolve_in;
pub use resolve::{Flags, Serves, Value, program_words, resolve, unknown_variables};
pub use served::{
    BY_COMMAND, PROGRAM_OPTIONS, ProgramPort, SaveCommands, ServedOptions, Transport,
};
pub use table::{CONFIG, Kind, Spec, TABLE, Unset, documentation};
pub use values::ValuesOptions;

use crate::planes::{KINDS, KindOptions, MULTICAST, PlaneChoice, PlaneKind, Values};
use crate::tls::{OwnFiles, PeerFiles};
use quorumwire_interfaces::ReplicaId;
use quorumwire_kv::MemoryPolicy;
use quorumwire_wire::limits::VOTERS_MAX;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What an acknowledgement means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// On disk at a majority.
    Sync,
    /// In memory at a majority.
    Memory,
}

/// What a follower does with a client's request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnFollower {
    /// Hand it to the leader.
    Forward,
    /// Refuse it, naming the leader's address.
    Refuse,
}

/// How logs look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// Lines to read.
    Text,
    /// One JSON object per line.
    Json,
}

/// The options of one server, checked. See `docs/configuration.md` for each.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Who this replica is.
    pub id: ReplicaId,
    /// Where it keeps its data.
    pub dir: PathBuf,
    /// Name of the cluster.
    pub cluster: String,
    /// Peer addresses: of the initial members, this replica included; with `join`, of the replicas
    /// to contact.
    pub members: BTreeMap<ReplicaId, String>,
    /// Wait to be added instead of beginning a cluster.
    pub join: bool,
    /// What an acknowledgement means.
    pub durability: Durability,
    /// Where to listen for replicas; port 0 for a free one. Likewise the next two.
    pub listen_peer: SocketAddr,
    /// Where to listen for memcached clients.
    pub listen_memcached: SocketAddr,
    /// Where to listen for Redis clients.
    pub listen_redis: SocketAddr,
    /// Where to listen for clients of the native protocol.
    pub listen_client: SocketAddr,
    /// Serve memcached clients over UDP too, at the same address.
    pub memcached_udp: bool,
    /// The plane may answer reads of memcached clients by itself.
    pub plane_reads: bool,
    /// Where to listen for HTTP.
    pub listen_http: SocketAddr,
    /// What to tell others instead of the listen address, see [`Self::peer_address`]. Likewise the
    /// next two.
    pub advertise_peer: Option<String>,
    /// See [`Self::memcached_address`].
    pub advertise_memcached: Option<String>,
    /// See [`Self::redis_address`].
    pub advertise_redis: Option<String>,
    /// See [`Self::client_address`].
    pub advertise_client: Option<String>,
    /// See [`Self::http_address`].
    pub advertise_http: Option<String>,
    /// Where the common case runs.
    pub plane: PlaneChoice,
    /// Where the data plane listens.
    pub listen_plane: SocketAddr,
    /// The options that only kinds of planes have.
    pub plane_values: Values,
    /// What to tell others to reach the data plane, instead of the listen address.
    pub advertise_plane: Option<SocketAddr>,
    /// The cluster's secret.
    pub secret_file: Option<PathBuf>,
    /// Who may use the ports for clients; none: everybody.
    pub client_auth_file: Option<PathBuf>,
    /// Replicas speak TLS with these; none: in the clear.
    pub peer_tls: Option<PeerFiles>,
    /// Clients and people are spoken to by TLS with these; none: in the clear.
    pub client_tls: Option<OwnFiles>,
    /// The authorities whose certificates clients must show; none: they need not.
    pub client_authorities: Option<PathBuf>,
    /// What a follower does with a client's request.
    pub on_follower: OnFollower,
    /// Silence after which a follower stands for election.
    pub election_timeout: Duration,
    /// How long a voter that has heard the leader gives nobody else a vote.
    pub lease: Duration,
    /// How often an idle leader speaks; less than half of the lease.
    pub heartbeat_interval: Duration,
    /// How far clocks may drift apart, parts per million.
    pub clock_drift_ppm: u32,
    /// Whether a leader may answer reads by its lease; else it asks a majority for each.
    pub lease_reads: bool,
    /// Log size that triggers a snapshot.
    pub snapshot_log_bytes: u64,
    /// Log kept in memory behind a snapshot.
    pub log_tail_bytes: usize,
    /// Most log kept behind a snapshot for followers that catch up by an older one.
    pub log_kept_bytes_max: usize,
    /// Most bytes taken and not committed.
    pub uncommitted_bytes_max: usize,
    /// Size of one log file.
    pub segment_bytes: u64,
    /// Values are kept for learners, in place of a key-value store.
    pub values: Option<ValuesOptions>,
    /// What a cluster whose memory limit was never set is to begin with.
    pub memory: Option<(u64, MemoryPolicy)>,
    /// Most memcached clients at once.
    pub connections_max: usize,
    /// Most memory of clients' requests and answers.
    pub client_buffers_bytes_max: usize,
    /// Ports may be beyond loopback that are not both encrypted and authenticated.
    pub insecure: bool,
    /// Where native clients of a second replicated log connect; none: there is but one. Not in the table: for
    /// tests.
    pub second_group: Option<SocketAddr>,
    /// The program that is served, if that is what is replicated. Not in the table: it stands behind `--`.
    pub served: Option<ServedOptions>,
    /// By how much the scheduling priority is raised.
    pub raise_priority: i32,
    /// How long a replica looks for what it waits for before it sleeps.
    pub busy_poll: Duration,
    /// Whom a server becomes that is started as root.
    pub user: Option<String>,
    /// How long a stopping replica may finish.
    pub drain_timeout: Duration,
    /// Least important messages to log.
    pub log_level: tracing::Level,
    /// How logs look.
    pub log_format: LogFormat,
}

impl ServerOptions {
    /// Reads flags, the process's environment and the configuration file.
    pub fn load(flags: &Flags) -> Result<Self, Refused> {
        Self::from_values(&resolve(flags, &|variable| std::env::var_os(variable))?)
    }

    /// Reads a configuration file alone, for a replica inside a program whose environment is its own affair.
    pub fn load_file(path: &Path) -> Result<Self, Refused> {
        let config = ("config", path.display().to_string());
        let flags = Flags([config].into(), Serves::Store);
        Self::from_values(&resolve(&flags, &|_| None)?)
    }

    /// Checks every value and what they mean together.
    pub fn from_values(values: &[Value]) -> Result<Self, Refused> {
        let given = GivenValues(values);
        let options = Self {
            id: ReplicaId(given.number("id")?),
            dir: PathBuf::from(given.text("dir")?),
            cluster: given.text("cluster")?.to_owned(),
            members: given.members("members")?,
            join: given.switch("join")?,
            durability: given.choice("durability", |word| match word {
                "sync" => Some(Durability::Sync),
                "memory" => Some(Durability::Memory),
                _ => None,
            })?,
            listen_peer: given.listen("listen-peer")?,
            listen_memcached: given.listen("listen-memcached")?,
            listen_redis: given.listen("listen-redis")?,
            listen_client: given.listen("listen-client")?,
            memcached_udp: given.switch("memcached-udp")?,
            plane_reads: given.choice("plane-reads", |word| match word {
                "on" => Some(true),
                "off" => Some(false),
                _ => None,
            })?,
            listen_http: given.listen("listen-http")?,
            advertise_peer: given.reachable("advertise-peer")?,
            advertise_memcached: given.reachable("advertise-memcached")?,
            advertise_redis: given.reachable("advertise-redis")?,
            advertise_client: given.reachable("advertise-client")?,
            advertise_http: given.reachable("advertise-http")?,
            plane: given.choice("plane", PlaneChoice::named)?,
            listen_plane: given.listen("listen-plane")?,
            plane_values: given.plane_values()?,
            advertise_plane: given.address("advertise-plane")?,
            secret_file: given.optional("secret-file").map(PathBuf::from),
            client_auth_file: given.optional("client-auth-file").map(PathBuf::from),
            peer_tls: given.peer_tls()?,
            client_tls: given.client_tls()?,
            client_authorities: given.path("client-tls-ca"),
            on_follower: given.choice("on-follower", |word| match word {
                "forward" => Some(OnFollower::Forward),
                "refuse" => Some(OnFollower::Refuse),
                _ => None,
            })?,
            election_timeout: Duration::from_millis(given.number("election-timeout-ms")?),
            lease: Duration::from_millis(given.number("lease-ms")?),
            heartbeat_interval: Duration::from_millis(given.number("heartbeat-ms")?),
            clock_drift_ppm: given.number("clock-drift-ppm")?,
            lease_reads: given.choice("reads", |word| match word {
                "lease" => Some(true),
                "read-index" => Some(false),
                _ => None,
            })?,
            snapshot_log_bytes: given.number::<u64>("snapshot-log-mib")? << 20,
            log_tail_bytes: given.number::<usize>("log-tail-mib")? << 20,
            log_kept_bytes_max: given.number::<usize>("log-kept-mib")? << 20,
            uncommitted_bytes_max: given.number::<usize>("uncommitted-mib")? << 20,
            segment_bytes: given.number::<u64>("segment-mib")? << 20,
            values: given.values()?,
            memory: given.memory()?,
            connections_max: given.number("connections-max")?,
            client_buffers_bytes_max: given.number::<usize>("client-buffers-mib")? << 20,
            insecure: given.switch("insecure")?,
            second_group: None,
            served: None,
            raise_priority: given.number("raise-priority")?,
            busy_poll: Duration::from_micros(given.number("busy-poll-us")?),
            user: given.optional("user").map(str::to_owned),
            drain_timeout: Duration::from_millis(given.number("drain-timeout-ms")?),
            log_level: given.choice("log-level", |word| word.parse().ok())?,
            log_format: given.choice("log-format", |word| match word {
                "text" => Some(LogFormat::Text),
                "json" => Some(LogFormat::Json),
                _ => None,
            })?,
        };
        options.check_together(&given)?;
        Ok(options)
    }

    /// What others are told to reach this replica's peer port, which was bound to `bound`.
    #[must_use]
    pub(crate) fn peer_address(&self, bound: SocketAddr) -> String {
        let advertised = self.advertise_peer.as_ref();
        advertised
            .or_else(|| self.members.get(&self.id))
            .map_or_else(|| bound.to_string(), Clone::clone)
    }

    /// What others are told to reach the memcached port, which was bound to `bound`.
    #[must_use]
    pub(crate) fn memcached_address(&self, bound: SocketAddr) -> String {
        let advertised = self.advertise_memcached.clone();
        advertised.unwrap_or_else(|| bound.to_string())
    }

    /// What others are told to reach the Redis port, which was bound to `bound`.
    #[must_use]
    pub(crate) fn redis_address(&self, bound: SocketAddr) -> String {
        let advertised = self.advertise_redis.clone();
        advertised.unwrap_or_else(|| bound.to_string())
    }

    /// What others are told to reach the port of the native protocol, which was bound to `bound`.
    #[must_use]
    pub(crate) fn client_address(&self, bound: SocketAddr) -> String {
        let advertised = self.advertise_client.clone();
        advertised.unwrap_or_else(|| bound.to_string())
    }

    /// What others are told to reach the HTTP port, which was bound to `bound`.
    #[must_use]
    pub(crate) fn http_address(&self, bound: SocketAddr) -> String {
        let advertised = self.advertise_http.clone();
        advertised.unwrap_or_else(|| bound.to_string())
    }

    /// What the options say of a kind of planes.
    #[must_use]
    pub fn options_of(&self, kind: &PlaneKind) -> KindOptions<'_> {
        KindOptions {
            demand: self.plane.wants(kind),
            listen: self.listen_plane,
            listen_option: "listen-plane",
            values: &self.plane_values,
        }
    }

    fn check_together(&self, given: &GivenValues<'_>) -> Result<(), Refused> {
        if self.lease > self.election_timeout {
            let allowed = format!(
                "at most election-timeout-ms, which is {}",
                self.election_timeout.as_millis()
            );
            return Err(given.refused("lease-ms", allowed));
        }
        if self.heartbeat_interval * 2 >= self.lease {
            let allowed = format!(
                "less than half of lease-ms, which is {}",
                self.lease.as_millis()
            );
            return Err(given.refused("heartbeat-ms", allowed));
        }
        if !self.join && !self.members.contains_key(&self.id) {
            let allowed = format!(
                "a list that contains this replica, {}=HOST:PORT (or `join`)",
                self.id
            );
            return Err(given.refused("members", allowed));
        }
        if !self.join && self.members.len() > VOTERS_MAX {
            return Err(given.refused("members", Kind::Members.allowed()));
        }
        self.check_exposed(given)?;
        self.check_different(given)?;
        if self.plane != PlaneChoice::None && self.secret_file.is_none() {
            let allowed = "a file made by `quorumwire keys new`: a data plane needs one";
            return Err(given.refused("secret-file", allowed.to_owned()));
        }
        for kind in KINDS {
            let checked = (kind.check)(&self.options_of(kind));
            checked.map_err(|wrong| given.refused(wrong.option, wrong.allowed))?;
        }
        if self.memcached_udp && self.client_auth_file.is_some() {
            let allowed = "false with a `client-auth-file`: nobody can say over UDP who they are";
            return Err(given.refused("memcached-udp", allowed));
        }
        if self.memcached_udp && self.client_tls.is_some() {
            let allowed = "false with `client-tls`: datagrams are not encrypted";
            return Err(given.refused("memcached-udp", allowed));
        }
        let advertised = self.advertise_plane.map(|address| address.to_string());
        self.check_reachable(
            given,
            "advertise-plane",
            self.listen_plane,
            advertised.as_ref(),
        )?;
        let own_entry = self.members.get(&self.id);
        self.check_reachable(
            given,
            "advertise-peer",
            self.listen_peer,
            self.advertise_peer.as_ref().or(own_entry),
        )?;
        self.check_reachable(
            given,
            "advertise-memcached",
            self.listen_memcached,
            self.advertise_memcached.as_ref(),
        )?;
        self.check_reachable(
            given,
            "advertise-redis",
            self.listen_redis,
            self.advertise_redis.as_ref(),
        )?;
        self.check_reachable(
            given,
            "advertise-client",
            self.listen_client,
            self.advertise_client.as_ref(),
        )?;
        self.check_reachable(
            given,
            "advertise-http",
            self.listen_http,
            self.advertise_http.as_ref(),
        )
    }

    /// Every option that names an address to listen at, and that address.
    pub(crate) const fn listen_addresses(&self) -> [(&'static str, SocketAddr); 6] {
        [
            ("listen-plane", self.listen_plane),
            ("listen-peer", self.listen_peer),
            ("listen-memcached", self.listen_memcached),
            ("listen-redis", self.listen_redis),
            ("listen-client", self.listen_client),
            ("listen-http", self.listen_http),
        ]
    }

    /// Each port of one server needs an address of its own.
    fn check_different(&self, given: &GivenValues<'_>) -> Result<(), Refused> {
        let plane_runs = self.plane != PlaneChoice::None;
        let is_udp = |name: &str| match name {
            "listen-plane" => plane_runs,
            "listen-memcached" => self.memcached_udp,
            _ => false,
        };
        let all = self.listen_addresses();
        for (place, (name, address)) in all.iter().enumerate() {
            let shares = |(other, _): &&(&str, SocketAddr)| {
                let by_tcp = *name != "listen-plane" && *other != "listen-plane";
                by_tcp || (is_udp(name) && is_udp(other))
            };
            let mut before = all[..place].iter().filter(shares);
            let taken = before.find(|(_, other)| address_rules::collide(*address, *other));
            if let Some((other, taken)) = taken {
                let allowed = format!("an address of its own: `{other}` is {taken}");
                return Err(given.refused(name, allowed));
            }
        }
        Ok(())
    }

    /// Beyond loopback, what is not encrypted and authenticated must be asked for by name.
    fn check_exposed(&self, given: &GivenValues<'_>) -> Result<(), Refused> {
        if given.switch("insecure")? {
            return Ok(());
        }
        let knows_clients = self.client_auth_file.is_some() || self.client_authorities.is_some();
        let has_accounts = self.client_tls.is_some() && knows_clients;
        let for_clients = "a loopback address, unless `client-tls` is on and `client-auth-file` or \
                           `client-tls-ca` given; --insecure lets anybody who reaches it read and change everything";
        let rules = [
            (
                "listen-peer",
                self.listen_peer,
                self.peer_tls.is_some(),
                "a loopback address, unless `tls-ca`, `tls-cert` and `tls-key` are given; --insecure lets \
                 anybody who reaches it speak as a replica",
            ),
            (
                "listen-memcached",
                self.listen_memcached,
                has_accounts,
                for_clients,
            ),
            ("listen-redis", self.listen_redis, has_accounts, for_clients),
            (
                "listen-client",
                self.listen_client,
                has_accounts,
                for_clients,
            ),
            (
                "listen-http",
                self.listen_http,
                self.client_tls.is_some() && self.peer_tls.is_some(),
                "a loopback address, unless `client-tls` is on and `tls-ca` given; --insecure lets anybody \
                 who reaches it change members",
            ),
            (
                // Its packets are authenticated by the secret, and in the clear: whoever takes a plane
                // has been told so.
                "listen-plane",
                self.listen_plane,
                self.plane == PlaneChoice::None || self.secret_file.is_some(),
                "a loopback address, unless `secret-file` is given",
            ),
        ];
        for (name, listen, is_safe, allowed) in rules {
            if !is_safe && !listen.ip().is_loopback() {
                return Err(given.refused(name, allowed));
            }
        }
        Ok(())
    }

    /// `0.0.0.0` may be listened on, but nobody can connect to it.
    #[allow(clippy::unused_self)]
    fn check_reachable(
        &self,
        given: &GivenValues<'_>,
        name: &str,
        listen: SocketAddr,
        advertised: Option<&String>,
    ) -> Result<(), Refused> {
        if advertised.is_none() && listen.ip().is_unspecified() {
            let allowed = format!(
                "HOST:PORT that others can connect to; it must be given when listening on {listen}"
            );
            return Err(given.refused(name, allowed));
        }
        Ok(())
    }
}

/// What is wrong with each value alone.
fn faults_alone(values: &[Value]) -> impl Iterator<Item = Refused> {
    let given = GivenValues(values);
    let names = values.iter().map(|value| value.spec.name);
    names.filter_map(move |name| given.check_alone(name).err())
}

/// The values of all options, to be read one by one.
struct GivenValues<'a>(&'a [Value]);

impl GivenValues<'_> {
    fn value(&self, name: &str) -> &Value {
        let value = self.0.iter().find(|value| value.spec.name == name);
        value.unwrap_or_else(|| panic!("{name} is an option of the table"))
    }

    fn refused(&self, name: &str, allowed: impl Into<String>) -> Refused {
        let value = self.value(name);
        let given = value.text.clone().unwrap_or_default();
        let mut refused = Refused::of(name, value.origin.clone(), given, allowed);
        refused.line = value.line;
        refused
    }

    /// What is wrong with this option's value alone, whatever the others are.
    fn check_alone(&self, name: &str) -> Result<(), Refused> {
        let value = self.value(name);
        if value.text.is_none() && !matches!(value.spec.unset, Unset::Refused) {
            return Ok(());
        }
        match value.spec.kind {
            Kind::Number { .. } => self.number::<u64>(name).map(drop),
            Kind::Switch => self.switch(name).map(drop),
            Kind::Choice(_) => self.choice(name, |_| Some(())),
            Kind::Text { .. } => self.text(name).map(drop),
            // Those that may be left out are not looked at before they are opened.
            Kind::Path => match value.spec.unset {
                Unset::Refused => self.text(name).map(drop),
                Unset::Value(_) | Unset::Otherwise(_) => Ok(()),
            },
            Kind::Listen => self.listen(name).map(drop),
            Kind::Reachable => self.reachable(name).map(drop),
            Kind::Address => self.address(name).map(drop),
            Kind::Multicast => self.multicast(name).map(drop),
            Kind::Members => self.members(name).map(drop),
        }
    }

    fn refused_value(&self, name: &str) -> Refused {
        self.refused(name, self.value(name).spec.kind.allowed())
    }

    /// The text of an option that has one; within the limits of texts.
    fn text(&self, name: &str) -> Result<&str, Refused> {
        let value = self.value(name);
        let text = value.text.as_deref().unwrap_or_default();
        let bytes_max = match value.spec.kind {
            Kind::Text { bytes_max } => bytes_max,
            Kind::Number { .. }
            | Kind::Switch
            | Kind::Choice(_)
            | Kind::Path
            | Kind::Listen
            | Kind::Reachable
            | Kind::Address
            | Kind::Multicast
            | Kind::Members => usize::MAX,
        };
        if text.is_empty() || text.len() > bytes_max {
            return Err(self.refused_value(name));
        }
        Ok(text)
    }

    fn multicast(&self, name: &str) -> Result<Option<Ipv4Addr>, Refused> {
        let Some(text) = self.optional(name) else {
            return Ok(None);
        };
        let parsed = text.parse().ok();
        let group = parsed.filter(|ip| MULTICAST.contains(ip));
        group.map(Some).ok_or_else(|| self.refused_value(name))
    }

    fn number<T: TryFrom<u64>>(&self, name: &str) -> Result<T, Refused> {
        let refused = || self.refused_value(name);
        let Kind::Number { min, max, .. } = self.value(name).spec.kind else {
            panic!("{name} is a number");
        };
        let number: u64 = self.text(name)?.parse().map_err(|_| refused())?;
        if !(min..=max).contains(&number) {
            return Err(refused());
        }
        T::try_from(number).map_err(|_| refused())
    }

    /// Those of planes, each checked by itself.
    fn plane_values(&self) -> Result<Values, Refused> {
        let names = KINDS.iter().flat_map(|kind| kind.options).map(|it| it.name);
        let checked = names.map(|name| {
            self.check_alone(name)?;
            Ok(self.optional(name).map(|text| (name, text.to_owned())))
        });
        checked.filter_map(Result::transpose).collect()
    }

    fn optional_number<T: TryFrom<u64>>(&self, name: &str) -> Result<Option<T>, Refused> {
        let text = self.optional(name);
        text.map(|_| self.number(name)).transpose()
    }

    /// Nothing, unless at least one of both options asks for something.
    fn memory(&self) -> Result<Option<(u64, MemoryPolicy)>, Refused> {
        let limit: Option<u64> = self.optional_number("memory-limit-mib")?;
        let policy = self.choice("memory-policy", MemoryPolicy::named)?;
        let is_asked = limit.is_some() || policy != MemoryPolicy::default();
        Ok(is_asked.then(|| (limit.unwrap_or(0) << 20, policy)))
    }

    /// Nothing, unless there are learners.
    fn values(&self) -> Result<Option<ValuesOptions>, Refused> {
        let kept_bytes_max = self.number::<u64>("values-mib")? << 20;
        if self.optional("learners").is_none() {
            return Ok(None);
        }
        let learners = values::parse_learners(self.text("learners")?);
        let learners =
            learners.ok_or_else(|| self.refused("learners", values::LEARNERS_ALLOWED))?;
        if self.switch("memcached-udp")? {
            let allowed = "false with `learners`: no memcached client is served then";
            return Err(self.refused("memcached-udp", allowed));
        }
        Ok(Some(ValuesOptions {
            learners,
            kept_bytes_max,
        }))
    }

    fn switch(&self, name: &str) -> Result<bool, Refused> {
        let parsed = self.text(name)?.parse();
        parsed.map_err(|_| self.refused_value(name))
    }

    fn choice<T>(&self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, Refused> {
        let Kind::Choice(words) = self.value(name).spec.kind else {
            panic!("{name} is a choice");
        };
        let given = self.text(name)?;
        let known = words.iter().find(|word| **word == given);
        known
            .and_then(|word| parse(word))
            .ok_or_else(|| self.refused_value(name))
    }

    fn listen(&self, name: &str) -> Result<SocketAddr, Refused> {
        let parsed = address_rules::parse_listen(self.text(name)?);
        parsed.map_err(|why| match why {
            None => self.refused_value(name),
            Some(why) => {
                let allowed = self.value(name).spec.kind.allowed();
                self.refused(name, format!("{allowed}; {why}"))
            }
        })
    }

    fn reachable(&self, name: &str) -> Result<Option<String>, Refused> {
        let text = self.value(name).text.as_deref();
        let parsed = text.map(|text| parse_reachable(text).ok_or_else(|| self.refused_value(name)));
        parsed.transpose()
    }

    fn address(&self, name: &str) -> Result<Option<SocketAddr>, Refused> {
        let parse = |text: String| text.parse().map_err(|_| self.refused_value(name));
        self.reachable(name)?.map(parse).transpose()
    }

    /// The text of an option that need not be given.
    fn optional(&self, name: &str) -> Option<&str> {
        self.value(name).text.as_deref()
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.optional(name).map(PathBuf::from)
    }

    /// All three files, or none.
    fn peer_tls(&self) -> Result<Option<PeerFiles>, Refused> {
        let names = ["tls-ca", "tls-cert", "tls-key"];
        match names.map(|name| self.path(name)) {
            [None, None, None] => Ok(None),
            [Some(authorities), Some(certificate), Some(key)] => Ok(Some(PeerFiles {
                authorities,
                own: OwnFiles { certificate, key },
            })),
            files => {
                let missing = names.iter().zip(&files).find(|(_, file)| file.is_none());
                let (name, _) = missing.expect("some are given and not all");
                let allowed =
                    "a file: `tls-ca`, `tls-cert` and `tls-key` are given together or not at all";
                Err(self.refused(name, allowed))
            }
        }
    }

    /// The files of the ports for clients, which are those between replicas unless given.
    fn client_tls(&self) -> Result<Option<OwnFiles>, Refused> {
        let names = ["client-tls-cert", "client-tls-key"];
        let all = [names[0], names[1], "client-tls-ca"];
        let is_on = self.choice("client-tls", |word| Some(word == "on"))?;
        match names.map(|name| self.path(name)) {
            _ if !is_on => match all.iter().find(|name| self.optional(name).is_some()) {
                Some(name) => Err(self.refused(name, "nothing, unless `client-tls` is on")),
                None => Ok(None),
            },
            [Some(certificate), Some(key)] => Ok(Some(OwnFiles { certificate, key })),
            [None, None] => match self.peer_tls()? {
                Some(files) => Ok(Some(files.own)),
                None => {
                    Err(self.refused(names[0], "a file, or one in `tls-cert`: `client-tls` is on"))
                }
            },
            [None, Some(_)] => Err(self.refused(names[0], "a file: there is a key for it")),
            [Some(_), None] => Err(self.refused(names[1], "a file: there is a certificate for it")),
        }
    }

    fn members(&self, name: &str) -> Result<BTreeMap<ReplicaId, String>, Refused> {
        let members = parse_members(self.text(name)?).ok_or_else(|| self.refused_value(name))?;
        match members_at_one_address(&members) {
            None => Ok(members),
            Some((one, other)) => {
                let allowed =
                    format!("each address once; replicas {one} and {other} are given the same");
                Err(self.refused(name, allowed))
            }
        }
    }
}

#[cfg(test)]
#[path = "options_test.rs"]
mod tests;

//! The one list of the server's options: flags, environment variables, keys of the configuration file,
//! help texts and `docs/configuration.md` all come from here. Nothing is read or checked here.
use super::PROGRAM_OPTIONS;
use crate::planes::{self, KINDS, MULTICAST};
use quorumwire_plane_door::{OptionKind, PlaneOption};
use quorumwire_wire::limits::{ADDRESS_BYTES_MAX, CLUSTER_NAME_BYTES_MAX, MEMBERS_MAX, VOTERS_MAX};
use std::fmt::Write as _;
use std::sync::LazyLock;

/// One option of `quorumwire server`.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name, as in `--name`.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What holds when it is not given.
    pub unset: Unset,
    /// What it is for: one or two sentences.
    pub help: &'static str,
}

/// What values an option takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number between two bounds, both allowed.
    Number {
        /// The lowest value.
        min: u64,
        /// The highest value.
        max: u64,
        /// What is counted; empty for a name that is a number.
        unit: &'static str,
    },
    /// true or false; the flag alone means true.
    Switch,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// Text that is not empty and at most so many bytes long.
    Text {
        /// The limit.
        bytes_max: usize,
    },
    /// A path; a relative one begins at the working directory.
    Path,
    /// An IP address and port to listen on.
    Listen,
    /// A host and port that others can connect to.
    Reachable,
    /// An IP address and port that others can send to.
    Address,
    /// An IPv4 address at which several hosts hear.
    Multicast,
    /// Replicas with their addresses.
    Members,
}

/// What holds when an option is not given.
#[derive(Clone, Copy, Debug)]
pub enum Unset {
    /// Nothing: it must be given.
    Refused,
    /// This value, as it could have been given.
    Value(&'static str),
    /// What the text says.
    Otherwise(&'static str),
}

/// The option that names the configuration file. It is not a key of that file.
pub const CONFIG: Spec = Spec {
    name: "config",
    kind: Kind::Path,
    unset: Unset::Otherwise("no file is read"),
    help: "Configuration file (TOML) to take options from.",
};

const DURABILITIES: &[&str] = &["sync", "memory"];
const FOLLOWER_ANSWERS: &[&str] = &["forward", "refuse"];
const LOG_LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];
/// Longest name of a user that Linux distributions make; two numbers are shorter.
const USER_BYTES_MAX: usize = 32;
/// So many learners as there may be, as numbers of five digits, commas and blanks between them.
const LEARNERS_BYTES_MAX: usize = 64 * 7;
const LOG_FORMATS: &[&str] = &["text", "json"];

const fn number(min: u64, max: u64, unit: &'static str) -> Kind {
    Kind::Number { min, max, unit }
}

/// All other options, in the order they are shown.
pub static TABLE: LazyLock<Vec<Spec>> = LazyLock::new(|| {
    let of_kinds = KINDS.iter().flat_map(|kind| kind.options);
    let mut all = BEFORE_PLANES.to_vec();
    all.push(plane());
    all.extend_from_slice(OF_ALL_PLANES);
    all.extend(of_kinds.map(Spec::from));
    all.extend_from_slice(BEHIND_PLANES);
    all
});

/// The option that chooses among the kinds of planes. Made once: its texts stay.
fn plane() -> Spec {
    let of_kinds = KINDS.iter().rev();
    let of_kinds = of_kinds.map(|kind| format!(" `{}`: {}.", kind.name, kind.help));
    let help = format!(
        "Where the common case runs. `none`: in the server, over TCP.{} `auto`: in the fastest plane that can run \
         here; the log and `quorumwire status` say which, and why not the others. Every plane needs a `secret-file`, \
         so `none` is the default. A replica without a plane can be in a cluster with planes.",
        of_kinds.collect::<String>()
    );
    Spec {
        name: "plane",
        kind: Kind::Choice(planes::words().leak()),
        unset: Unset::Value("none"),
        help: help.leak(),
    }
}

impl From<&PlaneOption> for Spec {
    fn from(option: &PlaneOption) -> Self {
        Self {
            name: option.name,
            kind: match option.kind {
                OptionKind::Number { min, max } => number(min, max, ""),
                OptionKind::Choice(words) => Kind::Choice(words),
                OptionKind::Text { bytes_max } => Kind::Text { bytes_max },
                OptionKind::Multicast => Kind::Multicast,
            },
            unset: match option.unset {
                quorumwire_plane_door::Unset::Value(text) => Unset::Value(text),
                quorumwire_plane_door::Unset::Otherwise(text) => Unset::Otherwise(text),
            },
            help: option.help,
        }
    }
}

const BEFORE_PLANES: &[Spec] = &[
    Spec {
        name: "id",
        kind: number(0, 65_535, ""),
        unset: Unset::Refused,
        help: "Name of this replica, unique in its cluster.",
    },
    Spec {
        name: "dir",
        kind: Kind::Path,
        unset: Unset::Refused,
        help: "Folder for this replica's log, snapshots and state; made if missing, inside a folder that exists.",
    },
    Spec {
        name: "cluster",
        kind: Kind::Text {
            bytes_max: CLUSTER_NAME_BYTES_MAX,
        },
        unset: Unset::Value("quorumwire"),
        help: "Name of the cluster. Replicas of differently named clusters refuse each other.",
    },
    Spec {
        name: "members",
        kind: Kind::Members,
        unset: Unset::Refused,
        help: "The members a new cluster begins with, this replica included; with `join`, those \
               of the running cluster, since its leader must be among them. Once there is a cluster, its own list of members counts.",
    },
    Spec {
        name: "join",
        kind: Kind::Switch,
        unset: Unset::Value("false"),
        help: "Begin no cluster; wait until `quorumwire member add` takes this replica in.",
    },
    Spec {
        name: "durability",
        kind: Kind::Choice(DURABILITIES),
        unset: Unset::Value("sync"),
        help: "What an acknowledgement means: `sync`, the write is on disk at a majority; `memory`, it \
               is in memory at a majority, and gone when a majority stops at once. To change it, \
               restart one replica after the other, each with an emptied folder: docs/operating.md.",
    },
    Spec {
        name: "listen-peer",
        kind: Kind::Listen,
        unset: Unset::Value("127.0.0.1:7400"),
        help: "Where other replicas connect. Port 0 takes a free one.",
    },
    Spec {
        name: "listen-memcached",
        kind: Kind::Listen,
        unset: Unset::Value("127.0.0.1:11211"),
        help: "Where memcached clients connect. Port 0 takes a free one.",
    },
    Spec {
        name: "listen-redis",
        kind: Kind::Listen,
        unset: Unset::Value("127.0.0.1:6379"),
        help: "Where Redis clients connect. Port 0 takes a free one.",
    },
    Spec {
        name: "listen-client",
        kind: Kind::Listen,
        unset: Unset::Value("127.0.0.1:7402"),
        help: "Where clients of the cluster's native protocol connect, such as the Rust library \
               `quorumwire-client`. Each of their commands is carried out once, however often it is \
               sent. Port 0 takes a free one.",
    },
    Spec {
        name: "memcached-udp",
        kind: Kind::Switch,
        unset: Unset::Value("false"),
        help: "Serve memcached clients over UDP too, at the address of `listen-memcached`. Anyone who can send \
               there can have answers sent to others. So an answer is at most 16 datagrams and 64 times \
               its request, and an error otherwise. Do not offer it to the public. A datagram that the \
               network repeats is carried out twice, as by memcached.",
    },
    Spec {
        name: "listen-http",
        kind: Kind::Listen,
        unset: Unset::Value("127.0.0.1:7480"),
        help: "Where status, metrics and administration are served. Port 0 takes a free one.",
    },
    Spec {
        name: "advertise-peer",
        kind: Kind::Reachable,
        unset: Unset::Otherwise("this replica's address in `members`, else the listen address"),
        help: "The address at which other replicas reach this one.",
    },
    Spec {
        name: "advertise-memcached",
        kind: Kind::Reachable,
        unset: Unset::Otherwise("the listen address"),
        help: "The address at which memcached clients reach this replica.",
    },
    Spec {
        name: "advertise-redis",
        kind: Kind::Reachable,
        unset: Unset::Otherwise("the listen address"),
        help: "The address at which Redis clients reach this replica.",
    },
    Spec {
        name: "advertise-client",
        kind: Kind::Reachable,
        unset: Unset::Otherwise("the listen address"),
        help: "The address at which clients of the native protocol reach this replica. Other replicas name \
               it to clients while this one leads.",
    },
    Spec {
        name: "advertise-http",
        kind: Kind::Reachable,
        unset: Unset::Otherwise("the listen address"),
        help: "The address at which the command line reaches this replica. Without `client-tls`, HTTP \
               requests are answered only if they name this host, the machine's host name, `localhost` \
               or an IP address.",
    },
];

/// Whatever their kind.
const OF_ALL_PLANES: &[Spec] = &[
    Spec {
        name: "listen-plane",
        kind: Kind::Listen,
        unset: Unset::Value("127.0.0.1:7401"),
        help: "Where the data plane listens (UDP). Port 0 takes a free one.",
    },
    Spec {
        name: "plane-reads",
        kind: Kind::Choice(&["on", "off"]),
        unset: Unset::Value("on"),
        help: "With `memcached-udp`, whether a plane in the kernel answers a `get` of one key over UDP by \
               itself. It does so for values that were written or read lately and have no lifetime, and \
               only while the leader's lease holds and everything committed is applied. The server \
               answers all other reads, and all if this is `off`.",
    },
];

const BEHIND_PLANES: &[Spec] = &[
    Spec {
        name: "advertise-plane",
        kind: Kind::Address,
        unset: Unset::Otherwise("the listen address"),
        help: "The IP address and port at which other replicas and clients reach the data plane.",
    },
    Spec {
        name: "secret-file",
        kind: Kind::Path,
        unset: Unset::Otherwise("no data plane can run"),
        help: "The cluster's secret, which authenticates packets of the data plane's clients and, without `tls-ca`, \
               of replicas; made by `quorumwire keys new`, the same on all of them. Read again upon SIGHUP.",
    },
    Spec {
        name: "client-auth-file",
        kind: Kind::Path,
        unset: Unset::Otherwise("everyone who reaches a port for clients may read and write"),
        help: "A file with names and passwords of clients, readable by its owner only. It has up to \
               1,024 lines `NAME:PASSWORD` (250 and 256 bytes, 64 KiB in all); lines that begin with \
               `#` are comments. A Redis client sends them with `AUTH` or `HELLO`; without a name it is \
               `default`. A memcached client sends them as for memcached's option `-Y`: its first \
               request is a `set` of any key to `NAME PASSWORD`. The Rust library sends \
               `Settings::account`. Read again upon SIGHUP; connected clients stay connected.",
    },
    Spec {
        name: "tls-ca",
        kind: Kind::Path,
        unset: Unset::Otherwise("replicas speak in the clear"),
        help: "The authorities (PEM) that sign the certificates of replicas, and of operators who \
               change something over HTTP. With `tls-cert` and `tls-key`, replicas speak only TLS 1.3 \
               to each other. Give all three to all replicas of a cluster, or to none. `quorumwire keys \
               new --dir` makes the files: docs/security.md. Read again upon SIGHUP.",
    },
    Spec {
        name: "tls-cert",
        kind: Kind::Path,
        unset: Unset::Otherwise("replicas speak in the clear"),
        help: "This replica's certificate (PEM), which names its id and cluster. Read again upon SIGHUP.",
    },
    Spec {
        name: "tls-key",
        kind: Kind::Path,
        unset: Unset::Otherwise("replicas speak in the clear"),
        help: "The key of `tls-cert` (PEM), readable by its owner only. Read again upon SIGHUP.",
    },
    Spec {
        name: "client-tls",
        kind: Kind::Choice(&["off", "on"]),
        unset: Unset::Value("off"),
        help: "Whether the ports for clients (`listen-memcached`, `listen-redis` and `listen-client`) \
               and HTTP speak TLS 1.3 only; with `run`, the program's TCP ports, too. With `tls-ca`, changes and backups over HTTP then need a \
               certificate, such as `operator.pem`. Reads need none, unless `client-tls-ca` is given. \
               `client-auth-file` and `client-tls-ca` authenticate clients.",
    },
    Spec {
        name: "client-tls-cert",
        kind: Kind::Path,
        unset: Unset::Otherwise("that of `tls-cert`"),
        help: "The certificate (PEM) shown with `client-tls`. Read again upon SIGHUP.",
    },
    Spec {
        name: "client-tls-key",
        kind: Kind::Path,
        unset: Unset::Otherwise("that of `tls-key`"),
        help: "The key of `client-tls-cert` (PEM), readable by its owner only. Read again upon SIGHUP.",
    },
    Spec {
        name: "client-tls-ca",
        kind: Kind::Path,
        unset: Unset::Otherwise("clients show no certificate"),
        help: "The authorities (PEM) that sign the certificates of clients, with `client-tls`. \
               `quorumwire keys client` makes both. Without a `client-auth-file` a certificate is \
               enough; with one, a client also needs a password. Over HTTP, a request without a \
               certificate gets only `/healthz` and `/readyz`. None of these authorities may be in \
               `tls-ca`. Read again upon SIGHUP; connected clients stay connected.",
    },
    Spec {
        name: "insecure",
        kind: Kind::Switch,
        unset: Unset::Value("false"),
        help: "Allow ports beyond loopback that are not both encrypted and authenticated. Everyone who \
               reaches such a port can read and change everything. These need no `insecure`: \
               `listen-peer` with `tls-ca`; ports for clients with `client-tls` and either \
               `client-auth-file` or `client-tls-ca`; `listen-http` with `client-tls` and `tls-ca`; \
               `listen-plane`, because its packets are authenticated (not encrypted).",
    },
    Spec {
        name: "on-follower",
        kind: Kind::Choice(FOLLOWER_ANSWERS),
        unset: Unset::Value("forward"),
        help: "What a follower does with a client's request: pass it on to the leader, or refuse it. A \
               refusal names the leader and its address for memcached clients.",
    },
    Spec {
        name: "election-timeout-ms",
        kind: number(10, 60_000, "ms"),
        unset: Unset::Value("400"),
        help: "A follower that has not heard a leader for this long, and up to twice as long by chance, \
               stands for election. The same on all replicas. Choose it longer than a healthy machine \
               ever stalls. It is for machines that are gone or hang: a leader whose process ended is \
               replaced much sooner, see `lease-ms`.",
    },
    Spec {
        name: "lease-ms",
        kind: number(3, 60_000, "ms"),
        unset: Unset::Value("20"),
        help: "A voter that has heard the leader votes for no other replica for this long. So the \
               leader can answer reads alone for this long (unless `reads` is `read-index`). When the \
               connection to the leader breaks, an election begins once this time has passed. At most \
               `election-timeout-ms`. It may differ between replicas: a leader counts on each for no \
               longer than that replica promised. After it was made shorter, the first start waits for \
               the longer one to pass.",
    },
    Spec {
        name: "heartbeat-ms",
        kind: number(1, 30_000, "ms"),
        unset: Unset::Value("5"),
        help: "A leader with nothing to send sends a heartbeat this often. Less than half of \
               `lease-ms`.",
    },
    Spec {
        name: "clock-drift-ppm",
        kind: number(0, 200_000, "parts per million"),
        unset: Unset::Value("200000"),
        help: "By how much the speeds of two replicas' clocks may differ. Leases are shorter by it. If \
               clocks differ by more, a read could be stale, unless `reads` is `read-index`. The \
               default covers what time daemons do by slewing.",
    },
    Spec {
        name: "reads",
        kind: Kind::Choice(&["lease", "read-index"]),
        unset: Unset::Value("lease"),
        help: "How a leader answers reads. `lease`: alone, while a majority has promised to elect no \
               other replica, and otherwise by asking a majority. The promise relies on clocks that \
               keep to `clock-drift-ppm`, also while a virtual machine is stopped. `read-index`: always \
               by asking a majority; reads that come together share one question. A read then takes one \
               more round trip between replicas, and no plane answers a `get`. The leader's \
               option counts, and any replica may lead: give all the same.",
    },
    Spec {
        name: "snapshot-log-mib",
        kind: number(1, 65_536, "MiB"),
        unset: Unset::Value("64"),
        help: "A snapshot is taken when the log behind the last one has grown to this size. The first \
               one of a process comes earlier, at a different size on each replica.",
    },
    Spec {
        name: "log-tail-mib",
        kind: number(0, 4_096, "MiB"),
        unset: Unset::Value("8"),
        help: "How much of the log is kept in memory behind a snapshot, for followers that are a little \
               behind.",
    },
    Spec {
        name: "log-kept-mib",
        kind: number(0, 65_536, "MiB"),
        unset: Unset::Value("1024"),
        help: "How much of the log a leader keeps in memory at most for a follower that is receiving an \
               older snapshot, or has just installed it. So that follower does not need another \
               snapshot at once. Never more than four times the size of the snapshot.",
    },
    Spec {
        name: "uncommitted-mib",
        kind: number(2, 4_096, "MiB"),
        unset: Unset::Value("64"),
        help: "How many bytes of writes may wait for their commit. Beyond it, clients are told that the \
               server is busy.",
    },
    Spec {
        name: "segment-mib",
        kind: number(4, 1_024, "MiB"),
        unset: Unset::Value("64"),
        help: "Size of one file of the log.",
    },
    Spec {
        name: "learners",
        kind: Kind::Text {
            bytes_max: LEARNERS_BYTES_MAX,
        },
        unset: Unset::Otherwise("a key-value store"),
        help: "Keep values in the order of the log for these learners, in place of a key-value store: up to 64 \
               numbers, such as `1,2`. A value is kept until all of them have checkpointed it. Clients use \
               `listen-client`. The same on all replicas; the cluster's full name ends with `/values`.",
    },
    Spec {
        name: "values-mib",
        kind: number(4, 1 << 20, "MiB"),
        unset: Unset::Value("256"),
        help: "With `learners`: how much may be kept for the one that is furthest behind, with 64 bytes for each \
               value. Then values are refused, with that learner's number. The same on all replicas.",
    },
    Spec {
        name: "memory-limit-mib",
        kind: number(0, 1 << 24, "MiB"),
        unset: Unset::Otherwise("no limit"),
        help: "How much memory the items may take on each replica: keys, values and 128 bytes for each \
               item; 0: no limit. It counts only while the cluster's limit was never set. Change it \
               later with `quorumwire memory`.",
    },
    Spec {
        name: "memory-policy",
        kind: Kind::Choice(&["refuse", "evict"]),
        unset: Unset::Value("refuse"),
        help: "What happens at the memory limit. `refuse`: writes that need memory are refused. \
               `evict`: the items that were written or touched longest ago are deleted; a read is no \
               touch. It counts as long as `memory-limit-mib` does.",
    },
    Spec {
        name: "connections-max",
        kind: number(1, 100_000, "connections"),
        unset: Unset::Value("10000"),
        help: "How many clients may be connected at `listen-memcached`, `listen-redis` and \
               `listen-client` together; more are refused. If the limit on open files (`ulimit -Hn`) \
               leaves room for fewer, that number counts, and a warning says so.",
    },
    Spec {
        name: "client-buffers-mib",
        kind: number(16, 1 << 20, "MiB"),
        unset: Unset::Value("512"),
        help: "How much memory all clients' connections together may hold for incomplete requests and \
               for answers that are not read. Beyond it, the connection that has held the most for the \
               longest is closed.",
    },
    Spec {
        name: "raise-priority",
        kind: number(0, 20, ""),
        unset: Unset::Value("10"),
        help: "By how much the process's scheduling priority is raised (its nice value lowered), so \
               that a busy machine causes no elections. The priority of its session \
               (`/proc/PID/autogroup`) is raised too if the process began it, as under systemd. If that \
               is not permitted, the log says so.",
    },
    Spec {
        name: "busy-poll-us",
        kind: number(0, 10_000, "µs"),
        unset: Unset::Value("50"),
        help: "How long a replica polls for an answer before it sleeps; waking up takes longer than an \
               answer from near by. It polls while something is under way, and for a millisecond after \
               a client's request or a growth of the log (not where a plane in the kernel makes it grow). It polls only \
               if the last answer came that soon, so an idle cluster, a slow network or a slow disk \
               costs no processor time. It does not poll while more processes want to run than there \
               are processors. More than a round trip between the replicas is of use. 0: it never \
               polls.",
    },
    Spec {
        name: "user",
        kind: Kind::Text {
            bytes_max: USER_BYTES_MAX,
        },
        unset: Unset::Otherwise("the user it is started as"),
        help: "The user that a server started as root becomes before it opens anything: a name in \
               `/etc/passwd`, or `UID:GID`. It keeps the capabilities that its `plane` needs, and \
               `CAP_NET_BIND_SERVICE` if it listens at a port below 1024, and no others. The data \
               folder (made if missing) and the files with secrets must belong to that user. A server \
               that is not started as root must already run as that user.",
    },
    Spec {
        name: "drain-timeout-ms",
        kind: number(0, 600_000, "ms"),
        unset: Unset::Value("5000"),
        help: "How long a stopping replica may take to finish what is under way and to transfer \
               leadership.",
    },
    Spec {
        name: "log-level",
        kind: Kind::Choice(LOG_LEVELS),
        unset: Unset::Value("info"),
        help: "Least important messages to log. Logs go to standard error.",
    },
    Spec {
        name: "log-format",
        kind: Kind::Choice(LOG_FORMATS),
        unset: Unset::Value("text"),
        help: "One line of text, or one JSON object, per message.",
    },
];

impl Spec {
    /// The environment variable with the same meaning.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("QUORUMWIRE_{}", self.key().to_uppercase())
    }

    /// The key of the configuration file with the same meaning.
    #[must_use]
    pub fn key(&self) -> String {
        self.name.replace('-', "_")
    }

    /// What holds when it is not given, in words.
    #[must_use]
    pub fn unset_text(&self) -> &'static str {
        match self.unset {
            Unset::Refused => "must be given",
            Unset::Value(text) | Unset::Otherwise(text) => text,
        }
    }
}

impl Kind {
    /// The values allowed, in words.
    #[must_use]
    pub fn allowed(self) -> String {
        match self {
            Self::Number { min, max, unit: "" } => format!("{min} to {max}"),
            Self::Number { min, max, unit } => format!("{min} to {max} {unit}"),
            Self::Switch => "true or false".to_owned(),
            Self::Choice(words) => words.join(" or "),
            Self::Text { bytes_max } => format!("1 to {bytes_max} bytes"),
            Self::Path => "a path".to_owned(),
            Self::Listen => "IP:PORT".to_owned(),
            Self::Reachable => {
                format!("HOST:PORT that others can connect to, at most {ADDRESS_BYTES_MAX} bytes")
            }
            Self::Address => "IP:PORT that others can send to".to_owned(),
            Self::Multicast => format!("{} to {}", MULTICAST.start(), MULTICAST.end()),
            Self::Members => format!(
                "ID=HOST:PORT,ID=HOST:PORT,... with 1 to {VOTERS_MAX} replicas, each id and each address once \
                 (with `join`: up to {MEMBERS_MAX})"
            ),
        }
    }

    /// The short word that stands for the value in a usage line.
    #[must_use]
    pub const fn placeholder(self) -> &'static str {
        match self {
            Self::Number { .. } => "N",
            Self::Switch => "true|false",
            Self::Choice(_) => "WORD",
            Self::Text { .. } => "NAME",
            Self::Path => "PATH",
            Self::Listen | Self::Address => "IP:PORT",
            Self::Multicast => "IP",
            Self::Reachable => "HOST:PORT",
            Self::Members => "ID=HOST:PORT,...",
        }
    }
}

/// The text of `docs/configuration.md`.
#[must_use]
pub fn documentation() -> String {
    let mut page = String::from(
        "<!-- Written by `quorumwire config docs`; do not edit. -->\n\
         # Configuration of the server\n\n\
         Every option of `quorumwire server` can be given as a flag (`--election-timeout-ms 400`), as \
         an environment variable (`QUORUMWIRE_ELECTION_TIMEOUT_MS=400`) or in the configuration file \
         (`election_timeout_ms = 400`). A flag wins over the environment, the environment over the \
         file, the file over the default. An unknown key in the file, or a value outside its range, \
         is refused at the start (exit code 2) by name, with the value given and the values allowed. \
         Everything that is wrong is said at once. A variable that begins with `QUORUMWIRE_` and is no \
         option is warned of. \
         `quorumwire config check` takes the same options, reads the files that they name, and shows \
         what would hold, and why.\n\n\
         | flag | environment | file | default | values |\n|---|---|---|---|---|\n",
    );
    for spec in std::iter::once(&CONFIG).chain(TABLE.iter()) {
        let key = if spec.name == CONFIG.name {
            "-".to_owned()
        } else {
            format!("`{}`", spec.key())
        };
        let unset = match spec.unset {
            Unset::Value(text) => format!("`{text}`"),
            Unset::Refused | Unset::Otherwise(_) => spec.unset_text().to_owned(),
        };
        let (name, variable, allowed) = (spec.name, spec.variable(), spec.kind.allowed());
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| `--{name}` | `{variable}` | {key} | {unset} | {allowed} |"
        );
    }
    page.push_str("\n## What they mean\n\n");
    for spec in std::iter::once(&CONFIG).chain(TABLE.iter()) {
        let _ = writeln!(page, "- **`{}`**: {}", spec.name, spec.help);
    }
    page.push_str(EXAMPLE);
    let of_program = PROGRAM_OPTIONS.map(|name| format!("`--{name}`")).join(", ");
    let _ = writeln!(
        page,
        "\n## Options of `quorumwire run`\n\n\
         `quorumwire run` has the options above without those that only the store has, and its own: {of_program}. \
         `quorumwire run --help` says what they mean. They may stand in the environment and in the file, too. \
         `publish` is an array of strings in the file (`publish = [\"6379=10.0.0.1:6379\"]`), and has commas \
         between in the environment. `quorumwire config check` takes their keys and does not look at their values."
    );
    page
}

const EXAMPLE: &str = "
## Example

```toml
id = 0
dir = \"/var/lib/quorumwire\"
members = \"0=10.0.0.10:7400,1=10.0.0.11:7400,2=10.0.0.12:7400\"
listen_peer = \"10.0.0.10:7400\"
listen_memcached = \"10.0.0.10:11211\"
listen_redis = \"10.0.0.10:6379\"
listen_client = \"10.0.0.10:7402\"
listen_http = \"10.0.0.10:7480\"
tls_ca = \"/etc/quorumwire/ca.pem\" # made by `quorumwire keys new --dir`
tls_cert = \"/etc/quorumwire/replica-0.pem\"
tls_key = \"/etc/quorumwire/replica-0-key.pem\"
client_tls = \"on\"
client_auth_file = \"/etc/quorumwire/accounts\"
```
";

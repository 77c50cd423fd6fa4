//! Starting: open the data folder, find out who we are in this life, bind, join the parts.
use super::addresses::{AddressBook, addresses_to_dial};
use super::alike;
use super::attention::Attention;
use super::budget::Budget;
use super::busy_poll::BusyPoll;
use super::choose_plane::choose_plane;
use super::clients::{Clients, Protocol};
use super::core::{Application, Core};
use super::counters::LoopCounters;
use super::datagrams::Datagrams;
use super::earlier_plane::EarlierPlaneOff;
use super::folder::{Folder, memory_of};
use super::front::{Front, Identity};
use super::how_far::HowFar;
use super::journal::Journal;
use super::left_out::OwnPlace;
use super::links::Links;
use super::member_mark::{has_forgotten, holder_of_restored, is_marked, mark_as_member};
use super::memory::MemoryOption;
use super::snapshots::{self, Snapshots};
use super::term_keys::TermKeys;
use super::{
    Addresses, GROUP, HOUSEKEEPING_INTERVAL, Server, TOKEN_CLIENTS, TOKEN_DATAGRAMS,
    TOKEN_FIRST_CLIENT, TOKEN_FIRST_LINK, TOKEN_OWN, TOKEN_PEERS, TOKEN_REDIS, TOKEN_WAKE, clock,
    priority,
};
use crate::admin::{ADMIN_QUEUE_MAX, AdminHandle, AdminPort, AdminService, AdminTls};
use crate::descriptors;
use crate::logging;
use crate::options::{Durability, OnFollower, ServerOptions};
use crate::planes::PlaneChoice;
use crate::privileges;
use crate::service_manager::ServiceManager;
use crate::stage::{Far, Told};
use crate::tls::ServerTls;
use anyhow::Context;
use mio::net::{TcpListener, UdpSocket};
use mio::{Interest, Poll, Registry, Waker};
use quorumwire_control::{
    Config, Entry, HardState, Now, Peer, Promise, Replica, SnapshotMeta, Stored,
};
use quorumwire_interfaces::{Incarnation, Index, Lineage, LogTime, ReplicaId};
use quorumwire_storage::{
    self as storage, FolderDisk, LogWriter, Opened, Part, Ready, Settings, open_memory,
};
use quorumwire_wire::{Membership, peer};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// File in the data folder that says where HTTP is served, while it is.
pub const HTTP_ADDRESS_FILE: &str = "http-address";
/// Append messages with entries on their way to one follower.
const APPENDS_IN_FLIGHT_MAX: usize = 256;
/// Bytes of entries on their way to one follower.
const APPEND_BYTES_IN_FLIGHT_MAX: usize = 8 << 20;
/// People's requests and reads waiting for consensus.
const WAITING_REQUESTS_MAX: usize = 64 << 10;
/// A leader waits this long in its software term before it tries a fast one.
const ENGAGE_INTERVAL: Duration = Duration::from_millis(100);
/// After fast terms that ended early it waits longer, up to this.
const ENGAGE_INTERVAL_MAX: Duration = Duration::from_secs(10);
/// A follower that lacks at most so many entries joins a running fast term; half of a plane's ring.
const ENGAGE_WINDOW: u64 = 4096;
/// Connections that wait to be accepted, at each port: one that finds no room tries again a second later. The
/// system may allow fewer (`net.core.somaxconn`).
const ACCEPT_QUEUE_MAX: i32 = 4096;
/// Bytes taken from a client's socket at once.
const SCRATCH_BYTES: usize = 256 << 10;
/// A start that waits looks this often whether it is to stop.
const STOP_LOOKED_AT: Duration = Duration::from_millis(50);
/// A connection on which nothing was said says so this often.
const KEEPALIVES_PER_ELECTION_TIMEOUT: u32 = 5;
/// A connection on which nothing came for so many election timeouts is dead.
const SILENCE_ELECTION_TIMEOUTS: u32 = 4;

/// Serves until the process is told to stop by SIGTERM or SIGINT. An error means it could not start,
/// or could not go on.
pub fn run(options: &ServerOptions, admin: &dyn AdminService) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let reload = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&reload))?;
    let options = &descriptors::fit(options, admin.descriptors_max())?;
    priority::raise(options.raise_priority);
    privileges::give_up(options)?; // before there is another thread, which would keep them
    logging::start_writing()?;
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), TOKEN_WAKE)?);
    let disk = lock_folder(options)?;
    // Whatever may be refused is refused before the folder is claimed for this cluster and replica.
    let tls = check(options)?;
    let memory = open(options, disk, &waker)?;

    let peers = bind(options.listen_peer, "listen-peer")?;
    let clients = bind(options.listen_memcached, "listen-memcached")?;
    let redis = bind(options.listen_redis, "listen-redis")?;
    let own = bind(options.listen_client, "listen-client")?;
    let http_listener = std::net::TcpListener::bind(options.listen_http).with_context(|| {
        format!(
            "option listen-http: cannot listen on {}",
            options.listen_http
        )
    })?;
    let addresses = Addresses {
        peer: options.peer_address(peers.local_addr()?),
        memcached: options.memcached_address(clients.local_addr()?),
        redis: options.redis_address(redis.local_addr()?),
        own: options.client_address(own.local_addr()?),
        http: options.http_address(http_listener.local_addr()?),
    };
    let admin_tls = tls.clients.as_ref().map(AdminTls::new);
    let (requests_in, requests) = mpsc::sync_channel(ADMIN_QUEUE_MAX);
    let handle = AdminHandle::new(requests_in, Arc::clone(&waker));
    let mut server = join(
        options,
        memory,
        (poll, &waker),
        (peers, clients, redis, own),
        addresses,
        &stop,
    )?;
    server.admin = requests;
    server.stop = stop;
    server.reload = reload;
    server.admin_tls.clone_from(&admin_tls);
    server.use_tls(tls);
    let _served = admin.serve(AdminPort {
        listener: http_listener,
        handle,
        tls: admin_tls,
    })?;
    fs::write(
        options.dir.join(HTTP_ADDRESS_FILE),
        format!("{}\n", server.addresses.http),
    )
    .context("writing the file http-address")?;
    tracing::info!(
        id = options.id.0,
        incarnation = %server.incarnation,
        cluster = options.cluster,
        peer = server.addresses.peer,
        memcached = server.addresses.memcached,
        redis = server.addresses.redis,
        client = server.addresses.own,
        http = server.addresses.http,
        peer_tls = options.peer_tls.is_some(),
        client_tls = options.client_tls.is_some(),
        "replica started"
    );
    let result = server.run();
    fs::remove_file(options.dir.join(HTTP_ADDRESS_FILE)).ok(); // stale addresses only mislead
    result.inspect(|()| tracing::info!("stopped"))
}

/// What was found in the data folder.
struct Memory {
    folder: Folder,
    incarnation: Incarnation,
    journal: Journal,
    stored: Stored,
    store: Box<Application>,
    snapshots: Snapshots,
    /// What the process before this one has promised.
    earlier: EarlierPromise,
    past: Past,
    service_manager: ServiceManager,
    how_far: HowFar,
}

fn group_folder(options: &ServerOptions) -> PathBuf {
    options.dir.join(format!("group-{GROUP}"))
}

/// Makes the data folder if it is missing, and keeps other processes out of it.
fn lock_folder(options: &ServerOptions) -> anyhow::Result<Arc<FolderDisk>> {
    privileges::make_folder(&options.dir)?;
    let folder = group_folder(options);
    let disk = FolderDisk::open(&folder);
    let disk = disk.with_context(|| format!("option dir: data folder {}", folder.display()))?;
    Ok(Arc::new(disk))
}

/// Reads every file that the options name, and looks whether their addresses can be listened on.
fn check(options: &ServerOptions) -> anyhow::Result<ServerTls> {
    let tls = options.load_tls()?;
    options.load_accounts()?;
    if options.secret_file.is_some() {
        options.load_keys()?;
    }
    for (option, address) in options.listen_addresses() {
        // That of a plane is looked at by the plane, which may need none.
        if option != "listen-plane" {
            try_address(address)
                .with_context(|| format!("option {option}: cannot listen on {address}"))?;
        }
    }
    Ok(tls)
}

/// Whether nobody else has it. Nobody can connect yet: the log is read first.
fn try_address(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?; // as listeners are made: what lingers of a process before is in nobody's way
    socket.bind(&address.into())
}

fn open(
    options: &ServerOptions,
    disk: Arc<FolderDisk>,
    waker: &Arc<Waker>,
) -> anyhow::Result<Memory> {
    let folder = group_folder(options);
    let in_folder = || format!("option dir: data folder {}", folder.display());
    let settings = Settings {
        cluster: options.cluster.clone(),
        replica: options.id,
        group: GROUP,
        new_incarnation: Incarnation(random_number()?.max(1)),
        segment_bytes: options.segment_bytes,
        promise: options.lease,
        lineage: Lineage::default(),
    };
    let mut fault = None;
    let mut service_manager = ServiceManager::of_this_process();
    let mut how_far = HowFar::default();
    let mut is_at = |far| how_far.starts(clock::now(), far, &mut service_manager);
    let mut opened = |disk: Arc<FolderDisk>| match options.durability {
        Durability::Memory => open_memory(disk, &settings).map(Opened::Ready),
        Durability::Sync => {
            let mut watch = |part, read, of| is_at(how_far_read(part, read, of));
            storage::open_watched(disk, settings.clone(), &mut watch)
        }
    };
    let ready = match opened(Arc::clone(&disk)).with_context(in_folder)? {
        Opened::Ready(ready) => ready,
        Opened::Damaged(damaged) => {
            tracing::error!(
                what = damaged.what(),
                "the data folder is damaged: it is put aside, and the other replicas bring this one up to date"
            );
            fault = Some(format!("started over after damage: {}", damaged.what()));
            mark_as_member(&options.dir, None)?;
            let again = Incarnation(random_number()?.max(1));
            damaged.start_over(again).with_context(in_folder)?
        }
    };
    for note in &ready.notes {
        tracing::warn!(note, "data folder");
    }
    let past = Past::of(options, &ready, fault)?;
    if options.join && !ready.fresh {
        tracing::info!(
            lineage = %ready.lineage,
            "option join has no effect: this data folder already belongs to a member"
        );
    }
    let store = restore(&ready, &mut is_at)?;
    let log = match options.durability {
        Durability::Memory => None,
        Durability::Sync => {
            let wake = Arc::clone(waker);
            // A failed wake can only mean that the event loop is gone.
            Some(LogWriter::start(
                ready.log,
                Box::new(move || drop(wake.wake())),
            )?)
        }
    };
    Ok(Memory {
        folder: Folder::new(disk, settings, ready.lineage),
        incarnation: ready.incarnation,
        journal: Journal::new(log),
        stored: to_control(ready.stored, ready.fresh),
        store,
        snapshots: Snapshots::start(ready.snapshots, GROUP, Arc::clone(waker))?,
        earlier: EarlierPromise {
            lasts: ready.promised,
        },
        past,
        service_manager,
        how_far,
    })
}

fn how_far_read(part: Part, read: u64, of: u64) -> Far {
    let what = match part {
        Part::Log => "reading the log",
        Part::Snapshot => "checking the snapshot",
    };
    Far::of_bytes(what, read, of)
}

/// What the folder says of what this replica was before.
struct Past {
    /// It was a member before, or is of a cluster that begins with another replica's data, and holds nothing.
    amnesiac: bool,
    /// It was a member, in this life or in one that it has forgotten.
    was_member: bool,
    /// What is wrong with the folder, for people.
    fault: Option<String>,
}

impl Past {
    fn of(options: &ServerOptions, ready: &Ready, damage: Option<String>) -> anyhow::Result<Self> {
        let holds_nothing = ready.stored.snapshot.is_none() && ready.stored.entries.is_empty();
        // The lineage outlives a life, wherever the mark of it is.
        let has_forgotten = has_forgotten(&options.dir, ready.incarnation)?
            || ready.fresh && ready.lineage.is_known();
        let amnesiac = holds_nothing && has_forgotten;
        // Once the data have come the mark is of no member that waits for them, but of one like others.
        let holder = holder_of_restored(&options.dir)?.filter(|_| !ready.lineage.is_known());
        let waits_for = holder.filter(|_| amnesiac);
        let forgot = match waits_for {
            Some(holder) => Some(waits_for_restored(options.id, holder)),
            None if amnesiac => {
                tracing::warn!(
                    "this replica was a member and remembers nothing of it: it counts for nothing until the \
                     others have brought it up to date. If all of them have lost their memory, their data is \
                     gone; remove their folders to begin anew"
                );
                Some(
                    "it was a member and remembers nothing: it counts for nothing until the others have brought \
                     it up to date; if all have forgotten, the data is gone"
                        .to_owned(),
                )
            }
            None => None,
        };
        let was_here = amnesiac || !ready.fresh && is_marked(&options.dir)?;
        Ok(Self {
            amnesiac,
            was_member: was_here && holder.is_none(),
            fault: damage.or(forgot),
        })
    }

    const fn place(&self) -> OwnPlace {
        OwnPlace {
            was_member: self.was_member,
            has_forgotten: self.amnesiac && self.was_member,
            is_data_gone: false,
        }
    }
}

/// Tells people that a folder which `quorumwire restore` has prepared has no data yet, and gives the fault.
fn waits_for_restored(me: ReplicaId, holder: ReplicaId) -> String {
    if me == holder {
        tracing::warn!(
            "quorumwire restore was cut short in this folder: stop this replica, empty the folder, and run it again"
        );
        return "quorumwire restore was cut short in its folder: stop it, empty the folder, and run that again"
            .to_owned();
    }
    tracing::info!(
        holder = holder.0,
        "this folder was prepared by quorumwire restore: waiting for the replica that holds the data"
    );
    format!("it waits for replica {holder}, which holds what was restored, to bring it the data")
}

/// What the folder says of the promises of the process before this one.
struct EarlierPromise {
    lasts: Duration,
}

impl EarlierPromise {
    /// If `lease-ms` was longer before this start, a leader may count on the votes of the process before for
    /// longer than this one will promise: waits until that has passed. Gives the moment from which the
    /// present promise counts. Until then nothing was said by this process, and since `off` nothing by
    /// another.
    fn wait_out(
        &self,
        folder: &Folder,
        off: &EarlierPlaneOff,
        life: Incarnation,
        stop: &AtomicBool,
    ) -> anyhow::Result<Now> {
        if self.lasts > folder.promise() {
            wait_out_promise(off.now(), self.lasts, stop)?;
            let noted = folder.shorten_promise(life);
            noted.context("option dir: noting the shorter promise")?;
        }
        Ok(off.now())
    }
}

fn wait_out_promise(now: Now, promised: Duration, stop: &AtomicBool) -> anyhow::Result<()> {
    tracing::info!(
        ms = u64::try_from(promised.as_millis()).unwrap_or(u64::MAX),
        "lease-ms was longer before: waiting until the old promise has passed"
    );
    let until = now.0.saturating_add(promised);
    while let Some(left) = until.checked_sub(clock::now().0).filter(|t| !t.is_zero()) {
        anyhow::ensure!(
            !stop.load(Ordering::Relaxed),
            "stopped before a longer promise had passed"
        );
        std::thread::sleep(left.min(STOP_LOOKED_AT));
    }
    Ok(())
}

fn restore(ready: &Ready, is_at: &mut dyn FnMut(Far)) -> anyhow::Result<Box<Application>> {
    let mut store = Box::new(Application::default());
    if let Some(head) = &ready.stored.snapshot {
        let index = head.last_index;
        tracing::info!(last_index = index.0, "restoring the snapshot");
        let mut check = |read, of| is_at(how_far_read(Part::Snapshot, read, of));
        let file = ready.snapshots.open_watched(index, &mut check)?;
        let file = file.context("the newest snapshot is gone")?;
        let total = file.total_bytes();
        let restored = |read| is_at(Far::of_bytes("restoring the snapshot", read, total));
        store
            .restore(&mut Told::new(file.body()?, restored))
            .context("restoring the newest snapshot")?;
    }
    Ok(store)
}

fn to_control(stored: storage::Stored, new_life: bool) -> Stored {
    Stored {
        hard_state: HardState::from_proto(&stored.hard_state),
        snapshot: stored.snapshot.as_ref().map(SnapshotMeta::from),
        entries: stored
            .entries
            .into_iter()
            .map(|entry| Entry {
                index: entry.index,
                term: entry.term,
                kind: entry.kind,
                block: entry.block,
                start: entry.start,
                end: entry.end,
            })
            .collect(),
        new_life,
    }
}

/// For replicas, memcached clients, Redis clients and clients of the own protocol.
type Listeners = (TcpListener, TcpListener, TcpListener, TcpListener);

/// Has the event loop told of connections that wait.
fn watch((peers, clients, redis, own): &mut Listeners, registry: &Registry) -> io::Result<()> {
    registry.register(peers, TOKEN_PEERS, Interest::READABLE)?;
    registry.register(clients, TOKEN_CLIENTS, Interest::READABLE)?;
    registry.register(redis, TOKEN_REDIS, Interest::READABLE)?;
    registry.register(own, TOKEN_OWN, Interest::READABLE)
}

/// What other replicas are told of this one, but for its plane.
fn hello(
    options: &ServerOptions,
    incarnation: Incarnation,
    addresses: &Addresses,
    promise: &Promise,
) -> peer::Hello {
    peer::Hello {
        peer_address: addresses.peer.clone(),
        client_address: addresses.memcached.clone(),
        redis_address: addresses.redis.clone(),
        own_address: addresses.own.clone(),
        http_address: addresses.http.clone(),
        promise_us: u64::try_from(promise.lasts.as_micros()).unwrap_or(u64::MAX),
        clock_drift_ppm: promise.clock_drift_ppm,
        keeps_wall_clock: promise.keeps_wall_clock,
        ..quorumwire_wire::hello(&options.cluster, options.id.0, incarnation.0)
    }
}

/// Joins the parts into a server that has not turned yet.
fn join(
    options: &ServerOptions,
    memory: Memory,
    (poll, _waker): (Poll, &Arc<Waker>),
    mut listeners: Listeners,
    addresses: Addresses,
    stop: &AtomicBool,
) -> anyhow::Result<Server> {
    let snapshot = memory.stored.snapshot.as_ref();
    let applied = snapshot.map_or(Index(0), |meta| meta.last_index);
    let log_time = snapshot.map_or(LogTime(0), |meta| meta.log_time);
    let config = config(options, &memory, &addresses)?;
    let registry = poll.registry();
    watch(&mut listeners, registry)?;
    let (peers, clients, redis, own) = listeners;
    let mut hello = hello(options, memory.incarnation, &addresses, &config.promise());
    let udp = bind_memcached_udp(options, clients.local_addr()?)?;
    let term_keys = agree_on_keys(options)?;
    let agreed = term_keys.as_ref().map(TermKeys::pair);
    let earlier_off = EarlierPlaneOff::wait_for(&options.dir, stop)?;
    let data_plane = choose_plane(options, registry, udp.as_ref(), agreed, &earlier_off)?;
    let now = (memory.earlier).wait_out(&memory.folder, &earlier_off, memory.incarnation, stop)?;
    let replica = Replica::new(config, now, memory.stored)
        .context("what the data folder holds contradicts itself")?;
    hello.lineage = quorumwire_wire::lineage_to_proto(replica.lineage());
    hello.memory = memory_of(&replica).into();
    hello.settings = alike::settings(options, !memory.past.amnesiac);
    let datagrams = udp.map(|udp| open_datagrams(udp, registry)).transpose()?;
    if let Some((_, hosting)) = &data_plane {
        hello.settings.extend(alike::secrets(&options.load_keys()?));
        if options.peer_tls.is_some() && !options.listen_plane.ip().is_loopback() {
            tracing::warn!("packets of the data plane are authenticated, not encrypted");
        }
        hello.plane_address = hosting.endpoint.to_string();
    }
    let front = open_front(options, &hello, now)?;
    let mut links = open_links(options, hello, peers, registry)?;
    links.set_committed(replica.committed_members());
    let listeners = vec![
        (clients, Protocol::Memcached),
        (redis, Protocol::Redis),
        (own, Protocol::Own),
    ];
    let mut clients = open_clients(options, listeners, registry)?;
    clients.lets_everybody_in = front.accounts.is_none();
    let commit_index = replica.commit_index();
    let mut core = Core::new(replica, memory.journal, GROUP, now);
    core.group.store = memory.store;
    core.group.applied = applied;
    core.group.committed = commit_index;
    core.group.log_time = log_time;
    core.group.bytes_since_snapshot = snapshots::head_start(options.snapshot_log_bytes, options.id);
    if let Some((plane, hosting)) = data_plane {
        core.group.plane = Some(plane);
        core.hosting = Some(hosting);
    }
    core.term_keys = term_keys;
    core.lent.reads = options.memcached_udp && options.plane_reads && options.lease_reads;
    core.place = memory.past.place();
    (core.group.forwards).begin(random_number()?, random_number()? >> 1);
    core.refuse_on_follower = options.on_follower == OnFollower::Refuse;
    let mut server = Server {
        options: options.clone(),
        addresses,
        incarnation: memory.incarnation,
        folder: memory.folder,
        start_fault: memory.past.fault,
        poll,
        core,
        budget: Budget::new(options.election_timeout),
        links,
        clients,
        front,
        datagrams,
        snapshots: memory.snapshots,
        admin: mpsc::sync_channel(0).1,
        waiting: BTreeMap::new(),
        address_book: AddressBook::default(),
        link_events: Vec::new(),
        scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
        carrying: Vec::new(),
        applying: Vec::new(),
        turns_put_off: 0,
        reply: Vec::new(),
        snapshot_retry_at: None,
        ready_once_applied: commit_index,
        started: now,
        next_housekeeping: Now(now.0 + HOUSEKEEPING_INTERVAL),
        attention: Attention::new(now),
        busy_poll: BusyPoll::new(options.busy_poll),
        stop: Arc::new(AtomicBool::new(false)),
        reload: Arc::new(AtomicBool::new(false)),
        admin_tls: None,
        expiries: Vec::new(),
        next_expiry_warning: Now::default(),
        draining_since: None,
        handed_over_full_at: None,
        service_manager: memory.service_manager,
        how_far: memory.how_far,
        is_removal_told: false,
        memory_option: MemoryOption::default(),
        counters: LoopCounters::default(),
    };
    server.how_far.begun_behind = Some(applied);
    server.note_settings();
    let membership = server.core.group.replica.membership().clone();
    server.membership_changed(&membership)?;
    Ok(server)
}

fn open_front(options: &ServerOptions, hello: &peer::Hello, now: Now) -> anyhow::Result<Front> {
    let identity = Identity {
        replica: hello.replica,
        cluster: hello.cluster.clone(),
        own_address: hello.own_address.clone(),
    };
    let (accounts, wall_s) = (options.load_accounts()?, clock::wall_ms() / 1000);
    Ok(Front::new(identity, accounts, now, wall_s))
}

fn open_links(
    options: &ServerOptions,
    hello: peer::Hello,
    peers: TcpListener,
    registry: &Registry,
) -> io::Result<Links> {
    let silence_max = options.election_timeout * SILENCE_ELECTION_TIMEOUTS;
    Ok(Links::new(
        hello,
        peers,
        registry.try_clone()?,
        TOKEN_FIRST_LINK,
        options.election_timeout / KEEPALIVES_PER_ELECTION_TIMEOUT,
        silence_max.max(Duration::from_secs(1)),
    ))
}

fn open_clients(
    options: &ServerOptions,
    listeners: Vec<(TcpListener, Protocol)>,
    registry: &Registry,
) -> io::Result<Clients> {
    let mut clients = Clients::new(
        listeners,
        registry.try_clone()?,
        TOKEN_FIRST_CLIENT,
        options.connections_max,
    );
    clients.held.bytes_max = options.client_buffers_bytes_max;
    Ok(clients)
}

fn config(
    options: &ServerOptions,
    memory: &Memory,
    addresses: &Addresses,
) -> anyhow::Result<Config> {
    let begins_cluster = !options.join && !memory.past.amnesiac;
    Ok(Config {
        group: GROUP,
        me: Peer {
            id: options.id,
            incarnation: memory.incarnation,
        },
        peer_address: addresses.peer.clone(),
        initial_members: if begins_cluster {
            options.members.keys().copied().collect()
        } else {
            Vec::new()
        },
        lineage: memory.folder.lineage(),
        new_lineage: random_lineage()?,
        seed: random_number()?,
        election_timeout: options.election_timeout,
        lease: options.lease,
        heartbeat_interval: options.heartbeat_interval,
        clock_drift_ppm: options.clock_drift_ppm,
        lease_reads: options.lease_reads,
        uncommitted_bytes_max: options.uncommitted_bytes_max,
        appends_in_flight_max: APPENDS_IN_FLIGHT_MAX,
        append_bytes_in_flight_max: APPEND_BYTES_IN_FLIGHT_MAX,
        log_tail_bytes: options.log_tail_bytes,
        log_kept_bytes_max: options.log_kept_bytes_max,
        waiting_requests_max: WAITING_REQUESTS_MAX,
        plane: options.plane != PlaneChoice::None,
        engage_interval: ENGAGE_INTERVAL,
        engage_interval_max: ENGAGE_INTERVAL_MAX,
        engage_window: ENGAGE_WINDOW,
    })
}

/// Replicas that know each other by certificates agree on what their planes sign with; others have it out of
/// the secret file, which whoever has it can sign with, too.
fn agree_on_keys(options: &ServerOptions) -> anyhow::Result<Option<TermKeys>> {
    let agrees = options.peer_tls.is_some() && options.plane != PlaneChoice::None;
    agrees.then(TermKeys::new).transpose()
}

/// The UDP side of the memcached port, if that is wanted.
fn bind_memcached_udp(
    options: &ServerOptions,
    address: SocketAddr,
) -> anyhow::Result<Option<std::net::UdpSocket>> {
    if !options.memcached_udp {
        return Ok(None);
    }
    let socket = std::net::UdpSocket::bind(address)
        .with_context(|| format!("option memcached-udp: cannot listen on {address} (UDP)"))?;
    socket.set_nonblocking(true)?;
    Ok(Some(socket))
}

fn open_datagrams(udp: std::net::UdpSocket, registry: &Registry) -> anyhow::Result<Datagrams> {
    let mut socket = UdpSocket::from_std(udp);
    registry.register(&mut socket, TOKEN_DATAGRAMS, Interest::READABLE)?;
    Ok(Datagrams::new(socket))
}

fn bind(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        rustix::net::listen(&listener, ACCEPT_QUEUE_MAX)?;
        Ok(listener)
    });
    bound.with_context(|| format!("option {option}: cannot listen on {address}"))
}

/// A number that nobody can guess.
pub fn random_number() -> anyhow::Result<u64> {
    Ok(getrandom::u64()?)
}

/// A number for a cluster that has none yet.
pub fn random_lineage() -> anyhow::Result<Lineage> {
    let (high, low) = (random_number()?, random_number()?);
    Ok(Lineage(u128::from(high) << 64 | u128::from(low.max(1))))
}

impl Server {
    /// The members changed: dial whom we must know, and remember for good that we are one of them.
    pub fn membership_changed(&mut self, membership: &Membership) -> anyhow::Result<()> {
        let me = self.options.id;
        let own = membership
            .member(me)
            .filter(|own| own.incarnation == self.incarnation);
        let addresses = addresses_to_dial(membership, &self.options.members, own.is_some());
        self.links.members = membership
            .members
            .iter()
            .map(|member| (member.id, member.incarnation))
            .collect();
        let lineage = self.core.group.replica.lineage_in_log();
        if let Some((plane, hosting)) = self.core.hosted() {
            hosting.set_lineage(plane, lineage);
        }
        self.links.dial_all = own.is_none();
        let now = self.core.group.now;
        self.links.set_addresses(&addresses, now);
        if own.is_some() {
            mark_as_member(&self.options.dir, Some(self.incarnation))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "start_test.rs"]
pub mod tests;

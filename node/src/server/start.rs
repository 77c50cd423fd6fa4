//! Starting: open the data folder, find out who we are in this life, bind, join the parts.
use super::addresses::{AddressBook, addresses_to_dial};
use super::admission::{Admission, Identity};
use super::alike;
use super::attention::Attention;
use super::budget::Budget;
use super::busy_poll::BusyPoll;
use super::choose_plane::choose_plane;
use super::clients::{Clients, Listener};
use super::core::Core;
use super::counters::LoopCounters;
use super::earlier_plane::EarlierPlaneOff;
use super::folder::memory_of;
use super::fronts::Protocol;
use super::groups::{Other, SECOND_GROUP, Upkeep, group_at};
use super::how_far::HowFar;
use super::kv::KeyValue;
use super::links::Links;
use super::member_mark::mark_as_member;
use super::plane::{Hosting, Plane};
use super::random::{random_key, random_lineage, random_number};
use super::remembered::{Memory, lock_folder, open_all};
use super::served::{self, Served};
use super::service::{Native, Service};
use super::snapshots;
use super::values::Delivering;
use super::{
    Addresses, DESCRIPTORS_MAX, HOUSEKEEPING_INTERVAL, Server, TOKEN_FIRST_CLIENT,
    TOKEN_FIRST_LINK, TOKEN_FIRST_LISTENER, TOKEN_PEERS, TOKEN_WAKE, clock, priority,
};
use crate::admin::{ADMIN_QUEUE_MAX, AdminHandle, AdminPort, AdminService, AdminTls};
use crate::descriptors;
use crate::logging;
use crate::options::{OnFollower, PROGRAM, ServerOptions, VALUES};
use crate::planes::PlaneChoice;
use crate::privileges;
use crate::service_manager::ServiceManager;
use crate::tls::ServerTls;
use anyhow::{Context, ensure};
use mio::net::TcpListener;
use mio::{Interest, Poll, Registry, Token, Waker};
use quorumwire_control::{Config, Now, Peer, Promise, Replica};
use quorumwire_group::TermKeys;
use quorumwire_interfaces::{Application, GroupId, Incarnation};
use quorumwire_wire::limits::CLUSTER_NAME_BYTES_MAX;
use quorumwire_wire::{Membership, peer};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::iter;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

/// File in the data folder that says where HTTP is served, while it is.
pub const HTTP_ADDRESS_FILE: &str = "http-address";
/// Append messages with entries on their way to one follower.
const APPENDS_IN_FLIGHT_MAX: usize = 256;
/// Bytes of entries on their way to one follower.
const APPEND_BYTES_IN_FLIGHT_MAX: usize = 8 << 20;
/// Bytes of a snapshot in one message; with the rest of the message it fits a frame's attachment.
const SNAPSHOT_CHUNK_BYTES_MAX: usize = 1 << 20;
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
/// A connection on which nothing was said says so this often.
const KEEPALIVES_PER_ELECTION_TIMEOUT: u32 = 5;
/// A connection on which nothing came for so many election timeouts is dead.
const SILENCE_ELECTION_TIMEOUTS: u32 = 4;

/// A replica of the key-value store, for memcached, Redis and native clients; or of values that are kept for
/// learners, if the options name some. Serves until the process is told to stop by SIGTERM or SIGINT. An
/// error means it could not start, or could not go on.
pub fn run(options: &ServerOptions, admin: &dyn AdminService) -> anyhow::Result<()> {
    if options.values.is_some() {
        return serve::<Delivering>(&named(options, VALUES)?, admin);
    }
    serve::<KeyValue>(options, admin)
}

/// The same for an application of the caller's own. Its clients speak the native protocol, which is that of
/// the client library. The ports of other protocols are not opened. The application's name, short and for
/// ever the same, is part of the cluster's: neither replicas nor data folders of different applications are
/// mixed up.
pub fn run_application<A>(
    name: &str,
    options: &ServerOptions,
    admin: &dyn AdminService,
) -> anyhow::Result<()>
where
    A: Application + Default + 'static,
{
    serve::<Native<A>>(&named(options, name)?, admin)
}

/// The same for a program that was not written for it, which `options.served` names: every replica starts
/// one, whose input is the log.
pub fn run_program(options: &ServerOptions, admin: &dyn AdminService) -> anyhow::Result<()> {
    let mut options = named(options, PROGRAM)?;
    served::check(&mut options)?;
    serve::<Served>(&options, admin)
}

/// The cluster's name with that of the application: neither replicas nor data folders of different
/// applications are mixed up.
fn named(options: &ServerOptions, name: &str) -> anyhow::Result<ServerOptions> {
    let cluster = format!("{}/{name}", options.cluster);
    ensure!(
        !name.is_empty() && cluster.len() <= CLUSTER_NAME_BYTES_MAX,
        "option cluster: with the application's name it is {cluster:?}; both and the slash between them may have at \
         most {CLUSTER_NAME_BYTES_MAX} bytes, and neither is empty"
    );
    Ok(ServerOptions {
        cluster,
        ..options.clone()
    })
}

/// What a server of this speaks with clients.
fn protocols<S: Service>() -> impl Iterator<Item = Protocol> {
    S::PROTOCOLS.iter().copied().chain([Protocol::Native])
}

/// A replica of values for learners inside another program, on the thread that calls this: it leaves alone
/// what is the whole process's, which are signals, priority, capabilities, limits and where the log goes, and
/// serves until `stop` is set. `started` hears where clients of the native protocol connect, once they can.
pub fn run_values_within(
    options: &ServerOptions,
    admin: &dyn AdminService,
    stop: &Arc<AtomicBool>,
    started: impl FnOnce(SocketAddr),
) -> anyhow::Result<()> {
    ensure!(
        options.values.is_some(),
        "option learners: it is not given; allowed here: those that values are kept for, such as 1,2"
    );
    let options = named(options, VALUES)?;
    let options = descriptors::fit_within(&options, DESCRIPTORS_MAX + admin.descriptors_max())?;
    let around = Around {
        stop: Arc::clone(stop),
        reload: Arc::default(),
        service_manager: ServiceManager::at(None),
    };
    serve_until_stopped::<Delivering>(&options, admin, around, started)
}

fn serve<S: Service>(options: &ServerOptions, admin: &dyn AdminService) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let reload = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&reload))?;
    let options = &descriptors::fit(options, DESCRIPTORS_MAX + admin.descriptors_max())?;
    priority::raise(options.raise_priority);
    privileges::give_up(options)?; // before there is another thread, which would keep them
    logging::start_writing()?;
    let around = Around {
        stop,
        reload,
        service_manager: ServiceManager::of_this_process(),
    };
    serve_until_stopped::<S>(options, admin, around, |_| ())
}

/// Who tells a server to end or to read its files again, and whom it tells how far it is.
struct Around {
    stop: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    service_manager: ServiceManager,
}

fn serve_until_stopped<S: Service>(
    options: &ServerOptions,
    admin: &dyn AdminService,
    around: Around,
    started: impl FnOnce(SocketAddr),
) -> anyhow::Result<()> {
    let Around {
        stop,
        reload,
        mut service_manager,
    } = around;
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), TOKEN_WAKE)?);
    let groups = groups_of(options);
    let disks = groups.iter().map(|group| lock_folder(options, *group));
    let disks = disks.collect::<anyhow::Result<Vec<_>>>()?;
    // Whatever may be refused is refused before the folder is claimed for this cluster and replica.
    let tls = check::<S>(options)?;
    let mut how_far = HowFar::default();
    let mut is_at = |far| how_far.starts(clock::now(), far, &mut service_manager);
    let memories = open_all(options, disks, &waker, &mut is_at)?;

    let peers = bind(options.listen_peer, "listen-peer")?;
    let clients = bind_clients::<S>(options)?;
    let http_listener = std::net::TcpListener::bind(options.listen_http).with_context(|| {
        format!(
            "option listen-http: cannot listen on {}",
            options.listen_http
        )
    })?;
    let addresses = Addresses::of(options, &peers, &clients, http_listener.local_addr()?)?;
    let is_native = |it: &&Listener| it.protocol == Protocol::Native && it.group == 0;
    let native = clients
        .iter()
        .find(is_native)
        .context("native clients have a port")?;
    let native = native.socket.local_addr()?;
    let admin_tls = tls.clients.as_ref().map(AdminTls::new);
    let (requests_in, requests) = mpsc::sync_channel(ADMIN_QUEUE_MAX);
    let handle = AdminHandle::new(requests_in, Arc::clone(&waker));
    let mut server = join::<S>(options, memories, poll, (peers, clients), addresses, &stop)?;
    server.service_manager = service_manager;
    server.how_far = how_far;
    server.how_far.begun_behind = Some(server.core.group.applied);
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
        client = server.addresses.native,
        http = server.addresses.http,
        peer_tls = options.peer_tls.is_some(),
        client_tls = options.client_tls.is_some(),
        "replica started"
    );
    started(native);
    let result = server.run();
    fs::remove_file(options.dir.join(HTTP_ADDRESS_FILE)).ok(); // stale addresses only mislead
    result.inspect(|()| tracing::info!("stopped"))
}

/// Reads every file that the options name, and looks whether their addresses can be listened on.
fn check<S: Service>(options: &ServerOptions) -> anyhow::Result<ServerTls> {
    let tls = options.load_tls()?;
    options.load_accounts()?;
    if options.secret_file.is_some() {
        options.load_keys()?;
    }
    for (option, address) in options.listen_addresses() {
        // That of a plane is looked at by the plane, which may need none.
        let is_for_clients = |protocol: Protocol| protocol.listen().0 == option;
        let is_served =
            protocols::<S>().any(is_for_clients) || !Protocol::ALL.into_iter().any(is_for_clients);
        if option != "listen-plane" && is_served {
            try_address(address)
                .with_context(|| format!("option {option}: cannot listen on {address}"))?;
        }
    }
    if let Some(address) = options.second_group {
        try_address(address)
            .with_context(|| format!("option {SECOND_GROUP}: cannot listen on {address}"))?;
    }
    Ok(tls)
}

/// Whether nobody else has it. Nobody can connect yet: the log is read first.
fn try_address(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?; // as listeners are made: what lingers of a process before is in nobody's way
    socket.bind(&address.into())
}

/// Where clients connect. Those of a group behind the first speak the native protocol.
fn bind_clients<S: Service>(options: &ServerOptions) -> anyhow::Result<Vec<Listener>> {
    let of_first = protocols::<S>().map(|protocol| {
        let (option, address) = protocol.listen();
        (option, address(options), protocol, 0)
    });
    let second = options.second_group;
    let of_second = second.map(|address| (SECOND_GROUP, address, Protocol::Native, 1));
    let listen = |(option, address, protocol, group)| {
        Ok(Listener {
            socket: bind(address, option)?,
            protocol,
            group,
        })
    };
    of_first.chain(of_second).map(listen).collect()
}

impl Addresses {
    /// Where native clients of the group at this place connect.
    fn native_of(&self, place: usize) -> &str {
        match place.checked_sub(1) {
            None => &self.native,
            Some(further) => self.further_native.get(further).map_or("", String::as_str),
        }
    }

    fn of(
        options: &ServerOptions,
        peers: &TcpListener,
        clients: &[Listener],
        http: SocketAddr,
    ) -> io::Result<Self> {
        let mut addresses = Self {
            peer: options.peer_address(peers.local_addr()?),
            http: options.http_address(http),
            ..Self::default()
        };
        for listener in clients {
            let bound = listener.socket.local_addr()?;
            match (listener.protocol, listener.group) {
                (Protocol::Memcached, _) => addresses.memcached = options.memcached_address(bound),
                (Protocol::Redis, _) => addresses.redis = options.redis_address(bound),
                (Protocol::Native, 0) => addresses.native = options.client_address(bound),
                (Protocol::Native, _) => {
                    let at = SocketAddr::new(options.listen_client.ip(), bound.port());
                    addresses.further_native.push(at.to_string());
                }
            }
        }
        Ok(addresses)
    }
}

/// Has the event loop told of connections that wait.
fn watch(peers: &mut TcpListener, clients: &mut [Listener], registry: &Registry) -> io::Result<()> {
    registry.register(peers, TOKEN_PEERS, Interest::READABLE)?;
    for (listener, token) in clients.iter_mut().zip(TOKEN_FIRST_LISTENER..) {
        registry.register(&mut listener.socket, Token(token), Interest::READABLE)?;
    }
    Ok(())
}

/// What other replicas are told of this one.
fn hello<S: Service>(
    options: &ServerOptions,
    incarnation: Incarnation,
    addresses: &Addresses,
    groups: &[Other<S>],
    (promise, is_amnesiac): (Promise, bool),
) -> anyhow::Result<peer::Hello> {
    let (first, _) = groups.first().context("a server has a group")?;
    let mut hello = peer::Hello {
        peer_address: addresses.peer.clone(),
        client_address: addresses.memcached.clone(),
        redis_address: addresses.redis.clone(),
        native_address: addresses.native.clone(),
        http_address: addresses.http.clone(),
        promise_us: u64::try_from(promise.lasts.as_micros()).unwrap_or(u64::MAX),
        clock_drift_ppm: promise.clock_drift_ppm,
        keeps_wall_clock: promise.keeps_wall_clock,
        lineage: quorumwire_wire::lineage_to_proto(first.group.replica.lineage()),
        memory: memory_of(&first.group.replica).into(),
        settings: alike::settings(options, !is_amnesiac),
        plane_address: plane_address(first),
        ..quorumwire_wire::hello(&options.cluster, options.id.0, incarnation.0)
    };
    for (place, (core, _)) in groups.iter().enumerate().skip(1) {
        hello.further_groups.push(peer::FurtherGroup {
            native_address: addresses.native_of(place).to_owned(),
            plane_address: plane_address(core),
        });
    }
    if first.hosting.is_some() {
        hello.settings.extend(alike::secrets(&options.load_keys()?));
        if options.peer_tls.is_some() && !options.listen_plane.ip().is_loopback() {
            tracing::warn!("packets of the data plane are authenticated, not encrypted");
        }
    }
    Ok(hello)
}

/// Where others reach the group's plane; empty: it has none.
fn plane_address<S: Service>(core: &Core<S>) -> String {
    let hosting = core.hosting.as_ref();
    hosting.map_or_else(String::new, |hosting| hosting.endpoint.to_string())
}

/// The groups of a server with these options.
fn groups_of(options: &ServerOptions) -> Vec<GroupId> {
    let count = 1 + usize::from(options.second_group.is_some());
    (0..count).map(group_at).collect()
}

/// Joins the parts into a server that has not turned yet.
fn join<S: Service>(
    options: &ServerOptions,
    memories: Vec<Memory<S::Application>>,
    poll: Poll,
    (mut peers, mut listeners): (TcpListener, Vec<Listener>),
    addresses: Addresses,
    stop: &AtomicBool,
) -> anyhow::Result<Server<S>> {
    let registry = poll.registry();
    watch(&mut peers, &mut listeners, registry)?;
    let first = listeners.first().map(|it| it.socket.local_addr());
    let service = S::open(options, first.transpose()?, registry)?;
    let keys = memories.iter().map(|_| agree_on_keys(options));
    let keys = keys.collect::<anyhow::Result<Vec<_>>>()?;
    let agreed: Vec<_> = keys.iter().flatten().map(TermKeys::pair).collect();
    let earlier_off = EarlierPlaneOff::wait_for(&options.dir, stop)?;
    let udp = service.socket().transpose()?;
    let planes = choose_plane(
        options,
        &groups_of(options),
        registry,
        udp.as_ref(),
        &agreed,
        S::Application::work_max_of,
        &earlier_off,
    )?;
    let incarnation = memories[0].incarnation;
    let configs = memories.iter().enumerate();
    let configs =
        configs.map(|(place, memory)| config(options, group_at(place), memory, &addresses));
    let configs = configs.collect::<anyhow::Result<Vec<_>>>()?;
    let said = (configs[0].promise(), memories[0].past.amnesiac);
    let start_fault = memories.iter().find_map(|it| it.past.fault.clone());
    let services = [service].into_iter().chain(iter::repeat_with(S::default));
    let planes = planes
        .into_iter()
        .map(Some)
        .chain(iter::repeat_with(|| None));
    let parts = configs.into_iter().zip(services).zip(keys).zip(planes);
    let mut groups = Vec::new();
    for (place, (memory, parts)) in memories.into_iter().zip(parts).enumerate() {
        let (((config, service), keys), plane) = parts;
        let group = Joining {
            place,
            config,
            memory,
            service,
            keys,
            plane,
        };
        groups.push(group.join(options, &addresses, &earlier_off, stop)?);
    }
    let hello = hello(options, incarnation, &addresses, &groups, said)?;
    let admission = open_admission(options, &hello)?;
    let mut groups = groups.into_iter();
    let (core, upkeep) = groups.next().context("a server has a group")?;
    let mut links = open_links(options, hello, peers, registry)?;
    links.set_committed(core.group.replica.committed_members());
    let mut clients = open_clients(options, listeners, registry)?;
    clients.lets_everybody_in = admission.accounts.is_none();
    let now = core.group.now;
    let mut server = Server {
        options: options.clone(),
        addresses,
        incarnation,
        start_fault,
        poll,
        core,
        upkeep,
        others: groups.collect(),
        at_hand: 0,
        first_in_turn: 0,
        budget: Budget::new(options.election_timeout),
        links,
        clients,
        admission,
        admin: mpsc::sync_channel(0).1,
        address_book: AddressBook::default(),
        link_events: Vec::new(),
        scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
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
        service_manager: ServiceManager::default(),
        how_far: HowFar::default(),
        is_removal_told: false,
        counters: LoopCounters::default(),
    };
    server.each_group(S::begin);
    server.try_each_group(|server| {
        let membership = server.core.group.replica.membership().clone();
        server.follow_membership(&membership)
    })?;
    Ok(server)
}

/// What a group is made of.
struct Joining<S: Service> {
    /// In the list of the server's.
    place: usize,
    config: Config,
    memory: Memory<S::Application>,
    service: S,
    keys: Option<TermKeys>,
    plane: Option<(Plane, Hosting)>,
}

impl<S: Service> Joining<S> {
    fn join(
        self,
        options: &ServerOptions,
        addresses: &Addresses,
        earlier_off: &EarlierPlaneOff,
        stop: &AtomicBool,
    ) -> anyhow::Result<Other<S>> {
        let (memory, group) = (self.memory, group_at(self.place));
        let snapshot = memory.stored.snapshot.as_ref();
        let snapshot = snapshot.map(|meta| (meta.last_index, meta.log_time));
        let life = memory.incarnation;
        let now = (memory.earlier).wait_out(&memory.folder, earlier_off, life, stop)?;
        let replica = Replica::new(self.config, now, memory.stored)
            .context("what the data folder holds contradicts itself")?;
        let mut core = Core::new(self.service, replica, memory.journal, group, now);
        core.group.begin_from(memory.store, snapshot);
        core.group.bytes_since_snapshot =
            snapshots::head_start(options.snapshot_log_bytes, options.id);
        if let Some((plane, hosting)) = self.plane {
            core.group.plane = Some(plane);
            core.hosting = Some(hosting);
        }
        core.group.term_keys = self.keys;
        core.history = memory.past.member_history();
        addresses
            .native_of(self.place)
            .clone_into(&mut core.native_address);
        (core.group.forwards).begin(random_number()?, random_number()? >> 1);
        core.refuse_on_follower = options.on_follower == OnFollower::Refuse;
        let upkeep = Upkeep {
            folder: memory.folder,
            snapshots: memory.snapshots,
            waiting: BTreeMap::new(),
            snapshot_retry_at: None,
            ready_once_applied: core.group.committed,
        };
        Ok((Box::new(core), Box::new(upkeep)))
    }
}

fn open_admission(options: &ServerOptions, hello: &peer::Hello) -> anyhow::Result<Admission> {
    let identity = Identity {
        replica: hello.replica,
        cluster: hello.cluster.clone(),
    };
    let (accounts, wall_s) = (options.load_accounts()?, clock::wall_ms() / 1000);
    Ok(Admission::new(identity, accounts, wall_s))
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
    listeners: Vec<Listener>,
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

fn config<A>(
    options: &ServerOptions,
    group: GroupId,
    memory: &Memory<A>,
    addresses: &Addresses,
) -> anyhow::Result<Config> {
    let begins_cluster = !options.join && !memory.past.amnesiac;
    Ok(Config {
        group,
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
        snapshot_chunk_bytes_max: SNAPSHOT_CHUNK_BYTES_MAX,
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
    let keys = || random_key().map(TermKeys::new);
    agrees.then(keys).transpose()
}

fn bind(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        rustix::net::listen(&listener, ACCEPT_QUEUE_MAX)?;
        Ok(listener)
    });
    bound.with_context(|| format!("option {option}: cannot listen on {address}"))
}

impl<S: Service> Server<S> {
    /// The members changed: dial whom we must know, and remember for good that we are one of them.
    pub fn follow_membership(&mut self, membership: &Membership) -> anyhow::Result<()> {
        let lineage = self.core.group.replica.lineage_in_log();
        if let Some((plane, hosting)) = self.core.hosted() {
            hosting.set_lineage(plane, lineage);
        }
        if self.at_hand > 0 {
            return Ok(()); // who is a member of the server's cluster, the first group says
        }
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

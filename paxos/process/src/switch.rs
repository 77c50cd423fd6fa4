//! A switch: a process that coordinates or votes. One thread waits for packets, lets the host do what they
//! mean, makes durable what has to be, and sends what came of it.
use crate::deployment_file::{DeploymentError, DeploymentFile};
use crate::progress::Progress;
use crate::station::Station;
use crate::status::{STATUS_PAUSE, SlowStatus, Standing, StatusCell, SwitchStatus};
use quorumwire_datagrams::Datagrams;
use quorumwire_fastpath::{PaxosCounters, PaxosEngine, PaxosMemory, PaxosStore};
use quorumwire_interfaces::PlaneError;
use quorumwire_paxos::CoordinatorOptions;
use quorumwire_paxos_hosts::{AcceptorHost, AcceptorOptions, CoordinatorHost, Place, Since};
use quorumwire_plane_door::{BoxSetup, Demand, KindOptions, NotOpened, PlaneKind, Values};
use quorumwire_storage::{
    Disk, FolderDisk, MemoryDisk, VoteLog, VotesError, VotesFolder, VotesOwner,
};
use quorumwire_wire::PaxosRecord;
use quorumwire_wire::packet::PaxosRole;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// What a switch does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It gives values their instances.
    Coordinator,
    /// It votes.
    Acceptor,
}

impl Role {
    /// As options call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Acceptor => "acceptor",
        }
    }
}

/// What an acceptor remembers beyond its process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// Promises and votes, which are on disk before they are said.
    Sync,
    /// Which life it is in: each start is a new one, which the others let in.
    Memory,
}

impl Durability {
    /// As options call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Memory => "memory",
        }
    }
}

/// What an acceptor was before its folder is made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lives {
    /// Nothing: it has never promised anything.
    First,
    /// It has, and its folder is lost: the others have to let it in.
    ReplacesLost,
}

/// A kind of plane that has boxes, and what was given for its options.
#[derive(Clone, Debug)]
pub struct BoxPlane {
    /// The kind.
    pub kind: &'static PlaneKind,
    /// Of its options those that boxes have.
    pub values: Values,
}

impl BoxPlane {
    /// A box of this kind that is off, where a switch listens.
    fn open(
        &self,
        (listen, listen_option): (SocketAddr, &'static str),
        setup: BoxSetup,
        destinations: &[SocketAddr],
    ) -> Result<Box<dyn PaxosStore>, SwitchError> {
        let kind = self.kind;
        let Some(boxes) = &kind.boxes else {
            return Ok(Box::new(PaxosMemory::new(setup.window)));
        };
        let kind_options = KindOptions {
            demand: Demand::Yes,
            listen,
            listen_option,
            values: &self.values,
        };
        let mut opened = (boxes.open)(&kind_options, setup).map_err(SwitchError::Plane)?;
        let reached = opened.store.set_destinations(destinations);
        reached.map_err(|error| {
            let (option, text) = ("plane".to_owned(), error.to_string());
            SwitchError::Plane(NotOpened { option, text })
        })?;
        if let Some(runs) = &opened.runs {
            let name = kind.name;
            tracing::info!("the plane {name} runs {runs}");
        }
        Ok(opened.store)
    }
}

/// How a switch is run.
#[derive(Clone, Debug)]
pub struct SwitchOptions {
    /// The deployment.
    pub deployment: DeploymentFile,
    /// Its role there.
    pub role: Role,
    /// Its number among those of the role, from 0.
    pub number: u8,
    /// Where it listens, if that is not the address that the deployment's file gives.
    pub listen: Option<SocketAddr>,
    /// An acceptor's folder.
    pub dir: Option<PathBuf>,
    /// It, where it need not survive the process; `dir` only names it then.
    pub memory: Option<MemoryDisk>,
    /// What an acceptor remembers.
    pub durability: Durability,
    /// It looks for packets for so long before it sleeps.
    pub busy_poll: Duration,
    /// Where its step runs; `None`: in this process.
    pub plane: Option<BoxPlane>,
    /// Values up to this instance are lost to learners that have not checkpointed them. The operator says so
    /// to each switch.
    pub declare_lost: Option<u64>,
}

/// Why a switch does not run, or stops.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// An option makes no sense.
    #[error("option {option}: {text}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What is wrong, and what is allowed.
        text: String,
    },
    /// The deployment's file or key cannot be used.
    #[error("option deployment: {0}")]
    Deployment(DeploymentError),
    /// It cannot listen.
    #[error("cannot listen on {0}: {1}{hint}", hint = in_use(.1))]
    Listen(SocketAddr, io::Error),
    /// Its folder cannot be opened or made.
    #[error("{0}: {1}")]
    Folder(PathBuf, io::Error),
    /// What is in its folder cannot be used.
    #[error("{0}: {1}{hint}", hint = to_be_made(.1))]
    Votes(PathBuf, VotesError),
    /// The disk failed: what was not durable was not said.
    #[error("{0}: writing votes: {1}; restart it when the disk works")]
    Disk(PathBuf, io::Error),
    /// Its plane cannot run here.
    #[error("{0}")]
    Plane(NotOpened),
    /// Its plane does not work any more.
    #[error("the plane failed: {0}")]
    PlaneFailed(PlaneError),
    /// A number that nobody can guess is not to be had.
    #[error("no random number: {0}")]
    Random(#[from] getrandom::Error),
    /// The box takes no role.
    #[error("{0}")]
    Box(PlaneError),
    /// The time of day is before 1970.
    #[error("the clock is not set: {0}")]
    Clock(String),
    /// The system does not say when packets come.
    #[error("waiting for packets: {0}")]
    Wait(io::Error),
}

impl From<DeploymentError> for SwitchError {
    fn from(error: DeploymentError) -> Self {
        Self::Deployment(error)
    }
}

impl SwitchError {
    /// Whether it was asked for something that makes no sense. Where a plane cannot run here, another one
    /// may hold its interface: as of a server that says nothing of the options.
    #[must_use]
    pub fn is_of_options(&self) -> bool {
        matches!(self, Self::Option { .. } | Self::Deployment(_))
    }
}

impl SwitchOptions {
    fn all_of_role(&self) -> &[SocketAddr] {
        match self.role {
            Role::Coordinator => &self.deployment.addresses.coordinators,
            Role::Acceptor => &self.deployment.addresses.acceptors,
        }
    }

    /// Its address in the deployment.
    pub(crate) fn own_address(&self) -> Result<SocketAddr, SwitchError> {
        let all = self.all_of_role();
        let own = all.get(usize::from(self.number)).copied();
        own.ok_or_else(|| SwitchError::Option {
            option: "number",
            text: format!(
                "there is no {} with this number; allowed: 0 to {}",
                self.role.as_str(),
                all.len().saturating_sub(1)
            ),
        })
    }

    /// Where an acceptor hears together with the others, and at which of its own addresses. Only where others
    /// know it: another one of its number would hear what the right one does, and has promised nothing.
    fn hears_together(
        &self,
        listen: SocketAddr,
    ) -> Result<Option<(SocketAddrV4, Ipv4Addr)>, SwitchError> {
        let (Role::Acceptor, Some(SocketAddr::V4(group))) =
            (self.role, self.deployment.addresses.all_acceptors)
        else {
            return Ok(None);
        };
        let own = self.own_address()?;
        if !self.is_where_known()? {
            let text = format!(
                "{listen} is not where the deployment's file has this acceptor, and with multicast another one could \
                 have its number; allowed: {own}"
            );
            return Err(SwitchError::Option {
                option: "listen",
                text,
            });
        }
        Ok(match own.ip() {
            IpAddr::V4(own) => Some((group, own)),
            IpAddr::V6(_) => None,
        })
    }

    fn dir(&self) -> Result<&PathBuf, SwitchError> {
        self.dir.as_ref().ok_or(SwitchError::Option {
            option: "dir",
            text: "an acceptor needs a folder, in which it counts its lives".to_owned(),
        })
    }

    fn open_disk(&self) -> Result<Arc<dyn Disk>, SwitchError> {
        if let Some(memory) = &self.memory {
            return Ok(Arc::new(memory.clone()));
        }
        let dir = self.dir()?;
        let disk = FolderDisk::open(dir).map_err(|error| SwitchError::Folder(dir.clone(), error));
        Ok(Arc::new(disk?))
    }

    fn owner(&self) -> VotesOwner {
        VotesOwner {
            group: self.deployment.deployment.group,
            acceptors: self.deployment.deployment.acceptors,
            me: self.number,
            is_durable: self.durability == Durability::Sync,
        }
    }
}

/// Makes an acceptor's folder. Done once in an acceptor's life: one that was made anew and taken for an
/// acceptor that has never promised anything could lose what was decided.
///
/// # Errors
/// There is one, or it cannot be made.
pub fn make_folder(options: &SwitchOptions, lives: Lives) -> Result<(), SwitchError> {
    options.own_address()?;
    if options.role != Role::Acceptor {
        return Err(SwitchError::Option {
            option: "make-folder",
            text: "a coordinator has no folder; allowed: role acceptor".to_owned(),
        });
    }
    let dir = options.dir()?;
    let life = match lives {
        Lives::First => 0,
        // Above those that were counted from 0, and above those of an earlier loss.
        Lives::ReplacesLost => {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let since = since.map_err(|error| SwitchError::Clock(error.to_string()))?;
            u64::try_from(since.as_micros())
                .unwrap_or(u64::MAX / 2)
                .max(1)
        }
    };
    let disk = options.open_disk()?;
    VotesFolder::create(&*disk, &options.owner(), life)
        .map_err(|error| SwitchError::Votes(dir.clone(), error))
}

fn to_be_made(error: &VotesError) -> &'static str {
    if matches!(error, VotesError::Nobody) {
        " (option make-folder: `first` in a new deployment, `lost` where it has run before)"
    } else {
        ""
    }
}

fn in_use(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::AddrInUse {
        ": perhaps this switch runs already"
    } else {
        ""
    }
}

/// How often a box looks after its surroundings.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// What a switch is told while it runs.
#[derive(Clone, Debug, Default)]
pub struct SwitchSignals {
    /// To stop.
    pub stop: Arc<AtomicBool>,
    /// A coordinator: [`SwitchSignals::TAKE_OVER`] or [`SwitchSignals::RETIRE`], whichever was said last; the
    /// switch takes it back.
    pub operator: Arc<AtomicUsize>,
}

impl SwitchSignals {
    /// Take over, whoever coordinates.
    pub const TAKE_OVER: usize = 1;
    /// Leave it to others, until it is told to take over.
    pub const RETIRE: usize = 2;

    /// Nothing but when to stop.
    #[must_use]
    pub fn to_stop(stop: Arc<AtomicBool>) -> Self {
        Self {
            stop,
            ..Self::default()
        }
    }
}

/// Runs a switch until it is told to stop.
///
/// # Errors
/// Why it cannot begin, or go on.
pub fn run(
    options: &SwitchOptions,
    told: &SwitchSignals,
    status: &StatusCell,
) -> Result<(), SwitchError> {
    let own = options.own_address()?;
    // Before a life is begun in vain.
    let listen = options.listen.unwrap_or(own);
    let failed = |error| SwitchError::Listen(listen, error);
    let wire = Datagrams::bind(listen).map_err(failed)?;
    if let (Some(_), IpAddr::V4(own)) = (options.deployment.addresses.all_acceptors, listen.ip()) {
        wire.send_to_groups_by(own).map_err(failed)?;
    }
    let together = options.hears_together(listen)?;
    // A coordinator that listens elsewhere says there that it lives, too: another one may have its number.
    let not_sent_to = match options.role {
        Role::Coordinator => listen,
        Role::Acceptor => own,
    };
    let place = match &options.plane {
        Some(plane) => {
            let addresses = &options.deployment.addresses;
            let destinations = match options.role {
                Role::Coordinator => CoordinatorHost::destinations(addresses),
                Role::Acceptor => AcceptorHost::destinations(addresses),
            };
            let setup = BoxSetup {
                window: options.deployment.deployment.window,
                hears: together.map(|(group, _)| *group.ip()),
            };
            let given_by = options.listen.map_or("deployment", |_| "listen");
            let store = plane.open((listen, given_by), setup, &destinations)?;
            options.deployment.place_within(not_sent_to, store)?
        }
        None => options.deployment.place(not_sent_to)?,
    };
    let (host, log) = match options.role {
        Role::Coordinator => {
            let host = coordinator(options, place)?;
            (Host::Coordinator(Box::new(host)), None)
        }
        Role::Acceptor => {
            let (host, log) = acceptor(options, place)?;
            (Host::Acceptor(Box::new(host)), log)
        }
    };
    tracing::info!(
        deployment = options.deployment.name,
        role = ?options.role,
        number = options.number,
        address = %own,
        listens = %listen,
        "the switch runs"
    );
    let mut station = Station::new(wire, log, options.busy_poll);
    if let Some((group, own)) = together {
        let socket = Datagrams::bind_group(group, own);
        station.hear_together(socket.map_err(|error| SwitchError::Listen(group.into(), error))?);
    }
    let mut process = Process {
        host,
        station,
        dir: options.dir.clone().unwrap_or_default(),
        next_status: Duration::ZERO,
        next_look: Duration::ZERO,
        counters: PaxosCounters::default(),
        slow: Arc::default(),
        to_declare: None,
        progress: Progress::default(),
        status,
    };
    if let Some(upto) = options.declare_lost {
        process.declare_lost(upto)?;
    }
    process.run(told)?;
    tracing::info!("the switch has stopped");
    Ok(())
}

impl SwitchOptions {
    /// Whether it listens at the address in the deployment's file. All addresses of the machine are as good,
    /// if that one is among them.
    pub(crate) fn is_where_known(&self) -> Result<bool, SwitchError> {
        let own = self.own_address()?;
        let all = |it: SocketAddr| it.ip().is_unspecified() && it.port() == own.port();
        Ok(self
            .listen
            .is_none_or(|it| it == own || all(it) && is_of_this_machine(own.ip())))
    }
}

fn is_of_this_machine(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

fn coordinator(options: &SwitchOptions, place: Place) -> Result<CoordinatorHost, SwitchError> {
    let timing = options.deployment.timing;
    let coordinator = CoordinatorOptions {
        deployment: options.deployment.deployment,
        me: options.number,
        is_where_known: options.is_where_known()?,
        heartbeat: timing.heartbeat,
        silence: timing.silence,
        retry: timing.retry,
    };
    let seed = getrandom::u64()?;
    Ok(CoordinatorHost::new(coordinator, place, Since::ZERO, seed))
}

fn acceptor(
    options: &SwitchOptions,
    place: Place,
) -> Result<(AcceptorHost, Option<VoteLog>), SwitchError> {
    let dir = options.dir()?;
    let votes_failed = |error| SwitchError::Votes(dir.clone(), error);
    let disk = options.open_disk()?;
    let mut folder = VotesFolder::open(disk, options.owner()).map_err(votes_failed)?;
    let acceptor = AcceptorOptions {
        deployment: options.deployment.deployment,
        me: options.number,
        is_durable: options.durability == Durability::Sync,
    };
    let mut log = None;
    if acceptor.is_durable {
        let (kept, records) = folder.votes().map_err(votes_failed)?;
        let is_standing = |record: &PaxosRecord| {
            matches!(record, PaxosRecord::Registers(_) | PaxosRecord::Slot(..))
        };
        if records.iter().any(is_standing) {
            tracing::info!(
                records = records.len(),
                "the acceptor goes on with its votes"
            );
            let host = AcceptorHost::restored(acceptor, place, records);
            return Ok((host.map_err(SwitchError::Box)?, Some(kept)));
        }
        log = Some(kept);
    }
    let life = folder.begin_life().map_err(votes_failed)?;
    let host = begin(acceptor, place, life)?;
    if let Some(log) = &mut log
        && !host.software().is_newcomer()
    {
        // It has begun, though it has not been asked anything yet: the next start is no new life.
        let written = log.rewrite(host.records());
        written.map_err(|error| SwitchError::Disk(dir.clone(), error))?;
    }
    Ok((host, log))
}

/// It remembers nothing but its number of lives.
fn begin(acceptor: AcceptorOptions, place: Place, life: u64) -> Result<AcceptorHost, SwitchError> {
    if life == 0 {
        tracing::info!("the acceptor begins with the deployment");
        return AcceptorHost::first(acceptor, place).map_err(SwitchError::Box);
    }
    tracing::info!(
        life,
        "the acceptor begins a new life, and waits to be let in"
    );
    Ok(AcceptorHost::newcomer(acceptor, place, life))
}

enum Host {
    Coordinator(Box<CoordinatorHost>),
    Acceptor(Box<AcceptorHost>),
}

impl Host {
    fn engine(&self) -> &PaxosEngine {
        match self {
            Self::Coordinator(host) => host.engine(),
            Self::Acceptor(host) => host.engine(),
        }
    }

    fn last_checkpoint(&self) -> Option<(u8, u64)> {
        match self {
            Self::Coordinator(host) => host.software().last_checkpoint(),
            Self::Acceptor(host) => host.software().last_checkpoint(),
        }
    }

    /// A coordinator that coordinates: the instance that learners have had, and the last with a value.
    fn open(&self) -> Option<(u64, u64)> {
        match self {
            Self::Coordinator(host) if host.software().coordinates() => {
                let last = host.engine().registers().next_instance.saturating_sub(1);
                Some((host.software().had(), last))
            }
            Self::Coordinator(_) | Self::Acceptor(_) => None,
        }
    }

    fn look_around(&mut self) -> Option<String> {
        match self {
            Self::Coordinator(host) => host.look_around(),
            Self::Acceptor(host) => host.look_around(),
        }
    }
}

struct Process<'a> {
    host: Host,
    station: Station,
    dir: PathBuf,
    next_status: Duration,
    next_look: Duration,
    /// As of the last look.
    counters: PaxosCounters,
    slow: Arc<SlowStatus>,
    /// A coordinator: lost up to here, once it coordinates.
    to_declare: Option<u64>,
    progress: Progress,
    status: &'a StatusCell,
}

impl Process<'_> {
    /// As it starts, an acceptor does what the operator says. A coordinator waits until it coordinates.
    fn declare_lost(&mut self, upto: u64) -> Result<(), SwitchError> {
        let refused = |text: String| SwitchError::Option {
            option: "declare-lost",
            text,
        };
        let Host::Acceptor(host) = &mut self.host else {
            self.to_declare = Some(upto);
            return Ok(());
        };
        let highest = host.engine().registers().highest;
        if host.software().is_newcomer() {
            let text =
                "an acceptor that waits to be let in hears it from the coordinator: say it there";
            return Err(refused(text.to_owned()));
        }
        if upto > highest {
            return Err(refused(format!(
                "the acceptor has voted up to instance {highest}; allowed: 0 to {highest}"
            )));
        }
        host.declare_lost(upto, &mut self.station.driver());
        tracing::warn!(upto, "values are declared lost");
        Ok(())
    }

    /// A coordinator that has begun to coordinate.
    fn declare_what_is_to_be(&mut self) {
        let Host::Coordinator(host) = &mut self.host else {
            return;
        };
        if !host.software().coordinates() {
            return;
        }
        let Some(upto) = self.to_declare.take() else {
            return;
        };
        let next = host.engine().registers().next_instance;
        if upto >= next {
            tracing::error!(
                upto,
                next,
                "values are not declared lost: there is no such instance yet"
            );
            return;
        }
        host.declare_lost(upto, &mut self.station.driver());
        tracing::warn!(upto, "values are declared lost");
    }

    /// A coordinator does what its operator says.
    fn obey(&mut self, now: Since, told: &SwitchSignals) {
        let said = told.operator.swap(0, Ordering::Relaxed);
        if said == 0 {
            return;
        }
        let Host::Coordinator(host) = &mut self.host else {
            tracing::warn!("an acceptor neither takes over nor retires: only a coordinator does");
            return;
        };
        let driver = &mut self.station.driver();
        if said == SwitchSignals::RETIRE {
            tracing::warn!(
                "the operator has this coordinator leave it to others, until it is told to take over"
            );
            host.retire(driver);
        } else {
            tracing::warn!("the operator has this coordinator take over");
            host.take_over(now, driver);
        }
    }

    fn run(&mut self, told: &SwitchSignals) -> Result<(), SwitchError> {
        while !told.stop.load(Ordering::Relaxed) {
            if let Some(now) = self.station.tick() {
                self.obey(now, told);
                self.tick(now);
            }
            let host = &mut self.host;
            self.station
                .receive(|now, from, datagram, around| match host {
                    Host::Coordinator(host) => host.receive(now, from, datagram, around),
                    Host::Acceptor(host) => host.receive(from, datagram, around),
                });
            if let Some(fault) = self.host.engine().fault() {
                return Err(SwitchError::PlaneFailed(fault.clone()));
            }
            self.make_durable()?;
            self.station.wire.flush();
            self.station.wait(None).map_err(SwitchError::Wait)?;
        }
        Ok(())
    }

    fn tick(&mut self, now: Since) {
        self.declare_what_is_to_be();
        let looks = now >= self.next_look;
        if looks {
            self.next_look = now + LOOK_PAUSE;
            if let Some(news) = self.host.look_around() {
                tracing::warn!("{news}");
            }
            let engine = self.host.engine();
            self.counters = engine.counters();
            self.slow = Arc::new(SlowStatus {
                of_plane: engine.counts_of_store(),
                surroundings: engine.surroundings(),
            });
        }
        let driver = &mut self.station.driver();
        match &mut self.host {
            Host::Coordinator(host) => host.tick(now, driver),
            Host::Acceptor(host) => host.tick(now, driver),
        }
        if looks {
            let last = self.host.last_checkpoint();
            self.station.reporter.look(&self.counters, last);
        }
        self.progress.note(now, self.host.open());
        if self.progress.is_to_be_said() {
            tracing::warn!(
                "nothing was decided for some time, though values are proposed: a majority of acceptors, or every \
                 learner, is gone"
            );
        }
        if now >= self.next_status {
            self.next_status = now + STATUS_PAUSE;
            self.status.set(self.status_now());
        }
    }

    fn status_now(&self) -> SwitchStatus {
        let registers = self.host.engine().registers();
        let (standing, round, life) = match &self.host {
            Host::Coordinator(host) => {
                let software = host.software();
                let standing = Standing::Coordinator(software.standing());
                (standing, software.known_round(), None)
            }
            Host::Acceptor(host) => {
                let software = host.software();
                let standing = if software.is_newcomer() {
                    Standing::Newcomer
                } else {
                    Standing::Votes
                };
                // Who was not among the majority that promised a round votes in it all the same.
                let voted_in = self.host.engine().vote_round(registers.highest);
                let round = registers.round.max(voted_in);
                (standing, round, Some(software.life()))
            }
        };
        SwitchStatus {
            at: Some(Instant::now()),
            is_on: registers.role != PaxosRole::Off as u8,
            standing: Some(standing),
            round,
            life,
            registers,
            counters: self.counters,
            of_software: self.station.reporter.counters,
            of_socket: self.station.socket_counters(),
            slow: Arc::clone(&self.slow),
            last_checkpoint: self.host.last_checkpoint(),
            undecided: self.progress.stands(),
            unreached: self.station.reporter.unreached(),
        }
    }

    /// What was appended is durable; then what waits for it is said.
    fn make_durable(&mut self) -> Result<(), SwitchError> {
        let station = &mut self.station;
        let (Host::Acceptor(host), Some(votes)) = (&mut self.host, &mut station.votes) else {
            return Ok(());
        };
        let failed = |error| SwitchError::Disk(self.dir.clone(), error);
        if votes.log.has_unsynced() {
            let begun = Instant::now();
            votes.log.sync().map_err(failed)?;
            station.reporter.synced(begun.elapsed());
            host.durable(votes.appended, &mut station.wire);
        }
        if votes.log.is_to_be_rewritten() && !host.software().is_newcomer() {
            let begun = Instant::now();
            votes.log.rewrite(host.records()).map_err(failed)?;
            station.reporter.rewritten(begun.elapsed());
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "switch_test.rs"]
mod tests;

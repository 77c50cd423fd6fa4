//! What a seed stands for: the sizes of a cluster and the list of what goes wrong in it. Runs nothing.
use crate::datagrams::Weather;
use crate::fault::{ByteFault, Change, ClockFault, DiskFault, Fault, Kind, MOMENTS, Moment};
use crate::fault::{NetworkFault, Shape, Strike, Target};
use crate::queue::{MILLISECOND, Nanos, SECOND};
use crate::random::{Random, mix};

/// How long things go wrong, in simulated time.
pub const TROUBLE: Nanos = 358 * SECOND;
/// In most seeds nothing goes wrong before this: the cluster has begun.
const CALM_START: Nanos = 2 * SECOND;
/// Faults planned for a seed.
const FAULTS: u64 = 420;
/// Sets the choice of a lease apart from the plan's other choices.
pub const LEASES: u64 = 0x1ea5_e5e7;
/// Likewise the lineages.
pub const LINEAGES: u64 = 0x11ea_6e5e;
/// Likewise who begins with older code.
const OLDER: u64 = 0x0000_1de5;
/// Machines are restarted this often before they run newer code, at most.
const OLDER_RUNS_MAX: u64 = 16;
/// Likewise whose clocks drift as far as they may.
const AT_BOUND: u64 = 0x0b0a_d21f;
/// Likewise whether followers pass requests on.
const FORWARDS: u64 = 0x0f0a_0a4d;
/// In so many of a thousand seeds they do; else they refuse.
const FORWARDS_PERMILLE: u64 = 700;
/// Likewise in pieces of which size snapshots are sent.
const CHUNKS: u64 = 0x00c4_0245;
/// Likewise which clusters begin with two voters.
const PAIRS: u64 = 0x0002_0002;
/// So many of a thousand of those that may shrink to one.
const PAIRS_PERMILLE: u64 = 250;
/// Sets faults of later invention apart likewise.
const APART: u64 = 0x00fa_0175;
/// Where one voter begins: so many wishes to add one, for each that is to be added. Some come too early.
const ADDED_PER_VOTER: u64 = 4;
/// Where one voter may be left: so many wishes more than elsewhere to remove somebody or take somebody back.
const REMOVALS: u64 = 60;
/// Where clocks drift within their bound: how often a time daemon changes the speed of one.
const SLEWS: u64 = 40;
/// Where followers pass requests on: how often leadership goes away and comes back.
const RETURNS: u64 = 30;
/// By how much a clock may be fast or slow, parts per million: as far as Linux lets time daemons go. The
/// default of `clock-drift-ppm` is twice as much, for a fast clock beside a slow one.
pub const DRIFT_BOUND_PPM: u64 = 100_000;
/// In so many of a thousand seeds whose clocks drift, they do so as far as that.
const AT_BOUND_PERMILLE: u64 = 400;
/// In so many of a thousand seeds with planes, some of these lose each other while their processes do not,
/// and some will not engage; and so many times in each.
const PLANES_APART_PERMILLE: u64 = 400;
const PLANES_APART: u64 = 40;
/// In so many of a thousand seeds snapshots cannot be read, and so many times in each.
const UNREADABLE_PERMILLE: u64 = 300;
const UNREADABLE: u64 = 30;
/// In so many of a thousand seeds replicas move, and so many times in each.
const MOVING_PERMILLE: u64 = 300;
const MOVES: u64 = 30;
/// By how much some clocks are wrong.
pub const A_YEAR_S: i32 = 31_536_000;
/// Between two heartbeats, in milliseconds. The short ones take most of the processor's time, the long
/// ones leave gaps for everything else.
const HEARTBEATS_MS: [u64; 16] = [
    30, 60, 100, 100, 150, 150, 150, 150, 150, 150, 150, 150, 400, 400, 400, 1000,
];
/// With these an election timeout may be many heartbeats, as it usually is in the product.
const SHORT_HEARTBEAT: Nanos = 60 * MILLISECOND;
/// Leases, in tenths of a heartbeat, up to the election timeout.
const LEASES_TENTHS: [u64; 4] = [15, 20, 30, 1_000];
/// Faults last as if no election timeout were longer: else a cluster with a long one would hardly ever
/// be whole.
const FAULT_TIMEOUT_MAX: Nanos = 750 * MILLISECOND;

/// What an acknowledgement of a write means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// On disk at a majority.
    Sync,
    /// In memory at a majority.
    Memory,
}

/// Which replicas have a data plane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Planes {
    /// All of them.
    All,
    /// All but the second.
    AllButOne,
    /// None.
    None,
}

impl Planes {
    /// Whether this replica has one.
    #[must_use]
    pub const fn has_plane(self, id: u16) -> bool {
        match self {
            Self::All => true,
            Self::AllButOne => id != 1,
            Self::None => false,
        }
    }
}

/// How a cluster begins, and how small it may become.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClusterShape {
    /// All voters begin it; two stay at least.
    Usual,
    /// All voters begin it; one stays at least.
    Shrinks,
    /// The first voter begins it alone, and adds the others; one stays at least.
    BeginsAlone,
    /// All voters begin it, but the last takes part late: see `latecomer.rs`.
    Latecomer,
}

impl ClusterShape {
    /// As many voters stay, however many are removed.
    #[must_use]
    pub const fn voters_min(self) -> usize {
        match self {
            Self::Usual | Self::Latecomer => 2,
            Self::Shrinks | Self::BeginsAlone => 1,
        }
    }
}

/// The sizes of one cluster.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What everything else follows from.
    pub seed: u64,
    /// Members at the beginning: 2, 3, 5 or 7.
    pub voters: u16,
    /// Replicas that wait to be added: 0 to 2.
    pub spares: u16,
    /// What acknowledgements mean.
    pub durability: Durability,
    /// In nanoseconds.
    pub election_timeout: Nanos,
    /// In nanoseconds.
    pub heartbeat: Nanos,
    /// How long voters' promises to a leader last, in nanoseconds: each process of each replica has one
    /// of these.
    pub leases: Vec<Nanos>,
    /// How often a connection between two that run breaks: so many of a thousand times that
    /// connections are looked at.
    pub breaks: u64,
    /// By how much the replicas believe two clocks may drift apart, parts per million.
    pub drift_allowed_ppm: u32,
    /// By how much one clock differs from true time at most, parts per million.
    pub drift_ppm_max: u64,
    /// The clocks keep to what is allowed: no read may be stale.
    pub clocks_are_sound: bool,
    /// Whether leaders may read by their leases; where not, no read may be stale whatever the clocks do.
    pub lease_reads: bool,
    /// Bytes of a log segment.
    pub segment_bytes: u64,
    /// Bytes applied between two snapshots.
    pub snapshot_log_bytes: u64,
    /// Bytes of entries kept in memory behind a snapshot.
    pub log_tail_bytes: usize,
    /// Most bytes proposed and not committed.
    pub uncommitted_bytes_max: usize,
    /// Appends under way to one follower.
    pub appends_in_flight_max: usize,
    /// Clients.
    pub clients: u16,
    /// Clients that ask planes.
    pub plane_clients: u16,
    /// Keys in use at a time.
    pub keys: u32,
    /// Mean time between two operations of a client.
    pub think: Nanos,
    /// Usual time of a message under way: from, to.
    pub delay: (Nanos, Nanos),
    /// Usual time of a write to disk: from, to.
    pub disk: (Nanos, Nanos),
    /// Some things go wrong while the cluster begins.
    pub early_faults: bool,
    /// How the cluster begins, and how small it may become.
    pub shape: ClusterShape,
    /// Who has a data plane.
    pub planes: Planes,
    /// Entries that a plane's ring holds.
    pub ring_slots: u32,
    /// Entries that may wait for a plane's commit.
    pub window: u32,
    /// Time in a software term before a fast one is tried: the shortest and the longest.
    pub engage_interval: Nanos,
    /// See `engage_interval`.
    pub engage_interval_max: Nanos,
    /// A plane needs a while to stop.
    pub slow_fence: bool,
    /// A process is woken for every datagram, not only for entries and commits.
    pub wakes_for_all: bool,
    /// A plane outlives a process that is killed.
    pub plane_outlives: bool,
    /// What usually happens to datagrams.
    pub datagrams: Weather,
    /// Whoever the cluster begins with may run older code at first: see [`older_runs`](Self::older_runs).
    pub begins_older: bool,
}

impl Settings {
    /// Followers pass on what clients ask of them.
    #[must_use]
    pub fn forwards(&self) -> bool {
        Random::new(mix(self.seed ^ FORWARDS)).permille(FORWARDS_PERMILLE)
    }

    /// In half of all seeds a snapshot has several chunks.
    #[must_use]
    pub fn snapshot_chunk_bytes_max(&self) -> usize {
        let random = &mut Random::new(mix(self.seed ^ CHUNKS));
        random
            .pick(&[2 << 10, 32 << 10, 1 << 20, 1 << 20])
            .unwrap_or(1 << 20)
    }

    /// The clocks drift as far as they may by default, and not further.
    #[must_use]
    pub const fn clocks_are_at_bound(&self) -> bool {
        self.clocks_are_sound && self.drift_ppm_max == DRIFT_BOUND_PPM
    }

    /// The speed of a clock for which chance has chosen this one. At the bound half of all clocks go exactly
    /// as fast or as slowly as they may.
    #[must_use]
    pub fn clock_ppm(&self, chosen_ppm: i64) -> i64 {
        if !self.clocks_are_at_bound() {
            return chosen_ppm;
        }
        let max = DRIFT_BOUND_PPM.cast_signed();
        (2 * chosen_ppm).clamp(-max, max)
    }

    /// How many processes of a machine, one after the other, run code that reads only half of a tick.
    #[must_use]
    pub fn older_runs(&self, id: u16) -> u32 {
        let random = &mut Random::new(mix(self.seed ^ OLDER ^ u64::from(id) << 32));
        if self.begins_older && random.permille(500) {
            u32::try_from(random.between(1, OLDER_RUNS_MAX)).unwrap_or(1)
        } else {
            0
        }
    }
}

/// A seed, spelled out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The cluster.
    pub settings: Settings,
    /// What goes wrong, by time.
    pub faults: Vec<Fault>,
    /// When peace begins.
    pub trouble: Nanos,
}

impl Plan {
    /// The plan of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let settings = settings(seed, &mut random);
        let mut faults = Vec::new();
        let menu = menu(&settings, &mut random);
        for _ in 0..FAULTS {
            let early = settings.early_faults && random.permille(40);
            let at = if early {
                random.below(CALM_START)
            } else {
                CALM_START + random.below(TROUBLE - CALM_START - SECOND)
            };
            faults.push(fault(at, &settings, &menu, &mut random));
        }
        faults_apart(&settings, &mut faults);
        faults.sort_by_key(|fault| fault.at);
        Self {
            settings,
            faults,
            trouble: TROUBLE,
        }
    }

    /// The same with only these of its faults, by number.
    #[must_use]
    pub fn keep(mut self, numbers: &[usize]) -> Self {
        let mut number = 0;
        self.faults.retain(|_| {
            number += 1;
            numbers.contains(&(number - 1))
        });
        self
    }
}

fn settings(seed: u64, random: &mut Random) -> Settings {
    let one = |random: &mut Random, list: &[u64]| random.pick(list).unwrap_or_default();
    let voters = one(random, &[3, 3, 3, 3, 5, 5, 7]);
    let heartbeat = one(random, &HEARTBEATS_MS) * MILLISECOND;
    let timeouts = if heartbeat <= SHORT_HEARTBEAT {
        one(random, &[5, 8, 20, 40])
    } else {
        one(random, &[5, 5, 5, 4, 8])
    };
    let durability = match random.below(10) {
        0..=2 => Durability::Memory,
        _ => Durability::Sync,
    };
    let clocks_are_sound = !random.permille(80);
    let drift_ppm_max = drift_ppm(seed, one(random, &[0, 100, 5_000, 45_000]));
    // A fast clock beside a slow one, and nothing beyond that.
    let allowed = u32::try_from(2 * drift_ppm_max).unwrap_or(0);
    let delay = one(random, &[50, 100, 300, 1_000]) * 1_000;
    let disk = one(random, &[20, 100, 500, 2_000]) * 1_000;
    let planes = match random.below(10) {
        0 => Planes::None,
        1 => Planes::AllButOne,
        _ => Planes::All,
    };
    let ring_slots = u32::try_from(one(random, &[4, 16, 64, 64, 256])).unwrap_or(64);
    let window = ring_slots >> random.below(3);
    // By a chance of their own: the plan's other choices do not depend on leases.
    let apart = &mut Random::new(mix(seed ^ LEASES));
    let lease_of = |tenths: u64| (tenths * heartbeat / 10).min(heartbeat * timeouts);
    let lease = lease_of(one(apart, &LEASES_TENTHS));
    let breaks = one(apart, &[0, 0, 1, 5]);
    let leases = if apart.permille(500) {
        LEASES_TENTHS.map(lease_of).to_vec()
    } else {
        vec![lease]
    };
    let lease_reads = !apart.permille(if clocks_are_sound { 100 } else { 750 });
    let shape = match apart.below(100) {
        0..=7 => ClusterShape::BeginsAlone,
        8..=19 => ClusterShape::Shrinks,
        20..=34 if durability == Durability::Sync => ClusterShape::Latecomer,
        _ => ClusterShape::Usual,
    };
    let voters = match shape {
        // With more of them, the others can elect somebody without the late one.
        ClusterShape::Latecomer => 3,
        ClusterShape::Shrinks if Random::new(mix(seed ^ PAIRS)).permille(PAIRS_PERMILLE) => 2,
        ClusterShape::Usual | ClusterShape::Shrinks | ClusterShape::BeginsAlone => voters,
    };
    let apart = &mut Random::new(mix(seed ^ OLDER));
    let begins_older = apart.permille(300);
    let engage_interval = one(random, &[20, 100, 100, 400]) * MILLISECOND;
    Settings {
        seed,
        voters: u16::try_from(voters).unwrap_or(3),
        spares: u16::try_from(random.below(3)).unwrap_or(0),
        durability,
        election_timeout: heartbeat * timeouts,
        heartbeat,
        leases,
        breaks,
        drift_allowed_ppm: if clocks_are_sound { allowed } else { 100 },
        drift_ppm_max: if clocks_are_sound {
            drift_ppm_max
        } else {
            200_000
        },
        clocks_are_sound,
        lease_reads,
        segment_bytes: one(random, &[4, 8, 16, 32]) << 10,
        snapshot_log_bytes: one(random, &[4, 16, 64]) << 10,
        log_tail_bytes: usize::try_from(one(random, &[0, 1, 8]) << 10).unwrap_or(0),
        uncommitted_bytes_max: usize::try_from(one(random, &[4, 64, 1024]) << 10).unwrap_or(4096),
        appends_in_flight_max: usize::try_from(one(random, &[1, 4, 256])).unwrap_or(4),
        clients: u16::try_from(random.between(1, 4)).unwrap_or(2),
        plane_clients: match planes {
            Planes::None => 0,
            Planes::All | Planes::AllButOne => u16::from(mix(seed) & 1 == 1) + 1,
        },
        keys: u32::try_from(random.between(2, 6)).unwrap_or(2),
        think: one(random, &[200, 400, 800]) * MILLISECOND,
        delay: (delay / 2, delay * 2),
        disk: (disk / 2, disk * 3),
        early_faults: random.permille(250),
        shape,
        planes,
        ring_slots,
        window,
        engage_interval,
        engage_interval_max: engage_interval * one(random, &[1, 4, 10]),
        slow_fence: random.permille(150),
        wakes_for_all: random.permille(150),
        plane_outlives: random.permille(400),
        datagrams: Weather {
            loss: one(random, &[0, 0, 0, 10, 50, 300]),
            repeat: one(random, &[0, 0, 10, 200]),
            late: one(random, &[0, 0, 10, 100]),
            spoil: one(random, &[0, 0, 2, 20]),
            replay: one(random, &[0, 2, 10]),
        },
        begins_older,
    }
}

/// By how much clocks drift, where chance has chosen this: instead of some drifts as much as is allowed.
/// Where there is none, it stays so, because other choices depend on whether there is one.
fn drift_ppm(seed: u64, chosen_ppm: u64) -> u64 {
    let apart = &mut Random::new(mix(seed ^ AT_BOUND));
    if chosen_ppm > 0 && apart.permille(AT_BOUND_PERMILLE) {
        DRIFT_BOUND_PPM
    } else {
        chosen_ppm
    }
}

/// Faults by a chance of their own: the others do not depend on them.
fn faults_apart(settings: &Settings, faults: &mut Vec<Fault>) {
    let random = &mut Random::new(mix(settings.seed ^ APART));
    let mut add = |(at, lasts), what, random: &mut Random| {
        faults.push(Fault {
            at,
            lasts,
            what,
            luck: random.next(),
        });
    };
    if settings.shape == ClusterShape::BeginsAlone {
        for _ in 0..ADDED_PER_VOTER * u64::from(settings.voters) {
            let at = random.between(CALM_START / 8, CALM_START);
            add((at, 0), Kind::Members(Change::AddVoter), random);
        }
    }
    if settings.shape.voters_min() == 1 {
        for _ in 0..REMOVALS {
            let at = random.between(CALM_START, TROUBLE - SECOND);
            let change = random
                .pick(&[Change::RemoveLeader, Change::Remove, Change::Return])
                .unwrap_or(Change::Remove);
            add((at, 0), Kind::Members(change), random);
        }
    }
    if settings.clocks_are_sound && settings.drift_ppm_max > 0 {
        for _ in 0..SLEWS {
            let at = random.below(TROUBLE - SECOND);
            let permille = i16::try_from(random.below(2_001)).unwrap_or(0) - 1_000;
            add((at, 0), Kind::Clock(ClockFault::Slews { permille }), random);
        }
    }
    if settings.forwards() {
        for _ in 0..RETURNS {
            let at = random.between(CALM_START, TROUBLE - SECOND);
            let requests = u8::try_from(random.between(1, 12)).unwrap_or(1);
            // Half of an election timeout, so that the follower still waits when leadership is back; or
            // somewhat more.
            let lasts = random.between(1, settings.election_timeout.min(FAULT_TIMEOUT_MAX));
            add((at, lasts), Kind::Returns { requests }, random);
        }
    }
    if random.permille(MOVING_PERMILLE) {
        for _ in 0..MOVES {
            let at = random.between(CALM_START, TROUBLE - SECOND);
            add((at, 0), Kind::Members(Change::Move), random);
        }
    }
    if settings.planes != Planes::None && random.permille(PLANES_APART_PERMILLE) {
        for _ in 0..PLANES_APART {
            let at = random.between(CALM_START, TROUBLE - SECOND);
            let timeout = settings.election_timeout.min(FAULT_TIMEOUT_MAX);
            let lasts = random.between(timeout / 8, 6 * timeout);
            add((at, lasts), planes_apart(settings, random), random);
        }
    }
    if random.permille(UNREADABLE_PERMILLE) {
        for _ in 0..UNREADABLE {
            let at = random.between(CALM_START, TROUBLE - SECOND);
            add((at, 0), Kind::Unreadable, random);
        }
    }
}

fn planes_apart(settings: &Settings, random: &mut Random) -> Kind {
    let count = u64::from(settings.voters + settings.spares);
    let one = small(random, count);
    let other = random.below(count);
    match u8::try_from(other) {
        Ok(other) if other != one => Kind::Network(NetworkFault::PlanesApart { one, other }),
        Ok(_) | Err(_) => Kind::PlaneRefuses,
    }
}

/// Which faults this seed has, as a list to pick from: a fault may stand there more than once.
fn menu(settings: &Settings, random: &mut Random) -> Vec<Dish> {
    let mut menu = Vec::new();
    for (dish, weight) in DISHES {
        let wanted = match dish {
            Dish::SyncFails | Dish::DiskFull | Dish::Damage | Dish::Misdirected | Dish::Stall => {
                settings.durability == Durability::Sync
            }
            Dish::RollBack => settings.durability == Durability::Sync,
            // A clock that stands still keeps to no bound.
            Dish::StopClock => !settings.clocks_are_sound,
            Dish::Weather
            | Dish::Partition
            | Dish::Clog
            | Dish::Bytes
            | Dish::Strike
            | Dish::PowerCutOfAll
            | Dish::Wipe
            | Dish::Clock
            | Dish::Members
            | Dish::Snapshot
            | Dish::Overload
            | Dish::Starve
            | Dish::Trigger => true,
            Dish::Datagrams | Dish::PlaneTrigger => settings.planes != Planes::None,
        };
        if wanted && random.permille(700) {
            let times = weight * random.between(1, 4);
            menu.extend((0..times).map(|_| *dish));
        }
    }
    if menu.is_empty() {
        menu.push(Dish::Trigger);
    }
    menu
}

/// Kinds of faults that are chosen together.
#[derive(Clone, Copy, Debug)]
enum Dish {
    Weather,
    Partition,
    Clog,
    Bytes,
    Strike,
    PowerCutOfAll,
    SyncFails,
    DiskFull,
    Damage,
    Misdirected,
    Stall,
    Wipe,
    Clock,
    Members,
    Snapshot,
    Overload,
    Trigger,
    Datagrams,
    PlaneTrigger,
    Starve,
    RollBack,
    StopClock,
}

/// Moments of the handover and of fast terms.
const PLANE_MOMENTS: [Moment; 7] = [
    Moment::OfferMade,
    Moment::VoterEngaged,
    Moment::LeaderEngaged,
    Moment::PlaneAcknowledged,
    Moment::PlaneTaken,
    Moment::Leaving,
    Moment::Left,
];

const DISHES: &[(Dish, u64)] = &[
    (Dish::Weather, 8),
    (Dish::Partition, 8),
    (Dish::Clog, 3),
    (Dish::Bytes, 6),
    (Dish::Strike, 8),
    (Dish::PowerCutOfAll, 1),
    (Dish::SyncFails, 2),
    (Dish::DiskFull, 2),
    (Dish::Damage, 3),
    (Dish::Misdirected, 2),
    (Dish::Stall, 3),
    (Dish::Wipe, 2),
    (Dish::Clock, 2),
    (Dish::Members, 8),
    (Dish::Snapshot, 4),
    (Dish::Overload, 2),
    (Dish::Trigger, 24),
    (Dish::Datagrams, 4),
    (Dish::PlaneTrigger, 24),
    (Dish::Starve, 2),
    (Dish::RollBack, 2),
    (Dish::StopClock, 8),
];

fn fault(at: Nanos, settings: &Settings, menu: &[Dish], random: &mut Random) -> Fault {
    let timeout = settings.election_timeout.min(FAULT_TIMEOUT_MAX);
    let lasts = match random.below(12) {
        0..=4 => random.between(timeout / 8, timeout),
        5..=9 => random.between(timeout, 6 * timeout),
        10 => random.between(6 * timeout, 20 * timeout),
        _ => random.between(timeout / 100, timeout / 8),
    };
    let dish = random.pick(menu).unwrap_or(Dish::Trigger);
    let what = kind(dish, random);
    let lasts = if matches!(dish, Dish::Weather) {
        lasts + random.below(4 * SECOND)
    } else if matches!(dish, Dish::Stall) && random.permille(100) {
        random.between(SECOND, 30 * SECOND)
    } else if matches!(dish, Dish::StopClock) && random.permille(300) {
        random.between(SECOND, 60 * SECOND)
    } else if matches!(
        what,
        Kind::Strike(Strike::Pause | Strike::PauseControl | Strike::Occupy, _)
    ) && random.permille(40)
    {
        random.between(2 * SECOND, 60 * SECOND)
    } else {
        lasts
    };
    let luck = random.next();
    Fault {
        at,
        lasts,
        what,
        luck,
    }
}

fn small(random: &mut Random, bound: u64) -> u8 {
    u8::try_from(random.below(bound)).unwrap_or(u8::MAX)
}

fn permille(random: &mut Random, list: &[u16]) -> u16 {
    random.pick(list).unwrap_or(10)
}

fn kind(dish: Dish, random: &mut Random) -> Kind {
    match dish {
        Dish::Weather => Kind::Network(weather(random)),
        Dish::Partition => Kind::Partition(
            random
                .pick(&[
                    Shape::Halves,
                    Shape::OneWay,
                    Shape::Deaf,
                    Shape::Bridge,
                    Shape::Ring,
                    Shape::LeaderAlone,
                ])
                .unwrap_or(Shape::Halves),
        ),
        Dish::Clog if random.permille(500) => Kind::Clog,
        Dish::Clog => Kind::SwizzleClog,
        Dish::Bytes => Kind::Bytes(match random.below(4) {
            0 => ByteFault::CorruptFrame,
            1 => ByteFault::CorruptRecords,
            2 => ByteFault::CutFrame,
            _ => ByteFault::OtherVersion,
        }),
        Dish::Strike => {
            let target = match random.below(2) {
                0 => Target::Leader,
                _ => Target::Anyone,
            };
            Kind::Strike(strike(random), target)
        }
        Dish::PowerCutOfAll => Kind::PowerCutOfAll,
        Dish::SyncFails => Kind::Disk(DiskFault::SyncFails {
            after: small(random, 4),
        }),
        Dish::DiskFull => Kind::Disk(DiskFault::Full),
        Dish::Damage => Kind::Disk(DiskFault::Damage),
        Dish::Misdirected => Kind::Disk(DiskFault::Misdirected {
            after: small(random, 6),
        }),
        Dish::Stall => Kind::Disk(DiskFault::Stall),
        Dish::Wipe => Kind::Disk(DiskFault::Wipe),
        Dish::Starve if random.permille(500) => Kind::NoMemory {
            after: small(random, 40),
        },
        Dish::Starve => Kind::Disk(DiskFault::NoHandles {
            after: small(random, 3),
        }),
        Dish::RollBack => Kind::Disk(DiskFault::RollBack),
        Dish::StopClock => Kind::Clock(ClockFault::Stops),
        Dish::Clock => Kind::Clock(ClockFault::Jumps {
            seconds: match i32::try_from(random.below(7_200)).unwrap_or(0) {
                0..600 => A_YEAR_S,
                seconds => seconds - 3_600,
            },
        }),
        Dish::Members => Kind::Members(
            random
                .pick(&[
                    Change::AddVoter,
                    Change::AddVoter,
                    Change::AddLearner,
                    Change::Promote,
                    Change::Remove,
                    Change::RemoveLeader,
                    Change::Return,
                    Change::QuorumAll,
                    Change::QuorumMajority,
                    Change::QuorumMajority,
                    Change::Transfer,
                    Change::Transfer,
                ])
                .unwrap_or(Change::Transfer),
        ),
        Dish::Snapshot => Kind::Snapshot,
        Dish::Overload => Kind::Overload {
            commands: u16::try_from(random.between(20, 400)).unwrap_or(20),
        },
        Dish::Datagrams => match random.below(3) {
            0 => Kind::Network(NetworkFault::SpoilDatagrams {
                permille: permille(random, &[10, 200]),
            }),
            1 => Kind::Network(NetworkFault::ReplayDatagrams {
                permille: permille(random, &[50, 500]),
            }),
            _ => Kind::RotateKeys,
        },
        Dish::PlaneTrigger => plane_trigger(random),
        Dish::Trigger => Kind::Trigger {
            on: random.pick(&MOMENTS).unwrap_or(MOMENTS[0]),
            skip: small(random, 3),
            then: strike(random),
        },
    }
}

fn plane_trigger(random: &mut Random) -> Kind {
    let changes = [
        Change::AddVoter,
        Change::AddLearner,
        Change::Promote,
        Change::Remove,
        Change::QuorumMajority,
    ];
    Kind::Trigger {
        on: random.pick(&PLANE_MOMENTS).unwrap_or(PLANE_MOMENTS[0]),
        skip: match random.below(3) {
            0 => small(random, 60),
            _ => small(random, 3),
        },
        then: match random.below(8) {
            0 if random.permille(300) => Strike::ResetPlane,
            0 => Strike::BreakPlane,
            1 => Strike::PauseControl,
            2 => Strike::Administer(Change::Transfer),
            3 => Strike::Administer(random.pick(&changes).unwrap_or(Change::AddVoter)),
            _ => strike(random),
        },
    }
}

fn weather(random: &mut Random) -> NetworkFault {
    match random.below(3) {
        0 => NetworkFault::Loss {
            permille: permille(random, &[5, 20, 100, 300]),
        },
        1 => NetworkFault::Repeat {
            permille: permille(random, &[20, 100, 500]),
            late: random.pick(&[1, 50, 500, 10_000]).unwrap_or(1) * MILLISECOND,
        },
        _ => NetworkFault::Late {
            permille: permille(random, &[10, 100, 500]),
            late: random.pick(&[3, 50, 500, 10_000]).unwrap_or(3) * MILLISECOND,
        },
    }
}

fn strike(random: &mut Random) -> Strike {
    let after = match random.below(3) {
        0 => 0,
        1 => small(random, 4),
        _ => small(random, 30),
    };
    match random.below(15) {
        14 => Strike::Occupy,
        13 => Strike::Sever,
        12 => Strike::FailSync {
            after: small(random, 2),
        },
        11 if random.permille(250) => Strike::ResetPlane,
        10 => Strike::PauseControl,
        11 => Strike::BreakPlane,
        0..=2 => Strike::Kill { after },
        3 | 4 => Strike::PowerCut { after },
        5 => Strike::KillInWrite {
            after: small(random, 8),
        },
        6 => Strike::PowerCutInWrite {
            after: small(random, 8),
        },
        7 => Strike::Pause,
        _ => Strike::Isolate,
    }
}

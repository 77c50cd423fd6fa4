//! What a seed means for a Paxos deployment: its sizes, and a list of faults.
use crate::queue::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use crate::random::Random;
use quorumwire_paxos::Deployment;
use std::fmt;

/// A fault, and when it strikes.
#[derive(Clone, Debug)]
pub struct Fault {
    /// When.
    pub at: Nanos,
    /// How long until it is over.
    pub lasts: Nanos,
    /// What happens.
    pub what: What,
}

/// Who a fault strikes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Node {
    /// A coordinator: box and host.
    Coordinator(u8),
    /// An acceptor: box and host.
    Acceptor(u8),
    /// A learner and the proposer beside it.
    Learner(u8),
}

/// What happens.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// It stops, and starts again when the fault is over. What is not on disk is gone.
    Kill(Node),
    /// Nothing reaches it and nothing leaves it.
    Cut(Node),
    /// Two do not hear each other.
    Part(Node, Node),
    /// So many packets out of a thousand are lost, everywhere.
    Lose(u64),
    /// Disks take so much longer.
    SlowDisk(Nanos),
    /// The operator has a coordinator take over.
    TakeOver(u8),
    /// A learner's application keeps nothing.
    KeepNothing(u8),
    /// A learner asks for the next instance by itself.
    Recover(u8),
    /// The operator declares lost what not all learners have kept.
    DeclareLost,
    /// The second one does not hear the first one, which hears it.
    Deaf(Node, Node),
    /// So many packets out of a thousand arrive with a bit that is another one, everywhere.
    Garble(u64),
    /// It stands still: what comes meanwhile it takes in later, and by its clock no time has passed between.
    Pause(Node),
}

/// The sizes of a deployment, and how it is used.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The seed all else follows from.
    pub seed: u64,
    /// How many of each.
    pub deployment: Deployment,
    /// Votes are on disk before they are said; else they are in memory.
    pub is_durable: bool,
    /// What a disk takes to write.
    pub write: Nanos,
    /// The first two coordinators were given the number 0.
    pub one_number: bool,
    /// The second of these is where others know no coordinator.
    pub is_hidden: bool,
    /// Coordinators do not know that they are where others know their numbers: the network brings back to
    /// them what they say to all of them.
    pub hears_itself: bool,
    /// Another acceptor has the number of this one, where nobody knows it, and announces a new life all the
    /// time.
    pub twin_of: Option<u8>,
    /// More acceptors than a minority lose their memory at a time: only safety is asked for.
    pub beyond_minority: bool,
    /// The longest that a packet takes.
    pub delay_max: Nanos,
    /// Out of a thousand, packets that come twice.
    pub repeated: u64,
    /// Values that each proposer submits.
    pub values: u64,
    /// The longest value.
    pub value_bytes_max: u64,
    /// The time between two values of a proposer, on average.
    pub pause: Nanos,
}

/// A run: plain data.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Sizes.
    pub settings: Settings,
    /// Faults, by time.
    pub faults: Vec<Fault>,
    /// When faults end.
    pub trouble: Nanos,
}

/// So that a seed gives other numbers than to a cluster of replicas.
const STREAM: u64 = 0x7061_786f_735f_5f31;
const HIDDEN_STREAM: u64 = 0x7061_7868_6964_6531;
const ECHO_STREAM: u64 = 0x7061_7865_6368_6f31;
const COPIES_STREAM: u64 = 0x636f_7069_6573_5f31;
const TWIN_STREAM: u64 = 0x7477_696e_5f6f_6631;
const MORE_STREAM: u64 = 0x6d6f_7265_5f5f_5f31;

impl Plan {
    /// What this seed means.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ STREAM);
        let one_number = random.permille(60);
        let acceptors = [3, 3, 3, 5, 7, 1, 2, 4];
        let mut deployment = Deployment {
            group: 9,
            acceptors: random.pick(&acceptors).unwrap_or(3),
            coordinators: small(random.between(2, 4)),
            learners: small(random.between(1, 4)),
            copies: 0,
            window: [8, 16, 32, 128][small_place(random.below(4))],
        };
        // Learners have what they lack from each other, or not.
        deployment.copies = match Random::new(seed ^ COPIES_STREAM).below(4) {
            0 => deployment.learners / 2 + 1,
            _ => deployment.learners,
        };
        let mut twins = Random::new(seed ^ TWIN_STREAM);
        let twin_of = small(twins.below(deployment.acceptors.into()));
        let is_long = random.permille(200);
        let settings = Settings {
            seed,
            deployment,
            is_durable: random.permille(450),
            write: if random.permille(60) {
                // Longer than hosts wait for an answer before they ask again.
                MILLISECOND * random.between(10, 200)
            } else {
                300 * MICROSECOND
            },
            one_number,
            is_hidden: Random::new(seed ^ HIDDEN_STREAM).below(2) == 0,
            hears_itself: !one_number && Random::new(seed ^ ECHO_STREAM).below(4) == 0,
            twin_of: twins.permille(100).then_some(twin_of),
            beyond_minority: random.permille(80),
            delay_max: MILLISECOND / 10 * random.between(1, 40),
            repeated: random.below(60),
            values: random.between(20, 80),
            value_bytes_max: if is_long { 6000 } else { 200 },
            pause: MILLISECOND * random.between(1, 20),
        };
        let trouble = random.between(SECOND, 3 * SECOND);
        let count = random.below(14);
        let mut faults: Vec<Fault> = (0..count)
            .map(|_| Fault {
                at: random.below(trouble),
                lasts: MILLISECOND * random.between(5, 400),
                what: what(&mut random, &deployment),
            })
            .collect();
        if one_number && random.permille(500) {
            // They do not hear each other, and ask the acceptors for the same rounds; or for rounds above
            // each other's, as two do that do not listen where others know their number.
            let lasts = [(100, 500), (500, 3000)];
            let (least, most) = lasts[small_place(random.below(2))];
            faults.push(Fault {
                at: 0,
                lasts: MILLISECOND * random.between(least, most),
                what: What::Part(Node::Coordinator(0), Node::Coordinator(1)),
            });
        }
        if random.permille(200) {
            // Killed again as soon as it is there again: what was on its way to its last life finds the next
            // one.
            let acceptor = Node::Acceptor(small(random.below(deployment.acceptors.into())));
            let at = random.below(trouble);
            faults.extend((0..random.between(2, 6)).map(|time| Fault {
                at: at + time * 15 * MILLISECOND,
                lasts: MILLISECOND * random.between(1, 10),
                what: What::Kill(acceptor),
            }));
        }
        if random.permille(150) {
            let at = random.below(trouble);
            faults.extend(forgets_what_few_know(&mut random, &deployment, at));
        }
        let mut more = Random::new(seed ^ MORE_STREAM);
        let count = more.below(5);
        faults.extend((0..count).map(|_| Fault {
            at: more.below(trouble),
            lasts: MILLISECOND * more.between(5, 400),
            what: what_else(&mut more, &deployment),
        }));
        faults.sort_by_key(|fault| fault.at);
        // Some take their course from a moment on: peace begins when the last one has come.
        let trouble = faults.last().map_or(trouble, |it| trouble.max(it.at + 1));
        Self {
            settings,
            faults,
            trouble,
        }
    }

    /// The same with only these of its faults, by number.
    #[must_use]
    pub fn keep(mut self, numbers: &[usize]) -> Self {
        let mut place = 0;
        self.faults.retain(|_| {
            place += 1;
            numbers.contains(&(place - 1))
        });
        self
    }
}

fn small(number: u64) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

fn small_place(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn node(random: &mut Random, deployment: &Deployment) -> Node {
    match random.below(4) {
        0 => Node::Coordinator(small(random.below(deployment.coordinators.into()))),
        1 => Node::Learner(small(random.below(deployment.learners.into()))),
        _ => Node::Acceptor(small(random.below(deployment.acceptors.into()))),
    }
}

/// No more acceptors than needed decide. One of them forgets, and the others of them are not heard while it
/// is let in.
fn forgets_what_few_know(random: &mut Random, deployment: &Deployment, at: Nanos) -> Vec<Fault> {
    let (acceptors, majority) = (deployment.acceptors, deployment.acceptors / 2 + 1);
    let first = small(random.below(acceptors.into()));
    let acceptor = |number: u8| Node::Acceptor((first + number) % acceptors);
    let decide = MILLISECOND * random.between(20, 200);
    let mut faults = vec![Fault {
        at: at + decide,
        lasts: MILLISECOND / 2 * random.between(1, 20),
        what: What::Kill(acceptor(0)),
    }];
    let is_back = at + decide + faults[0].lasts;
    let unheard = Fault {
        at: is_back + MILLISECOND / 4 * random.between(0, 60),
        lasts: MILLISECOND * random.between(20, 200),
        what: What::Cut(acceptor(1)),
    };
    faults.extend((1..majority).map(|number| Fault {
        what: What::Cut(acceptor(number)),
        ..unheard.clone()
    }));
    for number in majority..acceptors {
        faults.extend((0..deployment.coordinators).map(|coordinator| Fault {
            at,
            lasts: decide,
            what: What::Part(Node::Coordinator(coordinator), acceptor(number)),
        }));
    }
    faults
}

fn what(random: &mut Random, deployment: &Deployment) -> What {
    match random.below(13) {
        0..4 => What::Kill(node(random, deployment)),
        4 => What::Cut(node(random, deployment)),
        5 => What::Part(node(random, deployment), node(random, deployment)),
        6 => What::Lose(random.between(10, 400)),
        7 => What::SlowDisk(MILLISECOND * random.between(1, 30)),
        8 | 9 => What::TakeOver(small(random.below(deployment.coordinators.into()))),
        10 => What::KeepNothing(small(random.below(deployment.learners.into()))),
        11 => What::DeclareLost,
        _ => What::Recover(small(random.below(deployment.learners.into()))),
    }
}

fn what_else(random: &mut Random, deployment: &Deployment) -> What {
    match random.below(3) {
        0 => What::Deaf(node(random, deployment), node(random, deployment)),
        1 => What::Garble(random.between(10, 200)),
        _ => What::Pause(node(random, deployment)),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, lasts) = (self.at / MILLISECOND, self.lasts / MILLISECOND);
        write!(to, "at {at} ms, for {lasts} ms: {:?}", self.what)
    }
}

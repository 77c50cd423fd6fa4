//! Learners that recover what they miss, around acceptors and a coordinator that are the step in C, over a
//! network that loses, repeats and reorders: all give the same, in order.
use quorumwire_fastpath::paxos_step;
use quorumwire_paxos::{
    Decided, Heard, Ignored, Learner, LearnerOptions, Recovery, RecoveryOptions, round_above,
};
use quorumwire_seed::seed;
use quorumwire_wire::packet::{
    ACTION_FANOUT, ACTION_REPLY, ACTION_STORE, ACTION_VOTE, Header, Kind, MAGIC, PaxosRegisters,
    PaxosRole, PaxosSlot, SENDER_CLIENT, VERSION,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

const RUNS: u64 = 300;
const ACCEPTORS: u8 = 3;
const LEARNERS: u8 = 2;
const WINDOW: u32 = 16;
const GROUP: u32 = 9;
const COORDINATOR: u8 = 1;
/// Learners propose in rounds of these owners, so that nobody else does.
const FIRST_LEARNER: u8 = 10;
const VALUES: u64 = 40;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum To {
    Coordinator,
    Acceptor(u8),
    Learner(u8),
}

type Packet = (Header, Vec<u8>);

struct Acceptor {
    registers: PaxosRegisters,
    slots: Vec<PaxosSlot>,
    values: Vec<Vec<u8>>,
}

struct Host {
    learner: Learner,
    recovery: Option<(u64, Recovery)>,
    /// The highest round that it knows of.
    round: u64,
    given: Vec<Decided>,
}

struct World {
    random: ChaCha8Rng,
    coordinator: PaxosRegisters,
    acceptors: Vec<Acceptor>,
    learners: Vec<Host>,
    flying: Vec<(To, Option<u8>, Packet)>,
    is_lossy: bool,
    reached: BTreeMap<String, u64>,
}

fn registers(role: PaxosRole, me: u8) -> PaxosRegisters {
    PaxosRegisters {
        configuration: 1,
        round: if role == PaxosRole::Coordinator {
            0x101
        } else {
            0
        },
        next_instance: 1,
        group: GROUP,
        window: WINDOW,
        role: role as u8,
        me,
        ..PaxosRegisters::default()
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let window = usize::try_from(WINDOW).unwrap();
        let options = LearnerOptions {
            group: GROUP,
            acceptors: ACCEPTORS,
            window: WINDOW,
        };
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            coordinator: registers(PaxosRole::Coordinator, COORDINATOR),
            acceptors: (0..ACCEPTORS)
                .map(|me| Acceptor {
                    registers: registers(PaxosRole::Acceptor, me),
                    slots: vec![PaxosSlot::default(); window],
                    values: vec![Vec::new(); window],
                })
                .collect(),
            learners: (0..LEARNERS)
                .map(|_| Host {
                    learner: Learner::new(options, 1),
                    recovery: None,
                    round: 0x101,
                    given: Vec::new(),
                })
                .collect(),
            flying: Vec::new(),
            is_lossy: true,
            reached: BTreeMap::new(),
        }
    }

    fn reach(&mut self, what: &str) {
        *self.reached.entry(what.to_owned()).or_default() += 1;
    }

    /// `from`: the learner that waits for an answer.
    fn send(&mut self, to: To, from: Option<u8>, packet: &Packet) {
        let copies = match self.random.random_range(0..10) {
            0 | 1 if self.is_lossy => 0,
            2 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            self.flying.push((to, from, packet.clone()));
        }
    }

    fn tell_acceptors(&mut self, from: Option<u8>, packet: &Packet) {
        for acceptor in 0..ACCEPTORS {
            self.send(To::Acceptor(acceptor), from, packet);
        }
    }

    fn submit(&mut self, sequence: u64) {
        let payload = sequence.to_be_bytes().to_vec();
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            kind: Kind::Submit as u8,
            sender: u8::try_from(SENDER_CLIENT).unwrap(),
            group: GROUP,
            payload_bytes: u16::try_from(payload.len()).unwrap(),
            session: 77,
            sequence,
            ..Header::default()
        };
        self.send(To::Coordinator, None, &(header, payload));
    }

    /// Something that flies arrives.
    fn deliver(&mut self) {
        let place = self.random.random_range(0..self.flying.len());
        let (to, from, (header, payload)) = self.flying.swap_remove(place);
        match to {
            To::Coordinator => {
                let mut unused = PaxosSlot::default();
                let outcome = paxos_step(&mut self.coordinator, &mut unused, &header);
                if outcome.has(ACTION_FANOUT) {
                    self.tell_acceptors(None, &(outcome.header, payload));
                } else {
                    self.reach(outcome.reason().name());
                }
            }
            To::Acceptor(me) => self.at_acceptor(me, from, &header, payload),
            To::Learner(me) => self.at_learner(me, &header, &payload),
        }
    }

    fn at_acceptor(&mut self, me: u8, from: Option<u8>, header: &Header, payload: Vec<u8>) {
        let acceptor = &mut self.acceptors[usize::from(me)];
        let place = usize::try_from(header.index % u64::from(WINDOW)).unwrap();
        let outcome = paxos_step(&mut acceptor.registers, &mut acceptor.slots[place], header);
        if outcome.has(ACTION_STORE) {
            acceptor.values[place].clone_from(&payload);
        }
        let behind = if outcome.has(ACTION_VOTE) {
            acceptor.values[place].clone()
        } else if outcome.has(ACTION_FANOUT) {
            payload
        } else {
            Vec::new()
        };
        self.reach(outcome.reason().name());
        let packet = (outcome.header, behind);
        if outcome.has(ACTION_FANOUT) {
            for learner in 0..LEARNERS {
                self.send(To::Learner(learner), None, &packet);
            }
        } else if let Some(learner) = from.filter(|_| outcome.has(ACTION_REPLY)) {
            self.send(To::Learner(learner), None, &packet);
        }
    }

    fn at_learner(&mut self, me: u8, header: &Header, payload: &[u8]) {
        let host = &mut self.learners[usize::from(me)];
        let voted = host.learner.on_vote(header, payload);
        assert!(
            !matches!(voted, Err(Ignored::TwoValues | Ignored::Contradiction)),
            "{voted:?}: {header:?}"
        );
        let mut said = voted.err().map(|it| format!("{it:?}"));
        let mut proposal = None;
        if let Some((_, recovery)) = &mut host.recovery {
            match recovery.on_answer(header, payload) {
                Heard::Nothing | Heard::Promised => {}
                Heard::Majority => {
                    let (header, payload) = recovery.proposal().expect("a majority");
                    said = Some(
                        if header.session == 0 {
                            "no-op"
                        } else {
                            "adopted"
                        }
                        .to_owned(),
                    );
                    proposal = Some((header, payload.to_vec()));
                }
                Heard::Refused { promised } => {
                    host.round = host.round.max(promised);
                    host.recovery = None;
                    said = Some("another round".to_owned());
                }
                Heard::Trimmed { upto } => {
                    // Votes have come after all, before everybody forgot them.
                    assert!(host.learner.next() > upto);
                    host.recovery = None;
                }
            }
        }
        while let Some(decided) = host.learner.take() {
            host.given.push(decided);
        }
        if let Some(said) = said {
            self.reach(&said);
        }
        if let Some(proposal) = proposal {
            self.tell_acceptors(Some(me), &proposal);
        }
    }

    /// A learner asks for the first instance that it misses, or for what it asked for again.
    fn recover(&mut self, me: u8) {
        let host = &mut self.learners[usize::from(me)];
        let next = host.learner.next();
        if host.recovery.as_ref().is_some_and(|(it, _)| *it < next) {
            host.recovery = None;
        }
        if host.recovery.is_none() {
            let Some(instance) = host.learner.missing().next() else {
                return;
            };
            let options = RecoveryOptions {
                group: GROUP,
                configuration: 1,
                acceptors: ACCEPTORS,
            };
            host.round = round_above(host.round, FIRST_LEARNER + me).expect("a round");
            let drawn = self.random.random_range(1..=u64::MAX);
            let recovery = Recovery::new(options, instance, (host.round, drawn), b"");
            host.recovery = Some((instance, recovery));
        }
        let Some((_, recovery)) = &host.recovery else {
            return;
        };
        let question = (recovery.question(), Vec::new());
        let proposal = recovery
            .proposal()
            .map(|(header, payload)| (header, payload.to_vec()));
        self.tell_acceptors(Some(me), &proposal.unwrap_or(question));
    }

    /// Everybody forgets what both learners have.
    fn trim(&mut self) {
        let all = self.learners.iter().map(|it| it.learner.next() - 1).min();
        let upto = all.unwrap_or(0);
        for acceptor in &mut self.acceptors {
            assert!(quorumwire_fastpath::paxos_trim(
                &mut acceptor.registers,
                upto
            ));
        }
        assert!(quorumwire_fastpath::paxos_trim(&mut self.coordinator, upto));
    }

    fn compare(&self) {
        let [one, other] = [&self.learners[0].given, &self.learners[1].given];
        for (first, second) in one.iter().zip(other) {
            assert_eq!(first, second);
        }
        for host in &self.learners {
            for (instance, decided) in (1..).zip(&host.given) {
                assert_eq!(decided.instance, instance);
            }
        }
    }

    fn turn(&mut self, submitted: &mut u64) {
        match self.random.random_range(0..40) {
            0 if *submitted < VALUES => {
                *submitted += 1;
                self.submit(*submitted);
            }
            1 => {
                let learner = self.random.random_range(0..LEARNERS);
                self.recover(learner);
            }
            2 => self.trim(),
            _ if !self.flying.is_empty() => self.deliver(),
            _ => {}
        }
        self.compare();
    }
}

#[test]
fn learners_give_the_same_whatever_is_lost() {
    let mut reached: BTreeMap<String, u64> = BTreeMap::new();
    let first = seed();
    for seed in first..first.saturating_add(RUNS) {
        let mut world = World::new(seed);
        let mut submitted = 0;
        for _ in 0..3000 {
            world.turn(&mut submitted);
        }
        // At last nothing is lost any more; one more value shows whether something is missing.
        world.is_lossy = false;
        world.trim();
        world.submit(VALUES + 1);
        for _ in 0..20_000 {
            world.turn(&mut submitted);
        }
        let last = world.coordinator.next_instance - 1;
        for host in &world.learners {
            assert_eq!(
                host.learner.next(),
                last + 1,
                "seed {seed}: something was not given"
            );
        }
        for (what, times) in world.reached {
            *reached.entry(what).or_default() += times;
        }
    }
    println!("{reached:?}");
    for expected in [
        "none",
        "repeated",
        "round_old",
        "trimmed",
        "window_full",
        "no-op",
        "adopted",
        "another round",
        "Late",
        "Repeated",
        "Refused",
    ] {
        assert!(reached.contains_key(expected), "never reached: {expected}");
    }
}

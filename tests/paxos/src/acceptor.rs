//! What an acceptor does: the step in C, and the host beside it.
use crate::model::{Deployment, Durability};
use crate::rule::Rule;
use crate::state::{Acceptor, INSTANCE, Known, Lives, Message, Round, State};
use quorumwire_fastpath::{Outcome, paxos_step};
use quorumwire_wire::packet::{
    ACTION_FANOUT, ACTION_HOLD, ACTION_REPLY, FLAG_REFUSED, Header, Kind, PacketReason,
    PaxosRegisters, PaxosRole, PaxosSlot, ROUND_OWNERS, VERSION,
};

const OWNERS: u16 = 256;
const _: () = assert!(ROUND_OWNERS == OWNERS as usize);

/// A round as one number.
pub(crate) fn number(round: Round) -> u16 {
    let (count, owner) = round;
    u16::from(count) * OWNERS + u16::from(owner)
}

fn round(number: u64) -> Round {
    let owners = u64::from(OWNERS);
    (small(number / owners), small(number % owners))
}

fn small<T: TryFrom<u64>>(number: u64) -> T {
    let Ok(small) = T::try_from(number) else {
        panic!("the model's numbers are small, and this is {number}");
    };
    small
}

/// An acceptor as a deployment begins.
pub(crate) fn begun() -> Acceptor {
    let known = Known::default();
    Acceptor {
        known,
        disk: known,
        held: Vec::new(),
        life: 0,
        forgotten: false,
    }
}

/// What an acceptor knows, where the C finds it.
fn to_c(known: &Known, me: u8, durability: Durability) -> (PaxosRegisters, PaxosSlot) {
    let registers = PaxosRegisters {
        configuration: known.configuration.number().into(),
        round: known.round.into(),
        promised_to: known.promised_to.into(),
        single_round: known.single_round.into(),
        bound: known.bound.into(),
        highest: known.highest.into(),
        window: 1,
        role: PaxosRole::Acceptor as u8,
        me,
        held: u8::from(durability == Durability::Sync),
        ..PaxosRegisters::default()
    };
    let slot = PaxosSlot {
        instance: known.instance.into(),
        round: known.slot_round.into(),
        promised_to: known.slot_promised_to.into(),
        vote_round: known.vote_round.into(),
        session: known.value.into(),
        ..PaxosSlot::default()
    };
    (registers, slot)
}

fn from_c(configuration: Lives, registers: &PaxosRegisters, slot: &PaxosSlot) -> Known {
    Known {
        configuration,
        round: small(registers.round),
        promised_to: small(registers.promised_to),
        single_round: small(registers.single_round),
        bound: small(registers.bound),
        highest: small(registers.highest),
        instance: small(slot.instance),
        slot_round: small(slot.round),
        slot_promised_to: small(slot.promised_to),
        vote_round: small(slot.vote_round),
        value: small(slot.session),
    }
}

/// The packet of a coordinator's message.
fn packet(message: &Message) -> Option<Header> {
    let of = |kind: Kind, round: Round, configuration: Lives| Header {
        version: VERSION,
        kind: kind as u8,
        sender: round.1,
        term: number(round).into(),
        commit_index: configuration.number().into(),
        ..Header::default()
    };
    match message {
        Message::Ask {
            round,
            drawn,
            configuration,
            ..
        } => Some(Header {
            session: (*drawn).into(),
            ..of(Kind::P1a, *round, *configuration)
        }),
        Message::Propose {
            round,
            configuration,
            value,
        } => Some(Header {
            index: INSTANCE,
            session: (*value).into(),
            ..of(Kind::P2a, *round, *configuration)
        }),
        Message::Promise { .. } | Message::Voted { .. } => None,
    }
}

impl Deployment {
    /// An acceptor takes in a packet.
    pub(crate) fn receive(&self, state: &mut State, me: u8, message: &Message) -> bool {
        let Some(header) = packet(message) else {
            return false;
        };
        let acceptor = &mut state.acceptors[usize::from(me)];
        if acceptor.forgotten {
            return false;
        }
        let before = acceptor.known;
        let asks = matches!(message, Message::Ask { .. });
        if let Message::Ask { configuration, .. } = message {
            self.take_configuration(&mut acceptor.known, *configuration);
        }
        let (outcome, vote) = self.answer_to(&mut acceptor.known, me, header, asks);
        let sends = outcome.has(ACTION_FANOUT | ACTION_REPLY);
        if !sends || outcome.header.flags & FLAG_REFUSED != 0 {
            return acceptor.known != before;
        }
        let answer = answer(
            &outcome.header,
            &vote,
            message,
            acceptor.known.configuration,
        );
        if outcome.has(ACTION_HOLD) && self.holds(Rule::VoteIsDurable) {
            if !acceptor.held.contains(&answer) && !state.sent.contains(&answer) {
                acceptor.held.push(answer);
            }
        } else {
            state.sent.insert(answer);
        }
        true
    }

    /// The step, and where a round is asked for, what it says of the one instance.
    fn answer_to(
        &self,
        known: &mut Known,
        me: u8,
        packet: Header,
        asks: bool,
    ) -> (Outcome, Header) {
        let (mut registers, mut slot) = to_c(known, me, self.durability);
        let mut header = packet;
        if !self.holds(Rule::ConfigurationCounts) {
            header.commit_index = registers.configuration;
        }
        let outcome = paxos_step(&mut registers, &mut slot, &header);
        assert_ne!(outcome.reason(), PacketReason::Malformed, "{header:?}");
        let mut vote = Header::default();
        if asks {
            header.index = INSTANCE;
            vote = paxos_step(&mut registers, &mut slot, &header).header;
        }
        *known = from_c(known.configuration, &registers, &slot);
        (outcome, vote)
    }

    /// The step hands a packet of another configuration to software, which takes that from who asks for a
    /// round, if it knows of each life that this acceptor knows of.
    fn take_configuration(&self, known: &mut Known, asked: Lives) {
        if asked.knows_all_of(known.configuration) || !self.holds(Rule::TakesLaterLivesOnly) {
            known.configuration = asked;
        }
    }

    /// The disk has everything that the acceptor knows; what waited for it is said.
    pub(crate) fn persist(&self, state: &mut State, me: u8) -> bool {
        if self.durability != Durability::Sync {
            return false;
        }
        let acceptor = &mut state.acceptors[usize::from(me)];
        acceptor.disk = acceptor.known;
        state.sent.extend(acceptor.held.drain(..));
        true
    }

    /// It stops, and begins again with what is on disk, or with nothing.
    pub(crate) fn lose(&self, state: &mut State, me: u8) -> bool {
        let acceptor = &mut state.acceptors[usize::from(me)];
        if state.losses >= self.bounds.losses_max || acceptor.forgotten {
            return false;
        }
        acceptor.held.clear();
        match self.durability {
            Durability::Sync => {
                acceptor.known = acceptor.disk;
                // What was drawn may be on disk, or not; that it is not is the harder case.
                acceptor.known.promised_to = 0;
                acceptor.known.slot_promised_to = 0;
            }
            Durability::Memory => {
                acceptor.forgotten = true;
                acceptor.life += 1;
                acceptor.known = Known::default();
            }
        }
        state.losses += 1;
        true
    }
}

/// Lets an acceptor in: its registers are loaded, its box is switched on.
pub(crate) fn let_in(acceptor: &mut Acceptor, configuration: Lives, of: Round, bound: u8) {
    acceptor.forgotten = false;
    acceptor.known = Known {
        configuration,
        round: number(of),
        bound: bound.into(),
        ..Known::default()
    };
    acceptor.disk = acceptor.known;
}

/// What the acceptor says. Of a promise, `vote` is what it has said about the one instance; nothing, if it is
/// no member for it.
fn answer(header: &Header, vote: &Header, message: &Message, configuration: Lives) -> Message {
    match message {
        Message::Ask { from, .. } => Message::Promise {
            from: header.sender,
            to: *from,
            round: round(header.term),
            configuration,
            drawn: small(header.commit_index ^ u64::from(configuration.number())),
            bound: small(header.previous_term),
            highest: small(header.sequence),
            vote: (vote.previous_term > 0)
                .then(|| (round(vote.previous_term), small(vote.session))),
        },
        Message::Propose { .. } | Message::Promise { .. } | Message::Voted { .. } => {
            Message::Voted {
                from: header.sender,
                round: round(header.term),
                value: small(header.session),
            }
        }
    }
}

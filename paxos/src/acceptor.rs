//! The software beside an acceptor's box: takes configurations, lets the box forget, and comes back as a new
//! life where memory was lost. The box promises and votes by itself.
use crate::checkpoints::Checkpoints;
use crate::deployment::{Deployment, INSTANCE_MAX};
use crate::lives::Lives;
use crate::mutants::mutant;
use crate::orders::{Order, Orders, To, send};
use crate::round::owner_of;
use quorumwire_wire::packet::{FLAG_REFUSED, Header, Kind, PaxosRegisters, PaxosRole};
use std::time::Duration;

/// What its host has to be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Noted {
    /// Nothing.
    Nothing,
    /// Somebody knows of a later life of this acceptor: there are two of its number, or its folder is one of
    /// earlier. It says nothing until that is mended.
    LaterLife {
        /// That life.
        life: u64,
    },
    /// It was let in as the life that it is: it votes again.
    LetIn,
}

/// Whether it counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Standing {
    Member,
    /// Its box is off until it is let in.
    Newcomer,
}

/// One acceptor's software.
#[derive(Debug)]
pub struct Acceptor {
    deployment: Deployment,
    me: u8,
    /// Votes are said when they are durable.
    held: bool,
    lives: Lives,
    standing: Standing,
    checkpoints: Checkpoints,
    announce: Duration,
    next_announcement: Duration,
}

impl Acceptor {
    /// One that remembers: as a deployment begins, or with the configuration that was on its disk. Its box is
    /// on, and has forgotten the instances up to `trimmed`.
    #[must_use]
    pub fn member(deployment: Deployment, me: u8, lives: Lives, trimmed: u64) -> Self {
        Self {
            deployment,
            me,
            held: false,
            lives,
            standing: Standing::Member,
            checkpoints: Checkpoints::new(&deployment, trimmed),
            announce: Duration::from_millis(20),
            next_announcement: Duration::ZERO,
        }
    }

    /// One that has lost its memory and begins this life, which is higher than all it ever had. Its box is
    /// off.
    #[must_use]
    pub fn newcomer(deployment: Deployment, me: u8, life: u64) -> Self {
        let lives = Lives::first(deployment.acceptors).with(me, life);
        Self {
            standing: Standing::Newcomer,
            ..Self::member(deployment, me, lives, 0)
        }
    }

    /// The same, with votes that are said when they are durable.
    #[must_use]
    pub fn held(mut self) -> Self {
        self.held = true;
        self
    }

    /// Which life of each acceptor counts, as far as it knows.
    #[must_use]
    pub fn lives(&self) -> &Lives {
        &self.lives
    }

    /// Which life it is in; 0 as the deployment begins.
    #[must_use]
    pub fn life(&self) -> u64 {
        self.lives.of(self.me)
    }

    /// Whether it waits to be let in.
    #[must_use]
    pub fn is_newcomer(&self) -> bool {
        self.standing == Standing::Newcomer
    }

    /// Which learner has kept least, and how far: to be blamed where the window is full.
    #[must_use]
    pub fn last_checkpoint(&self) -> Option<(u8, u64)> {
        self.checkpoints.last()
    }

    /// Instances up to this one are lost to learners that have not kept them: the operator says so, at each
    /// acceptor.
    pub fn declare_lost(&mut self, upto: u64, orders: &mut Orders) {
        if let Some(upto) = self.checkpoints.trim_to(upto) {
            orders.push(Order::Trim(upto));
        }
    }

    /// Takes in a packet that the box has handed on; `registers` are the box's.
    pub fn on_packet(
        &mut self,
        header: &Header,
        payload: &[u8],
        registers: &PaxosRegisters,
        orders: &mut Orders,
    ) -> Noted {
        if header.group != self.deployment.group {
            return Noted::Nothing;
        }
        match Kind::from_byte(header.kind) {
            Some(Kind::Checkpoint) => {
                if let Some(upto) = self.checkpoints.note(header.sender, header.index) {
                    orders.push(Order::Trim(upto));
                }
                Noted::Nothing
            }
            Some(Kind::P1a | Kind::P2a) => self.on_round(header, payload, registers, orders),
            Some(Kind::Admit) => self.on_admit(header, payload, orders),
            Some(
                Kind::Request
                | Kind::Append
                | Kind::AppendOk
                | Kind::Retransmit
                | Kind::Heartbeat
                | Kind::HeartbeatOk
                | Kind::Answer
                | Kind::Forward
                | Kind::Submit
                | Kind::P1b
                | Kind::P2b,
            )
            | None => Noted::Nothing,
        }
    }

    /// A coordinator's packet of another configuration, or any where the box is off.
    fn on_round(
        &mut self,
        header: &Header,
        payload: &[u8],
        registers: &PaxosRegisters,
        orders: &mut Orders,
    ) -> Noted {
        let asked = Lives::decode(payload, self.deployment.acceptors, header.commit_index);
        if let Some(asked) = asked {
            if asked.of(self.me) > self.lives.of(self.me) {
                return Noted::LaterLife {
                    life: asked.of(self.me),
                };
            }
            match self.standing {
                Standing::Member if asked.knows_all_of(&self.lives) => {
                    // The coordinator asks again; then the box answers.
                    orders.push(Order::Configure(asked.number()));
                    self.lives = asked;
                    return Noted::Nothing;
                }
                Standing::Member => {}
                Standing::Newcomer => self.lives = self.lives.joined(&asked),
            }
        }
        if header.commit_index != self.lives.number() || self.is_newcomer() {
            self.say_configuration(To::Sender, header, registers, orders);
        }
        Noted::Nothing
    }

    /// That it knows of another configuration, which a coordinator takes for the announcement of a new life,
    /// if it is one.
    fn say_configuration(
        &self,
        to: To,
        asked: &Header,
        registers: &PaxosRegisters,
        orders: &mut Orders,
    ) {
        let header = Header {
            flags: FLAG_REFUSED,
            term: registers.round,
            previous_term: asked.term,
            commit_index: self.lives.number(),
            sequence: registers.trimmed,
            ..self.deployment.header(Kind::P1b, self.me)
        };
        send(orders, to, header, &self.lives.encode());
    }

    fn on_admit(&mut self, header: &Header, payload: &[u8], orders: &mut Orders) -> Noted {
        let lives = Lives::decode(payload, self.deployment.acceptors, header.commit_index);
        let Some(lives) = lives.filter(|_| self.is_newcomer()) else {
            return Noted::Nothing;
        };
        let is_round = self.deployment.is_coordinators(owner_of(header.term));
        if !is_round || header.session.max(header.previous_term) > INSTANCE_MAX {
            return Noted::Nothing;
        }
        let life = self.lives.of(self.me);
        let is_this_life = lives.of(self.me) == life || mutant("lets-in-any-life");
        if !is_this_life || !lives.clone().with(self.me, life).knows_all_of(&self.lives) {
            return Noted::Nothing;
        }
        let bound = if mutant("member-for-everything") {
            0
        } else {
            header.previous_term
        };
        orders.push(Order::SwitchOn(Box::new(PaxosRegisters {
            configuration: lives.number(),
            round: header.term,
            trimmed: header.session,
            bound,
            group: self.deployment.group,
            window: self.deployment.window,
            role: PaxosRole::Acceptor as u8,
            me: self.me,
            held: u8::from(self.held),
            ..PaxosRegisters::default()
        })));
        self.lives = lives;
        self.standing = Standing::Member;
        self.checkpoints = Checkpoints::new(&self.deployment, header.session);
        Noted::LetIn
    }

    /// Time has passed: a newcomer says again that it is there.
    pub fn tick(&mut self, now: Duration, orders: &mut Orders) {
        if self.is_newcomer() && now >= self.next_announcement {
            self.next_announcement = now + self.announce;
            let nothing = (Header::default(), PaxosRegisters::default());
            self.say_configuration(To::Coordinators, &nothing.0, &nothing.1, orders);
        }
    }
}

#[cfg(test)]
#[path = "acceptor_test.rs"]
mod tests;

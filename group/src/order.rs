//! The order of one client's requests: what it sends ahead is carried out, and shown, as if it had waited for
//! each answer. Whoever drives a group keeps the requests of each connection in a row; what may be done with
//! one of them is said here.
use crate::group::{Gate, Group};
use crate::mutants::mutant;
use crate::requester::Requester;
use quorumwire_control::Ticket;
use quorumwire_interfaces::{Application, DataPlane, Index, Reason};

/// Where a read stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadState {
    /// To be answered under the leader's lease once the state machine has applied this index; 0: what it must
    /// show is not known yet.
    Gated(Index),
    /// A read index round is under way.
    Round(Ticket),
    /// To be answered once the state machine has applied this index; no lease needed any more.
    Granted(Index),
    /// Sent to the leader, under this request number.
    Forwarded(u64),
    /// Its answer is being made, in turns of its own.
    UnderWay,
}

impl ReadState {
    /// What it is about to be done anew: it was granted nothing, and shows nothing yet.
    pub const ANEW: Self = Self::Gated(Index(0));

    /// Whether nothing can be done with it here until somebody else has answered.
    #[must_use]
    pub const fn waits_for_others(self) -> bool {
        match self {
            Self::Round(_) | Self::Forwarded(_) | Self::UnderWay => true,
            Self::Gated(_) | Self::Granted(_) => false,
        }
    }
}

/// How a read begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BeginRead {
    /// Here, in this state.
    Here(ReadState),
    /// At the leader.
    Forward,
    /// Not now: it is offered again once the writes in front of it are answered.
    Later,
}

/// What is to be done with the read at the front.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadStep {
    /// Answer it, out of the state machine as it is now.
    Answer,
    /// It has no answer, for this reason.
    Refuse(Reason),
    /// Look at it again once this is applied.
    Wait(Index),
    /// Have a round begun, for it and for those behind it that wait for the same.
    AskRound,
    /// Send it to the leader.
    Forward,
    /// Nothing, until something else happens.
    Nothing,
}

/// What stands around a read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Around {
    /// A write of the same client waits behind it.
    pub write_behind: bool,
    /// A write of the same client, before it or behind it, is not answered, and its client was promised an
    /// order.
    pub undecided_write: bool,
}

impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// How a read begins. `behind_writes`: some of its client's are not answered, and it must show them.
    pub fn begin_read(&mut self, behind_writes: bool) -> BeginRead {
        if self.leads() {
            return BeginRead::Here(ReadState::Gated(self.read_barrier()));
        }
        // Elsewhere it would be answered without waiting for what is sent from here.
        if behind_writes && !mutant("read-overtakes-writes") {
            return BeginRead::Later;
        }
        BeginRead::Forward
    }

    /// Whether a write may be taken on while reads of the same client wait. A leader answers these before the
    /// write is applied. From elsewhere they are on their way to the leader, and the write could come there
    /// first.
    #[must_use]
    pub fn takes_write_behind_reads(&self) -> bool {
        self.leads() || mutant("write-overtakes-reads")
    }

    /// What is to be done with a read at the front, and where it stands by then. `line`: what is asked.
    pub(crate) fn read_step(
        &mut self,
        state: ReadState,
        around: Around,
        line: &[u8],
    ) -> (ReadState, ReadStep) {
        let may_wait = !around.write_behind;
        let (state, gate) = match state {
            ReadState::ANEW if self.leads() => {
                let must_apply = self.read_barrier();
                let gate = self.gate(must_apply, may_wait, line);
                (ReadState::Gated(must_apply), gate)
            }
            ReadState::Gated(must_apply) => (state, self.gate(must_apply, may_wait, line)),
            ReadState::Granted(index) => (state, self.gate_granted(index, may_wait, line)),
            ReadState::Round(_) | ReadState::Forwarded(_) | ReadState::UnderWay => {
                return (state, ReadStep::Nothing);
            }
        };
        let step = match gate {
            Gate::Open => ReadStep::Answer,
            Gate::Overdue => ReadStep::Refuse(Reason::Overdue),
            Gate::Wait(index) => ReadStep::Wait(index),
            Gate::NoLease => ReadStep::AskRound,
            // The new leader may have a write behind it already, which its answer would show.
            Gate::NotLeader if around.undecided_write && !mutant("read-follows-leadership") => {
                ReadStep::Nothing
            }
            Gate::NotLeader => ReadStep::Forward,
        };
        (state, step)
    }
}

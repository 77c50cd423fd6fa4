//! What two replicas say to each other about a request that one has passed on, and its bytes.
use crate::mutants::mutant;
use crate::requester::RequestId;
use bytes::Bytes;
use quorumwire_control::Message;
use quorumwire_interfaces::{Executed, Reason, Term};
use quorumwire_wire::Malformed;
use quorumwire_wire::peer::peer_message::Body;
use quorumwire_wire::peer::{self, ForwardOutcome, PeerMessage};

/// What a request is that goes to the leader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ForwardKind {
    /// Changes nothing.
    Read,
    /// A command.
    Write,
    /// A command of a session, which it begins with.
    Session,
}

/// What kind of an answer it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnswerKind {
    /// What the state machine said.
    Answer,
    /// What it had said when the command ran before.
    Repeated,
    /// There is none, for this reason. What comes with it here stands for the usual words, if it is not
    /// empty; what comes with it from another replica is for earlier versions, and nobody reads it.
    Refused(Reason),
}

impl AnswerKind {
    /// Whether the command may have run, or may yet: nobody can tell. Then a read that its client sent in
    /// front of it, and that still waits, has no answer either: by now the state machine may show the
    /// command, or soon does, here or elsewhere.
    #[must_use]
    pub fn ends_reads_in_front(self) -> bool {
        match self {
            Self::Answer | Self::Repeated => false,
            Self::Refused(reason) => {
                reason.executed() == Executed::Unknown && !mutant("reads-outlive-unknown-write")
            }
        }
    }
}

/// What another replica says to this group.
#[derive(Debug)]
pub enum GroupMessage {
    /// To consensus.
    Consensus(Message),
    /// About a request that was passed on.
    PassedOn(PassedOn),
}

impl GroupMessage {
    /// What a message says, as it comes from a replica.
    pub fn from_proto(message: PeerMessage, attachment: Bytes) -> Result<Self, Malformed> {
        let PeerMessage { group, term, body } = message;
        let id = |number, process| RequestId {
            term: Term(term),
            process,
            number,
        };
        Ok(Self::PassedOn(match body {
            Some(Body::Forward(it)) => {
                let kind = if it.read {
                    ForwardKind::Read
                } else {
                    ForwardKind::Write
                };
                PassedOn::Request(id(it.request, it.process), kind, attachment)
            }
            Some(Body::ForwardSession(it)) => {
                let kind = ForwardKind::Session;
                PassedOn::Request(id(it.request, it.process), kind, attachment)
            }
            Some(Body::ForwardReply(reply)) => {
                let id = RequestId {
                    term: Term(reply.sent_in_term),
                    process: reply.process,
                    number: reply.request,
                };
                PassedOn::Reply(id, said(&reply), attachment)
            }
            body => {
                let message = PeerMessage { group, term, body };
                return Message::from_proto(message, attachment).map(Self::Consensus);
            }
        }))
    }
}

/// A message about a request that was passed on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PassedOn {
    /// A follower asks for its client.
    Request(RequestId, ForwardKind, Bytes),
    /// What becomes of it.
    Reply(RequestId, AnswerKind, Bytes),
}

impl PassedOn {
    /// The message's body, and what is attached to it.
    pub(crate) fn into_body(self) -> (Body, Bytes) {
        match self {
            Self::Request(id, kind, bytes) => {
                let (request, process) = (id.number, id.process);
                let body = match kind {
                    ForwardKind::Read | ForwardKind::Write => Body::Forward(peer::Forward {
                        request,
                        read: kind == ForwardKind::Read,
                        process,
                    }),
                    ForwardKind::Session => {
                        Body::ForwardSession(peer::ForwardSession { request, process })
                    }
                };
                (body, bytes)
            }
            Self::Reply(id, said, answer) => {
                let (outcome, reason) = match said {
                    AnswerKind::Answer => (ForwardOutcome::Done, 0),
                    AnswerKind::Repeated => (ForwardOutcome::Repeated, 0),
                    AnswerKind::Refused(reason) => (outcome_of(reason), reason.code().into()),
                };
                let body = Body::ForwardReply(peer::ForwardReply {
                    request: id.number,
                    outcome: outcome.into(),
                    reason,
                    process: id.process,
                    sent_in_term: id.term.0,
                });
                (body, answer)
            }
        }
    }
}

/// What an answer says.
fn said(reply: &peer::ForwardReply) -> AnswerKind {
    match reply.outcome() {
        ForwardOutcome::Done => AnswerKind::Answer,
        ForwardOutcome::Repeated => AnswerKind::Repeated,
        ForwardOutcome::Refused => AnswerKind::Refused(Reason::from_code(reply.reason.into())),
        ForwardOutcome::NotLeader => AnswerKind::Refused(Reason::NotLeader),
        ForwardOutcome::Busy => AnswerKind::Refused(Reason::Busy),
        ForwardOutcome::DiskFull => AnswerKind::Refused(Reason::DiskFull),
        ForwardOutcome::Unknown | ForwardOutcome::Unspecified => {
            AnswerKind::Refused(Reason::OutcomeUnknown)
        }
    }
}

/// Whether this reason goes with words: its outcome alone tells a replica of an earlier version too little.
pub(crate) fn is_said_in_words(reason: Reason) -> bool {
    outcome_of(reason) == ForwardOutcome::Refused
}

/// What a follower is told that passed the request on: that another leads, it must know at once.
const fn outcome_of(reason: Reason) -> ForwardOutcome {
    match reason {
        Reason::NotLeader
        | Reason::NoLeader
        | Reason::NotCommitted
        | Reason::Stopping
        | Reason::Removed
        | Reason::DataGone => ForwardOutcome::NotLeader,
        Reason::Busy => ForwardOutcome::Busy,
        Reason::DiskFull => ForwardOutcome::DiskFull,
        Reason::OutcomeUnknown => ForwardOutcome::Unknown,
        Reason::SequenceTooOld
        | Reason::AnswerGone
        | Reason::AnswerTooLong
        | Reason::NoWayBack
        | Reason::TooManySessions
        | Reason::UnknownSession
        | Reason::Overdue
        | Reason::PiecesGone
        | Reason::Malformed
        | Reason::NotServed
        | Reason::TooManyKeys => ForwardOutcome::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: RequestId = RequestId {
        term: Term(7),
        process: 5,
        number: 3,
    };

    /// What a follower hears without a reason says as much of what was carried out.
    #[test]
    fn a_follower_takes_nothing_for_undone_that_may_be_done() {
        for reason in Reason::ALL {
            let is_undone = match outcome_of(reason) {
                ForwardOutcome::NotLeader | ForwardOutcome::Busy | ForwardOutcome::DiskFull => true,
                ForwardOutcome::Unknown => false,
                ForwardOutcome::Refused => continue, // it goes by the reason
                it @ (ForwardOutcome::Done
                | ForwardOutcome::Repeated
                | ForwardOutcome::Unspecified) => panic!("{reason:?}: {it:?}"),
            };
            assert_eq!(is_undone, reason.executed() == Executed::No, "{reason:?}");
        }
    }

    #[test]
    fn what_is_said_comes_back_from_its_bytes() {
        let bytes = Bytes::from_static(b"x");
        let kinds = [ForwardKind::Read, ForwardKind::Write, ForwardKind::Session];
        let requests = kinds.map(|kind| PassedOn::Request(ID, kind, bytes.clone()));
        let said = [AnswerKind::Answer, AnswerKind::Repeated]
            .into_iter()
            .chain(Reason::ALL.into_iter().map(AnswerKind::Refused));
        let replies = said.map(|said| PassedOn::Reply(ID, said, bytes.clone()));
        for message in requests.into_iter().chain(replies) {
            let (body, attachment) = message.clone().into_body();
            // In the reply stands the request's term; the message's is another.
            let term = match message {
                PassedOn::Request(..) => ID.term,
                PassedOn::Reply(..) => Term(9),
            };
            let sent = PeerMessage {
                group: 0,
                term: term.0,
                body: Some(body),
            };
            let Ok(GroupMessage::PassedOn(back)) = GroupMessage::from_proto(sent, attachment)
            else {
                panic!("{message:?} is read as something else");
            };
            match (&message, &back) {
                (
                    PassedOn::Reply(_, AnswerKind::Refused(why), _),
                    PassedOn::Reply(id, AnswerKind::Refused(heard), _),
                ) => {
                    assert_eq!(*id, ID);
                    let is_as_good = why.executed() == heard.executed();
                    assert!(is_as_good, "{why:?} is heard as {heard:?}");
                }
                _ => assert_eq!(message, back),
            }
        }
    }
}

//! What a replica says, and what follows from it.
use super::link::{RequestKind, State};
use super::{FOLLOW_PAUSE, Kind, LinkId, Machine, REFUSED_IN_A_ROW_MAX, Since, Ticket};
use crate::Error;
use quorumwire_wire::client::{
    FromServer, Goodbye, GoodbyeReason, Leader, Refused, RefusedReason, Welcome, from_server::Body,
};
use quorumwire_wire::limits::ADDRESS_BYTES_MAX;

/// Longest text of a replica that is kept for people.
const TEXT_CHARACTERS_MAX: usize = 256;

fn shortened(text: &str) -> String {
    text.chars().take(TEXT_CHARACTERS_MAX).collect()
}

/// What to do about a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    /// This sending was not carried out; another may be.
    TryAgain,
    /// This sending may have been carried out; another will tell.
    AskAgain,
    /// This sending was not carried out, and no other will be.
    No,
    /// It ran.
    AnswerGone,
    /// The replicas do not know the session.
    SessionGone,
    /// Nobody can tell any more.
    Unknown,
}

fn verdict(reason: RefusedReason) -> Verdict {
    match reason {
        RefusedReason::OutcomeUnknown => Verdict::AskAgain,
        RefusedReason::SequenceTooOld | RefusedReason::Unspecified => Verdict::Unknown,
        RefusedReason::AnswerGone => Verdict::AnswerGone,
        RefusedReason::UnknownSession => Verdict::SessionGone,
        RefusedReason::NoLeader
        | RefusedReason::NotLeader
        | RefusedReason::Busy
        | RefusedReason::DiskFull
        | RefusedReason::Stopping
        | RefusedReason::NotCommitted
        | RefusedReason::TooManySessions => Verdict::TryAgain,
        RefusedReason::Other => Verdict::No,
    }
}

impl Machine {
    /// Takes in what came on a connection.
    pub fn received(&mut self, now: Since, id: LinkId, bytes: &[u8]) {
        let Some(link) = self.link_mut(id) else {
            return; // given up earlier
        };
        let (messages, end) = link.take_in(now, bytes);
        for (message, attachment) in messages {
            if let Err(why) = self.take_message(now, id, message, attachment) {
                self.drop_link(now, id, why, true);
                return self.pump(now);
            }
        }
        if let Err(why) = end {
            self.counters.malformed += 1;
            self.drop_link(now, id, why, true);
        }
        self.pump(now);
    }

    /// The error: why the connection is given up.
    fn take_message(
        &mut self,
        now: Since,
        id: LinkId,
        message: FromServer,
        attachment: Vec<u8>,
    ) -> Result<(), String> {
        let Some(link) = self.link_mut(id) else {
            return Ok(()); // given up by an earlier message
        };
        match (link.state, message.body) {
            (_, Some(Body::Goodbye(goodbye))) => Err(self.goodbye(&goodbye)),
            (State::Greeting, Some(Body::Welcome(welcome))) => {
                self.welcome(now, id, &welcome);
                Ok(())
            }
            (State::Up, Some(Body::Leader(leader))) => {
                self.note_leader(&leader);
                Ok(())
            }
            (State::Up, Some(Body::Answer(answer))) => {
                self.answered(now, id, message.request, attachment, answer.repeated);
                Ok(())
            }
            (State::Up, Some(Body::Refused(refused))) => {
                self.refused(now, id, message.request, &refused)
            }
            (State::Up, Some(Body::Pong(_))) => {
                link.answered(message.request);
                Ok(())
            }
            (State::Up, None) => Ok(()), // something that a newer replica says
            (
                State::Up,
                Some(Body::Welcome(_) | Body::Value(_) | Body::Upto(_) | Body::Trimmed(_)),
            )
            | (State::Greeting, Some(_) | None)
            | (State::Connecting, _) => {
                self.counters.malformed += 1;
                Err("its answer makes no sense here".to_owned())
            }
        }
    }

    fn goodbye(&mut self, goodbye: &Goodbye) -> String {
        let text = shortened(&goodbye.detail);
        let is_up = self.link.as_ref().is_some_and(|it| it.state == State::Up);
        if goodbye.reason() == GoodbyeReason::NotLetIn && !is_up {
            // A wrong password does not become right by waiting.
            let sure = self.pending.iter().filter(|(_, it)| !it.is_doubtful);
            let sure: Vec<Ticket> = sure.map(|(ticket, _)| *ticket).collect();
            for ticket in sure {
                self.finish(ticket, Err(Error::NotLetIn(text.clone())));
            }
        }
        format!("the replica closed the connection: {text}")
    }

    fn welcome(&mut self, now: Since, id: LinkId, welcome: &Welcome) {
        if let Some(link) = self.link_mut(id) {
            link.state = State::Up;
            link.replica = Some(welcome.replica);
        }
        if self.challenger.as_ref().is_some_and(|it| it.id == id) {
            if let Some(old) = self.link.as_ref().map(|link| link.id) {
                self.actions.push(super::Action::Close(old));
                self.take_back_all(now);
            }
            self.link = self.challenger.take();
            self.follow_not_before = now + FOLLOW_PAUSE;
            self.counters.leaders_followed += 1;
        }
        if let Some(leader) = &welcome.leader {
            self.note_leader(leader);
        }
    }

    fn note_leader(&mut self, leader: &Leader) {
        let is_one = !leader.address.is_empty() && leader.address.len() <= ADDRESS_BYTES_MAX;
        self.hint = is_one.then(|| (leader.replica, leader.address.clone()));
    }

    fn answered(&mut self, now: Since, id: LinkId, request: u64, answer: Vec<u8>, repeated: bool) {
        let Some(link) = self.link_mut(id) else {
            return;
        };
        let ask = link.answered(request);
        link.was_of_use |= ask.is_some();
        link.refused_in_a_row = 0;
        match ask {
            Some(RequestKind::Opening) => self.session.opened(now),
            Some(RequestKind::Pending(ticket)) if self.pending.contains_key(&ticket) => {
                self.counters.answered += 1;
                self.counters.answered_repeated += u64::from(repeated);
                self.finish(ticket, Ok(answer));
            }
            Some(RequestKind::Pending(_) | RequestKind::Ping) | None => {
                self.counters.not_awaited += 1;
            }
        }
    }

    /// The error: it is time to ask another replica.
    fn refused(
        &mut self,
        now: Since,
        id: LinkId,
        request: u64,
        refused: &Refused,
    ) -> Result<(), String> {
        let text = shortened(&refused.detail);
        let Some(link) = self.link_mut(id) else {
            return Ok(());
        };
        let ask = link.answered(request);
        link.refused_in_a_row += 1;
        let is_enough = link.refused_in_a_row >= REFUSED_IN_A_ROW_MAX;
        self.counters.refused += u64::from(ask.is_some());
        match ask {
            Some(RequestKind::Opening) => {
                let wait = self.wait(self.failures);
                self.session.refused(now + wait);
                self.failure.clone_from(&text);
            }
            Some(RequestKind::Pending(ticket)) => {
                self.refused_one(now, ticket, refused.reason(), text);
            }
            Some(RequestKind::Ping) | None => self.counters.not_awaited += 1,
        }
        if is_enough {
            return Err("it refuses everything".to_owned());
        }
        Ok(())
    }

    fn refused_one(&mut self, now: Since, ticket: Ticket, reason: RefusedReason, text: String) {
        let Some(tries) = self.pending.get(&ticket).map(|it| it.sendings) else {
            self.counters.not_awaited += 1;
            return;
        };
        let not_before = now + self.wait(tries);
        let Some(pending) = self.pending.get_mut(&ticket) else {
            return;
        };
        pending.is_out = false;
        pending.not_before = not_before;
        let is_command = pending.kind == Kind::Command;
        let verdict = verdict(reason);
        let error = match verdict {
            Verdict::AskAgain | Verdict::TryAgain => {
                pending.is_doubtful |= is_command && verdict == Verdict::AskAgain;
                pending.why = text;
                return;
            }
            Verdict::SessionGone if !pending.is_doubtful => {
                // None of its sendings ran, nor will: it is a new command in a new session.
                if let Some(name) = pending.name.take() {
                    self.session.settled(name);
                    self.session.forgotten(name);
                }
                pending.why = text;
                return;
            }
            Verdict::SessionGone => {
                if let Some(name) = pending.name {
                    self.session.forgotten(name);
                }
                Error::OutcomeUnknown
            }
            Verdict::No | Verdict::Unknown | Verdict::AnswerGone if !is_command => {
                Error::NoAnswer(text)
            }
            Verdict::No if !pending.is_doubtful => Error::NotCarriedOut(text),
            Verdict::No | Verdict::Unknown => Error::OutcomeUnknown,
            Verdict::AnswerGone => Error::AnswerGone,
        };
        self.finish(ticket, Err(error));
    }
}

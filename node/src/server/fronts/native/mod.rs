//! What is kept of a client of the native protocol, and its frames.
mod counters;
mod words;

pub use self::counters::{CloseReason, NativeCounters};

use quorumwire_group::AnswerKind;
use quorumwire_interfaces::Reason;
use quorumwire_wire::client::{self, FromServer, from_server};
use quorumwire_wire::limits::ATTACHMENT_BYTES_MAX;
use quorumwire_wire::write_client_frame;
use std::collections::VecDeque;

/// What is known of a client; nothing, when it has just connected.
#[derive(Default)]
pub struct NativeClient {
    /// It has said hello, and has been welcomed.
    pub is_welcome: bool,
    /// The number of the request that is being taken on.
    pub request: u64,
    /// Those of the requests that wait, in their order.
    pub waiting: VecDeque<u64>,
    /// Who it was told leads.
    pub told: Option<client::Leader>,
    /// The version of the protocol that both know.
    pub protocol: u32,
    /// It is given values.
    pub subscription: Option<Subscription>,
    /// Not added to those of all yet.
    pub counters: NativeCounters,
}

/// A client that is given values.
#[derive(Debug)]
pub struct Subscription {
    /// The number of its request.
    pub request: u64,
    /// What it hears next.
    pub values: quorumwire_deliver::Subscription,
}

impl NativeClient {
    /// The request being looked at waits for its answer from now on.
    pub fn took_on(&mut self) {
        self.waiting.push_back(self.request);
    }

    /// The first of those that wait is answered.
    pub fn done_with_first(&mut self) {
        self.waiting.pop_front();
    }

    /// Writes the answer to the first of the requests that wait; one that fits no message is none.
    pub fn put_answer(&mut self, output: &mut Vec<u8>, said: AnswerKind, answer: &[u8]) {
        let request = self.waiting.front().copied().unwrap_or_default();
        let (said, answer) = match said {
            AnswerKind::Answer | AnswerKind::Repeated if answer.len() > ATTACHMENT_BYTES_MAX => {
                (AnswerKind::Refused(Reason::AnswerTooLong), &b""[..])
            }
            AnswerKind::Answer | AnswerKind::Repeated | AnswerKind::Refused(_) => (said, answer),
        };
        let (body, attachment) = match said {
            AnswerKind::Answer | AnswerKind::Repeated => {
                let repeated = said == AnswerKind::Repeated;
                self.counters.answers_repeated += u64::from(repeated);
                let answered = client::Answer { repeated };
                (from_server::Body::Answer(answered), answer)
            }
            AnswerKind::Refused(reason) => {
                let refused = words::refused(reason, answer);
                self.counters.count_refused(refused.reason());
                (from_server::Body::Refused(refused), &b""[..])
            }
        };
        put(output, request, body, attachment);
    }

    /// What was counted since this was asked last.
    pub fn take_counters(&mut self) -> NativeCounters {
        std::mem::take(&mut self.counters)
    }
}

/// Writes a frame.
pub fn put(output: &mut Vec<u8>, request: u64, body: from_server::Body, attachment: &[u8]) {
    let message = FromServer {
        request,
        body: Some(body),
    };
    write_client_frame(output, &message, attachment);
}

/// Writes a refusal; what it is counted as.
pub fn put_refused(
    output: &mut Vec<u8>,
    request: u64,
    reason: Reason,
    instead: &[u8],
) -> client::RefusedReason {
    let refused = words::refused(reason, instead);
    let counted = refused.reason();
    put(output, request, from_server::Body::Refused(refused), b"");
    counted
}

/// What one connection too many is told.
pub fn too_many_connections() -> Vec<u8> {
    goodbye(client::GoodbyeReason::TooManyConnections, String::new())
}

/// What a client is told whose connection is closed.
pub fn goodbye(reason: client::GoodbyeReason, detail: String) -> Vec<u8> {
    let mut frame = Vec::new();
    let goodbye = client::Goodbye {
        reason: reason.into(),
        detail,
    };
    put(&mut frame, 0, from_server::Body::Goodbye(goodbye), b"");
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_wire::client::RefusedReason;
    use quorumwire_wire::{ClientFrame, take_client_frame};

    /// A frame holds no more; whoever asked hears that there was more to say.
    #[test]
    fn an_answer_that_fits_no_message_is_refused() {
        for (bytes, is_told) in [
            (ATTACHMENT_BYTES_MAX, true),
            (ATTACHMENT_BYTES_MAX + 1, false),
        ] {
            let mut output = Vec::new();
            NativeClient::default().put_answer(&mut output, AnswerKind::Answer, &vec![0; bytes]);
            let frame = take_client_frame::<FromServer>(&output, ATTACHMENT_BYTES_MAX).unwrap();
            let ClientFrame::Whole { message, .. } = frame else {
                panic!("half a frame");
            };
            match message.body.unwrap() {
                from_server::Body::Answer(_) => assert!(is_told),
                from_server::Body::Refused(refused) => {
                    assert!(!is_told && refused.reason() == RefusedReason::AnswerGone);
                }
                other @ (from_server::Body::Welcome(_)
                | from_server::Body::Goodbye(_)
                | from_server::Body::Leader(_)
                | from_server::Body::Pong(_)
                | from_server::Body::Value(_)
                | from_server::Body::Upto(_)
                | from_server::Body::Trimmed(_)) => panic!("{other:?}"),
            }
        }
    }
}

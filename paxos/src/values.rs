//! From what was decided to values: each once however often it was proposed, and whole if it came in pieces.
//! `group/sessions` does it, as between a replica's log and its application.
//!
//! A value begins with a byte, so that an empty one is not what opens a session. Sessions give way to new
//! ones after instances as they do after milliseconds of a log's time: a deployment has no clock.
use crate::votes::Decided;
use quorumwire_interfaces::{Application, Applied, Frozen, Index, LogTime};
use quorumwire_sessions::{LogPosition, Outcome, SessionRefusal, Sessions};
use std::io;

/// What a value begins with.
pub(crate) const VALUE: u8 = 1;

/// What became of what was decided.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fate {
    /// It is nobody's, or opens a session.
    NoOp,
    /// A value, or the last missing piece of one: to be delivered.
    Value(Vec<u8>),
    /// It was delivered before.
    Repeated,
    /// It is a piece of a value; others are missing.
    Piece,
    /// It is delivered to nobody: nobody knows its session any more, or it makes no sense.
    Refused(SessionRefusal),
}

/// Values, from what was decided.
#[derive(Default)]
pub struct Values {
    sessions: Sessions<Delivery>,
}

/// The application that the sessions stand around: it gives each value on.
#[derive(Debug, Default)]
struct Delivery {
    value: Option<Vec<u8>>,
}

impl Values {
    /// Takes in what was decided next.
    pub fn take(&mut self, decided: &Decided) -> Fate {
        if decided.session == 0 {
            return Fate::NoOp;
        }
        let position = LogPosition {
            index: Index(decided.instance),
            log_time: LogTime(decided.instance),
        };
        let mut payload = Vec::with_capacity(16 + decided.payload.len());
        payload.extend_from_slice(&decided.session.to_be_bytes());
        payload.extend_from_slice(&decided.sequence.to_be_bytes());
        payload.extend_from_slice(&decided.payload);
        self.sessions.advance(position.log_time);
        let mut reply = Vec::new();
        let outcome = if decided.is_fragment {
            self.sessions.fragment(position, &payload, &mut reply)
        } else {
            self.sessions.in_session(position, &payload, &mut reply)
        };
        match outcome {
            Outcome::Applied | Outcome::AnswerTooLong => {
                match self.sessions.inner_mut().value.take() {
                    Some(value) => Fate::Value(value),
                    None => Fate::NoOp,
                }
            }
            Outcome::Repeated => Fate::Repeated,
            Outcome::Incomplete => Fate::Piece,
            Outcome::Refused(refusal) => Fate::Refused(refusal),
        }
    }

    /// What has to be kept with a checkpoint, so that nothing is delivered twice behind it either.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Memory takes all that is written.
        let _ = self.sessions.freeze().write(&mut bytes);
        bytes
    }

    /// What was kept.
    ///
    /// # Errors
    /// The bytes are none that [`to_bytes`](Self::to_bytes) made.
    pub fn from_bytes(mut bytes: &[u8]) -> io::Result<Self> {
        let mut values = Self::default();
        values.sessions.restore(&mut bytes)?;
        if bytes.is_empty() {
            Ok(values)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

impl Application for Delivery {
    fn apply(&mut self, entry: &Applied<'_>, _reply: &mut Vec<u8>) {
        let value = entry.command.split_first();
        self.value = value.and_then(|(first, value)| (*first == VALUE).then(|| value.to_vec()));
    }

    fn query(&self, _request: &[u8], _reply: &mut Vec<u8>) {}

    fn freeze(&self) -> Box<dyn Frozen> {
        Box::new(Nothing)
    }

    fn restore(&mut self, _reader: &mut dyn io::Read) -> io::Result<()> {
        Ok(())
    }
}

/// The state of what only gives values on.
struct Nothing;

impl Frozen for Nothing {
    fn write(&self, _writer: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_wire::piece_header;

    fn decided(instance: u64, sequence: u64, payload: &[u8]) -> Decided {
        Decided {
            instance,
            session: 7,
            sequence,
            is_fragment: false,
            payload: payload.to_vec(),
        }
    }

    #[test]
    fn a_value_comes_once_also_behind_a_checkpoint() {
        let mut values = Values::default();
        assert_eq!(values.take(&decided(1, 1, b"")), Fate::NoOp, "opens");
        assert_eq!(
            values.take(&decided(2, 65, b"\x01x")),
            Fate::Value(b"x".to_vec())
        );
        assert_eq!(values.take(&decided(3, 66, b"\x01")), Fate::Value(vec![]));
        assert_eq!(values.take(&decided(4, 65, b"\x01x")), Fate::Repeated);
        let mut behind = Values::from_bytes(&values.to_bytes()).unwrap();
        assert_eq!(behind.take(&decided(5, 66, b"\x01")), Fate::Repeated);
        assert!(matches!(
            behind.take(&Decided {
                session: 8,
                ..decided(6, 66, b"\x01")
            }),
            Fate::Refused(SessionRefusal::UnknownSession)
        ));
        let no_op = Decided {
            session: 0,
            ..decided(7, 0, b"whatever")
        };
        assert_eq!(behind.take(&no_op), Fate::NoOp);
        let mut longer = values.to_bytes();
        longer.push(0);
        assert!(Values::from_bytes(&longer).is_err());
    }

    #[test]
    fn pieces_become_a_value() {
        let mut values = Values::default();
        let piece = |instance, number, bytes: &[u8]| Decided {
            is_fragment: true,
            ..decided(instance, 2, &[&piece_header(number, 2), bytes].concat())
        };
        assert_eq!(values.take(&piece(1, 1, b"yz")), Fate::Piece);
        assert_eq!(
            values.take(&piece(2, 0, b"\x01x")),
            Fate::Value(b"xyz".to_vec())
        );
        assert_eq!(values.take(&piece(3, 1, b"yz")), Fate::Repeated);
    }
}

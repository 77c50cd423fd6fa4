//! Queries, and what they are answered, as bytes.
use crate::bytes::{Left, Malformed};
use crate::limits::LEARNERS_MAX;
use crate::{Instance, Learner};

/// A question that changes nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Query {
    /// What is known of this instance.
    Recover(Instance),
    /// How far all are.
    Status,
}

const RECOVER: u8 = 1;
const STATUS: u8 = 2;

impl Query {
    /// As a client sends it.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        match self {
            Self::Recover(instance) => {
                let mut out = vec![RECOVER];
                out.extend_from_slice(&instance.to_be_bytes());
                out
            }
            Self::Status => vec![STATUS],
        }
    }

    /// Reads one.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut left = Left(bytes);
        let query = match left.u8()? {
            RECOVER => Self::Recover(left.u64()?),
            STATUS => Self::Status,
            _ => return Err(Malformed),
        };
        left.end()?;
        Ok(query)
    }
}

/// What is known of an instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Recovered<'a> {
    /// It holds this value.
    Decided(&'a [u8]),
    /// It is decided, and holds none.
    NoOp,
    /// Nothing up to this instance is kept any more, and it is one of these.
    Trimmed(Instance),
    /// It is beyond this instance, the last that is decided.
    NotDecided(Instance),
}

/// How far all are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Status {
    /// The last instance that is decided.
    pub last: Instance,
    /// Nothing up to this instance is kept.
    pub trimmed: Instance,
    /// Values that are kept.
    pub kept: u64,
    /// Their bytes, with what each takes beside its own.
    pub kept_bytes: u64,
    /// Most of these.
    pub kept_bytes_max: u64,
    /// Each learner and its checkpoint, ascending.
    pub learners: Vec<(Learner, Instance)>,
}

/// What a query is answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum QueryAnswer<'a> {
    /// To the question for an instance.
    Recovered(Recovered<'a>),
    /// To the question for all.
    Status(Status),
    /// It is no query of this version.
    Malformed,
}

const DECIDED: u8 = 1;
const NO_OP: u8 = 2;
const TRIMMED: u8 = 3;
const NOT_DECIDED: u8 = 4;
const STATUS_IS: u8 = 5;
const MALFORMED: u8 = 6;

impl<'a> QueryAnswer<'a> {
    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut with = |kind, instance: &Instance| {
            out.push(kind);
            out.extend_from_slice(&instance.to_be_bytes());
        };
        match self {
            Self::Recovered(Recovered::Decided(value)) => {
                out.push(DECIDED);
                out.extend_from_slice(value);
            }
            Self::Recovered(Recovered::NoOp) => out.push(NO_OP),
            Self::Recovered(Recovered::Trimmed(upto)) => with(TRIMMED, upto),
            Self::Recovered(Recovered::NotDecided(last)) => with(NOT_DECIDED, last),
            Self::Status(status) => {
                with(STATUS_IS, &status.last);
                for number in [
                    status.trimmed,
                    status.kept,
                    status.kept_bytes,
                    status.kept_bytes_max,
                ] {
                    out.extend_from_slice(&number.to_be_bytes());
                }
                for (learner, checkpoint) in &status.learners {
                    out.extend_from_slice(&learner.to_be_bytes());
                    out.extend_from_slice(&checkpoint.to_be_bytes());
                }
            }
            Self::Malformed => out.push(MALFORMED),
        }
    }

    /// Reads one.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut left = Left(bytes);
        let answer = match left.u8()? {
            DECIDED => Self::Recovered(Recovered::Decided(left.rest())),
            NO_OP => Self::Recovered(Recovered::NoOp),
            TRIMMED => Self::Recovered(Recovered::Trimmed(left.u64()?)),
            NOT_DECIDED => Self::Recovered(Recovered::NotDecided(left.u64()?)),
            STATUS_IS => {
                let mut status = Status {
                    last: left.u64()?,
                    trimmed: left.u64()?,
                    kept: left.u64()?,
                    kept_bytes: left.u64()?,
                    kept_bytes_max: left.u64()?,
                    learners: Vec::new(),
                };
                while !left.0.is_empty() {
                    if status.learners.len() == LEARNERS_MAX {
                        return Err(Malformed);
                    }
                    status.learners.push((left.u16()?, left.u64()?));
                }
                Self::Status(status)
            }
            MALFORMED => Self::Malformed,
            _ => return Err(Malformed),
        };
        left.end()?;
        Ok(answer)
    }
}

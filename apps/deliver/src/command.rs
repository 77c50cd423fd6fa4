//! Commands, and what they are answered, as bytes. An answer is short enough to be kept for a command that is
//! repeated.
use crate::bytes::{Left, Malformed};
use crate::limits::{KEPT_BYTES_MAX, KEPT_BYTES_MIN, LEARNERS_MAX};
use crate::{Instance, Learner};
use std::fmt;

/// A command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command<'a> {
    /// The next value.
    Value(&'a [u8]),
    /// This learner needs nothing up to this instance any more. One that is not further than before changes
    /// nothing.
    Checkpoint {
        /// Who.
        learner: Learner,
        /// The instance, which is one that is decided.
        upto: Instance,
    },
    /// Nobody will be given what stands up to this instance: an operator says so.
    DeclareLost {
        /// The instance, which is one that is decided.
        upto: Instance,
    },
    /// From here on these are the learners, and so much is kept. A learner that is new begins with what is
    /// kept.
    Configure {
        /// Ascending, each once; at most [`LEARNERS_MAX`].
        learners: Vec<Learner>,
        /// [`KEPT_BYTES_MIN`] to [`KEPT_BYTES_MAX`].
        kept_bytes_max: u64,
    },
}

const VALUE: u8 = 1;
const CHECKPOINT: u8 = 2;
const DECLARE_LOST: u8 = 3;
const CONFIGURE: u8 = 4;

impl<'a> Command<'a> {
    /// As it stands in the log.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Value(bytes) => {
                out.reserve_exact(1 + bytes.len());
                out.push(VALUE);
                out.extend_from_slice(bytes);
            }
            Self::Checkpoint { learner, upto } => {
                out.push(CHECKPOINT);
                out.extend_from_slice(&learner.to_be_bytes());
                out.extend_from_slice(&upto.to_be_bytes());
            }
            Self::DeclareLost { upto } => {
                out.push(DECLARE_LOST);
                out.extend_from_slice(&upto.to_be_bytes());
            }
            Self::Configure {
                learners,
                kept_bytes_max,
            } => {
                out.push(CONFIGURE);
                out.extend_from_slice(&kept_bytes_max.to_be_bytes());
                for learner in learners {
                    out.extend_from_slice(&learner.to_be_bytes());
                }
            }
        }
        out
    }

    /// Reads one.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut left = Left(bytes);
        let command = match left.u8()? {
            VALUE => Self::Value(left.rest()),
            CHECKPOINT => Self::Checkpoint {
                learner: left.u16()?,
                upto: left.u64()?,
            },
            DECLARE_LOST => Self::DeclareLost { upto: left.u64()? },
            CONFIGURE => {
                let kept_bytes_max = left.u64()?;
                let mut learners: Vec<Learner> = Vec::new();
                while !left.0.is_empty() {
                    let learner = left.u16()?;
                    let is_next = learners.last().is_none_or(|before| *before < learner);
                    if !is_next || learners.len() == LEARNERS_MAX {
                        return Err(Malformed);
                    }
                    learners.push(learner);
                }
                if !(KEPT_BYTES_MIN..=KEPT_BYTES_MAX).contains(&kept_bytes_max) {
                    return Err(Malformed);
                }
                Self::Configure {
                    learners,
                    kept_bytes_max,
                }
            }
            _ => return Err(Malformed),
        };
        left.end()?;
        Ok(command)
    }
}

/// What a command is answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// The value has this instance.
    Decided(Instance),
    /// It was done. Nothing up to this instance is kept any more; 0: all is.
    Trimmed(Instance),
    /// It changed nothing.
    Refused(Refusal),
}

/// Why a command changed nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// No more may be kept.
    Full {
        /// What may be.
        kept_bytes_max: u64,
        /// The learner that is furthest behind and its checkpoint, 0 if it never made one; none where there
        /// are no learners.
        behind: Option<(Learner, Instance)>,
    },
    /// The value has more bytes than this.
    TooLarge {
        /// What one may have.
        bytes_max: u32,
    },
    /// There is no such learner.
    UnknownLearner(Learner),
    /// The instance is beyond the last that is decided.
    NotDecided {
        /// The last.
        last: Instance,
    },
    /// It is no command of this version.
    Malformed,
}

const DECIDED: u8 = 0;
const TRIMMED: u8 = 1;
const FULL: u8 = 16;
const FULL_WITHOUT_LEARNERS: u8 = 17;
const TOO_LARGE: u8 = 18;
const UNKNOWN_LEARNER: u8 = 19;
const NOT_DECIDED: u8 = 20;
const MALFORMED: u8 = 21;

impl Answer {
    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Decided(instance) => {
                out.push(DECIDED);
                out.extend_from_slice(&instance.to_be_bytes());
            }
            Self::Trimmed(upto) => {
                out.push(TRIMMED);
                out.extend_from_slice(&upto.to_be_bytes());
            }
            Self::Refused(refusal) => refusal.encode(out),
        }
    }

    /// Reads one.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut left = Left(bytes);
        let answer = match left.u8()? {
            DECIDED => Self::Decided(left.u64()?),
            TRIMMED => Self::Trimmed(left.u64()?),
            FULL => Self::Refused(Refusal::Full {
                kept_bytes_max: left.u64()?,
                behind: Some((left.u16()?, left.u64()?)),
            }),
            FULL_WITHOUT_LEARNERS => Self::Refused(Refusal::Full {
                kept_bytes_max: left.u64()?,
                behind: None,
            }),
            TOO_LARGE => Self::Refused(Refusal::TooLarge {
                bytes_max: left.array().map(u32::from_be_bytes)?,
            }),
            UNKNOWN_LEARNER => Self::Refused(Refusal::UnknownLearner(left.u16()?)),
            NOT_DECIDED => Self::Refused(Refusal::NotDecided { last: left.u64()? }),
            MALFORMED => Self::Refused(Refusal::Malformed),
            _ => return Err(Malformed),
        };
        left.end()?;
        Ok(answer)
    }
}

impl Refusal {
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Full {
                kept_bytes_max,
                behind,
            } => {
                out.push(behind.map_or(FULL_WITHOUT_LEARNERS, |_| FULL));
                out.extend_from_slice(&kept_bytes_max.to_be_bytes());
                if let Some((learner, checkpoint)) = behind {
                    out.extend_from_slice(&learner.to_be_bytes());
                    out.extend_from_slice(&checkpoint.to_be_bytes());
                }
            }
            Self::TooLarge { bytes_max } => {
                out.push(TOO_LARGE);
                out.extend_from_slice(&bytes_max.to_be_bytes());
            }
            Self::UnknownLearner(learner) => {
                out.push(UNKNOWN_LEARNER);
                out.extend_from_slice(&learner.to_be_bytes());
            }
            Self::NotDecided { last } => {
                out.push(NOT_DECIDED);
                out.extend_from_slice(&last.to_be_bytes());
            }
            Self::Malformed => out.push(MALFORMED),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full {
                kept_bytes_max,
                behind,
            } => {
                write!(f, "{kept_bytes_max} bytes of values are kept, the limit: ")?;
                match behind {
                    Some((learner, 0)) => write!(f, "learner {learner} has checkpointed none"),
                    Some((learner, checkpoint)) => write!(
                        f,
                        "learner {learner} is furthest behind, its checkpoint is {checkpoint}"
                    ),
                    None => write!(f, "there is no learner"),
                }
            }
            Self::TooLarge { bytes_max } => {
                write!(f, "the value is too large; allowed: {bytes_max} bytes")
            }
            Self::UnknownLearner(learner) => write!(f, "there is no learner {learner}"),
            Self::NotDecided { last } => {
                write!(f, "that instance is not decided; the last one is {last}")
            }
            Self::Malformed => write!(f, "that is no command of this version"),
        }
    }
}

//! Errors of a member of a deployment, and what they say.
use crate::deployment_file::DeploymentError;
use crate::member::{Instance, SUBMITTED_MAX};
use quorumwire_paxos::{RECOVERING_MAX, VALUE_BYTES_MAX};
use std::io;
use std::path::PathBuf;

/// Why a member cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// There is no such learner.
    #[error("there is no learner {learner}; allowed: 0 to {last}")]
    NoSuchLearner {
        /// The number.
        learner: u8,
        /// The last one that there is.
        last: usize,
    },
    /// The deployment's file or key cannot be used.
    #[error("{0}")]
    Deployment(#[from] DeploymentError),
    /// The system refused something.
    #[error("{0}: {1}")]
    System(String, io::Error),
    /// The folder cannot be used.
    #[error("{0}: {1}")]
    Folder(PathBuf, io::Error),
    /// A value is longer than a deployment takes.
    #[error("the value has {bytes} bytes; allowed: at most {VALUE_BYTES_MAX}")]
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// Nobody knows the proposer's session any more: the value may have been decided, or not.
    #[error("it is not known whether the value was decided")]
    Unknown,
    /// It did not come about in time, and may yet.
    #[error("no answer in time: it may yet come about")]
    Late,
    /// The same; and it will not before this learner has what all others have forgotten.
    #[error(
        "no answer in time: it may yet come about, once this learner begins from another one's checkpoint: what was \
         decided up to instance {upto} is kept by nobody any more"
    )]
    LateBehind {
        /// The last instance that is forgotten.
        upto: Instance,
    },
    /// All others have forgotten what this learner lacks.
    #[error(
        "what was decided up to instance {upto} is kept by nobody any more: begin from another learner's checkpoint"
    )]
    Behind {
        /// The last instance that is forgotten.
        upto: Instance,
    },
    /// This learner was given the instance before.
    #[error("instance {0} was delivered before")]
    Delivered(Instance),
    /// It is too far from what is known.
    #[error("instance {instance} is too far: allowed are {} to {}", .first, .last)]
    TooFar {
        /// The instance.
        instance: Instance,
        /// The first that can be asked for.
        first: Instance,
        /// The last.
        last: Instance,
    },
    /// A no-op is longer than a packet takes.
    #[error("the no-op has {bytes} bytes; allowed: at most {bytes_max}")]
    NoOpTooLong {
        /// Its bytes.
        bytes: usize,
        /// The most that are allowed.
        bytes_max: usize,
    },
    /// As many instances as can be are being asked for.
    #[error("{RECOVERING_MAX} instances are being asked for already")]
    TooManyRecoveries,
    /// As many values as may be are under way.
    #[error("{SUBMITTED_MAX} values are under way already")]
    TooManySubmitted,
    /// A checkpoint of what was not delivered yet.
    #[error("instance {0} was not delivered yet")]
    NotDelivered(Instance),
    /// It was closed.
    #[error("the member was closed")]
    Closed,
}

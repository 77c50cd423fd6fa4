//! What becomes of a request on its way into the log or to the leader.
use quorumwire_group::SubmitOutcome;
use quorumwire_interfaces::Reason;

/// What became of a request.
pub enum RouteOutcome {
    /// Its answer will come.
    Pending,
    /// It can go nowhere now; offer it again later.
    Stalled,
    /// There is no answer for this reason; the text stands for the usual words, if it is not empty.
    Refused(Reason, String),
}

impl RouteOutcome {
    /// In the usual words.
    pub const fn refused(reason: Reason) -> Self {
        Self::Refused(reason, String::new())
    }
}

impl From<RouteOutcome> for SubmitOutcome {
    fn from(routed: RouteOutcome) -> Self {
        match routed {
            RouteOutcome::Pending => Self::Pending,
            RouteOutcome::Stalled => Self::NoRoom,
            RouteOutcome::Refused(reason, _) => Self::Refused(reason),
        }
    }
}

//! What clients of this server share, whatever they speak and whichever group their requests go to: who may
//! be one, how much each may have done in a turn, and what is counted of their requests. Knows connections
//! only by name, and no replicated group.
use super::connection_id::ConnectionId;
use super::in_flight::InFlight;
use crate::accounts::Accounts;
use quorumwire_interfaces::counters;

/// What a connection may have done in one turn, in bytes that are looked at or moved; then the others
/// come first.
const SHARE_OF_CONNECTION: u64 = 4 << 20;

/// What clients of the native protocol are told of this server.
#[derive(Default)]
pub struct Identity {
    pub replica: u32,
    pub cluster: String,
}

counters! {
    /// Of clients of this server, whatever they speak, since the start. Plain numbers, as in all of these:
    /// one thread counts, the report copies.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct AdmissionCounters {
        /// Wrong names or passwords from clients
        pub authentications_failed: "client_authentications_failed",
        /// Times a client's connection had had its share of a turn and waited behind the others
        pub shares_used_up: "client_shares_used_up",
    }
}

/// What all clients of this server have in common.
pub struct Admission {
    pub identity: Identity,
    /// Who may be a client; none: everybody.
    pub accounts: Option<Accounts>,
    /// Expensive writes of clients here.
    pub in_flight: InFlight,
    /// Of the work that is done: the connection that is looked at may go on until there.
    share_ends: u64,
    /// Connections to look at again in the next turn.
    pub attend_later: Vec<ConnectionId>,
    pub counters: AdmissionCounters,
    /// When the last snapshot was taken here, or else this process began, in seconds since 1970.
    pub last_saved_s: u64,
}

impl Admission {
    /// Of a server that begins now, in seconds since 1970.
    pub fn new(identity: Identity, accounts: Option<Accounts>, wall_s: u64) -> Self {
        Self {
            identity,
            accounts,
            in_flight: InFlight::default(),
            share_ends: u64::MAX,
            attend_later: Vec::new(),
            counters: AdmissionCounters::default(),
            last_saved_s: wall_s,
        }
    }

    /// A connection is looked at, when so much work is done: it has a share of this turn.
    pub fn begin_share(&mut self, work_done: u64) {
        self.share_ends = work_done.saturating_add(SHARE_OF_CONNECTION);
    }

    /// Whether something is left of it.
    pub const fn has_share(&self, work_done: u64) -> bool {
        work_done < self.share_ends
    }

    /// Whether somebody of this name has this password; counted if not.
    pub fn is_account(&mut self, name: &[u8], password: &[u8]) -> bool {
        let accounts = self.accounts.as_ref();
        let is_one = accounts.is_some_and(|accounts| accounts.has(name, password));
        self.counters.authentications_failed += u64::from(!is_one);
        is_one
    }
}

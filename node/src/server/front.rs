//! What clients of this server share, whatever they speak and whichever group their requests go to: who may
//! be one, what they ask of the whole server, how much each may have done in a turn, and what is counted of
//! their requests. Knows connections only by name, and no replicated group.
use super::asks::Asks;
use super::clients::ConnectionId;
use super::counters::RequestCounters;
use super::in_flight::InFlight;
use super::stats::Serving;
use crate::accounts::Accounts;
use quorumwire_control::Now;

/// What a connection may have done in one turn, in the measure of the store's `WORK_MAX`; then the others
/// come first.
const SHARE_OF_CONNECTION: u64 = 4 << 20;

/// What clients of the own protocol are told of this server.
#[derive(Default)]
pub struct Identity {
    pub replica: u32,
    pub cluster: String,
    /// Where they connect.
    pub own_address: String,
}

/// What all clients of this server have in common.
pub struct Front {
    pub identity: Identity,
    /// Who may be a client; none: everybody.
    pub accounts: Option<Accounts>,
    /// What clients ask of the whole server.
    pub asks: Asks,
    /// Expensive writes of clients here.
    pub in_flight: InFlight,
    /// Of the store's work: the connection that is looked at may go on until there.
    share_ends: u64,
    /// Connections to look at again in the next turn.
    pub attend_later: Vec<ConnectionId>,
    pub counters: RequestCounters,
    /// What `stats` tells of the clients.
    pub serving: Serving,
    /// When the last snapshot was taken here, or else this process began, in seconds since 1970.
    pub last_saved_s: u64,
}

impl Front {
    /// Of a server that begins now, by both clocks.
    pub fn new(identity: Identity, accounts: Option<Accounts>, now: Now, wall_s: u64) -> Self {
        Self {
            identity,
            accounts,
            asks: Asks::default(),
            in_flight: InFlight::default(),
            share_ends: u64::MAX,
            attend_later: Vec::new(),
            counters: RequestCounters::default(),
            serving: Serving::begin(now),
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

//! One replicated group in one process: consensus, state machine, and whatever waits for them. Knows
//! client connections only by name, other replicas by what it is shown of the connections to them.
use super::answers;
use super::budget::Budget;
use super::clients::ConnectionId;
use super::clock;
use super::counters::GroupCounters;
use super::effects::Effect;
use super::journal::Journal;
use super::left_out::OwnPlace;
use super::peers::{Peers, QUEUE_BYTES_MAX};
use super::plane::Hosting;
use super::plane_reads::Lent;
use super::replaced::Succession;
use super::searches::Searches;
use super::standstill::LastCommit;
use super::term_keys::TermKeys;
use bytes::{Bytes, BytesMut};
use quorumwire_control::{Input, Now, Peer, Replica, RoleChange, Ticket};
use quorumwire_group::{Gate, PlaneClient, Submitted};
use quorumwire_interfaces::{DataPlane, GroupId, Index, Reason, ReplicaId, Term};
use quorumwire_kv::{Command, REPLY_BYTES_MAX, Store};
use quorumwire_sessions::Sessions;
use quorumwire_wire::limits::{ATTACHMENT_BYTES_MAX, COMMAND_BYTES_MAX};
use quorumwire_wire::peer::{self, peer_message::Body};
use std::collections::BTreeMap;
use std::time::Duration;

/// A request that is not answered by then is answered as *outcome unknown*.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Requests wait this long for a leader to appear before they are refused.
const LEADER_WAIT: Duration = Duration::from_secs(1);
/// Requests a follower may have sent to the leader without an answer yet.
const FORWARDS_MAX: usize = 16 << 10;
/// Forwarded reads that may wait on the leader.
const PEER_READS_MAX: usize = 16 << 10;
/// An answer to a follower larger than this is not sent while more than [`LINK_BULK_MAX`] bytes wait.
/// Of a write that was answered so, a client hears that it was executed.
const BULK_ANSWER_BYTES: usize = 4 << 10;
/// See [`BULK_ANSWER_BYTES`]; half of what a connection between replicas may hold.
const LINK_BULK_MAX: usize = QUEUE_BYTES_MAX / 2;

// A follower's client gets the leader's answer in one message.
const _: () = assert!(REPLY_BYTES_MAX <= ATTACHMENT_BYTES_MAX);

/// What is replicated.
pub type Application = Sessions<Store>;

/// One replicated log, as it stands in this server.
pub type Group = quorumwire_group::Group<Store, Origin, dyn DataPlane>;

/// Where an answer goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// To the slot with this number of a connection here.
    Client(ConnectionId, u64),
    /// To the replica that forwarded it, under its number for it.
    Peer(Peer, u64),
    /// To a client that asked through the data plane: its address, session and sequence.
    Plane(PlaneClient),
    /// To a client that asked over UDP, under our number for it.
    Datagram(u64),
    /// To whoever here waits for this ticket, if anybody does.
    Admin(Ticket),
}

impl From<PlaneClient> for Origin {
    fn from(client: PlaneClient) -> Self {
        Self::Plane(client)
    }
}

/// What became of a request.
pub enum Routed {
    /// Its answer will come.
    Pending,
    /// It can go nowhere now; offer it again later.
    Stalled,
    /// There is no answer for this reason; the text stands for the usual words, if it is not empty.
    Refused(Reason, String),
}

impl Routed {
    /// In the usual words.
    pub const fn refused(reason: Reason) -> Self {
        Self::Refused(reason, String::new())
    }
}

/// What a request is that goes to the leader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ForwardKind {
    Read,
    Write,
    /// A command of a session, which it begins with.
    Session,
}

/// A write of ours that is in the log and not applied yet.
pub type Proposal = quorumwire_group::Proposal<Origin>;

/// A request sent to the leader.
pub struct Forward {
    /// A client's, of this replica.
    pub origin: Origin,
    pub is_read: bool,
    pub to: Peer,
    /// In which it was sent.
    pub term: Term,
    pub at: Now,
}

/// A read that waits: for a read index, or for its entries to be applied.
pub enum Reader {
    Client(ConnectionId),
    Peer(PeerRead),
    Datagram(u64),
}

/// A read that a follower passed on.
pub struct PeerRead {
    pub from: Peer,
    pub request: u64,
    /// In which it was sent.
    pub term: Term,
    pub line: Bytes,
    /// When it came.
    pub at: Now,
}

/// Everything about the group that serving a request needs.
pub struct Core {
    pub group: Group,
    pub journal: Journal,
    pub peers: Peers,
    /// What is to be done, in this order.
    pub effects: Vec<Effect>,
    /// What this server keeps of the group's plane, if it has one.
    pub hosting: Option<Hosting>,
    /// The keys of fast terms, where replicas agree on them; else the plane's all come from the secret file.
    pub term_keys: Option<TermKeys>,
    /// What the plane knows of the store.
    pub lent: Lent,
    pub forwards: BTreeMap<u64, Forward>,
    /// Begins anywhere: what a leader still has to say to an earlier process of this replica names none of its requests.
    pub next_request: u64,
    next_ticket: u64,
    /// Reads that wait for a read index round, and what else they must show.
    pub asked: BTreeMap<Ticket, (Index, Reader)>,
    pub waiting_for_apply: Vec<(Index, Reader)>,
    /// Some of those that wait could be answered, and wait for time.
    pub has_late_reads: bool,
    /// Reads that look through all keys, and take longer than a turn.
    pub searches: Searches,
    pub leaderless_since: Option<Now>,
    /// Since when the leader has been known.
    pub succession: Succession,
    /// The supposed leader has said that it is none: nothing more is sent to it until that changes.
    pub not_leader: Option<Peer>,
    pub refuse_on_follower: bool,
    /// What it was before this start.
    pub place: OwnPlace,
    pub draining: bool,
    /// Whether writes get on.
    pub last_commit: LastCommit,
    pub counters: GroupCounters,
    /// The term of ours in which a change of the memory limit was last put into the log, or was to be.
    pub limit_changed_in: Option<Term>,
}

impl Core {
    pub fn new(replica: Replica, journal: Journal, id: GroupId, now: Now) -> Self {
        Self {
            group: Group::new(id, replica, Box::default(), now, clock::wall()),
            journal,
            peers: Peers::default(),
            effects: Vec::new(),
            hosting: None,
            term_keys: None,
            lent: Lent::default(),
            forwards: BTreeMap::new(),
            next_request: 0,
            next_ticket: 0,
            asked: BTreeMap::new(),
            waiting_for_apply: Vec::new(),
            has_late_reads: false,
            searches: Searches::default(),
            leaderless_since: Some(now),
            succession: Succession::default(),
            not_leader: None,
            refuse_on_follower: false,
            place: OwnPlace::default(),
            draining: false,
            last_commit: LastCommit::begin(now),
            counters: GroupCounters::default(),
            limit_changed_in: None,
        }
    }

    /// What the state machine has had to do so far, in the measure of its `WORK_MAX`.
    pub fn work_done(&self) -> u64 {
        self.group.store.inner().work_done()
    }

    /// Whether something is under way that others answer: replicas, or the disk.
    pub fn awaits_others(&self) -> bool {
        !self.group.proposals.is_empty()
            || !self.forwards.is_empty()
            || !self.asked.is_empty()
            || self.journal.is_behind()
    }

    /// Asks the replica for an index that a linearizable read may be answered at. The round that it may take begins
    /// when it is flushed.
    pub fn read(&mut self, ticket: Ticket) {
        self.counters.read_indexes_asked += 1;
        self.group.step(Input::Read(ticket));
        self.group.wants_flush = true;
    }

    pub fn next_ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    /// A write: into the log if we lead, to the leader otherwise. `command_bytes` is what `encode` adds.
    pub fn write(
        &mut self,
        origin: Origin,
        command_bytes: usize,
        encode: impl FnOnce(&mut BytesMut),
    ) -> Routed {
        debug_assert!(command_bytes <= COMMAND_BYTES_MAX);
        if self.draining {
            return Routed::refused(Reason::Stopping);
        }
        if self.group.leads() || self.group.waits_since_fast_term() {
            let submitted = self.group.write(origin, command_bytes, encode);
            return self.routed(submitted);
        }
        match self.route() {
            Err(routed) => routed,
            Ok(leader) => {
                match origin {
                    Origin::Client(..) | Origin::Datagram(_) | Origin::Admin(_) => {}
                    Origin::Peer(..) | Origin::Plane(..) => {
                        return Routed::refused(Reason::NotLeader);
                    }
                }
                let command = self.group.encoded(command_bytes, encode);
                match self.forward(leader, origin, ForwardKind::Write, command) {
                    Some(_) => Routed::Pending,
                    None => self.stall(),
                }
            }
        }
    }

    /// What became of a write that is carried out here.
    pub fn routed(&mut self, submitted: Submitted) -> Routed {
        match submitted {
            Submitted::Pending => Routed::Pending,
            Submitted::NoRoom => self.stall(),
            Submitted::Refused(reason) => Routed::refused(reason),
        }
    }

    pub fn wait_for_apply(&mut self, index: Index, connection: ConnectionId) {
        self.waiting_for_apply
            .push((index, Reader::Client(connection)));
    }

    /// Starts a read index round for the reads of a connection that have arrived by now.
    pub fn ask_read_index(&mut self, connection: ConnectionId) -> Ticket {
        let must_apply = self.group.read_barrier();
        let ticket = self.next_ticket();
        self.asked
            .insert(ticket, (must_apply, Reader::Client(connection)));
        self.read(ticket);
        ticket
    }

    /// Sends a read to the leader. The error is what became of it otherwise.
    pub fn forward_read(&mut self, origin: Origin, line: &[u8]) -> Result<u64, Routed> {
        if self.group.leads() {
            return Err(self.stall()); // elected meanwhile: offered again, answered here
        }
        let leader = self.route()?;
        let line = Bytes::copy_from_slice(line);
        self.forward(leader, origin, ForwardKind::Read, line)
            .ok_or_else(|| self.stall())
    }

    /// The leader to send to; the error is what to do with the request instead.
    pub fn route(&mut self) -> Result<Peer, Routed> {
        match self.serving_leader() {
            Some(leader) if self.refuse_on_follower => {
                let connected = self.peers.of(leader.id);
                let address = connected.map(|connected| &connected.memcached_address[..]);
                let instead = format!(
                    "replica {} leads, at {}",
                    leader.id,
                    address.unwrap_or("an unknown address")
                );
                Err(Routed::Refused(Reason::NotLeader, instead))
            }
            Some(_) if self.forwards.len() >= FORWARDS_MAX => Err(self.stall()),
            Some(leader) => Ok(leader),
            // Nobody will tell it of a leader.
            None if self.has_left() => Err(Routed::refused(Reason::Removed)),
            // Nor is there anybody who could lead.
            None if self.place.is_data_gone => Err(Routed::refused(Reason::DataGone)),
            None => {
                let since = *self.leaderless_since.get_or_insert(self.group.now);
                if self.group.now.0.saturating_sub(since.0) > LEADER_WAIT {
                    return Err(Routed::refused(Reason::NoLeader));
                }
                Err(self.stall())
            }
        }
    }

    /// Another replica that leads and can be asked.
    fn serving_leader(&self) -> Option<Peer> {
        let leader = self.group.replica.leader().and_then(|id| self.member(id));
        leader.filter(|it| self.peers.is_up(*it) && self.not_leader != Some(*it))
    }

    /// What is answered instead of waiting, to whom nothing can be kept for: why it would have to wait.
    pub fn why_stalled(&self) -> Reason {
        let takes_requests = self.group.leads() && !self.group.replica.is_handing_over();
        if takes_requests || self.serving_leader().is_some() {
            Reason::Busy
        } else if self.place.is_data_gone {
            Reason::DataGone
        } else {
            Reason::NoLeader
        }
    }

    /// The same for a read that was on its way to this replica.
    pub fn why_not_read(&self, by: Peer) -> Reason {
        match self.group.replica.leader() {
            Some(leader) if leader != by.id => Reason::NotLeader,
            Some(_) | None => self.why_stalled(),
        }
    }

    pub fn stall(&mut self) -> Routed {
        self.group.stalled = true;
        Routed::Stalled
    }

    pub fn member(&self, id: ReplicaId) -> Option<Peer> {
        let member = self.group.replica.membership().member(id)?;
        Some(Peer {
            id,
            incarnation: member.incarnation,
        })
    }

    /// Sends a request to the leader, and remembers it. None: there is no room.
    pub fn forward(
        &mut self,
        to: Peer,
        origin: Origin,
        kind: ForwardKind,
        attachment: Bytes,
    ) -> Option<u64> {
        let request = self.next_request;
        let is_read = kind == ForwardKind::Read;
        let body = match kind {
            ForwardKind::Read | ForwardKind::Write => Body::Forward(peer::Forward {
                request,
                read: is_read,
            }),
            ForwardKind::Session => Body::ForwardSession(peer::ForwardSession { request }),
        };
        if !self.send_body(to, body, attachment) {
            return None;
        }
        self.next_request += 1;
        self.leaderless_since = None;
        self.counters.forwarded += 1;
        self.forwards.insert(
            request,
            Forward {
                origin,
                is_read,
                to,
                term: self.group.replica.term(),
                at: self.group.now,
            },
        );
        Some(request)
    }

    /// Sends a message of the node itself. False: it will be dropped.
    fn send_body(&mut self, to: Peer, body: Body, attachment: Bytes) -> bool {
        let message = peer::PeerMessage {
            group: self.group.id.0,
            term: self.group.replica.term().0,
            body: Some(body),
        };
        self.send(to, message, vec![attachment])
    }

    /// Whether a write that a follower passed on in this term may come to stand in the log now. One that was sent to us
    /// before others led may not: what its client sent behind it may have been carried out by one of them.
    pub fn takes_writes_of(&mut self, term: Term) -> bool {
        if !self.group.leads() {
            return false;
        }
        self.group.begin_term();
        (self.group.led_since..=self.group.replica.term()).contains(&term)
    }

    /// A request that a follower forwarded in this term.
    pub fn take_forward(
        &mut self,
        budget: &mut Budget,
        (from, term): (Peer, Term),
        forward: peer::Forward,
        bytes: Bytes,
    ) {
        let peer::Forward {
            request,
            read: is_read,
        } = forward;
        let is_member = self.member(from.id) == Some(from);
        if bytes.len() > COMMAND_BYTES_MAX || !self.group.leads() || !is_member {
            return self.refuse_forward(from, request, Reason::NotLeader);
        }
        if is_read {
            let must_apply = self.group.read_barrier();
            let line = bytes.clone();
            let reader = Reader::Peer(PeerRead {
                from,
                request,
                term,
                line: bytes,
                at: self.group.now,
            });
            if self.asked.len() + self.waiting_for_apply.len() >= PEER_READS_MAX {
                return self.refuse_forward(from, request, Reason::Busy);
            }
            return match self.group.gate(must_apply, true, &line) {
                Gate::Open => self.answer_peer_read_if_time(budget, must_apply, reader),
                Gate::Overdue => self.refuse_overdue(from, request),
                Gate::Wait(index) => self.waiting_for_apply.push((index, reader)),
                Gate::NoLease => {
                    let ticket = self.next_ticket();
                    self.asked.insert(ticket, (must_apply, reader));
                    self.read(ticket);
                }
                Gate::NotLeader => self.refuse_forward(from, request, Reason::NotLeader),
            };
        }
        if !self.takes_writes_of(term) {
            return self.refuse_forward(from, request, Reason::NotLeader);
        }
        if self.group.is_full {
            return self.refuse_forward(from, request, Reason::DiskFull);
        }
        let origin = Origin::Peer(from, request);
        if Command::decode(&bytes).is_ok_and(|command| command.shows_time()) {
            self.group.want_exact_time();
        }
        if Command::is_memory(&bytes) {
            self.limit_is_on_its_way();
        }
        let routed = self.write(origin, bytes.len(), |buffer| {
            buffer.extend_from_slice(&bytes);
        });
        self.reply_unless_pending(from, request, &routed);
    }

    /// Tells a follower what became of a write that it forwarded, unless that is still to come.
    pub fn reply_unless_pending(&mut self, from: Peer, request: u64, routed: &Routed) {
        match routed {
            Routed::Pending => {}
            Routed::Stalled => self.refuse_forward(from, request, Reason::Busy),
            Routed::Refused(reason, _) => self.refuse_forward(from, request, *reason),
        }
    }

    /// Tells a follower why what it passed on has no answer.
    pub fn refuse_forward(&mut self, to: Peer, request: u64, reason: Reason) {
        let outcome = answers::outcome_of(reason);
        let mut text = Vec::new();
        if outcome == peer::ForwardOutcome::Refused {
            answers::put_memcached(&mut text, reason, b""); // replicas of earlier versions know no reasons
        }
        self.reply_forward(to, request, (outcome, Some(reason)), text.into());
    }

    /// A large answer gives way to the protocol's own messages. What it answers has been carried out all the same.
    pub fn must_give_way(&self, to: Peer, answer_bytes: usize) -> bool {
        answer_bytes > BULK_ANSWER_BYTES && self.peers.queued_bytes(to) > LINK_BULK_MAX
    }

    pub fn reply_forward(
        &mut self,
        to: Peer,
        request: u64,
        (outcome, reason): (peer::ForwardOutcome, Option<Reason>),
        answer: Bytes,
    ) {
        let body = Body::ForwardReply(peer::ForwardReply {
            request,
            outcome: outcome.into(),
            reason: reason.map_or(0, |reason| reason.code().into()),
        });
        self.send_body(to, body, answer);
    }

    /// Leadership changed hands, or may have.
    pub fn role_changed(&mut self, change: &RoleChange) {
        if self.group.leads() {
            self.group.begin_term();
        }
        self.not_leader = None;
        self.succession.note(change, self.group.now);
        if change.leader.is_some() {
            self.leaderless_since = None;
        } else {
            self.leaderless_since.get_or_insert(self.group.now);
        }
    }
}

//! The server: one event loop that joins consensus, state machine, disk, replicas and clients. The
//! rare heavy work (snapshots, syncing the log, HTTP) has threads of its own; what they say arrives
//! between two turns.
mod addresses;
mod administration;
mod admission;
mod alike;
mod answers;
mod attention;
mod backups;
mod budget;
mod busy_poll;
mod by_front;
mod choose_plane;
mod clients;
mod clock;
mod connection_id;
mod core;
mod counters;
mod dial;
mod driver;
mod earlier_plane;
mod folder;
mod freeing;
mod fronts;
mod given_up;
mod group_counters;
mod groups;
mod handshakes;
mod hellos;
mod how_far;
mod in_flight;
mod journal;
mod key_agreement;
mod key_counters;
mod kv;
mod last_commit;
mod left_out;
mod links;
mod member_history;
mod member_mark;
mod messages;
mod native;
mod origin;
mod outbox;
mod peer_reads;
mod plane;
mod plane_turn;
mod priority;
mod random;
mod read_line;
mod reads;
mod remembered;
mod reporting;
mod requests;
mod route_outcome;
mod security;
pub mod served;
mod service;
mod shutdown;
mod snapshots;
mod standstill;
mod start;
mod stream;
mod subscribers;
mod take_on;
mod take_outcome;
mod unexpected_tls;
mod values;
mod whole_files;

use self::addresses::AddressBook;
use self::admission::Admission;
use self::attention::Attention;
use self::budget::Budget;
use self::busy_poll::{BusyPoll, WaitKind};
use self::clients::Clients;
use self::core::Core;
use self::counters::LoopCounters;
use self::groups::{Other, Upkeep};
use self::how_far::HowFar;
use self::links::{LINKS_MAX, LinkEvent, Links};
use self::plane::Plane;
use self::service::Service;
use crate::admin::{AdminRequest, AdminTls};
use crate::options::ServerOptions;
use crate::service_manager::ServiceManager;
use crate::tls::Expiry;
use mio::{Events, Poll, Token};
use quorumwire_control::{Input, Now};
use quorumwire_group::{self as group, Driver as _};
use quorumwire_interfaces::{GroupId, Incarnation, Index};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

pub use self::counters::declared_counters;
pub use groups::SECOND_GROUP;
pub use member_mark::{holder_of_restored, mark_as_restored};
pub use random::{random_lineage, random_number};
pub use start::{HTTP_ADDRESS_FILE, run, run_application, run_program, run_values_within};
pub use whole_files::sync_folder;

/// What [`run`] replicates.
pub type Replicated = quorumwire_sessions::Sessions<quorumwire_kv::Store>;

/// What is replicated of a server that keeps values.
pub type ReplicatedValues = quorumwire_sessions::Sessions<quorumwire_deliver::Values>;

/// What is replicated of a served program, where none runs: what it has saved is carried from file to file.
pub type ReplicatedProgram =
    quorumwire_sessions::Sessions<quorumwire_replay::Replay<served::NoProgram>>;

/// The first replicated log of a server: the one that people and their tools are shown. Messages, records and
/// folders name it.
pub const GROUP: GroupId = GroupId(0);

const TOKEN_WAKE: Token = Token(0);
const TOKEN_PEERS: Token = Token(1);
const TOKEN_PLANE: Token = Token(2);
const TOKEN_DATAGRAMS: Token = Token(3);
/// Of those at which clients connect.
const TOKEN_FIRST_LISTENER: usize = 4;
const TOKEN_FIRST_LINK: usize = 16;
const TOKEN_FIRST_CLIENT: usize = TOKEN_FIRST_LINK + LINKS_MAX;

/// Descriptors that this may need beside those of clients' connections: of the links between replicas; the
/// clients' listeners, UDP socket and a connection that is closed at once; the event queue, which has an
/// owner for each kind of connection, and what wakes it; the service manager's socket; and files that are
/// read now and then.
pub const DESCRIPTORS_MAX: usize = links::DESCRIPTORS_MAX + 6 + 4 + 1 + 6;
/// Events taken from the system in one turn.
const EVENTS_PER_TURN: usize = 1024;
/// Timeouts of requests, dials and keepalives are looked at this often.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_millis(20);

/// All of one server process.
struct Server<S: Service> {
    options: ServerOptions,
    addresses: Addresses,
    incarnation: Incarnation,
    /// Something that was wrong with the data folder, for people.
    start_fault: Option<String>,
    poll: Poll,
    /// The group at hand, see `groups.rs`.
    core: Box<Core<S>>,
    /// And what else is kept of it.
    upkeep: Box<Upkeep<S::Application>>,
    /// Those that are not at hand. The first of the list stands where the one at hand belongs.
    others: Vec<Other<S>>,
    /// Which one is, as its place in the list of all.
    at_hand: usize,
    /// Which one comes first in this turn.
    first_in_turn: usize,
    /// What is left of this turn.
    budget: Budget,
    links: Links,
    clients: Clients,
    admission: Admission,
    admin: Receiver<AdminRequest>,
    address_book: AddressBook,
    link_events: Vec<LinkEvent>,
    scratch: Box<[u8]>,
    started: Now,
    next_housekeeping: Now,
    attention: Attention,
    busy_poll: BusyPoll,
    stop: Arc<AtomicBool>,
    /// How people are spoken to, if that is under TLS.
    admin_tls: Option<AdminTls>,
    /// Until when the files of TLS are good.
    expiries: Vec<Expiry>,
    /// When their expiry is to be complained about again, if there is reason to.
    next_expiry_warning: Now,
    /// SIGHUP: files with secrets, accounts and certificates are to be read again.
    reload: Arc<AtomicBool>,
    draining_since: Option<Now>,
    service_manager: ServiceManager,
    how_far: HowFar,
    /// The log says that this replica was removed.
    is_removal_told: bool,
    counters: LoopCounters,
}

/// Where this replica is reached; empty: not so.
#[derive(Default)]
struct Addresses {
    peer: String,
    memcached: String,
    redis: String,
    native: String,
    /// The same as `native` of the groups behind the first.
    further_native: Vec<String>,
    http: String,
}

impl<S: Service> Server<S> {
    /// Turns until the process is told to stop and has drained.
    fn run(&mut self) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        loop {
            let timeout = self.time_to_wait();
            self.attention.waits(timeout);
            self.wait_for_events(&mut events, timeout)?;
            self.turn(&events)?;
            if self.stop.load(Ordering::Relaxed) && self.drain()? {
                return Ok(());
            }
        }
    }

    /// Waits until something happens, at most this long.
    fn wait_for_events(&mut self, events: &mut Events, timeout: Duration) -> io::Result<()> {
        if timeout.is_zero() {
            return self.take_events(events, timeout);
        }
        let awaited = if self.cores().any(Core::awaits_others) {
            WaitKind::Answers
        } else {
            WaitKind::Requests
        };
        let begun = clock::now();
        let mut now = begun;
        events.clear();
        if let Some(until) = self.busy_poll.until(begun, timeout, awaited) {
            self.counters.busy_polls += 1;
            loop {
                self.take_events(events, Duration::ZERO)?;
                let before = std::mem::replace(&mut now, clock::now());
                self.busy_poll.looked(before, now);
                if !events.is_empty() || now >= until {
                    break;
                }
                // Whoever is to say something may need this processor.
                thread::yield_now();
            }
            self.counters.busy_polls_in_vain += u64::from(events.is_empty());
        }
        if events.is_empty() {
            let waited = now.0.saturating_sub(begun.0);
            self.take_events(events, timeout.saturating_sub(waited))?;
            now = clock::now();
        }
        self.busy_poll
            .is_over(begun, now, !events.is_empty(), awaited);
        Ok(())
    }

    /// Whether a plane makes the log grow without this process.
    fn log_grows_by_itself(&self) -> bool {
        let runs_by_itself = |plane: &Plane| plane.look_within.is_some();
        self.cores()
            .any(|core| core.group.plane.as_ref().is_some_and(runs_by_itself))
    }

    fn take_events(&mut self, events: &mut Events, timeout: Duration) -> io::Result<()> {
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            done => done,
        }
    }

    fn turn(&mut self, events: &Events) -> anyhow::Result<()> {
        let begun = clock::now();
        for core in self.cores_mut() {
            debug_assert!(core.group.effects.is_empty(), "each turn leaves none");
            core.group.now = begun;
        }
        self.first_in_turn = (self.first_in_turn + 1) % (self.others.len() + 1);
        self.budget.begin_turn();
        self.links.begin_turn(begun);
        self.clients.begin_turn(begun);
        let (woken, asked) = self.take_events_in(events, begun);
        if woken {
            self.try_each_group(Self::take_completions)?;
            self.take_admin_requests();
        }
        self.each_group(Self::send_effects);
        self.links.read(begun, &mut self.link_events);
        self.show_links();
        // What was read came before this moment: a leader's lease counts from before it was asked for,
        // a voter's loyalty from after it heard.
        for core in self.cores_mut() {
            core.group.now = clock::now();
            core.group.look_at_wall_clock(clock::wall());
        }
        self.note_own_pause();
        self.each_group(group::poll_plane);
        self.take_link_events();
        if self.clients.has_readable() {
            self.let_readable_in()?;
        }
        self.clients.let_overdrawn_in();
        self.each_group(|server| {
            server.ask_read_indexes();
            let group = &mut server.core.group;
            if group.replica.next_wake() <= group.now {
                group.step(Input::Timeout);
            }
        });
        self.serve_clients();
        self.try_each_group(Self::go_on)?;
        if self.core.group.now >= self.next_housekeeping {
            self.housekeeping()?;
        }
        self.each_group(Self::send_effects);
        self.links.write(self.core.group.now, &mut self.link_events);
        self.show_links();
        self.each_group(S::end_turn);
        self.each_group(Self::attend_subscribers);
        self.serve_clients(); // answers made in this turn
        for id in std::mem::take(&mut self.admission.attend_later) {
            self.clients.attend(id);
        }
        self.each_group(Self::send_effects); // before connections are read again
        let ended = clock::now();
        let last_indexes: u64 = self.cores().map(|core| core.group.last_index().0).sum();
        let by_itself = self.log_grows_by_itself();
        self.busy_poll
            .turned(ended, asked, Index(last_indexes), by_itself);
        let took = ended.0.saturating_sub(begun.0);
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.counters.turn.record(took_us);
        Ok(())
    }

    /// Takes note of what the system says: whether another thread has something to tell, and whether clients
    /// ask.
    fn take_events_in(&mut self, events: &Events, begun: Now) -> (bool, bool) {
        let (mut woken, mut asked) = (false, false);
        for event in events {
            match event.token() {
                TOKEN_WAKE => woken = true,
                TOKEN_PEERS => self.links.accept(begun),
                TOKEN_PLANE => {}                // looked at in every turn
                TOKEN_DATAGRAMS => asked = true, // this, too
                Token(number) if number >= TOKEN_FIRST_CLIENT => {
                    asked = true;
                    self.clients.ready(event);
                }
                Token(number) if number >= TOKEN_FIRST_LINK => self.links.ready(event, begun),
                Token(_) => self.clients.accept(begun),
            }
        }
        (woken, asked)
    }

    /// What the group at hand does when clients have been looked at.
    fn go_on(&mut self) -> anyhow::Result<()> {
        S::take_in(self);
        group::end_turn(self)
    }

    /// Has clients' requests taken in; before that, answers what others have just confirmed.
    fn let_readable_in(&mut self) -> anyhow::Result<()> {
        self.try_each_group(|server| {
            if server.core.group.has_unflushed() {
                group::carry_out_all(server)?;
            }
            anyhow::Ok(())
        })?;
        let has_answers = self.clients.queue_len() > 0;
        if has_answers {
            self.serve_clients();
        }
        self.clients.let_readable_in(has_answers);
        Ok(())
    }

    /// Time in which this process could not listen says nothing about others.
    fn note_own_pause(&mut self) {
        if let Some(pause) = self.attention.listens(self.core.group.now, clock::worked()) {
            let counters = &mut self.counters;
            counters.pauses += 1;
            counters.pauses_ms += u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            for core in self.cores_mut() {
                core.group.step(Input::StoodStill(pause));
            }
            self.clients.forgive(pause);
        }
    }

    /// How long nothing is to be done unless something happens.
    fn time_to_wait(&self) -> Duration {
        let is_busy = self.clients.queue_len() > 0
            || self.clients.has_readable()
            || self.clients.has_overdrawn()
            || self.clients.has_arrivals()
            || !self.link_events.is_empty()
            || self.links.has_more()
            || self.cores().any(Core::is_busy);
        if is_busy {
            return Duration::ZERO;
        }
        let now = clock::now();
        let until = |wake: Now| wake.0.saturating_sub(now.0);
        let waits = self.cores().flat_map(|core| {
            let look_within = core.group.plane.as_ref().and_then(|it| it.look_within);
            let until_wake = until(core.group.replica.next_wake());
            [Some(until_wake), look_within].into_iter().flatten()
        });
        waits.fold(until(self.next_housekeeping), Duration::min)
    }

    /// What the other threads have finished for the group at hand.
    fn take_completions(&mut self) -> anyhow::Result<()> {
        let persisted = self.core.journal.take_persisted()?;
        self.core.group.is_full = self.core.journal.is_full();
        if let Some(ticket) = persisted {
            self.core.group.step(Input::Persisted(ticket));
        }
        self.take_snapshot_events()
    }

    /// What people ask for, who are shown the first group.
    fn take_admin_requests(&mut self) {
        while let Ok(request) = self.admin.try_recv() {
            self.take_admin_request(request);
        }
    }

    /// What is to be done every now and then.
    fn housekeeping(&mut self) -> anyhow::Result<()> {
        let now = self.core.group.now;
        self.each_group(Self::send_effects);
        self.clients.accept(now); // those that failed before, such as for want of a descriptor
        self.clients.time_out_handshakes(now);
        self.clients.time_out_unknown(now);
        self.clients.time_out_hellos(now);
        self.links.accept(now);
        self.next_housekeeping = Now(now.0 + HOUSEKEEPING_INTERVAL);
        self.links.housekeeping(now, &mut self.link_events);
        self.show_links();
        self.take_link_events();
        self.look_where_members_are();
        self.note_cluster();
        self.try_each_group(|server| server.core.journal.retry())?;
        self.tell_service_manager();
        self.tell_member_history();
        if self.reload.swap(false, Ordering::Relaxed) {
            self.each_group(Self::reload_keys);
            self.reload_accounts();
            self.reload_tls();
        }
        self.warn_of_expiry();
        self.let_expensive_in();
        self.each_group(Self::keep_group);
        self.try_each_group(S::check)?;
        self.time_out_waits();
        Ok(())
    }

    /// The same of the group at hand.
    fn keep_group(&mut self) {
        let now = self.core.group.now;
        self.note_lineage();
        self.tell_divergence();
        self.core.watch_commits_and_clock();
        group::keep_house(self);
        S::housekeeping(self);
        self.end_stale_subscriptions();
        self.give_states();
        if std::mem::take(&mut self.core.group.stalled) {
            self.clients.attend_all();
        }
        let is_retry_due = self.upkeep.snapshot_retry_at.is_some_and(|at| at <= now);
        let is_due = self.core.group.bytes_since_snapshot > self.options.snapshot_log_bytes;
        if (is_retry_due || is_due) && self.core.group.store.may_freeze() {
            self.take_snapshot();
        }
    }
}

#[cfg(test)]
#[path = "turn_test.rs"]
mod tests;

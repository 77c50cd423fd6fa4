//! A leader that lacks a snapshot for somebody asks for one until it has one, whatever became of the one
//! it asked for before. Transfers themselves are in the scenarios.
use crate::turn::{disk_and_plane, turn};
use crate::world::{ELECTION_TIMEOUT, GROUP, HEARTBEAT, LINEAGE, config};
use bytes::{Bytes, BytesMut};
use quorumwire_control::{
    Body, HardState, IncomingSnapshot, Input, MemberChange, Message, Now, Output, Peer,
    PersistedState, Promise, Replica, Role, SnapshotMeta, SnapshotProgress, Ticket,
};
use quorumwire_interfaces::{Incarnation, Index, Lineage, LogTime, Registers, ReplicaId, Term};
use quorumwire_wire::{
    CommitQuorum, Member, MemberRole, Membership, RecordKind, SnapshotHead, SnapshotWriter,
    begin_record, finish_record,
};

/// What its log begins behind.
const BASE: (Index, Term) = (Index(5), Term(1));

fn peer(id: u16) -> Peer {
    Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
    }
}

fn meta() -> SnapshotMeta {
    let members = (0..3).map(|id| Member {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
        peer_address: String::new(),
        role: MemberRole::Voter,
    });
    SnapshotMeta {
        last_index: BASE.0,
        last_term: BASE.1,
        membership: Membership {
            quorum: CommitQuorum::Majority,
            lineage: LINEAGE,
            members: members.collect(),
        },
        membership_index: Index(1),
        log_time: LogTime(0),
    }
}

fn stored() -> PersistedState {
    PersistedState {
        hard_state: HardState {
            term: BASE.1,
            vote: None,
            commit_index: BASE.0,
        },
        snapshot: Some(meta()),
        entries: Vec::new(),
        new_life: false,
    }
}

/// Replica 0 of three, whose disk answers at once except about snapshots, and whose plane engages whenever it
/// is asked to.
struct Host {
    replica: Replica,
    now: Now,
}

impl Host {
    /// Its log holds nothing but what its snapshot stands for.
    fn new() -> Self {
        let now = Now(ELECTION_TIMEOUT);
        let replica = Replica::new(config(0, 1, &[]), now, stored()).expect("sound");
        Self { replica, now }
    }

    fn turn(&mut self, input: Input) -> Vec<Output> {
        turn(&mut self.replica, self.now, input, disk_and_plane)
    }

    fn hear(&mut self, from: u16, term: Term, body: Body) -> Vec<Output> {
        let message = Message { term, body };
        self.turn(Input::Message {
            from: peer(from),
            message,
        })
    }

    /// Leads, and has begun to send replica 2 a snapshot; then writes until it has another one.
    fn outrun_a_transfer(log_kept_bytes_max: usize) -> Self {
        let mut host = Self::new();
        let mut config = config(0, 1, &[]);
        config.log_kept_bytes_max = log_kept_bytes_max;
        host.replica = Replica::new(config, host.now, stored()).expect("sound");
        host.lead();
        host.meet_one_without_anything();
        host.write_ten();
        host.have_snapshot();
        host
    }

    /// Leads with replica 1, while replica 2 joins and holds the first entry of this term only. Perhaps the
    /// log is forgotten then.
    fn lead_while_one_joins(log_forgotten: bool) -> Self {
        let mut host = Self::new();
        let mut stored = stored();
        if let Some(meta) = &mut stored.snapshot {
            meta.membership.members[2].role = MemberRole::Joining;
        }
        host.replica = Replica::new(config(0, 1, &[]), host.now, stored).expect("sound");
        host.lead();
        host.write_ten();
        if log_forgotten {
            host.have_snapshot();
        }
        host.hold(2, BASE.0.next());
        host.now.0 += HEARTBEAT;
        host.turn(Input::Timeout);
        host
    }

    /// Ten commands, which replica 1 holds, too.
    fn write_ten(&mut self) {
        for _ in 0..10 {
            let write = |payload: &mut BytesMut| payload.extend_from_slice(&[0; 100]);
            self.replica
                .propose(RecordKind::Command, write)
                .expect("leads");
        }
        self.turn(Input::Timeout);
        let index = self.replica.status().last_index;
        self.hold(1, index);
        assert_eq!(self.replica.status().commit_index, index);
    }

    /// It has a snapshot of all that it holds.
    fn have_snapshot(&mut self) {
        let mut newer = meta();
        newer.last_index = self.replica.status().last_index;
        newer.last_term = self.replica.term();
        self.turn(Input::SnapshotTaken(newer));
    }

    /// Whether this is begun.
    fn changes_members(&mut self, change: MemberChange) -> bool {
        let outputs = self.turn(Input::ChangeMembers(Ticket(1), change));
        let refused = |o: &Output| matches!(o, Output::Refused(Ticket(1), _));
        !outputs.iter().any(refused)
    }

    /// What replica 2 is.
    fn role_of_2(&self) -> Option<MemberRole> {
        let member = self.replica.membership().member(ReplicaId(2));
        member.map(|member| member.role)
    }

    /// Leads a fast term with replica 1, behind the first entry of its software term.
    fn lead_fast() -> Self {
        let mut host = Self::new();
        let config = quorumwire_control::Config {
            plane: true,
            log_kept_bytes_max: 1 << 20,
            ..config(0, 1, &[])
        };
        host.replica = Replica::new(config, host.now, stored()).expect("sound");
        for id in [1, 2] {
            host.turn(Input::PeerUp(peer(id), Promise::default()));
            host.turn(Input::PlanePeer {
                id: ReplicaId(id),
                has_plane: true,
            });
        }
        host.lead();
        host.hold(1, BASE.0.next());
        while host.replica.role() == Role::Leader {
            host.now.0 += HEARTBEAT;
            host.turn(Input::Timeout);
            host.hold(1, BASE.0.next());
        }
        let vote = Body::VoteReply {
            granted: true,
            pre_vote: false,
            engaged: true,
        };
        host.hear(1, host.replica.term(), vote);
        let fast = host.replica.fast_term().expect("its plane leads");
        assert_eq!(fast.start_index, BASE.0.next());
        host
    }

    /// This replica says that it holds everything up to here.
    fn hold(&mut self, id: u16, index: Index) -> Vec<Output> {
        let reply = Body::AppendReply {
            round: 1,
            rejected: false,
            index,
            hint_index: index,
            hint_term: Term(0),
        };
        self.hear(id, self.replica.term(), reply)
    }

    /// The plane has stored this many entries, and replica 1's, too.
    fn commit_in_plane(&mut self, count: u64) {
        let term = self.replica.term();
        let mut records = BytesMut::new();
        for _ in 0..count {
            let index = Index(self.replica.last_index().0 + 1);
            let start = begin_record(&mut records, RecordKind::Command, GROUP, term, index);
            records.extend_from_slice(&[0; 100]);
            finish_record(&mut records, start);
            self.turn(Input::PlaneEntries(records.split().freeze()));
        }
        let last_index = self.replica.last_index();
        let mut registers = Registers {
            term,
            last_index,
            last_term: term,
            commit_index: last_index,
            persisted_index: last_index,
            ..Registers::default()
        };
        registers.match_index[1] = last_index;
        self.turn(Input::PlaneProgress { registers });
        assert_eq!(self.replica.commit_index(), last_index);
    }

    /// Replica 2 has installed the first snapshot, or holds this much of it.
    fn hear_of_progress(&mut self, installed: bool, offset: u64) -> Vec<Output> {
        let reply = Body::SnapshotReply {
            last_index: BASE.0,
            offset,
            installed,
            rejected: false,
            round: 1,
        };
        self.hear(2, self.replica.term(), reply)
    }

    fn hear_that_it_is_installed(&mut self) -> Vec<Output> {
        self.hear_of_progress(true, 0)
    }

    fn hear_that_it_holds(&mut self, offset: u64) -> Vec<Output> {
        self.hear_of_progress(false, offset)
    }

    /// A piece of its snapshot was read. What is sent, and to whom.
    fn read(&mut self, offset: u64, piece: &'static [u8], total_bytes: u64) -> Vec<(u16, Bytes)> {
        let outputs = self.turn(Input::SnapshotRead {
            to: ReplicaId(2),
            last_index: BASE.0,
            offset,
            chunk: Some((Bytes::from_static(piece), total_bytes)),
        });
        let sent = outputs.into_iter().filter_map(|output| {
            let Output::Send { to, message } = output else {
                return None;
            };
            let Body::SnapshotChunk { bytes, .. } = message.body else {
                return None;
            };
            Some((to.id.0, bytes))
        });
        sent.collect()
    }

    /// Nobody was heard for long, and replica 1 votes for it.
    fn lead(&mut self) {
        self.now.0 += 3 * ELECTION_TIMEOUT;
        self.turn(Input::Timeout);
        for pre_vote in [true, false] {
            let asked = Term(self.replica.term().0 + u64::from(pre_vote));
            let reply = Body::VoteReply {
                granted: true,
                pre_vote,
                engaged: false,
            };
            self.hear(1, asked, reply);
        }
        assert_eq!(self.replica.role(), Role::Leader);
    }

    /// Replica 2 says that it has nothing: it needs a snapshot.
    fn meet_one_without_anything(&mut self) -> Vec<Output> {
        let reply = Body::AppendReply {
            round: 1,
            rejected: true,
            index: BASE.0,
            hint_index: Index(0),
            hint_term: Term(0),
        };
        let term = self.replica.term();
        self.hear(2, term, reply)
    }

    /// The snapshot turns out to be unreadable; it asks for another.
    fn find_snapshot_damaged(&mut self) {
        let outputs = self.meet_one_without_anything();
        assert_eq!(reads(&outputs), Some(0), "{outputs:?}");
        let outputs = self.turn(Input::SnapshotRead {
            to: ReplicaId(2),
            last_index: BASE.0,
            offset: 0,
            chunk: None,
        });
        assert!(asks(&outputs), "{outputs:?}");
    }

    /// Replica 1 leads now, and sends the first piece of this snapshot.
    fn hear_of(&mut self, head: &SnapshotHead) -> Vec<Output> {
        let bytes = SnapshotWriter::new(Vec::new(), head)
            .expect("memory")
            .finish();
        let bytes = Bytes::from(bytes.expect("memory"));
        let chunk = Body::SnapshotChunk {
            last_index: head.last_index,
            last_term: head.last_term,
            offset: 0,
            total_bytes: bytes.len() as u64,
            round: 1,
            bytes,
        };
        self.hear(1, Term(self.replica.term().0 + 1), chunk)
    }

    /// Replica 1 leads now, and has sent a snapshot up to `last_index` that is being installed.
    fn begin_to_install(&mut self, last_index: Index) {
        let term = Term(self.replica.term().0 + 1);
        let bytes = Bytes::from_static(b"all there is");
        let next_offset = bytes.len() as u64;
        let chunk = Body::SnapshotChunk {
            last_index,
            last_term: term,
            offset: 0,
            total_bytes: next_offset,
            round: 1,
            bytes,
        };
        self.hear(1, term, chunk);
        let outputs = self.turn(Input::SnapshotChunkStored {
            last_index,
            next_offset,
            stored: true,
        });
        let installs = |o: &Output| matches!(o, Output::InstallSnapshot { .. });
        assert!(outputs.iter().any(installs), "{outputs:?}");
    }
}

/// From where on it reads a snapshot, if it does.
fn reads(outputs: &[Output]) -> Option<u64> {
    outputs.iter().find_map(|output| {
        let Output::ReadSnapshot { offset, .. } = output else {
            return None;
        };
        Some(*offset)
    })
}

/// How far replica 2 is with a snapshot.
fn far(host: &Host) -> Option<SnapshotProgress> {
    let status = host.replica.status();
    let follower = status.followers.iter().find(|it| it.id == ReplicaId(2));
    follower.and_then(|it| it.snapshot)
}

fn asks(outputs: &[Output]) -> bool {
    outputs.iter().any(|o| matches!(o, Output::TakeSnapshot))
}

#[test]
fn one_is_asked_for_again_after_the_last_came_at_a_bad_moment() {
    let mut host = Host::new();
    host.lead();
    host.find_snapshot_damaged();
    let last_index = Index(20);
    host.begin_to_install(last_index);
    // It was asked for while leading, and is not needed while another is about to replace the log.
    let ignored_before = host.replica.status().counters.ignored_unexpected;
    host.turn(Input::SnapshotTaken(meta()));
    let ignored = host.replica.status().counters.ignored_unexpected;
    assert_eq!(ignored, ignored_before + 1);
    let meta = None;
    host.turn(Input::SnapshotInstalled { last_index, meta });
    host.lead();
    host.find_snapshot_damaged();
}

/// Who serves a program has no other snapshot before a majority lets it take one.
#[test]
fn one_that_cannot_be_read_is_read_again_after_a_while() {
    let mut host = Host::new();
    host.lead();
    host.find_snapshot_damaged();
    assert_eq!(
        host.replica.snapshot_index(),
        BASE.0,
        "it still stands for the log before it"
    );
    let failed_at = host.now;
    while reads(&host.turn(Input::Timeout)).is_none() {
        host.now.0 += HEARTBEAT;
        host.hold(1, host.replica.last_index());
        assert!(host.now.0 <= failed_at.0 + 2 * ELECTION_TIMEOUT, "never");
    }
    assert!(
        host.now.0 >= failed_at.0 + ELECTION_TIMEOUT,
        "not all the time"
    );
    assert_eq!(host.read(0, b"half", 8), [(2, "half".into())]);
}

/// This leader has sent it more, and began again because a piece could not be read.
#[test]
fn who_holds_more_of_it_is_sent_the_rest() {
    let mut host = Host::new();
    host.lead();
    host.meet_one_without_anything();
    assert_eq!(host.read(0, b"half", 12).len(), 1);
    assert_eq!(
        reads(&host.hear_that_it_holds(13)),
        None,
        "more than there is"
    );
    assert_eq!(far(&host).map(|it| it.stored_bytes), Some(0));
    assert_eq!(reads(&host.hear_that_it_holds(8)), Some(8));
    assert_eq!(host.read(8, b"end.", 12).len(), 1);
}

#[test]
fn one_is_asked_for_once_while_it_is_being_taken() {
    let mut host = Host::new();
    host.lead();
    host.find_snapshot_damaged();
    let outputs = host.meet_one_without_anything();
    assert!(!asks(&outputs), "{outputs:?}");
}

#[test]
fn how_far_one_is_shows_at_both_ends() {
    let mut host = Host::new();
    host.lead();
    assert_eq!(far(&host), None);
    host.meet_one_without_anything();
    let progress = |stored_bytes, total_bytes| SnapshotProgress {
        stored_bytes,
        total_bytes,
    };
    assert_eq!(far(&host), Some(progress(0, 0)), "nothing is read yet");
    host.turn(Input::SnapshotRead {
        to: ReplicaId(2),
        last_index: BASE.0,
        offset: 0,
        chunk: Some((Bytes::from_static(b"half"), 8)),
    });
    assert_eq!(far(&host), Some(progress(0, 8)), "it has not answered");
    let reply = Body::SnapshotReply {
        last_index: BASE.0,
        offset: 4,
        installed: false,
        rejected: false,
        round: 1,
    };
    host.hear(2, host.replica.term(), reply);
    assert_eq!(far(&host), Some(progress(4, 8)));

    // At the other end, of another leader.
    assert_eq!(host.replica.incoming(), None);
    let (last_index, term) = (Index(20), Term(host.replica.term().0 + 1));
    let chunk = |offset, bytes| Body::SnapshotChunk {
        last_index,
        last_term: term,
        offset,
        total_bytes: 8,
        round: 1,
        bytes: Bytes::from_static(bytes),
    };
    let stored = |next_offset| Input::SnapshotChunkStored {
        last_index,
        next_offset,
        stored: true,
    };
    host.hear(1, term, chunk(0, b"half"));
    host.turn(stored(4));
    assert_eq!(far(&host), None, "it leads no more");
    let receiving = Some(IncomingSnapshot::Receiving(progress(4, 8)));
    assert_eq!(host.replica.incoming(), receiving);
    host.hear(1, term, chunk(4, b"half"));
    host.turn(stored(8));
    let installing = Some(IncomingSnapshot::Installing);
    assert_eq!(host.replica.incoming(), installing);
    let meta = None;
    host.turn(Input::SnapshotInstalled { last_index, meta });
    assert_eq!(host.replica.incoming(), None);
}

/// Whether it is sent the entry behind the snapshot it has, rather than another snapshot.
fn is_sent_entries(outputs: &[Output]) -> bool {
    let again = |o: &Output| matches!(o, Output::ReadSnapshot { .. });
    let entries = |o: &Output| {
        let Output::Send { to, message } = o else {
            return false;
        };
        let behind_it = |body: &Body| matches!(body, Body::Append { previous_index, .. } if *previous_index == BASE.0);
        *to == peer(2) && behind_it(&message.body)
    };
    assert!(
        outputs.iter().any(again) != outputs.iter().any(entries),
        "{outputs:?}"
    );
    outputs.iter().any(entries)
}

#[test]
fn one_that_installs_a_snapshot_while_a_newer_is_taken_goes_on_with_the_log() {
    let mut host = Host::outrun_a_transfer(1 << 20);
    let outputs = host.hear_that_it_is_installed();
    assert!(is_sent_entries(&outputs));
    let status = host.replica.status();
    assert_eq!(status.first_index, BASE.0.next(), "it lacks all of it");
    host.hold(2, status.last_index);
    let first_index = host.replica.status().first_index;
    assert!(first_index > BASE.0.next(), "nobody lacks it any more");
}

/// As a voter it may be needed for the majority, and the majority for another snapshot.
#[test]
fn who_lacks_what_is_forgotten_does_not_become_a_voter() {
    let host = Host::lead_while_one_joins(false);
    assert_eq!(host.role_of_2(), Some(MemberRole::Voter));
    let mut host = Host::lead_while_one_joins(true);
    assert_eq!(host.role_of_2(), Some(MemberRole::Joining));
    assert!(!host.changes_members(MemberChange::Promote(ReplicaId(2))));
}

/// The two that remain would be the majority, and one of them needs a snapshot.
#[test]
fn nobody_is_removed_while_the_majority_that_remains_needs_a_snapshot() {
    let mut host = Host::new();
    host.lead();
    host.write_ten();
    host.meet_one_without_anything();
    assert!(!host.changes_members(MemberChange::Remove(ReplicaId(1))));
    host.hold(2, BASE.0.next());
    assert!(host.changes_members(MemberChange::Remove(ReplicaId(1))));
}

#[test]
fn what_it_lacks_is_forgotten_if_it_is_too_much() {
    let mut host = Host::outrun_a_transfer(500);
    assert!(host.replica.status().first_index > BASE.0.next());
    let outputs = host.hear_that_it_is_installed();
    assert!(!is_sent_entries(&outputs));
    assert_eq!(host.replica.status().counters.snapshots_outrun, 1);
}

#[test]
fn what_it_lacks_is_forgotten_if_it_is_not_heard_any_more() {
    let mut host = Host::outrun_a_transfer(1 << 20);
    assert_eq!(host.replica.status().first_index, BASE.0.next());
    host.now.0 += ELECTION_TIMEOUT;
    host.turn(Input::Timeout);
    assert!(host.replica.status().first_index > BASE.0.next());
}

/// The plane's ring has it, or the member is taken over and needs a snapshot.
#[test]
fn what_one_lacks_that_takes_part_in_a_fast_term_is_forgotten() {
    let mut host = Host::lead_fast();
    host.meet_one_without_anything();
    host.commit_in_plane(8);
    let mut newer = meta();
    (newer.last_index, newer.last_term) = (host.replica.last_index(), host.replica.term());
    host.turn(Input::SnapshotTaken(newer));
    assert!(is_sent_entries(&host.hear_that_it_is_installed()));
    // It has some of them durably, and few enough are left for its plane.
    let has = Index(BASE.0.0 + 4);
    host.hold(2, has);
    let first_index = |host: &Host| host.replica.status().first_index;
    assert_eq!(first_index(&host), has.next(), "software sends it the rest");
    host.now.0 += HEARTBEAT;
    let outputs = host.turn(Input::Timeout);
    let offers = |output: &Output| {
        let Output::Send { to, message } = output else {
            return false;
        };
        *to == peer(2) && matches!(message.body, Body::EngageOffer { .. })
    };
    assert!(outputs.iter().any(offers), "{outputs:?}");
    let joined = Body::Engaged {
        engaged: true,
        index: has,
    };
    host.hear(2, host.replica.term(), joined);
    let newest = host.replica.last_index();
    assert_eq!(first_index(&host), newest.next(), "its plane does");
}

#[test]
fn what_it_lacks_is_forgotten_if_another_snapshot_is_shorter() {
    let log_bytes = Host::outrun_a_transfer(1 << 20).replica.status().log_bytes as u64;
    for (snapshot_bytes, kept) in [(log_bytes / 4 + 1, true), (log_bytes / 4 - 1, false)] {
        let mut host = Host::outrun_a_transfer(1 << 20);
        host.turn(Input::SnapshotRead {
            to: ReplicaId(2),
            last_index: BASE.0,
            offset: 0,
            chunk: Some((Bytes::from_static(b"half"), snapshot_bytes)),
        });
        assert_eq!(host.replica.status().first_index == BASE.0.next(), kept);
    }
}

/// Its folder would be found to be of two clusters at the next start only.
#[test]
fn a_snapshot_of_another_lineage_is_refused_with_its_first_piece() {
    let mut host = Host::new();
    let theirs = Lineage(0xbad);
    let of = |lineage| SnapshotHead {
        group: GROUP,
        last_index: Index(9),
        last_term: BASE.1,
        log_time: LogTime(0),
        membership: Membership {
            lineage,
            ..meta().membership
        },
        membership_index: Index(1),
    };
    let outputs = host.hear_of(&of(theirs));
    let said = |output: &Output| matches!(output, Output::OtherLineage { from, lineage } if *from == peer(1) && *lineage == theirs);
    let is_stored = |output: &Output| matches!(output, Output::StoreSnapshotChunk { .. });
    assert!(outputs.iter().any(said), "{outputs:?}");
    assert!(!outputs.iter().any(is_stored), "{outputs:?}");
    assert_eq!(host.replica.status().counters.ignored_other_lineage, 1);
    assert_eq!(host.replica.leader(), None, "nobody leads by it");
    // Code from before lineages names none.
    for lineage in [Lineage::default(), LINEAGE] {
        let outputs = host.hear_of(&of(lineage));
        assert!(outputs.iter().any(is_stored), "{outputs:?}");
        host = Host::new();
    }
}

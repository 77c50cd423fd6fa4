// Generated from fastpath/checks.toml by `make generate`; do not edit.
use quorumwire_wire::packet::PacketReason;

/// A check of the C that a test build can leave out, by its number there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Mutant {
    /// The format is known. Without it: fields are read that mean something else.
    Version = 3,
    /// Nothing stands behind a packet. Without it: bytes that no tag covers are taken.
    ExactLength = 6,
    /// All flags are known. Without it: a meaning unknown here is ignored.
    FlagsKnown = 7,
    /// The kind decides which key counts. Without it: a client signs as a replica.
    KeyOfKind = 8,
    /// A key that is not there signs nothing. Without it: anybody signs as a replica, with zeros.
    KeyValid = 9,
    /// The tag is right. Without it: anybody writes into the log.
    Tag = 10,
    /// Switched on: the role is one that moves something. Without it: the plane is on, and neither
    /// leads nor follows.
    SoundRole = 11,
    /// Switched on: the group has 1 to 7 replicas. Without it: the plane counts for replicas that
    /// no register is for.
    SoundReplicas = 12,
    /// Switched on: this replica and the leader have a slot of the group. Without it: the plane
    /// speaks and counts for a slot of nobody.
    SoundSlots = 13,
    /// Switched on: who has the leader's slot leads, and nobody else. Without it: a follower's
    /// plane assigns indexes.
    SoundLeader = 14,
    /// Switched on: any two quorums meet. Without it: two leaders commit different entries at one
    /// index.
    SoundQuorum = 15,
    /// Switched on: the ring has a size that the step counts with. Without it: an index has no
    /// slot, or another's.
    SoundRing = 16,
    /// Switched on: the window is not empty and within the ring. Without it: nothing is ever taken,
    /// or more than the ring holds.
    SoundWindow = 17,
    /// Switched on: `held` is yes or no. Without it: a host and its plane differ about who says
    /// what is durable.
    SoundHeld = 18,
    /// Switched on: there is a term, and no entry is of a later one. Without it: the plane moves
    /// the log in a term that its last entry says is over.
    SoundTerms = 19,
    /// Switched on: there is an index after the last. Without it: the index after the last is 0.
    SoundLast = 20,
    /// Switched on: what is committed is there. Without it: the first packets commit what was never
    /// stored.
    SoundCommit = 21,
    /// Switched on: what software moved is there. Without it: the plane takes entries for
    /// software's that nobody has stored.
    SoundStart = 22,
    /// Switched on: what the host has taken is there. Without it: the first packets free what was
    /// never stored.
    SoundReleased = 23,
    /// Switched on: what is persisted is there. Without it: the first packets promise what was
    /// never stored.
    SoundPersisted = 24,
    /// Leader: only slots of the grant are counted. Without it: registers of no replica make a
    /// quorum.
    CountMembers = 25,
    /// Leader: a quorum holds what is committed. Without it: one replica commits alone.
    Quorum = 26,
    /// Leader: only entries of its own term are committed by counting. Without it: an entry that a
    /// later leader may replace is called committed.
    OwnTerm = 27,
    /// Follower: what is not here is not committed here. Without it: the host applies entries that
    /// are not there.
    CommitWithinLast = 28,
    /// Follower: what is committed stays so. Without it: what was committed is not, for the host.
    CommitMonotone = 29,
    /// Leader: there is an index after every index. Without it: the index after the last is 0.
    LastIndexEver = 30,
    /// Leader: an entry that the host has not taken is not overwritten. Without it: the host loses
    /// an entry it had not taken.
    RequestRing = 32,
    /// Leader: a bounded number of entries waits for a commit. Without it: entries without a quorum
    /// pile up until the ring is full.
    RequestWindow = 33,
    /// Leader: with `held`, storing alone does not count. Without it: the leader counts itself
    /// before its disk has the entry.
    HeldLeader = 34,
    /// A client does not move the log's time, and bundles no commands. Without it: a client moves
    /// the log's time for everybody.
    ClientFlags = 35,
    /// A client's pieces belong to its session. Without it: a client's piece ends up in the middle
    /// of another's command.
    ClientPieces = 36,
    /// A request comes from a client. Without it: a replica's own words become a command.
    ClientSender = 37,
    /// Follower: a request fits a packet with who asked in front. Without it: a packet is sent on
    /// that is longer than any may be.
    RequestBytes = 38,
    /// Leader: a FORWARD holds who asked. Without it: a command has fewer bytes than none.
    ForwardBytes = 39,
    /// Follower: what software moved is not acknowledged by the plane. Without it: the plane
    /// vouches for what software has not verified.
    BeforeStart = 40,
    /// Follower: an entry has no index after the last there may be. Without it: an entry is asked
    /// for that no leader has.
    AppendIndex = 41,
    /// Follower: an entry that is there already is not stored again. Without it: the log becomes
    /// shorter, an acknowledged entry is gone.
    Repeated = 42,
    /// Follower: no entry is left out. Without it: a hole in the log is acknowledged.
    NextIndex = 43,
    /// Follower: the entry before is of the term that the leader means. Without it: two logs differ
    /// below an entry they share.
    History = 44,
    /// Follower: an entry that the host has not taken is not overwritten. Without it: the host
    /// loses an entry that was acknowledged.
    AppendRing = 45,
    /// Follower: with `held`, storing alone acknowledges nothing. Without it: an entry in memory
    /// only is acknowledged as durable.
    HeldFollower = 46,
    /// Follower: an acknowledgement says only what is persisted. Without it: an entry in memory
    /// only is acknowledged as durable, for a repeated packet.
    HeldReply = 47,
    /// Follower: a heartbeat names no index after the last there may be. Without it: a heartbeat
    /// that no leader makes is heard and answered.
    HeartbeatIndex = 48,
    /// Follower: an old heartbeat takes no round back. Without it: a late heartbeat makes the
    /// follower answer for an earlier round.
    RoundMonotone = 49,
    /// Leader: nobody holds what was never assigned. Without it: an entry that comes later is
    /// committed before anybody has it.
    BeyondLast = 50,
    /// Leader: nobody has heard a round that was never sent. Without it: a lease that nobody gave:
    /// a stale read.
    RoundSent = 51,
    /// Leader: what software moved is not sent again by the plane. Without it: slots that were
    /// never filled are sent.
    ResendStart = 52,
    /// Leader: what the ring holds no more is not sent again. Without it: another entry is sent in
    /// the place of the one asked for.
    BehindRing = 53,
    /// Leader: who misses much is repaired by software, unless all have to hold each entry. Without
    /// it: one replica that misses much takes the fast path's time from all.
    Repair = 54,
    /// Leader: an old answer to a round takes nothing back. Without it: a late packet takes a lease
    /// back.
    HeardMonotone = 55,
    /// Leader: who asks for an entry does not hold it. Without it: an entry is committed because a
    /// replica misses it.
    Question = 56,
    /// Leader: what software moved is not acknowledged to the plane. Without it: the registers show
    /// as acknowledged to the plane what only software moved.
    AnswerStart = 57,
    /// Leader: an old acknowledgement takes nothing back. Without it: a late packet takes an
    /// acknowledgement back; the next commit waits for ever.
    MatchMonotone = 58,
    /// Follower: a request is sent on once. Without it: software gets a request that another
    /// replica has sent on already.
    ForwardOnce = 59,
    /// Follower: only the leader says what to store. Without it: a follower that believes it leads
    /// writes into the log.
    LeaderSender = 60,
    /// A plane that is off moves nothing. Without it: an acknowledgement leaves after the fence,
    /// that the vote did not account for.
    Off = 61,
    /// The step looks at the version once more, whoever has called it. Without it: fields are read
    /// that mean something else.
    StepVersion = 62,
    /// A packet of another log moves nothing. Without it: another log's entries are stored.
    Group = 63,
    /// The step looks at the size once more, whoever has called it. Without it: an entry is longer
    /// than its place in the ring.
    StepBytes = 64,
    /// A packet of an earlier term moves nothing. Without it: a deposed leader writes into the log;
    /// an old acknowledgement counts.
    TermOld = 65,
    /// A packet of a later term moves nothing. Without it: entries of a term that this replica has
    /// not voted in are acknowledged.
    TermNew = 66,
    /// Only members of the grant say anything. Without it: a forward or a promise from outside of
    /// the group counts.
    Member = 67,
    /// A replica's own words do not count as another's. Without it: a reflected packet makes one
    /// replica two.
    NotMyself = 69,
    /// Only a leader's host gives commands. Without it: a follower, or a plane that is off, writes
    /// its own entries into the log.
    SubmitRole = 70,
    /// What a host submits fits a packet. Without it: an entry is longer than its place in the
    /// ring.
    SubmitBytes = 71,
    /// A plane that is off promises nothing. Without it: an acknowledgement leaves after the fence.
    PersistedRole = 72,
    /// Only with `held` the host says what is persisted. Without it: a host that takes its plane
    /// for another kind is not told.
    PersistedHeld = 73,
    /// What was never stored is not persisted. Without it: an entry is acknowledged before it
    /// exists.
    PersistedWithinLast = 75,
    /// What is acknowledged is not taken back. Without it: a promise is taken back.
    PersistedMonotone = 76,
    /// Only a leader begins rounds. Without it: a follower, or a plane that is off, speaks as the
    /// leader.
    HeartbeatRole = 77,
    /// Leader: no round is sent twice. Without it: an answer to the first sending of a round
    /// extends a lease by the second.
    AscendingRounds = 79,
    /// What was never stored is not released. Without it: the ring counts slots as free that are
    /// not.
    ReleasedWithinLast = 80,
    /// What is released stays so. Without it: the ring counts free slots as taken, and stands
    /// still.
    ReleasedMonotone = 81,
    /// Switched on: the role is one that moves something. Without it: the box is on, and neither
    /// coordinates nor votes.
    PaxosSoundRole = 82,
    /// Switched on: there is a configuration. Without it: packets of before there were
    /// configurations count.
    PaxosSoundConfiguration = 83,
    /// Switched on: the window has a size that the step counts with. Without it: an instance has no
    /// slot, or another's.
    PaxosSoundWindow = 84,
    /// Switched on: `held` is yes or no. Without it: a host and its box differ about who says what
    /// is durable.
    PaxosSoundHeld = 85,
    /// Switched on: there is an instance after those that are forgotten. Without it: the instance
    /// after the last is 0.
    PaxosSoundTrimmed = 86,
    /// Coordinator: there is a round. Without it: acceptors refuse every value.
    PaxosSoundRound = 87,
    /// Coordinator: the round is its own. Without it: two coordinators propose in one round.
    PaxosSoundOwner = 88,
    /// Coordinator: the next instance is not forgotten. Without it: values get instances that are
    /// forgotten.
    PaxosSoundNext = 89,
    /// A value comes from a client. Without it: a role's own words become a value.
    PaxosSubmitSender = 90,
    /// A value has a session. Without it: a value is decided as a no-op and delivered to nobody.
    PaxosSubmitSession = 91,
    /// A value says nothing that values do not say. Without it: a value says what only entries of
    /// replicas say.
    PaxosSubmitFlags = 92,
    /// Coordinator: there is an instance after every instance. Without it: the instance after the
    /// last is 0.
    PaxosLastInstance = 93,
    /// Coordinator: a bounded number of instances is open. Without it: instances pile up that no
    /// acceptor has a slot for.
    PaxosSubmitWindow = 94,
    /// Acceptor: with `held`, the host says what is durable. Without it: a vote in memory only is
    /// said as durable.
    PaxosHeld = 95,
    /// Acceptor: a slot speaks for its own instance only. Without it: another instance's vote is
    /// taken for this one's.
    PaxosSlotOfInstance = 96,
    /// Acceptor: no lower round than the one promised for all instances is promised. Without it: a
    /// promise is taken back.
    PaxosAllOld = 97,
    /// Acceptor: no round is promised for all instances that is not above those promised for single
    /// ones. Without it: a promise for one instance is taken back, or given to two.
    PaxosAllSingle = 98,
    /// Acceptor: a round for all instances is promised to one coordinator. Without it: two
    /// coordinators of one number propose in one round.
    PaxosAllTaken = 99,
    /// Acceptor: no lower round than the one promised for an instance is promised. Without it: a
    /// promise is taken back.
    PaxosP1aOld = 100,
    /// Acceptor: a round for an instance is promised to one coordinator. Without it: two
    /// coordinators of one number propose in one round.
    PaxosP1aTaken = 101,
    /// A value that is proposed says nothing that values do not say. Without it: a value says what
    /// only entries of replicas say.
    PaxosP2aFlags = 102,
    /// Acceptor: it does not vote below its promise. Without it: what a later coordinator has not
    /// seen is decided.
    PaxosP2aOld = 103,
    /// Acceptor: in a round it votes once. Without it: an acceptor votes twice in a round.
    PaxosRepeated = 104,
    /// Acceptor: in a round there is one value. Without it: a round has two values: two
    /// coordinators have one round, and nobody is told.
    PaxosTwoValues = 105,
    /// Acceptor: it answers in its own configuration only. Without it: a coordinator counts on the
    /// votes of a life that has lost them.
    PaxosConfiguration = 106,
    /// A round has a count. Without it: a vote in round 0 looks like none.
    PaxosRound = 107,
    /// A coordinator speaks in its own rounds only. Without it: two coordinators propose in one
    /// round.
    PaxosRoundOwner = 108,
    /// A coordinator has drawn a number for its round. Without it: a coordinator takes a round over
    /// that was promised to one unknown.
    PaxosDrawn = 109,
    /// A packet names an instance that there may be. Without it: an instance is voted for that
    /// there is not.
    PaxosInstance = 110,
    /// Acceptor: what is forgotten is not promised or voted for again. Without it: who asks for
    /// what is forgotten hears nothing, and asks for ever.
    PaxosTrimmed = 111,
    /// Acceptor: an instance has a slot of its own. Without it: an open instance's vote is
    /// overwritten.
    PaxosWindow = 112,
    /// Acceptor: who has lost its memory is no member up to its bound, except where it has voted
    /// since. Without it: an acceptor without memory decides against what it had voted for.
    PaxosBound = 113,
    /// A box that is off promises and proposes nothing. Without it: a vote leaves after the fence,
    /// that nobody accounts for.
    PaxosOff = 114,
    /// The step looks at the version once more, whoever has called it. Without it: fields are read
    /// that mean something else.
    PaxosVersion = 115,
    /// A packet of another deployment moves nothing. Without it: another deployment's values are
    /// decided.
    PaxosGroup = 116,
    /// The step looks at the size once more, whoever has called it. Without it: a value is longer
    /// than its place in the slot.
    PaxosBytes = 117,
    /// There is an instance after those that are forgotten. Without it: the instance after the last
    /// is 0.
    PaxosTrimWithin = 118,
    /// A coordinator goes on behind what is forgotten. Without it: a coordinator gives no value an
    /// instance any more.
    PaxosTrimNext = 119,
    /// What is forgotten stays so. Without it: an instance that is forgotten is voted for again.
    PaxosTrimMonotone = 120,
}

impl Mutant {
    /// All of them, ascending.
    pub const ALL: [Self; 112] = [
        Self::Version,
        Self::ExactLength,
        Self::FlagsKnown,
        Self::KeyOfKind,
        Self::KeyValid,
        Self::Tag,
        Self::SoundRole,
        Self::SoundReplicas,
        Self::SoundSlots,
        Self::SoundLeader,
        Self::SoundQuorum,
        Self::SoundRing,
        Self::SoundWindow,
        Self::SoundHeld,
        Self::SoundTerms,
        Self::SoundLast,
        Self::SoundCommit,
        Self::SoundStart,
        Self::SoundReleased,
        Self::SoundPersisted,
        Self::CountMembers,
        Self::Quorum,
        Self::OwnTerm,
        Self::CommitWithinLast,
        Self::CommitMonotone,
        Self::LastIndexEver,
        Self::RequestRing,
        Self::RequestWindow,
        Self::HeldLeader,
        Self::ClientFlags,
        Self::ClientPieces,
        Self::ClientSender,
        Self::RequestBytes,
        Self::ForwardBytes,
        Self::BeforeStart,
        Self::AppendIndex,
        Self::Repeated,
        Self::NextIndex,
        Self::History,
        Self::AppendRing,
        Self::HeldFollower,
        Self::HeldReply,
        Self::HeartbeatIndex,
        Self::RoundMonotone,
        Self::BeyondLast,
        Self::RoundSent,
        Self::ResendStart,
        Self::BehindRing,
        Self::Repair,
        Self::HeardMonotone,
        Self::Question,
        Self::AnswerStart,
        Self::MatchMonotone,
        Self::ForwardOnce,
        Self::LeaderSender,
        Self::Off,
        Self::StepVersion,
        Self::Group,
        Self::StepBytes,
        Self::TermOld,
        Self::TermNew,
        Self::Member,
        Self::NotMyself,
        Self::SubmitRole,
        Self::SubmitBytes,
        Self::PersistedRole,
        Self::PersistedHeld,
        Self::PersistedWithinLast,
        Self::PersistedMonotone,
        Self::HeartbeatRole,
        Self::AscendingRounds,
        Self::ReleasedWithinLast,
        Self::ReleasedMonotone,
        Self::PaxosSoundRole,
        Self::PaxosSoundConfiguration,
        Self::PaxosSoundWindow,
        Self::PaxosSoundHeld,
        Self::PaxosSoundTrimmed,
        Self::PaxosSoundRound,
        Self::PaxosSoundOwner,
        Self::PaxosSoundNext,
        Self::PaxosSubmitSender,
        Self::PaxosSubmitSession,
        Self::PaxosSubmitFlags,
        Self::PaxosLastInstance,
        Self::PaxosSubmitWindow,
        Self::PaxosHeld,
        Self::PaxosSlotOfInstance,
        Self::PaxosAllOld,
        Self::PaxosAllSingle,
        Self::PaxosAllTaken,
        Self::PaxosP1aOld,
        Self::PaxosP1aTaken,
        Self::PaxosP2aFlags,
        Self::PaxosP2aOld,
        Self::PaxosRepeated,
        Self::PaxosTwoValues,
        Self::PaxosConfiguration,
        Self::PaxosRound,
        Self::PaxosRoundOwner,
        Self::PaxosDrawn,
        Self::PaxosInstance,
        Self::PaxosTrimmed,
        Self::PaxosWindow,
        Self::PaxosBound,
        Self::PaxosOff,
        Self::PaxosVersion,
        Self::PaxosGroup,
        Self::PaxosBytes,
        Self::PaxosTrimWithin,
        Self::PaxosTrimNext,
        Self::PaxosTrimMonotone,
    ];

    /// Its name in the list.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::ExactLength => "exact_length",
            Self::FlagsKnown => "flags_known",
            Self::KeyOfKind => "key_of_kind",
            Self::KeyValid => "key_valid",
            Self::Tag => "tag",
            Self::SoundRole => "sound_role",
            Self::SoundReplicas => "sound_replicas",
            Self::SoundSlots => "sound_slots",
            Self::SoundLeader => "sound_leader",
            Self::SoundQuorum => "sound_quorum",
            Self::SoundRing => "sound_ring",
            Self::SoundWindow => "sound_window",
            Self::SoundHeld => "sound_held",
            Self::SoundTerms => "sound_terms",
            Self::SoundLast => "sound_last",
            Self::SoundCommit => "sound_commit",
            Self::SoundStart => "sound_start",
            Self::SoundReleased => "sound_released",
            Self::SoundPersisted => "sound_persisted",
            Self::CountMembers => "count_members",
            Self::Quorum => "quorum",
            Self::OwnTerm => "own_term",
            Self::CommitWithinLast => "commit_within_last",
            Self::CommitMonotone => "commit_monotone",
            Self::LastIndexEver => "last_index_ever",
            Self::RequestRing => "request_ring",
            Self::RequestWindow => "request_window",
            Self::HeldLeader => "held_leader",
            Self::ClientFlags => "client_flags",
            Self::ClientPieces => "client_pieces",
            Self::ClientSender => "client_sender",
            Self::RequestBytes => "request_bytes",
            Self::ForwardBytes => "forward_bytes",
            Self::BeforeStart => "before_start",
            Self::AppendIndex => "append_index",
            Self::Repeated => "repeated",
            Self::NextIndex => "next_index",
            Self::History => "history",
            Self::AppendRing => "append_ring",
            Self::HeldFollower => "held_follower",
            Self::HeldReply => "held_reply",
            Self::HeartbeatIndex => "heartbeat_index",
            Self::RoundMonotone => "round_monotone",
            Self::BeyondLast => "beyond_last",
            Self::RoundSent => "round_sent",
            Self::ResendStart => "resend_start",
            Self::BehindRing => "behind_ring",
            Self::Repair => "repair",
            Self::HeardMonotone => "heard_monotone",
            Self::Question => "question",
            Self::AnswerStart => "answer_start",
            Self::MatchMonotone => "match_monotone",
            Self::ForwardOnce => "forward_once",
            Self::LeaderSender => "leader_sender",
            Self::Off => "off",
            Self::StepVersion => "step_version",
            Self::Group => "group",
            Self::StepBytes => "step_bytes",
            Self::TermOld => "term_old",
            Self::TermNew => "term_new",
            Self::Member => "member",
            Self::NotMyself => "not_myself",
            Self::SubmitRole => "submit_role",
            Self::SubmitBytes => "submit_bytes",
            Self::PersistedRole => "persisted_role",
            Self::PersistedHeld => "persisted_held",
            Self::PersistedWithinLast => "persisted_within_last",
            Self::PersistedMonotone => "persisted_monotone",
            Self::HeartbeatRole => "heartbeat_role",
            Self::AscendingRounds => "ascending_rounds",
            Self::ReleasedWithinLast => "released_within_last",
            Self::ReleasedMonotone => "released_monotone",
            Self::PaxosSoundRole => "paxos_sound_role",
            Self::PaxosSoundConfiguration => "paxos_sound_configuration",
            Self::PaxosSoundWindow => "paxos_sound_window",
            Self::PaxosSoundHeld => "paxos_sound_held",
            Self::PaxosSoundTrimmed => "paxos_sound_trimmed",
            Self::PaxosSoundRound => "paxos_sound_round",
            Self::PaxosSoundOwner => "paxos_sound_owner",
            Self::PaxosSoundNext => "paxos_sound_next",
            Self::PaxosSubmitSender => "paxos_submit_sender",
            Self::PaxosSubmitSession => "paxos_submit_session",
            Self::PaxosSubmitFlags => "paxos_submit_flags",
            Self::PaxosLastInstance => "paxos_last_instance",
            Self::PaxosSubmitWindow => "paxos_submit_window",
            Self::PaxosHeld => "paxos_held",
            Self::PaxosSlotOfInstance => "paxos_slot_of_instance",
            Self::PaxosAllOld => "paxos_all_old",
            Self::PaxosAllSingle => "paxos_all_single",
            Self::PaxosAllTaken => "paxos_all_taken",
            Self::PaxosP1aOld => "paxos_p1a_old",
            Self::PaxosP1aTaken => "paxos_p1a_taken",
            Self::PaxosP2aFlags => "paxos_p2a_flags",
            Self::PaxosP2aOld => "paxos_p2a_old",
            Self::PaxosRepeated => "paxos_repeated",
            Self::PaxosTwoValues => "paxos_two_values",
            Self::PaxosConfiguration => "paxos_configuration",
            Self::PaxosRound => "paxos_round",
            Self::PaxosRoundOwner => "paxos_round_owner",
            Self::PaxosDrawn => "paxos_drawn",
            Self::PaxosInstance => "paxos_instance",
            Self::PaxosTrimmed => "paxos_trimmed",
            Self::PaxosWindow => "paxos_window",
            Self::PaxosBound => "paxos_bound",
            Self::PaxosOff => "paxos_off",
            Self::PaxosVersion => "paxos_version",
            Self::PaxosGroup => "paxos_group",
            Self::PaxosBytes => "paxos_bytes",
            Self::PaxosTrimWithin => "paxos_trim_within",
            Self::PaxosTrimNext => "paxos_trim_next",
            Self::PaxosTrimMonotone => "paxos_trim_monotone",
        }
    }

    /// Why a packet that it refuses is not taken; `None` if it refuses no packets.
    #[must_use]
    pub const fn reason(self) -> Option<PacketReason> {
        match self {
            Self::Version => Some(PacketReason::Version),
            Self::ExactLength => Some(PacketReason::Malformed),
            Self::FlagsKnown => Some(PacketReason::Malformed),
            Self::KeyOfKind => Some(PacketReason::Tag),
            Self::KeyValid => Some(PacketReason::Tag),
            Self::Tag => Some(PacketReason::Tag),
            Self::SoundRole => None,
            Self::SoundReplicas => None,
            Self::SoundSlots => None,
            Self::SoundLeader => None,
            Self::SoundQuorum => None,
            Self::SoundRing => None,
            Self::SoundWindow => None,
            Self::SoundHeld => None,
            Self::SoundTerms => None,
            Self::SoundLast => None,
            Self::SoundCommit => None,
            Self::SoundStart => None,
            Self::SoundReleased => None,
            Self::SoundPersisted => None,
            Self::CountMembers => None,
            Self::Quorum => None,
            Self::OwnTerm => None,
            Self::CommitWithinLast => None,
            Self::CommitMonotone => None,
            Self::LastIndexEver => Some(PacketReason::BeyondLast),
            Self::RequestRing => Some(PacketReason::RingFull),
            Self::RequestWindow => Some(PacketReason::WindowFull),
            Self::HeldLeader => None,
            Self::ClientFlags => Some(PacketReason::Malformed),
            Self::ClientPieces => Some(PacketReason::Malformed),
            Self::ClientSender => Some(PacketReason::Stranger),
            Self::RequestBytes => Some(PacketReason::Malformed),
            Self::ForwardBytes => Some(PacketReason::Malformed),
            Self::BeforeStart => Some(PacketReason::BeforeStart),
            Self::AppendIndex => Some(PacketReason::Malformed),
            Self::Repeated => Some(PacketReason::Repeated),
            Self::NextIndex => Some(PacketReason::Gap),
            Self::History => Some(PacketReason::History),
            Self::AppendRing => Some(PacketReason::RingFull),
            Self::HeldFollower => None,
            Self::HeldReply => None,
            Self::HeartbeatIndex => Some(PacketReason::Malformed),
            Self::RoundMonotone => None,
            Self::BeyondLast => Some(PacketReason::BeyondLast),
            Self::RoundSent => Some(PacketReason::Malformed),
            Self::ResendStart => Some(PacketReason::BehindRing),
            Self::BehindRing => Some(PacketReason::BehindRing),
            Self::Repair => Some(PacketReason::BehindRing),
            Self::HeardMonotone => None,
            Self::Question => None,
            Self::AnswerStart => None,
            Self::MatchMonotone => None,
            Self::ForwardOnce => Some(PacketReason::Unexpected),
            Self::LeaderSender => Some(PacketReason::Stranger),
            Self::Off => Some(PacketReason::Off),
            Self::StepVersion => Some(PacketReason::Version),
            Self::Group => Some(PacketReason::Group),
            Self::StepBytes => Some(PacketReason::Malformed),
            Self::TermOld => Some(PacketReason::TermOld),
            Self::TermNew => Some(PacketReason::TermNew),
            Self::Member => Some(PacketReason::Stranger),
            Self::NotMyself => Some(PacketReason::Stranger),
            Self::SubmitRole => Some(PacketReason::Off),
            Self::SubmitBytes => Some(PacketReason::Malformed),
            Self::PersistedRole => Some(PacketReason::Off),
            Self::PersistedHeld => Some(PacketReason::Unexpected),
            Self::PersistedWithinLast => Some(PacketReason::BeyondLast),
            Self::PersistedMonotone => Some(PacketReason::Repeated),
            Self::HeartbeatRole => Some(PacketReason::Off),
            Self::AscendingRounds => Some(PacketReason::Repeated),
            Self::ReleasedWithinLast => None,
            Self::ReleasedMonotone => None,
            Self::PaxosSoundRole => None,
            Self::PaxosSoundConfiguration => None,
            Self::PaxosSoundWindow => None,
            Self::PaxosSoundHeld => None,
            Self::PaxosSoundTrimmed => None,
            Self::PaxosSoundRound => None,
            Self::PaxosSoundOwner => None,
            Self::PaxosSoundNext => None,
            Self::PaxosSubmitSender => Some(PacketReason::Stranger),
            Self::PaxosSubmitSession => Some(PacketReason::Malformed),
            Self::PaxosSubmitFlags => Some(PacketReason::Malformed),
            Self::PaxosLastInstance => Some(PacketReason::BeyondLast),
            Self::PaxosSubmitWindow => Some(PacketReason::WindowFull),
            Self::PaxosHeld => None,
            Self::PaxosSlotOfInstance => None,
            Self::PaxosAllOld => Some(PacketReason::RoundOld),
            Self::PaxosAllSingle => Some(PacketReason::RoundOld),
            Self::PaxosAllTaken => Some(PacketReason::RoundTaken),
            Self::PaxosP1aOld => Some(PacketReason::RoundOld),
            Self::PaxosP1aTaken => Some(PacketReason::RoundTaken),
            Self::PaxosP2aFlags => Some(PacketReason::Malformed),
            Self::PaxosP2aOld => Some(PacketReason::RoundOld),
            Self::PaxosRepeated => Some(PacketReason::Repeated),
            Self::PaxosTwoValues => Some(PacketReason::TwoValues),
            Self::PaxosConfiguration => Some(PacketReason::Configuration),
            Self::PaxosRound => Some(PacketReason::Malformed),
            Self::PaxosRoundOwner => Some(PacketReason::Malformed),
            Self::PaxosDrawn => Some(PacketReason::Malformed),
            Self::PaxosInstance => Some(PacketReason::Malformed),
            Self::PaxosTrimmed => Some(PacketReason::Trimmed),
            Self::PaxosWindow => Some(PacketReason::WindowFull),
            Self::PaxosBound => Some(PacketReason::NoMember),
            Self::PaxosOff => Some(PacketReason::Off),
            Self::PaxosVersion => Some(PacketReason::Version),
            Self::PaxosGroup => Some(PacketReason::Group),
            Self::PaxosBytes => Some(PacketReason::Malformed),
            Self::PaxosTrimWithin => None,
            Self::PaxosTrimNext => None,
            Self::PaxosTrimMonotone => None,
        }
    }
}

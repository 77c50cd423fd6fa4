/* Generated from fastpath/checks.toml by `make generate`; do not edit.
 * The names of the checks, and why a packet that one refuses is not taken. */
#ifndef QW_CHECKS_H
#define QW_CHECKS_H

#include "qw_wire.h"

enum qw_check {
	/* What is shorter than a header is not read. Always there: the_c_takes_nothing_cut tests
	 * it. */
	QW_CHECK_HEADER_WHOLE = 1,
	/* What does not begin with the magic is not ours; an engine sees that before. Always
	 * there: fields_that_no_sender_makes_are_refused tests it. */
	QW_CHECK_MAGIC = 2,
	/* The format is known. Without it: fields are read that mean something else. */
	QW_CHECK_VERSION = 3,
	/* A payload has a size that its kind has: a FORWARD holds who asked, no packet holds
	 * more than fits. Always there: fields_that_no_sender_makes_are_refused tests it. */
	QW_CHECK_PAYLOAD_SIZE = 4,
	/* A cut packet is not read behind its end; where exact_length is there, it sees this,
	 * too. Always there: without_exact_length_only_what_is_longer_is_taken tests it. */
	QW_CHECK_PACKET_WHOLE = 5,
	/* Nothing stands behind a packet. Without it: bytes that no tag covers are taken. */
	QW_CHECK_EXACT_LENGTH = 6,
	/* All flags are known. Without it: a meaning unknown here is ignored. */
	QW_CHECK_FLAGS_KNOWN = 7,
	/* The kind decides which key counts. Without it: a client signs as a replica. */
	QW_CHECK_KEY_OF_KIND = 8,
	/* A key that is not there signs nothing. Without it: anybody signs as a replica, with
	 * zeros. */
	QW_CHECK_KEY_VALID = 9,
	/* The tag is right. Without it: anybody writes into the log. */
	QW_CHECK_TAG = 10,
	/* Switched on: the role is one that moves something. Without it: the plane is on, and
	 * neither leads nor follows. */
	QW_CHECK_SOUND_ROLE = 11,
	/* Switched on: the group has 1 to 7 replicas. Without it: the plane counts for replicas
	 * that no register is for. */
	QW_CHECK_SOUND_REPLICAS = 12,
	/* Switched on: this replica and the leader have a slot of the group. Without it: the
	 * plane speaks and counts for a slot of nobody. */
	QW_CHECK_SOUND_SLOTS = 13,
	/* Switched on: who has the leader's slot leads, and nobody else. Without it: a
	 * follower's plane assigns indexes. */
	QW_CHECK_SOUND_LEADER = 14,
	/* Switched on: any two quorums meet. Without it: two leaders commit different entries at
	 * one index. */
	QW_CHECK_SOUND_QUORUM = 15,
	/* Switched on: the ring has a size that the step counts with. Without it: an index has
	 * no slot, or another's. */
	QW_CHECK_SOUND_RING = 16,
	/* Switched on: the window is not empty and within the ring. Without it: nothing is ever
	 * taken, or more than the ring holds. */
	QW_CHECK_SOUND_WINDOW = 17,
	/* Switched on: `held` is yes or no. Without it: a host and its plane differ about who
	 * says what is durable. */
	QW_CHECK_SOUND_HELD = 18,
	/* Switched on: there is a term, and no entry is of a later one. Without it: the plane
	 * moves the log in a term that its last entry says is over. */
	QW_CHECK_SOUND_TERMS = 19,
	/* Switched on: there is an index after the last. Without it: the index after the last is
	 * 0. */
	QW_CHECK_SOUND_LAST = 20,
	/* Switched on: what is committed is there. Without it: the first packets commit what was
	 * never stored. */
	QW_CHECK_SOUND_COMMIT = 21,
	/* Switched on: what software moved is there. Without it: the plane takes entries for
	 * software's that nobody has stored. */
	QW_CHECK_SOUND_START = 22,
	/* Switched on: what the host has taken is there. Without it: the first packets free what
	 * was never stored. */
	QW_CHECK_SOUND_RELEASED = 23,
	/* Switched on: what is persisted is there. Without it: the first packets promise what
	 * was never stored. */
	QW_CHECK_SOUND_PERSISTED = 24,
	/* Leader: only slots of the grant are counted. Without it: registers of no replica make
	 * a quorum. */
	QW_CHECK_COUNT_MEMBERS = 25,
	/* Leader: a quorum holds what is committed. Without it: one replica commits alone. */
	QW_CHECK_QUORUM = 26,
	/* Leader: only entries of its own term are committed by counting. Without it: an entry
	 * that a later leader may replace is called committed. */
	QW_CHECK_OWN_TERM = 27,
	/* Follower: what is not here is not committed here. Without it: the host applies entries
	 * that are not there. */
	QW_CHECK_COMMIT_WITHIN_LAST = 28,
	/* Follower: what is committed stays so. Without it: what was committed is not, for the
	 * host. */
	QW_CHECK_COMMIT_MONOTONE = 29,
	/* Leader: there is an index after every index. Without it: the index after the last is
	 * 0. */
	QW_CHECK_LAST_INDEX_EVER = 30,
	/* A leader has a register of its own: it assigns. Always there:
	 * a_leader_without_a_slot_of_the_group_moves_nothing tests it. */
	QW_CHECK_ASSIGN_REGISTER = 31,
	/* Leader: an entry that the host has not taken is not overwritten. Without it: the host
	 * loses an entry it had not taken. */
	QW_CHECK_REQUEST_RING = 32,
	/* Leader: a bounded number of entries waits for a commit. Without it: entries without a
	 * quorum pile up until the ring is full. */
	QW_CHECK_REQUEST_WINDOW = 33,
	/* Leader: with `held`, storing alone does not count. Without it: the leader counts
	 * itself before its disk has the entry. */
	QW_CHECK_HELD_LEADER = 34,
	/* A client does not move the log's time, and bundles no commands. Without it: a client
	 * moves the log's time for everybody. */
	QW_CHECK_CLIENT_FLAGS = 35,
	/* A client's pieces belong to its session. Without it: a client's piece ends up in the
	 * middle of another's command. */
	QW_CHECK_CLIENT_PIECES = 36,
	/* A request comes from a client. Without it: a replica's own words become a command. */
	QW_CHECK_CLIENT_SENDER = 37,
	/* Follower: a request fits a packet with who asked in front. Without it: a packet is
	 * sent on that is longer than any may be. */
	QW_CHECK_REQUEST_BYTES = 38,
	/* Leader: a FORWARD holds who asked. Without it: a command has fewer bytes than none. */
	QW_CHECK_FORWARD_BYTES = 39,
	/* Follower: what software moved is not acknowledged by the plane. Without it: the plane
	 * vouches for what software has not verified. */
	QW_CHECK_BEFORE_START = 40,
	/* Follower: an entry has no index after the last there may be. Without it: an entry is
	 * asked for that no leader has. */
	QW_CHECK_APPEND_INDEX = 41,
	/* Follower: an entry that is there already is not stored again. Without it: the log
	 * becomes shorter, an acknowledged entry is gone. */
	QW_CHECK_REPEATED = 42,
	/* Follower: no entry is left out. Without it: a hole in the log is acknowledged. */
	QW_CHECK_NEXT_INDEX = 43,
	/* Follower: the entry before is of the term that the leader means. Without it: two logs
	 * differ below an entry they share. */
	QW_CHECK_HISTORY = 44,
	/* Follower: an entry that the host has not taken is not overwritten. Without it: the
	 * host loses an entry that was acknowledged. */
	QW_CHECK_APPEND_RING = 45,
	/* Follower: with `held`, storing alone acknowledges nothing. Without it: an entry in
	 * memory only is acknowledged as durable. */
	QW_CHECK_HELD_FOLLOWER = 46,
	/* Follower: an acknowledgement says only what is persisted. Without it: an entry in
	 * memory only is acknowledged as durable, for a repeated packet. */
	QW_CHECK_HELD_REPLY = 47,
	/* Follower: a heartbeat names no index after the last there may be. Without it: a
	 * heartbeat that no leader makes is heard and answered. */
	QW_CHECK_HEARTBEAT_INDEX = 48,
	/* Follower: an old heartbeat takes no round back. Without it: a late heartbeat makes the
	 * follower answer for an earlier round. */
	QW_CHECK_ROUND_MONOTONE = 49,
	/* Leader: nobody holds what was never assigned. Without it: an entry that comes later is
	 * committed before anybody has it. */
	QW_CHECK_BEYOND_LAST = 50,
	/* Leader: nobody has heard a round that was never sent. Without it: a lease that nobody
	 * gave: a stale read. */
	QW_CHECK_ROUND_SENT = 51,
	/* Leader: what software moved is not sent again by the plane. Without it: slots that
	 * were never filled are sent. */
	QW_CHECK_RESEND_START = 52,
	/* Leader: what the ring holds no more is not sent again. Without it: another entry is
	 * sent in the place of the one asked for. */
	QW_CHECK_BEHIND_RING = 53,
	/* Leader: who misses much is repaired by software, unless all have to hold each entry.
	 * Without it: one replica that misses much takes the fast path's time from all. */
	QW_CHECK_REPAIR = 54,
	/* Leader: an old answer to a round takes nothing back. Without it: a late packet takes a
	 * lease back. */
	QW_CHECK_HEARD_MONOTONE = 55,
	/* Leader: who asks for an entry does not hold it. Without it: an entry is committed
	 * because a replica misses it. */
	QW_CHECK_QUESTION = 56,
	/* Leader: what software moved is not acknowledged to the plane. Without it: the
	 * registers show as acknowledged to the plane what only software moved. */
	QW_CHECK_ANSWER_START = 57,
	/* Leader: an old acknowledgement takes nothing back. Without it: a late packet takes an
	 * acknowledgement back; the next commit waits for ever. */
	QW_CHECK_MATCH_MONOTONE = 58,
	/* Follower: a request is sent on once. Without it: software gets a request that another
	 * replica has sent on already. */
	QW_CHECK_FORWARD_ONCE = 59,
	/* Follower: only the leader says what to store. Without it: a follower that believes it
	 * leads writes into the log. */
	QW_CHECK_LEADER_SENDER = 60,
	/* A plane that is off moves nothing. Without it: an acknowledgement leaves after the
	 * fence, that the vote did not account for. */
	QW_CHECK_OFF = 61,
	/* The step looks at the version once more, whoever has called it. Without it: fields are
	 * read that mean something else. */
	QW_CHECK_STEP_VERSION = 62,
	/* A packet of another log moves nothing. Without it: another log's entries are stored. */
	QW_CHECK_GROUP = 63,
	/* The step looks at the size once more, whoever has called it. Without it: an entry is
	 * longer than its place in the ring. */
	QW_CHECK_STEP_BYTES = 64,
	/* A packet of an earlier term moves nothing. Without it: a deposed leader writes into
	 * the log; an old acknowledgement counts. */
	QW_CHECK_TERM_OLD = 65,
	/* A packet of a later term moves nothing. Without it: entries of a term that this
	 * replica has not voted in are acknowledged. */
	QW_CHECK_TERM_NEW = 66,
	/* Only members of the grant say anything. Without it: a forward or a promise from
	 * outside of the group counts. */
	QW_CHECK_MEMBER = 67,
	/* A sender has a register. Always there: a_sender_that_no_register_is_for_moves_nothing
	 * tests it. */
	QW_CHECK_SENDER_REGISTER = 68,
	/* A replica's own words do not count as another's. Without it: a reflected packet makes
	 * one replica two. */
	QW_CHECK_NOT_MYSELF = 69,
	/* Only a leader's host gives commands. Without it: a follower, or a plane that is off,
	 * writes its own entries into the log. */
	QW_CHECK_SUBMIT_ROLE = 70,
	/* What a host submits fits a packet. Without it: an entry is longer than its place in
	 * the ring. */
	QW_CHECK_SUBMIT_BYTES = 71,
	/* A plane that is off promises nothing. Without it: an acknowledgement leaves after the
	 * fence. */
	QW_CHECK_PERSISTED_ROLE = 72,
	/* Only with `held` the host says what is persisted. Without it: a host that takes its
	 * plane for another kind is not told. */
	QW_CHECK_PERSISTED_HELD = 73,
	/* A leader has a register of its own: it counts what its host has persisted. Always
	 * there: a_leader_without_a_slot_of_the_group_moves_nothing tests it. */
	QW_CHECK_PERSISTED_REGISTER = 74,
	/* What was never stored is not persisted. Without it: an entry is acknowledged before it
	 * exists. */
	QW_CHECK_PERSISTED_WITHIN_LAST = 75,
	/* What is acknowledged is not taken back. Without it: a promise is taken back. */
	QW_CHECK_PERSISTED_MONOTONE = 76,
	/* Only a leader begins rounds. Without it: a follower, or a plane that is off, speaks as
	 * the leader. */
	QW_CHECK_HEARTBEAT_ROLE = 77,
	/* A leader has a register of its own: it hears its own rounds. Always there:
	 * a_leader_without_a_slot_of_the_group_moves_nothing tests it. */
	QW_CHECK_HEARTBEAT_REGISTER = 78,
	/* Leader: no round is sent twice. Without it: an answer to the first sending of a round
	 * extends a lease by the second. */
	QW_CHECK_ASCENDING_ROUNDS = 79,
	/* What was never stored is not released. Without it: the ring counts slots as free that
	 * are not. */
	QW_CHECK_RELEASED_WITHIN_LAST = 80,
	/* What is released stays so. Without it: the ring counts free slots as taken, and stands
	 * still. */
	QW_CHECK_RELEASED_MONOTONE = 81,
	/* Switched on: the role is one that moves something. Without it: the box is on, and
	 * neither coordinates nor votes. */
	QW_CHECK_PAXOS_SOUND_ROLE = 82,
	/* Switched on: there is a configuration. Without it: packets of before there were
	 * configurations count. */
	QW_CHECK_PAXOS_SOUND_CONFIGURATION = 83,
	/* Switched on: the window has a size that the step counts with. Without it: an instance
	 * has no slot, or another's. */
	QW_CHECK_PAXOS_SOUND_WINDOW = 84,
	/* Switched on: `held` is yes or no. Without it: a host and its box differ about who says
	 * what is durable. */
	QW_CHECK_PAXOS_SOUND_HELD = 85,
	/* Switched on: there is an instance after those that are forgotten. Without it: the
	 * instance after the last is 0. */
	QW_CHECK_PAXOS_SOUND_TRIMMED = 86,
	/* Coordinator: there is a round. Without it: acceptors refuse every value. */
	QW_CHECK_PAXOS_SOUND_ROUND = 87,
	/* Coordinator: the round is its own. Without it: two coordinators propose in one round. */
	QW_CHECK_PAXOS_SOUND_OWNER = 88,
	/* Coordinator: the next instance is not forgotten. Without it: values get instances that
	 * are forgotten. */
	QW_CHECK_PAXOS_SOUND_NEXT = 89,
	/* A value comes from a client. Without it: a role's own words become a value. */
	QW_CHECK_PAXOS_SUBMIT_SENDER = 90,
	/* A value has a session. Without it: a value is decided as a no-op and delivered to
	 * nobody. */
	QW_CHECK_PAXOS_SUBMIT_SESSION = 91,
	/* A value says nothing that values do not say. Without it: a value says what only
	 * entries of replicas say. */
	QW_CHECK_PAXOS_SUBMIT_FLAGS = 92,
	/* Coordinator: there is an instance after every instance. Without it: the instance after
	 * the last is 0. */
	QW_CHECK_PAXOS_LAST_INSTANCE = 93,
	/* Coordinator: a bounded number of instances is open. Without it: instances pile up that
	 * no acceptor has a slot for. */
	QW_CHECK_PAXOS_SUBMIT_WINDOW = 94,
	/* Acceptor: with `held`, the host says what is durable. Without it: a vote in memory
	 * only is said as durable. */
	QW_CHECK_PAXOS_HELD = 95,
	/* Acceptor: a slot speaks for its own instance only. Without it: another instance's vote
	 * is taken for this one's. */
	QW_CHECK_PAXOS_SLOT_OF_INSTANCE = 96,
	/* Acceptor: no lower round than the one promised for all instances is promised. Without
	 * it: a promise is taken back. */
	QW_CHECK_PAXOS_ALL_OLD = 97,
	/* Acceptor: no round is promised for all instances that is not above those promised for
	 * single ones. Without it: a promise for one instance is taken back, or given to two. */
	QW_CHECK_PAXOS_ALL_SINGLE = 98,
	/* Acceptor: a round for all instances is promised to one coordinator. Without it: two
	 * coordinators of one number propose in one round. */
	QW_CHECK_PAXOS_ALL_TAKEN = 99,
	/* Acceptor: no lower round than the one promised for an instance is promised. Without
	 * it: a promise is taken back. */
	QW_CHECK_PAXOS_P1A_OLD = 100,
	/* Acceptor: a round for an instance is promised to one coordinator. Without it: two
	 * coordinators of one number propose in one round. */
	QW_CHECK_PAXOS_P1A_TAKEN = 101,
	/* A value that is proposed says nothing that values do not say. Without it: a value says
	 * what only entries of replicas say. */
	QW_CHECK_PAXOS_P2A_FLAGS = 102,
	/* Acceptor: it does not vote below its promise. Without it: what a later coordinator has
	 * not seen is decided. */
	QW_CHECK_PAXOS_P2A_OLD = 103,
	/* Acceptor: in a round it votes once. Without it: an acceptor votes twice in a round. */
	QW_CHECK_PAXOS_REPEATED = 104,
	/* Acceptor: in a round there is one value. Without it: a round has two values: two
	 * coordinators have one round, and nobody is told. */
	QW_CHECK_PAXOS_TWO_VALUES = 105,
	/* Acceptor: it answers in its own configuration only. Without it: a coordinator counts
	 * on the votes of a life that has lost them. */
	QW_CHECK_PAXOS_CONFIGURATION = 106,
	/* A round has a count. Without it: a vote in round 0 looks like none. */
	QW_CHECK_PAXOS_ROUND = 107,
	/* A coordinator speaks in its own rounds only. Without it: two coordinators propose in
	 * one round. */
	QW_CHECK_PAXOS_ROUND_OWNER = 108,
	/* A coordinator has drawn a number for its round. Without it: a coordinator takes a
	 * round over that was promised to one unknown. */
	QW_CHECK_PAXOS_DRAWN = 109,
	/* A packet names an instance that there may be. Without it: an instance is voted for
	 * that there is not. */
	QW_CHECK_PAXOS_INSTANCE = 110,
	/* Acceptor: what is forgotten is not promised or voted for again. Without it: who asks
	 * for what is forgotten hears nothing, and asks for ever. */
	QW_CHECK_PAXOS_TRIMMED = 111,
	/* Acceptor: an instance has a slot of its own. Without it: an open instance's vote is
	 * overwritten. */
	QW_CHECK_PAXOS_WINDOW = 112,
	/* Acceptor: who has lost its memory is no member up to its bound, except where it has
	 * voted since. Without it: an acceptor without memory decides against what it had voted
	 * for. */
	QW_CHECK_PAXOS_BOUND = 113,
	/* A box that is off promises and proposes nothing. Without it: a vote leaves after the
	 * fence, that nobody accounts for. */
	QW_CHECK_PAXOS_OFF = 114,
	/* The step looks at the version once more, whoever has called it. Without it: fields are
	 * read that mean something else. */
	QW_CHECK_PAXOS_VERSION = 115,
	/* A packet of another deployment moves nothing. Without it: another deployment's values
	 * are decided. */
	QW_CHECK_PAXOS_GROUP = 116,
	/* The step looks at the size once more, whoever has called it. Without it: a value is
	 * longer than its place in the slot. */
	QW_CHECK_PAXOS_BYTES = 117,
	/* There is an instance after those that are forgotten. Without it: the instance after
	 * the last is 0. */
	QW_CHECK_PAXOS_TRIM_WITHIN = 118,
	/* A coordinator goes on behind what is forgotten. Without it: a coordinator gives no
	 * value an instance any more. */
	QW_CHECK_PAXOS_TRIM_NEXT = 119,
	/* What is forgotten stays so. Without it: an instance that is forgotten is voted for
	 * again. */
	QW_CHECK_PAXOS_TRIM_MONOTONE = 120,
};

#define QW_REASON_OF_HEADER_WHOLE QW_REASON_NOT_OURS
#define QW_REASON_OF_MAGIC QW_REASON_NOT_OURS
#define QW_REASON_OF_VERSION QW_REASON_VERSION
#define QW_REASON_OF_PAYLOAD_SIZE QW_REASON_MALFORMED
#define QW_REASON_OF_PACKET_WHOLE QW_REASON_MALFORMED
#define QW_REASON_OF_EXACT_LENGTH QW_REASON_MALFORMED
#define QW_REASON_OF_FLAGS_KNOWN QW_REASON_MALFORMED
#define QW_REASON_OF_KEY_OF_KIND QW_REASON_TAG
#define QW_REASON_OF_KEY_VALID QW_REASON_TAG
#define QW_REASON_OF_TAG QW_REASON_TAG
#define QW_REASON_OF_LAST_INDEX_EVER QW_REASON_BEYOND_LAST
#define QW_REASON_OF_ASSIGN_REGISTER QW_REASON_STRANGER
#define QW_REASON_OF_REQUEST_RING QW_REASON_RING_FULL
#define QW_REASON_OF_REQUEST_WINDOW QW_REASON_WINDOW_FULL
#define QW_REASON_OF_CLIENT_FLAGS QW_REASON_MALFORMED
#define QW_REASON_OF_CLIENT_PIECES QW_REASON_MALFORMED
#define QW_REASON_OF_CLIENT_SENDER QW_REASON_STRANGER
#define QW_REASON_OF_REQUEST_BYTES QW_REASON_MALFORMED
#define QW_REASON_OF_FORWARD_BYTES QW_REASON_MALFORMED
#define QW_REASON_OF_BEFORE_START QW_REASON_BEFORE_START
#define QW_REASON_OF_APPEND_INDEX QW_REASON_MALFORMED
#define QW_REASON_OF_REPEATED QW_REASON_REPEATED
#define QW_REASON_OF_NEXT_INDEX QW_REASON_GAP
#define QW_REASON_OF_HISTORY QW_REASON_HISTORY
#define QW_REASON_OF_APPEND_RING QW_REASON_RING_FULL
#define QW_REASON_OF_HEARTBEAT_INDEX QW_REASON_MALFORMED
#define QW_REASON_OF_BEYOND_LAST QW_REASON_BEYOND_LAST
#define QW_REASON_OF_ROUND_SENT QW_REASON_MALFORMED
#define QW_REASON_OF_RESEND_START QW_REASON_BEHIND_RING
#define QW_REASON_OF_BEHIND_RING QW_REASON_BEHIND_RING
#define QW_REASON_OF_REPAIR QW_REASON_BEHIND_RING
#define QW_REASON_OF_FORWARD_ONCE QW_REASON_UNEXPECTED
#define QW_REASON_OF_LEADER_SENDER QW_REASON_STRANGER
#define QW_REASON_OF_OFF QW_REASON_OFF
#define QW_REASON_OF_STEP_VERSION QW_REASON_VERSION
#define QW_REASON_OF_GROUP QW_REASON_GROUP
#define QW_REASON_OF_STEP_BYTES QW_REASON_MALFORMED
#define QW_REASON_OF_TERM_OLD QW_REASON_TERM_OLD
#define QW_REASON_OF_TERM_NEW QW_REASON_TERM_NEW
#define QW_REASON_OF_MEMBER QW_REASON_STRANGER
#define QW_REASON_OF_SENDER_REGISTER QW_REASON_STRANGER
#define QW_REASON_OF_NOT_MYSELF QW_REASON_STRANGER
#define QW_REASON_OF_SUBMIT_ROLE QW_REASON_OFF
#define QW_REASON_OF_SUBMIT_BYTES QW_REASON_MALFORMED
#define QW_REASON_OF_PERSISTED_ROLE QW_REASON_OFF
#define QW_REASON_OF_PERSISTED_HELD QW_REASON_UNEXPECTED
#define QW_REASON_OF_PERSISTED_REGISTER QW_REASON_STRANGER
#define QW_REASON_OF_PERSISTED_WITHIN_LAST QW_REASON_BEYOND_LAST
#define QW_REASON_OF_PERSISTED_MONOTONE QW_REASON_REPEATED
#define QW_REASON_OF_HEARTBEAT_ROLE QW_REASON_OFF
#define QW_REASON_OF_HEARTBEAT_REGISTER QW_REASON_STRANGER
#define QW_REASON_OF_ASCENDING_ROUNDS QW_REASON_REPEATED
#define QW_REASON_OF_PAXOS_SUBMIT_SENDER QW_REASON_STRANGER
#define QW_REASON_OF_PAXOS_SUBMIT_SESSION QW_REASON_MALFORMED
#define QW_REASON_OF_PAXOS_SUBMIT_FLAGS QW_REASON_MALFORMED
#define QW_REASON_OF_PAXOS_LAST_INSTANCE QW_REASON_BEYOND_LAST
#define QW_REASON_OF_PAXOS_SUBMIT_WINDOW QW_REASON_WINDOW_FULL
#define QW_REASON_OF_PAXOS_ALL_OLD QW_REASON_ROUND_OLD
#define QW_REASON_OF_PAXOS_ALL_SINGLE QW_REASON_ROUND_OLD
#define QW_REASON_OF_PAXOS_ALL_TAKEN QW_REASON_ROUND_TAKEN
#define QW_REASON_OF_PAXOS_P1A_OLD QW_REASON_ROUND_OLD
#define QW_REASON_OF_PAXOS_P1A_TAKEN QW_REASON_ROUND_TAKEN
#define QW_REASON_OF_PAXOS_P2A_FLAGS QW_REASON_MALFORMED
#define QW_REASON_OF_PAXOS_P2A_OLD QW_REASON_ROUND_OLD
#define QW_REASON_OF_PAXOS_REPEATED QW_REASON_REPEATED
#define QW_REASON_OF_PAXOS_TWO_VALUES QW_REASON_TWO_VALUES
#define QW_REASON_OF_PAXOS_CONFIGURATION QW_REASON_CONFIGURATION
#define QW_REASON_OF_PAXOS_ROUND QW_REASON_MALFORMED
#define QW_REASON_OF_PAXOS_ROUND_OWNER QW_REASON_MALFORMED
#define QW_REASON_OF_PAXOS_DRAWN QW_REASON_MALFORMED
#define QW_REASON_OF_PAXOS_INSTANCE QW_REASON_MALFORMED
#define QW_REASON_OF_PAXOS_TRIMMED QW_REASON_TRIMMED
#define QW_REASON_OF_PAXOS_WINDOW QW_REASON_WINDOW_FULL
#define QW_REASON_OF_PAXOS_BOUND QW_REASON_NO_MEMBER
#define QW_REASON_OF_PAXOS_OFF QW_REASON_OFF
#define QW_REASON_OF_PAXOS_VERSION QW_REASON_VERSION
#define QW_REASON_OF_PAXOS_GROUP QW_REASON_GROUP
#define QW_REASON_OF_PAXOS_BYTES QW_REASON_MALFORMED

#endif

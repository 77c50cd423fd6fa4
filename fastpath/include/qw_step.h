/* SPDX-License-Identifier: Apache-2.0 */
/* The common case: what one group's plane does about one packet. Pure: registers and a header in,
 * registers and an outcome out. It sends, stores and counts nothing itself, and it sees only packets
 * that qw_verify.h has let through.
 *
 * Actions are carried out in the order of their bits, so nothing is said before it is stored.
 * QW_TO_SOFTWARE comes alone and leaves the registers untouched; so does a drop (no action, a reason). */
#ifndef QW_STEP_H
#define QW_STEP_H

#include "qw_mutants.h"
#include "qw_wire.h"

/* What shall be done. `header` is what to send; its tag and the flag QW_FLAG_EPOCH are the plane's. */
struct qw_outcome {
	struct qw_header header;
	__u64 index; /* QW_STORE: of the entry. QW_RESEND: the first. */
	__u64 commit_from; /* QW_COMMIT: the commit index before. */
	__u32 actions; /* enum qw_action */
	__u32 reason; /* enum qw_reason */
};
_Static_assert(sizeof(struct qw_outcome) == 96, "as in src/step.rs");

/* What a command's flags say of the entry it becomes. */
#define QW_FLAGS_OF_ENTRIES \
	(QW_FLAG_BLIND | QW_FLAG_TICK | QW_FLAG_FRAGMENT | QW_FLAG_BUNDLE)

/* The last index there ever may be, so that one more is still a number. */
#define QW_INDEX_MAX (~0ULL - 1)

static inline __attribute__((always_inline)) void qw_clear(struct qw_outcome *out)
{
	const struct qw_outcome nothing = { .actions = 0 };

	*out = nothing;
}

static inline __attribute__((always_inline)) void
qw_to_software(struct qw_outcome *out, enum qw_reason reason)
{
	out->actions = QW_TO_SOFTWARE;
	out->reason = reason;
}

static inline __attribute__((always_inline)) void
qw_drop(struct qw_outcome *out, enum qw_reason reason)
{
	out->actions = 0;
	out->reason = reason;
}

static inline __attribute__((always_inline)) __u64 qw_max(__u64 one, __u64 other)
{
	return one > other ? one : other;
}

static inline __attribute__((always_inline)) __u64 qw_min(__u64 one, __u64 other)
{
	return one < other ? one : other;
}

/* Whether registers are such as a host may switch a plane on with. */
static inline int qw_registers_sound(const struct qw_registers *state)
{
	if (state->role != QW_ROLE_LEADER && state->role != QW_ROLE_FOLLOWER &&
	    !qw_mutant(QW_WITHOUT_SOUND_SLOTS))
		return 0;
	if ((state->replicas == 0 || state->replicas > QW_REPLICAS_MAX) &&
	    !qw_mutant(QW_WITHOUT_SOUND_SLOTS))
		return 0;
	if ((state->me >= state->replicas || state->leader >= state->replicas) &&
	    !qw_mutant(QW_WITHOUT_SOUND_SLOTS))
		return 0;
	if ((state->role == QW_ROLE_LEADER) != (state->me == state->leader) &&
	    !qw_mutant(QW_WITHOUT_SOUND_SLOTS))
		return 0;
	/* Two quorums must meet, or two leaders could commit different entries at one index. */
	if ((state->quorum > state->replicas || 2 * state->quorum <= state->replicas) &&
	    !qw_mutant(QW_WITHOUT_MAJORITY))
		return 0;
	if ((state->ring_slots == 0 || (state->ring_slots & (state->ring_slots - 1)) != 0) &&
	    !qw_mutant(QW_WITHOUT_SOUND_LIMITS))
		return 0;
	if ((state->window == 0 || state->window > state->ring_slots || state->held > 1) &&
	    !qw_mutant(QW_WITHOUT_SOUND_LIMITS))
		return 0;
	if ((state->term == 0 || state->last_term > state->term) &&
	    !qw_mutant(QW_WITHOUT_SOUND_TERMS))
		return 0;
	if ((state->last_index > QW_INDEX_MAX || state->commit_index > state->last_index) &&
	    !qw_mutant(QW_WITHOUT_SOUND_INDEXES))
		return 0;
	return (state->start_index <= state->last_index &&
		state->released_index <= state->last_index &&
		state->persisted_index <= state->last_index) ||
	       qw_mutant(QW_WITHOUT_SOUND_INDEXES);
}

/* What every packet between replicas begins with. */
static inline __attribute__((always_inline)) void
qw_say(const struct qw_registers *state, enum qw_kind kind, __u64 index, __u64 sequence,
       struct qw_outcome *out)
{
	out->header.magic = QW_MAGIC;
	out->header.version = QW_VERSION;
	out->header.kind = (__u8)kind;
	out->header.sender = state->me;
	out->header.group = state->group;
	out->header.term = state->term;
	out->header.index = index;
	out->header.commit_index = state->commit_index;
	out->header.sequence = sequence;
}

/* 1 if one number is at least the other, else 0. Without a branch: the verifier follows both ways of each,
 * and gates would compute both. */
static inline __attribute__((always_inline)) __u64 qw_at_least(__u64 one, __u64 other)
{
	return 1 - (((~one & other) | ((~one | other) & (one - other))) >> 63);
}

/* A bit for each slot of the group. */
static inline __attribute__((always_inline)) __u64 qw_members(const struct qw_registers *state)
{
	return (1ULL << (state->replicas & 15)) - 1;
}

/* How many of these members have acknowledged an index. */
static inline __attribute__((always_inline)) __u64
qw_holders(const struct qw_registers *state, __u64 members, __u64 index)
{
	__u64 holders = 0;
	__u32 slot;

	for (slot = 0; slot < QW_REPLICAS_MAX; slot++)
		holders += (members >> slot) & qw_at_least(state->match_index[slot], index);
	return holders;
}

/* Whether so many members hold an index as it takes to commit it. */
static inline __attribute__((always_inline)) __u64
qw_is_held(const struct qw_registers *state, __u64 index)
{
	__u64 counted = qw_mutant(QW_WITHOUT_COUNT_MEMBERS) ? ~0ULL : qw_members(state);
	__u64 quorum = qw_mutant(QW_WITHOUT_QUORUM) ? 1 : state->quorum;

	return qw_at_least(qw_holders(state, counted, index), quorum);
}

/* An entry of an earlier term that a quorum holds may still be replaced. */
static inline __attribute__((always_inline)) __u64
qw_is_of_term(const struct qw_registers *state, __u64 index)
{
	return (__u64)qw_mutant(QW_WITHOUT_OWN_TERM) | (1 - qw_at_least(state->start_index, index));
}

static inline __attribute__((always_inline)) void
qw_commit(struct qw_registers *state, __u64 upto, struct qw_outcome *out)
{
	out->commit_from = state->commit_index;
	state->commit_index = upto;
	out->actions |= QW_COMMIT;
}

/* Leader: advances the commit index to the highest entry of this term that a quorum holds. */
static inline __attribute__((always_inline)) void
qw_count(struct qw_registers *state, struct qw_outcome *out)
{
	__u64 members = qw_members(state);
	__u64 best = state->commit_index;
	__u32 slot;

	for (slot = 0; slot < QW_REPLICAS_MAX; slot++) {
		__u64 index = state->match_index[slot];
		__u64 is_further = 1 - qw_at_least(best, index);

		best += (index - best) * ((members >> slot) & qw_is_of_term(state, index) &
					  qw_is_held(state, index) & is_further);
	}
	if (best > state->commit_index)
		qw_commit(state, best, out);
}

/* Leader: the same when a member has said that it holds an index behind the commit index. What was said before has
 * been counted, so nothing behind that index can be committed now, and mostly one look is enough. */
static inline __attribute__((always_inline)) void
qw_count_member(struct qw_registers *state, __u64 index, struct qw_outcome *out)
{
	if (qw_is_of_term(state, index) & qw_is_held(state, index))
		qw_commit(state, index, out);
	else
		qw_count(state, out);
}

/* Follower: what the leader knows to be committed, as far as it is here. */
static inline __attribute__((always_inline)) void
qw_learn_commit(struct qw_registers *state, __u64 committed, struct qw_outcome *out)
{
	__u64 known = committed;

	if (!qw_mutant(QW_WITHOUT_COMMIT_WITHIN_LAST))
		known = qw_min(known, state->last_index);
	if (known > state->commit_index ||
	    (known < state->commit_index && qw_mutant(QW_WITHOUT_COMMIT_MONOTONE))) {
		out->commit_from = state->commit_index;
		state->commit_index = known;
		out->actions |= QW_COMMIT;
	}
}

/* Whether one more entry would overwrite one that the host has not taken. */
static inline __attribute__((always_inline)) int qw_ring_full(const struct qw_registers *state)
{
	return state->last_index - state->released_index >= state->ring_slots;
}

/* Leader: gives a command its place. */
static inline __attribute__((always_inline)) void
qw_assign(struct qw_registers *state, const struct qw_header *in, __u16 payload_bytes,
	  struct qw_outcome *out)
{
	__u32 me = state->me;

	if (state->last_index >= QW_INDEX_MAX && !qw_mutant(QW_WITHOUT_LAST_INDEX_EVER))
		return qw_to_software(out, QW_REASON_BEYOND_LAST);
	if (me >= state->replicas || me >= QW_REPLICAS_MAX)
		return qw_to_software(out, QW_REASON_STRANGER);
	if (qw_ring_full(state) && !qw_mutant(QW_WITHOUT_REQUEST_RING))
		return qw_drop(out, QW_REASON_RING_FULL);
	if (state->last_index - state->commit_index >= state->window &&
	    !qw_mutant(QW_WITHOUT_REQUEST_WINDOW))
		return qw_drop(out, QW_REASON_WINDOW_FULL);
	qw_say(state, QW_KIND_APPEND, state->last_index + 1, in->sequence, out);
	out->header.flags = in->flags & QW_FLAGS_OF_ENTRIES;
	out->header.payload_bytes = payload_bytes;
	out->header.payload_crc32c = in->payload_crc32c;
	out->header.previous_term = state->last_term;
	out->header.session = in->session;
	out->index = state->last_index + 1;
	out->actions = QW_STORE | QW_FANOUT;
	state->last_index = out->index;
	state->last_term = state->term;
	if (!state->held || qw_mutant(QW_WITHOUT_HELD_LEADER)) {
		state->persisted_index = out->index;
		state->match_index[me] = out->index;
		/* Nobody else can hold it yet, and what others hold was counted when they said so. */
		if (state->quorum <= 1)
			qw_count(state, out);
	}
}

/* Whether a request asks for what only a replica's host does: to move the log's time, to bundle commands, or to
 * cut one into pieces without a session. Such pieces are known by their number alone, so a client's could be
 * taken for those of a host and end up in the middle of another command. */
static inline __attribute__((always_inline)) int
qw_for_hosts_only(const struct qw_header *in)
{
	if ((in->flags & (QW_FLAG_TICK | QW_FLAG_REFUSED | QW_FLAG_BUNDLE)) != 0)
		return !qw_mutant(QW_WITHOUT_CLIENT_FLAGS);
	if ((in->flags & QW_FLAG_FRAGMENT) != 0 && in->session == 0)
		return !qw_mutant(QW_WITHOUT_CLIENT_PIECES);
	return 0;
}

/* A client's request; a follower sends it on. */
static inline __attribute__((always_inline)) void
qw_on_request(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	if (in->sender != QW_SENDER_CLIENT && !qw_mutant(QW_WITHOUT_CLIENT_SENDER))
		return qw_to_software(out, QW_REASON_STRANGER);
	if (qw_for_hosts_only(in))
		return qw_to_software(out, QW_REASON_MALFORMED);
	if (state->role == QW_ROLE_LEADER)
		return qw_assign(state, in, in->payload_bytes, out);
	if (in->payload_bytes > QW_PAYLOAD_BYTES_MAX - QW_ORIGIN_BYTES)
		return qw_to_software(out, QW_REASON_MALFORMED);
	qw_say(state, QW_KIND_FORWARD, 0, in->sequence, out);
	out->header.flags = in->flags & (QW_FLAG_BLIND | QW_FLAG_FRAGMENT);
	out->header.payload_bytes = (__u16)(in->payload_bytes + QW_ORIGIN_BYTES);
	out->header.payload_crc32c = in->payload_crc32c;
	out->header.session = in->session;
	out->actions = QW_FORWARD;
}

/* Leader: a request that a follower was asked; the plane stores it without who asked. */
static inline __attribute__((always_inline)) void
qw_on_forward(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	if (in->payload_bytes < QW_ORIGIN_BYTES)
		return qw_to_software(out, QW_REASON_MALFORMED);
	if (qw_for_hosts_only(in))
		return qw_to_software(out, QW_REASON_MALFORMED);
	qw_assign(state, in, (__u16)(in->payload_bytes - QW_ORIGIN_BYTES), out);
}

/* Follower: the leader's next entry, or one that is not the next. */
static inline __attribute__((always_inline)) void
qw_on_append(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	if (in->index <= state->start_index && !qw_mutant(QW_WITHOUT_BEFORE_START))
		return qw_drop(out, QW_REASON_BEFORE_START);
	if (in->index > QW_INDEX_MAX && !qw_mutant(QW_WITHOUT_LAST_INDEX_EVER))
		return qw_to_software(out, QW_REASON_MALFORMED);
	if (in->index <= state->last_index && !qw_mutant(QW_WITHOUT_REPEATED)) {
		/* Its acknowledgement was lost, or this packet was repeated on the way. */
		out->reason = QW_REASON_REPEATED;
		out->actions = QW_REPLY;
	} else if (in->index > state->last_index + 1 && !qw_mutant(QW_WITHOUT_NEXT_INDEX)) {
		out->reason = QW_REASON_GAP;
		out->actions = QW_REPLY;
	} else {
		if (in->previous_term != state->last_term && !qw_mutant(QW_WITHOUT_HISTORY))
			return qw_to_software(out, QW_REASON_HISTORY);
		if (qw_ring_full(state) && !qw_mutant(QW_WITHOUT_APPEND_RING))
			return qw_drop(out, QW_REASON_RING_FULL);
		out->actions = QW_STORE;
		out->index = in->index;
		state->last_index = in->index;
		state->last_term = state->term;
		if (!state->held || qw_mutant(QW_WITHOUT_HELD_FOLLOWER)) {
			state->persisted_index = in->index;
			out->actions |= QW_REPLY;
		}
	}
	qw_learn_commit(state, in->commit_index, out);
	if (out->reason == QW_REASON_GAP)
		qw_say(state, QW_KIND_RETRANSMIT, state->last_index + 1, state->round, out);
	else if (out->actions & QW_REPLY)
		qw_say(state, QW_KIND_APPEND_OK,
		       qw_mutant(QW_WITHOUT_HELD_REPLY) ? state->last_index :
							  state->persisted_index,
		       state->round, out);
}

/* Follower: the leader lives, and says how far it is. */
static inline __attribute__((always_inline)) void
qw_on_heartbeat(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	if (in->index > QW_INDEX_MAX && !qw_mutant(QW_WITHOUT_HEARTBEAT_INDEX))
		return qw_to_software(out, QW_REASON_MALFORMED);
	if (in->sequence > state->round || qw_mutant(QW_WITHOUT_ROUND_MONOTONE))
		state->round = in->sequence;
	out->actions = QW_REPLY;
	qw_learn_commit(state, in->commit_index, out);
	if (in->index > state->last_index) {
		out->reason = QW_REASON_GAP;
		qw_say(state, QW_KIND_RETRANSMIT, state->last_index + 1, state->round, out);
	} else {
		qw_say(state, QW_KIND_HEARTBEAT_OK, state->persisted_index, state->round, out);
	}
}

/* Leader: a member says what it holds, or what it misses. */
static inline __attribute__((always_inline)) void
qw_on_answer(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	__u32 slot = in->sender;
	__u64 *heard;
	__u64 *match;

	if (slot >= QW_REPLICAS_MAX) /* checked already; here where the verifier sees it */
		return qw_to_software(out, QW_REASON_STRANGER);
	heard = &state->heard_round[slot];
	match = &state->match_index[slot];
	if (in->index > state->last_index && !qw_mutant(QW_WITHOUT_BEYOND_LAST))
		return qw_to_software(out, QW_REASON_BEYOND_LAST);
	/* A round that was never sent would be a lease that nobody gave. */
	if (in->sequence > state->round && !qw_mutant(QW_WITHOUT_ROUND_SENT))
		return qw_to_software(out, QW_REASON_MALFORMED);
	if (in->kind == QW_KIND_RETRANSMIT) {
		if (in->index <= state->start_index && !qw_mutant(QW_WITHOUT_RESEND_START))
			return qw_to_software(out, QW_REASON_BEHIND_RING);
		if (state->last_index - in->index >= state->ring_slots &&
		    !qw_mutant(QW_WITHOUT_BEHIND_RING))
			return qw_to_software(out, QW_REASON_BEHIND_RING);
		/* One by one they would take the fast path's time; software sends many at once. Where all have to
		 * hold an entry, nothing goes on before this one is repaired. */
		if (state->quorum < state->replicas &&
		    state->last_index - in->index >= QW_REPAIR_ENTRIES_MAX)
			return qw_to_software(out, QW_REASON_BEHIND_RING);
		out->index = in->index;
		out->actions = QW_RESEND;
	}
	if (in->sequence > *heard || qw_mutant(QW_WITHOUT_HEARD_MONOTONE))
		*heard = in->sequence;
	/* Who asks for an entry does not hold it. */
	if (in->kind == QW_KIND_RETRANSMIT && !qw_mutant(QW_WITHOUT_QUESTION))
		return;
	if (in->index <= state->start_index && !qw_mutant(QW_WITHOUT_ANSWER_START))
		return;
	if (in->index <= *match && !qw_mutant(QW_WITHOUT_MATCH_MONOTONE))
		return;
	*match = in->index;
	if (in->index > state->commit_index)
		qw_count_member(state, in->index, out);
}

/* A packet from another replica of this term. */
static inline __attribute__((always_inline)) void
qw_on_member(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	if (state->role == QW_ROLE_LEADER) {
		switch (in->kind) {
		case QW_KIND_FORWARD:
			return qw_on_forward(state, in, out);
		case QW_KIND_APPEND_OK:
		case QW_KIND_HEARTBEAT_OK:
		case QW_KIND_RETRANSMIT:
			return qw_on_answer(state, in, out);
		default:
			return qw_to_software(out, QW_REASON_UNEXPECTED);
		}
	}
	/* Sent on once; more could go round for ever. */
	if (in->kind == QW_KIND_FORWARD && !qw_mutant(QW_WITHOUT_FORWARD_ONCE))
		return qw_drop(out, QW_REASON_UNEXPECTED);
	if (in->sender != state->leader && !qw_mutant(QW_WITHOUT_LEADER_SENDER))
		return qw_to_software(out, QW_REASON_STRANGER);
	switch (in->kind) {
	case QW_KIND_APPEND:
		return qw_on_append(state, in, out);
	case QW_KIND_HEARTBEAT:
		return qw_on_heartbeat(state, in, out);
	default:
		return qw_to_software(out, QW_REASON_UNEXPECTED);
	}
}

/* One packet that has passed qw_verify.h. This and what follows is inlined, for a caller may hold a lock of the
 * kernel's under which its verifier, before Linux 6.9, refuses calls. */
static inline __attribute__((always_inline)) void
qw_step(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	qw_clear(out);
	if (state->role != QW_ROLE_LEADER && state->role != QW_ROLE_FOLLOWER &&
	    !qw_mutant(QW_WITHOUT_ROLE_OFF))
		return qw_to_software(out, QW_REASON_OFF);
	if (in->version != QW_VERSION)
		return qw_to_software(out, QW_REASON_VERSION);
	if (in->group != state->group && !qw_mutant(QW_WITHOUT_GROUP))
		return qw_to_software(out, QW_REASON_GROUP);
	if (in->payload_bytes > QW_PAYLOAD_BYTES_MAX)
		return qw_to_software(out, QW_REASON_MALFORMED);
	if (in->kind == QW_KIND_REQUEST)
		return qw_on_request(state, in, out);
	if (in->term < state->term && !qw_mutant(QW_WITHOUT_OLD_TERM))
		return qw_to_software(out, QW_REASON_TERM_OLD);
	if (in->term > state->term && !qw_mutant(QW_WITHOUT_NEW_TERM))
		return qw_to_software(out, QW_REASON_TERM_NEW);
	/* The group's size is the protocol's check, the array's size the verifier's. */
	if (in->sender >= state->replicas && !qw_mutant(QW_WITHOUT_MEMBER))
		return qw_to_software(out, QW_REASON_STRANGER);
	if (in->sender >= QW_REPLICAS_MAX)
		return qw_to_software(out, QW_REASON_STRANGER);
	/* Its own words, sent back, must not count as another's. */
	if (in->sender == state->me && !qw_mutant(QW_WITHOUT_NOT_MYSELF))
		return qw_to_software(out, QW_REASON_STRANGER);
	qw_on_member(state, in, out);
}

/* Leader: a command from its own host, in the fields of a REQUEST. */
static inline __attribute__((always_inline)) void
qw_submit(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	qw_clear(out);
	if (state->role != QW_ROLE_LEADER && !qw_mutant(QW_WITHOUT_SUBMIT_ROLE))
		return qw_to_software(out, QW_REASON_OFF);
	if (in->payload_bytes > QW_PAYLOAD_BYTES_MAX)
		return qw_to_software(out, QW_REASON_MALFORMED);
	qw_assign(state, in, in->payload_bytes, out);
}

/* The host has made everything up to here durable: says so. */
static inline __attribute__((always_inline)) void
qw_persisted(struct qw_registers *state, __u64 upto, struct qw_outcome *out)
{
	__u32 me = state->me;

	qw_clear(out);
	if (state->role != QW_ROLE_LEADER && state->role != QW_ROLE_FOLLOWER &&
	    !qw_mutant(QW_WITHOUT_PERSISTED_ROLE))
		return qw_drop(out, QW_REASON_OFF);
	if (!state->held && !qw_mutant(QW_WITHOUT_PERSISTED_HELD))
		return qw_drop(out, QW_REASON_UNEXPECTED);
	if (me >= state->replicas || me >= QW_REPLICAS_MAX)
		return qw_drop(out, QW_REASON_STRANGER);
	if (upto > state->last_index && !qw_mutant(QW_WITHOUT_PERSISTED_WITHIN_LAST))
		return qw_drop(out, QW_REASON_BEYOND_LAST);
	if (upto <= state->persisted_index && !qw_mutant(QW_WITHOUT_PERSISTED_MONOTONE))
		return qw_drop(out, QW_REASON_REPEATED);
	state->persisted_index = upto;
	if (state->role == QW_ROLE_LEADER) {
		state->match_index[me] = upto;
		qw_count(state, out);
	} else {
		out->actions = QW_REPLY;
		qw_say(state, QW_KIND_APPEND_OK, upto, state->round, out);
	}
}

/* Leader: says that it lives. Rounds ascend. */
static inline __attribute__((always_inline)) void qw_heartbeat(struct qw_registers *state, __u64 round, struct qw_outcome *out)
{
	__u32 me = state->me;

	qw_clear(out);
	if (state->role != QW_ROLE_LEADER && !qw_mutant(QW_WITHOUT_HEARTBEAT_ROLE))
		return qw_drop(out, QW_REASON_OFF);
	if (me >= state->replicas || me >= QW_REPLICAS_MAX)
		return qw_drop(out, QW_REASON_STRANGER);
	/* An answer to the first sending of a round would count for the second. */
	if (round <= state->round && !qw_mutant(QW_WITHOUT_ASCENDING_ROUNDS))
		return qw_drop(out, QW_REASON_REPEATED);
	state->round = round;
	state->heard_round[me] = round;
	out->actions = QW_FANOUT;
	qw_say(state, QW_KIND_HEARTBEAT, state->last_index, round, out);
}

/* The host has taken everything up to here: those slots may be reused. Whether that was so. */
static inline __attribute__((always_inline)) int qw_release(struct qw_registers *state, __u64 upto)
{
	if (upto > state->last_index && !qw_mutant(QW_WITHOUT_RELEASED_WITHIN_LAST))
		return 0;
	if (qw_mutant(QW_WITHOUT_RELEASED_MONOTONE))
		state->released_index = upto;
	else
		state->released_index = qw_max(state->released_index, upto);
	return 1;
}

#endif

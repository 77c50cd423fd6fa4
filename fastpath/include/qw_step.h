/* SPDX-License-Identifier: Apache-2.0 */
/* The common case: what one group's plane does about one packet. Pure: registers and a header in,
 * registers and an outcome out. It sends, stores and counts nothing itself, and it sees only
 * packets that qw_verify.h has let through. What an outcome means stands in qw_outcome.h. */
#ifndef QW_STEP_H
#define QW_STEP_H

#include "qw_mutants.h"
#include "qw_outcome.h"
#include "qw_shared.h"
#include "qw_wire.h"

/* What a command's flags say of the entry it becomes. */
#define QW_FLAGS_OF_ENTRIES \
	(QW_FLAG_BLIND | QW_FLAG_TICK | QW_FLAG_FRAGMENT | QW_FLAG_BUNDLE)

static inline __attribute__((always_inline)) __u64 qw_min(__u64 one, __u64 other)
{
	return one < other ? one : other;
}

/* Whether a plane moves nothing. */
static inline __attribute__((always_inline)) int qw_is_off(const struct qw_registers *state)
{
	return state->role != QW_ROLE_LEADER && state->role != QW_ROLE_FOLLOWER;
}

/* Whether registers are such as a host may switch a plane on with. */
static inline int qw_registers_sound(const struct qw_registers *state)
{
	__u64 last = state->last_index;
	__u32 ring = state->ring_slots;
	__u32 replicas = state->replicas;
	int leads = state->role == QW_ROLE_LEADER;

	return !QW_BAD(qw_is_off(state), SOUND_ROLE) &&
	       !QW_BAD(replicas == 0 || replicas > QW_REPLICAS_MAX, SOUND_REPLICAS) &&
	       !QW_BAD(state->me >= replicas || state->leader >= replicas, SOUND_SLOTS) &&
	       !QW_BAD(leads != (state->me == state->leader), SOUND_LEADER) &&
	       /* Two quorums must meet, or two leaders could commit different entries at one
	        * index. */
	       !QW_BAD(state->quorum > replicas || 2 * state->quorum <= replicas, SOUND_QUORUM) &&
	       !QW_BAD(ring == 0 || (ring & (ring - 1)) != 0, SOUND_RING) &&
	       !QW_BAD(state->window == 0 || state->window > ring, SOUND_WINDOW) &&
	       !QW_BAD(state->held > 1, SOUND_HELD) &&
	       !QW_BAD(state->term == 0 || state->last_term > state->term, SOUND_TERMS) &&
	       !QW_BAD(last > QW_INDEX_MAX, SOUND_LAST) &&
	       !QW_BAD(state->commit_index > last, SOUND_COMMIT) &&
	       !QW_BAD(state->start_index > last, SOUND_START) &&
	       !QW_BAD(state->released_index > last, SOUND_RELEASED) &&
	       !QW_BAD(state->persisted_index > last, SOUND_PERSISTED);
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

/* 1 if one number is at least the other, else 0. Without a branch: the verifier follows both ways
 * of each, and gates would compute both. */
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
	__u64 counted = QW_VALUE(qw_members(state), ~0ULL, COUNT_MEMBERS);
	__u64 quorum = QW_VALUE(state->quorum, 1, QUORUM);

	return qw_at_least(qw_holders(state, counted, index), quorum);
}

/* An entry of an earlier term that a quorum holds may still be replaced. */
static inline __attribute__((always_inline)) __u64
qw_is_of_term(const struct qw_registers *state, __u64 index)
{
	return QW_VALUE(1 - qw_at_least(state->start_index, index), 1, OWN_TERM);
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

/* Leader: the same when a member has said that it holds an index behind the commit index. What was
 * said before has been counted, so nothing behind that index can be committed now, and mostly one
 * look is enough. */
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
	__u64 known = QW_VALUE(qw_min(committed, state->last_index), committed, COMMIT_WITHIN_LAST);

	if (QW_VALUE(known > state->commit_index, known != state->commit_index, COMMIT_MONOTONE))
		qw_commit(state, known, out);
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

	QW_TO_SOFTWARE_IF(state->last_index >= QW_INDEX_MAX, LAST_INDEX_EVER);
	QW_TO_SOFTWARE_IF(me >= state->replicas || me >= QW_REPLICAS_MAX, ASSIGN_REGISTER);
	QW_DROP_IF(qw_ring_full(state), REQUEST_RING);
	QW_DROP_IF(state->last_index - state->commit_index >= state->window, REQUEST_WINDOW);
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
	if (!QW_BAD(state->held, HELD_LEADER)) {
		state->persisted_index = out->index;
		state->match_index[me] = out->index;
		/* Nobody else can hold it yet, and what others hold was counted when they said
		 * so. */
		if (state->quorum <= 1)
			qw_count(state, out);
	}
}

/* Whether a request asks for what only a replica's host does: to move the log's time, to bundle
 * commands, or to cut one into pieces without a session. Such pieces are known by their number
 * alone, so a client's could be taken for those of a host and end up in the middle of another
 * command. */
static inline __attribute__((always_inline)) int
qw_for_hosts_only(const struct qw_header *in)
{
	if (QW_BAD((in->flags & (QW_FLAG_TICK | QW_FLAG_REFUSED | QW_FLAG_BUNDLE)) != 0, CLIENT_FLAGS))
		return 1;
	return QW_BAD((in->flags & QW_FLAG_FRAGMENT) != 0 && in->session == 0, CLIENT_PIECES);
}

/* A client's request; a follower sends it on. */
static inline __attribute__((always_inline)) void
qw_on_request(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	QW_TO_SOFTWARE_IF(in->sender != QW_SENDER_CLIENT, CLIENT_SENDER);
	if (qw_for_hosts_only(in))
		return qw_to_software(out, QW_REASON_MALFORMED);
	if (state->role == QW_ROLE_LEADER)
		return qw_assign(state, in, in->payload_bytes, out);
	QW_TO_SOFTWARE_IF(in->payload_bytes > QW_PAYLOAD_BYTES_MAX - QW_ORIGIN_BYTES, REQUEST_BYTES);
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
	QW_TO_SOFTWARE_IF(in->payload_bytes < QW_ORIGIN_BYTES, FORWARD_BYTES);
	if (qw_for_hosts_only(in))
		return qw_to_software(out, QW_REASON_MALFORMED);
	qw_assign(state, in, (__u16)(in->payload_bytes - QW_ORIGIN_BYTES), out);
}

/* Follower: the leader's next entry, or one that is not the next. */
static inline __attribute__((always_inline)) void
qw_on_append(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	QW_DROP_IF(in->index <= state->start_index, BEFORE_START);
	QW_TO_SOFTWARE_IF(in->index > QW_INDEX_MAX, APPEND_INDEX);
	if (QW_BAD(in->index <= state->last_index, REPEATED)) {
		/* Its acknowledgement was lost, or this packet was repeated on the way. */
		out->reason = QW_REASON_OF_REPEATED;
		out->actions = QW_REPLY;
	} else if (QW_BAD(in->index > state->last_index + 1, NEXT_INDEX)) {
		out->reason = QW_REASON_OF_NEXT_INDEX;
		out->actions = QW_REPLY;
	} else {
		QW_TO_SOFTWARE_IF(in->previous_term != state->last_term, HISTORY);
		QW_DROP_IF(qw_ring_full(state), APPEND_RING);
		out->actions = QW_STORE;
		out->index = in->index;
		state->last_index = in->index;
		state->last_term = state->term;
		if (!QW_BAD(state->held, HELD_FOLLOWER)) {
			state->persisted_index = in->index;
			out->actions |= QW_REPLY;
		}
	}
	qw_learn_commit(state, in->commit_index, out);
	if (out->reason == QW_REASON_GAP)
		qw_say(state, QW_KIND_RETRANSMIT, state->last_index + 1, state->round, out);
	else if (out->actions & QW_REPLY)
		qw_say(state, QW_KIND_APPEND_OK,
		       QW_VALUE(state->persisted_index, state->last_index, HELD_REPLY), state->round, out);
}

/* Follower: the leader lives, and says how far it is. */
static inline __attribute__((always_inline)) void
qw_on_heartbeat(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	QW_TO_SOFTWARE_IF(in->index > QW_INDEX_MAX, HEARTBEAT_INDEX);
	if (!QW_BAD(in->sequence <= state->round, ROUND_MONOTONE))
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
	__u64 missing;
	__u64 *heard;
	__u64 *match;

	if (slot >= QW_REPLICAS_MAX) /* checked already; here where the verifier sees it */
		return qw_to_software(out, QW_REASON_STRANGER);
	heard = &state->heard_round[slot];
	match = &state->match_index[slot];
	QW_TO_SOFTWARE_IF(in->index > state->last_index, BEYOND_LAST);
	/* A round that was never sent would be a lease that nobody gave. */
	QW_TO_SOFTWARE_IF(in->sequence > state->round, ROUND_SENT);
	if (in->kind == QW_KIND_RETRANSMIT) {
		missing = state->last_index - in->index;
		QW_TO_SOFTWARE_IF(in->index <= state->start_index, RESEND_START);
		QW_TO_SOFTWARE_IF(missing >= state->ring_slots, BEHIND_RING);
		/* One by one they would take the fast path's time; software sends many at once.
		 * Where all have to hold an entry, nothing goes on before this one is repaired. */
		if (state->quorum < state->replicas)
			QW_TO_SOFTWARE_IF(missing >= QW_REPAIR_ENTRIES_MAX, REPAIR);
		out->index = in->index;
		out->actions = QW_RESEND;
	}
	if (!QW_BAD(in->sequence <= *heard, HEARD_MONOTONE))
		*heard = in->sequence;
	/* Who asks for an entry does not hold it. */
	if (QW_BAD(in->kind == QW_KIND_RETRANSMIT, QUESTION))
		return;
	if (QW_BAD(in->index <= state->start_index, ANSWER_START))
		return;
	if (QW_BAD(in->index <= *match, MATCH_MONOTONE))
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
	QW_DROP_IF(in->kind == QW_KIND_FORWARD, FORWARD_ONCE);
	QW_TO_SOFTWARE_IF(in->sender != state->leader, LEADER_SENDER);
	switch (in->kind) {
	case QW_KIND_APPEND:
		return qw_on_append(state, in, out);
	case QW_KIND_HEARTBEAT:
		return qw_on_heartbeat(state, in, out);
	default:
		return qw_to_software(out, QW_REASON_UNEXPECTED);
	}
}

/* One packet that has passed qw_verify.h. This and what follows is inlined, for a caller may hold a
 * lock of the kernel's under which its verifier, before Linux 6.9, refuses calls. */
static inline __attribute__((always_inline)) void
qw_step(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	qw_clear(out);
	QW_TO_SOFTWARE_IF(qw_is_off(state), OFF);
	QW_TO_SOFTWARE_IF(in->version != QW_VERSION, STEP_VERSION);
	QW_TO_SOFTWARE_IF(in->group != state->group, GROUP);
	QW_TO_SOFTWARE_IF(in->payload_bytes > QW_PAYLOAD_BYTES_MAX, STEP_BYTES);
	if (in->kind == QW_KIND_REQUEST)
		return qw_on_request(state, in, out);
	QW_TO_SOFTWARE_IF(in->term < state->term, TERM_OLD);
	QW_TO_SOFTWARE_IF(in->term > state->term, TERM_NEW);
	/* The group's size is the protocol's check, the array's size the verifier's. */
	QW_TO_SOFTWARE_IF(in->sender >= state->replicas, MEMBER);
	QW_TO_SOFTWARE_IF(in->sender >= QW_REPLICAS_MAX, SENDER_REGISTER);
	/* Its own words, sent back, must not count as another's. */
	QW_TO_SOFTWARE_IF(in->sender == state->me, NOT_MYSELF);
	qw_on_member(state, in, out);
}

/* Leader: a command from its own host, in the fields of a REQUEST. */
static inline __attribute__((always_inline)) void
qw_submit(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	qw_clear(out);
	QW_TO_SOFTWARE_IF(state->role != QW_ROLE_LEADER, SUBMIT_ROLE);
	QW_TO_SOFTWARE_IF(in->payload_bytes > QW_PAYLOAD_BYTES_MAX, SUBMIT_BYTES);
	qw_assign(state, in, in->payload_bytes, out);
}

/* The host has made everything up to here durable: says so. */
static inline __attribute__((always_inline)) void
qw_persisted(struct qw_registers *state, __u64 upto, struct qw_outcome *out)
{
	__u32 me = state->me;

	qw_clear(out);
	QW_DROP_IF(qw_is_off(state), PERSISTED_ROLE);
	QW_DROP_IF(!state->held, PERSISTED_HELD);
	QW_DROP_IF(me >= state->replicas || me >= QW_REPLICAS_MAX, PERSISTED_REGISTER);
	QW_DROP_IF(upto > state->last_index, PERSISTED_WITHIN_LAST);
	QW_DROP_IF(upto <= state->persisted_index, PERSISTED_MONOTONE);
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
	QW_DROP_IF(state->role != QW_ROLE_LEADER, HEARTBEAT_ROLE);
	QW_DROP_IF(me >= state->replicas || me >= QW_REPLICAS_MAX, HEARTBEAT_REGISTER);
	/* An answer to the first sending of a round would count for the second. */
	QW_DROP_IF(round <= state->round, ASCENDING_ROUNDS);
	state->round = round;
	state->heard_round[me] = round;
	out->actions = QW_FANOUT;
	qw_say(state, QW_KIND_HEARTBEAT, state->last_index, round, out);
}

/* The host has taken everything up to here: those slots may be reused. Whether that was so. */
static inline __attribute__((always_inline)) int qw_release(struct qw_registers *state, __u64 upto)
{
	if (QW_BAD(upto > state->last_index, RELEASED_WITHIN_LAST))
		return 0;
	state->released_index =
		QW_VALUE(qw_max(state->released_index, upto), upto, RELEASED_MONOTONE);
	return 1;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The common case of the Paxos roles: what a coordinator or an acceptor does about one packet.
 * Pure, as qw_step.h: registers, the slot of the packet's instance and a header in, the same and
 * an outcome out. It sends, stores and counts nothing itself, and it sees only packets that
 * qw_verify.h has let through. One packet touches one slot, and what is sent is the same packet
 * rewritten, or a header: a switch can do it (CAANS, section 3.1 and figure 5).
 *
 * What is sent stands in `header`. With QW_HOLD it is the host that sends it, as QW_FANOUT or
 * QW_REPLY says, once it is durable.
 *
 * A round is a count times QW_ROUND_OWNERS and whose it is, so that no two coordinators have one
 * round. Two that were given one number are found out by what each draws for its round: a
 * majority promises it to one of them only. */
#ifndef QW_PAXOS_H
#define QW_PAXOS_H

#include "qw_mutants.h"
#include "qw_outcome.h"
#include "qw_shared.h"
#include "qw_wire.h"

/* What a SUBMIT's flags say of the value it becomes. */
#define QW_FLAGS_OF_VALUES QW_FLAG_FRAGMENT

/* Whether a box does nothing but forward. */
static inline __attribute__((always_inline)) int
qw_paxos_is_off(const struct qw_paxos_registers *state)
{
	return state->role != QW_PAXOS_ROLE_COORDINATOR && state->role != QW_PAXOS_ROLE_ACCEPTOR;
}

/* Whose round it is. */
static inline __attribute__((always_inline)) __u64 qw_round_owner(__u64 round)
{
	return round % QW_ROUND_OWNERS;
}

/* Whether registers are such as a host may switch a role on with. */
static inline int qw_paxos_sound(const struct qw_paxos_registers *state)
{
	__u32 window = state->window;
	int coordinates = state->role == QW_PAXOS_ROLE_COORDINATOR;

	return !QW_BAD(qw_paxos_is_off(state), PAXOS_SOUND_ROLE) &&
	       !QW_BAD(state->configuration == 0, PAXOS_SOUND_CONFIGURATION) &&
	       !QW_BAD(window == 0 || (window & (window - 1)) != 0, PAXOS_SOUND_WINDOW) &&
	       !QW_BAD(state->held > 1, PAXOS_SOUND_HELD) &&
	       !QW_BAD(state->trimmed > QW_INDEX_MAX, PAXOS_SOUND_TRIMMED) &&
	       !QW_BAD(coordinates && state->round < QW_ROUND_OWNERS, PAXOS_SOUND_ROUND) &&
	       !QW_BAD(coordinates && qw_round_owner(state->round) != state->me, PAXOS_SOUND_OWNER) &&
	       !QW_BAD(coordinates && state->next_instance <= state->trimmed, PAXOS_SOUND_NEXT);
}

/* What every packet of a role begins with. */
static inline __attribute__((always_inline)) void
qw_paxos_say(const struct qw_paxos_registers *state, enum qw_kind kind, __u64 instance, __u64 round,
	     struct qw_outcome *out)
{
	out->header.magic = QW_MAGIC;
	out->header.version = QW_VERSION;
	out->header.kind = (__u8)kind;
	out->header.sender = state->me;
	out->header.group = state->group;
	out->header.term = round;
	out->header.index = instance;
	out->header.commit_index = state->configuration;
}

/* Whether an instance is not one of the window's: as many behind `trimmed` as there are slots. */
static inline __attribute__((always_inline)) int
qw_paxos_is_outside(const struct qw_paxos_registers *state, __u64 instance)
{
	return instance - state->trimmed - 1 >= state->window;
}

/* Whether flags are those of a value: what an entry of a replica says, none says. */
static inline __attribute__((always_inline)) int qw_paxos_flags_fit(__u32 flags)
{
	return (flags & ~(__u32)(QW_FLAGS_OF_VALUES | QW_FLAG_EPOCH)) == 0;
}

/* Coordinator: gives a value its instance. */
static inline __attribute__((always_inline)) void
qw_paxos_on_submit(struct qw_paxos_registers *state, const struct qw_header *in,
		   struct qw_outcome *out)
{
	QW_TO_SOFTWARE_IF(in->sender != QW_SENDER_CLIENT, PAXOS_SUBMIT_SENDER);
	/* Without a session it would be a no-op: decided, and delivered to nobody. */
	QW_TO_SOFTWARE_IF(in->session == 0, PAXOS_SUBMIT_SESSION);
	QW_TO_SOFTWARE_IF(!qw_paxos_flags_fit(in->flags), PAXOS_SUBMIT_FLAGS);
	QW_TO_SOFTWARE_IF(state->next_instance > QW_INDEX_MAX, PAXOS_LAST_INSTANCE);
	QW_DROP_IF(qw_paxos_is_outside(state, state->next_instance), PAXOS_SUBMIT_WINDOW);
	qw_paxos_say(state, QW_KIND_P2A, state->next_instance, state->round, out);
	out->header.flags = in->flags & QW_FLAGS_OF_VALUES;
	out->header.payload_bytes = in->payload_bytes;
	out->header.payload_crc32c = in->payload_crc32c;
	out->header.session = in->session;
	out->header.sequence = in->sequence;
	out->index = state->next_instance;
	out->actions = QW_FANOUT;
	state->next_instance++;
}

/* Acceptor: what leaves it is said by the host where it has to be durable first. */
static inline __attribute__((always_inline)) void
qw_paxos_send(const struct qw_paxos_registers *state, __u32 how, struct qw_outcome *out)
{
	out->actions |= how;
	if (QW_BAD(state->held, PAXOS_HELD))
		out->actions |= QW_HOLD;
}

/* Acceptor: neither promised nor voted. Says up to where instances are forgotten, and the round
 * that was promised. Nothing rests on it, so it does not wait for a disk. */
static inline __attribute__((always_inline)) void
qw_paxos_refuse(const struct qw_paxos_registers *state, const struct qw_header *in, __u64 promised,
		enum qw_reason reason, struct qw_outcome *out)
{
	enum qw_kind kind = in->kind == QW_KIND_P1A ? QW_KIND_P1B : QW_KIND_P2B;

	qw_paxos_say(state, kind, in->index, promised, out);
	out->header.flags = QW_FLAG_REFUSED;
	out->header.previous_term = in->term;
	out->header.sequence = state->trimmed;
	out->reason = reason;
	out->actions = QW_REPLY;
}

/* A refusal that is said: leaves a function of the step if the condition holds. */
#define QW_PAXOS_REFUSE_IF(condition, promised, name) \
	do { \
		if (QW_BAD(condition, name)) \
			return qw_paxos_refuse(state, in, promised, QW_REASON_OF_##name, out); \
	} while (0)

/* Whether the slot knows something of the instance, and not of an earlier one. */
static inline __attribute__((always_inline)) int
qw_paxos_is_of(const struct qw_paxos_slot *slot, __u64 instance)
{
	return !QW_BAD(slot->instance != instance, PAXOS_SLOT_OF_INSTANCE);
}

/* The round that was promised for an instance, by whatever promise. */
static inline __attribute__((always_inline)) __u64
qw_paxos_promised(const struct qw_paxos_registers *state, const struct qw_paxos_slot *slot,
		  __u64 instance)
{
	__u64 single = qw_paxos_is_of(slot, instance) ? slot->round : 0;

	return qw_max(state->round, single);
}

/* Acceptor: makes a slot the instance's own. */
static inline __attribute__((always_inline)) void
qw_paxos_take_slot(struct qw_paxos_slot *slot, __u64 instance)
{
	const struct qw_paxos_slot empty = { .instance = instance };

	if (slot->instance != instance)
		*slot = empty;
}

/* Acceptor: says which question the promise answers. Who begins anew may ask for a round that it
 * had asked for before, and a promise given to its former life knows less. */
static inline __attribute__((always_inline)) void
qw_paxos_name_question(const struct qw_header *in, struct qw_outcome *out)
{
	out->header.commit_index ^= in->session;
}

/* Acceptor: a coordinator asks for a round, for all instances. Single ones that were promised
 * higher are in no register that one packet could look through, so the highest of them stands
 * for all. */
static inline __attribute__((always_inline)) void
qw_paxos_promise_all(struct qw_paxos_registers *state, const struct qw_header *in,
		     struct qw_outcome *out)
{
	QW_PAXOS_REFUSE_IF(in->term < state->round, state->round, PAXOS_ALL_OLD);
	QW_PAXOS_REFUSE_IF(in->term <= state->single_round, state->single_round, PAXOS_ALL_SINGLE);
	QW_PAXOS_REFUSE_IF(in->term == state->round && in->session != state->promised_to,
			   state->round, PAXOS_ALL_TAKEN);
	state->round = in->term;
	state->promised_to = in->session;
	qw_paxos_say(state, QW_KIND_P1B, 0, in->term, out);
	qw_paxos_name_question(in, out);
	out->header.previous_term = state->bound;
	out->header.session = state->trimmed;
	out->header.sequence = state->highest;
	qw_paxos_send(state, QW_REPLY, out);
}

/* Whether the slot has a vote of this instance. */
static inline __attribute__((always_inline)) int
qw_paxos_has_voted(const struct qw_paxos_slot *slot, __u64 instance)
{
	return qw_paxos_is_of(slot, instance) && slot->vote_round != 0;
}

/* Acceptor: behind `header` comes what was voted for this instance, if something was. */
static inline __attribute__((always_inline)) void
qw_paxos_add_vote(const struct qw_paxos_slot *slot, __u64 instance, struct qw_outcome *out)
{
	if (!qw_paxos_has_voted(slot, instance))
		return;
	out->header.previous_term = slot->vote_round;
	out->header.flags = slot->flags;
	out->header.payload_bytes = slot->payload_bytes;
	out->header.payload_crc32c = slot->payload_crc32c;
	out->header.session = slot->session;
	out->header.sequence = slot->sequence;
	out->index = instance;
	out->actions |= QW_VOTE;
}

/* Acceptor: a coordinator asks for a round, for one instance. Who has lost its memory cannot tell
 * what it voted for up to its bound, until it votes there again: in a round that others have
 * promised, so it is what was decided, if something was. */
static inline __attribute__((always_inline)) void
qw_paxos_promise(struct qw_paxos_registers *state, struct qw_paxos_slot *slot,
		 const struct qw_header *in, struct qw_outcome *out)
{
	__u64 promised = qw_paxos_promised(state, slot, in->index);
	__u64 holder = state->round == promised ? state->promised_to : slot->promised_to;

	QW_DROP_IF(in->index <= state->bound && !qw_paxos_has_voted(slot, in->index), PAXOS_BOUND);
	QW_PAXOS_REFUSE_IF(in->term < promised, promised, PAXOS_P1A_OLD);
	QW_PAXOS_REFUSE_IF(in->term == promised && in->session != holder, promised,
			   PAXOS_P1A_TAKEN);
	if (in->term > promised) {
		qw_paxos_take_slot(slot, in->index);
		slot->round = in->term;
		slot->promised_to = in->session;
		state->single_round = qw_max(state->single_round, in->term);
	}
	qw_paxos_say(state, QW_KIND_P1B, in->index, in->term, out);
	qw_paxos_name_question(in, out);
	qw_paxos_add_vote(slot, in->index, out);
	qw_paxos_send(state, QW_REPLY, out);
}

/* Whether the slot's vote is for this value. */
static inline __attribute__((always_inline)) int
qw_paxos_is_value(const struct qw_paxos_slot *slot, const struct qw_header *in)
{
	return slot->session == in->session && slot->sequence == in->sequence &&
	       slot->payload_crc32c == in->payload_crc32c &&
	       slot->payload_bytes == in->payload_bytes &&
	       slot->flags == (in->flags & QW_FLAGS_OF_VALUES);
}

/* Acceptor: the slot has its vote for this value. A round that was not asked for before was
 * promised by others, or nobody could vote in it. */
static inline __attribute__((always_inline)) void
qw_paxos_keep(struct qw_paxos_slot *slot, const struct qw_header *in)
{
	qw_paxos_take_slot(slot, in->index);
	if (slot->round < in->term) {
		slot->round = in->term;
		slot->promised_to = 0;
	}
	slot->vote_round = in->term;
	slot->session = in->session;
	slot->sequence = in->sequence;
	slot->payload_crc32c = in->payload_crc32c;
	slot->payload_bytes = in->payload_bytes;
	slot->flags = in->flags & QW_FLAGS_OF_VALUES;
}

/* Acceptor: votes, unless a higher round was promised. */
static inline __attribute__((always_inline)) void
qw_paxos_vote(struct qw_paxos_registers *state, struct qw_paxos_slot *slot,
	      const struct qw_header *in, struct qw_outcome *out)
{
	__u64 promised = qw_paxos_promised(state, slot, in->index);

	QW_TO_SOFTWARE_IF(!qw_paxos_flags_fit(in->flags & ~(__u32)QW_FLAG_TELL), PAXOS_P2A_FLAGS);
	QW_PAXOS_REFUSE_IF(in->term < promised, promised, PAXOS_P2A_OLD);
	if (QW_BAD(qw_paxos_is_of(slot, in->index) && slot->vote_round == in->term, PAXOS_REPEATED)) {
		QW_TO_SOFTWARE_IF(!qw_paxos_is_value(slot, in), PAXOS_TWO_VALUES);
		out->reason = QW_REASON_OF_PAXOS_REPEATED;
	} else {
		qw_paxos_keep(slot, in);
		state->highest = qw_max(state->highest, in->index);
		out->index = in->index;
		out->actions = QW_STORE;
	}
	qw_paxos_say(state, QW_KIND_P2B, in->index, in->term, out);
	out->header.previous_term = in->term;
	out->header.flags = in->flags & QW_FLAGS_OF_VALUES;
	out->header.payload_bytes = in->payload_bytes;
	out->header.payload_crc32c = in->payload_crc32c;
	out->header.session = in->session;
	out->header.sequence = in->sequence;
	qw_paxos_send(state, in->flags & QW_FLAG_TELL ? QW_FANOUT | QW_REPLY : QW_FANOUT, out);
}

/* Acceptor: a coordinator's packet. */
static inline __attribute__((always_inline)) void
qw_paxos_on_round(struct qw_paxos_registers *state, struct qw_paxos_slot *slot,
		  const struct qw_header *in, struct qw_outcome *out)
{
	int asks = in->kind == QW_KIND_P1A;

	/* Which of two configurations knows of later lives is for software to say. */
	QW_TO_SOFTWARE_IF(in->commit_index != state->configuration, PAXOS_CONFIGURATION);
	QW_TO_SOFTWARE_IF(in->term < QW_ROUND_OWNERS, PAXOS_ROUND);
	QW_TO_SOFTWARE_IF(qw_round_owner(in->term) != in->sender, PAXOS_ROUND_OWNER);
	/* Nobody draws 0: it stands for a coordinator that this acceptor does not know. */
	QW_TO_SOFTWARE_IF(asks && in->session == 0, PAXOS_DRAWN);
	if (asks && in->index == 0)
		return qw_paxos_promise_all(state, in, out);
	QW_TO_SOFTWARE_IF(in->index - 1 >= QW_INDEX_MAX, PAXOS_INSTANCE);
	QW_PAXOS_REFUSE_IF(in->index <= state->trimmed, state->round, PAXOS_TRIMMED);
	QW_DROP_IF(qw_paxos_is_outside(state, in->index), PAXOS_WINDOW);
	if (asks)
		return qw_paxos_promise(state, slot, in, out);
	qw_paxos_vote(state, slot, in, out);
}

/* One packet that has passed qw_verify.h; `slot` is that of its instance modulo the window,
 * whatever it holds. All of it is inlined, as in qw_step.h. */
static inline __attribute__((always_inline)) void
qw_paxos_step(struct qw_paxos_registers *state, struct qw_paxos_slot *slot,
	      const struct qw_header *in, struct qw_outcome *out)
{
	qw_clear(out);
	QW_TO_SOFTWARE_IF(qw_paxos_is_off(state), PAXOS_OFF);
	QW_TO_SOFTWARE_IF(in->version != QW_VERSION, PAXOS_VERSION);
	QW_TO_SOFTWARE_IF(in->group != state->group, PAXOS_GROUP);
	QW_TO_SOFTWARE_IF(in->payload_bytes > QW_PAYLOAD_BYTES_MAX, PAXOS_BYTES);
	if (state->role == QW_PAXOS_ROLE_COORDINATOR) {
		if (in->kind == QW_KIND_SUBMIT)
			return qw_paxos_on_submit(state, in, out);
	} else if (in->kind == QW_KIND_P1A || in->kind == QW_KIND_P2A) {
		return qw_paxos_on_round(state, slot, in, out);
	}
	qw_to_software(out, QW_REASON_UNEXPECTED);
}

/* All learners have checkpointed everything up to here, or it was declared lost: those slots may
 * be reused. Whether there is such an instance. A coordinator goes on behind it: learners may have
 * recovered an instance before it gave that to a value. */
static inline __attribute__((always_inline)) int
qw_paxos_trim(struct qw_paxos_registers *state, __u64 upto)
{
	if (QW_BAD(upto > QW_INDEX_MAX, PAXOS_TRIM_WITHIN))
		return 0;
	if (!QW_BAD(upto < state->trimmed, PAXOS_TRIM_MONOTONE))
		state->trimmed = upto;
	if (state->role == QW_PAXOS_ROLE_COORDINATOR &&
	    QW_BAD(state->next_instance <= state->trimmed, PAXOS_TRIM_NEXT))
		state->next_instance = state->trimmed + 1;
	return 1;
}

#endif

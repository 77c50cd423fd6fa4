/* SPDX-License-Identifier: Apache-2.0 */
/* The headers' functions under names that Rust can call; adds nothing. Compiled once as it is, and
 * for the mutants' tests a second time with QW_MUTANTS. */
#include "qw_gap.h"
#include "qw_paxos.h"
#include "qw_recent.h"
#include "qw_step.h"
#include "qw_verify.h"

#ifdef QW_MUTANTS
#define QW_EXPORT(name) qw_mutated_##name
_Thread_local int qw_mutant_active;
_Thread_local int qw_mutant_reached;

void qw_mutant_set(int mutant);
int qw_mutant_was_reached(void);

void qw_mutant_set(int mutant)
{
	qw_mutant_active = mutant;
	qw_mutant_reached = 0;
}

int qw_mutant_was_reached(void)
{
	return qw_mutant_reached;
}
#else
#define QW_EXPORT(name) qw_real_##name
#endif

void QW_EXPORT(step)(struct qw_registers *, const struct qw_header *, struct qw_outcome *);
void QW_EXPORT(submit)(struct qw_registers *, const struct qw_header *, struct qw_outcome *);
void QW_EXPORT(persisted)(struct qw_registers *, __u64, struct qw_outcome *);
void QW_EXPORT(heartbeat)(struct qw_registers *, __u64, struct qw_outcome *);
int QW_EXPORT(gap_after)(struct qw_gap *, const struct qw_header *, const struct qw_outcome *);
int QW_EXPORT(release)(struct qw_registers *, __u64);
int QW_EXPORT(for_hosts_only)(const struct qw_header *);
int QW_EXPORT(registers_sound)(const struct qw_registers *);
int QW_EXPORT(check_form)(const __u8 *, __u32, struct qw_header *);
int QW_EXPORT(check_tag)(const struct qw_keys *, const struct qw_header *, const __u8 *, const __u8 *);
__u64 QW_EXPORT(tag)(const struct qw_tag_key *, const __u8 *, const __u8 *, __u32);
void QW_EXPORT(tag_key_make)(struct qw_tag_key *, const struct qw_key *);
__u64 QW_EXPORT(siphash)(const struct qw_key *, const __u8 *, __u32);
void QW_EXPORT(encode)(const struct qw_header *, __u8 *);
int QW_EXPORT(memcached_read)(const __u8 *, __u32, struct qw_memcached_set *);
void QW_EXPORT(memcached_command_head)(const struct qw_memcached_set *, __u8 *);
void QW_EXPORT(memcached_stored)(__u16, __u8 *);
__u32 QW_EXPORT(recent_place)(const __u8 *, __u32);
void QW_EXPORT(paxos_step)(struct qw_paxos_registers *, struct qw_paxos_slot *, const struct qw_header *,
			   struct qw_outcome *);
int QW_EXPORT(paxos_trim)(struct qw_paxos_registers *, __u64);
int QW_EXPORT(paxos_sound)(const struct qw_paxos_registers *);

void QW_EXPORT(step)(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	qw_step(state, in, out);
}

void QW_EXPORT(submit)(struct qw_registers *state, const struct qw_header *in, struct qw_outcome *out)
{
	qw_submit(state, in, out);
}

void QW_EXPORT(persisted)(struct qw_registers *state, __u64 upto, struct qw_outcome *out)
{
	qw_persisted(state, upto, out);
}

void QW_EXPORT(heartbeat)(struct qw_registers *state, __u64 round, struct qw_outcome *out)
{
	qw_heartbeat(state, round, out);
}

int QW_EXPORT(gap_after)(struct qw_gap *gap, const struct qw_header *in,
			 const struct qw_outcome *out)
{
	return (int)qw_gap_after(gap, in, out);
}

int QW_EXPORT(release)(struct qw_registers *state, __u64 upto)
{
	return qw_release(state, upto);
}

int QW_EXPORT(for_hosts_only)(const struct qw_header *in)
{
	return qw_for_hosts_only(in);
}

int QW_EXPORT(registers_sound)(const struct qw_registers *state)
{
	return qw_registers_sound(state);
}

int QW_EXPORT(check_form)(const __u8 *frame, __u32 frame_bytes, struct qw_header *header)
{
	return (int)qw_check_form(frame, frame_bytes, header);
}

int QW_EXPORT(check_tag)(const struct qw_keys *keys, const struct qw_header *header, const __u8 *frame,
			 const __u8 *payload)
{
	return (int)qw_check_tag(keys, header, frame, payload);
}

__u64 QW_EXPORT(tag)(const struct qw_tag_key *key, const __u8 *header, const __u8 *payload,
		     __u32 bytes)
{
	return qw_tag(key, header, payload, bytes);
}

void QW_EXPORT(tag_key_make)(struct qw_tag_key *made, const struct qw_key *secret)
{
	qw_tag_key_make(made, secret);
}

__u64 QW_EXPORT(siphash)(const struct qw_key *key, const __u8 *bytes, __u32 count)
{
	return qw_siphash(key, bytes, count);
}

void QW_EXPORT(encode)(const struct qw_header *header, __u8 *bytes)
{
	qw_header_encode(header, bytes);
}

int QW_EXPORT(memcached_read)(const __u8 *bytes, __u32 count, struct qw_memcached_set *set)
{
	struct qw_memcached_text text;

	if (count > QW_MEMCACHED_DATAGRAM_BYTES_MAX)
		return 0;
	__builtin_memcpy(text.bytes, bytes, count);
	return qw_memcached_read(&text, count, set);
}

void QW_EXPORT(memcached_command_head)(const struct qw_memcached_set *set, __u8 *bytes)
{
	qw_memcached_command_head(set, bytes);
}

void QW_EXPORT(memcached_stored)(__u16 request, __u8 *bytes)
{
	qw_memcached_stored(request, bytes);
}

__u32 QW_EXPORT(recent_place)(const __u8 *key, __u32 key_bytes)
{
	struct qw_memcached_text text;

	__builtin_memcpy(&text.bytes[QW_MEMCACHED_KEY_AT], key, key_bytes);
	return qw_recent_place(&text, key_bytes);
}

void QW_EXPORT(paxos_step)(struct qw_paxos_registers *state, struct qw_paxos_slot *slot,
			   const struct qw_header *in, struct qw_outcome *out)
{
	qw_paxos_step(state, slot, in, out);
}

int QW_EXPORT(paxos_trim)(struct qw_paxos_registers *state, __u64 upto)
{
	return qw_paxos_trim(state, upto);
}

int QW_EXPORT(paxos_sound)(const struct qw_paxos_registers *state)
{
	return qw_paxos_sound(state);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Memcached clients that ask over UDP: a plain `set` becomes an entry of the log, as if it had come
 * in a REQUEST; a `get` of one key is answered from the host's table while the leader's lease holds
 * and the table shows everything that is committed. All else is the host's, and so is what may not
 * be done at this moment.
 *
 * Why such a read is linearizable: whatever was answered before the read came is committed in the
 * registers, and the host had applied all of that before the table is looked at. No other leader
 * has answered anything before the lease ends. What the table shows beyond that is committed,
 * too. */
#ifndef QW_MEMCACHED_PROGRAM_H
#define QW_MEMCACHED_PROGRAM_H

#include "act.h"

/* What a client has sent: kept until the frame is no longer needed as it came. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct qw_memcached_text);
} texts SEC(".maps");

/* What became of a memcached client's datagram before any step. */
enum qw_memcached_fate {
	QW_MEMCACHED_PASSED, /* it is the host's */
	QW_MEMCACHED_ANSWERED,
	QW_MEMCACHED_COPIED, /* a copy of the frame becomes the answer */
	QW_MEMCACHED_SET, /* a step is to be taken */
	QW_MEMCACHED_BROKEN, /* the frame is lost */
};

static __always_inline int qw_leads(const struct qw_group *group)
{
	return *(const volatile __u8 *)&group->registers.role == QW_ROLE_LEADER || qw_left_out(QW_LEFT_OUT_LEADS);
}

/* Makes the frame what the client has sent again. The headers before it were not touched. */
static __always_inline int
qw_restore(struct xdp_md *ctx, const struct qw_frame *frame, const struct qw_memcached_text *text,
	   __u32 bytes)
{
	if (bytes == 0 || bytes > QW_MEMCACHED_DATAGRAM_BYTES_MAX || !qw_fit(ctx, frame, bytes))
		return 0;
	return bpf_xdp_store_bytes(ctx, frame->at, (void *)text->bytes, bytes) == 0;
}

/* A `get` of one key. */
static __always_inline enum qw_memcached_fate
qw_read_recent(struct xdp_md *ctx, struct qw_served *s, const struct qw_group *group,
	       const struct qw_leave *leave, const struct qw_memcached_text *text, __u32 key_bytes)
{
	__u32 bytes = s->frame.bytes;
	const struct qw_recent *found;
	__u32 place;
	__u32 length;
	__u64 version;

	/* Before the table is looked at: see above. */
	if (*(const volatile __u64 *)&leave->applied_index <
		    *(const volatile __u64 *)&group->registers.commit_index &&
	    !qw_left_out(QW_LEFT_OUT_APPLIED))
		return QW_MEMCACHED_PASSED;
	if (*(const volatile __u64 *)&leave->reads_until <= bpf_ktime_get_boot_ns() &&
	    !qw_left_out(QW_LEFT_OUT_READS_UNTIL))
		return QW_MEMCACHED_PASSED;
	barrier();
	place = s->frame.group_slot * QW_RECENT_PLACES + qw_recent_place(text, key_bytes);
	found = bpf_map_lookup_elem(&recent, &place);
	if (!found)
		return QW_MEMCACHED_PASSED;
	version = qw_recent_version(found);
	length = *(const volatile __u16 *)&found->of[version & 1].text_bytes;
	if (length == 0 || !qw_recent_is(&found->of[version & 1], text, key_bytes) ||
	    (length + QW_MEMCACHED_FRAME_BYTES > QW_RECENT_AMPLIFICATION_MAX * bytes &&
	     !qw_left_out(QW_LEFT_OUT_AMPLIFICATION)))
		return QW_MEMCACHED_PASSED;
	if (!qw_fit(ctx, &s->frame, QW_MEMCACHED_FRAME_BYTES + length)) {
		s->read.version = version;
		s->read.client = s->sender;
		s->read.place = place;
		return QW_MEMCACHED_COPIED;
	}
	if (!qw_write_recent(ctx, &s->frame, found, version, length))
		return qw_restore(ctx, &s->frame, text, bytes) ? QW_MEMCACHED_PASSED :
								 QW_MEMCACHED_BROKEN;
	/* The request's frame is the answer's: its number, and the first datagram of one. */
	if (!qw_address(ctx, &s->frame, &s->sender, QW_MEMCACHED_FRAME_BYTES + length))
		return QW_MEMCACHED_BROKEN;
	qw_tally(s->frame.group_slot, QW_COUNT_MEMCACHED_ANSWERED, 1);
	qw_tally(s->frame.group_slot, QW_COUNT_SENT, 1);
	return QW_MEMCACHED_ANSWERED;
}

/* A `get` whose frame has no room for the answer: a copy, for which the kernel takes new memory,
 * has. */
static __always_inline int qw_read_by_copy(struct xdp_md *ctx, struct qw_served *s)
{
	struct qw_copy_order order = {
		.kind = QW_COPY_READ,
		.group_slot = (__u8)s->frame.group_slot,
		.is_ipv6 = (__u8)s->frame.is_ipv6,
	};
	struct qw_copy_reads *reads = qw_own_reads();

	if (!reads)
		return qw_lose(QW_COUNT_LOST_UNSENT);
	s->read.number = ++reads->number;
	order.peer = (__u8)(s->read.number & (QW_READS - 1));
	order.me = (__u8)(s->read.number >> 8);
	order.replicas = (__u8)s->read.number;
	reads->of[order.peer & (QW_READS - 1)] = s->read;
	return qw_send_copies(ctx, &s->frame, &order, QW_READ_COPIES);
}

/* A plain `set`: makes the frame what a REQUEST of the command is, but for the header, which nobody
 * reads. */
static __always_inline enum qw_memcached_fate
qw_make_request(struct xdp_md *ctx, struct qw_served *s, const struct qw_group *group,
		const struct qw_memcached_text *text)
{
	const struct qw_memcached_set *set = &s->set;
	__u8 head[QW_MEMCACHED_COMMAND_HEAD_BYTES + 2];
	__u32 key_bytes = set->key_bytes;
	__u32 payload_bytes = QW_MEMCACHED_COMMAND_HEAD_BYTES + key_bytes + set->value_bytes;
	__u32 at = s->frame.at + QW_HEADER_BYTES;
	struct qw_header in = {
		.magic = QW_MAGIC,
		.version = QW_VERSION,
		.kind = QW_KIND_REQUEST,
		.sender = QW_SENDER_CLIENT,
		.flags = QW_FLAG_BLIND,
		.payload_bytes = (__u16)payload_bytes,
		.group = group->registers.group,
	};

	/* The value stays where it is; the key moves next to it, and the command's head before
	 * that. */
	s->set_moved = QW_HEADER_BYTES + QW_MEMCACHED_COMMAND_HEAD_BYTES + key_bytes - set->value_at;
	s->set_bytes = s->frame.bytes;
	if (key_bytes == 0 || key_bytes > QW_MEMCACHED_KEY_BYTES_MAX || s->set_moved > QW_HEADER_BYTES + 16)
		return QW_MEMCACHED_PASSED;
	if (bpf_xdp_adjust_head(ctx, -(int)s->set_moved))
		return QW_MEMCACHED_PASSED;
	s->frame.bytes = QW_HEADER_BYTES + payload_bytes;
	if (!qw_fit(ctx, &s->frame, s->frame.bytes))
		return QW_MEMCACHED_BROKEN;
	qw_memcached_command_head(set, head);
	if (bpf_xdp_store_bytes(ctx, at, head, QW_MEMCACHED_COMMAND_HEAD_BYTES) ||
	    bpf_xdp_store_bytes(ctx, at + QW_MEMCACHED_COMMAND_HEAD_BYTES,
				(void *)&text->bytes[QW_MEMCACHED_KEY_AT], key_bytes))
		return QW_MEMCACHED_BROKEN;
	in.payload_crc32c = qw_crc32c(ctx, at, payload_bytes);
	s->in = in;
	return QW_MEMCACHED_SET;
}

/* Whether the host lets us take a `set` now. */
static __always_inline int qw_may_set(const struct qw_leave *leave, __u64 now)
{
	return leave && (*(const volatile __u64 *)&leave->sets_until > now || qw_left_out(QW_LEFT_OUT_SETS_UNTIL));
}

/* Looks at a memcached client's datagram. */
static __always_inline enum qw_memcached_fate
qw_open_memcached(struct xdp_md *ctx, struct qw_served *s, const struct qw_group *group)
{
	const struct qw_leave *leave = qw_leave_of(s->frame.group_slot);
	__u32 bytes = s->frame.bytes;
	__u32 zero = 0;
	struct qw_memcached_text *text = bpf_map_lookup_elem(&texts, &zero);
	__u32 key_bytes;

	if (!leave || !text || !qw_leads(group))
		return QW_MEMCACHED_PASSED;
	if (bytes <= QW_MEMCACHED_KEY_AT || bytes > QW_MEMCACHED_DATAGRAM_BYTES_MAX ||
	    bpf_xdp_load_bytes(ctx, s->frame.at, text->bytes, bytes))
		return QW_MEMCACHED_PASSED;
	key_bytes = qw_memcached_read_get(text, bytes);
	if (key_bytes != 0)
		return qw_checksum_is_right(ctx, &s->frame) ?
			       qw_read_recent(ctx, s, group, leave, text, key_bytes) :
			       QW_MEMCACHED_PASSED;
	/* Looked at again when the step is taken; this saves what comes before it. */
	if (!qw_may_set(leave, bpf_ktime_get_boot_ns()) ||
	    !qw_memcached_read(text, bytes, &s->set) || !qw_checksum_is_right(ctx, &s->frame))
		return QW_MEMCACHED_PASSED;
	return qw_make_request(ctx, s, group, text);
}

/* The step had no place for a `set`: the host gets what the client has sent. The driver's
 * verdict. */
__attribute__((noinline)) int qw_give_back(struct xdp_md *ctx)
{
	__u32 zero = 0;
	const struct qw_memcached_text *text = bpf_map_lookup_elem(&texts, &zero);
	struct qw_served *s = qw_now_served();

	if (!text || !s || s->set_moved > QW_BEFORE_BYTES_MAX || bpf_xdp_adjust_head(ctx, (int)s->set_moved) ||
	    !qw_restore(ctx, &s->frame, text, s->set_bytes))
		return qw_lose(QW_COUNT_LOST_NO_SPACE);
	qw_tally(s->frame.group_slot, QW_COUNT_MEMCACHED_LEFT, 1);
	return XDP_PASS;
}

#endif

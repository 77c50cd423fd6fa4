/* SPDX-License-Identifier: Apache-2.0 */
/* One frame that came in leaves as several: what each of the copies is. Who makes them is said by
 * order.h. */
#ifndef QW_COPY_H
#define QW_COPY_H

#include "seal.h"

enum qw_copy_kind {
	QW_COPY_FANOUT = 1, /* the packet, to each other replica */
	QW_COPY_ANSWERS = 2, /* an answer to each blind write of a range */
	QW_COPY_RESEND = 3, /* the entries of a range, to one replica */
	QW_COPY_TRIAL = 4, /* nothing: it shows that it came */
	QW_COPY_READ = 5, /* the answer to a `get`, for which the frame that came in has no room */
	QW_COPY_TO_ALL = 6, /* the packet, to each to whom a box sends */
};

/* READ: what else is to be known, by processor. A frame's copies are made before so many others
 * come in. */
#define QW_READS 64
/* The first becomes the answer. The last of a device map's is the frame that came in, without
 * room. */
#define QW_READ_COPIES 2
struct qw_copy_read {
	__u64 version; /* of the answer that was found */
	struct qw_endpoint client;
	__u32 place; /* in the table */
	__u32 number;
};

struct qw_copy_reads {
	struct qw_copy_read of[QW_READS];
	__u32 number; /* of the last one */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct qw_copy_reads);
} copy_reads SEC(".maps");

/* What shall become of the copies, in place of the Ethernet addresses. */
struct qw_copy_order {
	__u32 number; /* of the frame, for this processor */
	__u8 kind; /* enum qw_copy_kind */
	__u8 group_slot;
	__u8 is_ipv6;
	__u8 peer; /* RESEND: its slot; TRIAL: the frame's number; READ: where the rest is noted */
	__u8 me; /* READ: the note's number, with the next */
	__u8 replicas; /* TO_ALL: to how many it goes */
	__u16 cpu; /* that ordered them */
};
_Static_assert(sizeof(struct qw_copy_order) == 2 * ETH_ALEN, "in place of two addresses");

/* ANSWERS, RESEND: what else has to be known, in place of the packet's header. */
struct qw_copy_range {
	__u64 from;
	__u64 upto;
	__u64 term;
	__u64 commit_index;
	__u32 group;
	__u32 answered; /* ANSWERS: a bit for each entry from `from` on that is to be answered */
};

/* Where a packet begins in a frame of ours. */
static __always_inline void qw_place(struct qw_frame *frame, __u32 is_ipv6)
{
	frame->is_ipv6 = is_ipv6;
	frame->ip = QW_ETHERNET_BYTES + (QW_VLAN ? QW_VLAN_BYTES : 0);
	frame->at = frame->ip + (is_ipv6 ? QW_IPV6_BYTES : QW_IPV4_BYTES) + QW_UDP_BYTES;
}

static __always_inline const struct qw_slot *qw_slot_of(__u32 group_slot, __u64 index)
{
	__u32 place = group_slot * qw_config.ring_slots + (__u32)(index & (qw_config.ring_slots - 1));

	return bpf_map_lookup_elem(&ring, &place);
}

static __always_inline const struct qw_endpoint *qw_peer_of(__u32 group_slot, __u32 slot)
{
	__u32 place = group_slot * QW_PEERS_STRIDE + (slot & (QW_PEERS_STRIDE - 1));

	return bpf_map_lookup_elem(&peers, &place);
}

static __always_inline int qw_knows_mac(const struct qw_endpoint *endpoint)
{
	return (endpoint->mac[0] | endpoint->mac[1] | endpoint->mac[2] | endpoint->mac[3] |
		endpoint->mac[4] | endpoint->mac[5]) != 0;
}

/* Writes a header into a frame, signed; the payload stands behind it. */
static __always_inline int
qw_seal(QW_CTX *ctx, const struct qw_frame *frame, struct qw_header *header)
{
	__u32 slot = frame->group_slot;
	__u32 *used = bpf_map_lookup_elem(&keys_used, &slot);
	struct qw_keys_at *found;
	__u32 which;
	__u8 *packet;
	__u64 tag;

	if (!used)
		return 0;
	slot = 2 * slot + (*used & 1);
	found = bpf_map_lookup_elem(&keys, &slot);
	if (!found)
		return 0;
	if (qw_left_out(QW_LEFT_OUT_EPOCH))
		which = qw_is_clients(header->kind) ? 2 : 0;
	else if (qw_is_clients(header->kind))
		which = 2 | (found->sign_clients & 1);
	else
		which = found->sign_cluster & 1;
	header->flags = (__u8)((header->flags & ~QW_FLAG_EPOCH) | (which & 1));
	packet = (__u8 *)qw_data(ctx) + (frame->at & 127);
	if ((void *)(packet + QW_HEADER_BYTES) > qw_data_end(ctx))
		return 0;
	header->tag = 0;
	qw_header_encode(header, packet);
	tag = qw_tag_of(ctx, frame->at, header->payload_bytes, slot, which);
	packet = (__u8 *)qw_data(ctx) + (frame->at & 127);
	if ((void *)(packet + QW_HEADER_BYTES) > qw_data_end(ctx))
		return 0;
	qw_store_u64(packet + QW_TAG_OFFSET, tag);
	return 1;
}

static __always_inline long qw_frame_bytes(const QW_CTX *ctx)
{
	long bytes = (__u8 *)qw_data_end(ctx) - (__u8 *)qw_data(ctx);

	barrier_var(bytes); /* else the pointers are subtracted as 32 bits, which the verifier refuses */
	return bytes;
}

/* Makes a frame as long as a packet of so many bytes asks. */
static __always_inline int
qw_fit(QW_CTX *ctx, const struct qw_frame *frame, __u32 packet_bytes)
{
	long bytes = (long)(frame->at + packet_bytes);
	long more = bytes - qw_frame_bytes(ctx);

	return more == 0 || qw_resize(ctx, bytes, more) == 0;
}

/* Whether a slot still holds an entry of a term after it was read. The host may have released it,
 * and another processor may be filling it anew: that begins with its index. In a new term, which
 * has begun before anything of it is stored, the same index may be another entry's. */
static __always_inline int
qw_still_holds(const struct qw_slot *slot, __u64 index, __u32 group_slot, __u64 term)
{
	struct qw_group *group = bpf_map_lookup_elem(&groups, &group_slot);

	barrier();
	if (qw_left_out(QW_LEFT_OUT_STILL_HOLDS))
		return 1;
	return group && *(const volatile __u64 *)&slot->index == index &&
	       *(const volatile __u64 *)&group->registers.term == term;
}

/* Counts a packet that does not leave. */
static __always_inline int qw_unsent(__u32 group_slot)
{
	qw_tally(group_slot, QW_COUNT_LOST_UNSENT, 1);
	return 0;
}

/* A copy that is not needed, or whose entry went while it was made. */
static __always_inline int qw_came_late(__u32 group_slot)
{
	qw_tally(group_slot, QW_COUNT_COPIES_NOT_NEEDED, 1);
	return 0;
}

/* Tells the memcached client in a slot that its `set` is stored; 0, counted, if it cannot be
 * told. */
static __always_inline int
qw_write_stored(QW_CTX *ctx, struct qw_frame *frame, const struct qw_slot *slot,
		__u64 index, __u64 term)
{
	const struct qw_leave *leave = qw_leave_of(frame->group_slot);
	struct qw_endpoint client = slot->client;
	__u8 text[QW_MEMCACHED_ANSWER_BYTES];

	qw_memcached_stored(slot->request, text);
	if (!qw_still_holds(slot, index, frame->group_slot, term))
		return qw_came_late(frame->group_slot);
	if (!leave || !qw_fit(ctx, frame, sizeof(text)) ||
	    qw_store_bytes(ctx, frame->at, text, sizeof(text)))
		return qw_unsent(frame->group_slot);
	frame->own_port = leave->port;
	return qw_address(ctx, frame, &client, sizeof(text)) || qw_unsent(frame->group_slot);
}

/* Makes a frame the answer to the blind write in a slot; 0, counted, if it cannot. */
static __always_inline int
qw_write_answer(QW_CTX *ctx, struct qw_frame *frame, const struct qw_slot *slot,
		__u64 index, const struct qw_copy_range *range, __u8 me)
{
	struct qw_endpoint client = slot->client;
	struct qw_header header = {
		.magic = QW_MAGIC,
		.version = QW_VERSION,
		.kind = QW_KIND_ANSWER,
		.sender = me,
		.group = range->group,
		.term = range->term,
		.index = index,
		.commit_index = range->commit_index,
		.session = slot->session,
		.sequence = slot->sequence,
	};

	if (slot->requester == QW_REQUESTER_MEMCACHED)
		return qw_write_stored(ctx, frame, slot, index, range->term);
	if (!qw_still_holds(slot, index, frame->group_slot, range->term))
		return qw_came_late(frame->group_slot);
	/* A clone is made of the frame as the copy before it has left it: that may be shorter. */
	if (!qw_fit(ctx, frame, QW_HEADER_BYTES) || !qw_seal(ctx, frame, &header) ||
	    !qw_address(ctx, frame, &client, QW_HEADER_BYTES))
		return qw_unsent(frame->group_slot);
	return 1;
}

/* 1 if two numbers are the same, else 0. Without a branch, of which the verifier would follow both
 * ways for each entry of a range. */
static __always_inline __u64 qw_same(__u64 one, __u64 other)
{
	__u64 different = one ^ other;

	barrier_var(different);
	return 1 - ((different | (0 - different)) >> 63);
}

/* 1 if the program answers the entry of an index: a blind write whose client it has seen. */
static __always_inline __u64 qw_answers(const struct qw_slot *slot, __u64 index)
{
	return slot->answered_here & qw_same(slot->index, index);
}

/* 1 if the host has to: a blind write whose client a follower has seen. */
static __always_inline __u64 qw_leaves_answer(const struct qw_slot *slot, __u64 index)
{
	__u64 is_blind = slot->flags / QW_FLAG_BLIND;
	__u64 has_requester = 1 - qw_same(slot->requester, QW_REQUESTER_NONE);

	return is_blind & has_requester & (1 - (slot->answered_here & 1)) & qw_same(slot->index, index);
}

/* Has the host send an entry to a replica, because it cannot leave from here. */
static __always_inline void
qw_tell_unsent(__u32 group_slot, __u32 slot, __u64 index, enum qw_count why)
{
	struct qw_event event = {
		.kind = QW_EVENT_KIND_RESEND,
		.group_slot = (__u16)group_slot,
		.slot = (__u16)slot,
		.from = index,
	};

	qw_tally(group_slot, why, 1);
	qw_tell(&event, BPF_RB_FORCE_WAKEUP);
}

/* A copy that becomes the APPEND of an entry; 0, counted, if it cannot. */
static __always_inline int
qw_write_append(QW_CTX *ctx, struct qw_frame *frame, const struct qw_slot *slot,
		__u64 index, const struct qw_copy_range *range, __u8 me, __u8 peer)
{
	const struct qw_endpoint *to = qw_peer_of(frame->group_slot, peer);
	__u32 bytes = slot->payload_bytes;
	struct qw_header header = {
		.magic = QW_MAGIC,
		.version = QW_VERSION,
		.kind = QW_KIND_APPEND,
		.sender = me,
		.flags = slot->flags,
		.payload_bytes = (__u16)bytes,
		.group = range->group,
		.payload_crc32c = slot->payload_crc32c,
		.term = range->term,
		.index = index,
		.previous_term = slot->previous_term,
		.commit_index = range->commit_index,
		.session = slot->session,
		.sequence = slot->sequence,
	};

	if (!to || bytes > QW_PAYLOAD_BYTES_MAX)
		return qw_unsent(frame->group_slot);
	if (!qw_knows_mac(to)) {
		qw_tell_unsent(frame->group_slot, peer, index, QW_COUNT_LOST_NO_NEIGHBOUR);
		return 0;
	}
	/* The last copy is the frame that came in, which may have no room behind it. */
	if (!qw_fit(ctx, frame, QW_HEADER_BYTES + bytes)) {
		qw_tell_unsent(frame->group_slot, peer, index, QW_COUNT_LOST_NO_SPACE);
		return 0;
	}
	if (bytes > 0 && bytes <= QW_PAYLOAD_BYTES_MAX &&
	    qw_store_bytes(ctx, frame->at + QW_HEADER_BYTES, slot->payload, bytes))
		return qw_unsent(frame->group_slot);
	if (!qw_still_holds(slot, index, frame->group_slot, range->term))
		return qw_came_late(frame->group_slot);
	if (!qw_seal(ctx, frame, &header) || !qw_address(ctx, frame, to, QW_HEADER_BYTES + bytes))
		return qw_unsent(frame->group_slot);
	return 1;
}

/* The copy for the replica that is the count-th behind us. */
static __always_inline int qw_copy_fanout(QW_CTX *ctx, struct qw_frame *frame,
					  const struct qw_copy_order *order, __u32 count)
{
	const struct qw_endpoint *to;
	__u32 slot = order->me + 1 + count;
	__u32 bytes = (__u32)qw_frame_bytes(ctx) - frame->at;

	if (count + 1 >= order->replicas)
		return qw_came_late(frame->group_slot);
	if (slot >= order->replicas)
		slot -= order->replicas;
	to = qw_peer_of(frame->group_slot, slot);
	if (!to)
		return qw_unsent(frame->group_slot);
	if (!qw_knows_mac(to)) {
		__u8 *packet = (__u8 *)qw_data(ctx) + (frame->at & 127);
		__u64 index;

		if ((void *)(packet + QW_HEADER_BYTES) > qw_data_end(ctx))
			return qw_unsent(frame->group_slot);
		index = qw_load_u64(packet + __builtin_offsetof(struct qw_header, index));
		qw_tell_unsent(frame->group_slot, slot, index, QW_COUNT_LOST_NO_NEIGHBOUR);
		return 0;
	}
	return qw_address(ctx, frame, to, bytes) || qw_unsent(frame->group_slot);
}

/* The copy for the count-th to whom a box sends. */
static __always_inline int qw_copy_to_all(QW_CTX *ctx, struct qw_frame *frame,
					  const struct qw_copy_order *order, __u32 count)
{
	const struct qw_endpoint *to = qw_peer_of(frame->group_slot, count);
	__u32 bytes = (__u32)qw_frame_bytes(ctx) - frame->at;

	if (count >= order->replicas)
		return qw_came_late(frame->group_slot);
	if (!to)
		return qw_unsent(frame->group_slot);
	if (!qw_knows_mac(to)) {
		qw_tally(frame->group_slot, QW_COUNT_LOST_NO_NEIGHBOUR, 1);
		return 0;
	}
	return qw_address(ctx, frame, to, bytes) || qw_unsent(frame->group_slot);
}

static __always_inline __u64 qw_recent_version(const struct qw_recent *recent)
{
	__u64 version = *(const volatile __u64 *)&recent->version;

	barrier();
	return version;
}

/* The processor's notes of reads whose answers are copies. */
static __always_inline struct qw_copy_reads *qw_own_reads(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&copy_reads, &zero);
}

/* Writes an answer behind memcached's frame, and checks that it is still the one of that version.
 * The frame is as long as that asks. */
static __always_inline int
qw_write_recent(QW_CTX *ctx, const struct qw_frame *frame, const struct qw_recent *found,
		__u64 version, __u32 length)
{
	const struct qw_recent_answer *answer = &found->of[version & 1];

	barrier_var(length);
	if (length > 0 && length <= QW_RECENT_TEXT_BYTES_MAX &&
	    qw_store_bytes(ctx, frame->at + QW_MEMCACHED_FRAME_BYTES, answer->text, length))
		return 0;
	barrier();
	return qw_recent_version(found) == version || qw_left_out(QW_LEFT_OUT_ANSWER_WHOLE);
}

/* The copy that becomes the answer to a `get`. A client whose answer was replaced meanwhile asks
 * again. */
static __always_inline int
qw_copy_recent(QW_CTX *ctx, struct qw_frame *frame, const struct qw_copy_order *order, __u32 count)
{
	const struct qw_copy_reads *reads = qw_own_reads();
	const struct qw_leave *leave = qw_leave_of(frame->group_slot);
	const struct qw_copy_read *read;
	struct qw_endpoint client;
	const struct qw_recent *found;
	__u64 version;
	__u32 length;
	__u32 place;

	if (count != 0)
		return qw_came_late(frame->group_slot);
	if (!reads || !leave)
		return qw_unsent(frame->group_slot);
	read = &reads->of[order->peer & (QW_READS - 1)];
	/* Made by another processor, or too late. */
	if ((read->number & 0xffff) != 256U * order->me + order->replicas)
		return qw_unsent(frame->group_slot);
	client = read->client;
	version = read->version;
	place = read->place;
	found = bpf_map_lookup_elem(&recent, &place);
	if (!found)
		return qw_unsent(frame->group_slot);
	length = found->of[version & 1].text_bytes;
	if (!qw_fit(ctx, frame, QW_MEMCACHED_FRAME_BYTES + length)) {
		qw_tally(frame->group_slot, QW_COUNT_LOST_NO_SPACE, 1);
		return 0;
	}
	frame->own_port = leave->port;
	if (!qw_write_recent(ctx, frame, found, version, length)) {
		qw_tally(frame->group_slot, QW_COUNT_LOST_ANSWER_CHANGED, 1);
		return 0;
	}
	if (!qw_address(ctx, frame, &client, QW_MEMCACHED_FRAME_BYTES + length))
		return qw_unsent(frame->group_slot);
	qw_tally(frame->group_slot, QW_COUNT_MEMCACHED_ANSWERED, 1);
	return 1;
}

/* The number of the lowest bit that is set. */
static __always_inline __u32 qw_lowest(__u32 bits)
{
	__u32 place = 0;

	place += ((bits & 0xffff) == 0) << 4;
	place += (((bits >> place) & 0xff) == 0) << 3;
	place += (((bits >> place) & 0xf) == 0) << 2;
	place += (((bits >> place) & 0x3) == 0) << 1;
	place += ((bits >> place) & 0x1) == 0;
	return place & 31;
}

/* The number of a bit that is set, so many of which are below it; 32 if there is none. */
__attribute__((noinline)) __u32 qw_bit_at(__u32 bits, __u32 below)
{
	__u32 place;

	for (place = 0; place < 32; place++) {
		if (place >= below)
			break;
		bits &= bits - 1;
	}
	return bits ? qw_lowest(bits) : 32;
}

/* Makes the count-th copy of a frame what it shall be: 0 if it is not to leave, which is counted.
 * `range` is of no meaning for FANOUT, READ and TO_ALL. */
static __always_inline int qw_make_copy(QW_CTX *ctx, const struct qw_copy_order *order,
					const struct qw_copy_range *range, __u32 count)
{
	struct qw_frame frame = {};
	const struct qw_slot *slot;
	__u64 index;

	qw_place(&frame, order->is_ipv6);
	frame.group_slot = order->group_slot & (QW_GROUPS_MAX - 1);
	frame.own_port = qw_own[frame.group_slot].at.port;
	if (order->kind == QW_COPY_FANOUT)
		return qw_copy_fanout(ctx, &frame, order, count);
	if (order->kind == QW_COPY_TO_ALL)
		return qw_copy_to_all(ctx, &frame, order, count);
	if (order->kind == QW_COPY_READ)
		return qw_copy_recent(ctx, &frame, order, count);
	if (order->kind == QW_COPY_ANSWERS)
		count = qw_bit_at(range->answered, count);
	index = range->from + count;
	slot = qw_slot_of(frame.group_slot, index);
	if (count > range->upto - range->from || !slot || slot->index != index)
		return qw_came_late(frame.group_slot);
	if (order->kind == QW_COPY_RESEND) {
		if (!qw_write_append(ctx, &frame, slot, index, range, order->me, order->peer))
			return 0;
		qw_tally(frame.group_slot, QW_COUNT_ENTRIES_RESENT, 1);
		return 1;
	}
	if (!qw_answers(slot, index))
		return qw_came_late(frame.group_slot);
	if (!qw_write_answer(ctx, &frame, slot, index, range, order->me))
		return 0;
	qw_tally(frame.group_slot, QW_COUNT_BLIND_ANSWERS, 1);
	return 1;
}

/* What stands in place of the packet's header; zeros for FANOUT, READ and TO_ALL, where
 * none stands. */
static __always_inline int qw_read_range(QW_CTX *ctx, const struct qw_copy_order *order,
					 struct qw_copy_range *range)
{
	struct qw_frame frame;
	__u8 *packet;

	__builtin_memset(range, 0, sizeof(*range));
	if (order->kind == QW_COPY_FANOUT || order->kind == QW_COPY_READ ||
	    order->kind == QW_COPY_TO_ALL)
		return 1;
	qw_place(&frame, order->is_ipv6);
	packet = (__u8 *)qw_data(ctx) + (frame.at & 127);
	if ((void *)(packet + QW_HEADER_BYTES) > qw_data_end(ctx))
		return 0;
	__builtin_memcpy(range, packet, sizeof(*range));
	return 1;
}

#endif

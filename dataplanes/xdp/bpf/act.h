/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out what the step says, in the order of its bits: store, send, answer. One frame came in,
 * so one verdict goes out; whatever needs more frames is sent as copies (copy.h) or left to the
 * host (an event). */
#ifndef QW_ACT_H
#define QW_ACT_H

#include "order.h"

/* A packet that passed all checks, and what the step said of it. */
struct qw_served {
	struct qw_frame frame;
	struct qw_header in;
	struct qw_outcome out;
	struct qw_endpoint sender;
	/* Of the registers, as the step left them. */
	__u64 term;
	__u64 start_index;
	__u64 last_index;
	__u64 commit_index;
	__u64 round;
	__u64 waited_index;
	__u32 ring_slots;
	__u32 group;
	__u8 held;
	__u8 me;
	__u8 leader;
	__u8 replicas;
	__u8 role;
	__u32 asking; /* enum qw_asking */
	/* Of a memcached client's `set`. */
	struct qw_memcached_set set;
	__u32 set_bytes; /* of its datagram */
	__u32 set_moved; /* how far the frame's begin was moved */
	/* Of a `get`. */
	struct qw_copy_read read;
};

/* One for each processor: too large for a program's stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct qw_served);
} served SEC(".maps");

/* Whether the host has something to do at once: to make an entry durable, to answer somebody, to
 * take entries before they are too many, or to hear of a round that a read waits for. Otherwise it
 * finds by itself, somewhat later, what there is. */
static __always_inline int qw_needs_host(const struct qw_served *s, const struct qw_group *group)
{
	__u64 unseen = s->last_index - *(const volatile __u64 *)&group->seen_index;
	__u64 awaited_round = *(const volatile __u64 *)&group->awaited_round;

	if ((s->out.actions & (QW_STORE | QW_COMMIT)) == 0)
		return s->in.kind == QW_KIND_HEARTBEAT_OK && s->out.reason == QW_REASON_NONE && awaited_round != 0 &&
		       s->in.sequence >= awaited_round;
	return (s->held && (s->out.actions & QW_STORE)) ||
	       ((s->out.actions & QW_COMMIT) && s->out.commit_from < s->waited_index) ||
	       unseen >= QW_UNSEEN_MAX || 4 * unseen >= s->ring_slots ||
	       *(const volatile __u64 *)&group->idles != 0;
}

/* Wakes the host unless it was woken since it last looked. */
static __always_inline void qw_wake(struct qw_group *group, __u32 group_slot)
{
	struct qw_event event = { .kind = QW_EVENT_KIND_WAKE, .group_slot = (__u16)group_slot };

	/* An exchange orders what was written before it against the host's look at it. */
	if (__sync_lock_test_and_set(&group->woken, 1) == 0 && !qw_left_out(QW_LEFT_OUT_WAKE))
		qw_tell(&event, BPF_RB_FORCE_WAKEUP);
}

/* What this processor serves. The functions that look it up themselves are verified once, not once
 * for each way through the step. */
static __always_inline struct qw_served *qw_now_served(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&served, &zero);
}

/* Copies the command into the slot, by words: a helper of the kernel takes longer for a short one,
 * and hardly less for a long one. */
static __always_inline int
qw_load_payload(struct xdp_md *ctx, __u32 at, struct qw_slot *slot, __u32 bytes)
{
	const __u8 *from = qw_data(ctx);
	const void *end = qw_data_end(ctx);
	__u32 words = bytes / 8;
	__u32 whole;
	__u32 word;

	if (at > QW_BEFORE_BYTES_MAX + QW_HEADER_BYTES + QW_ORIGIN_BYTES || bytes > QW_PAYLOAD_BYTES_MAX)
		return 0;
	from += at;
	for (word = 0; word < QW_PAYLOAD_BYTES_MAX / 8; word++) {
		if (word >= words)
			break;
		if ((const void *)(from + 8) > end)
			return 0;
		((__u64 *)slot->payload)[word] = *(const __u64 *)from;
		from += 8;
	}
	whole = qw_whole_words(bytes);
	bytes = bytes % 8;
	return bytes == 0 || (whole <= QW_PAYLOAD_BYTES_MAX - 8 &&
			      bpf_xdp_load_bytes(ctx, at + whole, slot->payload + whole, bytes) == 0);
}

/* Puts the packet's entry into the ring. `index` goes last. */
static __always_inline int qw_store_entry(struct xdp_md *ctx, struct qw_served *s)
{
	struct qw_slot *slot = (void *)qw_slot_of(s->frame.group_slot, s->out.index);
	__u32 at = s->frame.at + QW_HEADER_BYTES;
	__u32 bytes = s->in.payload_bytes;
	__u8 flags = s->in.flags & QW_FLAGS_OF_ENTRIES;
	__u8 requester = QW_REQUESTER_NONE;

	if (!slot)
		return 0;
	/* Nothing is read back from the slot: its memory is not in the cache. */
	if (qw_left_out(QW_LEFT_OUT_INDEX_LAST))
		slot->index = s->out.index;
	else if (!qw_left_out(QW_LEFT_OUT_INDEX_FIRST))
		slot->index = 0;
	barrier();
	slot->previous_term = s->out.header.previous_term;
	if (s->in.kind == QW_KIND_APPEND) {
		slot->previous_term = s->in.previous_term;
	} else if (s->in.kind == QW_KIND_REQUEST) {
		requester = QW_REQUESTER_PACKET;
		slot->client = s->sender;
		if (s->frame.is_memcached) {
			requester = s->set.noreply ? QW_REQUESTER_NONE : QW_REQUESTER_MEMCACHED;
			slot->request = s->set.request;
		}
	} else if (s->in.kind == QW_KIND_FORWARD) {
		requester = QW_REQUESTER_PACKET;
		if (bpf_xdp_load_bytes(ctx, at, &slot->client, QW_ORIGIN_BYTES))
			return 0;
		__builtin_memset(slot->client.mac, 0, ETH_ALEN);
		at += QW_ORIGIN_BYTES;
		bytes -= QW_ORIGIN_BYTES;
	}
	slot->session = s->in.session;
	slot->sequence = s->in.sequence;
	slot->payload_crc32c = s->in.payload_crc32c;
	slot->payload_bytes = (__u16)bytes;
	slot->flags = flags;
	slot->requester = requester;
	slot->answered_here = (s->in.kind == QW_KIND_REQUEST ||
			       qw_left_out(QW_LEFT_OUT_ANSWERED_HERE)) &&
			      (flags & QW_FLAG_BLIND) != 0 && requester != QW_REQUESTER_NONE;
	if (!qw_load_payload(ctx, at, slot, bytes))
		return 0;
	barrier();
	slot->index = s->out.index;
	qw_tally(s->frame.group_slot, QW_COUNT_ENTRIES_STORED, 1);
	return 1;
}

/* Counts a packet that does not leave: the verdict. */
__attribute__((noinline)) int qw_lose(__u32 why)
{
	const struct qw_served *s = qw_now_served();

	if (s)
		qw_tally(s->frame.group_slot, why, 1);
	return XDP_DROP;
}

__attribute__((noinline)) int qw_store(struct xdp_md *ctx)
{
	struct qw_served *s = qw_now_served();

	return s ? qw_store_entry(ctx, s) : 0;
}

/* Sends the packet's frame back into the network as `header`, whose payload stands there
 * already. */
static __always_inline int qw_transmit(struct xdp_md *ctx, struct qw_served *s,
				       struct qw_header *header, const struct qw_endpoint *to)
{
	__u32 bytes = QW_HEADER_BYTES + header->payload_bytes;

	if (!qw_knows_mac(to))
		return qw_lose(QW_COUNT_LOST_NO_NEIGHBOUR);
	if (!qw_fit(ctx, &s->frame, bytes))
		return qw_lose(QW_COUNT_LOST_NO_SPACE);
	if (!qw_seal(ctx, &s->frame, header) ||
	    !qw_address(ctx, &s->frame, to, bytes))
		return qw_lose(QW_COUNT_LOST_UNSENT);
	qw_tally(s->frame.group_slot, QW_COUNT_SENT, 1);
	return XDP_TX;
}

/* Leader: the entry to all other replicas as one frame, which the network copies. */
static __always_inline int qw_multicast(struct xdp_md *ctx, struct qw_served *s)
{
	const __u8 *address = (const __u8 *)&(const __be32){ qw_config.multicast };
	struct qw_endpoint all = {
		.port = qw_own[s->frame.group_slot & (QW_GROUPS_MAX - 1)].at.port,
		/* RFC 1112, section 6.4 */
		.mac = { 0x01, 0x00, 0x5e, address[1] & 0x7f, address[2], address[3] },
	};

	all.address[10] = all.address[11] = 0xff;
	__builtin_memcpy(all.address + 12, address, 4);
	return qw_transmit(ctx, s, &s->out.header, &all);
}

/* Leader: the entry to all other replicas. */
static __always_inline int qw_fan_out(struct xdp_md *ctx, struct qw_served *s)
{
	struct qw_copy_order order = {
		.kind = QW_COPY_FANOUT,
		.group_slot = (__u8)s->frame.group_slot,
		.is_ipv6 = (__u8)s->frame.is_ipv6,
		.me = s->me,
		.replicas = s->replicas,
	};
	__u32 bytes = QW_HEADER_BYTES + s->out.header.payload_bytes;

	/* Who asked stands between a forwarded request's header and its command. */
	if (s->in.kind == QW_KIND_FORWARD && bpf_xdp_adjust_head(ctx, QW_ORIGIN_BYTES))
		return qw_lose(QW_COUNT_LOST_UNSENT);
	/* One frame to one other replica need not come to all. */
	if (qw_config.multicast != 0 && s->replicas > 2)
		return qw_multicast(ctx, s);
	if (!qw_left_out(QW_LEFT_OUT_FIT) && !qw_fit(ctx, &s->frame, bytes))
		return qw_lose(QW_COUNT_LOST_NO_SPACE);
	if (!qw_seal(ctx, &s->frame, &s->out.header))
		return qw_lose(QW_COUNT_LOST_UNSENT);
	return qw_send_copies(ctx, &s->frame, &order, s->replicas - 1);
}

/* Follower: a client's request to the leader, with who asked. */
static __always_inline int qw_forward(struct xdp_md *ctx, struct qw_served *s)
{
	const struct qw_endpoint *leader = qw_peer_of(s->frame.group_slot, s->leader);
	__u32 at = s->frame.at + QW_HEADER_BYTES;

	if (!leader)
		return qw_lose(QW_COUNT_LOST_UNSENT);
	if (bpf_xdp_adjust_head(ctx, -QW_ORIGIN_BYTES))
		return qw_lose(QW_COUNT_LOST_NO_SPACE);
	if (bpf_xdp_store_bytes(ctx, at, &s->sender, QW_ORIGIN_BYTES))
		return qw_lose(QW_COUNT_LOST_UNSENT);
	return qw_transmit(ctx, s, &s->out.header, leader);
}

/* Which entries of a range the program answers, as the lower 32 bits, and which the host has to, as
 * the upper ones. */
__attribute__((noinline)) __u64 qw_answered_by(__u32 group_slot, __u64 from, __u32 count)
{
	__u64 answered = 0;
	__u32 offset;

	if (group_slot >= QW_GROUPS_MAX)
		return 0;
	for (offset = 0; offset < QW_RESEND_ENTRIES_MAX; offset++) {
		const struct qw_slot *slot;

		if (offset >= count)
			break;
		slot = qw_slot_of(group_slot, from + offset);
		if (!slot)
			break;
		answered |= qw_answers(slot, from + offset) << offset;
		answered |= qw_leaves_answer(slot, from + offset) << (32 + offset);
	}
	return answered;
}

static __always_inline int qw_write_range(struct xdp_md *ctx, const struct qw_frame *frame,
					  const struct qw_copy_range *range)
{
	__u8 *packet = (__u8 *)qw_data(ctx) + (frame->at & 127);

	if ((void *)(packet + QW_HEADER_BYTES) > qw_data_end(ctx))
		return 0;
	__builtin_memcpy(packet, range, sizeof(*range));
	return 1;
}

/* Leader: answers the blind writes that became committed with this packet. */
static __always_inline int qw_answer(struct xdp_md *ctx, struct qw_served *s)
{
	__u64 from = qw_max(s->out.commit_from, s->start_index) + 1;
	struct qw_copy_range range = {
		.upto = s->commit_index,
		.term = s->term,
		.commit_index = s->commit_index,
		.group = s->group,
	};
	struct qw_copy_order order = {
		.kind = QW_COPY_ANSWERS,
		.group_slot = (__u8)s->frame.group_slot,
		.is_ipv6 = (__u8)s->frame.is_ipv6,
		.me = s->me,
		.replicas = s->replicas,
	};
	struct qw_event event = {
		.kind = QW_EVENT_KIND_ANSWER_REST,
		.group_slot = (__u16)s->frame.group_slot,
	};
	const struct qw_slot *slot;
	__u32 answered;
	__u64 both;

	if (from > s->commit_index)
		return XDP_DROP;
	event.from = from;
	event.upto = s->commit_index;
	if (s->commit_index - from >= QW_RESEND_ENTRIES_MAX) {
		event.kind = QW_EVENT_KIND_ANSWER;
		qw_tell(&event, BPF_RB_FORCE_WAKEUP);
		return XDP_DROP;
	}
	both = qw_answered_by(s->frame.group_slot, from, (__u32)(s->commit_index - from) + 1);
	if (both >> 32 != 0)
		qw_tell(&event, BPF_RB_FORCE_WAKEUP);
	answered = (__u32)both;
	if (answered == 0)
		return XDP_DROP;
	range.from = from + qw_lowest(answered);
	range.answered = answered >> qw_lowest(answered);
	if (!qw_fit(ctx, &s->frame, QW_HEADER_BYTES))
		return qw_lose(QW_COUNT_LOST_NO_SPACE);
	if ((answered & (answered - 1)) == 0) {
		slot = qw_slot_of(s->frame.group_slot, range.from);
		if (!slot)
			return qw_lose(QW_COUNT_LOST_UNSENT);
		if (!qw_write_answer(ctx, &s->frame, slot, range.from, &range, s->me))
			return XDP_DROP;
		qw_tally(s->frame.group_slot, QW_COUNT_BLIND_ANSWERS, 1);
		qw_tally(s->frame.group_slot, QW_COUNT_SENT, 1);
		return XDP_TX;
	}
	if (!qw_write_range(ctx, &s->frame, &range))
		return qw_lose(QW_COUNT_LOST_UNSENT);
	return qw_send_copies(ctx, &s->frame, &order, (__u32)__builtin_popcount(answered));
}

/* Leader: sends entries again to a replica that misses them. */
static __always_inline int qw_resend(struct xdp_md *ctx, struct qw_served *s)
{
	__u64 behind = s->last_index - s->out.index;
	__u64 last = s->out.index + qw_min(behind, QW_RESEND_ENTRIES_MAX - 1);
	struct qw_copy_range range = {
		.from = s->out.index,
		.upto = last,
		.term = s->term,
		.commit_index = s->commit_index,
		.group = s->group,
	};
	struct qw_copy_order order = {
		.kind = QW_COPY_RESEND,
		.group_slot = (__u8)s->frame.group_slot,
		.is_ipv6 = (__u8)s->frame.is_ipv6,
		.peer = s->in.sender,
		.me = s->me,
		.replicas = s->replicas,
	};

	if (s->out.index > s->last_index)
		return qw_lose(QW_COUNT_COPIES_NOT_NEEDED);
	if (!qw_write_range(ctx, &s->frame, &range))
		return qw_lose(QW_COUNT_LOST_UNSENT);
	return qw_send_copies(ctx, &s->frame, &order, (__u32)(last - s->out.index) + 1);
}

/* Follower: asks for what comes behind the entries it had asked for. */
static __always_inline int qw_ask_for_more(struct xdp_md *ctx, struct qw_served *s)
{
	const struct qw_endpoint *leader = qw_peer_of(s->frame.group_slot, s->leader);
	struct qw_header header = {
		.magic = QW_MAGIC,
		.version = QW_VERSION,
		.kind = QW_KIND_RETRANSMIT,
		.sender = s->me,
		.group = s->group,
		.term = s->term,
		.index = s->out.index + 1,
		.commit_index = s->commit_index,
		.sequence = s->round,
	};

	return leader ? qw_transmit(ctx, s, &header, leader) : qw_lose(QW_COUNT_LOST_UNSENT);
}

/* Software's: what a host has a use for goes up, unchanged; the rest is counted already. */
static __always_inline int qw_punt(struct qw_served *s)
{
	struct qw_event event = {
		.kind = QW_EVENT_KIND_BEHIND,
		.group_slot = (__u16)s->frame.group_slot,
		.slot = s->in.sender,
	};

	if (s->out.reason == QW_REASON_BEHIND_RING) {
		qw_tell(&event, BPF_RB_FORCE_WAKEUP);
		return XDP_DROP;
	}
	if ((s->in.kind == QW_KIND_REQUEST &&
	     (s->out.reason == QW_REASON_OFF || s->out.reason == QW_REASON_MALFORMED)) ||
	    (s->in.kind == QW_KIND_FORWARD && s->out.reason == QW_REASON_OFF)) {
		qw_tally(s->frame.group_slot, QW_COUNT_PASSED_UP, 1);
		return XDP_PASS;
	}
	return XDP_DROP;
}

static __always_inline int qw_act_on(struct xdp_md *ctx, struct qw_served *s)
{
	const struct qw_endpoint *leader;

	if (s->out.actions & QW_TO_SOFTWARE)
		return qw_punt(s);
	if ((s->out.actions & QW_FANOUT) && s->replicas > 1)
		return qw_fan_out(ctx, s);
	if (s->asking == QW_ASKING_MORE)
		return qw_ask_for_more(ctx, s);
	if (s->asking == QW_ASKING_NOT && !qw_left_out(QW_LEFT_OUT_QUIET))
		return qw_lose(QW_COUNT_GAPS_NOT_ASKED);
	if (s->out.actions & QW_REPLY) {
		leader = qw_peer_of(s->frame.group_slot, s->leader);
		return leader ? qw_transmit(ctx, s, &s->out.header, leader) :
				qw_lose(QW_COUNT_LOST_UNSENT);
	}
	if (s->out.actions & QW_FORWARD)
		return qw_forward(ctx, s);
	if (s->out.actions & QW_RESEND)
		return qw_resend(ctx, s);
	if ((s->out.actions & QW_COMMIT) && s->role == QW_ROLE_LEADER)
		return qw_answer(ctx, s);
	return XDP_DROP;
}

/* Everything behind storing; the driver's verdict. */
__attribute__((noinline)) int qw_act(struct xdp_md *ctx)
{
	struct qw_served *s = qw_now_served();

	return s ? qw_act_on(ctx, s) : XDP_ABORTED;
}

#endif

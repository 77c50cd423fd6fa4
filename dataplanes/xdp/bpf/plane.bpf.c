/* SPDX-License-Identifier: Apache-2.0 */
/* The common case in a network driver's receive path: finds packets for a plane, checks them, takes
 * one step under the group's lock, and carries out what it says. Everything else passes. */
#include "in_xdp.h"

#include "control.h"
#include "box.h"
#include "memcached.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Checks the checksum of the command that a packet brings. */
static __always_inline enum qw_reason
qw_check_payload(struct xdp_md *ctx, const struct qw_frame *frame, const struct qw_header *in)
{
	__u32 at = frame->at + QW_HEADER_BYTES;
	__u32 bytes = in->payload_bytes;

	if (!qw_brings_command(in))
		return QW_REASON_NONE;
	if (in->kind == QW_KIND_FORWARD) {
		at += QW_ORIGIN_BYTES;
		bytes -= QW_ORIGIN_BYTES;
	}
	if (qw_crc32c(ctx, at, bytes) != in->payload_crc32c && !qw_left_out(QW_LEFT_OUT_CHECKSUM))
		return QW_REASON_CHECKSUM;
	return QW_REASON_NONE;
}

/* Checks a packet before any state is read; what is right about it is in `in` afterwards. */
static __always_inline enum qw_reason
qw_open(struct xdp_md *ctx, const struct qw_frame *frame, struct qw_header *in)
{
	__u8 *packet = (__u8 *)qw_data(ctx) + (frame->at & 127);
	__u32 slot = frame->group_slot;
	__u32 *used = bpf_map_lookup_elem(&keys_used, &slot);
	struct qw_keys_at *found;
	enum qw_reason reason;
	int number;

	if ((void *)(packet + QW_HEADER_BYTES) > qw_data_end(ctx))
		return QW_REASON_NOT_OURS;
	reason = qw_check_form(packet, frame->bytes, in);
	if (reason != QW_REASON_NONE)
		return reason;
	if (!used)
		return QW_REASON_TAG;
	slot = 2 * slot + (*used & 1);
	found = bpf_map_lookup_elem(&keys, &slot);
	if (!found)
		return QW_REASON_TAG;
	number = qw_key_number(&found->keys, in);
	if (number < 0)
		return QW_REASON_TAG;
	if (in->tag != qw_tag_of(ctx, frame->at, in->payload_bytes, slot, (__u32)number) &&
	    !qw_left_out(QW_LEFT_OUT_TAG))
		return QW_REASON_TAG;
	return qw_check_payload(ctx, frame, in);
}

/* Notes the Ethernet address of a replica that has just proved who it is. */
static __always_inline void qw_learn(struct qw_served *s)
{
	struct qw_endpoint *peer;

	if (s->in.kind == QW_KIND_REQUEST || s->in.sender >= QW_REPLICAS_MAX ||
	    (s->out.actions & QW_TO_SOFTWARE))
		return;
	peer = (void *)qw_peer_of(s->frame.group_slot, s->in.sender);
	if (!peer)
		return;
	if ((peer->port != s->sender.port ||
	     !qw_same_address(peer->address, s->sender.address)) &&
	    !qw_left_out(QW_LEFT_OUT_LEARN_FROM))
		return;
	/* An old packet that somebody sends again moves nothing, and must not lead us elsewhere. */
	if (qw_knows_mac(peer) && (s->out.actions & (QW_STORE | QW_COMMIT)) == 0 &&
	    !qw_left_out(QW_LEFT_OUT_LEARN_MOVED))
		return;
	__builtin_memcpy(peer->mac, s->sender.mac, ETH_ALEN);
}

/* A function with its own stack, because of what is inlined into it. It takes and leaves the lock,
 * since the verifier of Linux before 6.9 lets nobody call or return with the kernel's. */
static __attribute__((noinline)) int qw_take_step(struct qw_served *s, struct qw_group *group,
						  struct qw_lock *lock)
{
	struct qw_registers *registers = &group->registers;
	const struct qw_leave *leave = NULL;
	__u64 now = 0;

	if (s->frame.is_memcached) { /* nothing may be called under the kernel's lock */
		leave = qw_leave_of(s->frame.group_slot);
		now = bpf_ktime_get_boot_ns();
	}
	if (!qw_change_begins(group, lock, s->frame.group_slot))
		return 0;
	/* The host may have taken its leave back, and put something into the log since, while we
	 * waited. */
	if (s->frame.is_memcached && !qw_may_set(leave, now) && !qw_left_out(QW_LEFT_OUT_SETS_STILL)) {
		qw_change_ends(group, lock);
		s->out.actions = 0;
		s->out.reason = QW_REASON_NONE;
		return 1;
	}
	qw_step(registers, &s->in, &s->out);
	s->asking = qw_gap_after(&group->gap, &s->in, &s->out);
	s->term = registers->term;
	s->start_index = registers->start_index;
	s->last_index = registers->last_index;
	s->commit_index = registers->commit_index;
	s->round = registers->round;
	if ((s->out.actions & QW_STORE) && registers->role == QW_ROLE_LEADER &&
	    (s->in.flags & QW_FLAG_BLIND) == 0)
		group->waited_index = s->out.index;
	s->waited_index = group->waited_index;
	s->ring_slots = registers->ring_slots;
	s->held = registers->held;
	s->group = registers->group;
	s->me = registers->me;
	s->leader = registers->leader;
	s->replicas = registers->replicas;
	s->role = registers->role;
	qw_change_ends(group, lock);
	return 1;
}

/* Before a step: the driver's verdict on a frame that takes none, or QW_GOES_ON. */
#define QW_GOES_ON -1

static __always_inline int qw_open_packet(struct xdp_md *ctx, struct qw_served *s)
{
	enum qw_reason reason = qw_open(ctx, &s->frame, &s->in);

	if (reason == QW_REASON_NONE)
		return QW_GOES_ON;
	if (reason == QW_REASON_NOT_OURS) {
		qw_tally(s->frame.group_slot, QW_COUNT_FOREIGN, 1);
		return XDP_PASS;
	}
	qw_tally(s->frame.group_slot, reason, 1);
	return XDP_DROP;
}

__attribute__((noinline)) int qw_open_foreign(struct xdp_md *ctx, __u32 group_slot)
{
	const struct qw_group *group = bpf_map_lookup_elem(&groups, &group_slot);
	struct qw_served *s = qw_now_served();

	if (!group || !s)
		return XDP_PASS;
	switch (qw_open_memcached(ctx, s, group)) {
	case QW_MEMCACHED_SET:
		return QW_GOES_ON;
	case QW_MEMCACHED_ANSWERED:
		return XDP_TX;
	case QW_MEMCACHED_COPIED:
		return qw_read_by_copy(ctx, s);
	case QW_MEMCACHED_PASSED:
		qw_tally(group_slot, QW_COUNT_MEMCACHED_LEFT, 1);
		return XDP_PASS;
	default:
		return qw_lose(QW_COUNT_LOST_NO_SPACE);
	}
}

static __always_inline int qw_serve(struct xdp_md *ctx, struct qw_served *s)
{
	struct qw_group *group = bpf_map_lookup_elem(&groups, &s->frame.group_slot);
	struct qw_lock *lock = bpf_map_lookup_elem(&locks, &s->frame.group_slot);
	int verdict;

	if (!group || !lock || !qw_sender_of(ctx, &s->frame, &s->sender))
		return XDP_PASS;
	verdict = s->frame.is_memcached ? qw_open_foreign(ctx, s->frame.group_slot) :
					  qw_open_packet(ctx, s);
	if (verdict != QW_GOES_ON)
		return verdict;
	if (s->frame.to_group && s->in.kind != QW_KIND_APPEND && !qw_left_out(QW_LEFT_OUT_TO_GROUP))
		return qw_lose(QW_COUNT_DROPPED_NOT_FOR_GROUP);
	if (!qw_take_step(s, group, lock))
		return qw_lose(QW_COUNT_DROPPED_BUSY);
	if (s->out.reason != QW_REASON_NONE)
		qw_tally(s->frame.group_slot, s->out.reason & 31, 1);
	if (s->frame.is_memcached) {
		if ((s->out.actions & QW_STORE) == 0)
			return qw_give_back(ctx);
		s->frame.own_port = qw_own[s->frame.group_slot & (QW_GROUPS_MAX - 1)].at.port;
		qw_tally(s->frame.group_slot, QW_COUNT_MEMCACHED_TAKEN, 1);
	}
	qw_learn(s);
	if ((s->out.actions & QW_STORE) && !qw_store(ctx)) {
		/* An entry has its place in the log, but not in the ring, which the checks before
		 * rule out. Nothing may be acknowledged behind it: the plane stops, and its host
		 * finds that. */
		*(volatile __u64 *)&group->broken = 1;
		return XDP_ABORTED;
	}
	verdict = qw_act(ctx);
	if (qw_needs_host(s, group))
		qw_wake(group, s->frame.group_slot);
	return verdict;
}

/* The lock orders what comes by several queues, so this only shows that packets are not steered as
 * asked. */
static __always_inline void qw_note_queue(const struct xdp_md *ctx, __u32 group_slot)
{
	__u32 queue = qw_own[group_slot & (QW_GROUPS_MAX - 1)].queue;

	if (queue != QW_QUEUE_ANY && queue != ctx->rx_queue_index)
		qw_tally(group_slot, QW_COUNT_CAME_BY_OTHER_QUEUE, 1);
}

/* A Paxos role's, in a function that is verified once. */
__attribute__((noinline)) int qw_serve_box(struct xdp_md *ctx)
{
	struct qw_served *s = qw_now_served();
	int verdict;

	if (!s || !qw_sender_of(ctx, &s->frame, &s->sender))
		return XDP_PASS;
	verdict = qw_open_packet(ctx, s);
	if (verdict == QW_GOES_ON)
		return qw_serve_packet(ctx, s);
	if (verdict == XDP_DROP)
		qw_tally(s->frame.group_slot, QW_COUNT_RECEIVED, 1);
	return verdict;
}

SEC("xdp")
int qw_receive(struct xdp_md *ctx)
{
	struct qw_served *s = qw_now_served();
	struct qw_in_step *mine;
	__u32 group_slot;
	int verdict;

	/* Not by another branch: the compiler would put the step into this function, too much for
	 * its stack. */
	if (!s || !qw_find(ctx, &s->frame) ||
	    !(qw_is_to_us(ctx, &s->frame) | qw_left_out(QW_LEFT_OUT_ADDRESS)))
		return XDP_PASS;
	group_slot = s->frame.group_slot;
	mine = qw_own_step(group_slot);
	if (!mine)
		return XDP_PASS;
	qw_note_queue(ctx, group_slot);
	/* Before the role is read, so that a fence which finds nobody here has been seen by all. */
	__sync_fetch_and_add(&mine->count, 1);
	if (qw_config.window) {
		verdict = qw_serve_box(ctx);
	} else {
		verdict = qw_serve(ctx, s);
		if (!s->frame.is_memcached)
			qw_tally(group_slot, QW_COUNT_RECEIVED, 1);
	}
	__sync_fetch_and_add(&mine->count, -1);
	return verdict;
}

SEC("xdp/devmap")
int qw_copy(struct xdp_md *ctx)
{
	struct qw_copy_order order;
	struct qw_in_step *mine;
	int leaves;

	if (qw_data(ctx) + sizeof(order) > qw_data_end(ctx))
		return XDP_DROP;
	__builtin_memcpy(&order, qw_data(ctx), sizeof(order));
	if (order.kind == QW_COPY_TRIAL) {
		qw_note_trial(&order);
		return XDP_DROP;
	}
	mine = qw_own_step(order.group_slot);
	leaves = qw_copy_one(ctx, &order);
	if (leaves)
		qw_tally(order.group_slot, QW_COUNT_SENT, 1);
	if (mine)
		__sync_fetch_and_add(&mine->copies_done, 1);
	return leaves ? XDP_PASS : XDP_DROP;
}

/* The group whose host runs a program: all that is in the frame. */
static __always_inline __u32 qw_ordered_for(const struct xdp_md *ctx)
{
	const __u32 *slot = qw_data(ctx);

	return (void *)(slot + 1) > qw_data_end(ctx) ? QW_NO_GROUP : *slot;
}

/* Attached nowhere: the hosts run them. */
SEC("xdp")
int qw_order(struct xdp_md *ctx)
{
	__u32 slot = qw_ordered_for(ctx);
	struct qw_control *order = bpf_map_lookup_elem(&control, &slot);

	return order ? qw_obey(order, slot) : XDP_ABORTED;
}

SEC("xdp")
int qw_submit_orders(struct xdp_md *ctx)
{
	__u32 slot = qw_ordered_for(ctx);
	struct qw_control *order = bpf_map_lookup_elem(&control, &slot);

	return order ? qw_submit_all(order, slot) : XDP_ABORTED;
}

SEC("xdp")
int qw_order_box(struct xdp_md *ctx)
{
	__u32 slot = qw_ordered_for(ctx);
	struct qw_box_control *order = bpf_map_lookup_elem(&box_control, &slot);

	return order ? qw_obey_for_box(order, slot) : XDP_ABORTED;
}

/* Each frame of a run of this is one of a trial. */
SEC("xdp")
int qw_try_copies(struct xdp_md *ctx)
{
	return qw_try_next(ctx);
}

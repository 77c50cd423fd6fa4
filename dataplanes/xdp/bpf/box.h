/* SPDX-License-Identifier: Apache-2.0 */
/* A Paxos role at an interface: a proposer's SUBMIT leaves as P2A, and a P2A as P2B, in the frame
 * it came in. All else goes up to the role's host, which takes the step for it by an order: what is
 * seldom, and what has to be durable before it is said. */
#ifndef QW_BOX_H
#define QW_BOX_H

#include "act.h"
#include "qw_paxos.h"

static __always_inline struct qw_instance *qw_instance_of(__u32 slot, __u64 instance)
{
	__u32 place = slot * qw_config.window + (__u32)(instance & (qw_config.window - 1));

	return bpf_map_lookup_elem(&instances, &place);
}

/* Around everything that changes a box: under its lock, and with an odd version for the host that
 * reads. 0 if the lock cannot be had: nothing may be changed. */
static __always_inline int qw_box_begins(struct qw_box *box, struct qw_lock *lock, __u32 slot)
{
	if (!qw_left_out(QW_LEFT_OUT_LOCK) && !qw_take_lock(lock, slot))
		return 0;
	box->version++;
	barrier();
	return 1;
}

static __always_inline void qw_box_ends(struct qw_box *box, struct qw_lock *lock)
{
	barrier();
	box->version++;
	if (!qw_left_out(QW_LEFT_OUT_LOCK))
		qw_free_lock(lock);
}

/* Copies a packet's payload into its instance. No helper of the kernel may be called, since its
 * lock may be held. 0 if the frame ends before the payload does, which the packet's form rules
 * out. */
static __always_inline int qw_keep_value(struct xdp_md *ctx, const struct qw_frame *frame,
					 struct qw_instance *instance, __u32 bytes)
{
	const __u8 *from = (const __u8 *)qw_data(ctx) + (frame->at & 127) + QW_HEADER_BYTES;
	const void *end = qw_data_end(ctx);
	__u32 whole = qw_whole_words(bytes);
	__u32 word;
	__u32 byte;

	for (word = 0; word < QW_PAYLOAD_BYTES_MAX / 8; word++) {
		if (8 * word >= whole)
			break;
		if ((const void *)(from + 8) > end)
			return 0;
		((__u64 *)instance->value)[word] = *(const __u64 *)from;
		from += 8;
	}
	from = (const __u8 *)qw_data(ctx) + (frame->at & 127) + QW_HEADER_BYTES + whole;
	for (byte = 0; byte < 7; byte++) {
		if (byte >= (bytes & 7))
			break;
		if ((const void *)(from + 1) > end || whole > QW_PAYLOAD_BYTES_MAX - 8)
			return 0;
		instance->value[whole + byte] = *from;
		from++;
	}
	return 1;
}

enum qw_box_taken {
	QW_BOX_TAKEN = 0,
	QW_BOX_BUSY,
	QW_BOX_LEFT, /* it is the host's to take the step */
	QW_BOX_CUT, /* a value could not be kept: the box is off from now on */
};

/* A function with its own stack, as qw_take_step in plane.bpf.c. */
static __attribute__((noinline)) int qw_take_box_step(struct xdp_md *ctx, struct qw_served *s,
						      struct qw_box *box, struct qw_lock *lock)
{
	struct qw_paxos_registers *registers = &box->registers;
	struct qw_instance *instance = qw_instance_of(s->frame.group_slot, s->in.index);
	int taken = QW_BOX_LEFT;

	if (!instance)
		return QW_BOX_LEFT;
	if (!qw_box_begins(box, lock, s->frame.group_slot))
		return QW_BOX_BUSY;
	if (!registers->held || qw_left_out(QW_LEFT_OUT_HELD)) {
		qw_paxos_step(registers, &instance->slot, &s->in, &s->out);
		taken = s->out.actions & QW_TO_SOFTWARE ? QW_BOX_LEFT : QW_BOX_TAKEN;
		if ((s->out.actions & QW_STORE) &&
		    !qw_keep_value(ctx, &s->frame, instance, s->in.payload_bytes)) {
			registers->role = QW_PAXOS_ROLE_OFF;
			taken = QW_BOX_CUT;
		}
		s->role = registers->role;
		s->me = registers->me;
	}
	qw_box_ends(box, lock);
	return taken;
}

/* Notes the Ethernet address of one to whom the box sends, if it is not known yet. */
__attribute__((noinline)) int qw_learn_destination(__u32 count)
{
	const struct qw_served *s = qw_now_served();
	__u32 place;

	if (!s)
		return 0;
	for (place = 0; place < QW_PEERS_STRIDE; place++) {
		struct qw_endpoint *peer = (void *)qw_peer_of(s->frame.group_slot, place);

		if (place >= count || !peer)
			break;
		if (peer->port != s->sender.port || !qw_same_address(peer->address, s->sender.address))
			continue;
		if (!qw_knows_mac(peer))
			__builtin_memcpy(peer->mac, s->sender.mac, ETH_ALEN);
		return 1;
	}
	return 0;
}

/* What is said to all: the packet that came in, whose payload goes on as it is. */
static __always_inline int qw_to_all(struct xdp_md *ctx, struct qw_served *s, __u32 count)
{
	struct qw_copy_order order = {
		.kind = QW_COPY_TO_ALL,
		.group_slot = (__u8)s->frame.group_slot,
		.is_ipv6 = (__u8)s->frame.is_ipv6,
		.replicas = (__u8)count,
	};
	const struct qw_endpoint *only;

	if (count == 0 || count > QW_COPIES_MAX)
		return qw_lose(QW_COUNT_LOST_UNSENT);
	if (count == 1) {
		only = qw_peer_of(s->frame.group_slot, 0);
		return only ? qw_transmit(ctx, s, &s->out.header, only) : qw_lose(QW_COUNT_LOST_UNSENT);
	}
	if (!qw_fit(ctx, &s->frame, QW_HEADER_BYTES + s->out.header.payload_bytes))
		return qw_lose(QW_COUNT_LOST_NO_SPACE);
	if (!qw_seal(ctx, &s->frame, &s->out.header))
		return qw_lose(QW_COUNT_LOST_UNSENT);
	return qw_send_copies(ctx, &s->frame, &order, count);
}

static __always_inline int qw_serve_packet(struct xdp_md *ctx, struct qw_served *s)
{
	struct qw_box *box = bpf_map_lookup_elem(&boxes, &s->frame.group_slot);
	struct qw_lock *lock = bpf_map_lookup_elem(&locks, &s->frame.group_slot);
	__u32 count;

	if (!box || !lock)
		return XDP_PASS;
	count = (__u32)*(const volatile __u64 *)&box->destinations;
	if (s->frame.to_group && s->in.kind != QW_KIND_P2A && !qw_left_out(QW_LEFT_OUT_TO_GROUP))
		return qw_lose(QW_COUNT_DROPPED_NOT_FOR_GROUP);
	if (s->in.kind != QW_KIND_SUBMIT &&
	    (s->in.kind != QW_KIND_P2A || s->in.flags & QW_FLAG_TELL)) {
		qw_learn_destination(count);
		qw_tally(s->frame.group_slot, QW_COUNT_PASSED_UP, 1);
		return XDP_PASS;
	}
	switch (qw_take_box_step(ctx, s, box, lock)) {
	case QW_BOX_BUSY:
		return qw_lose(QW_COUNT_DROPPED_BUSY);
	case QW_BOX_LEFT:
		qw_tally(s->frame.group_slot, QW_COUNT_PASSED_UP, 1);
		return XDP_PASS;
	case QW_BOX_CUT:
		return XDP_ABORTED;
	default:
		break;
	}
	qw_tally(s->frame.group_slot, QW_COUNT_RECEIVED, 1);
	if (s->out.reason != QW_REASON_NONE)
		qw_tally(s->frame.group_slot, s->out.reason & 31, 1);
	if (s->out.actions & QW_STORE)
		qw_tally(s->frame.group_slot, QW_COUNT_ENTRIES_STORED, 1);
	else if ((s->out.actions & QW_FANOUT) && s->role == QW_PAXOS_ROLE_COORDINATOR)
		qw_tally(s->frame.group_slot, QW_COUNT_INSTANCES_ASSIGNED, 1);
	if (s->out.actions & QW_FANOUT)
		return qw_to_all(ctx, s, count);
	if (s->out.actions & QW_REPLY)
		return qw_transmit(ctx, s, &s->out.header, &s->sender);
	return XDP_DROP;
}

/* What a box's host has done to it. */
static __always_inline void qw_carry_out(struct qw_box_control *order, struct qw_box *box,
					 struct qw_instance *instance)
{
	struct qw_paxos_registers *registers = &box->registers;
	__u32 what = order->order;
	__u32 stores = 0;
	__u32 word;

	if (what == QW_BOX_ORDER_SWITCH_ON) {
		*registers = order->registers;
	} else if (what == QW_BOX_ORDER_OFF) {
		if (!qw_left_out(QW_LEFT_OUT_OFF))
			registers->role = QW_PAXOS_ROLE_OFF;
	} else if (what == QW_BOX_ORDER_CONFIGURE) {
		registers->configuration = order->number;
	} else if (what == QW_BOX_ORDER_TRIM) {
		order->done = (__u32)qw_paxos_trim(registers, order->number);
	} else if (what == QW_BOX_ORDER_STEP) {
		qw_paxos_step(registers, &instance->slot, &order->header, &order->outcome);
		stores = order->outcome.actions & QW_STORE;
	} else if (what == QW_BOX_ORDER_PUT_BACK) {
		instance->slot = order->slot;
		stores = 1;
	}
	for (word = 0; word < QW_PAYLOAD_BYTES_MAX / 8; word++) {
		__u64 *here = (__u64 *)instance->value + word;
		__u64 *there = (__u64 *)order->value + word;

		if (stores)
			*here = *there;
		else
			*there = *here;
	}
	order->registers = *registers;
	order->slot = instance->slot;
}

static __attribute__((noinline)) int qw_obey_for_box(struct qw_box_control *order, __u32 slot)
{
	struct qw_box *box = bpf_map_lookup_elem(&boxes, &slot);
	struct qw_lock *lock = bpf_map_lookup_elem(&locks, &slot);
	struct qw_instance *instance = qw_instance_of(slot, order->number);

	if (!box || !lock || !instance)
		return XDP_ABORTED;
	if (!qw_box_begins(box, lock, slot))
		return QW_BUSY;
	qw_carry_out(order, box, instance);
	qw_box_ends(box, lock);
	return QW_DONE;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Orders copies of a frame, in one of two ways. Copies are made what they shall be by copy.h.
 *
 * Broadcast: the frame is sent to a device map that names our interface as often as copies are
 * wanted, and qw_copy runs for each before it leaves. All entries of such a map share one program,
 * because the kernel keeps one for each device, so qw_copy counts: the copies of one frame come one
 * behind the other. That is how the kernel does it, not what it promises, so the host has
 * qw_try_copies show it before it relies on it.
 *
 * Clone: the frame goes up the receive path, with the order and a proof in it, to clone.bpf.c. */
#ifndef QW_ORDER_H
#define QW_ORDER_H

#include "copy.h"
#include "proof.h"

/* A number for a frame whose copies are to be counted. */
static __always_inline __u32 qw_copy_number(void)
{
	__u32 zero = 0;
	__u32 *number = bpf_map_lookup_elem(&copy_numbers, &zero);

	return number ? ++*number : 0;
}

/* The copy's number among those of its frame. */
static __always_inline __u32 qw_copy_count(__u32 number)
{
	__u32 zero = 0;
	struct qw_copying *now = bpf_map_lookup_elem(&copying, &zero);

	if (!now)
		return ~0U;
	if (now->number != number) {
		now->number = number;
		now->done = 0;
	}
	return now->done++;
}

#define QW_BROADCAST_TO(entries) \
	case entries: \
		return (int)bpf_redirect_map(&copies_##entries, 0, BPF_F_BROADCAST);

/* Sends a frame to all entries of the map that has so many. */
static __always_inline int qw_broadcast(__u32 entries)
{
	switch (entries) {
		QW_EACH_COUNT(QW_BROADCAST_TO)
	default:
		return XDP_ABORTED;
	}
}

static __always_inline int qw_write_order(struct xdp_md *ctx, const struct qw_copy_order *order)
{
	__u8 *data = qw_data(ctx);

	if ((void *)(data + sizeof(*order)) > qw_data_end(ctx))
		return 0;
	__builtin_memcpy(data, order, sizeof(*order));
	return 1;
}

/* Writes the tag of our VLAN before the proof. The system takes it out before it hands the frame
 * on, and puts it into what leaves; if the frame's begin was moved, none stands there yet. */
static __always_inline int qw_write_tag(struct xdp_md *ctx)
{
	struct ethhdr *ethernet = qw_data(ctx);
	struct qw_vlan_tag *tag = (void *)(ethernet + 1);

	if ((void *)(tag + 1) > qw_data_end(ctx))
		return 0;
	ethernet->h_proto = bpf_htons(ETH_P_8021Q);
	tag->tci = bpf_htons((__u16)QW_VLAN);
	tag->proto = bpf_htons(ETH_P_IP);
	return 1;
}

/* Says that the order in a frame of ours is ours, to whom it meets behind this program. */
static __always_inline int qw_write_proof(struct xdp_md *ctx, const struct qw_frame *frame)
{
	__u8 *place = (__u8 *)qw_data(ctx) + (frame->ip & 31);
	const struct qw_copy_proof proof = qw_own_proof();

	if ((void *)(place + sizeof(proof)) > qw_data_end(ctx))
		return 0;
	__builtin_memcpy(place, &proof, sizeof(proof));
	return 1;
}

/* Sends a frame as so many copies: the verdict. */
static __always_inline int qw_send_copies(struct xdp_md *ctx, const struct qw_frame *frame,
					  struct qw_copy_order *order, __u32 count)
{
	struct qw_in_step *mine = qw_own_step(frame->group_slot);
	__u32 zero = 0;
	__u32 *by = bpf_map_lookup_elem(&copies_by, &zero);

	if (!mine || !by)
		goto unsent;
	order->cpu = (__u16)(bpf_get_smp_processor_id() & (QW_CPUS_MAX - 1));
	if (*by == QW_COPIES_BY_CLONE) {
		if (!qw_write_order(ctx, order) || !qw_write_proof(ctx, frame) ||
		    (QW_VLAN && !qw_write_tag(ctx)))
			goto unsent;
		__sync_fetch_and_add(&mine->copies_ordered, count);
		return XDP_PASS;
	}
	order->number = qw_copy_number();
	if (!qw_write_order(ctx, order))
		goto unsent;
	if (!qw_left_out(QW_LEFT_OUT_COPIES))
		__sync_fetch_and_add(&mine->copies_ordered, count);
	return qw_broadcast(count);
unsent:
	qw_unsent(frame->group_slot);
	return XDP_DROP;
}

/* The copy that a device map has made of a frame: 0 if it is not to leave. */
static __always_inline int
qw_copy_one(struct xdp_md *ctx, const struct qw_copy_order *order)
{
	__u32 count = qw_copy_count(order->number);
	struct qw_copy_range range;

	if (!qw_read_range(ctx, order, &range))
		return qw_unsent(order->group_slot);
	return qw_make_copy(ctx, order, &range, count);
}

/* Orders the copies of the trial's next frame. They leave nothing behind but a note. */
static __always_inline int qw_try_next(struct xdp_md *ctx)
{
	struct qw_copy_order order = { .kind = QW_COPY_TRIAL };
	__u32 zero = 0;
	struct qw_trial *now = bpf_map_lookup_elem(&trial, &zero);
	__u32 place;

	if (!now)
		return XDP_DROP;
	place = now->head.frames++;
	if (place >= QW_TRIAL_FRAMES_MAX)
		return XDP_DROP;
	order.number = qw_copy_number();
	order.peer = (__u8)place;
	return qw_write_order(ctx, &order) ? qw_broadcast(now->head.sizes[place]) : XDP_DROP;
}

/* Notes a copy of a trial. */
static __always_inline void qw_note_trial(const struct qw_copy_order *order)
{
	__u32 count = qw_copy_count(order->number);
	__u32 zero = 0;
	struct qw_trial *now = bpf_map_lookup_elem(&trial, &zero);
	__u32 place;

	if (!now)
		return;
	place = now->head.copies++;
	if (place < QW_TRIAL_COPIES_MAX)
		now->seen[place] = (__u16)(256 * order->peer + (count & 255));
}

#endif

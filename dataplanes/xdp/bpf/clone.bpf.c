/* SPDX-License-Identifier: Apache-2.0 */
/* Makes copies of a frame where a device map cannot: behind the receive path. The frame comes up
 * from qw_receive with an order in it; everything else passes untouched. Loaded and attached only
 * where it is needed. */
#include "in_tc.h"

#include <linux/pkt_cls.h>

#include "copy.h"
#include "proof.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct qw_task {
	struct qw_copy_order order;
	struct qw_copy_range range;
};

/* Verified once, not for each copy. */
__attribute__((noinline)) int
qw_make_next(struct __sk_buff *ctx, struct qw_task *task, __u32 count)
{
	if (!task)
		return 0;
	return qw_make_copy(ctx, &task->order, &task->range, count);
}

static __always_inline __u32 qw_copies_of(const struct qw_task *task)
{
	__u64 count = task->range.upto - task->range.from + 1;

	if (task->order.kind == QW_COPY_FANOUT)
		count = task->order.replicas - 1U;
	else if (task->order.kind == QW_COPY_ANSWERS)
		count = (__u32)__builtin_popcount(task->range.answered);
	else if (task->order.kind == QW_COPY_READ)
		count = QW_READ_COPIES;
	else if (task->order.kind == QW_COPY_TO_ALL)
		count = task->order.replicas;
	return count > QW_COPIES_MAX ? QW_COPIES_MAX : (__u32)count;
}

/* All copies but the last are clones; the last is the frame itself. Its verdict. */
static __always_inline int qw_clone_all(struct __sk_buff *ctx, struct qw_task *task, __u32 copies)
{
	__u32 slot = task->order.group_slot;
	__u32 count;

	for (count = 0; count < QW_COPIES_MAX; count++) {
		if (count >= copies)
			break;
		if (!qw_make_next(ctx, task, count))
			continue;
		if (count + 1 < copies && bpf_clone_redirect(ctx, ctx->ifindex, 0)) {
			qw_tally(slot, QW_COUNT_LOST_UNSENT, 1);
			continue;
		}
		qw_tally(slot, QW_COUNT_SENT, 1);
		qw_tally(slot, QW_COUNT_COPIES_CLONED, 1);
		if (count + 1 == copies)
			return (int)bpf_redirect(ctx->ifindex, 0);
	}
	return TC_ACT_SHOT;
}

/* Whether a frame carries an order of ours: qw_receive writes them, the network could, too. */
static __always_inline int qw_is_ordered(struct __sk_buff *ctx)
{
	const struct qw_copy_proof own = qw_own_proof();
	const __u32 end = QW_ETHERNET_BYTES + sizeof(own);
	const struct qw_copy_proof *found;

	if (qw_data(ctx) + end > qw_data_end(ctx) && bpf_skb_pull_data(ctx, end))
		return 0;
	if (qw_data(ctx) + end > qw_data_end(ctx))
		return 0;
	found = qw_data(ctx) + QW_ETHERNET_BYTES;
	if (found->magic != own.magic)
		return 0;
	if ((found->secret[0] != own.secret[0] || found->secret[1] != own.secret[1]) &&
	    !qw_left_out(QW_LEFT_OUT_SECRET)) {
		qw_tally(QW_NO_GROUP, QW_COUNT_COPY_ORDERS_FORGED, 1);
		return 0;
	}
	return 1;
}

SEC("tcx/ingress")
int qw_clone(struct __sk_buff *ctx)
{
	struct qw_task task = {};
	struct qw_in_step *theirs;
	__u32 copies;
	int verdict;

	if (!qw_is_ordered(ctx))
		return TC_ACT_UNSPEC;
	/* Orders are never passed on, whatever else is wrong with them. */
	if (bpf_skb_pull_data(ctx, ctx->len) ||
	    qw_data(ctx) + sizeof(task.order) > qw_data_end(ctx)) {
		qw_tally(QW_NO_GROUP, QW_COUNT_LOST_UNSENT, 1);
		return TC_ACT_SHOT;
	}
	__builtin_memcpy(&task.order, qw_data(ctx), sizeof(task.order));
	theirs = qw_step_of(task.order.group_slot, task.order.cpu);
	if (!qw_read_range(ctx, &task.order, &task.range)) {
		qw_tally(task.order.group_slot, QW_COUNT_LOST_UNSENT, 1);
		return TC_ACT_SHOT;
	}
	copies = qw_copies_of(&task);
	verdict = qw_clone_all(ctx, &task, copies);
	if (theirs)
		__sync_fetch_and_add(&theirs->copies_done, copies);
	return verdict;
}

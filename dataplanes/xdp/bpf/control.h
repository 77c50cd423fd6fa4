/* SPDX-License-Identifier: Apache-2.0 */
/* What the host has done to a group: always by a program, so that nobody waits for a host that was
 * interrupted while it held something. What changes the group is done under the lock that packets'
 * steps take. */
#ifndef QW_CONTROL_H
#define QW_CONTROL_H

#include "maps.h"

/* What these programs return. XDP_ABORTED: they cannot do what they were told. */
#define QW_DONE XDP_PASS
#define QW_BUSY XDP_DROP /* nothing was done: the order is to be given again */

/* Submits `count` commands of `in`, up to the first that is not stored. All under one lock, so that
 * their indexes follow each other. */
static __always_inline int qw_submit_all(struct qw_control *order, __u32 slot)
{
	struct qw_group *group = bpf_map_lookup_elem(&groups, &slot);
	struct qw_lock *lock = bpf_map_lookup_elem(&locks, &slot);
	__u32 count = order->count;
	__u32 place;

	if (!group || !lock)
		return XDP_ABORTED;
	if (!qw_change_begins(group, lock, slot))
		return QW_BUSY;
	for (place = 0; place < QW_SUBMIT_MAX; place++) {
		if (place >= count)
			break;
		qw_submit(&group->registers, &order->in[place], &order->out[place]);
		if ((order->out[place].actions & QW_STORE) == 0)
			break;
		if ((order->in[place].flags & QW_FLAG_BLIND) == 0)
			group->waited_index = order->out[place].index;
	}
	order->done = place;
	qw_change_ends(group, lock);
	return QW_DONE;
}

static __always_inline void
qw_engage(struct qw_control *order, struct qw_group *group)
{
	const struct qw_gap gap = { .leader_last = order->registers.last_index };

	group->registers = order->registers;
	group->gap = gap;
	group->waited_index = 0;
	group->broken = 0;
}

static __always_inline int qw_obey(struct qw_control *order, __u32 slot)
{
	struct qw_group *group = bpf_map_lookup_elem(&groups, &slot);
	struct qw_lock *lock = bpf_map_lookup_elem(&locks, &slot);
	__u32 what = order->order;
	__u64 number = order->number;

	if (!group || !lock)
		return XDP_ABORTED;
	if (what == QW_ORDER_CLOCK) {
		order->number = bpf_ktime_get_boot_ns();
		return QW_DONE;
	}
	if (!qw_change_begins(group, lock, slot))
		return QW_BUSY;
	if (what == QW_ORDER_ENGAGE)
		qw_engage(order, group);
	else if (what == QW_ORDER_OFF)
		group->registers.role = qw_left_out(QW_LEFT_OUT_OFF) ? group->registers.role :
									QW_ROLE_OFF;
	else if (what == QW_ORDER_HEARTBEAT)
		qw_heartbeat(&group->registers, number, &order->out[0]);
	else if (what == QW_ORDER_PERSISTED)
		qw_persisted(&group->registers, number, &order->out[0]);
	else if (what == QW_ORDER_RELEASE)
		order->done = (__u32)qw_release(&group->registers, number);
	qw_change_ends(group, lock);
	return QW_DONE;
}

#endif

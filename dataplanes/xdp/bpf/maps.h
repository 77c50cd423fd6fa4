/* SPDX-License-Identifier: Apache-2.0 */
/* The maps, and what the host sets before the programs are loaded. */
#ifndef QW_MAPS_H
#define QW_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

/* For the verifier, which looks at such a function once. */
#define QW_MEMCACHED_PART __attribute__((noinline))

#include "mutants.h"
#include "shared.h"

_Static_assert(QW_NO_GROUP == QW_GROUPS_MAX, "the interface's counters stand behind those of all groups");
_Static_assert(QW_COUNT_COUNT <= QW_COUNTS_STRIDE, "counters have room");

/* Set by the host before loading: constants to the verifier. */
const volatile struct qw_config qw_config SEC(".rodata.config") = { .ring_slots = 64, .groups = 1 };

/* Memory that needs no lookup, because each packet asks for it. */
volatile struct qw_own qw_own[QW_GROUPS_MAX] SEC(".data.own");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, QW_GROUPS_MAX);
	__type(key, __u32);
	__type(value, struct qw_group);
} groups SEC(".maps");

/* All groups' rings, one behind the other. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct qw_slot);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, QW_GROUPS_MAX);
	__type(key, __u32);
	__type(value, struct qw_control);
} control SEC(".maps");

/* Paxos roles in the groups' places. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, QW_GROUPS_MAX);
	__type(key, __u32);
	__type(value, struct qw_box);
} boxes SEC(".maps");

/* All boxes' instances, one box's behind the other's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct qw_instance);
} instances SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, QW_GROUPS_MAX);
	__type(key, __u32);
	__type(value, struct qw_box_control);
} box_control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, QW_CPUS_MAX);
	__type(key, __u32);
	__type(value, struct qw_in_step);
} in_step SEC(".maps");

/* Whoever holds a group's changes it. Held for less than a microsecond, by programs only. Our own
 * where nothing interrupts a program that wants it, too: the kernel's turns interrupts off and on,
 * which makes each step some 40 ns longer. A map with the kernel's cannot be mapped into the host's
 * memory, so it is apart from what it guards. */
struct qw_lock {
	struct bpf_spin_lock kernels;
	__u32 held;
	__u32 reserved[14]; /* a cache line for each */
};
/* So long a program waits for our own. It is held so long only where the processor of a virtual
 * machine stands still; then a packet is lost, and a host's order is given again. */
#define QW_LOCK_WAIT_NS 100000
/* More looks than there is time for. */
#define QW_LOCK_LOOKS_MAX (1 << 16)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QW_GROUPS_MAX);
	__type(key, __u32);
	__type(value, struct qw_lock);
} locks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * QW_GROUPS_MAX);
	__type(key, __u32);
	__type(value, struct qw_keys_at);
} keys SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QW_GROUPS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} keys_used SEC(".maps");

/* Replicas of the grants, by group and slot, or whom a box sends to. The programs write their
 * Ethernet addresses. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QW_GROUPS_MAX * QW_PEERS_STRIDE);
	__type(key, __u32);
	__type(value, struct qw_endpoint);
} peers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct qw_leaves);
} leaves SEC(".maps");

/* The groups' tables of answers, one behind the other. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, QW_RECENT_PLACES);
	__type(key, __u32);
	__type(value, struct qw_recent);
} recent SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, (QW_GROUPS_MAX + 1) * QW_COUNTS_STRIDE);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* A group's, which its host makes, so that nobody else's are in it. */
struct qw_events {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, QW_EVENTS_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, QW_GROUPS_MAX);
	__type(key, __u32);
	__array(values, struct qw_events);
} events SEC(".maps");

/* One frame is sent as often as one of these has entries; see order.h. There is one for each count:
 * a copy that is made and not sent costs as much as one that is, and if the last ones of many come
 * to nothing, the kernel does not tell the device of those before them, which wait there until
 * something else leaves. */
#define QW_COPIES(entries) \
	struct { \
		__uint(type, BPF_MAP_TYPE_DEVMAP); \
		__uint(max_entries, entries); \
		__type(key, __u32); \
		__type(value, struct bpf_devmap_val); \
	} copies_##entries SEC(".maps");
#define QW_EACH_COUNT(of) \
	of(1) of(2) of(3) of(4) of(5) of(6) of(7) of(8) of(9) of(10) of(11) of(12) of(13) of(14) \
	of(15) of(16) of(17) of(18) of(19) of(20) of(21) of(22) of(23) of(24) of(25) of(26) of(27) \
	of(28) of(29) of(30) of(31) of(32)
_Static_assert(QW_RESEND_ENTRIES_MAX == 32, "as many copies as one frame may become");

QW_EACH_COUNT(QW_COPIES)

/* enum qw_copies_by, as the host decided when the group was last engaged. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} copies_by SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct qw_trial);
} trial SEC(".maps");

/* What qw_copy knows of the frame it has last seen. */
struct qw_copying {
	__u32 number;
	__u32 done;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct qw_copying);
} copying SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} copy_numbers SEC(".maps");

static __always_inline struct qw_in_step *qw_step_of(__u32 group_slot, __u32 cpu)
{
	__u32 place = group_slot * QW_CPUS_MAX + (cpu & (QW_CPUS_MAX - 1));

	return bpf_map_lookup_elem(&in_step, &place);
}

static __always_inline struct qw_in_step *qw_own_step(__u32 group_slot)
{
	return qw_step_of(group_slot, bpf_get_smp_processor_id());
}

static __always_inline struct qw_leave *qw_leave_of(__u32 group_slot)
{
	__u32 zero = 0;
	struct qw_leaves *all = bpf_map_lookup_elem(&leaves, &zero);

	return all ? &all->of[group_slot & (QW_GROUPS_MAX - 1)] : NULL;
}

static __always_inline void qw_tally(__u32 group_slot, __u32 which, __u64 more)
{
	__u32 place = group_slot * QW_COUNTS_STRIDE + which;
	__u64 *counter = bpf_map_lookup_elem(&counters, &place);

	if (which == QW_COUNT_LOST_UNSENT && qw_left_out(QW_LEFT_OUT_UNSENT))
		return;
	if (counter)
		*counter += more;
}

/* The exchange orders what is done under the lock behind it. */
static __always_inline int qw_try_lock(struct qw_lock *lock)
{
	return __sync_lock_test_and_set(&lock->held, 1) == 0;
}

struct qw_wanted_lock {
	__u64 until_ns;
	__u32 slot;
	__u32 is_ours;
};

static long qw_look_at_lock(__u32 look, struct qw_wanted_lock *wanted)
{
	struct qw_lock *lock = bpf_map_lookup_elem(&locks, &wanted->slot);

	(void)look;
	if (lock && *(volatile __u32 *)&lock->held == 0)
		wanted->is_ours = qw_try_lock(lock);
	return (wanted->is_ours & 1) | (bpf_ktime_get_ns() > wanted->until_ns);
}

/* Waits for a group's lock, which was not free: 0 if it did not become so. */
__attribute__((noinline)) int qw_wait_for_lock(__u32 slot)
{
	struct qw_wanted_lock wanted = {
		.until_ns = bpf_ktime_get_ns() + QW_LOCK_WAIT_NS,
		.slot = slot,
	};

	bpf_loop(QW_LOCK_LOOKS_MAX, qw_look_at_lock, &wanted, 0);
	return (int)wanted.is_ours;
}

static __always_inline int qw_take_lock(struct qw_lock *lock, __u32 slot)
{
	if (qw_config.kernels_lock) {
		bpf_spin_lock(&lock->kernels);
		return 1;
	}
	return qw_try_lock(lock) || qw_wait_for_lock(slot);
}

static __always_inline void qw_free_lock(struct qw_lock *lock)
{
	if (qw_config.kernels_lock)
		bpf_spin_unlock(&lock->kernels);
	else
		__sync_lock_test_and_set(&lock->held, 0);
}

/* Around everything that changes a group: under its lock, and with an odd version for the host that
 * reads. If the lock cannot be had, it is 0, and nothing may be changed. */
static __always_inline int
qw_change_begins(struct qw_group *group, struct qw_lock *lock, __u32 slot)
{
	if (!qw_left_out(QW_LEFT_OUT_LOCK) && !qw_take_lock(lock, slot))
		return 0;
	group->version++;
	barrier();
	if (*(volatile __u64 *)&group->broken && !qw_left_out(QW_LEFT_OUT_BROKEN))
		group->registers.role = QW_ROLE_OFF;
	return 1;
}

static __always_inline void qw_change_ends(struct qw_group *group, struct qw_lock *lock)
{
	barrier();
	group->version++;
	if (!qw_left_out(QW_LEFT_OUT_LOCK))
		qw_free_lock(lock);
}

static __always_inline void qw_tell(const struct qw_event *event, __u64 flags)
{
	__u32 slot = event->group_slot;
	void *own = bpf_map_lookup_elem(&events, &slot);

	if (!own || bpf_ringbuf_output(own, (void *)event, sizeof(*event), flags))
		qw_tally(slot, QW_COUNT_EVENTS_LOST, 1);
}

#endif

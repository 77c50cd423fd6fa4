/* SPDX-License-Identifier: Apache-2.0 */
/* The plane's programs without a host, and without this or that check, to see what each costs. What
 * is left out is constant when the programs are loaded, so nothing of it remains. For measuring
 * only: it is unsafe. */
#include <linux/bpf.h>
#include <linux/types.h>

/* What is left out; set before loading. */
struct alone_without {
	__u32 tag;
	__u32 checksum;
	__u32 counters;
	__u32 window;
	__u32 lock;
	__u32 wake;
};

#include <bpf/bpf_helpers.h>
#include "mutants.h"
#include "qw_mutants.h"

const volatile struct alone_without alone_without SEC(".rodata.alone");

/* Each name stands for itself, unless it is left out. */
#undef qw_mutant
#define qw_mutant(mutant) (alone_without.window && (mutant) == QW_CHECK_REQUEST_WINDOW)
#undef qw_left_out
#define qw_left_out(check) (alone_without.lock && (check) == QW_LEFT_OUT_LOCK)

#include "in_xdp.h"

#define qw_tally(...) \
	do { \
		if (!alone_without.counters) \
			qw_tally(__VA_ARGS__); \
	} while (0)

#include "seal.h"

#define qw_tag_of(...) (alone_without.tag ? 0 : qw_tag_of(__VA_ARGS__))
#define qw_brings_command(...) (!alone_without.checksum && qw_brings_command(__VA_ARGS__))

#include "act.h"

#define qw_wake(...) \
	do { \
		if (!alone_without.wake) \
			qw_wake(__VA_ARGS__); \
	} while (0)

#include "plane.bpf.c"

/* What the host would say. Of a Paxos role's box `me` is 0 for the coordinator and 1 for an
 * acceptor, and the peers are all to whom it sends. */
struct alone_setup {
	__u32 me;
	__u32 replicas;
	__u32 window;
	__u32 epoch; /* lowest bit of that of the clients' key */
	struct qw_tag_key clients;
	struct qw_endpoint peers[QW_REPLICAS_MAX];
};
/* The instance that a box's packets are of. */
#define ALONE_INSTANCE 1

_Static_assert(sizeof(struct alone_setup) == 1584, "as in src/alone.rs");
_Static_assert(sizeof(struct alone_without) == 24, "as in src/alone.rs");
_Static_assert(sizeof(struct qw_config) == 32, "as in src/alone.rs");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alone_setup);
} alone_setup SEC(".maps");

static __always_inline int alone_switch_on(const struct alone_setup *setup)
{
	__u32 zero = 0;
	struct qw_box *box = bpf_map_lookup_elem(&boxes, &zero);

	if (!box)
		return XDP_ABORTED;
	box->destinations = setup->replicas;
	box->registers.configuration = 1;
	box->registers.round = QW_ROUND_OWNERS;
	box->registers.next_instance = ALONE_INSTANCE;
	box->registers.window = qw_config.window;
	box->registers.role = setup->me ? QW_PAXOS_ROLE_ACCEPTOR : QW_PAXOS_ROLE_COORDINATOR;
	return XDP_PASS;
}

/* The host runs it once, before any packet comes. */
SEC("xdp")
int alone_engage(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct alone_setup *setup = bpf_map_lookup_elem(&alone_setup, &zero);
	struct qw_group *group = bpf_map_lookup_elem(&groups, &zero);
	struct qw_keys_at *at = bpf_map_lookup_elem(&keys, &zero);
	struct qw_tag_key *clients;
	__u32 word;
	__u32 slot;

	(void)ctx;
	if (!setup || !group || !at)
		return XDP_ABORTED;
	/* Replicas sign with a key of zeros: nothing here is secret. */
	at->keys.cluster.valid = 1;
	clients = &at->keys.clients.key[setup->epoch & 1];
	clients->sip = setup->clients.sip;
	for (word = 0; word < QW_DIGEST_WORDS_MAX + 1; word++)
		clients->digest.word[word] = setup->clients.digest.word[word];
	at->keys.clients.valid = 1 << (setup->epoch & 1);
	at->sign_clients = setup->epoch & 1;
	for (slot = 0; slot < QW_REPLICAS_MAX; slot++) {
		__u32 place = slot;

		bpf_map_update_elem(&peers, &place, &setup->peers[slot], BPF_ANY);
	}
	if (qw_config.window)
		return alone_switch_on(setup);
	group->registers.term = 1;
	group->registers.ring_slots = qw_config.ring_slots;
	group->registers.window = setup->window;
	group->registers.role = setup->me ? QW_ROLE_FOLLOWER : QW_ROLE_LEADER;
	group->registers.me = (__u8)setup->me;
	group->registers.replicas = (__u8)setup->replicas;
	group->registers.quorum = (__u8)(setup->replicas / 2 + 1);
	return XDP_PASS;
}

/* The host runs it now and then: nobody wants what the ring holds. */
SEC("xdp")
int alone_release(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct qw_group *group = bpf_map_lookup_elem(&groups, &zero);
	struct qw_lock *lock = bpf_map_lookup_elem(&locks, &zero);

	(void)ctx;
	if (!group || !lock)
		return XDP_ABORTED;
	if (!qw_change_begins(group, lock, zero))
		return XDP_PASS; /* the next time, then */
	qw_release(&group->registers, group->registers.last_index);
	group->seen_index = group->registers.last_index;
	qw_change_ends(group, lock);
	return XDP_PASS;
}

#define ALONE_FRAME_BYTES_MAX 1514

/* A frame and a state that it meets, again and again. */
struct alone_again {
	__u32 bytes;
	__u32 reserved;
	struct qw_group group;
	struct qw_box box;
	struct qw_paxos_slot slot;
	__u8 frame[ALONE_FRAME_BYTES_MAX];
	__u8 padding[6];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alone_again);
} again SEC(".maps");

/* 0: the plane's program; 1: one that does nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} alone_programs SEC(".maps");

/* Moves the state to where it is kept, or back. */
static __always_inline int alone_keep(struct alone_again *saved, int is_back)
{
	__u32 zero = 0;
	struct qw_group *group = bpf_map_lookup_elem(&groups, &zero);
	struct qw_box *box = bpf_map_lookup_elem(&boxes, &zero);
	struct qw_instance *instance;

	if (!group || !box)
		return 0;
	if (!qw_config.window) {
		if (is_back)
			*group = saved->group;
		else
			saved->group = *group;
		return 1;
	}
	instance = qw_instance_of(0, ALONE_INSTANCE);
	if (!instance)
		return 0;
	if (is_back) {
		*box = saved->box;
		instance->slot = saved->slot;
	} else {
		saved->box = *box;
		saved->slot = instance->slot;
	}
	return 1;
}

/* The state of this moment is what frames will meet. */
SEC("xdp")
int alone_save(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct alone_again *saved = bpf_map_lookup_elem(&again, &zero);
	long bytes = qw_frame_bytes(ctx);

	if (!saved || bytes < 1 || bytes > ALONE_FRAME_BYTES_MAX || !alone_keep(saved, 0))
		return XDP_ABORTED;
	saved->bytes = (__u32)bytes;
	return bpf_xdp_load_bytes(ctx, 0, saved->frame, (__u32)bytes) ? XDP_ABORTED : XDP_PASS;
}

static __always_inline int alone_restore(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct alone_again *saved = bpf_map_lookup_elem(&again, &zero);
	__u32 bytes;

	if (!saved)
		return 0;
	bytes = saved->bytes;
	if (bytes == 0 || bytes > ALONE_FRAME_BYTES_MAX || !alone_keep(saved, 1))
		return 0;
	if (bpf_xdp_adjust_tail(ctx, (int)((long)bytes - qw_frame_bytes(ctx))))
		return 0;
	return bpf_xdp_store_bytes(ctx, 0, saved->frame, bytes) == 0;
}

SEC("xdp")
int alone_step_again(struct xdp_md *ctx)
{
	if (alone_restore(ctx))
		bpf_tail_call(ctx, &alone_programs, 0);
	return XDP_ABORTED;
}

/* What of that is not the plane's. */
SEC("xdp")
int alone_nothing_again(struct xdp_md *ctx)
{
	if (alone_restore(ctx))
		bpf_tail_call(ctx, &alone_programs, 1);
	return XDP_ABORTED;
}

SEC("xdp")
int alone_nothing(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_DROP;
}

/* Generated from dataplanes/xdp/shared.toml by `make generate`; do not edit.
 * What the programs and their host share in memory. */
#ifndef QW_XDP_SHARED_H
#define QW_XDP_SHARED_H

#include "qw_wire.h"
#include "qw_gap.h"
#include "qw_paxos.h"
#include "qw_recent.h"
#include "qw_step.h"
#include "qw_verify.h"

/* Logs that one interface may serve. */
#define QW_GROUPS_MAX 8
/* Places in the map of peers for replicas of one group, or for whom a box sends to: as many as
 * one frame has copies. */
#define QW_PEERS_STRIDE 32
/* Most commands that the host submits at once. The verifier follows each of them. */
#define QW_SUBMIT_MAX 8
/* Processors whose packets a fence waits for: a power of two. */
#define QW_CPUS_MAX 256
/* Any receive queue. */
#define QW_QUEUE_ANY 0xffffffff
/* Most copies of one frame. */
#define QW_COPIES_MAX 32
/* Most frames of a trial of the copies. */
#define QW_TRIAL_FRAMES_MAX 8
/* Room for what a trial of the copies shows. */
#define QW_TRIAL_COPIES_MAX 128
/* Entries that the host may leave unseen while nobody waits for it, or a quarter of its ring. */
#define QW_UNSEEN_MAX 1024
/* Places for one group's counters: more than there are, so that they are found by shifting. */
#define QW_COUNTS_STRIDE 64
/* Behind the counters of all groups stand those of the interface. */
#define QW_NO_GROUP 8
/* Room for what a group's host is told. */
#define QW_EVENTS_BYTES 65536

/* How one frame becomes several. */
enum qw_copies_by {
	/* A device map; see order.h. */
	QW_COPIES_BY_BROADCAST = 0,
	/* The program clone.bpf.c. */
	QW_COPIES_BY_CLONE = 1,
};

/* What the host wants done under the lock. */
enum qw_order {
	/* The registers become the group's. */
	QW_ORDER_ENGAGE = 1,
	/* The plane is switched off. */
	QW_ORDER_OFF = 2,
	/* A round of this number begins. */
	QW_ORDER_HEARTBEAT = 3,
	/* Everything up to the number is durable. */
	QW_ORDER_PERSISTED = 4,
	/* Everything up to the number is taken. */
	QW_ORDER_RELEASE = 5,
	/* The number becomes the time by which `leave` is judged. */
	QW_ORDER_CLOCK = 6,
};

/* What the host of a Paxos role wants done under the lock. Then registers and slot are those of
 * this moment. */
enum qw_box_order {
	/* The registers become the box's. */
	QW_BOX_ORDER_SWITCH_ON = 1,
	/* The box is switched off. */
	QW_BOX_ORDER_OFF = 2,
	/* The number becomes the configuration. */
	QW_BOX_ORDER_CONFIGURE = 3,
	/* Everything up to the number is forgotten. */
	QW_BOX_ORDER_TRIM = 4,
	/* The step is taken for the packet; the number is its instance. */
	QW_BOX_ORDER_STEP = 5,
	/* Nothing: it is about the instance of this number. */
	QW_BOX_ORDER_LOOK = 6,
	/* The slot and the value become those of its instance, the number. */
	QW_BOX_ORDER_PUT_BACK = 7,
};

/* What the host is told. */
enum qw_event_kind {
	/* Something happened since the host last looked. */
	QW_EVENT_KIND_WAKE = 1,
	/* Replica `slot` asks for what the ring holds no more. */
	QW_EVENT_KIND_BEHIND = 2,
	/* Send `from` and what follows to `slot` again: the kernel could not. */
	QW_EVENT_KIND_RESEND = 3,
	/* Answer the blind writes from `from` to `upto`: they are too many here. */
	QW_EVENT_KIND_ANSWER = 4,
	/* Answer those of a range that are not answered here. */
	QW_EVENT_KIND_ANSWER_REST = 5,
};

_Static_assert(sizeof(struct qw_keys) == 5616, "qw_keys has 5616 bytes");

/* What the programs are loaded for. */
struct qw_config {
	/* Of each group; a power of two. */
	__u32 ring_slots;
	/* Slots for groups: 1 to groups_max. */
	__u32 groups;
	/* The VLAN; 0: untagged. */
	__u32 vlan;
	/* The IPv4 address at which all replicas hear; 0: none. */
	__be32 multicast;
	/* Of this process; see struct qw_copy_proof. */
	__u32 secret[2];
	/* 1: groups have the kernel's lock, not our own; see maps.h. */
	__u32 kernels_lock;
	/* 0: the groups are replicas'. Else each is a box of a Paxos role with so many
	 * instances, a power of two. */
	__u32 window;
};
_Static_assert(sizeof(struct qw_config) == 32, "qw_config has 32 bytes");
_Static_assert(__builtin_offsetof(struct qw_config, ring_slots) == 0, "ring_slots is at 0");
_Static_assert(__builtin_offsetof(struct qw_config, groups) == 4, "groups is at 4");
_Static_assert(__builtin_offsetof(struct qw_config, vlan) == 8, "vlan is at 8");
_Static_assert(__builtin_offsetof(struct qw_config, multicast) == 12, "multicast is at 12");
_Static_assert(__builtin_offsetof(struct qw_config, secret) == 16, "secret is at 16");
_Static_assert(__builtin_offsetof(struct qw_config, kernels_lock) == 24, "kernels_lock is at 24");
_Static_assert(__builtin_offsetof(struct qw_config, window) == 28, "window is at 28");

/* Where a group's plane is. Its host writes it while packets come: the port last, and first when
 * the plane goes. */
struct qw_own {
	/* Port 0: there is no plane. */
	struct qw_endpoint at;
	/* The receive queue that its packets shall come by, or queue_any. */
	__u32 queue;
	/* Zero. */
	__u32 reserved;
};
_Static_assert(sizeof(struct qw_own) == 32, "qw_own has 32 bytes");
_Static_assert(__builtin_offsetof(struct qw_own, at) == 0, "at is at 0");
_Static_assert(__builtin_offsetof(struct qw_own, queue) == 24, "queue is at 24");
_Static_assert(__builtin_offsetof(struct qw_own, reserved) == 28, "reserved is at 28");

/* What the host says of a trial, and how far it is. */
struct qw_trial_head {
	/* Frames ordered. */
	__u32 frames;
	/* Copies noted. */
	__u32 copies;
	/* Copies ordered of each frame. */
	__u8 sizes[QW_TRIAL_FRAMES_MAX];
};
_Static_assert(sizeof(struct qw_trial_head) == 16, "qw_trial_head has 16 bytes");
_Static_assert(__builtin_offsetof(struct qw_trial_head, frames) == 0, "frames is at 0");
_Static_assert(__builtin_offsetof(struct qw_trial_head, copies) == 4, "copies is at 4");
_Static_assert(__builtin_offsetof(struct qw_trial_head, sizes) == 8, "sizes is at 8");

/* A trial of the copies: so many of each frame are ordered; each copy notes its frame and its
 * number. */
struct qw_trial {
	/* What was ordered. */
	struct qw_trial_head head;
	/* 256 * frame + number. */
	__u16 seen[QW_TRIAL_COPIES_MAX];
};
_Static_assert(sizeof(struct qw_trial) == 272, "qw_trial has 272 bytes");
_Static_assert(__builtin_offsetof(struct qw_trial, head) == 0, "head is at 0");
_Static_assert(__builtin_offsetof(struct qw_trial, seen) == 16, "seen is at 16");

/* One group. Programs write what stands before `woken`. */
struct qw_group {
	/* Odd while a step changes the registers. */
	__u64 version;
	/* The plane's registers. */
	struct qw_registers registers;
	/* What was asked for. */
	struct qw_gap gap;
	/* Leader: somebody waits for what the host says of this entry, maybe of earlier ones. */
	__u64 waited_index;
	/* 1: the plane is off from the next change on, because a program found that it must be. */
	__u64 broken;
	/* 0: the host sleeps, and wants to be woken. */
	__u64 woken;
	/* The last entry that the host has taken. */
	__u64 seen_index;
	/* 1: it looks at nothing by itself, so the first entry is to wake it. */
	__u64 idles;
	/* Leader: somebody waits for answers to this round, and to later ones; 0: nobody. */
	__u64 awaited_round;
	/* Zero: cache lines of its own, since other queues step other groups. */
	__u64 reserved[5];
};
_Static_assert(sizeof(struct qw_group) == 320, "qw_group has 320 bytes");
_Static_assert(__builtin_offsetof(struct qw_group, version) == 0, "version is at 0");
_Static_assert(__builtin_offsetof(struct qw_group, registers) == 8, "registers is at 8");
_Static_assert(__builtin_offsetof(struct qw_group, gap) == 208, "gap is at 208");
_Static_assert(__builtin_offsetof(struct qw_group, waited_index) == 232, "waited_index is at 232");
_Static_assert(__builtin_offsetof(struct qw_group, broken) == 240, "broken is at 240");
_Static_assert(__builtin_offsetof(struct qw_group, woken) == 248, "woken is at 248");
_Static_assert(__builtin_offsetof(struct qw_group, seen_index) == 256, "seen_index is at 256");
_Static_assert(__builtin_offsetof(struct qw_group, idles) == 264, "idles is at 264");
_Static_assert(__builtin_offsetof(struct qw_group, awaited_round) == 272, "awaited_round is at 272");
_Static_assert(__builtin_offsetof(struct qw_group, reserved) == 280, "reserved is at 280");

/* A group's host writes its own, runs qw_order or qw_submit_orders, and reads `done`, `out` and,
 * for the clock, `number`. */
struct qw_control {
	/* What is to be done (`order`). */
	__u32 order;
	/* Commands submitted. */
	__u32 count;
	/* Commands that were stored; RELEASE: whether that was so. */
	__u32 done;
	/* Zero. */
	__u32 reserved;
	/* What the order is about. */
	__u64 number;
	/* ENGAGE: they become the group's. */
	struct qw_registers registers;
	/* The commands. */
	struct qw_header in[QW_SUBMIT_MAX];
	/* What became of them. */
	struct qw_outcome out[QW_SUBMIT_MAX];
};
_Static_assert(sizeof(struct qw_control) == 1568, "qw_control has 1568 bytes");
_Static_assert(__builtin_offsetof(struct qw_control, order) == 0, "order is at 0");
_Static_assert(__builtin_offsetof(struct qw_control, count) == 4, "count is at 4");
_Static_assert(__builtin_offsetof(struct qw_control, done) == 8, "done is at 8");
_Static_assert(__builtin_offsetof(struct qw_control, reserved) == 12, "reserved is at 12");
_Static_assert(__builtin_offsetof(struct qw_control, number) == 16, "number is at 16");
_Static_assert(__builtin_offsetof(struct qw_control, registers) == 24, "registers is at 24");
_Static_assert(__builtin_offsetof(struct qw_control, in) == 224, "in is at 224");
_Static_assert(__builtin_offsetof(struct qw_control, out) == 800, "out is at 800");

/* A box of a Paxos role. Programs write what stands before `destinations`. */
struct qw_box {
	/* Odd while a step changes the registers. */
	__u64 version;
	/* The role's registers. */
	struct qw_paxos_registers registers;
	/* It fans out to so many of the first peers. */
	__u64 destinations;
	/* Zero: cache lines of its own. */
	__u64 reserved[4];
};
_Static_assert(sizeof(struct qw_box) == 128, "qw_box has 128 bytes");
_Static_assert(__builtin_offsetof(struct qw_box, version) == 0, "version is at 0");
_Static_assert(__builtin_offsetof(struct qw_box, registers) == 8, "registers is at 8");
_Static_assert(__builtin_offsetof(struct qw_box, destinations) == 88, "destinations is at 88");
_Static_assert(__builtin_offsetof(struct qw_box, reserved) == 96, "reserved is at 96");

/* What a box knows of an instance. All of it changes under the lock. */
struct qw_instance {
	/* As the step leaves it. */
	struct qw_paxos_slot slot;
	/* What was voted for. */
	__u8 value[QW_PAYLOAD_BYTES_MAX];
};
_Static_assert(sizeof(struct qw_instance) == 1432, "qw_instance has 1432 bytes");
_Static_assert(__builtin_offsetof(struct qw_instance, slot) == 0, "slot is at 0");
_Static_assert(__builtin_offsetof(struct qw_instance, value) == 56, "value is at 56");

/* A box's host writes it, runs qw_box_order, and reads what it has become. */
struct qw_box_control {
	/* What is to be done (`box_order`). */
	__u32 order;
	/* TRIM: whether that was so. */
	__u32 done;
	/* What the order is about; if that is an instance, `slot` and `value` are what is known
	 * of it then. */
	__u64 number;
	/* SWITCH_ON: they become the box's. What they are then. */
	struct qw_paxos_registers registers;
	/* STEP: of the packet. */
	struct qw_header header;
	/* STEP: what it says. */
	struct qw_outcome outcome;
	/* PUT_BACK: it becomes the instance's. */
	struct qw_paxos_slot slot;
	/* STEP: the packet's payload. PUT_BACK: what was voted for. */
	__u8 value[QW_PAYLOAD_BYTES_MAX];
};
_Static_assert(sizeof(struct qw_box_control) == 1696, "qw_box_control has 1696 bytes");
_Static_assert(__builtin_offsetof(struct qw_box_control, order) == 0, "order is at 0");
_Static_assert(__builtin_offsetof(struct qw_box_control, done) == 4, "done is at 4");
_Static_assert(__builtin_offsetof(struct qw_box_control, number) == 8, "number is at 8");
_Static_assert(__builtin_offsetof(struct qw_box_control, registers) == 16, "registers is at 16");
_Static_assert(__builtin_offsetof(struct qw_box_control, header) == 96, "header is at 96");
_Static_assert(__builtin_offsetof(struct qw_box_control, outcome) == 168, "outcome is at 168");
_Static_assert(__builtin_offsetof(struct qw_box_control, slot) == 264, "slot is at 264");
_Static_assert(__builtin_offsetof(struct qw_box_control, value) == 320, "value is at 320");

/* A group's keys. There are two places for each group: the host writes the one that is not in
 * use, then says that it is. */
struct qw_keys_at {
	/* All keys of the plane. */
	struct qw_keys keys;
	/* Lowest bit of the epoch to sign with, between replicas. */
	__u64 sign_cluster;
	/* The same for answers to clients. */
	__u64 sign_clients;
};
_Static_assert(sizeof(struct qw_keys_at) == 5632, "qw_keys_at has 5632 bytes");
_Static_assert(__builtin_offsetof(struct qw_keys_at, keys) == 0, "keys is at 0");
_Static_assert(__builtin_offsetof(struct qw_keys_at, sign_cluster) == 5616, "sign_cluster is at 5616");
_Static_assert(__builtin_offsetof(struct qw_keys_at, sign_clients) == 5624, "sign_clients is at 5624");

/* What is under way in the programs, by group and processor: what a group's fence waits for. A
 * processor writes its own only, but for copies_done, which is the ordering processor's. */
struct qw_in_step {
	/* Packets being served. */
	__u64 count;
	/* Copies that qw_copy will see, unless the kernel loses some. */
	__u64 copies_ordered;
	/* Copies that it has seen. */
	__u64 copies_done;
	/* Zero: a cache line for each. */
	__u64 reserved[5];
};
_Static_assert(sizeof(struct qw_in_step) == 64, "qw_in_step has 64 bytes");
_Static_assert(__builtin_offsetof(struct qw_in_step, count) == 0, "count is at 0");
_Static_assert(__builtin_offsetof(struct qw_in_step, copies_ordered) == 8, "copies_ordered is at 8");
_Static_assert(__builtin_offsetof(struct qw_in_step, copies_done) == 16, "copies_done is at 16");
_Static_assert(__builtin_offsetof(struct qw_in_step, reserved) == 24, "reserved is at 24");

/* What the host allows the program to do for memcached clients, from moment to moment. Only the
 * host writes it. Times are nanoseconds since the system was started, those asleep included, by
 * the kernel's clock. */
struct qw_leave {
	/* A plain `set` may go into the log before then. */
	__u64 sets_until;
	/* The leader's lease holds before then. */
	__u64 reads_until;
	/* The table of answers shows everything up to here. */
	__u64 applied_index;
	/* Where memcached clients ask; 0: nowhere. */
	__be16 port;
	/* Zero. */
	__u16 reserved[3];
};
_Static_assert(sizeof(struct qw_leave) == 32, "qw_leave has 32 bytes");
_Static_assert(__builtin_offsetof(struct qw_leave, sets_until) == 0, "sets_until is at 0");
_Static_assert(__builtin_offsetof(struct qw_leave, reads_until) == 8, "reads_until is at 8");
_Static_assert(__builtin_offsetof(struct qw_leave, applied_index) == 16, "applied_index is at 16");
_Static_assert(__builtin_offsetof(struct qw_leave, port) == 24, "port is at 24");
_Static_assert(__builtin_offsetof(struct qw_leave, reserved) == 26, "reserved is at 26");

/* What is allowed in each group. */
struct qw_leaves {
	/* By the group's slot. */
	struct qw_leave of[QW_GROUPS_MAX];
};
_Static_assert(sizeof(struct qw_leaves) == 256, "qw_leaves has 256 bytes");
_Static_assert(__builtin_offsetof(struct qw_leaves, of) == 0, "of is at 0");

/* One thing that the host is told. */
struct qw_event {
	/* What (`event_kind`). */
	__u32 kind;
	/* In which group. */
	__u16 group_slot;
	/* Which replica. */
	__u16 slot;
	/* The first index. */
	__u64 from;
	/* The last index. */
	__u64 upto;
};
_Static_assert(sizeof(struct qw_event) == 24, "qw_event has 24 bytes");
_Static_assert(__builtin_offsetof(struct qw_event, kind) == 0, "kind is at 0");
_Static_assert(__builtin_offsetof(struct qw_event, group_slot) == 4, "group_slot is at 4");
_Static_assert(__builtin_offsetof(struct qw_event, slot) == 6, "slot is at 6");
_Static_assert(__builtin_offsetof(struct qw_event, from) == 8, "from is at 8");
_Static_assert(__builtin_offsetof(struct qw_event, upto) == 16, "upto is at 16");

/* What is counted, behind the reasons. */
enum qw_count {
	/* Packets for a plane. */
	QW_COUNT_RECEIVED = QW_REASON_COUNT,
	/* Not ours: passed to the host. */
	QW_COUNT_FOREIGN,
	/* Entries put into the ring. */
	QW_COUNT_ENTRIES_STORED,
	/* Packets that left, each copy counted. */
	QW_COUNT_SENT,
	/* Answers to blind writes. */
	QW_COUNT_BLIND_ANSWERS,
	/* Entries sent again. */
	QW_COUNT_ENTRIES_RESENT,
	/* Gaps that were not asked for, since they just had been. */
	QW_COUNT_GAPS_NOT_ASKED,
	/* Values that a coordinator's box gave an instance. */
	QW_COUNT_INSTANCES_ASSIGNED,
	/* Requests that the data plane's program left to the server. */
	QW_COUNT_PASSED_UP,
	/* Packets that the kernel did not send because it knew no Ethernet address; the server
	 * sends entries among them. */
	QW_COUNT_LOST_NO_NEIGHBOUR,
	/* Packets that the kernel did not send because their frame could not be made longer. */
	QW_COUNT_LOST_NO_SPACE,
	/* Copies of a frame that the kernel made beyond those that were sent. */
	QW_COUNT_COPIES_NOT_NEEDED,
	/* Times that the data plane's program could not tell the server something: its queue was
	 * full. */
	QW_COUNT_EVENTS_LOST,
	/* Memcached clients' `set`s that were put into the log. */
	QW_COUNT_MEMCACHED_TAKEN,
	/* Memcached `get`s by UDP that the kernel answered itself. */
	QW_COUNT_MEMCACHED_ANSWERED,
	/* Datagrams of memcached clients that the kernel left to the server. */
	QW_COUNT_MEMCACHED_LEFT,
	/* Answers to a memcached `get` not sent because they changed while they were written. */
	QW_COUNT_LOST_ANSWER_CHANGED,
	/* Packets that the kernel did not send because they could not be written, signed or
	 * handed over. */
	QW_COUNT_LOST_UNSENT,
	/* Copies of packets that left behind the driver, where it cannot make them. */
	QW_COUNT_COPIES_CLONED,
	/* Frames at the interface that looked like an order of the data plane's program and were
	 * not. */
	QW_COUNT_COPY_ORDERS_FORGED,
	/* Packets dropped that came to the address of all replicas, and must not. */
	QW_COUNT_DROPPED_NOT_FOR_GROUP,
	/* Packets dropped because another processor held the log for too long. */
	QW_COUNT_DROPPED_BUSY,
	/* Packets for the data plane that did not come by the receive queue of xdp-queue: the
	 * network card does not steer them. */
	QW_COUNT_CAME_BY_OTHER_QUEUE,
	QW_COUNT_COUNT,
};

#endif

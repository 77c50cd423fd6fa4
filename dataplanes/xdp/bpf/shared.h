/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs and their host share in memory. The host's side is src/shared.rs. */
#ifndef QW_SHARED_H
#define QW_SHARED_H

/* For the verifier, which looks at such a function once. */
#define QW_MEMCACHED_PART __attribute__((noinline))

#include "qw_gap.h"
#include "qw_recent.h"
#include "qw_step.h"
#include "qw_verify.h"

/* Logs that one interface may serve. */
#define QW_GROUPS_MAX 8
/* Most commands that the host submits at once. The verifier follows each of them. */
#define QW_SUBMIT_MAX 8

/* Who waits for the answer to an entry. */
enum qw_asker {
	QW_ASKER_NONE = 0,
	QW_ASKER_PACKET = 1, /* a client that sent a REQUEST */
	QW_ASKER_MEMCACHED = 2, /* a memcached client, to whom STORED is said */
};

/* One end of a datagram's way, in network byte order. IPv4 addresses are mapped ones. */
struct qw_endpoint {
	__u8 address[16];
	__u16 port;
	__u8 mac[6]; /* zero: not known */
};
_Static_assert(sizeof(struct qw_endpoint) == 24, "as in src/shared.rs");

/* What the programs are loaded for. */
struct qw_config {
	__u32 ring_slots; /* of each group; a power of two */
	__u32 groups; /* slots for groups: 1 to QW_GROUPS_MAX */
	__u32 vlan; /* 0: untagged */
	__be32 multicast; /* the IPv4 address at which all replicas hear; 0: none */
	__u32 secret[2]; /* of this process; see struct qw_copy_proof */
	__u32 kernels_lock; /* 1: groups have the kernel's lock, not our own; see maps.h */
};
_Static_assert(sizeof(struct qw_config) == 28, "as in src/shared.rs");

/* Any receive queue. */
#define QW_QUEUE_ANY 0xffffffff

/* Where a group's plane is. Its host writes it while packets come: the port last, and first when the plane goes. */
struct qw_own {
	struct qw_endpoint at; /* port 0: there is no plane */
	__u32 queue; /* the receive queue that its packets shall come by, or QW_QUEUE_ANY */
	__u32 reserved;
};
_Static_assert(sizeof(struct qw_own) == 32, "as in src/shared.rs");

/* How one frame becomes several. */
enum qw_copies_by {
	QW_COPIES_BY_BROADCAST = 0, /* a device map; see order.h */
	QW_COPIES_BY_CLONE = 1, /* clone.bpf.c */
};

/* Most copies of one frame. */
#define QW_COPIES_MAX 32
/* Room for what a trial of the copies shows. */
#define QW_TRIAL_FRAMES_MAX 8
#define QW_TRIAL_COPIES_MAX 128

/* A trial of the copies: so many of each frame are ordered; each copy notes its frame and its number. */
struct qw_trial {
	__u32 frames; /* ordered */
	__u32 copies; /* noted */
	__u8 sizes[QW_TRIAL_FRAMES_MAX];
	__u16 seen[QW_TRIAL_COPIES_MAX]; /* 256 * frame + number */
};
_Static_assert(sizeof(struct qw_trial) == 272, "as in src/shared.rs");

/* One entry of the ring. `index` is written last, so whoever finds it finds all of the entry. */
struct qw_slot {
	__u64 index;
	__u64 previous_term;
	__u64 session;
	__u64 sequence;
	__u32 payload_crc32c;
	__u16 payload_bytes;
	__u8 flags;
	__u8 asked_by; /* enum qw_asker */
	struct qw_endpoint client;
	__u16 request; /* the memcached client's number for its request */
	__u8 answered_here; /* 1: the program answers it; 0: the host does, or nobody waits */
	__u8 reserved[5];
	__u8 payload[QW_PAYLOAD_BYTES_MAX];
};
_Static_assert(sizeof(struct qw_slot) == 1448, "as in src/shared.rs");

/* Entries that the host may leave unseen while nobody waits for it, or a quarter of its ring. */
#define QW_UNSEEN_MAX 1024

/* One group. Programs write what stands before `woken`. */
struct qw_group {
	__u64 version; /* odd while a step changes the registers */
	struct qw_registers registers;
	struct qw_gap gap;
	__u64 waited_index; /* leader: somebody waits for what the host says of this entry, maybe of earlier ones */
	__u64 broken; /* 1: the plane is off from the next change on, because a program found that it must be */
	__u64 woken; /* 0: the host sleeps, and wants to be woken */
	__u64 seen_index; /* the last entry that the host has taken */
	__u64 idles; /* 1: it looks at nothing by itself, so the first entry is to wake it */
	__u64 awaited_round; /* leader: somebody waits for answers to this round, and to later ones; 0: nobody */
	__u64 reserved[5]; /* cache lines of its own: other queues step other groups */
};
_Static_assert(sizeof(struct qw_group) == 320, "as in src/shared.rs");
_Static_assert(__builtin_offsetof(struct qw_group, woken) == 248, "as in src/shared.rs");

/* What the host wants done under the lock. */
enum qw_order {
	QW_ORDER_ENGAGE = 1, /* `registers` become the group's */
	QW_ORDER_OFF = 2,
	QW_ORDER_HEARTBEAT = 3, /* round `number` */
	QW_ORDER_PERSISTED = 4, /* up to `number` */
	QW_ORDER_RELEASE = 5, /* up to `number` */
	QW_ORDER_CLOCK = 6, /* `number` becomes the time by which `struct qw_leave` is judged */
};

/* A group's host writes its own, runs qw_order or qw_submit_orders, and reads `done`, `out` and, for the
 * clock, `number`. */
struct qw_control {
	__u32 order; /* enum qw_order */
	__u32 count;
	__u32 done; /* commands that were stored; RELEASE: whether that was so */
	__u32 reserved;
	__u64 number;
	struct qw_registers registers;
	struct qw_header in[QW_SUBMIT_MAX];
	struct qw_outcome out[QW_SUBMIT_MAX];
};

/* What the host allows the program to do for memcached clients, from moment to moment. Only the host writes it.
 * Times are nanoseconds since the system was started, those asleep included, by the kernel's clock. */
struct qw_leave {
	__u64 sets_until; /* plain `set`s may go into the log before then */
	__u64 reads_until; /* the leader's lease holds before then */
	__u64 applied_index; /* the table of answers shows everything up to here */
	__u16 port; /* where memcached clients ask, in network byte order; 0: nowhere */
	__u16 reserved[3];
};
_Static_assert(sizeof(struct qw_leave) == 32, "as in src/shared.rs");

struct qw_leaves {
	struct qw_leave of[QW_GROUPS_MAX];
};

/* What the program counts, beside the reasons of qw_wire.h. */
enum qw_count_of {
	QW_COUNT_RECEIVED = QW_REASON_COUNT, /* packets for a plane */
	QW_COUNT_FOREIGN, /* not ours: passed to the host */
	QW_COUNT_STORED,
	QW_COUNT_SENT, /* packets that left, each copy counted */
	QW_COUNT_BLIND_ANSWERS,
	QW_COUNT_RESENT,
	QW_COUNT_GAPS_NOT_ASKED,
	QW_COUNT_PASSED, /* ours, passed to the host */
	QW_COUNT_NO_NEIGHBOUR, /* not sent: no Ethernet address is known for whom it is */
	QW_COUNT_NO_SPACE, /* not sent: the frame could not be made longer */
	QW_COUNT_LATE_COPY, /* a copy that was not needed, or came to nothing */
	QW_COUNT_EVENTS_LOST, /* the host was not told: its queue of events was full */
	QW_COUNT_MEMCACHED_SETS, /* put into the log */
	QW_COUNT_MEMCACHED_READS, /* answered */
	QW_COUNT_MEMCACHED_LEFT, /* a memcached client's datagrams, left to the host */
	QW_COUNT_ANSWER_CHANGED, /* not sent: the answer to a `get` was replaced while it was written */
	QW_COUNT_UNSENT, /* not sent: the packet could not be written, signed or handed to the device */
	QW_COUNT_CLONED, /* copies that left by clone.bpf.c */
	QW_COUNT_ORDERS_FORGED, /* frames that looked like an order for copies, and were not ours */
	QW_COUNT_NOT_FOR_GROUP, /* dropped: to the address of all replicas, which is for APPENDs only */
	QW_COUNT_BUSY, /* dropped: another processor held the group for too long */
	QW_COUNT_OTHER_QUEUE, /* came by another receive queue than the one that was asked for */
	QW_COUNT_COUNT,
};

/* Places for one group's counters: more than there are, so that they are found by shifting. Behind those of all
 * groups stand those of the interface. */
#define QW_COUNTS_STRIDE 64
#define QW_NO_GROUP QW_GROUPS_MAX
_Static_assert(QW_COUNT_COUNT <= QW_COUNTS_STRIDE, "they have room");

/* Room for what a group's host is told. */
#define QW_EVENTS_BYTES (64 * 1024)

/* What the host is told. */
enum qw_event_kind {
	QW_EVENT_WAKE = 1, /* something happened since the host last looked */
	QW_EVENT_BEHIND = 2, /* replica `slot` asks for what the ring holds no more */
	QW_EVENT_RESEND = 3, /* send `from` and what follows to `slot` again: the kernel could not */
	QW_EVENT_ANSWER = 4, /* answer the blind writes from `from` to `upto`: they are too many here */
	QW_EVENT_ANSWER_REST = 5, /* answer those of a range that are not answered here */
};

struct qw_event {
	__u32 kind;
	__u16 group_slot;
	__u16 slot;
	__u64 from;
	__u64 upto;
};

#endif

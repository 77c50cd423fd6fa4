/* Generated from wire/format.toml by `make generate`; do not edit.
 * The packets of the fast path and the registers that a plane shares with its host. */
#ifndef QW_WIRE_H
#define QW_WIRE_H

#include <linux/types.h>

#define QW_MAGIC 0x5157
#define QW_VERSION 1
#define QW_HEADER_BYTES 72
#define QW_TAG_OFFSET 64
#define QW_REASON_COUNT 26
/* Paxos: most acceptors of a deployment. */
#define QW_ACCEPTORS_MAX 7
/* Paxos: most instances that can be open at a time. */
#define QW_INSTANCE_WINDOW_MAX 65536
/* Paxos: bytes of one acceptor's life in a configuration. */
#define QW_LIFE_BYTES 8
/* FORWARD: bytes before the request's payload that say who asked: an IPv6 address (IPv4 mapped),
 * then a port of 16 bits. The payload's checksum does not cover them. */
#define QW_ORIGIN_BYTES 18
/* Most bytes behind the header: the whole packet fits an MTU of 1500 over IPv4 and IPv6. */
#define QW_PAYLOAD_BYTES_MAX 1376
/* A replica that misses as many entries is repaired by software, in batches and beside the fast
 * path, unless all have to hold each entry. */
#define QW_REPAIR_ENTRIES_MAX 1024
/* Most replicas in one fast term. */
#define QW_REPLICAS_MAX 7
/* Most entries resent for one RETRANSMIT. */
#define QW_RESEND_ENTRIES_MAX 32
/* Paxos: a round's number is a count times this, and whose round it is: so no two coordinators
 * have one round. */
#define QW_ROUND_OWNERS 256
/* The sender of a packet that comes from a client. */
#define QW_SENDER_CLIENT 255

enum qw_kind {
	/* Client to any replica: replicate this command. */
	QW_KIND_REQUEST = 1,
	/* Leader to followers: store this entry. */
	QW_KIND_APPEND = 2,
	/* Follower to leader: everything up to here is stored as firmly as the durability asks. */
	QW_KIND_APPEND_OK = 3,
	/* Follower to leader: send again from here on. */
	QW_KIND_RETRANSMIT = 4,
	/* Leader to followers: it lives; its last index and commit index. Paxos: coordinator's
	 * host to the others' and to learners. */
	QW_KIND_HEARTBEAT = 5,
	/* Follower to leader: heard the round in `sequence`; also says what append_ok says. */
	QW_KIND_HEARTBEAT_OK = 6,
	/* Replica to client: what became of the command. */
	QW_KIND_ANSWER = 7,
	/* Follower to leader: a client's request; the payload begins with who asked. */
	QW_KIND_FORWARD = 8,
	/* Paxos. Proposer to coordinator: a value to be decided. */
	QW_KIND_SUBMIT = 9,
	/* Paxos. Coordinator to acceptors: promise this round, and say what was voted. Of all
	 * instances: the payload is the configuration. */
	QW_KIND_P1A = 10,
	/* Paxos. Acceptor to coordinator: promised; the payload is the value of its vote.
	 * Refused: the payload is the acceptor's configuration, if that is another one. */
	QW_KIND_P1B = 11,
	/* Paxos. Coordinator to acceptors: vote for this value. */
	QW_KIND_P2A = 12,
	/* Paxos. Acceptor to learners, and to whoever asked to be told: its vote. */
	QW_KIND_P2B = 13,
	/* Paxos. Coordinator's host to that of an acceptor that lost its memory: it is one
	 * again. */
	QW_KIND_ADMIT = 14,
	/* Paxos. Learner to the hosts of coordinators and acceptors: how far it has what was
	 * decided. */
	QW_KIND_CHECKPOINT = 15,
};

enum qw_flag {
	/* Lowest bit of the number of the key that made the tag. */
	QW_FLAG_EPOCH = 1,
	/* REQUEST, APPEND: answer as soon as it is committed, without what the state machine
	 * says. */
	QW_FLAG_BLIND = 2,
	/* The payload moves the log's time. */
	QW_FLAG_TICK = 4,
	/* The payload is a piece of a command, or of a value: number and count of pieces (32
	 * bits each), then bytes. A client's piece needs a session. ANSWER: this piece (its
	 * number, 32 bits) is in the log, the command is not complete. */
	QW_FLAG_FRAGMENT = 8,
	/* ANSWER: there is none of the state machine; `previous_term` says why, the payload says
	 * it for people. P1B, P2B: neither promised nor voted. Paxos' HEARTBEAT: answers one of
	 * a coordinator that has the sender's number; the round is the one in that. */
	QW_FLAG_REFUSED = 16,
	/* APPEND: the payload is several commands, each carried out by itself, in this order
	 * (README.md). No client may set it. */
	QW_FLAG_BUNDLE = 32,
	/* P2A: the vote goes to the sender, too, not to learners alone. */
	QW_FLAG_TELL = 64,
};

enum qw_role {
	/* The plane moves nothing; only then the host may write the registers. */
	QW_ROLE_OFF = 0,
	/* Assigns indexes, counts acknowledgements. */
	QW_ROLE_LEADER = 1,
	/* Stores and acknowledges. */
	QW_ROLE_FOLLOWER = 2,
};

enum qw_paxos_role {
	/* The box forwards only; only then the host may write the registers. */
	QW_PAXOS_ROLE_OFF = 0,
	/* Gives each value its instance. */
	QW_PAXOS_ROLE_COORDINATOR = 1,
	/* Promises rounds and votes. */
	QW_PAXOS_ROLE_ACCEPTOR = 2,
};

enum qw_action {
	/* Put the payload into the ring at `index`. Acceptor: into the slot of the instance
	 * `index`. */
	QW_STORE = 1,
	/* Send `header` with the payload to all other replicas of the grant. Coordinator: to all
	 * acceptors. Acceptor: to all learners. */
	QW_FANOUT = 2,
	/* Send `header` to the sender; in a follower, to the leader. */
	QW_REPLY = 4,
	/* The commit index went from `commit_from` to the registers' value: answer the blind
	 * writes between, tell the host. */
	QW_COMMIT = 8,
	/* Hand the packet, unchanged, to software. Comes alone; the registers are untouched. */
	QW_TO_SOFTWARE = 16,
	/* Send the request on to the leader. */
	QW_FORWARD = 32,
	/* Send the entries from `index` on to the sender again, at most resend_entries_max and
	 * not beyond the last. */
	QW_RESEND = 64,
	/* Acceptor: what is to be sent goes to the host, which sends it when it is durable. */
	QW_HOLD = 128,
	/* Acceptor: the payload behind `header` is the one in the slot of `index`. */
	QW_VOTE = 256,
};

enum qw_reason {
	/* Neither. */
	QW_REASON_NONE = 0,
	/* Short, cut, or another magic. */
	QW_REASON_NOT_OURS = 1,
	/* A format version unknown here. */
	QW_REASON_VERSION = 2,
	/* Lengths or fields that no sender of ours makes. */
	QW_REASON_MALFORMED = 3,
	/* The authentication tag is wrong. */
	QW_REASON_TAG = 4,
	/* The payload's checksum is wrong. */
	QW_REASON_CHECKSUM = 5,
	/* Another group. */
	QW_REASON_GROUP = 6,
	/* No fast term runs here. */
	QW_REASON_OFF = 7,
	/* A term before ours. */
	QW_REASON_TERM_OLD = 8,
	/* A term after ours. */
	QW_REASON_TERM_NEW = 9,
	/* The sender has no slot in the grant, or not the one such a packet comes from. */
	QW_REASON_STRANGER = 10,
	/* A kind that this role does not take. */
	QW_REASON_UNEXPECTED = 11,
	/* An index that software moved. */
	QW_REASON_BEFORE_START = 12,
	/* The entry before is not the one the sender means. */
	QW_REASON_HISTORY = 13,
	/* An index that was never assigned. */
	QW_REASON_BEYOND_LAST = 14,
	/* Asked for again, but the ring holds it no more, or too much is missing
	 * (repair_entries_max). */
	QW_REASON_BEHIND_RING = 15,
	/* The host has not taken enough yet. */
	QW_REASON_RING_FULL = 16,
	/* Too many entries wait for a commit. Paxos: the instance is beyond the window; learners
	 * have to checkpoint. */
	QW_REASON_WINDOW_FULL = 17,
	/* Had already; acknowledged again. */
	QW_REASON_REPEATED = 18,
	/* Entries before it are missing; asked for. */
	QW_REASON_GAP = 19,
	/* Paxos: another configuration than ours. */
	QW_REASON_CONFIGURATION = 20,
	/* Paxos: a higher round was promised. */
	QW_REASON_ROUND_OLD = 21,
	/* Paxos: the round was promised to another coordinator of the same number. */
	QW_REASON_ROUND_TAKEN = 22,
	/* Paxos: another value was voted for in this round. */
	QW_REASON_TWO_VALUES = 23,
	/* Paxos: the instance is forgotten; all learners have it. */
	QW_REASON_TRIMMED = 24,
	/* Paxos: this acceptor lost its memory, and is no member for this instance. */
	QW_REASON_NO_MEMBER = 25,
};

#define QW_FLAGS_KNOWN 0x7f

/* One header, in the byte order of the machine. */
struct qw_header {
	/* Always 0x5157; anything else is not ours. */
	__u16 magic;
	/* Format version; a packet with an unknown one is dropped and counted, never guessed at. */
	__u8 version;
	/* What the packet says, see [kinds]. */
	__u8 kind;
	/* Slot of the sending replica in the grant, 0 to 6; 255 from a client. P1A, P2A, ADMIT:
	 * whose round it is. P1B, P2B: the acceptor. CHECKPOINT: the learner. Paxos' HEARTBEAT:
	 * the coordinator. */
	__u8 sender;
	/* See [flags]. */
	__u8 flags;
	/* Bytes behind the header, 0 to payload_bytes_max. */
	__u16 payload_bytes;
	/* Which replicated log. */
	__u32 group;
	/* CRC32C of the payload, set by whoever made it and carried untouched; 0 without
	 * payload. */
	__u32 payload_crc32c;
	/* The fast term; 0 in a REQUEST. Paxos: the round; 0 in a SUBMIT. P1B, P2B that is
	 * refused: the round promised to somebody else. */
	__u64 term;
	/* APPEND: of this entry. APPEND_OK, HEARTBEAT_OK: highest one promised. RETRANSMIT:
	 * first one missing. HEARTBEAT: the leader's last. ANSWER: of the command; 0 if unknown.
	 * Paxos: the instance; P1A, P1B: 0 is all of them. CHECKPOINT: everything up to this
	 * instance is kept. Paxos' HEARTBEAT: the last instance given to a value. */
	__u64 index;
	/* APPEND: term of the entry before. ANSWER that is refused: the number of the reason
	 * (README.md). P1B, P2B: the round of the acceptor's vote for this instance; of all: the
	 * acceptor is no member up to this instance; refused: the round that is. ADMIT: the
	 * acceptor is no member up to this instance. Zero otherwise. */
	__u64 previous_term;
	/* Highest index the sender knows to be committed. Paxos: the configuration; 0 in a
	 * SUBMIT. P1B that is not refused: the configuration, XOR the number that was drawn for
	 * the round asked for. */
	__u64 commit_index;
	/* Client session of the command; 0: none, then it may be applied twice if sent twice.
	 * Paxos: of the value; 0: a no-op. P1A: a number that its coordinator drew for this
	 * round. P1B of all, ADMIT: instances up to this one are forgotten. */
	__u64 session;
	/* Number of the command in its session. Between replicas, except in APPEND: the
	 * heartbeat round. Paxos: of the value in its session. P1B of all: the highest instance
	 * voted for. P1B, P2B that is refused: instances up to this one are forgotten. */
	__u64 sequence;
	/* SipHash-2-4 of the 64 bytes before it and of the payload's digest (README.md); 0 where
	 * nothing is authenticated. */
	__u64 tag;
};
_Static_assert(sizeof(struct qw_header) == 72, "qw_header has 72 bytes");
_Static_assert(__builtin_offsetof(struct qw_header, magic) == 0, "magic is at 0");
_Static_assert(__builtin_offsetof(struct qw_header, version) == 2, "version is at 2");
_Static_assert(__builtin_offsetof(struct qw_header, kind) == 3, "kind is at 3");
_Static_assert(__builtin_offsetof(struct qw_header, sender) == 4, "sender is at 4");
_Static_assert(__builtin_offsetof(struct qw_header, flags) == 5, "flags is at 5");
_Static_assert(__builtin_offsetof(struct qw_header, payload_bytes) == 6, "payload_bytes is at 6");
_Static_assert(__builtin_offsetof(struct qw_header, group) == 8, "group is at 8");
_Static_assert(__builtin_offsetof(struct qw_header, payload_crc32c) == 12, "payload_crc32c is at 12");
_Static_assert(__builtin_offsetof(struct qw_header, term) == 16, "term is at 16");
_Static_assert(__builtin_offsetof(struct qw_header, index) == 24, "index is at 24");
_Static_assert(__builtin_offsetof(struct qw_header, previous_term) == 32, "previous_term is at 32");
_Static_assert(__builtin_offsetof(struct qw_header, commit_index) == 40, "commit_index is at 40");
_Static_assert(__builtin_offsetof(struct qw_header, session) == 48, "session is at 48");
_Static_assert(__builtin_offsetof(struct qw_header, sequence) == 56, "sequence is at 56");
_Static_assert(__builtin_offsetof(struct qw_header, tag) == 64, "tag is at 64");

/* What a plane and its host share about one group. */
struct qw_registers {
	/* The fast term. */
	__u64 term;
	/* The last entry that software moved: the plane's first is the one after. */
	__u64 start_index;
	/* The last entry stored. */
	__u64 last_index;
	/* Its term. */
	__u64 last_term;
	/* Highest index known to be committed; at most last_index. */
	__u64 commit_index;
	/* Highest index that may be acknowledged. */
	__u64 persisted_index;
	/* The host has taken everything up to here: those slots may be reused. */
	__u64 released_index;
	/* Follower: highest heartbeat round heard. Leader: last one sent. */
	__u64 round;
	/* Leader: highest index each replica has acknowledged. */
	__u64 match_index[7];
	/* Leader: highest heartbeat round each replica has answered. */
	__u64 heard_round[7];
	/* Which replicated log. */
	__u32 group;
	/* Entries the ring holds; a power of two. */
	__u32 ring_slots;
	/* Most entries stored and not committed; at most ring_slots. */
	__u32 window;
	/* See [roles]. */
	__u8 role;
	/* Own slot in the grant. */
	__u8 me;
	/* The leader's slot. */
	__u8 leader;
	/* Slots in the grant, 1 to 7. */
	__u8 replicas;
	/* Replicas that must hold an entry to commit it, the leader included. */
	__u8 quorum;
	/* 1: acknowledge only what the host says is persisted (durability `sync`). */
	__u8 held;
	/* Zero. */
	__u16 reserved[3];
};
_Static_assert(sizeof(struct qw_registers) == 200, "qw_registers has 200 bytes");
_Static_assert(__builtin_offsetof(struct qw_registers, term) == 0, "term is at 0");
_Static_assert(__builtin_offsetof(struct qw_registers, start_index) == 8, "start_index is at 8");
_Static_assert(__builtin_offsetof(struct qw_registers, last_index) == 16, "last_index is at 16");
_Static_assert(__builtin_offsetof(struct qw_registers, last_term) == 24, "last_term is at 24");
_Static_assert(__builtin_offsetof(struct qw_registers, commit_index) == 32, "commit_index is at 32");
_Static_assert(__builtin_offsetof(struct qw_registers, persisted_index) == 40, "persisted_index is at 40");
_Static_assert(__builtin_offsetof(struct qw_registers, released_index) == 48, "released_index is at 48");
_Static_assert(__builtin_offsetof(struct qw_registers, round) == 56, "round is at 56");
_Static_assert(__builtin_offsetof(struct qw_registers, match_index) == 64, "match_index is at 64");
_Static_assert(__builtin_offsetof(struct qw_registers, heard_round) == 120, "heard_round is at 120");
_Static_assert(__builtin_offsetof(struct qw_registers, group) == 176, "group is at 176");
_Static_assert(__builtin_offsetof(struct qw_registers, ring_slots) == 180, "ring_slots is at 180");
_Static_assert(__builtin_offsetof(struct qw_registers, window) == 184, "window is at 184");
_Static_assert(__builtin_offsetof(struct qw_registers, role) == 188, "role is at 188");
_Static_assert(__builtin_offsetof(struct qw_registers, me) == 189, "me is at 189");
_Static_assert(__builtin_offsetof(struct qw_registers, leader) == 190, "leader is at 190");
_Static_assert(__builtin_offsetof(struct qw_registers, replicas) == 191, "replicas is at 191");
_Static_assert(__builtin_offsetof(struct qw_registers, quorum) == 192, "quorum is at 192");
_Static_assert(__builtin_offsetof(struct qw_registers, held) == 193, "held is at 193");
_Static_assert(__builtin_offsetof(struct qw_registers, reserved) == 194, "reserved is at 194");

/* What a box and its host share about one Paxos role. */
struct qw_paxos_registers {
	/* Which life of each acceptor counts, as one number that stands for it: packets of
	 * another one are not taken. */
	__u64 configuration;
	/* Coordinator: its round. Acceptor: the highest one promised for all instances. */
	__u64 round;
	/* Acceptor: the number that the coordinator of that round drew; 0: unknown. */
	__u64 promised_to;
	/* Acceptor: the highest round promised for a single instance. */
	__u64 single_round;
	/* Coordinator: of the next value. */
	__u64 next_instance;
	/* Instances up to this one are forgotten. */
	__u64 trimmed;
	/* Acceptor that has lost its memory: it is no member up to this instance, except where
	 * it has voted since. */
	__u64 bound;
	/* Acceptor: the highest instance voted for. */
	__u64 highest;
	/* Which deployment. */
	__u32 group;
	/* Instances that can be open behind `trimmed`; a power of two. */
	__u32 window;
	/* See [paxos_roles]. */
	__u8 role;
	/* Coordinator: whose rounds its are. Acceptor: its number. */
	__u8 me;
	/* 1: say only what the host says is durable. */
	__u8 held;
	/* Zero. */
	__u8 reserved[5];
};
_Static_assert(sizeof(struct qw_paxos_registers) == 80, "qw_paxos_registers has 80 bytes");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, configuration) == 0, "configuration is at 0");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, round) == 8, "round is at 8");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, promised_to) == 16, "promised_to is at 16");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, single_round) == 24, "single_round is at 24");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, next_instance) == 32, "next_instance is at 32");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, trimmed) == 40, "trimmed is at 40");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, bound) == 48, "bound is at 48");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, highest) == 56, "highest is at 56");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, group) == 64, "group is at 64");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, window) == 68, "window is at 68");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, role) == 72, "role is at 72");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, me) == 73, "me is at 73");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, held) == 74, "held is at 74");
_Static_assert(__builtin_offsetof(struct qw_paxos_registers, reserved) == 75, "reserved is at 75");

/* What an acceptor knows of one instance. */
struct qw_paxos_slot {
	/* Whose it is; 0, or another: nothing is known of the instance. */
	__u64 instance;
	/* The highest one promised for this instance, or voted in. */
	__u64 round;
	/* The number that the coordinator of that round drew; 0: unknown. */
	__u64 promised_to;
	/* The round of the vote; 0: none. */
	__u64 vote_round;
	/* Of the value voted for. */
	__u64 session;
	/* Of the value voted for. */
	__u64 sequence;
	/* Of the value voted for. */
	__u32 payload_crc32c;
	/* Of the value voted for. */
	__u16 payload_bytes;
	/* Of the value voted for. */
	__u8 flags;
	/* Zero. */
	__u8 reserved;
};
_Static_assert(sizeof(struct qw_paxos_slot) == 56, "qw_paxos_slot has 56 bytes");
_Static_assert(__builtin_offsetof(struct qw_paxos_slot, instance) == 0, "instance is at 0");
_Static_assert(__builtin_offsetof(struct qw_paxos_slot, round) == 8, "round is at 8");
_Static_assert(__builtin_offsetof(struct qw_paxos_slot, promised_to) == 16, "promised_to is at 16");
_Static_assert(__builtin_offsetof(struct qw_paxos_slot, vote_round) == 24, "vote_round is at 24");
_Static_assert(__builtin_offsetof(struct qw_paxos_slot, session) == 32, "session is at 32");
_Static_assert(__builtin_offsetof(struct qw_paxos_slot, sequence) == 40, "sequence is at 40");
_Static_assert(__builtin_offsetof(struct qw_paxos_slot, payload_crc32c) == 48, "payload_crc32c is at 48");
_Static_assert(__builtin_offsetof(struct qw_paxos_slot, payload_bytes) == 52, "payload_bytes is at 52");
_Static_assert(__builtin_offsetof(struct qw_paxos_slot, flags) == 54, "flags is at 54");
_Static_assert(__builtin_offsetof(struct qw_paxos_slot, reserved) == 55, "reserved is at 55");

static inline __attribute__((always_inline)) __u8
qw_load_u8(const __u8 *bytes)
{
	return (__u8)((__u8)bytes[0]);
}

static inline __attribute__((always_inline)) void
qw_store_u8(__u8 *bytes, __u8 value)
{
	bytes[0] = (__u8)value;
}

static inline __attribute__((always_inline)) __u16
qw_load_u16(const __u8 *bytes)
{
#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16(*(const __u16 *)bytes);
#else
	return (__u16)((__u16)bytes[0] << 8 |
		       (__u16)bytes[1]);
#endif
}

static inline __attribute__((always_inline)) void
qw_store_u16(__u8 *bytes, __u16 value)
{
#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	*(__u16 *)bytes = __builtin_bswap16(value);
#else
	bytes[0] = (__u8)(value >> 8);
	bytes[1] = (__u8)value;
#endif
}

static inline __attribute__((always_inline)) __u32
qw_load_u32(const __u8 *bytes)
{
#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap32(*(const __u32 *)bytes);
#else
	return (__u32)((__u32)bytes[0] << 24 |
		       (__u32)bytes[1] << 16 |
		       (__u32)bytes[2] << 8 |
		       (__u32)bytes[3]);
#endif
}

static inline __attribute__((always_inline)) void
qw_store_u32(__u8 *bytes, __u32 value)
{
#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	*(__u32 *)bytes = __builtin_bswap32(value);
#else
	bytes[0] = (__u8)(value >> 24);
	bytes[1] = (__u8)(value >> 16);
	bytes[2] = (__u8)(value >> 8);
	bytes[3] = (__u8)value;
#endif
}

static inline __attribute__((always_inline)) __u64
qw_load_u64(const __u8 *bytes)
{
#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap64(*(const __u64 *)bytes);
#else
	return (__u64)((__u64)bytes[0] << 56 |
		       (__u64)bytes[1] << 48 |
		       (__u64)bytes[2] << 40 |
		       (__u64)bytes[3] << 32 |
		       (__u64)bytes[4] << 24 |
		       (__u64)bytes[5] << 16 |
		       (__u64)bytes[6] << 8 |
		       (__u64)bytes[7]);
#endif
}

static inline __attribute__((always_inline)) void
qw_store_u64(__u8 *bytes, __u64 value)
{
#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	*(__u64 *)bytes = __builtin_bswap64(value);
#else
	bytes[0] = (__u8)(value >> 56);
	bytes[1] = (__u8)(value >> 48);
	bytes[2] = (__u8)(value >> 40);
	bytes[3] = (__u8)(value >> 32);
	bytes[4] = (__u8)(value >> 24);
	bytes[5] = (__u8)(value >> 16);
	bytes[6] = (__u8)(value >> 8);
	bytes[7] = (__u8)value;
#endif
}

/* Reads all fields; checks none. */
static inline __attribute__((always_inline)) void
qw_header_decode(struct qw_header *header, const __u8 bytes[QW_HEADER_BYTES])
{
	header->magic = qw_load_u16(bytes + 0);
	header->version = qw_load_u8(bytes + 2);
	header->kind = qw_load_u8(bytes + 3);
	header->sender = qw_load_u8(bytes + 4);
	header->flags = qw_load_u8(bytes + 5);
	header->payload_bytes = qw_load_u16(bytes + 6);
	header->group = qw_load_u32(bytes + 8);
	header->payload_crc32c = qw_load_u32(bytes + 12);
	header->term = qw_load_u64(bytes + 16);
	header->index = qw_load_u64(bytes + 24);
	header->previous_term = qw_load_u64(bytes + 32);
	header->commit_index = qw_load_u64(bytes + 40);
	header->session = qw_load_u64(bytes + 48);
	header->sequence = qw_load_u64(bytes + 56);
	header->tag = qw_load_u64(bytes + 64);
}

/* Writes all fields, big-endian. */
static inline __attribute__((always_inline)) void
qw_header_encode(const struct qw_header *header, __u8 bytes[QW_HEADER_BYTES])
{
	qw_store_u16(bytes + 0, header->magic);
	qw_store_u8(bytes + 2, header->version);
	qw_store_u8(bytes + 3, header->kind);
	qw_store_u8(bytes + 4, header->sender);
	qw_store_u8(bytes + 5, header->flags);
	qw_store_u16(bytes + 6, header->payload_bytes);
	qw_store_u32(bytes + 8, header->group);
	qw_store_u32(bytes + 12, header->payload_crc32c);
	qw_store_u64(bytes + 16, header->term);
	qw_store_u64(bytes + 24, header->index);
	qw_store_u64(bytes + 32, header->previous_term);
	qw_store_u64(bytes + 40, header->commit_index);
	qw_store_u64(bytes + 48, header->session);
	qw_store_u64(bytes + 56, header->sequence);
	qw_store_u64(bytes + 64, header->tag);
}

#endif

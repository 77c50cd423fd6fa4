/* Generated from fastpath/shared.toml by `make generate`; do not edit.
 * What the C of the fast path and its callers share in memory. */
#ifndef QW_SHARED_H
#define QW_SHARED_H

#include "qw_wire.h"
#include "qw_store.h"

/* The last index there ever may be, so that one more is still a number. */
#define QW_INDEX_MAX 0xfffffffffffffffeULL
/* The datagram that says that a `set` is stored. */
#define QW_MEMCACHED_ANSWER_BYTES 16
/* Places in a table of answers: a power of two. */
#define QW_RECENT_PLACES 2048
/* Longest answer in a table, without memcached's frame: one datagram of at most 1,400 bytes. */
#define QW_RECENT_TEXT_BYTES_MAX 1392
/* A key in words of 4 bytes. */
#define QW_RECENT_KEY_WORDS 63

/* Who waits for the answer to an entry. */
enum qw_requester {
	/* Nobody. */
	QW_REQUESTER_NONE = 0,
	/* A client that sent a REQUEST. */
	QW_REQUESTER_PACKET = 1,
	/* A memcached client, to whom STORED is said. */
	QW_REQUESTER_MEMCACHED = 2,
};

/* What a step says shall be done. */
struct qw_outcome {
	/* What to send. Its tag and the flag `epoch` are the plane's. */
	struct qw_header header;
	/* STORE: of the entry. RESEND: the first. */
	__u64 index;
	/* COMMIT: the commit index before. */
	__u64 commit_from;
	/* Bits of the actions, to be carried out in ascending order. */
	__u32 actions;
	/* The number of the reason why the packet was not taken, or not as the sender meant it. */
	__u32 reason;
};
_Static_assert(sizeof(struct qw_outcome) == 96, "qw_outcome has 96 bytes");
_Static_assert(__builtin_offsetof(struct qw_outcome, header) == 0, "header is at 0");
_Static_assert(__builtin_offsetof(struct qw_outcome, index) == 72, "index is at 72");
_Static_assert(__builtin_offsetof(struct qw_outcome, commit_from) == 80, "commit_from is at 80");
_Static_assert(__builtin_offsetof(struct qw_outcome, actions) == 88, "actions is at 88");
_Static_assert(__builtin_offsetof(struct qw_outcome, reason) == 92, "reason is at 92");

/* What a follower knows beside its registers. Zero when it is engaged, but for `leader_last`,
 * which begins as the last index. */
struct qw_gap {
	/* Highest index the leader has named. */
	__u64 leader_last;
	/* What it was last asked for; 0: nothing. */
	__u64 asked_index;
	/* Packets behind that gap since, and since something was stored. */
	__u64 quiet;
};
_Static_assert(sizeof(struct qw_gap) == 24, "qw_gap has 24 bytes");
_Static_assert(__builtin_offsetof(struct qw_gap, leader_last) == 0, "leader_last is at 0");
_Static_assert(__builtin_offsetof(struct qw_gap, asked_index) == 8, "asked_index is at 8");
_Static_assert(__builtin_offsetof(struct qw_gap, quiet) == 16, "quiet is at 16");

/* A `set` of a memcached client, and where its parts stand in the datagram. */
struct qw_memcached_set {
	/* What the client keeps with the value. */
	__u32 client_flags;
	/* The client's number for its request. */
	__u16 request;
	/* Where the key begins. */
	__u16 key_at;
	/* How long it is. */
	__u16 key_bytes;
	/* Where the value begins. */
	__u16 value_at;
	/* How long it is. */
	__u16 value_bytes;
	/* 1: the client wants no answer. */
	__u16 noreply;
};
_Static_assert(sizeof(struct qw_memcached_set) == 16, "qw_memcached_set has 16 bytes");
_Static_assert(__builtin_offsetof(struct qw_memcached_set, client_flags) == 0, "client_flags is at 0");
_Static_assert(__builtin_offsetof(struct qw_memcached_set, request) == 4, "request is at 4");
_Static_assert(__builtin_offsetof(struct qw_memcached_set, key_at) == 6, "key_at is at 6");
_Static_assert(__builtin_offsetof(struct qw_memcached_set, key_bytes) == 8, "key_bytes is at 8");
_Static_assert(__builtin_offsetof(struct qw_memcached_set, value_at) == 10, "value_at is at 10");
_Static_assert(__builtin_offsetof(struct qw_memcached_set, value_bytes) == 12, "value_bytes is at 12");
_Static_assert(__builtin_offsetof(struct qw_memcached_set, noreply) == 14, "noreply is at 14");

/* The answer to a `get`. */
struct qw_recent_answer {
	/* How long the key is; 0: there is none. */
	__u16 key_bytes;
	/* How long the answer is. */
	__u16 text_bytes;
	/* The key, with zeros behind it. */
	__u32 key[QW_RECENT_KEY_WORDS];
	/* The answer. */
	__u8 text[QW_RECENT_TEXT_BYTES_MAX];
};
_Static_assert(sizeof(struct qw_recent_answer) == 1648, "qw_recent_answer has 1648 bytes");
_Static_assert(__builtin_offsetof(struct qw_recent_answer, key_bytes) == 0, "key_bytes is at 0");
_Static_assert(__builtin_offsetof(struct qw_recent_answer, text_bytes) == 2, "text_bytes is at 2");
_Static_assert(__builtin_offsetof(struct qw_recent_answer, key) == 4, "key is at 4");
_Static_assert(__builtin_offsetof(struct qw_recent_answer, text) == 256, "text is at 256");

/* A place for answers. The host writes the answer that is not in use, then says that it is: a
 * host that stands still while it writes keeps nobody from reading. Whoever finds the same
 * version before and after has read one answer whole. */
struct qw_recent {
	/* Its lowest bit says which answer is in use. */
	__u64 version;
	/* The answers. */
	struct qw_recent_answer of[2];
};
_Static_assert(sizeof(struct qw_recent) == 3304, "qw_recent has 3304 bytes");
_Static_assert(__builtin_offsetof(struct qw_recent, version) == 0, "version is at 0");
_Static_assert(__builtin_offsetof(struct qw_recent, of) == 8, "of is at 8");

/* One end of a datagram's way, in network byte order. IPv4 addresses are mapped ones. */
struct qw_endpoint {
	/* The IP address. */
	__u8 address[16];
	/* The UDP port. */
	__be16 port;
	/* The Ethernet address; zero: not known. */
	__u8 mac[6];
};
_Static_assert(sizeof(struct qw_endpoint) == 24, "qw_endpoint has 24 bytes");
_Static_assert(__builtin_offsetof(struct qw_endpoint, address) == 0, "address is at 0");
_Static_assert(__builtin_offsetof(struct qw_endpoint, port) == 16, "port is at 16");
_Static_assert(__builtin_offsetof(struct qw_endpoint, mac) == 18, "mac is at 18");

/* One entry of a ring that a plane writes and its host reads. `index` is written last, so
 * whoever finds it finds all of the entry. */
struct qw_slot {
	/* Of the entry. */
	__u64 index;
	/* The term of the entry before. */
	__u64 previous_term;
	/* The client session of the command. */
	__u64 session;
	/* Number of the command in its session. */
	__u64 sequence;
	/* The payload's checksum. */
	__u32 payload_crc32c;
	/* Bytes of the payload. */
	__u16 payload_bytes;
	/* As in the header. */
	__u8 flags;
	/* Who waits for the answer (`requester`). */
	__u8 requester;
	/* Where that is. */
	struct qw_endpoint client;
	/* The memcached client's number for its request. */
	__u16 request;
	/* 1: the plane answers it; 0: the host does, or nobody waits. */
	__u8 answered_here;
	/* Zero. */
	__u8 reserved[5];
	/* The command. */
	__u8 payload[QW_PAYLOAD_BYTES_MAX];
};
_Static_assert(sizeof(struct qw_slot) == 1448, "qw_slot has 1448 bytes");
_Static_assert(__builtin_offsetof(struct qw_slot, index) == 0, "index is at 0");
_Static_assert(__builtin_offsetof(struct qw_slot, previous_term) == 8, "previous_term is at 8");
_Static_assert(__builtin_offsetof(struct qw_slot, session) == 16, "session is at 16");
_Static_assert(__builtin_offsetof(struct qw_slot, sequence) == 24, "sequence is at 24");
_Static_assert(__builtin_offsetof(struct qw_slot, payload_crc32c) == 32, "payload_crc32c is at 32");
_Static_assert(__builtin_offsetof(struct qw_slot, payload_bytes) == 36, "payload_bytes is at 36");
_Static_assert(__builtin_offsetof(struct qw_slot, flags) == 38, "flags is at 38");
_Static_assert(__builtin_offsetof(struct qw_slot, requester) == 39, "requester is at 39");
_Static_assert(__builtin_offsetof(struct qw_slot, client) == 40, "client is at 40");
_Static_assert(__builtin_offsetof(struct qw_slot, request) == 64, "request is at 64");
_Static_assert(__builtin_offsetof(struct qw_slot, answered_here) == 66, "answered_here is at 66");
_Static_assert(__builtin_offsetof(struct qw_slot, reserved) == 67, "reserved is at 67");
_Static_assert(__builtin_offsetof(struct qw_slot, payload) == 72, "payload is at 72");

#endif

/* Generated from client/interpose/shared.toml by `make generate`; do not edit.
 * What a served program and its replica share in memory. */
#ifndef QW_RINGS_H
#define QW_RINGS_H

#include "qw_wire.h"

/* The first number of the page of control. */
#define QW_RINGS_MAGIC 1364677200
/* Of all that stands here. */
#define QW_RINGS_VERSION 3
/* The page of control; the ring of what the program is given begins there. */
#define QW_PAGE_BYTES 4096
/* Most bytes behind a record's head: the longest datagram, and from where to where. What is
 * longer is several records. */
#define QW_RECORD_BYTES_MAX 65600
/* Bytes of datagrams that a program may leave unread at one of its sockets, as with the
 * kernel's. More are lost. */
#define QW_DATAGRAMS_BYTES_MAX 212992
/* How often the program looks at an empty ring before it sleeps. */
#define QW_SPINS_MAX 200
/* Waits in a row that may not last and find nothing: the next one takes a turn. */
#define QW_IDLE_WAITS_MAX 64

/* What a record is that the program is given. */
enum qw_given {
	/* Nothing, up to the end of the ring. */
	QW_GIVEN_PAD = 0,
	/* A turn begins: so many records belong to it. */
	QW_GIVEN_TURN = 1,
	/* A client has connected. */
	QW_GIVEN_ACCEPT = 2,
	/* Bytes of a client. */
	QW_GIVEN_DATA = 3,
	/* A client sends no more. */
	QW_GIVEN_END = 4,
	/* A client's connection is gone. */
	QW_GIVEN_RESET = 5,
	/* A datagram of a client. */
	QW_GIVEN_DATAGRAM = 6,
	/* A signal, as if somebody had sent it: `connection` is its number. */
	QW_GIVEN_SIGNAL = 7,
};

/* What a record is that the program says. */
enum qw_said {
	/* Nothing, up to the end of the ring. */
	QW_SAID_PAD = 0,
	/* Bytes for a client. */
	QW_SAID_DATA = 1,
	/* The program sends this client no more. */
	QW_SAID_SHUT = 2,
	/* The program has closed the connection. */
	QW_SAID_CLOSE = 3,
	/* The program listens at a port. */
	QW_SAID_LISTEN = 4,
	/* It does so no more. */
	QW_SAID_UNLISTEN = 5,
	/* A datagram for a client. */
	QW_SAID_DATAGRAM = 6,
};

/* Why a program may not go on. */
enum qw_why {
	/* It may. */
	QW_WHY_NONE = 0,
	/* A second thread reads clients' connections; `detail` is its number. */
	QW_WHY_SECOND_READER = 1,
	/* A child process uses a client's connection; `detail` is the call. */
	QW_WHY_INHERITED = 2,
	/* The kernel cannot be told to make no child of it; `detail` is the error. */
	QW_WHY_CHILDREN = 3,
	/* A call on a client's connection that is not served; `detail` is the call. */
	QW_WHY_CALL = 4,
	/* What it was given makes no sense; `detail` is the place. */
	QW_WHY_BROKEN_RING = 5,
	/* There is no memory for what clients have sent. */
	QW_WHY_OUT_OF_MEMORY = 6,
	/* A thread takes part whose turn is not ordered, with `--serial`; `detail` is its
	 * number, or 0. */
	QW_WHY_STRANGER = 7,
};

/* An address and a port. */
struct qw_endpoint {
	/* IPv6; IPv4 is mapped into it. */
	__u8 ip[16];
	/* In the byte order of the machine. */
	__u16 port;
	/* 1: as the program sees it. */
	__u16 is_ipv6;
};
_Static_assert(sizeof(struct qw_endpoint) == 20, "qw_endpoint has 20 bytes");
_Static_assert(__builtin_offsetof(struct qw_endpoint, ip) == 0, "ip is at 0");
_Static_assert(__builtin_offsetof(struct qw_endpoint, port) == 16, "port is at 16");
_Static_assert(__builtin_offsetof(struct qw_endpoint, is_ipv6) == 18, "is_ipv6 is at 18");

/* The head of a record. Its bytes follow, and zeros to the next multiple of 8. */
struct qw_record {
	/* What it is. */
	__u32 kind;
	/* Bytes behind the head. */
	__u32 bytes;
	/* The number of the client's connection. */
	__u64 connection;
	/* The turn it belongs to, or was said in; 0: before the first. */
	__u64 turn;
};
_Static_assert(sizeof(struct qw_record) == 24, "qw_record has 24 bytes");
_Static_assert(__builtin_offsetof(struct qw_record, kind) == 0, "kind is at 0");
_Static_assert(__builtin_offsetof(struct qw_record, bytes) == 4, "bytes is at 4");
_Static_assert(__builtin_offsetof(struct qw_record, connection) == 8, "connection is at 8");
_Static_assert(__builtin_offsetof(struct qw_record, turn) == 16, "turn is at 16");

/* Behind the head of a turn. */
struct qw_turn {
	/* The log's time, in nanoseconds. */
	__u64 log_time_ns;
	/* The time of day then, in nanoseconds since 1970. */
	__u64 wall_ns;
	/* Records that follow and belong to it. */
	__u32 events;
	/* Zero. */
	__u32 reserved;
};
_Static_assert(sizeof(struct qw_turn) == 24, "qw_turn has 24 bytes");
_Static_assert(__builtin_offsetof(struct qw_turn, log_time_ns) == 0, "log_time_ns is at 0");
_Static_assert(__builtin_offsetof(struct qw_turn, wall_ns) == 8, "wall_ns is at 8");
_Static_assert(__builtin_offsetof(struct qw_turn, events) == 16, "events is at 16");
_Static_assert(__builtin_offsetof(struct qw_turn, reserved) == 20, "reserved is at 20");

/* Behind the head of `accept` and, before the bytes, of `datagram`. */
struct qw_accept {
	/* Where the client is. */
	struct qw_endpoint peer;
	/* Where it connected to: the port is the one at which the program listens. */
	struct qw_endpoint own;
};
_Static_assert(sizeof(struct qw_accept) == 40, "qw_accept has 40 bytes");
_Static_assert(__builtin_offsetof(struct qw_accept, peer) == 0, "peer is at 0");
_Static_assert(__builtin_offsetof(struct qw_accept, own) == 20, "own is at 20");

/* Behind the head of `listen` and `unlisten`. */
struct qw_listen {
	/* Where. */
	struct qw_endpoint at;
	/* 1: UDP. 0: TCP. */
	__u32 is_datagrams;
};
_Static_assert(sizeof(struct qw_listen) == 24, "qw_listen has 24 bytes");
_Static_assert(__builtin_offsetof(struct qw_listen, at) == 0, "at is at 0");
_Static_assert(__builtin_offsetof(struct qw_listen, is_datagrams) == 20, "is_datagrams is at 20");

/* The page of control. What different sides write lies in cache lines of their own. */
struct qw_control {
	/* `rings_magic`. */
	__u32 magic;
	/* `rings_version`. */
	__u32 version;
	/* Size of the ring of what the program is given. */
	__u64 given_bytes;
	/* Size of the ring of what it says. */
	__u64 said_bytes;
	/* By how much the time goes on at each look at a clock. */
	__u64 step_ns;
	/* The log's time before the first turn. */
	__u64 start_log_time_ns;
	/* The time of day then. */
	__u64 start_wall_ns;
	/* 1: it may connect to other servers. */
	__u32 outbound_passes;
	/* Zero. */
	__u32 reserved9;
	/* Zero. */
	__u64 reserved0;
	/* What all chance follows from. */
	__u32 key[8];
	/* Zero. */
	__u64 reserved1[4];
	/* The replica: bytes written; whole turns only. */
	__u64 given_head;
	/* Zero. */
	__u64 reserved2[7];
	/* The program: bytes taken. */
	__u64 given_tail;
	/* The program: 1: it is to be woken. */
	__u32 program_sleeps;
	/* The program, with `--serial`: the number of the thread whose turn it is. */
	__u32 holder;
	/* The program: it wants the turn after this one; all that it said in it is written. */
	__u64 turn_done;
	/* The program: the log's time at which a wait of it ends; all ones: none. */
	__u64 deadline_ns;
	/* The program: bytes of clients that it was given and has not read. */
	__u64 unread_bytes;
	/* The program: why it may not go on. */
	__u32 why;
	/* The program: where it wanted to connect to last. */
	__u32 outbound_port;
	/* The program: what belongs to `why`. */
	__u64 detail;
	/* The program: how often it wanted to connect to another server. */
	__u64 outbound;
	/* The program: bytes written. */
	__u64 said_head;
	/* The program: datagrams that it had no room for. */
	__u64 lost_datagrams;
	/* Zero. */
	__u64 reserved6[6];
	/* The replica: bytes taken. */
	__u64 said_tail;
	/* The replica: 1: it is to be woken. */
	__u32 replica_sleeps;
	/* Zero. */
	__u32 reserved7;
	/* Zero. */
	__u64 reserved8[6];
};
_Static_assert(sizeof(struct qw_control) == 384, "qw_control has 384 bytes");
_Static_assert(__builtin_offsetof(struct qw_control, magic) == 0, "magic is at 0");
_Static_assert(__builtin_offsetof(struct qw_control, version) == 4, "version is at 4");
_Static_assert(__builtin_offsetof(struct qw_control, given_bytes) == 8, "given_bytes is at 8");
_Static_assert(__builtin_offsetof(struct qw_control, said_bytes) == 16, "said_bytes is at 16");
_Static_assert(__builtin_offsetof(struct qw_control, step_ns) == 24, "step_ns is at 24");
_Static_assert(__builtin_offsetof(struct qw_control, start_log_time_ns) == 32, "start_log_time_ns is at 32");
_Static_assert(__builtin_offsetof(struct qw_control, start_wall_ns) == 40, "start_wall_ns is at 40");
_Static_assert(__builtin_offsetof(struct qw_control, outbound_passes) == 48, "outbound_passes is at 48");
_Static_assert(__builtin_offsetof(struct qw_control, reserved9) == 52, "reserved9 is at 52");
_Static_assert(__builtin_offsetof(struct qw_control, reserved0) == 56, "reserved0 is at 56");
_Static_assert(__builtin_offsetof(struct qw_control, key) == 64, "key is at 64");
_Static_assert(__builtin_offsetof(struct qw_control, reserved1) == 96, "reserved1 is at 96");
_Static_assert(__builtin_offsetof(struct qw_control, given_head) == 128, "given_head is at 128");
_Static_assert(__builtin_offsetof(struct qw_control, reserved2) == 136, "reserved2 is at 136");
_Static_assert(__builtin_offsetof(struct qw_control, given_tail) == 192, "given_tail is at 192");
_Static_assert(__builtin_offsetof(struct qw_control, program_sleeps) == 200, "program_sleeps is at 200");
_Static_assert(__builtin_offsetof(struct qw_control, holder) == 204, "holder is at 204");
_Static_assert(__builtin_offsetof(struct qw_control, turn_done) == 208, "turn_done is at 208");
_Static_assert(__builtin_offsetof(struct qw_control, deadline_ns) == 216, "deadline_ns is at 216");
_Static_assert(__builtin_offsetof(struct qw_control, unread_bytes) == 224, "unread_bytes is at 224");
_Static_assert(__builtin_offsetof(struct qw_control, why) == 232, "why is at 232");
_Static_assert(__builtin_offsetof(struct qw_control, outbound_port) == 236, "outbound_port is at 236");
_Static_assert(__builtin_offsetof(struct qw_control, detail) == 240, "detail is at 240");
_Static_assert(__builtin_offsetof(struct qw_control, outbound) == 248, "outbound is at 248");
_Static_assert(__builtin_offsetof(struct qw_control, said_head) == 256, "said_head is at 256");
_Static_assert(__builtin_offsetof(struct qw_control, lost_datagrams) == 264, "lost_datagrams is at 264");
_Static_assert(__builtin_offsetof(struct qw_control, reserved6) == 272, "reserved6 is at 272");
_Static_assert(__builtin_offsetof(struct qw_control, said_tail) == 320, "said_tail is at 320");
_Static_assert(__builtin_offsetof(struct qw_control, replica_sleeps) == 328, "replica_sleeps is at 328");
_Static_assert(__builtin_offsetof(struct qw_control, reserved7) == 332, "reserved7 is at 332");
_Static_assert(__builtin_offsetof(struct qw_control, reserved8) == 336, "reserved8 is at 336");

#endif

// Generated from client/interpose/shared.toml by `make generate`; do not edit.

/// The first number of the page of control.
pub const RINGS_MAGIC: u32 = 1364677200;
/// Of all that stands here.
pub const RINGS_VERSION: u32 = 3;
/// The page of control; the ring of what the program is given begins there.
pub const PAGE_BYTES: usize = 4096;
/// Most bytes behind a record's head: the longest datagram, and from where to where. What is longer
/// is several records.
pub const RECORD_BYTES_MAX: usize = 65600;
/// Bytes of datagrams that a program may leave unread at one of its sockets, as with the kernel's.
/// More are lost.
pub const DATAGRAMS_BYTES_MAX: usize = 212992;
/// How often the program looks at an empty ring before it sleeps.
pub const SPINS_MAX: usize = 200;
/// Waits in a row that may not last and find nothing: the next one takes a turn.
pub const IDLE_WAITS_MAX: usize = 64;
/// What a record is that the program is given. Nothing, up to the end of the ring.
pub const GIVEN_PAD: u32 = 0;
/// What a record is that the program is given. A turn begins: so many records belong to it.
pub const GIVEN_TURN: u32 = 1;
/// What a record is that the program is given. A client has connected.
pub const GIVEN_ACCEPT: u32 = 2;
/// What a record is that the program is given. Bytes of a client.
pub const GIVEN_DATA: u32 = 3;
/// What a record is that the program is given. A client sends no more.
pub const GIVEN_END: u32 = 4;
/// What a record is that the program is given. A client's connection is gone.
pub const GIVEN_RESET: u32 = 5;
/// What a record is that the program is given. A datagram of a client.
pub const GIVEN_DATAGRAM: u32 = 6;
/// What a record is that the program is given. A signal, as if somebody had sent it: `connection`
/// is its number.
pub const GIVEN_SIGNAL: u32 = 7;
/// What a record is that the program says. Nothing, up to the end of the ring.
pub const SAID_PAD: u32 = 0;
/// What a record is that the program says. Bytes for a client.
pub const SAID_DATA: u32 = 1;
/// What a record is that the program says. The program sends this client no more.
pub const SAID_SHUT: u32 = 2;
/// What a record is that the program says. The program has closed the connection.
pub const SAID_CLOSE: u32 = 3;
/// What a record is that the program says. The program listens at a port.
pub const SAID_LISTEN: u32 = 4;
/// What a record is that the program says. It does so no more.
pub const SAID_UNLISTEN: u32 = 5;
/// What a record is that the program says. A datagram for a client.
pub const SAID_DATAGRAM: u32 = 6;
/// Why a program may not go on. It may.
pub const WHY_NONE: u32 = 0;
/// Why a program may not go on. A second thread reads clients' connections; `detail` is its number.
pub const WHY_SECOND_READER: u32 = 1;
/// Why a program may not go on. A child process uses a client's connection; `detail` is the call.
pub const WHY_INHERITED: u32 = 2;
/// Why a program may not go on. The kernel cannot be told to make no child of it; `detail` is the
/// error.
pub const WHY_CHILDREN: u32 = 3;
/// Why a program may not go on. A call on a client's connection that is not served; `detail` is the
/// call.
pub const WHY_CALL: u32 = 4;
/// Why a program may not go on. What it was given makes no sense; `detail` is the place.
pub const WHY_BROKEN_RING: u32 = 5;
/// Why a program may not go on. There is no memory for what clients have sent.
pub const WHY_OUT_OF_MEMORY: u32 = 6;
/// Why a program may not go on. A thread takes part whose turn is not ordered, with `--serial`;
/// `detail` is its number, or 0.
pub const WHY_STRANGER: u32 = 7;

/// Bytes of `endpoint`.
pub const ENDPOINT_BYTES: usize = 20;
/// Where `ip` stands in `endpoint`.
pub const ENDPOINT_IP_AT: usize = 0;
/// Where `port` stands in `endpoint`.
pub const ENDPOINT_PORT_AT: usize = 16;
/// Where `is_ipv6` stands in `endpoint`.
pub const ENDPOINT_IS_IPV6_AT: usize = 18;

/// Bytes of `record`.
pub const RECORD_BYTES: usize = 24;
/// Where `kind` stands in `record`.
pub const RECORD_KIND_AT: usize = 0;
/// Where `bytes` stands in `record`.
pub const RECORD_BYTES_AT: usize = 4;
/// Where `connection` stands in `record`.
pub const RECORD_CONNECTION_AT: usize = 8;
/// Where `turn` stands in `record`.
pub const RECORD_TURN_AT: usize = 16;

/// Bytes of `turn`.
pub const TURN_BYTES: usize = 24;
/// Where `log_time_ns` stands in `turn`.
pub const TURN_LOG_TIME_NS_AT: usize = 0;
/// Where `wall_ns` stands in `turn`.
pub const TURN_WALL_NS_AT: usize = 8;
/// Where `events` stands in `turn`.
pub const TURN_EVENTS_AT: usize = 16;
/// Where `reserved` stands in `turn`.
pub const TURN_RESERVED_AT: usize = 20;

/// Bytes of `accept`.
pub const ACCEPT_BYTES: usize = 40;
/// Where `peer` stands in `accept`.
pub const ACCEPT_PEER_AT: usize = 0;
/// Where `own` stands in `accept`.
pub const ACCEPT_OWN_AT: usize = 20;

/// Bytes of `listen`.
pub const LISTEN_BYTES: usize = 24;
/// Where `at` stands in `listen`.
pub const LISTEN_AT_AT: usize = 0;
/// Where `is_datagrams` stands in `listen`.
pub const LISTEN_IS_DATAGRAMS_AT: usize = 20;

/// Bytes of `control`.
pub const CONTROL_BYTES: usize = 384;
/// Where `magic` stands in `control`.
pub const CONTROL_MAGIC_AT: usize = 0;
/// Where `version` stands in `control`.
pub const CONTROL_VERSION_AT: usize = 4;
/// Where `given_bytes` stands in `control`.
pub const CONTROL_GIVEN_BYTES_AT: usize = 8;
/// Where `said_bytes` stands in `control`.
pub const CONTROL_SAID_BYTES_AT: usize = 16;
/// Where `step_ns` stands in `control`.
pub const CONTROL_STEP_NS_AT: usize = 24;
/// Where `start_log_time_ns` stands in `control`.
pub const CONTROL_START_LOG_TIME_NS_AT: usize = 32;
/// Where `start_wall_ns` stands in `control`.
pub const CONTROL_START_WALL_NS_AT: usize = 40;
/// Where `outbound_passes` stands in `control`.
pub const CONTROL_OUTBOUND_PASSES_AT: usize = 48;
/// Where `reserved9` stands in `control`.
pub const CONTROL_RESERVED9_AT: usize = 52;
/// Where `reserved0` stands in `control`.
pub const CONTROL_RESERVED0_AT: usize = 56;
/// Where `key` stands in `control`.
pub const CONTROL_KEY_AT: usize = 64;
/// Where `reserved1` stands in `control`.
pub const CONTROL_RESERVED1_AT: usize = 96;
/// Where `given_head` stands in `control`.
pub const CONTROL_GIVEN_HEAD_AT: usize = 128;
/// Where `reserved2` stands in `control`.
pub const CONTROL_RESERVED2_AT: usize = 136;
/// Where `given_tail` stands in `control`.
pub const CONTROL_GIVEN_TAIL_AT: usize = 192;
/// Where `program_sleeps` stands in `control`.
pub const CONTROL_PROGRAM_SLEEPS_AT: usize = 200;
/// Where `holder` stands in `control`.
pub const CONTROL_HOLDER_AT: usize = 204;
/// Where `turn_done` stands in `control`.
pub const CONTROL_TURN_DONE_AT: usize = 208;
/// Where `deadline_ns` stands in `control`.
pub const CONTROL_DEADLINE_NS_AT: usize = 216;
/// Where `unread_bytes` stands in `control`.
pub const CONTROL_UNREAD_BYTES_AT: usize = 224;
/// Where `why` stands in `control`.
pub const CONTROL_WHY_AT: usize = 232;
/// Where `outbound_port` stands in `control`.
pub const CONTROL_OUTBOUND_PORT_AT: usize = 236;
/// Where `detail` stands in `control`.
pub const CONTROL_DETAIL_AT: usize = 240;
/// Where `outbound` stands in `control`.
pub const CONTROL_OUTBOUND_AT: usize = 248;
/// Where `said_head` stands in `control`.
pub const CONTROL_SAID_HEAD_AT: usize = 256;
/// Where `lost_datagrams` stands in `control`.
pub const CONTROL_LOST_DATAGRAMS_AT: usize = 264;
/// Where `reserved6` stands in `control`.
pub const CONTROL_RESERVED6_AT: usize = 272;
/// Where `said_tail` stands in `control`.
pub const CONTROL_SAID_TAIL_AT: usize = 320;
/// Where `replica_sleeps` stands in `control`.
pub const CONTROL_REPLICA_SLEEPS_AT: usize = 328;
/// Where `reserved7` stands in `control`.
pub const CONTROL_RESERVED7_AT: usize = 332;
/// Where `reserved8` stands in `control`.
pub const CONTROL_RESERVED8_AT: usize = 336;

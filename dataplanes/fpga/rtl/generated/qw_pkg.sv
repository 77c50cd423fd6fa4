// Generated from wire/format.toml and fastpath/checks.toml by `make generate`; do not edit.
// A structure's first member is first on the wire; element 0 of an array is its last.
// verilator lint_off UNUSEDPARAM
package qw_pkg;
  localparam logic [15:0] MAGIC = 16'h5157;
  localparam logic [7:0] VERSION = 8'd1;
  localparam int HEADER_BYTES = 72;
  localparam int TAG_OFFSET = 64;
  localparam int REASON_COUNT = 26;
  // Paxos: most acceptors of a deployment.
  localparam int ACCEPTORS_MAX = 7;
  // Paxos: most instances that can be open at a time.
  localparam int INSTANCE_WINDOW_MAX = 65536;
  // Paxos: bytes of one acceptor's life in a configuration.
  localparam int LIFE_BYTES = 8;
  // FORWARD: bytes before the request's payload that say who asked: an IPv6 address (IPv4 mapped),
  // then a port of 16 bits. The payload's checksum does not cover them.
  localparam int ORIGIN_BYTES = 18;
  // Most bytes behind the header: the whole packet fits an MTU of 1500 over IPv4 and IPv6.
  localparam int PAYLOAD_BYTES_MAX = 1376;
  // A replica that misses as many entries is repaired by software, in batches and beside the fast
  // path, unless all have to hold each entry.
  localparam int REPAIR_ENTRIES_MAX = 1024;
  // Most replicas in one fast term.
  localparam int REPLICAS_MAX = 7;
  // Most entries resent for one RETRANSMIT.
  localparam int RESEND_ENTRIES_MAX = 32;
  // Paxos: a round's number is a count times this, and whose round it is: so no two coordinators
  // have one round.
  localparam int ROUND_OWNERS = 256;
  // The sender of a packet that comes from a client.
  localparam int SENDER_CLIENT = 255;

  // Client to any replica: replicate this command.
  localparam logic [7:0] KIND_REQUEST = 8'd1;
  // Leader to followers: store this entry.
  localparam logic [7:0] KIND_APPEND = 8'd2;
  // Follower to leader: everything up to here is stored as firmly as the durability asks.
  localparam logic [7:0] KIND_APPEND_OK = 8'd3;
  // Follower to leader: send again from here on.
  localparam logic [7:0] KIND_RETRANSMIT = 8'd4;
  // Leader to followers: it lives; its last index and commit index. Paxos: coordinator's host to
  // the others' and to learners.
  localparam logic [7:0] KIND_HEARTBEAT = 8'd5;
  // Follower to leader: heard the round in `sequence`; also says what append_ok says.
  localparam logic [7:0] KIND_HEARTBEAT_OK = 8'd6;
  // Replica to client: what became of the command.
  localparam logic [7:0] KIND_ANSWER = 8'd7;
  // Follower to leader: a client's request; the payload begins with who asked.
  localparam logic [7:0] KIND_FORWARD = 8'd8;
  // Paxos. Proposer to coordinator: a value to be decided.
  localparam logic [7:0] KIND_SUBMIT = 8'd9;
  // Paxos. Coordinator to acceptors: promise this round, and say what was voted. Of all instances:
  // the payload is the configuration.
  localparam logic [7:0] KIND_P1A = 8'd10;
  // Paxos. Acceptor to coordinator: promised; the payload is the value of its vote. Refused: the
  // payload is the acceptor's configuration, if that is another one.
  localparam logic [7:0] KIND_P1B = 8'd11;
  // Paxos. Coordinator to acceptors: vote for this value.
  localparam logic [7:0] KIND_P2A = 8'd12;
  // Paxos. Acceptor to learners, and to whoever asked to be told: its vote.
  localparam logic [7:0] KIND_P2B = 8'd13;
  // Paxos. Coordinator's host to that of an acceptor that lost its memory: it is one again.
  localparam logic [7:0] KIND_ADMIT = 8'd14;
  // Paxos. Learner to the hosts of coordinators and acceptors: how far it has what was decided.
  localparam logic [7:0] KIND_CHECKPOINT = 8'd15;

  // Lowest bit of the number of the key that made the tag.
  localparam logic [7:0] FLAG_EPOCH = 8'd1;
  // REQUEST, APPEND: answer as soon as it is committed, without what the state machine says.
  localparam logic [7:0] FLAG_BLIND = 8'd2;
  // The payload moves the log's time.
  localparam logic [7:0] FLAG_TICK = 8'd4;
  // The payload is a piece of a command, or of a value: number and count of pieces (32 bits each),
  // then bytes. A client's piece needs a session. ANSWER: this piece (its number, 32 bits) is in
  // the log, the command is not complete.
  localparam logic [7:0] FLAG_FRAGMENT = 8'd8;
  // ANSWER: there is none of the state machine; `previous_term` says why, the payload says it for
  // people. P1B, P2B: neither promised nor voted. Paxos' HEARTBEAT: answers one of a coordinator
  // that has the sender's number; the round is the one in that.
  localparam logic [7:0] FLAG_REFUSED = 8'd16;
  // APPEND: the payload is several commands, each carried out by itself, in this order (README.md).
  // No client may set it.
  localparam logic [7:0] FLAG_BUNDLE = 8'd32;
  // P2A: the vote goes to the sender, too, not to learners alone.
  localparam logic [7:0] FLAG_TELL = 8'd64;
  localparam logic [7:0] FLAGS_KNOWN = 8'd127;

  // The plane moves nothing; only then the host may write the registers.
  localparam logic [7:0] ROLE_OFF = 8'd0;
  // Assigns indexes, counts acknowledgements.
  localparam logic [7:0] ROLE_LEADER = 8'd1;
  // Stores and acknowledges.
  localparam logic [7:0] ROLE_FOLLOWER = 8'd2;

  // The box forwards only; only then the host may write the registers.
  localparam logic [7:0] PAXOS_ROLE_OFF = 8'd0;
  // Gives each value its instance.
  localparam logic [7:0] PAXOS_ROLE_COORDINATOR = 8'd1;
  // Promises rounds and votes.
  localparam logic [7:0] PAXOS_ROLE_ACCEPTOR = 8'd2;

  // Put the payload into the ring at `index`. Acceptor: into the slot of the instance `index`.
  localparam logic [31:0] ACTION_STORE = 32'd1;
  // Send `header` with the payload to all other replicas of the grant. Coordinator: to all
  // acceptors. Acceptor: to all learners.
  localparam logic [31:0] ACTION_FANOUT = 32'd2;
  // Send `header` to the sender; in a follower, to the leader.
  localparam logic [31:0] ACTION_REPLY = 32'd4;
  // The commit index went from `commit_from` to the registers' value: answer the blind writes
  // between, tell the host.
  localparam logic [31:0] ACTION_COMMIT = 32'd8;
  // Hand the packet, unchanged, to software. Comes alone; the registers are untouched.
  localparam logic [31:0] ACTION_TO_SOFTWARE = 32'd16;
  // Send the request on to the leader.
  localparam logic [31:0] ACTION_FORWARD = 32'd32;
  // Send the entries from `index` on to the sender again, at most resend_entries_max and not beyond
  // the last.
  localparam logic [31:0] ACTION_RESEND = 32'd64;
  // Acceptor: what is to be sent goes to the host, which sends it when it is durable.
  localparam logic [31:0] ACTION_HOLD = 32'd128;
  // Acceptor: the payload behind `header` is the one in the slot of `index`.
  localparam logic [31:0] ACTION_VOTE = 32'd256;

  // Neither.
  localparam logic [7:0] REASON_NONE = 8'd0;
  // Short, cut, or another magic.
  localparam logic [7:0] REASON_NOT_OURS = 8'd1;
  // A format version unknown here.
  localparam logic [7:0] REASON_VERSION = 8'd2;
  // Lengths or fields that no sender of ours makes.
  localparam logic [7:0] REASON_MALFORMED = 8'd3;
  // The authentication tag is wrong.
  localparam logic [7:0] REASON_TAG = 8'd4;
  // The payload's checksum is wrong.
  localparam logic [7:0] REASON_CHECKSUM = 8'd5;
  // Another group.
  localparam logic [7:0] REASON_GROUP = 8'd6;
  // No fast term runs here.
  localparam logic [7:0] REASON_OFF = 8'd7;
  // A term before ours.
  localparam logic [7:0] REASON_TERM_OLD = 8'd8;
  // A term after ours.
  localparam logic [7:0] REASON_TERM_NEW = 8'd9;
  // The sender has no slot in the grant, or not the one such a packet comes from.
  localparam logic [7:0] REASON_STRANGER = 8'd10;
  // A kind that this role does not take.
  localparam logic [7:0] REASON_UNEXPECTED = 8'd11;
  // An index that software moved.
  localparam logic [7:0] REASON_BEFORE_START = 8'd12;
  // The entry before is not the one the sender means.
  localparam logic [7:0] REASON_HISTORY = 8'd13;
  // An index that was never assigned.
  localparam logic [7:0] REASON_BEYOND_LAST = 8'd14;
  // Asked for again, but the ring holds it no more, or too much is missing (repair_entries_max).
  localparam logic [7:0] REASON_BEHIND_RING = 8'd15;
  // The host has not taken enough yet.
  localparam logic [7:0] REASON_RING_FULL = 8'd16;
  // Too many entries wait for a commit. Paxos: the instance is beyond the window; learners have to
  // checkpoint.
  localparam logic [7:0] REASON_WINDOW_FULL = 8'd17;
  // Had already; acknowledged again.
  localparam logic [7:0] REASON_REPEATED = 8'd18;
  // Entries before it are missing; asked for.
  localparam logic [7:0] REASON_GAP = 8'd19;
  // Paxos: another configuration than ours.
  localparam logic [7:0] REASON_CONFIGURATION = 8'd20;
  // Paxos: a higher round was promised.
  localparam logic [7:0] REASON_ROUND_OLD = 8'd21;
  // Paxos: the round was promised to another coordinator of the same number.
  localparam logic [7:0] REASON_ROUND_TAKEN = 8'd22;
  // Paxos: another value was voted for in this round.
  localparam logic [7:0] REASON_TWO_VALUES = 8'd23;
  // Paxos: the instance is forgotten; all learners have it.
  localparam logic [7:0] REASON_TRIMMED = 8'd24;
  // Paxos: this acceptor lost its memory, and is no member for this instance.
  localparam logic [7:0] REASON_NO_MEMBER = 8'd25;

  // Why a packet that a check refuses is not taken.
  localparam logic [7:0] REASON_OF_HEADER_WHOLE = REASON_NOT_OURS;
  localparam logic [7:0] REASON_OF_MAGIC = REASON_NOT_OURS;
  localparam logic [7:0] REASON_OF_VERSION = REASON_VERSION;
  localparam logic [7:0] REASON_OF_PAYLOAD_SIZE = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_PACKET_WHOLE = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_EXACT_LENGTH = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_FLAGS_KNOWN = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_KEY_OF_KIND = REASON_TAG;
  localparam logic [7:0] REASON_OF_KEY_VALID = REASON_TAG;
  localparam logic [7:0] REASON_OF_TAG = REASON_TAG;
  localparam logic [7:0] REASON_OF_LAST_INDEX_EVER = REASON_BEYOND_LAST;
  localparam logic [7:0] REASON_OF_ASSIGN_REGISTER = REASON_STRANGER;
  localparam logic [7:0] REASON_OF_REQUEST_RING = REASON_RING_FULL;
  localparam logic [7:0] REASON_OF_REQUEST_WINDOW = REASON_WINDOW_FULL;
  localparam logic [7:0] REASON_OF_CLIENT_FLAGS = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_CLIENT_PIECES = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_CLIENT_SENDER = REASON_STRANGER;
  localparam logic [7:0] REASON_OF_REQUEST_BYTES = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_FORWARD_BYTES = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_BEFORE_START = REASON_BEFORE_START;
  localparam logic [7:0] REASON_OF_APPEND_INDEX = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_REPEATED = REASON_REPEATED;
  localparam logic [7:0] REASON_OF_NEXT_INDEX = REASON_GAP;
  localparam logic [7:0] REASON_OF_HISTORY = REASON_HISTORY;
  localparam logic [7:0] REASON_OF_APPEND_RING = REASON_RING_FULL;
  localparam logic [7:0] REASON_OF_HEARTBEAT_INDEX = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_BEYOND_LAST = REASON_BEYOND_LAST;
  localparam logic [7:0] REASON_OF_ROUND_SENT = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_RESEND_START = REASON_BEHIND_RING;
  localparam logic [7:0] REASON_OF_BEHIND_RING = REASON_BEHIND_RING;
  localparam logic [7:0] REASON_OF_REPAIR = REASON_BEHIND_RING;
  localparam logic [7:0] REASON_OF_FORWARD_ONCE = REASON_UNEXPECTED;
  localparam logic [7:0] REASON_OF_LEADER_SENDER = REASON_STRANGER;
  localparam logic [7:0] REASON_OF_OFF = REASON_OFF;
  localparam logic [7:0] REASON_OF_STEP_VERSION = REASON_VERSION;
  localparam logic [7:0] REASON_OF_GROUP = REASON_GROUP;
  localparam logic [7:0] REASON_OF_STEP_BYTES = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_TERM_OLD = REASON_TERM_OLD;
  localparam logic [7:0] REASON_OF_TERM_NEW = REASON_TERM_NEW;
  localparam logic [7:0] REASON_OF_MEMBER = REASON_STRANGER;
  localparam logic [7:0] REASON_OF_SENDER_REGISTER = REASON_STRANGER;
  localparam logic [7:0] REASON_OF_NOT_MYSELF = REASON_STRANGER;
  localparam logic [7:0] REASON_OF_SUBMIT_ROLE = REASON_OFF;
  localparam logic [7:0] REASON_OF_SUBMIT_BYTES = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_PERSISTED_ROLE = REASON_OFF;
  localparam logic [7:0] REASON_OF_PERSISTED_HELD = REASON_UNEXPECTED;
  localparam logic [7:0] REASON_OF_PERSISTED_REGISTER = REASON_STRANGER;
  localparam logic [7:0] REASON_OF_PERSISTED_WITHIN_LAST = REASON_BEYOND_LAST;
  localparam logic [7:0] REASON_OF_PERSISTED_MONOTONE = REASON_REPEATED;
  localparam logic [7:0] REASON_OF_HEARTBEAT_ROLE = REASON_OFF;
  localparam logic [7:0] REASON_OF_HEARTBEAT_REGISTER = REASON_STRANGER;
  localparam logic [7:0] REASON_OF_ASCENDING_ROUNDS = REASON_REPEATED;
  localparam logic [7:0] REASON_OF_PAXOS_SUBMIT_SENDER = REASON_STRANGER;
  localparam logic [7:0] REASON_OF_PAXOS_SUBMIT_SESSION = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_PAXOS_SUBMIT_FLAGS = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_PAXOS_LAST_INSTANCE = REASON_BEYOND_LAST;
  localparam logic [7:0] REASON_OF_PAXOS_SUBMIT_WINDOW = REASON_WINDOW_FULL;
  localparam logic [7:0] REASON_OF_PAXOS_ALL_OLD = REASON_ROUND_OLD;
  localparam logic [7:0] REASON_OF_PAXOS_ALL_SINGLE = REASON_ROUND_OLD;
  localparam logic [7:0] REASON_OF_PAXOS_ALL_TAKEN = REASON_ROUND_TAKEN;
  localparam logic [7:0] REASON_OF_PAXOS_P1A_OLD = REASON_ROUND_OLD;
  localparam logic [7:0] REASON_OF_PAXOS_P1A_TAKEN = REASON_ROUND_TAKEN;
  localparam logic [7:0] REASON_OF_PAXOS_P2A_FLAGS = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_PAXOS_P2A_OLD = REASON_ROUND_OLD;
  localparam logic [7:0] REASON_OF_PAXOS_REPEATED = REASON_REPEATED;
  localparam logic [7:0] REASON_OF_PAXOS_TWO_VALUES = REASON_TWO_VALUES;
  localparam logic [7:0] REASON_OF_PAXOS_CONFIGURATION = REASON_CONFIGURATION;
  localparam logic [7:0] REASON_OF_PAXOS_ROUND = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_PAXOS_ROUND_OWNER = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_PAXOS_DRAWN = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_PAXOS_INSTANCE = REASON_MALFORMED;
  localparam logic [7:0] REASON_OF_PAXOS_TRIMMED = REASON_TRIMMED;
  localparam logic [7:0] REASON_OF_PAXOS_WINDOW = REASON_WINDOW_FULL;
  localparam logic [7:0] REASON_OF_PAXOS_BOUND = REASON_NO_MEMBER;
  localparam logic [7:0] REASON_OF_PAXOS_OFF = REASON_OFF;
  localparam logic [7:0] REASON_OF_PAXOS_VERSION = REASON_VERSION;
  localparam logic [7:0] REASON_OF_PAXOS_GROUP = REASON_GROUP;
  localparam logic [7:0] REASON_OF_PAXOS_BYTES = REASON_MALFORMED;

  // A header, as it is on the wire.
  localparam int HEADER_BITS = 576;
  typedef struct packed {
    // Always 0x5157; anything else is not ours.
    logic [15:0] magic;
    // Format version; a packet with an unknown one is dropped and counted, never guessed at.
    logic [7:0] version;
    // What the packet says, see [kinds].
    logic [7:0] kind;
    // Slot of the sending replica in the grant, 0 to 6; 255 from a client. P1A, P2A, ADMIT: whose
    // round it is. P1B, P2B: the acceptor. CHECKPOINT: the learner. Paxos' HEARTBEAT: the
    // coordinator.
    logic [7:0] sender;
    // See [flags].
    logic [7:0] flags;
    // Bytes behind the header, 0 to payload_bytes_max.
    logic [15:0] payload_bytes;
    // Which replicated log.
    logic [31:0] group;
    // CRC32C of the payload, set by whoever made it and carried untouched; 0 without payload.
    logic [31:0] payload_crc32c;
    // The fast term; 0 in a REQUEST. Paxos: the round; 0 in a SUBMIT. P1B, P2B that is refused: the
    // round promised to somebody else.
    logic [63:0] term;
    // APPEND: of this entry. APPEND_OK, HEARTBEAT_OK: highest one promised. RETRANSMIT: first one
    // missing. HEARTBEAT: the leader's last. ANSWER: of the command; 0 if unknown. Paxos: the
    // instance; P1A, P1B: 0 is all of them. CHECKPOINT: everything up to this instance is kept.
    // Paxos' HEARTBEAT: the last instance given to a value.
    logic [63:0] index;
    // APPEND: term of the entry before. ANSWER that is refused: the number of the reason
    // (README.md). P1B, P2B: the round of the acceptor's vote for this instance; of all: the
    // acceptor is no member up to this instance; refused: the round that is. ADMIT: the acceptor is
    // no member up to this instance. Zero otherwise.
    logic [63:0] previous_term;
    // Highest index the sender knows to be committed. Paxos: the configuration; 0 in a SUBMIT. P1B
    // that is not refused: the configuration, XOR the number that was drawn for the round asked
    // for.
    logic [63:0] commit_index;
    // Client session of the command; 0: none, then it may be applied twice if sent twice. Paxos: of
    // the value; 0: a no-op. P1A: a number that its coordinator drew for this round. P1B of all,
    // ADMIT: instances up to this one are forgotten.
    logic [63:0] session;
    // Number of the command in its session. Between replicas, except in APPEND: the heartbeat
    // round. Paxos: of the value in its session. P1B of all: the highest instance voted for. P1B,
    // P2B that is refused: instances up to this one are forgotten.
    logic [63:0] sequence_;
    // SipHash-2-4 of the 64 bytes before it and of the payload's digest (README.md); 0 where
    // nothing is authenticated.
    logic [63:0] tag;
  } header_t;

  // What a plane and its host share about one group.
  localparam int REGISTERS_BITS = 1600;
  typedef struct packed {
    // The fast term.
    logic [63:0] term;
    // The last entry that software moved: the plane's first is the one after.
    logic [63:0] start_index;
    // The last entry stored.
    logic [63:0] last_index;
    // Its term.
    logic [63:0] last_term;
    // Highest index known to be committed; at most last_index.
    logic [63:0] commit_index;
    // Highest index that may be acknowledged.
    logic [63:0] persisted_index;
    // The host has taken everything up to here: those slots may be reused.
    logic [63:0] released_index;
    // Follower: highest heartbeat round heard. Leader: last one sent.
    logic [63:0] round;
    // Leader: highest index each replica has acknowledged.
    logic [6:0][63:0] match_index;
    // Leader: highest heartbeat round each replica has answered.
    logic [6:0][63:0] heard_round;
    // Which replicated log.
    logic [31:0] group;
    // Entries the ring holds; a power of two.
    logic [31:0] ring_slots;
    // Most entries stored and not committed; at most ring_slots.
    logic [31:0] window;
    // See [roles].
    logic [7:0] role;
    // Own slot in the grant.
    logic [7:0] me;
    // The leader's slot.
    logic [7:0] leader;
    // Slots in the grant, 1 to 7.
    logic [7:0] replicas;
    // Replicas that must hold an entry to commit it, the leader included.
    logic [7:0] quorum;
    // 1: acknowledge only what the host says is persisted (durability `sync`).
    logic [7:0] held;
    // Zero.
    logic [2:0][15:0] reserved;
  } registers_t;

  // What a box and its host share about one Paxos role.
  localparam int PAXOS_REGISTERS_BITS = 640;
  typedef struct packed {
    // Which life of each acceptor counts, as one number that stands for it: packets of another one
    // are not taken.
    logic [63:0] configuration;
    // Coordinator: its round. Acceptor: the highest one promised for all instances.
    logic [63:0] round;
    // Acceptor: the number that the coordinator of that round drew; 0: unknown.
    logic [63:0] promised_to;
    // Acceptor: the highest round promised for a single instance.
    logic [63:0] single_round;
    // Coordinator: of the next value.
    logic [63:0] next_instance;
    // Instances up to this one are forgotten.
    logic [63:0] trimmed;
    // Acceptor that has lost its memory: it is no member up to this instance, except where it has
    // voted since.
    logic [63:0] bound;
    // Acceptor: the highest instance voted for.
    logic [63:0] highest;
    // Which deployment.
    logic [31:0] group;
    // Instances that can be open behind `trimmed`; a power of two.
    logic [31:0] window;
    // See [paxos_roles].
    logic [7:0] role;
    // Coordinator: whose rounds its are. Acceptor: its number.
    logic [7:0] me;
    // 1: say only what the host says is durable.
    logic [7:0] held;
    // Zero.
    logic [4:0][7:0] reserved;
  } paxos_registers_t;

  // What an acceptor knows of one instance.
  localparam int PAXOS_SLOT_BITS = 448;
  typedef struct packed {
    // Whose it is; 0, or another: nothing is known of the instance.
    logic [63:0] instance_;
    // The highest one promised for this instance, or voted in.
    logic [63:0] round;
    // The number that the coordinator of that round drew; 0: unknown.
    logic [63:0] promised_to;
    // The round of the vote; 0: none.
    logic [63:0] vote_round;
    // Of the value voted for.
    logic [63:0] session;
    // Of the value voted for.
    logic [63:0] sequence_;
    // Of the value voted for.
    logic [31:0] payload_crc32c;
    // Of the value voted for.
    logic [15:0] payload_bytes;
    // Of the value voted for.
    logic [7:0] flags;
    // Zero.
    logic [7:0] reserved;
  } paxos_slot_t;

  // A header as a host's memory has it.
  function automatic header_t header_of_memory(input logic [8:0][63:0] from);
    header_of_memory.magic = from[0][0+:16];
    header_of_memory.version = from[0][16+:8];
    header_of_memory.kind = from[0][24+:8];
    header_of_memory.sender = from[0][32+:8];
    header_of_memory.flags = from[0][40+:8];
    header_of_memory.payload_bytes = from[0][48+:16];
    header_of_memory.group = from[1][0+:32];
    header_of_memory.payload_crc32c = from[1][32+:32];
    header_of_memory.term = from[2][0+:64];
    header_of_memory.index = from[3][0+:64];
    header_of_memory.previous_term = from[4][0+:64];
    header_of_memory.commit_index = from[5][0+:64];
    header_of_memory.session = from[6][0+:64];
    header_of_memory.sequence_ = from[7][0+:64];
    header_of_memory.tag = from[8][0+:64];
  endfunction

  // A header as a host's memory has it, the first word in element 0.
  function automatic logic [8:0][63:0] memory_of_header(input header_t from);
    memory_of_header[0][0+:16] = from.magic;
    memory_of_header[0][16+:8] = from.version;
    memory_of_header[0][24+:8] = from.kind;
    memory_of_header[0][32+:8] = from.sender;
    memory_of_header[0][40+:8] = from.flags;
    memory_of_header[0][48+:16] = from.payload_bytes;
    memory_of_header[1][0+:32] = from.group;
    memory_of_header[1][32+:32] = from.payload_crc32c;
    memory_of_header[2][0+:64] = from.term;
    memory_of_header[3][0+:64] = from.index;
    memory_of_header[4][0+:64] = from.previous_term;
    memory_of_header[5][0+:64] = from.commit_index;
    memory_of_header[6][0+:64] = from.session;
    memory_of_header[7][0+:64] = from.sequence_;
    memory_of_header[8][0+:64] = from.tag;
  endfunction

  // A registers as a host's memory has it.
  function automatic registers_t registers_of_memory(input logic [24:0][63:0] from);
    registers_of_memory.term = from[0][0+:64];
    registers_of_memory.start_index = from[1][0+:64];
    registers_of_memory.last_index = from[2][0+:64];
    registers_of_memory.last_term = from[3][0+:64];
    registers_of_memory.commit_index = from[4][0+:64];
    registers_of_memory.persisted_index = from[5][0+:64];
    registers_of_memory.released_index = from[6][0+:64];
    registers_of_memory.round = from[7][0+:64];
    registers_of_memory.match_index[0] = from[8][0+:64];
    registers_of_memory.match_index[1] = from[9][0+:64];
    registers_of_memory.match_index[2] = from[10][0+:64];
    registers_of_memory.match_index[3] = from[11][0+:64];
    registers_of_memory.match_index[4] = from[12][0+:64];
    registers_of_memory.match_index[5] = from[13][0+:64];
    registers_of_memory.match_index[6] = from[14][0+:64];
    registers_of_memory.heard_round[0] = from[15][0+:64];
    registers_of_memory.heard_round[1] = from[16][0+:64];
    registers_of_memory.heard_round[2] = from[17][0+:64];
    registers_of_memory.heard_round[3] = from[18][0+:64];
    registers_of_memory.heard_round[4] = from[19][0+:64];
    registers_of_memory.heard_round[5] = from[20][0+:64];
    registers_of_memory.heard_round[6] = from[21][0+:64];
    registers_of_memory.group = from[22][0+:32];
    registers_of_memory.ring_slots = from[22][32+:32];
    registers_of_memory.window = from[23][0+:32];
    registers_of_memory.role = from[23][32+:8];
    registers_of_memory.me = from[23][40+:8];
    registers_of_memory.leader = from[23][48+:8];
    registers_of_memory.replicas = from[23][56+:8];
    registers_of_memory.quorum = from[24][0+:8];
    registers_of_memory.held = from[24][8+:8];
    registers_of_memory.reserved[0] = from[24][16+:16];
    registers_of_memory.reserved[1] = from[24][32+:16];
    registers_of_memory.reserved[2] = from[24][48+:16];
  endfunction

  // A registers as a host's memory has it, the first word in element 0.
  function automatic logic [24:0][63:0] memory_of_registers(input registers_t from);
    memory_of_registers[0][0+:64] = from.term;
    memory_of_registers[1][0+:64] = from.start_index;
    memory_of_registers[2][0+:64] = from.last_index;
    memory_of_registers[3][0+:64] = from.last_term;
    memory_of_registers[4][0+:64] = from.commit_index;
    memory_of_registers[5][0+:64] = from.persisted_index;
    memory_of_registers[6][0+:64] = from.released_index;
    memory_of_registers[7][0+:64] = from.round;
    memory_of_registers[8][0+:64] = from.match_index[0];
    memory_of_registers[9][0+:64] = from.match_index[1];
    memory_of_registers[10][0+:64] = from.match_index[2];
    memory_of_registers[11][0+:64] = from.match_index[3];
    memory_of_registers[12][0+:64] = from.match_index[4];
    memory_of_registers[13][0+:64] = from.match_index[5];
    memory_of_registers[14][0+:64] = from.match_index[6];
    memory_of_registers[15][0+:64] = from.heard_round[0];
    memory_of_registers[16][0+:64] = from.heard_round[1];
    memory_of_registers[17][0+:64] = from.heard_round[2];
    memory_of_registers[18][0+:64] = from.heard_round[3];
    memory_of_registers[19][0+:64] = from.heard_round[4];
    memory_of_registers[20][0+:64] = from.heard_round[5];
    memory_of_registers[21][0+:64] = from.heard_round[6];
    memory_of_registers[22][0+:32] = from.group;
    memory_of_registers[22][32+:32] = from.ring_slots;
    memory_of_registers[23][0+:32] = from.window;
    memory_of_registers[23][32+:8] = from.role;
    memory_of_registers[23][40+:8] = from.me;
    memory_of_registers[23][48+:8] = from.leader;
    memory_of_registers[23][56+:8] = from.replicas;
    memory_of_registers[24][0+:8] = from.quorum;
    memory_of_registers[24][8+:8] = from.held;
    memory_of_registers[24][16+:16] = from.reserved[0];
    memory_of_registers[24][32+:16] = from.reserved[1];
    memory_of_registers[24][48+:16] = from.reserved[2];
  endfunction

  // A paxos_registers as a host's memory has it.
  function automatic paxos_registers_t paxos_registers_of_memory(input logic [9:0][63:0] from);
    paxos_registers_of_memory.configuration = from[0][0+:64];
    paxos_registers_of_memory.round = from[1][0+:64];
    paxos_registers_of_memory.promised_to = from[2][0+:64];
    paxos_registers_of_memory.single_round = from[3][0+:64];
    paxos_registers_of_memory.next_instance = from[4][0+:64];
    paxos_registers_of_memory.trimmed = from[5][0+:64];
    paxos_registers_of_memory.bound = from[6][0+:64];
    paxos_registers_of_memory.highest = from[7][0+:64];
    paxos_registers_of_memory.group = from[8][0+:32];
    paxos_registers_of_memory.window = from[8][32+:32];
    paxos_registers_of_memory.role = from[9][0+:8];
    paxos_registers_of_memory.me = from[9][8+:8];
    paxos_registers_of_memory.held = from[9][16+:8];
    paxos_registers_of_memory.reserved[0] = from[9][24+:8];
    paxos_registers_of_memory.reserved[1] = from[9][32+:8];
    paxos_registers_of_memory.reserved[2] = from[9][40+:8];
    paxos_registers_of_memory.reserved[3] = from[9][48+:8];
    paxos_registers_of_memory.reserved[4] = from[9][56+:8];
  endfunction

  // A paxos_registers as a host's memory has it, the first word in element 0.
  function automatic logic [9:0][63:0] memory_of_paxos_registers(input paxos_registers_t from);
    memory_of_paxos_registers[0][0+:64] = from.configuration;
    memory_of_paxos_registers[1][0+:64] = from.round;
    memory_of_paxos_registers[2][0+:64] = from.promised_to;
    memory_of_paxos_registers[3][0+:64] = from.single_round;
    memory_of_paxos_registers[4][0+:64] = from.next_instance;
    memory_of_paxos_registers[5][0+:64] = from.trimmed;
    memory_of_paxos_registers[6][0+:64] = from.bound;
    memory_of_paxos_registers[7][0+:64] = from.highest;
    memory_of_paxos_registers[8][0+:32] = from.group;
    memory_of_paxos_registers[8][32+:32] = from.window;
    memory_of_paxos_registers[9][0+:8] = from.role;
    memory_of_paxos_registers[9][8+:8] = from.me;
    memory_of_paxos_registers[9][16+:8] = from.held;
    memory_of_paxos_registers[9][24+:8] = from.reserved[0];
    memory_of_paxos_registers[9][32+:8] = from.reserved[1];
    memory_of_paxos_registers[9][40+:8] = from.reserved[2];
    memory_of_paxos_registers[9][48+:8] = from.reserved[3];
    memory_of_paxos_registers[9][56+:8] = from.reserved[4];
  endfunction

  // A paxos_slot as a host's memory has it.
  function automatic paxos_slot_t paxos_slot_of_memory(input logic [6:0][63:0] from);
    paxos_slot_of_memory.instance_ = from[0][0+:64];
    paxos_slot_of_memory.round = from[1][0+:64];
    paxos_slot_of_memory.promised_to = from[2][0+:64];
    paxos_slot_of_memory.vote_round = from[3][0+:64];
    paxos_slot_of_memory.session = from[4][0+:64];
    paxos_slot_of_memory.sequence_ = from[5][0+:64];
    paxos_slot_of_memory.payload_crc32c = from[6][0+:32];
    paxos_slot_of_memory.payload_bytes = from[6][32+:16];
    paxos_slot_of_memory.flags = from[6][48+:8];
    paxos_slot_of_memory.reserved = from[6][56+:8];
  endfunction

  // A paxos_slot as a host's memory has it, the first word in element 0.
  function automatic logic [6:0][63:0] memory_of_paxos_slot(input paxos_slot_t from);
    memory_of_paxos_slot[0][0+:64] = from.instance_;
    memory_of_paxos_slot[1][0+:64] = from.round;
    memory_of_paxos_slot[2][0+:64] = from.promised_to;
    memory_of_paxos_slot[3][0+:64] = from.vote_round;
    memory_of_paxos_slot[4][0+:64] = from.session;
    memory_of_paxos_slot[5][0+:64] = from.sequence_;
    memory_of_paxos_slot[6][0+:32] = from.payload_crc32c;
    memory_of_paxos_slot[6][32+:16] = from.payload_bytes;
    memory_of_paxos_slot[6][48+:8] = from.flags;
    memory_of_paxos_slot[6][56+:8] = from.reserved;
  endfunction
endpackage
// verilator lint_on UNUSEDPARAM

// What the modules in gates have in common, beside the packets (generated/qw_pkg.sv).
// verilator lint_off UNUSEDPARAM
package qw_gate_pkg;
  // Bytes of a beat.
  localparam int BEAT_BYTES = 64;
  localparam int BEAT_BITS = 8 * BEAT_BYTES;
  // Groups that a core serves.
  localparam int GROUPS_MAX = 8;
  localparam int GROUP_BITS = 3;
  // Keys of a group: the replicas' two, then the clients' two (qw_key_number).
  localparam int KEYS = 4;
  // What stands before a packet: Ethernet, a VLAN's tag or none, IP, UDP.
  localparam logic [1:0] LOWER_IPV4 = 0, LOWER_IPV4_VLAN = 1, LOWER_IPV6 = 2, LOWER_IPV6_VLAN = 3;
  localparam int LOWER_IPV4_BYTES = 42, LOWER_IPV4_VLAN_BYTES = 46;
  localparam int LOWER_IPV6_BYTES = 62, LOWER_IPV6_VLAN_BYTES = 66;
  // Frames that have come and are not judged yet: about twice what the tag's pipeline holds.
  localparam int FRAMES_MAX = 128;
  localparam int UDP_BYTES = 8;
  // Of the longest payload.
  localparam int PAYLOAD_WORDS_MAX = (qw_pkg::PAYLOAD_BYTES_MAX + 7) / 8;
  // Of a payload's digest.
  localparam int DIGEST_BYTES = 16;
  // Words of its key. The tag's own key has two, which come under other numbers.
  localparam int DIGEST_KEY_WORDS = PAYLOAD_WORDS_MAX + 1;
  localparam logic [7:0] KEY_WORD_LOW = 8'd254, KEY_WORD_HIGH = 8'd255;
  // From the words of a packet to its tag.
  localparam int HASH_CLOCKS = 52;
  // From a record's last beat to its digest.
  localparam int DIGEST_CLOCKS = 9;
  // From a record's last beat to its checksum.
  localparam int CHECKSUM_CLOCKS = 10;

  // What a step is asked.
  typedef enum logic [2:0] {
    OP_PACKET,
    OP_SUBMIT,     // leader: a command of its own host, in the fields of a REQUEST
    OP_PERSISTED,  // everything up to a number is durable
    OP_HEARTBEAT,  // leader: says that it lives, in the round of a number
    OP_RELEASE,    // the host has taken everything up to a number
    OP_ENGAGE,     // a group gets its registers
    OP_OFF         // a group takes part no more, until it engages
  } op_t;

  // What a step of a Paxos role is asked.
  typedef enum logic [2:0] {
    PAXOS_OP_PACKET,     // left to the host by a role that says only what is durable
    PAXOS_OP_SWITCH_ON,  // a role gets its registers
    PAXOS_OP_OFF,
    PAXOS_OP_CONFIGURE,  // a number becomes the configuration
    PAXOS_OP_TRIM,       // everything up to a number may be forgotten
    PAXOS_OP_STEP,       // a packet of the host's
    PAXOS_OP_LOOK,       // nothing: it is about an instance
    PAXOS_OP_PUT_BACK    // the slot becomes an instance's
  } paxos_op_t;

  // What a step says shall be done (fastpath/shared.toml).
  typedef struct packed {
    qw_pkg::header_t header;
    logic [63:0] index;
    logic [63:0] commit_from;
    logic [31:0] actions;
    logic [7:0]  reason;
  } outcome_t;

  // Where somebody is.
  typedef struct packed {
    logic [127:0] address;  // IPv4 mapped
    logic [15:0] port;
    logic [47:0] mac;       // 0: not known
  } endpoint_t;
  localparam logic [95:0] IPV4_MAPPED = 96'hffff;

  // Where the planes of the groups are: the host's.
  typedef struct packed {
    logic [11:0] vlan;       // 0: untagged
    logic [31:0] multicast;  // IPv4, at which all replicas hear; 0: none
    endpoint_t [GROUPS_MAX-1:0] at;  // port 0: there is no plane
    // With which of their two keys the replicas of a group sign, and its clients are answered.
    logic [GROUPS_MAX-1:0] cluster_epoch;
    logic [GROUPS_MAX-1:0] clients_epoch;
  } place_t;

  // What is known of a frame.
  typedef struct packed {
    logic ours;                    // it is to one of the planes, as far as its first beat says
    logic [GROUP_BITS-1:0] group;  // the plane's
    logic [1:0] lower;             // what stands before the packet
    logic to_group;                // to the address of all replicas
    logic [15:0] udp_bytes;
    endpoint_t sender;
  } found_t;

  // What shall become of a frame.
  typedef struct packed {
    logic is_ours;      // else it is the host's, unchanged
    logic [7:0] reason; // of ours: REASON_NONE, or why it is dropped
    logic foreign;      // not ours: it came to one of our ports
    found_t found;
    qw_pkg::header_t header;
  } verdict_t;

  // What a tag is made of.
  typedef struct packed {
    logic [GROUP_BITS+1:0] key;     // the group, then which of its keys
    logic [BEAT_BITS-1:0] header;   // what stands before the tag
    logic longer;                   // a payload: the digest counts
    logic [63:0] first, second;     // of the digest
  } tag_request_t;
  // From such a request to its tag.
  localparam int TAG_CLOCKS = HASH_CLOCKS + 1;

  // A packet that is to be sent.
  typedef struct packed {
    logic is_fence;                 // nothing is sent; it is said when all has left that came before it
    qw_pkg::header_t header;        // without tag and epoch
    logic [GROUP_BITS-1:0] group;
    logic [qw_pkg::REPLICAS_MAX-1:0] peers;  // to these replicas; none: to `to`
    endpoint_t to;
  } sending_t;

  // How far a packet that goes on is from where it stood: as it was; without who asked before the command;
  // with it.
  localparam logic [1:0] MOVED_NOT = 0, MOVED_WITHOUT_ORIGIN = 1, MOVED_WITH_ORIGIN = 2;

  // What a follower asks for beyond what the step says (fastpath/include/qw_gap.h).
  typedef enum logic [1:0] {
    ASKING_AS_SAID,
    ASKING_NOT,
    ASKING_MORE
  } asking_t;

  // Of a packet's flags those that its entry has (fastpath/include/qw_step.h).
  localparam logic [7:0] FLAGS_OF_ENTRIES = qw_pkg::FLAG_BLIND | qw_pkg::FLAG_TICK | qw_pkg::FLAG_FRAGMENT |
      qw_pkg::FLAG_BUNDLE;

  // An entry's slot as it is in the host's memory (struct qw_slot), without its payload: the last eight bytes share a
  // beat with that. Numbers have their lowest byte first.
  typedef struct packed {
    logic [63:0] index, previous_term, session, sequence_;
    logic [31:0] payload_crc32c;
    logic [15:0] payload_bytes;
    logic [7:0] flags, requester;
    endpoint_t client;
    logic [15:0] request;
    logic [7:0] answered_here;
    logic [39:0] reserved;
  } slot_t;
  localparam int SLOT_BITS = $bits(slot_t), SLOT_REST_BITS = SLOT_BITS - BEAT_BITS;

  // What becomes of a frame, and of what it leads to.
  typedef struct packed {
    logic has_frame;           // else nothing came: it is a fence
    logic passes;              // the frame is the host's
    logic stores;              // an entry of the log
    logic sends;               // a packet
    logic with_payload;        // of the frame; else the packet is a header
    logic [1:0] moved;
    logic client_in_payload;   // of the slot: it stands there before the command
    logic [1:0] lower;
    logic [15:0] bytes;        // of the frame's packet
    sending_t sending;
    slot_t slot;               // an entry's, or what is known of an instance
    logic [63:0] index;
  } decision_t;

  // Entries that a leader sends again to a replica, or answers, from one index up to another; and what its
  // registers were then.
  typedef struct packed {
    logic answers;
    logic [GROUP_BITS-1:0] group;
    logic [63:0] from, upto;
    logic [7:0] peer;
    logic [7:0] me;
    logic [31:0] number;  // the group's, in packets
    logic [63:0] term, commit_index;
  } again_t;

  // What every packet between replicas begins with.
  // verilator lint_off UNUSEDSIGNAL
  function automatic qw_pkg::header_t say(input qw_pkg::registers_t of, input logic [7:0] kind,
                                  input logic [63:0] index, input logic [63:0] number);
    say = '0;
    say.magic = qw_pkg::MAGIC;
    say.version = qw_pkg::VERSION;
    say.kind = kind;
    say.sender = of.me;
    say.group = of.group;
    say.term = of.term;
    say.index = index;
    say.commit_index = of.commit_index;
    say.sequence_ = number;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // A number as it is in the host's memory.
  function automatic logic [63:0] in_memory(input logic [63:0] number);
    for (int at = 0; at < 8; at++) in_memory[8*at+:8] = number[56-8*at+:8];
  endfunction

  // Whether a kind is one whose tag is made with the clients' key.
  function automatic logic is_clients(input logic [7:0] kind);
    return kind == qw_pkg::KIND_REQUEST || kind == qw_pkg::KIND_ANSWER || kind == qw_pkg::KIND_SUBMIT;
  endfunction

  // Bytes before a packet.
  function automatic logic [6:0] lower_bytes(input logic [1:0] lower);
    unique case (lower)
      LOWER_IPV4: return 7'(LOWER_IPV4_BYTES);
      LOWER_IPV4_VLAN: return 7'(LOWER_IPV4_VLAN_BYTES);
      LOWER_IPV6: return 7'(LOWER_IPV6_BYTES);
      LOWER_IPV6_VLAN: return 7'(LOWER_IPV6_VLAN_BYTES);
    endcase
  endfunction

  // How a step refuses a packet: its registers stay as they are.
  function automatic outcome_t to_software(input logic [7:0] reason);
    to_software = '0;
    to_software.actions = qw_pkg::ACTION_TO_SOFTWARE;
    to_software.reason = reason;
  endfunction
  function automatic outcome_t drop(input logic [7:0] reason);
    drop = '0;
    drop.reason = reason;
  endfunction
endpackage
// verilator lint_on UNUSEDPARAM

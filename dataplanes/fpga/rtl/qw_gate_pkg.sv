// What the modules in gates have in common, beside the packets (generated/qw_pkg.sv).
// verilator lint_off UNUSEDPARAM
package qw_gate_pkg;
  // Bytes of a beat.
  localparam int BEAT_BYTES = 64;
  localparam int BEAT_BITS = 8 * BEAT_BYTES;
  // Before the packet: Ethernet, IPv4 and UDP.
  localparam int LOWER_BYTES = 42;
  // Of a payload's digest.
  localparam int DIGEST_BYTES = 16;
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
    OP_RELEASE     // the host has taken everything up to a number
  } op_t;

  // What a step of a Paxos role is asked.
  typedef enum logic {
    PAXOS_OP_PACKET,
    PAXOS_OP_TRIM     // everything up to a number may be forgotten
  } paxos_op_t;

  // What a step says shall be done (fastpath/shared.toml).
  typedef struct packed {
    qw_pkg::header_t header;
    logic [63:0] index;
    logic [63:0] commit_from;
    logic [31:0] actions;
    logic [7:0]  reason;
  } outcome_t;

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

// What a leader sends again, and its answers to blind writes: from the entries that were last written into
// the log, which a ring on the chip keeps. What is not there any more is left to the host.
//
// Entries of all groups share the ring. Of each place it is known whose entry it has, and of which term: an
// entry of another term is not there.
module qw_again
  import qw_pkg::*, qw_gate_pkg::*;
#(
    parameter int PLACES = 256
) (
    input  logic                  clk,
    input  logic                  rst_i,
    // The log (qw_carry_out): beats of slots, the first one last. `wants`: a beat is to be written, once it
    // may; `valid`: it is.
    input  logic                  log_wants_i,
    input  logic                  log_valid_i,
    input  logic [GROUP_BITS-1:0] log_group_i,
    input  logic [          63:0] log_index_i,
    input  logic [          63:0] log_term_i,
    input  logic [           4:0] log_beat_i,
    input  logic [ BEAT_BITS-1:0] log_data_i,
    output logic                  log_stalls_o,  // its place is being read
    // What is to be sent again, or answered.
    input  logic                  ask_i,
    input  again_t                ask_range_i,
    // These groups are off: nothing is done for them any more. What was asked for a group is not done yet.
    input  logic [GROUPS_MAX-1:0] off_i,
    output logic [GROUPS_MAX-1:0] busy_o,
    // Packets (qw_seal).
    output logic                  packet_valid_o,
    input  logic                  packet_ready_i,
    output logic                  packet_last_o,
    output logic [ BEAT_BITS-1:0] packet_data_o,
    output sending_t              sending_o,
    // What is left to the host.
    output logic                  left_o,
    output again_t                left_range_o
);
  localparam int PLACE_BITS = $clog2(PLACES);
  localparam int BEATS = 32;  // of a place; the longest slot takes 23
  localparam int ASKED_MAX = 8;
  localparam logic [63:0] ENTRIES = 64'(RESEND_ENTRIES_MAX);

  function automatic logic [PLACE_BITS-1:0] place_of(input logic [GROUP_BITS-1:0] group,
                                                     input logic [PLACE_BITS-1:0] index);
    return index + (PLACE_BITS'(group) << (PLACE_BITS - GROUP_BITS));
  endfunction

  // ---- The ring.
  typedef struct packed {
    logic [GROUP_BITS-1:0] group;
    logic [63:0] index;
    logic [63:0] term;
  } entry_t;
  logic [BEAT_BITS-1:0] memory[PLACES*BEATS];
  entry_t entries[PLACES];
  logic [PLACES-1:0] is_whole;
  logic [PLACE_BITS-1:0] write_place;
  always_comb write_place = place_of(log_group_i, log_index_i[PLACE_BITS-1:0]);
  always_ff @(posedge clk) begin
    if (log_valid_i) begin
      memory[{write_place, log_beat_i}] <= log_data_i;
      is_whole[write_place] <= log_beat_i == 0;
      if (log_beat_i == 0)
        entries[write_place] <= '{group: log_group_i, index: log_index_i, term: log_term_i};
    end
    if (rst_i) is_whole <= '0;
  end

  // ---- What was asked. What finds no room is the host's at once.
  logic range_valid, takes, overflows, done;
  again_t range, now;
  logic [$clog2(ASKED_MAX):0] asked;
  logic [GROUPS_MAX-1:0][$clog2(ASKED_MAX):0] asked_of;
  qw_fifo #(.WIDTH($bits(again_t)), .DEPTH(ASKED_MAX)) ranges (
      .clk, .rst_i, .push_i(ask_i && !overflows), .data_i(ask_range_i),
      .valid_o(range_valid), .ready_i(takes), .data_o(range)
  );
  always_comb begin
    overflows = ask_i && asked == ($clog2(ASKED_MAX) + 1)'(ASKED_MAX);
    for (int group = 0; group < GROUPS_MAX; group++) busy_o[group] = asked_of[group] != 0;
  end
  always_ff @(posedge clk) begin
    asked <= asked + ($clog2(ASKED_MAX) + 1)'(ask_i && !overflows) - ($clog2(ASKED_MAX) + 1)'(done);
    for (int group = 0; group < GROUPS_MAX; group++)
      asked_of[group] <= asked_of[group] +
          ($clog2(ASKED_MAX) + 1)'(ask_i && !overflows && ask_range_i.group == GROUP_BITS'(group)) -
          ($clog2(ASKED_MAX) + 1)'(done && now.group == GROUP_BITS'(group));
    if (rst_i) begin
      asked <= '0;
      asked_of <= '0;
    end
  end

  // ---- One entry after the other.
  typedef enum logic [2:0] {
    IDLE,
    LOOKS,   // reads its first beat
    FINDS,   // whether it is there; reads its second beat
    READS,   // all of its head is there
    JUDGES,  // what becomes of it
    SENDS
  } state_t;
  state_t state, next;
  // verilator lint_off UNUSEDSIGNAL
  slot_t slot;
  // verilator lint_on UNUSEDSIGNAL
  logic is_there, is_off, is_last, leaves, next_entry;
  logic [PLACE_BITS-1:0] place;
  logic [4:0] beat, beats, read_beat;
  logic [15:0] bytes;
  logic [BEAT_BITS-1:0] read;
  always_comb begin
    place = place_of(now.group, now.from[PLACE_BITS-1:0]);
    is_there = is_whole[place] && entries[place].group == now.group && entries[place].index == now.from &&
        entries[place].term == now.term;
    is_off = off_i[now.group];
    is_last = now.from == now.upto;
    bytes = {slot.payload_bytes[7:0], slot.payload_bytes[15:8]};
    beats = now.answers ? 5'd2 : 5'((bytes + 16'd135) >> 6);
  end
  always_comb begin
    next = state;
    takes = 1'b0;
    leaves = 1'b0;
    next_entry = 1'b0;
    unique case (state)
      IDLE:
      if (range_valid) begin
        takes = 1'b1;
        next = LOOKS;
      end
      LOOKS: next = FINDS;
      FINDS: next = is_there ? READS : IDLE;
      READS: next = JUDGES;
      JUDGES:
      if (!is_there) next = IDLE;
      else if (!now.answers || slot.answered_here[0]) next = SENDS;
      // A blind write that somebody else was asked: the host knows whom to answer. It answers the rest as well.
      else if ((slot.flags & FLAG_BLIND) != 0 && slot.requester != 0) next = IDLE;
      else next_entry = 1'b1;
      // Once it has begun, nobody writes there.
      SENDS:
      if (beat == 0 && !is_there) next = IDLE;
      else if (packet_valid_o && packet_ready_i && packet_last_o) next_entry = 1'b1;
      default: next = IDLE;
    endcase
    if (next_entry) next = is_last ? IDLE : LOOKS;
    else if (next == IDLE && state != IDLE) leaves = 1'b1;
    if (is_off && state != IDLE && !(state == SENDS && beat != 0)) begin
      next = IDLE;
      leaves = 1'b0;
    end else if (leaves && overflows) begin
      // The host hears one thing a clock.
      next = state;
      leaves = 1'b0;
    end
    done = state != IDLE && next == IDLE;
  end
  // A beat is there in the clock behind its address.
  always_comb begin
    read_beat = '0;
    if (state == FINDS) read_beat = 5'd1;
    else if (state == SENDS) read_beat = beat + 5'(packet_valid_o && packet_ready_i);
  end
  always_ff @(posedge clk) begin
    read <= memory[{place, read_beat}];
    state <= next;
    if (takes) begin
      now <= range;
      if (!range.answers && range.upto - range.from >= ENTRIES) now.upto <= range.from + (ENTRIES - 1'b1);
    end else if (next_entry) now.from <= now.from + 1'b1;
    if (state == FINDS) slot[SLOT_BITS-1-:BEAT_BITS] <= read;
    if (state == READS) slot[SLOT_REST_BITS-1:0] <= read[BEAT_BITS-1-:SLOT_REST_BITS];
    if (state != SENDS) beat <= '0;
    else if (packet_valid_o && packet_ready_i) beat <= beat + 1'b1;
    left_o <= (overflows || leaves) && !rst_i;
    left_range_o <= overflows ? ask_range_i : now;
    if (rst_i) state <= IDLE;
  end

  // ---- Packets.
  always_comb begin
    sending_o = '0;
    sending_o.group = now.group;
    sending_o.header.magic = MAGIC;
    sending_o.header.version = VERSION;
    sending_o.header.kind = now.answers ? KIND_ANSWER : KIND_APPEND;
    sending_o.header.sender = now.me;
    sending_o.header.group = now.number;
    sending_o.header.term = now.term;
    sending_o.header.index = now.from;
    sending_o.header.commit_index = now.commit_index;
    sending_o.header.session = in_memory(slot.session);
    sending_o.header.sequence_ = in_memory(slot.sequence_);
    if (now.answers) sending_o.to = slot.client;
    else begin
      sending_o.header.flags = slot.flags;
      sending_o.header.payload_bytes = bytes;
      sending_o.header.payload_crc32c = {slot.payload_crc32c[7:0], slot.payload_crc32c[15:8],
                                         slot.payload_crc32c[23:16], slot.payload_crc32c[31:24]};
      sending_o.header.previous_term = in_memory(slot.previous_term);
      for (int peer = 0; peer < REPLICAS_MAX; peer++) sending_o.peers[peer] = now.peer == 8'(peer);
    end
    // It does not begin while its place is about to be written; once it has begun, that waits.
    packet_valid_o = state == SENDS && (beat != 0 || is_there && !(log_wants_i && write_place == place) && !is_off);
    packet_last_o = beat + 1'b1 == beats;
    packet_data_o = now.answers ? '0 : read;
    log_stalls_o = state == SENDS && beat != 0 && write_place == place;
  end
endmodule

// Carries out what was decided: hands frames to the host, writes entries into the log, and gives packets to
// be sent to qw_seal.
//
// An entry is written as the slot that the host has in its memory (struct qw_slot): its payload first, its
// first beat, with its index, last.
module qw_carry_out
  import qw_pkg::*, qw_gate_pkg::*;
#(
    parameter int HOST_BEATS = 512,  // of frames that the host has not taken
    parameter int RECORD_BEATS = 64,  // of records: more than two of the longest
    parameter int EMITS_MAX = 8  // entries and packets that wait
) (
    input  logic                  clk,
    input  logic                  rst_i,
    // Frames (qw_open), and what becomes of them (qw_decide).
    input  logic                  frame_valid_i,
    output logic                  frame_ready_o,
    input  logic                  frame_last_i,
    input  logic [ BEAT_BITS-1:0] frame_data_i,
    input  logic [           6:0] frame_kept_i,
    input  logic                  decided_i,
    output logic                  ready_o,
    input  decision_t             decision_i,
    // Frames for the host. One that finds no room is lost, and counted.
    output logic                  host_valid_o,
    input  logic                  host_ready_i,
    output logic                  host_last_o,
    output logic [ BEAT_BITS-1:0] host_data_o,
    output logic [           6:0] host_kept_o,
    output logic                  host_lost_o,
    // The log: beats of slots, and in which term an entry was stored. `wants`: there is a beat, once packets
    // may go, too.
    output logic                  log_wants_o,
    output logic                  log_valid_o,
    input  logic                  log_ready_i,
    output logic [GROUP_BITS-1:0] log_group_o,
    output logic [          63:0] log_index_o,
    output logic [          63:0] log_term_o,
    output logic [           4:0] log_beat_o,
    output logic [ BEAT_BITS-1:0] log_data_o,
    // Packets (qw_seal).
    output logic                  packet_valid_o,
    input  logic                  packet_ready_i,
    output logic                  packet_last_o,
    output logic [ BEAT_BITS-1:0] packet_data_o,
    output sending_t              sending_o,
    output logic                  busy_o  // something is not carried out yet
);
  // ---- Frames: to the host, away, or into records.
  logic between, ends, host_no_room;
  logic needs_record, emits, has_room, moves;
  logic [6:0] records_waiting;  // beats that a record has or may have
  logic [3:0] emits_waiting;
  always_comb begin
    needs_record = decision_i.stores || decision_i.sends && decision_i.with_payload;
    emits = decision_i.stores || decision_i.sends;
    ends = frame_last_i || !decision_i.has_frame;
    has_room = !between || emits_waiting < 4'(EMITS_MAX) && (!needs_record || records_waiting <= 7'(RECORD_BEATS / 2));
    moves = decided_i && (frame_valid_i || !decision_i.has_frame) && has_room;
    frame_ready_o = moves && decision_i.has_frame;
    ready_o = moves && ends;
  end
  qw_frames #(
      .DEPTH(HOST_BEATS)
  ) host_frames (
      .clk,
      .rst_i,
      .valid_i (moves && decision_i.passes),
      .last_i  (frame_last_i),
      .data_i  (frame_data_i),
      .kept_i  (frame_kept_i),
      .broken_i(1'b0),
      .lost_o  (host_no_room),
      .valid_o (host_valid_o),
      .ready_i (host_ready_i),
      .last_o  (host_last_o),
      .data_o  (host_data_o),
      .kept_o  (host_kept_o)
  );

  logic [15:0] moved_bytes;
  always_comb
    unique case (decision_i.moved)
      MOVED_WITHOUT_ORIGIN: moved_bytes = decision_i.bytes - 16'(ORIGIN_BYTES);
      MOVED_WITH_ORIGIN: moved_bytes = decision_i.bytes + 16'(ORIGIN_BYTES);
      default: moved_bytes = decision_i.bytes;
    endcase
  logic made_valid, made_last, record_valid, record_last, takes_record;
  logic [BEAT_BITS-1:0] made, record;
  // verilator lint_off UNUSEDSIGNAL
  logic made_first;
  logic [15:0] made_bytes;
  logic [GROUP_BITS-1:0] made_group;
  // verilator lint_on UNUSEDSIGNAL
  qw_record records (
      .clk,
      .rst_i,
      .valid_i(moves && needs_record),
      .first_i(between),
      .last_i (frame_last_i),
      .data_i (frame_data_i),
      .take_i (1'b1),
      .lower_i(decision_i.lower),
      .moved_i(decision_i.moved),
      .bytes_i(moved_bytes),
      .group_i('0),
      .valid_o(made_valid),
      .first_o(made_first),
      .last_o (made_last),
      .data_o (made),
      .bytes_o(made_bytes),
      .group_o(made_group)
  );
  qw_fifo #(.WIDTH(BEAT_BITS + 1), .DEPTH(RECORD_BEATS)) record_queue (
      .clk, .rst_i, .push_i(made_valid), .data_i({made_last, made}),
      .valid_o(record_valid), .ready_i(takes_record), .data_o({record_last, record})
  );
  logic emit_valid, emit_ends;
  // verilator lint_off UNUSEDSIGNAL
  decision_t emit;
  // verilator lint_on UNUSEDSIGNAL
  qw_fifo #(.WIDTH($bits(decision_t)), .DEPTH(EMITS_MAX)) emit_queue (
      .clk, .rst_i, .push_i(moves && between && emits), .data_i(decision_i),
      .valid_o(emit_valid), .ready_i(emit_ends), .data_o(emit)
  );
  // A record takes as many beats as its frame, at most one more, and gives back what it does not take.
  logic [6:0] record_beats;
  always_comb record_beats = 7'((moved_bytes + 16'd63) >> 6);
  always_ff @(posedge clk) begin
    if (moves) between <= ends;
    host_lost_o <= moves && decision_i.passes && frame_last_i && host_no_room && !rst_i;
    records_waiting <= records_waiting + (moves && between && needs_record ? record_beats : '0) -
        7'(takes_record);
    emits_waiting <= emits_waiting + 4'(moves && between && emits) - 4'(emit_ends);
    if (rst_i) begin
      between <= 1'b1;
      records_waiting <= '0;
      emits_waiting <= '0;
    end
  end

  logic head_valid;
  always_comb busy_o = emits_waiting != 0 || head_valid || host_valid_o;

  // ---- Entries and packets.
  logic needs_beat, has_beat, to_log, to_seal, is_last, goes;
  logic [4:0] beat;
  logic [79:0] client_begin;  // of who asked, what stands in a record's first beat
  logic [143:0] client;
  logic [BEAT_BITS-1:0] data;
  // The slot's first beat, which is written last.
  logic [GROUP_BITS-1:0] head_group;
  logic [63:0] head_index, head_term;
  logic [BEAT_BITS-1:0] head;
  // verilator lint_off UNUSEDSIGNAL
  slot_t slot;  // what is behind the first beat has been written
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    data = record;
    needs_beat = emit.stores || emit.with_payload;
    has_beat = emit_valid && (!needs_beat || record_valid) && !(emit.sending.is_fence && head_valid);
    is_last = needs_beat ? record_last : beat == 5'd1;
    to_log = emit.stores && beat != 0;
    to_seal = emit.sends && (emit.with_payload || beat < 5'd2);
    client = {client_begin, beat == 0 ? 64'd0 : data[BEAT_BITS-1-:64]};

    packet_data_o = emit.with_payload ? data : '0;
    if (emit.moved == MOVED_WITH_ORIGIN && beat == 5'd1)
      packet_data_o[BEAT_BITS-1-64-:144] = {emit.sending.to.address, emit.sending.to.port};
    packet_valid_o = has_beat && to_seal && (!to_log || log_ready_i && !head_valid);
    packet_last_o = emit.with_payload ? is_last : beat == 5'd1;
    sending_o = emit.sending;

    log_wants_o = head_valid || has_beat && to_log;
    log_group_o = head_valid ? head_group : emit.sending.group;
    log_index_o = head_valid ? head_index : emit.index;
    log_term_o = head_term;
    log_beat_o = head_valid ? '0 : beat;
    log_data_o = head_valid ? head : data;
    if (!head_valid && beat == 5'd1) log_data_o[BEAT_BITS-1-:SLOT_REST_BITS] = emit.slot[SLOT_REST_BITS-1:0];
    slot = emit.slot;
    if (emit.client_in_payload && beat == 5'd1) {slot.client.address, slot.client.port} = client;
  end
  // Of an entry that is sent as well, log and packet take each beat together.
  always_comb begin
    goes = has_beat && (!to_log || log_ready_i && !head_valid) && (!to_seal || packet_ready_i);
    takes_record = goes && needs_beat;
    emit_ends = goes && is_last;
    log_valid_o = head_valid || has_beat && to_log && (!to_seal || packet_ready_i);
  end
  always_ff @(posedge clk) begin
    if (log_ready_i) head_valid <= 1'b0;
    if (goes) begin
      beat <= is_last ? '0 : beat + 1'b1;
      if (beat == 0) client_begin <= data[79:0];
      if (beat == 5'd1 && emit.stores) begin
        head <= slot[SLOT_BITS-1-:BEAT_BITS];
        head_group <= emit.sending.group;
        head_index <= emit.index;
        head_term <= emit.sending.header.term;
      end
      if (is_last && emit.stores) head_valid <= 1'b1;
    end
    if (rst_i) begin
      beat <= '0;
      head_valid <= 1'b0;
    end
  end
endmodule

// That what is decided is carried out: while the log and the packets are taken, nothing waits for more than some clocks.
// Frames may have any length that there is room for.
module qw_carry_out_proof
  import qw_gate_pkg::*;
#(
    parameter int RECORD_BEATS = 8,
    parameter int EMITS_MAX = 4,
    localparam int EMIT_BITS = $bits(decision_t)
) (
    input logic                  clk,
    input logic                  rst_i,
    input logic                  frame_valid_i,
    input logic                  frame_last_i,
    input logic                  decided_i,
    input decision_t             decision_i,
    input logic                  log_ready_i,
    input logic                  packet_ready_i,
    // Within.
    input logic                  between,
    input logic                  needs_record,
    input logic                  moves,
    input logic                  head_valid,
    input logic                  goes,
    input logic                  emit_valid,
    input logic                  emit_needs,
    input logic [           3:0] emits_waiting,
    input logic [$clog2(EMITS_MAX):0] emits_pushed,
    input logic [$clog2(EMITS_MAX):0] emits_taken,
    input logic [ EMIT_BITS-1:0] emits_memory[EMITS_MAX],
    input logic [          15:0] moved_bytes,
    input logic [           6:0] records_waiting,
    input logic                  record_valid,
    input logic                  record_last,
    input logic [$clog2(RECORD_BEATS):0] records_pushed,
    input logic [$clog2(RECORD_BEATS):0] records_taken,
    input logic [   BEAT_BITS:0] records_memory[RECORD_BEATS],
    input logic                  made_valid,
    input logic                  made_last,
    // Within what makes records.
    input logic                  valid1,
    input logic                  last1,
    input logic                  taking,
    input logic                  flush,
    input logic [          15:0] left
);
  localparam int R = $clog2(RECORD_BEATS), E = $clog2(EMITS_MAX);
  localparam int BYTES_MAX = BEAT_BYTES * (RECORD_BEATS / 2 - 1);
  // Whether one takes a record.
  function automatic logic needs(input decision_t decision);
    return decision.stores || decision.with_payload;
  endfunction
  logic begun = 1'b0;
  logic needed_record;
  always_ff @(posedge clk) begin
    begun <= 1'b1;
    needed_record <= needs_record;
  end

  // ---- What is assumed.
  always_comb begin
    if (!begun) assume (rst_i);
    // A frame is whole before it is decided about (frames.Whole), and what was decided stays until then.
    if (begun && !between) assume (decided_i && frame_valid_i && needs_record == needed_record && decision_i.has_frame);
    if (decided_i && needs_record) assume (decision_i.has_frame);
    // What is taken into a record is in the frame (qw_open), and fits.
    if (flush) assume (left <= 16'(BEAT_BYTES));
    assume (moved_bytes != 0 && moved_bytes <= 16'(BYTES_MAX));
  end

  // ---- What is inside: each of those that need a record has its last beat in its queue, on the way, or to come.
  logic [E:0] emits;
  logic [3:0] needing;
  logic [R:0] beats;
  logic [R+2:0] lasts, owed;
  always_comb begin
    emits = emits_pushed - emits_taken;
    beats = records_pushed - records_taken;
    needing = '0;
    for (int at = 0; at < EMITS_MAX; at++) begin
      if ((E + 1)'(at) < emits && needs(emits_memory[E'(emits_taken+(E+1)'(at))])) needing += 4'd1;
    end
    lasts = (R + 3)'(made_valid && made_last) + (R + 3)'(valid1 && last1) + (R + 3)'(taking);
    for (int at = 0; at < RECORD_BEATS; at++)
      if ((R + 1)'(at) < beats) lasts += (R + 3)'(records_memory[R'(records_taken+(R+1)'(at))][BEAT_BITS]);
    owed = (R + 3)'(beats) + (R + 3)'(made_valid) + (R + 3)'(valid1) + (taking ? (R + 3)'((left + 16'd63) >> 6) : '0);
    if (begun) Emits_A: assert (4'(emits) == emits_waiting && emits <= (E + 1)'(EMITS_MAX) && (!emit_valid || emits != 0) &&
        (emits <= (E + 1)'(1) || emit_valid));
    if (begun && emit_valid) EmitHead_A: assert (emit_needs == needs(emits_memory[emits_taken[E-1:0]]));
    // Only what is in a frame that is not over is not made yet.
    if (begun) Taking_A: assert ((!taking || flush || !between && needs_record) && (!flush || taking) &&
        (!taking || left != 0 && left <= 16'(BYTES_MAX)));
    if (begun) Records_A: assert (7'(owed) == records_waiting && records_waiting < 7'(RECORD_BEATS) &&
        beats <= (R + 1)'(RECORD_BEATS) && (!record_valid || beats != 0) && (beats <= (R + 1)'(1) || record_valid));
    if (begun && record_valid) RecordHead_A: assert (record_last == records_memory[records_taken[R-1:0]][BEAT_BITS]);
    if (begun) Lasts_A: assert ((R + 3)'(needing) == lasts);
  end

  // ---- While log and packets are taken: clocks, one after the other, in which no beat goes of what there is.
  logic [2:0] still;
  always_ff @(posedge clk)
    still <= !rst_i && log_ready_i && packet_ready_i && emit_valid && !goes ? still + 3'd1 : '0;
  always_comb if (begun) Moves_A: assert (still <= 3'd5);
endmodule
bind qw_carry_out qw_carry_out_proof #(.RECORD_BEATS(RECORD_BEATS), .EMITS_MAX(EMITS_MAX)) proof (
    .*, .emit_needs(needs_beat), .emits_pushed(emit_queue.written), .emits_taken(emit_queue.taken), .emits_memory(emit_queue.memory),
    .records_pushed(record_queue.written), .records_taken(record_queue.taken), .records_memory(record_queue.memory),
    .valid1(records.valid1), .last1(records.last1), .taking(records.taking), .flush(records.flush),
    .left(records.left)
);

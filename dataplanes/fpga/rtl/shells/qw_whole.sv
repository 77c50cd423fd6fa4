// Frames leave when they are whole: without gaps, and with their size from the first beat on. One that is broken,
// or longer than `FRAME_BYTES_MAX` and finds no room, leaves no trace. A frame is let in when there is room for the
// longest, and then without a stop.
module qw_whole
  import qw_gate_pkg::*, qw_shell_pkg::*;
#(
    parameter int FRAME_BYTES_MAX = 1518,
    parameter int USER_BITS = 1
) (
    input  logic                  clk,
    input  logic                  rst_i,
    input  logic                  valid_i,
    output logic                  ready_o,
    output logic                  lost_o,    // a frame that leaves no trace
    input  logic                  last_i,
    input  logic [ BEAT_BITS-1:0] data_i,
    input  logic [           6:0] kept_i,
    input  logic                  broken_i,  // known with the last beat, as what stands beside the frame
    input  logic [ USER_BITS-1:0] user_i,
    // As shells have it.
    output logic                  tvalid_o,
    input  logic                  tready_i,
    output logic                  tlast_o,
    output logic [ BEAT_BITS-1:0] tdata_o,
    output logic [BEAT_BYTES-1:0] tkeep_o,
    output logic [          15:0] size_o,
    output logic [ USER_BITS-1:0] user_o
);
  localparam int FRAME_BEATS_MAX = (FRAME_BYTES_MAX + BEAT_BYTES - 1) / BEAT_BYTES;
  localparam int DEPTH = 2 ** $clog2(2 * FRAME_BEATS_MAX);
  localparam int BITS = $clog2(DEPTH);
  logic [BITS:0] held, of_frame;  // beats
  logic midst, lost, stores, ends, forgets;
  logic [BEAT_BITS-1:0] data;
  logic [6:0] kept;
  always_comb begin
    ready_o = midst || held <= (BITS + 1)'(DEPTH - FRAME_BEATS_MAX);
    stores = valid_i && ready_o && !lost;
    ends = valid_i && ready_o && last_i;
    forgets = ends && (lost || broken_i);
    lost_o = forgets && !rst_i;
    tdata_o = turned(data);
    tkeep_o = keep_of(kept);
  end
  always_ff @(posedge clk) begin
    if (valid_i && ready_o) midst <= !last_i;
    of_frame <= ends ? '0 : of_frame + (BITS + 1)'(stores);
    held <= held + (forgets ? -of_frame : (BITS + 1)'(stores)) - (BITS + 1)'(tvalid_o && tready_i);
    if (rst_i) begin
      midst <= 1'b0;
      of_frame <= '0;
      held <= '0;
    end
  end
  qw_frames #(.DEPTH(DEPTH)) frames (
      .clk, .rst_i, .valid_i(valid_i && ready_o), .last_i, .data_i, .kept_i, .broken_i, .lost_o(lost),
      .valid_o(tvalid_o), .ready_i(tready_i), .last_o(tlast_o), .data_o(data), .kept_o(kept)
  );
  // verilator lint_off UNUSEDSIGNAL
  logic size_valid;  // pushed with a frame's last beat, so it is there when the frame is
  // verilator lint_on UNUSEDSIGNAL
  qw_fifo #(.WIDTH(16 + USER_BITS), .DEPTH(DEPTH)) sizes (
      .clk, .rst_i, .push_i(ends && !forgets), .data_i({16'({of_frame, 6'd0}) + 16'(kept_i), user_i}),
      .valid_o(size_valid), .ready_i(tvalid_o && tready_i && tlast_o), .data_o({size_o, user_o})
  );
endmodule

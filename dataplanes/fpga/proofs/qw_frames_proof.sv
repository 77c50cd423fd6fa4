// That frames come out whole, in order, and as they were; and that those that are broken or find no room leave no trace.
// Of a beat's bytes the lowest bit stands for all: they are never looked at.
module qw_frames_proof
  import qw_gate_pkg::*;
#(
    parameter int DEPTH = 8,
    localparam int BITS = $clog2(DEPTH)
) (
    input logic                 clk,
    input logic                 rst_i,
    input logic                 valid_i,
    input logic                 last_i,
    input logic [BEAT_BITS-1:0] data_i,
    input logic                 broken_i,
    input logic                 lost_o,
    input logic                 valid_o,
    input logic                 ready_i,
    input logic                 last_o,
    input logic [BEAT_BITS-1:0] data_o,
    // Within.
    input logic [BEAT_BITS+7:0] memory[DEPTH],
    input logic [       BITS:0] writing,
    input logic [       BITS:0] whole,
    input logic [       BITS:0] taken,
    input logic                 lost
);
  logic begun = 1'b0;
  // Beats of whole frames, the next one first, and behind them those of the frame that comes. Each: last, a bit.
  logic [DEPTH-1:0][1:0] waiting, moved;
  logic [BITS:0] count, coming, left;
  logic takes, is_inside, is_losing, was_kept, was_there, loses;
  logic [1:0] was;
  always_comb begin
    takes = valid_o && ready_i;
    left = count - (BITS + 1)'(takes);
    loses = is_losing || count + coming == (BITS + 1)'(DEPTH);
    moved = takes ? waiting >> 2 : waiting;
    if (valid_i && !loses) moved[BITS'(left+coming)] = {last_i, data_i[0]};
    if (!begun) assume (rst_i);
  end
  always_ff @(posedge clk) begin
    begun <= 1'b1;
    waiting <= moved;
    count <= left;
    if (valid_i) begin
      coming <= last_i ? '0 : coming + (BITS + 1)'(!loses);
      is_losing <= loses && !last_i;
      if (last_i && !loses && !broken_i) count <= left + coming + 1'b1;
    end
    if (takes) is_inside <= !last_o;
    was_kept <= valid_o && !ready_i && !rst_i;
    was_there <= left != 0 && !rst_i;
    was <= {last_o, data_o[0]};
    if (rst_i) {count, coming, is_losing, is_inside} <= '0;
  end

  logic linked;
  always_comb begin
    linked = whole - taken == count && writing - whole == coming && lost == is_losing && (!valid_o || count != 0) &&
        (BITS + 2)'(count) + (BITS + 2)'(coming) <= (BITS + 2)'(DEPTH);
    for (int at = 0; at < DEPTH; at++) begin
      if ((BITS + 1)'(at) < count + coming && (memory[BITS'(taken+(BITS+1)'(at))][0] != waiting[at][0] ||
              memory[BITS'(taken+(BITS+1)'(at))][BEAT_BITS+7] != waiting[at][1])) linked = 1'b0;
    end
    if (begun) Linked_A: assert (linked);
    // What is there ends with a frame.
    if (begun) Ends_A: assert (count == 0 ? !is_inside : waiting[BITS'(count-1)][1]);
    if (begun && valid_o) InOrder_A: assert (count != 0 && {last_o, data_o[0]} == waiting[0]);
    if (begun) Arrives_A: assert (valid_o == was_there);
    if (begun && was_kept) Stays_A: assert (valid_o && {last_o, data_o[0]} == was);
    // Once a frame has begun there is a beat of it in each clock.
    if (begun && is_inside) Whole_A: assert (valid_o);
    if (begun) Loses_A: assert (lost_o == loses);
  end
endmodule
bind qw_frames qw_frames_proof #(.DEPTH(DEPTH)) proof (.*);

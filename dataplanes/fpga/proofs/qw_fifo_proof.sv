// That a queue gives what was pushed, in that order, as long as who pushes knows that there is room.
module qw_fifo_proof #(
    parameter int WIDTH = 1,
    parameter int DEPTH = 4,
    localparam int BITS = $clog2(DEPTH)
) (
    input logic             clk,
    input logic             rst_i,
    input logic             push_i,
    input logic [WIDTH-1:0] data_i,
    input logic             valid_o,
    input logic             ready_i,
    input logic [WIDTH-1:0] data_o,
    // Within.
    input logic [WIDTH-1:0] memory[DEPTH],
    input logic [   BITS:0] written,
    input logic [   BITS:0] taken
);
  // A queue as one would draw it: the next one first.
  logic begun = 1'b0;
  logic [DEPTH-1:0][WIDTH-1:0] waiting, moved;
  logic [BITS:0] count, left;
  logic takes, was_there, was_kept;
  logic [WIDTH-1:0] was_data;
  always_comb begin
    takes = valid_o && ready_i;
    left = count - (BITS + 1)'(takes);
    moved = takes ? waiting >> WIDTH : waiting;
    if (push_i) moved[left[BITS-1:0]] = data_i;
    if (!begun) assume (rst_i);
    if (push_i) assume (count < (BITS + 1)'(DEPTH));
  end
  always_ff @(posedge clk) begin
    begun     <= 1'b1;
    waiting   <= moved;
    count     <= rst_i ? '0 : left + (BITS + 1)'(push_i);
    was_there <= left != 0 && !rst_i;
    was_kept  <= valid_o && !ready_i && !rst_i;
    was_data  <= data_o;
  end

  logic linked;
  always_comb begin
    linked = written - taken == count && count <= (BITS + 1)'(DEPTH) && (!valid_o || count != 0);
    for (int at = 0; at < DEPTH; at++)
      if ((BITS + 1)'(at) < count && memory[BITS'(taken+(BITS+1)'(at))] != waiting[at]) linked = 1'b0;
    if (begun) Linked_A: assert (linked);
    if (begun && valid_o) InOrder_A: assert (count != 0 && data_o == waiting[0]);
    // What is offered stays until it is taken.
    if (begun && was_kept) Stays_A: assert (valid_o && data_o == was_data);
    // What is pushed can be taken two clocks later.
    if (begun) Arrives_A: assert (valid_o == was_there);
  end
endmodule
bind qw_fifo qw_fifo_proof #(.WIDTH(WIDTH), .DEPTH(DEPTH)) proof (.*);

// A queue. What is pushed can be taken two clocks later, one element a clock. Whoever pushes knows
// that there is room. `DEPTH`: elements, a power of two.
module qw_fifo #(
    parameter int WIDTH = 1,
    parameter int DEPTH = 16
) (
    input  logic             clk,
    input  logic             rst_i,
    input  logic             push_i,
    input  logic [WIDTH-1:0] data_i,
    output logic             valid_o,
    input  logic             ready_i,
    output logic [WIDTH-1:0] data_o
);
  localparam int BITS = $clog2(DEPTH);

  logic [WIDTH-1:0] memory[DEPTH];
  logic [BITS:0] written, taken, next_taken;
  always_comb next_taken = taken + (BITS + 1)'(valid_o && ready_i);
  always_ff @(posedge clk) begin
    if (push_i) memory[written[BITS-1:0]] <= data_i;
    data_o  <= memory[next_taken[BITS-1:0]];
    // Not what is pushed in this clock: it is not in the memory yet.
    valid_o <= !rst_i && next_taken != written;
    written <= rst_i ? '0 : written + (BITS + 1)'(push_i);
    taken   <= rst_i ? '0 : next_taken;
  end
endmodule

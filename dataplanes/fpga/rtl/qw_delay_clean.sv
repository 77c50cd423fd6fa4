// A bit, so many clocks later, with a reset: for what says that something is there.
module qw_delay_clean #(
    parameter int CLOCKS = 1
) (
    input  logic clk,
    input  logic rst_i,
    input  logic d,
    output logic q
);
  logic [CLOCKS:0] line;
  always_comb line[0] = d;
  always_comb q = line[CLOCKS];
  always_ff @(posedge clk) line[CLOCKS:1] <= rst_i ? '0 : line[CLOCKS-1:0];
endmodule

// Two streams of frames become one. A frame leaves as a whole; if both have one, each has its turn.
module qw_merge #(
    parameter int WIDTH = 1
) (
    input  logic                  clk,
    input  logic                  rst_i,
    input  logic [1:0]            valid_i,
    output logic [1:0]            ready_o,
    input  logic [1:0]            last_i,
    input  logic [1:0][WIDTH-1:0] data_i,
    output logic                  valid_o,
    input  logic                  ready_i,
    output logic                  last_o,
    output logic [WIDTH-1:0]      data_o
);
  logic from, next_from, midst;
  always_comb begin
    next_from = midst || !valid_i[!from] ? from : !from;
    valid_o = valid_i[next_from];
    last_o = last_i[next_from];
    data_o = data_i[next_from];
    ready_o = '0;
    ready_o[next_from] = ready_i;
  end
  always_ff @(posedge clk) begin
    if (valid_o) begin
      from  <= next_from;
      midst <= !(ready_i && last_o);
    end
    if (rst_i) {from, midst} <= '0;
  end
endmodule

// What came in, so many clocks later. Without a reset, so that it becomes shift registers.
module qw_delay #(
    parameter int WIDTH  = 1,
    parameter int CLOCKS = 1
) (
    input  logic             clk,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);
  if (CLOCKS == 0) begin : g_none
    // verilator lint_off UNUSEDSIGNAL
    logic unused_clk;
    always_comb unused_clk = clk;
    // verilator lint_on UNUSEDSIGNAL
    always_comb q = d;
  end else begin : g_line
    logic [WIDTH-1:0] line[CLOCKS];
    always_ff @(posedge clk) begin
      line[0] <= d;
      for (int at = 1; at < CLOCKS; at++) line[at] <= line[at-1];
    end
    always_comb q = line[CLOCKS-1];
  end
endmodule

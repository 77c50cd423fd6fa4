// The pair by which a shell resets a module: `mod_rstn_i` low asks for a reset, `mod_rst_done_o` says that both
// clocks have had it, and that all is quiet. A clock that stands still has not, so then it is not said.
module qw_reset_pair #(
    parameter int CLOCKS = 16  // of `clk`, at least
) (
    input  logic axil_clk,
    input  logic mod_rstn_i,      // as the next, of `axil_clk`
    output logic mod_rst_done_o,
    output logic axil_rst_o,
    input  logic clk,
    output logic rst_o,
    input  logic quiet_i          // of `clk`: nothing is on its way any more
);
  localparam int BITS = $clog2(CLOCKS + 1);
  logic asks, again, confirms;
  logic [BITS-1:0] clocks;
  (* ASYNC_REG = "TRUE" *) logic [1:0] asked, confirmed;
  // What resets has no reset: so it begins, as the chip is configured.
  initial begin
    {asks, again, mod_rst_done_o} = 3'b100;
    {confirms, confirmed} = '0;
    asked = '1;
    rst_o = 1'b1;
    clocks = '0;
  end
  always_comb axil_rst_o = !mod_rst_done_o;
  always_ff @(posedge axil_clk) begin
    confirmed <= {confirmed[0], confirms};
    mod_rst_done_o <= mod_rstn_i && !asks && !again && !confirmed[1];
    if (asks) begin
      again <= 1'b0;
      if (mod_rstn_i && confirmed[1]) asks <= 1'b0;
    end else begin
      // The last one has to be over first.
      asks  <= again && !confirmed[1];
      again <= !mod_rstn_i || again && confirmed[1];
    end
  end
  always_ff @(posedge clk) begin
    asked <= {asked[0], asks};
    rst_o <= asked[1];
    confirms <= clocks == BITS'(CLOCKS) && quiet_i;
    if (!asked[1]) clocks <= '0;
    else if (clocks != BITS'(CLOCKS)) clocks <= clocks + 1'b1;
  end
endmodule

// A shell whose registers have a clock of their own, 125 MHz, whose resets come as a pair, and that takes the log as
// writes over AXI4.
module qw_shell_axi
  import qw_gate_pkg::*, qw_shell_pkg::*;
#(
    parameter bit IS_BOX = 1'b0,  // groups are Paxos roles
    parameter int FRAME_BYTES_MAX = 1518
) (
    input  logic                  clk,
    input  logic                  s_axis_rx_tvalid,
    input  logic                  s_axis_rx_tlast,
    input  logic [ BEAT_BITS-1:0] s_axis_rx_tdata,
    input  logic [BEAT_BYTES-1:0] s_axis_rx_tkeep,
    input  logic                  s_axis_rx_broken,
    input  logic                  s_axis_own_tvalid,
    output logic                  s_axis_own_tready,
    input  logic                  s_axis_own_tlast,
    input  logic [ BEAT_BITS-1:0] s_axis_own_tdata,
    input  logic [BEAT_BYTES-1:0] s_axis_own_tkeep,
    input  logic                  s_axis_own_broken,
    output logic                  m_axis_tx_tvalid,
    input  logic                  m_axis_tx_tready,
    output logic                  m_axis_tx_tlast,
    output logic [ BEAT_BITS-1:0] m_axis_tx_tdata,
    output logic [BEAT_BYTES-1:0] m_axis_tx_tkeep,
    output logic [          15:0] m_axis_tx_size,
    output logic                  m_axis_host_tvalid,
    input  logic                  m_axis_host_tready,
    output logic                  m_axis_host_tlast,
    output logic [ BEAT_BITS-1:0] m_axis_host_tdata,
    output logic [BEAT_BYTES-1:0] m_axis_host_tkeep,
    output logic [          15:0] m_axis_host_size,
    output logic [           3:0] m_axi_awid,
    output logic [          63:0] m_axi_awaddr,
    output logic [           7:0] m_axi_awlen,
    output logic [           2:0] m_axi_awsize,
    output logic [           1:0] m_axi_awburst,
    output logic [           3:0] m_axi_awcache,
    output logic [           2:0] m_axi_awprot,
    output logic                  m_axi_awvalid,
    input  logic                  m_axi_awready,
    output logic [ BEAT_BITS-1:0] m_axi_wdata,
    output logic [BEAT_BYTES-1:0] m_axi_wstrb,
    output logic                  m_axi_wlast,
    output logic                  m_axi_wvalid,
    input  logic                  m_axi_wready,
    input  logic [           3:0] m_axi_bid,
    input  logic [           1:0] m_axi_bresp,
    input  logic                  m_axi_bvalid,
    output logic                  m_axi_bready,
    output logic                  interrupt_o,
    // With the registers' clock.
    input  logic                  axil_clk,
    input  logic                  mod_rstn_i,
    output logic                  mod_rst_done_o,
    input  logic [          11:0] s_axil_awaddr,
    input  logic                  s_axil_awvalid,
    output logic                  s_axil_awready,
    input  logic [          31:0] s_axil_wdata,
    input  logic [           3:0] s_axil_wstrb,
    input  logic                  s_axil_wvalid,
    output logic                  s_axil_wready,
    output logic [           1:0] s_axil_bresp,
    output logic                  s_axil_bvalid,
    input  logic                  s_axil_bready,
    input  logic [          11:0] s_axil_araddr,
    input  logic                  s_axil_arvalid,
    output logic                  s_axil_arready,
    output logic [          31:0] s_axil_rdata,
    output logic [           1:0] s_axil_rresp,
    output logic                  s_axil_rvalid,
    input  logic                  s_axil_rready
);
  logic rst, axil_rst, log_valid, log_ready, log_landed, log_failed;
  logic [LOG_OPEN_BITS-1:0] log_open;
  logic [63:0] log_address;
  logic [BEAT_BITS-1:0] log_data;
  logic write_asks, asks_write, writes, awready, wready, bvalid, bready, arvalid, arready, rvalid, rready;
  logic [11:0] awaddr, araddr;
  logic [31:0] wdata, rdata;
  logic [3:0] wstrb;
  logic [1:0] bresp, rresp;
  // verilator lint_off UNUSEDSIGNAL
  logic user;
  // verilator lint_on UNUSEDSIGNAL

  qw_reset_pair reset_pair (
      .axil_clk, .mod_rstn_i, .mod_rst_done_o, .axil_rst_o(axil_rst), .clk, .rst_o(rst),
      .quiet_i(log_open == 0)
  );
  // Both parts of a write cross together, and the core takes them together.
  always_comb begin
    write_asks = s_axil_awvalid && s_axil_wvalid;
    s_axil_awready = write_asks && asks_write;
    s_axil_wready = s_axil_awready;
  end
  qw_crossing #(.ASK_BITS(12 + 32 + 4), .ANSWER_BITS(2)) write_crossing (
      .ask_clk(axil_clk), .ask_rst_i(axil_rst), .ask_valid_i(write_asks), .ask_ready_o(asks_write),
      .ask_i({s_axil_awaddr, s_axil_wdata, s_axil_wstrb}), .answer_valid_o(s_axil_bvalid),
      .answer_ready_i(s_axil_bready), .answer_o(s_axil_bresp),
      .clk, .rst_i(rst), .ask_valid_o(writes), .ask_ready_i(awready && wready), .ask_o({awaddr, wdata, wstrb}),
      .answer_valid_i(bvalid), .answer_ready_o(bready), .answer_i(bresp)
  );
  qw_crossing #(.ASK_BITS(12), .ANSWER_BITS(2 + 32)) read_crossing (
      .ask_clk(axil_clk), .ask_rst_i(axil_rst), .ask_valid_i(s_axil_arvalid), .ask_ready_o(s_axil_arready),
      .ask_i(s_axil_araddr), .answer_valid_o(s_axil_rvalid), .answer_ready_i(s_axil_rready),
      .answer_o({s_axil_rresp, s_axil_rdata}),
      .clk, .rst_i(rst), .ask_valid_o(arvalid), .ask_ready_i(arready), .ask_o(araddr),
      .answer_valid_i(rvalid), .answer_ready_o(rready), .answer_i({rresp, rdata})
  );
  qw_log_axi log (
      .clk, .rst_i(rst), .valid_i(log_valid), .ready_o(log_ready), .address_i(log_address), .data_i(log_data),
      .open_o(log_open), .landed_o(log_landed), .failed_o(log_failed), .m_axi_awid, .m_axi_awaddr, .m_axi_awlen,
      .m_axi_awsize, .m_axi_awburst, .m_axi_awcache, .m_axi_awprot, .m_axi_awvalid, .m_axi_awready, .m_axi_wdata,
      .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready, .m_axi_bid, .m_axi_bresp, .m_axi_bvalid, .m_axi_bready
  );
  qw_shell #(.IS_BOX(IS_BOX), .FRAME_BYTES_MAX(FRAME_BYTES_MAX)) shell (
      .clk, .rst_i(rst), .s_axis_rx_tvalid, .s_axis_rx_tlast, .s_axis_rx_tdata, .s_axis_rx_tkeep, .s_axis_rx_broken,
      .s_axis_own_tvalid, .s_axis_own_tready, .s_axis_own_tlast, .s_axis_own_tdata, .s_axis_own_tkeep,
      .s_axis_own_broken, .s_axis_own_user(1'b0), .m_axis_tx_tvalid, .m_axis_tx_tready, .m_axis_tx_tlast,
      .m_axis_tx_tdata, .m_axis_tx_tkeep, .m_axis_tx_size, .m_axis_tx_user(user), .m_axis_host_tvalid,
      .m_axis_host_tready, .m_axis_host_tlast, .m_axis_host_tdata, .m_axis_host_tkeep, .m_axis_host_size,
      .log_valid_o(log_valid), .log_ready_i(log_ready), .log_address_o(log_address), .log_data_o(log_data),
      .log_open_i(log_open), .log_landed_i(log_landed), .log_failed_i(log_failed),
      .s_axil_awaddr(awaddr), .s_axil_awvalid(writes), .s_axil_awready(awready), .s_axil_wdata(wdata),
      .s_axil_wstrb(wstrb), .s_axil_wvalid(writes), .s_axil_wready(wready), .s_axil_bresp(bresp),
      .s_axil_bvalid(bvalid), .s_axil_bready(bready), .s_axil_araddr(araddr), .s_axil_arvalid(arvalid),
      .s_axil_arready(arready), .s_axil_rdata(rdata), .s_axil_rresp(rresp), .s_axil_rvalid(rvalid),
      .s_axil_rready(rready), .interrupt_o
  );
endmodule

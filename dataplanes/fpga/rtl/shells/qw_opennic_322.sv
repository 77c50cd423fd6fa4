// The core in OpenNIC's box of 322 MHz, before one MAC; ports are called as the shell calls them. Nothing that is
// received can wait, here as on the way to the adapter; a frame that leaves has no gap; a broken one is marked at its
// end.
module qw_opennic_322 #(
    parameter bit IS_BOX = 1'b0,  // groups are Paxos roles
    parameter int FRAME_BYTES_MAX = 1518  // as the shell's MAX_PKT_LEN, or more
) (
    input  logic         s_axil_awvalid,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [ 31:0] s_axil_awaddr,  // the lowest 12 bits are looked at
    // verilator lint_on UNUSEDSIGNAL
    output logic         s_axil_awready,
    input  logic         s_axil_wvalid,
    input  logic [ 31:0] s_axil_wdata,
    output logic         s_axil_wready,
    output logic         s_axil_bvalid,
    output logic [  1:0] s_axil_bresp,
    input  logic         s_axil_bready,
    input  logic         s_axil_arvalid,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [ 31:0] s_axil_araddr,  // as of a write
    // verilator lint_on UNUSEDSIGNAL
    output logic         s_axil_arready,
    output logic         s_axil_rvalid,
    output logic [ 31:0] s_axil_rdata,
    output logic [  1:0] s_axil_rresp,
    input  logic         s_axil_rready,
    input  logic         s_axis_adap_tx_322mhz_tvalid,
    input  logic [511:0] s_axis_adap_tx_322mhz_tdata,
    input  logic [ 63:0] s_axis_adap_tx_322mhz_tkeep,
    input  logic         s_axis_adap_tx_322mhz_tlast,
    input  logic         s_axis_adap_tx_322mhz_tuser_err,
    output logic         s_axis_adap_tx_322mhz_tready,
    output logic         m_axis_adap_rx_322mhz_tvalid,
    output logic [511:0] m_axis_adap_rx_322mhz_tdata,
    output logic [ 63:0] m_axis_adap_rx_322mhz_tkeep,
    output logic         m_axis_adap_rx_322mhz_tlast,
    output logic         m_axis_adap_rx_322mhz_tuser_err,
    output logic         m_axis_cmac_tx_tvalid,
    output logic [511:0] m_axis_cmac_tx_tdata,
    output logic [ 63:0] m_axis_cmac_tx_tkeep,
    output logic         m_axis_cmac_tx_tlast,
    output logic         m_axis_cmac_tx_tuser_err,
    input  logic         m_axis_cmac_tx_tready,
    input  logic         s_axis_cmac_rx_tvalid,
    input  logic [511:0] s_axis_cmac_rx_tdata,
    input  logic [ 63:0] s_axis_cmac_rx_tkeep,
    input  logic         s_axis_cmac_rx_tlast,
    input  logic         s_axis_cmac_rx_tuser_err,
    // The log: to the slave bridge of the QDMA, with `cmac_clk`.
    output logic [  3:0] m_axi_awid,
    output logic [ 63:0] m_axi_awaddr,
    output logic [  7:0] m_axi_awlen,
    output logic [  2:0] m_axi_awsize,
    output logic [  1:0] m_axi_awburst,
    output logic [  3:0] m_axi_awcache,
    output logic [  2:0] m_axi_awprot,
    output logic         m_axi_awvalid,
    input  logic         m_axi_awready,
    output logic [511:0] m_axi_wdata,
    output logic [ 63:0] m_axi_wstrb,
    output logic         m_axi_wlast,
    output logic         m_axi_wvalid,
    input  logic         m_axi_wready,
    input  logic [  3:0] m_axi_bid,
    input  logic [  1:0] m_axi_bresp,
    input  logic         m_axi_bvalid,
    output logic         m_axi_bready,
    output logic         interrupt_o,
    input  logic         mod_rstn,
    output logic         mod_rst_done,
    input  logic         axil_aclk,
    input  logic         cmac_clk
);
  // verilator lint_off UNUSEDSIGNAL
  logic [15:0] tx_size, host_size;
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    m_axis_cmac_tx_tuser_err = 1'b0;
    m_axis_adap_rx_322mhz_tuser_err = 1'b0;
  end
  qw_shell_axi #(.IS_BOX(IS_BOX), .FRAME_BYTES_MAX(FRAME_BYTES_MAX)) shell (
      .clk(cmac_clk), .axil_clk(axil_aclk), .mod_rstn_i(mod_rstn), .mod_rst_done_o(mod_rst_done),
      .s_axis_rx_tvalid(s_axis_cmac_rx_tvalid), .s_axis_rx_tdata(s_axis_cmac_rx_tdata),
      .s_axis_rx_tkeep(s_axis_cmac_rx_tkeep), .s_axis_rx_tlast(s_axis_cmac_rx_tlast),
      .s_axis_rx_broken(s_axis_cmac_rx_tuser_err),
      .s_axis_own_tvalid(s_axis_adap_tx_322mhz_tvalid), .s_axis_own_tdata(s_axis_adap_tx_322mhz_tdata),
      .s_axis_own_tkeep(s_axis_adap_tx_322mhz_tkeep), .s_axis_own_tlast(s_axis_adap_tx_322mhz_tlast),
      .s_axis_own_tready(s_axis_adap_tx_322mhz_tready),
      .s_axis_own_broken(s_axis_adap_tx_322mhz_tuser_err),
      .m_axis_tx_tvalid(m_axis_cmac_tx_tvalid), .m_axis_tx_tdata(m_axis_cmac_tx_tdata),
      .m_axis_tx_tkeep(m_axis_cmac_tx_tkeep), .m_axis_tx_tlast(m_axis_cmac_tx_tlast),
      .m_axis_tx_tready(m_axis_cmac_tx_tready),
      .m_axis_tx_size(tx_size),
      .m_axis_host_tvalid(m_axis_adap_rx_322mhz_tvalid), .m_axis_host_tdata(m_axis_adap_rx_322mhz_tdata),
      .m_axis_host_tkeep(m_axis_adap_rx_322mhz_tkeep), .m_axis_host_tlast(m_axis_adap_rx_322mhz_tlast),
      .m_axis_host_tready(1'b1), .m_axis_host_size(host_size),
      .s_axil_awaddr(s_axil_awaddr[11:0]), .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb('1),
      .s_axil_wvalid, .s_axil_wready, .s_axil_bresp, .s_axil_bvalid, .s_axil_bready,
      .s_axil_araddr(s_axil_araddr[11:0]), .s_axil_arvalid, .s_axil_arready, .s_axil_rdata, .s_axil_rresp,
      .s_axil_rvalid, .s_axil_rready,
      .m_axi_awid, .m_axi_awaddr, .m_axi_awlen, .m_axi_awsize, .m_axi_awburst, .m_axi_awcache, .m_axi_awprot,
      .m_axi_awvalid, .m_axi_awready, .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready,
      .m_axi_bid, .m_axi_bresp, .m_axi_bvalid, .m_axi_bready, .interrupt_o
  );
endmodule

// The core in OpenNIC's box of 250 MHz, as a plugin for one physical function and one port; ports are called as the
// shell calls them. Frames are whole and good there; the shell goes by their size and destination.
module qw_opennic_250 #(
    parameter bit IS_BOX = 1'b0,  // groups are Paxos roles
    parameter int FRAME_BYTES_MAX = 1518,  // as the shell's MAX_PKT_LEN, or more
    parameter int FUNCTION = 0,
    parameter int PORT = 0
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
    input  logic         s_axis_qdma_h2c_tvalid,
    input  logic [511:0] s_axis_qdma_h2c_tdata,
    input  logic [ 63:0] s_axis_qdma_h2c_tkeep,
    input  logic         s_axis_qdma_h2c_tlast,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [ 15:0] s_axis_qdma_h2c_tuser_size,
    input  logic [ 15:0] s_axis_qdma_h2c_tuser_src,
    input  logic [ 15:0] s_axis_qdma_h2c_tuser_dst,
    // verilator lint_on UNUSEDSIGNAL
    output logic         s_axis_qdma_h2c_tready,
    output logic         m_axis_qdma_c2h_tvalid,
    output logic [511:0] m_axis_qdma_c2h_tdata,
    output logic [ 63:0] m_axis_qdma_c2h_tkeep,
    output logic         m_axis_qdma_c2h_tlast,
    output logic [ 15:0] m_axis_qdma_c2h_tuser_size,
    output logic [ 15:0] m_axis_qdma_c2h_tuser_src,
    output logic [ 15:0] m_axis_qdma_c2h_tuser_dst,
    input  logic         m_axis_qdma_c2h_tready,
    output logic         m_axis_adap_tx_250mhz_tvalid,
    output logic [511:0] m_axis_adap_tx_250mhz_tdata,
    output logic [ 63:0] m_axis_adap_tx_250mhz_tkeep,
    output logic         m_axis_adap_tx_250mhz_tlast,
    output logic [ 15:0] m_axis_adap_tx_250mhz_tuser_size,
    output logic [ 15:0] m_axis_adap_tx_250mhz_tuser_src,
    output logic [ 15:0] m_axis_adap_tx_250mhz_tuser_dst,
    input  logic         m_axis_adap_tx_250mhz_tready,
    input  logic         s_axis_adap_rx_250mhz_tvalid,
    input  logic [511:0] s_axis_adap_rx_250mhz_tdata,
    input  logic [ 63:0] s_axis_adap_rx_250mhz_tkeep,
    input  logic         s_axis_adap_rx_250mhz_tlast,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [ 15:0] s_axis_adap_rx_250mhz_tuser_size,
    input  logic [ 15:0] s_axis_adap_rx_250mhz_tuser_src,
    input  logic [ 15:0] s_axis_adap_rx_250mhz_tuser_dst,
    // verilator lint_on UNUSEDSIGNAL
    output logic         s_axis_adap_rx_250mhz_tready,
    // The log: to the slave bridge of the QDMA, with `axis_aclk`.
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
    input  logic         axis_aclk
);
  // A bit for each function, and from bit 6 on for each port.
  localparam logic [15:0] OF_FUNCTION = 16'(1 << FUNCTION), OF_PORT = 16'(1 << (6 + PORT));
  always_comb begin
    m_axis_qdma_c2h_tuser_src = OF_PORT;
    m_axis_qdma_c2h_tuser_dst = OF_FUNCTION;
    m_axis_adap_tx_250mhz_tuser_src = OF_FUNCTION;
    m_axis_adap_tx_250mhz_tuser_dst = OF_PORT;
    s_axis_adap_rx_250mhz_tready = 1'b1;  // what finds no room, the core drops and counts
  end
  qw_shell_axi #(.IS_BOX(IS_BOX), .FRAME_BYTES_MAX(FRAME_BYTES_MAX)) shell (
      .clk(axis_aclk), .axil_clk(axil_aclk), .mod_rstn_i(mod_rstn), .mod_rst_done_o(mod_rst_done),
      .s_axis_rx_tvalid(s_axis_adap_rx_250mhz_tvalid), .s_axis_rx_tdata(s_axis_adap_rx_250mhz_tdata),
      .s_axis_rx_tkeep(s_axis_adap_rx_250mhz_tkeep), .s_axis_rx_tlast(s_axis_adap_rx_250mhz_tlast),
      .s_axis_rx_broken(1'b0),
      .s_axis_own_tvalid(s_axis_qdma_h2c_tvalid), .s_axis_own_tdata(s_axis_qdma_h2c_tdata),
      .s_axis_own_tkeep(s_axis_qdma_h2c_tkeep), .s_axis_own_tlast(s_axis_qdma_h2c_tlast),
      .s_axis_own_tready(s_axis_qdma_h2c_tready),
      .s_axis_own_broken(1'b0),
      .m_axis_tx_tvalid(m_axis_adap_tx_250mhz_tvalid), .m_axis_tx_tdata(m_axis_adap_tx_250mhz_tdata),
      .m_axis_tx_tkeep(m_axis_adap_tx_250mhz_tkeep), .m_axis_tx_tlast(m_axis_adap_tx_250mhz_tlast),
      .m_axis_tx_tready(m_axis_adap_tx_250mhz_tready),
      .m_axis_tx_size(m_axis_adap_tx_250mhz_tuser_size),
      .m_axis_host_tvalid(m_axis_qdma_c2h_tvalid), .m_axis_host_tdata(m_axis_qdma_c2h_tdata),
      .m_axis_host_tkeep(m_axis_qdma_c2h_tkeep), .m_axis_host_tlast(m_axis_qdma_c2h_tlast),
      .m_axis_host_tready(m_axis_qdma_c2h_tready),
      .m_axis_host_size(m_axis_qdma_c2h_tuser_size),
      .s_axil_awaddr(s_axil_awaddr[11:0]), .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb('1),
      .s_axil_wvalid, .s_axil_wready, .s_axil_bresp, .s_axil_bvalid, .s_axil_bready,
      .s_axil_araddr(s_axil_araddr[11:0]), .s_axil_arvalid, .s_axil_arready, .s_axil_rdata, .s_axil_rresp,
      .s_axil_rvalid, .s_axil_rready,
      .m_axi_awid, .m_axi_awaddr, .m_axi_awlen, .m_axi_awsize, .m_axi_awburst, .m_axi_awcache, .m_axi_awprot,
      .m_axi_awvalid, .m_axi_awready, .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready,
      .m_axi_bid, .m_axi_bresp, .m_axi_bvalid, .m_axi_bready, .interrupt_o
  );
endmodule

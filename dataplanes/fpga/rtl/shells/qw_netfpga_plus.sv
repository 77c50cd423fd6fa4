// The core as NetFPGA-PLUS's data path, for one MAC and the DMA: what is in `nf_datapath` between its streams 0 and 2.
module qw_netfpga_plus #(
    parameter bit IS_BOX = 1'b0,  // groups are Paxos roles
    parameter int FRAME_BYTES_MAX = 1518,
    parameter logic [7:0] MAC = 8'h01,  // its bit as a port
    parameter logic [7:0] DMA = 8'h02
) (
    input  logic         axis_aclk,
    input  logic         axis_resetn,
    input  logic         axi_aclk,
    input  logic         axi_resetn,
    input  logic         s_axis_mac_tvalid,
    input  logic [511:0] s_axis_mac_tdata,
    input  logic [ 63:0] s_axis_mac_tkeep,
    input  logic         s_axis_mac_tlast,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [127:0] s_axis_mac_tuser,
    // verilator lint_on UNUSEDSIGNAL
    output logic         s_axis_mac_tready,
    input  logic         s_axis_dma_tvalid,
    input  logic [511:0] s_axis_dma_tdata,
    input  logic [ 63:0] s_axis_dma_tkeep,
    input  logic         s_axis_dma_tlast,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [127:0] s_axis_dma_tuser,
    // verilator lint_on UNUSEDSIGNAL
    output logic         s_axis_dma_tready,
    output logic         m_axis_mac_tvalid,
    output logic [511:0] m_axis_mac_tdata,
    output logic [ 63:0] m_axis_mac_tkeep,
    output logic         m_axis_mac_tlast,
    output logic [127:0] m_axis_mac_tuser,
    input  logic         m_axis_mac_tready,
    output logic         m_axis_dma_tvalid,
    output logic [511:0] m_axis_dma_tdata,
    output logic [ 63:0] m_axis_dma_tkeep,
    output logic         m_axis_dma_tlast,
    output logic [127:0] m_axis_dma_tuser,
    input  logic         m_axis_dma_tready,
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
    input  logic         s_axil_awvalid,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [ 31:0] s_axil_awaddr,  // the lowest 12 bits are looked at
    // verilator lint_on UNUSEDSIGNAL
    output logic         s_axil_awready,
    input  logic         s_axil_wvalid,
    input  logic [ 31:0] s_axil_wdata,
    input  logic [  3:0] s_axil_wstrb,
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
    input  logic         s_axil_rready
);
  logic [15:0] mac_size, dma_size;
  // verilator lint_off UNUSEDSIGNAL
  logic done;
  // verilator lint_on UNUSEDSIGNAL
  // Each clock has its reset. One of them resets both: see qw_crossing.
  (* ASYNC_REG = "TRUE" *) logic [1:0] streams_run;
  always_ff @(posedge axi_aclk) streams_run <= {streams_run[0], axis_resetn};
  always_comb begin
    m_axis_mac_tuser = {96'd0, MAC, DMA, mac_size};
    m_axis_dma_tuser = {96'd0, DMA, MAC, dma_size};
    s_axis_mac_tready = 1'b1;  // what finds no room, the core drops and counts
  end
  qw_shell_axi #(.IS_BOX(IS_BOX), .FRAME_BYTES_MAX(FRAME_BYTES_MAX)) shell (
      .clk(axis_aclk), .axil_clk(axi_aclk), .mod_rstn_i(axi_resetn && streams_run[1]), .mod_rst_done_o(done),
      .s_axis_rx_tvalid(s_axis_mac_tvalid), .s_axis_rx_tdata(s_axis_mac_tdata), .s_axis_rx_tkeep(s_axis_mac_tkeep),
      .s_axis_rx_tlast(s_axis_mac_tlast),
      .s_axis_rx_broken(1'b0),
      .s_axis_own_tvalid(s_axis_dma_tvalid), .s_axis_own_tdata(s_axis_dma_tdata), .s_axis_own_tkeep(s_axis_dma_tkeep),
      .s_axis_own_tlast(s_axis_dma_tlast), .s_axis_own_tready(s_axis_dma_tready),
      .s_axis_own_broken(1'b0),
      .m_axis_tx_tvalid(m_axis_mac_tvalid), .m_axis_tx_tdata(m_axis_mac_tdata), .m_axis_tx_tkeep(m_axis_mac_tkeep),
      .m_axis_tx_tlast(m_axis_mac_tlast), .m_axis_tx_tready(m_axis_mac_tready),
      .m_axis_tx_size(mac_size),
      .m_axis_host_tvalid(m_axis_dma_tvalid), .m_axis_host_tdata(m_axis_dma_tdata),
      .m_axis_host_tkeep(m_axis_dma_tkeep), .m_axis_host_tlast(m_axis_dma_tlast),
      .m_axis_host_tready(m_axis_dma_tready),
      .m_axis_host_size(dma_size),
      .s_axil_awaddr(s_axil_awaddr[11:0]), .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb,
      .s_axil_wvalid, .s_axil_wready, .s_axil_bresp, .s_axil_bvalid, .s_axil_bready,
      .s_axil_araddr(s_axil_araddr[11:0]), .s_axil_arvalid, .s_axil_arready, .s_axil_rdata, .s_axil_rresp,
      .s_axil_rvalid, .s_axil_rready,
      .m_axi_awid, .m_axi_awaddr, .m_axi_awlen, .m_axi_awsize, .m_axi_awburst, .m_axi_awcache, .m_axi_awprot,
      .m_axi_awvalid, .m_axi_awready, .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready,
      .m_axi_bid, .m_axi_bresp, .m_axi_bvalid, .m_axi_bready, .interrupt_o
  );
endmodule

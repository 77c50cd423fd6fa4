// The core in Corundum's application block, at the streams `sync` of one port; parameters and ports are called as the
// block calls them, and what is not here stays as in Corundum's template of it. There is one clock.
module qw_corundum
  import qw_shell_pkg::*;
#(
    parameter bit IS_BOX = 1'b0,  // groups are Paxos roles
    parameter int MAX_FRAME_SIZE = 9214,  // as MAX_TX_SIZE or MAX_RX_SIZE, whichever is more
    parameter int PTP_TS_WIDTH = 96,
    parameter int TX_TAG_WIDTH = 16,
    // Of the core's frames. The host's side must not use it.
    parameter logic [TX_TAG_WIDTH-1:0] CORE_TX_TAG = '1,
    parameter int DMA_ADDR_WIDTH = 64,
    parameter int DMA_IMM_WIDTH = 32,
    parameter int DMA_LEN_WIDTH = 16,
    parameter int DMA_TAG_WIDTH = 16,
    parameter int RAM_SEL_WIDTH = 4,
    parameter int RAM_ADDR_WIDTH = 16,
    parameter int RAM_SEG_COUNT = 2,
    parameter int RAM_SEG_DATA_WIDTH = 512,
    parameter int RAM_SEG_BE_WIDTH = RAM_SEG_DATA_WIDTH / 8,
    parameter int RAM_SEG_ADDR_WIDTH = RAM_ADDR_WIDTH - $clog2(RAM_SEG_COUNT * RAM_SEG_BE_WIDTH),
    parameter int AXIL_APP_CTRL_ADDR_WIDTH = 16
) (
    input  logic                      clk,
    input  logic                      rst,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [AXIL_APP_CTRL_ADDR_WIDTH-1:0] s_axil_app_ctrl_awaddr,  // the lowest 12 bits are looked at
    // verilator lint_on UNUSEDSIGNAL
    input  logic                      s_axil_app_ctrl_awvalid,
    output logic                      s_axil_app_ctrl_awready,
    input  logic [              31:0] s_axil_app_ctrl_wdata,
    input  logic [               3:0] s_axil_app_ctrl_wstrb,
    input  logic                      s_axil_app_ctrl_wvalid,
    output logic                      s_axil_app_ctrl_wready,
    output logic [               1:0] s_axil_app_ctrl_bresp,
    output logic                      s_axil_app_ctrl_bvalid,
    input  logic                      s_axil_app_ctrl_bready,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [AXIL_APP_CTRL_ADDR_WIDTH-1:0] s_axil_app_ctrl_araddr,  // as of a write
    // verilator lint_on UNUSEDSIGNAL
    input  logic                      s_axil_app_ctrl_arvalid,
    output logic                      s_axil_app_ctrl_arready,
    output logic [              31:0] s_axil_app_ctrl_rdata,
    output logic [               1:0] s_axil_app_ctrl_rresp,
    output logic                      s_axil_app_ctrl_rvalid,
    input  logic                      s_axil_app_ctrl_rready,
    // The log.
    output logic [DMA_ADDR_WIDTH-1:0] m_axis_data_dma_write_desc_dma_addr,
    output logic [ RAM_SEL_WIDTH-1:0] m_axis_data_dma_write_desc_ram_sel,
    output logic [RAM_ADDR_WIDTH-1:0] m_axis_data_dma_write_desc_ram_addr,
    output logic [ DMA_IMM_WIDTH-1:0] m_axis_data_dma_write_desc_imm,
    output logic                      m_axis_data_dma_write_desc_imm_en,
    output logic [ DMA_LEN_WIDTH-1:0] m_axis_data_dma_write_desc_len,
    output logic [ DMA_TAG_WIDTH-1:0] m_axis_data_dma_write_desc_tag,
    output logic                      m_axis_data_dma_write_desc_valid,
    input  logic                      m_axis_data_dma_write_desc_ready,
    input  logic [ DMA_TAG_WIDTH-1:0] s_axis_data_dma_write_desc_status_tag,
    input  logic [               3:0] s_axis_data_dma_write_desc_status_error,
    input  logic                      s_axis_data_dma_write_desc_status_valid,
    input  logic [RAM_SEG_COUNT*RAM_SEG_ADDR_WIDTH-1:0] data_dma_ram_rd_cmd_addr,
    input  logic [ RAM_SEG_COUNT-1:0] data_dma_ram_rd_cmd_valid,
    output logic [ RAM_SEG_COUNT-1:0] data_dma_ram_rd_cmd_ready,
    output logic [RAM_SEG_COUNT*RAM_SEG_DATA_WIDTH-1:0] data_dma_ram_rd_resp_data,
    output logic [ RAM_SEG_COUNT-1:0] data_dma_ram_rd_resp_valid,
    input  logic [ RAM_SEG_COUNT-1:0] data_dma_ram_rd_resp_ready,
    // Beside the frames: a tag, and in the lowest bit whether the frame is bad; of what is received, when it came.
    input  logic [             511:0] s_axis_sync_tx_tdata,
    input  logic [              63:0] s_axis_sync_tx_tkeep,
    input  logic                      s_axis_sync_tx_tvalid,
    output logic                      s_axis_sync_tx_tready,
    input  logic                      s_axis_sync_tx_tlast,
    input  logic [    TX_TAG_WIDTH:0] s_axis_sync_tx_tuser,
    output logic [             511:0] m_axis_sync_tx_tdata,
    output logic [              63:0] m_axis_sync_tx_tkeep,
    output logic                      m_axis_sync_tx_tvalid,
    input  logic                      m_axis_sync_tx_tready,
    output logic                      m_axis_sync_tx_tlast,
    output logic [    TX_TAG_WIDTH:0] m_axis_sync_tx_tuser,
    // A frame was sent. Of the core's, the host's side is not told.
    input  logic [  PTP_TS_WIDTH-1:0] s_axis_sync_tx_cpl_ts,
    input  logic [  TX_TAG_WIDTH-1:0] s_axis_sync_tx_cpl_tag,
    input  logic                      s_axis_sync_tx_cpl_valid,
    output logic                      s_axis_sync_tx_cpl_ready,
    output logic [  PTP_TS_WIDTH-1:0] m_axis_sync_tx_cpl_ts,
    output logic [  TX_TAG_WIDTH-1:0] m_axis_sync_tx_cpl_tag,
    output logic                      m_axis_sync_tx_cpl_valid,
    input  logic                      m_axis_sync_tx_cpl_ready,
    input  logic [             511:0] s_axis_sync_rx_tdata,
    input  logic [              63:0] s_axis_sync_rx_tkeep,
    input  logic                      s_axis_sync_rx_tvalid,
    output logic                      s_axis_sync_rx_tready,
    input  logic                      s_axis_sync_rx_tlast,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [    PTP_TS_WIDTH:0] s_axis_sync_rx_tuser,  // when it came is forgotten
    // verilator lint_on UNUSEDSIGNAL
    output logic [             511:0] m_axis_sync_rx_tdata,
    output logic [              63:0] m_axis_sync_rx_tkeep,
    output logic                      m_axis_sync_rx_tvalid,
    input  logic                      m_axis_sync_rx_tready,
    output logic                      m_axis_sync_rx_tlast,
    output logic [    PTP_TS_WIDTH:0] m_axis_sync_rx_tuser,
    output logic                      interrupt_o
);
  logic log_valid, log_ready, log_landed, log_failed, is_cores;
  logic [LOG_OPEN_BITS-1:0] log_open;
  logic [63:0] log_address;
  logic [511:0] log_data;
  logic [TX_TAG_WIDTH-1:0] tx_tag;
  // verilator lint_off UNUSEDSIGNAL
  logic [15:0] tx_size, host_size;
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    s_axis_sync_rx_tready = 1'b1;  // what finds no room, the core drops and counts
    m_axis_sync_rx_tuser = '0;
    m_axis_sync_tx_tuser = {tx_tag, 1'b0};
    is_cores = s_axis_sync_tx_cpl_tag == CORE_TX_TAG;
    m_axis_sync_tx_cpl_ts = s_axis_sync_tx_cpl_ts;
    m_axis_sync_tx_cpl_tag = s_axis_sync_tx_cpl_tag;
    m_axis_sync_tx_cpl_valid = s_axis_sync_tx_cpl_valid && !is_cores;
    s_axis_sync_tx_cpl_ready = m_axis_sync_tx_cpl_ready || is_cores;
    m_axis_data_dma_write_desc_imm = '0;
    m_axis_data_dma_write_desc_imm_en = 1'b0;
  end
  qw_log_dma #(
      .DMA_ADDR_WIDTH(DMA_ADDR_WIDTH), .DMA_LEN_WIDTH(DMA_LEN_WIDTH), .DMA_TAG_WIDTH(DMA_TAG_WIDTH),
      .RAM_SEL_WIDTH(RAM_SEL_WIDTH), .RAM_ADDR_WIDTH(RAM_ADDR_WIDTH), .RAM_SEG_COUNT(RAM_SEG_COUNT),
      .RAM_SEG_DATA_WIDTH(RAM_SEG_DATA_WIDTH), .RAM_SEG_ADDR_WIDTH(RAM_SEG_ADDR_WIDTH)
  ) log (
      .clk, .rst_i(rst), .valid_i(log_valid), .ready_o(log_ready), .address_i(log_address), .data_i(log_data),
      .open_o(log_open), .landed_o(log_landed), .failed_o(log_failed),
      .desc_dma_addr_o(m_axis_data_dma_write_desc_dma_addr), .desc_ram_sel_o(m_axis_data_dma_write_desc_ram_sel),
      .desc_ram_addr_o(m_axis_data_dma_write_desc_ram_addr), .desc_len_o(m_axis_data_dma_write_desc_len),
      .desc_tag_o(m_axis_data_dma_write_desc_tag), .desc_valid_o(m_axis_data_dma_write_desc_valid),
      .desc_ready_i(m_axis_data_dma_write_desc_ready), .status_tag_i(s_axis_data_dma_write_desc_status_tag),
      .status_error_i(s_axis_data_dma_write_desc_status_error),
      .status_valid_i(s_axis_data_dma_write_desc_status_valid), .rd_cmd_addr_i(data_dma_ram_rd_cmd_addr),
      .rd_cmd_valid_i(data_dma_ram_rd_cmd_valid), .rd_cmd_ready_o(data_dma_ram_rd_cmd_ready),
      .rd_resp_data_o(data_dma_ram_rd_resp_data), .rd_resp_valid_o(data_dma_ram_rd_resp_valid),
      .rd_resp_ready_i(data_dma_ram_rd_resp_ready)
  );
  qw_shell #(.IS_BOX(IS_BOX), .FRAME_BYTES_MAX(MAX_FRAME_SIZE), .USER_BITS(TX_TAG_WIDTH), .CORE_USER(CORE_TX_TAG)) shell (
      .clk, .rst_i(rst), .s_axis_rx_tvalid(s_axis_sync_rx_tvalid), .s_axis_rx_tlast(s_axis_sync_rx_tlast),
      .s_axis_rx_tdata(s_axis_sync_rx_tdata), .s_axis_rx_tkeep(s_axis_sync_rx_tkeep),
      .s_axis_rx_broken(s_axis_sync_rx_tuser[0]),
      .s_axis_own_tvalid(s_axis_sync_tx_tvalid), .s_axis_own_tready(s_axis_sync_tx_tready),
      .s_axis_own_tlast(s_axis_sync_tx_tlast), .s_axis_own_tdata(s_axis_sync_tx_tdata),
      .s_axis_own_tkeep(s_axis_sync_tx_tkeep), .s_axis_own_broken(s_axis_sync_tx_tuser[0]),
      .s_axis_own_user(s_axis_sync_tx_tuser[TX_TAG_WIDTH:1]),
      .m_axis_tx_tvalid(m_axis_sync_tx_tvalid), .m_axis_tx_tready(m_axis_sync_tx_tready),
      .m_axis_tx_tlast(m_axis_sync_tx_tlast), .m_axis_tx_tdata(m_axis_sync_tx_tdata),
      .m_axis_tx_tkeep(m_axis_sync_tx_tkeep), .m_axis_tx_size(tx_size), .m_axis_tx_user(tx_tag),
      .m_axis_host_tvalid(m_axis_sync_rx_tvalid), .m_axis_host_tready(m_axis_sync_rx_tready),
      .m_axis_host_tlast(m_axis_sync_rx_tlast), .m_axis_host_tdata(m_axis_sync_rx_tdata),
      .m_axis_host_tkeep(m_axis_sync_rx_tkeep), .m_axis_host_size(host_size),
      .log_valid_o(log_valid), .log_ready_i(log_ready), .log_address_o(log_address), .log_data_o(log_data),
      .log_open_i(log_open), .log_landed_i(log_landed), .log_failed_i(log_failed),
      .s_axil_awaddr(s_axil_app_ctrl_awaddr[11:0]), .s_axil_awvalid(s_axil_app_ctrl_awvalid),
      .s_axil_awready(s_axil_app_ctrl_awready), .s_axil_wdata(s_axil_app_ctrl_wdata),
      .s_axil_wstrb(s_axil_app_ctrl_wstrb), .s_axil_wvalid(s_axil_app_ctrl_wvalid),
      .s_axil_wready(s_axil_app_ctrl_wready), .s_axil_bresp(s_axil_app_ctrl_bresp),
      .s_axil_bvalid(s_axil_app_ctrl_bvalid), .s_axil_bready(s_axil_app_ctrl_bready),
      .s_axil_araddr(s_axil_app_ctrl_araddr[11:0]), .s_axil_arvalid(s_axil_app_ctrl_arvalid),
      .s_axil_arready(s_axil_app_ctrl_arready), .s_axil_rdata(s_axil_app_ctrl_rdata),
      .s_axil_rresp(s_axil_app_ctrl_rresp), .s_axil_rvalid(s_axil_app_ctrl_rvalid),
      .s_axil_rready(s_axil_app_ctrl_rready), .interrupt_o
  );
endmodule

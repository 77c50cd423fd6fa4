// What stands between a card and any shell: streams as shells have them, the host's own frames among those that the
// core sends, reads that wait for the log. What stands beside frames is the wrappers'.
module qw_shell
  import qw_gate_pkg::*, qw_shell_pkg::*;
#(
    parameter bit IS_BOX = 1'b0,  // groups are Paxos roles
    parameter int FRAME_BYTES_MAX = 1518,
    parameter int USER_BITS = 1,
    parameter logic [USER_BITS-1:0] CORE_USER = '0  // beside the core's frames, as `s_axis_own_user` beside the host's
) (
    input  logic                  clk,
    input  logic                  rst_i,
    // From the network, always ready.
    input  logic                  s_axis_rx_tvalid,
    input  logic                  s_axis_rx_tlast,
    input  logic [ BEAT_BITS-1:0] s_axis_rx_tdata,
    input  logic [BEAT_BYTES-1:0] s_axis_rx_tkeep,
    input  logic                  s_axis_rx_broken,  // with the last beat
    // The host's own frames for the network.
    input  logic                  s_axis_own_tvalid,
    output logic                  s_axis_own_tready,
    input  logic                  s_axis_own_tlast,
    input  logic [ BEAT_BITS-1:0] s_axis_own_tdata,
    input  logic [BEAT_BYTES-1:0] s_axis_own_tkeep,
    input  logic                  s_axis_own_broken,
    input  logic [ USER_BITS-1:0] s_axis_own_user,
    // To the network.
    output logic                  m_axis_tx_tvalid,
    input  logic                  m_axis_tx_tready,
    output logic                  m_axis_tx_tlast,
    output logic [ BEAT_BITS-1:0] m_axis_tx_tdata,
    output logic [BEAT_BYTES-1:0] m_axis_tx_tkeep,
    output logic [          15:0] m_axis_tx_size,
    output logic [ USER_BITS-1:0] m_axis_tx_user,
    // To the host.
    output logic                  m_axis_host_tvalid,
    input  logic                  m_axis_host_tready,
    output logic                  m_axis_host_tlast,
    output logic [ BEAT_BITS-1:0] m_axis_host_tdata,
    output logic [BEAT_BYTES-1:0] m_axis_host_tkeep,
    output logic [          15:0] m_axis_host_size,
    // The log, and how much of it is on its way.
    output logic                  log_valid_o,
    input  logic                  log_ready_i,
    output logic [          63:0] log_address_o,
    output logic [ BEAT_BITS-1:0] log_data_o,
    input  logic [LOG_OPEN_BITS-1:0] log_open_i,
    input  logic                  log_landed_i,
    input  logic                  log_failed_i,
    // The host.
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
    input  logic                  s_axil_rready,
    output logic                  interrupt_o
);
  localparam int CORE_FRAME_BYTES_MAX = LOWER_IPV6_VLAN_BYTES + qw_pkg::HEADER_BYTES + qw_pkg::PAYLOAD_BYTES_MAX;
  localparam int WIDTH = USER_BITS + 16 + BEAT_BYTES + BEAT_BITS;
  logic rx_valid, tx_valid, tx_ready, tx_last, own_valid, own_ready, host_valid, host_ready, host_last, rvalid, rready;
  logic own_lost, too_long;
  logic [BEAT_BITS-1:0] rx_data, tx_data, own_data, host_data;
  logic [6:0] rx_kept, tx_kept, own_kept, host_kept;
  // Frames for the network, the core's and then the host's.
  logic [1:0] whole_valid, whole_ready, whole_last;
  logic [1:0][BEAT_BITS-1:0] whole_data;
  logic [1:0][BEAT_BYTES-1:0] whole_keep;
  logic [1:0][15:0] whole_size;
  logic [1:0][USER_BITS-1:0] whole_user;
  // verilator lint_off UNUSEDSIGNAL
  logic rx_ready, host_user, busy, core_lost;
  // verilator lint_on UNUSEDSIGNAL

  qw_axis_in rx (
      .clk, .rst_i, .tvalid_i(s_axis_rx_tvalid), .tready_o(rx_ready), .tlast_i(s_axis_rx_tlast),
      .tdata_i(s_axis_rx_tdata), .tkeep_i(s_axis_rx_tkeep),
      .valid_o(rx_valid), .ready_i(1'b1), .data_o(rx_data), .kept_o(rx_kept)
  );
  qw_axis_in own (
      .clk, .rst_i, .tvalid_i(s_axis_own_tvalid), .tready_o(s_axis_own_tready), .tlast_i(s_axis_own_tlast),
      .tdata_i(s_axis_own_tdata), .tkeep_i(s_axis_own_tkeep),
      .valid_o(own_valid), .ready_i(own_ready), .data_o(own_data), .kept_o(own_kept)
  );
  qw_card #(.IS_BOX(IS_BOX)) card (
      .clk, .rst_i, .rx_valid_i(rx_valid), .rx_last_i(s_axis_rx_tlast), .rx_data_i(rx_data), .rx_kept_i(rx_kept),
      .rx_error_i(s_axis_rx_broken && s_axis_rx_tlast),
      .tx_valid_o(tx_valid), .tx_ready_i(tx_ready), .tx_last_o(tx_last), .tx_data_o(tx_data), .tx_kept_o(tx_kept),
      .host_valid_o(host_valid), .host_ready_i(host_ready), .host_last_o(host_last), .host_data_o(host_data),
      .host_kept_o(host_kept), .log_valid_o, .log_ready_i, .log_address_o, .log_data_o, .log_failed_i,
      .own_lost_i(own_lost), .long_i(too_long),
      .s_axil_awaddr, .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid, .s_axil_wready,
      .s_axil_bresp, .s_axil_bvalid, .s_axil_bready, .s_axil_araddr, .s_axil_arvalid, .s_axil_arready, .s_axil_rdata,
      .s_axil_rresp, .s_axil_rvalid(rvalid), .s_axil_rready(rready), .interrupt_o, .busy_o(busy)
  );
  qw_after_log after_log (
      .clk, .rst_i, .open_i(log_open_i), .landed_i(log_landed_i), .valid_i(rvalid), .ready_o(rready),
      .valid_o(s_axil_rvalid), .ready_i(s_axil_rready)
  );
  // Each of both has a queue, so a host that stops in the middle of a frame does not stop the core.
  qw_whole #(.FRAME_BYTES_MAX(CORE_FRAME_BYTES_MAX), .USER_BITS(USER_BITS)) of_core (
      .clk, .rst_i, .valid_i(tx_valid), .ready_o(tx_ready), .lost_o(core_lost), .last_i(tx_last), .data_i(tx_data),
      .kept_i(tx_kept), .broken_i(1'b0), .user_i(CORE_USER), .tvalid_o(whole_valid[0]), .tready_i(whole_ready[0]),
      .tlast_o(whole_last[0]), .tdata_o(whole_data[0]), .tkeep_o(whole_keep[0]), .size_o(whole_size[0]),
      .user_o(whole_user[0])
  );
  qw_whole #(.FRAME_BYTES_MAX(FRAME_BYTES_MAX), .USER_BITS(USER_BITS)) of_host (
      .clk, .rst_i, .valid_i(own_valid), .ready_o(own_ready), .lost_o(own_lost), .last_i(s_axis_own_tlast),
      .data_i(own_data), .kept_i(own_kept), .broken_i(s_axis_own_broken), .user_i(s_axis_own_user), .tvalid_o(whole_valid[1]),
      .tready_i(whole_ready[1]), .tlast_o(whole_last[1]), .tdata_o(whole_data[1]), .tkeep_o(whole_keep[1]),
      .size_o(whole_size[1]), .user_o(whole_user[1])
  );
  qw_merge #(.WIDTH(WIDTH)) merge (
      .clk, .rst_i, .valid_i(whole_valid), .ready_o(whole_ready), .last_i(whole_last),
      .data_i({whole_user[1], whole_size[1], whole_keep[1], whole_data[1],
               whole_user[0], whole_size[0], whole_keep[0], whole_data[0]}),
      .valid_o(m_axis_tx_tvalid), .ready_i(m_axis_tx_tready), .last_o(m_axis_tx_tlast),
      .data_o({m_axis_tx_user, m_axis_tx_size, m_axis_tx_tkeep, m_axis_tx_tdata})
  );
  qw_whole #(.FRAME_BYTES_MAX(FRAME_BYTES_MAX)) for_host (
      .clk, .rst_i, .valid_i(host_valid), .ready_o(host_ready), .lost_o(too_long), .last_i(host_last),
      .data_i(host_data), .kept_i(host_kept), .broken_i(1'b0), .user_i(1'b0), .tvalid_o(m_axis_host_tvalid), .tready_i(m_axis_host_tready),
      .tlast_o(m_axis_host_tlast), .tdata_o(m_axis_host_tdata), .tkeep_o(m_axis_host_tkeep),
      .size_o(m_axis_host_size), .user_o(host_user)
  );
endmodule

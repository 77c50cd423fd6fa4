// A replica's core: leader and follower of several groups.
module qw_core
  import qw_pkg::*, qw_gate_pkg::*;
(
    input  logic                 clk,
    input  logic                 rst_i,
    // Frames from the network, and to it.
    input  logic                 rx_valid_i,
    input  logic                 rx_last_i,
    input  logic [BEAT_BITS-1:0] rx_data_i,
    input  logic [          6:0] rx_kept_i,
    input  logic                 rx_error_i,
    output logic                 tx_valid_o,
    input  logic                 tx_ready_i,
    output logic                 tx_last_o,
    output logic [BEAT_BITS-1:0] tx_data_o,
    output logic [          6:0] tx_kept_o,
    // Frames for the host.
    output logic                 host_valid_o,
    input  logic                 host_ready_i,
    output logic                 host_last_o,
    output logic [BEAT_BITS-1:0] host_data_o,
    output logic [          6:0] host_kept_o,
    // The log.
    output logic                 log_valid_o,
    input  logic                 log_ready_i,
    output logic [GROUP_BITS-1:0] log_group_o,
    output logic [         63:0] log_index_o,
    output logic [          4:0] log_beat_o,
    output logic [BEAT_BITS-1:0] log_data_o,
    // What the leader has to send again, or to answer, and the chip has not any more.
    output logic                 left_o,
    output again_t               left_range_o,
    // What the host does to a group (qw_decide).
    input  logic                 order_valid_i,
    output logic                 order_ready_o,
    input  op_t                  order_op_i,
    input  logic [GROUP_BITS-1:0] order_group_i,
    input  header_t              order_header_i,
    input  logic [         63:0] order_number_i,
    input  registers_t           order_registers_i,
    output logic                 order_done_o,
    output outcome_t             order_outcome_o,
    output registers_t           order_made_o,
    // The host's.
    input  place_t               place_i,
    input  logic [GROUPS_MAX-1:0][KEYS-1:0] keys_valid_i,
    input  logic                 key_write_i,
    input  logic [GROUP_BITS+1:0] key_number_i,
    input  logic [          7:0] key_word_i,
    input  logic [         63:0] key_data_i,
    input  logic                 peer_write_i,
    input  logic [GROUP_BITS+2:0] peer_number_i,
    input  endpoint_t            peer_i,
    // Counted, each in one clock.
    output logic                 lost_o,
    output logic                 broken_o,
    output logic                 host_lost_o,
    output logic                 sent_o,
    output logic                 no_neighbour_o,
    output logic                 refused_o,
    output logic [          7:0] reason_o,
    output logic                 behind_o,
    output logic [GROUP_BITS+2:0] behind_peer_o,
    output logic                 commits_o,
    output logic                 hears_o,
    output logic [GROUPS_MAX-1:0] off_o,
    output logic                 busy_o  // something is inside
);
  logic verdict_valid, verdict_ready, frame_valid, frame_ready, frame_last;
  verdict_t verdict;
  logic [BEAT_BITS-1:0] frame_data, packet_data;
  logic [6:0] frame_kept;
  logic fence, again, log_wants, log_valid, log_stalls;
  logic [63:0] log_term;
  again_t again_range;
  logic [GROUPS_MAX-1:0] busy;
  logic ends_busy, decides, carries_out;
  logic [1:0] valid_of, ready_of, last_of, may_go;
  logic [1:0][BEAT_BITS-1:0] data_of;
  sending_t [1:0] sending_of;
  logic packet_valid, packet_ready, packet_last, decided, decision_ready;
  sending_t sending;
  decision_t decision;
  qw_ends ends (
      .clk, .rst_i, .rx_valid_i, .rx_last_i, .rx_data_i, .rx_kept_i, .rx_error_i,
      .valid_o(verdict_valid), .ready_i(verdict_ready), .verdict_o(verdict),
      .frame_valid_o(frame_valid), .frame_ready_i(frame_ready), .frame_last_o(frame_last),
      .frame_data_o(frame_data), .frame_kept_o(frame_kept), .lost_o, .broken_o,
      .packet_valid_i(packet_valid), .packet_ready_o(packet_ready), .packet_last_i(packet_last),
      .packet_data_i(packet_data), .sending_i(sending),
      .tx_valid_o, .tx_ready_i, .tx_last_o, .tx_data_o, .tx_kept_o, .fence_o(fence), .sent_o, .no_neighbour_o,
      .busy_o(ends_busy), .place_i, .keys_valid_i, .key_write_i, .key_number_i, .key_word_i, .key_data_i,
      .peer_write_i, .peer_number_i, .peer_i
  );
  qw_decide decide (
      .clk, .rst_i, .order_valid_i, .order_ready_o, .order_op_i, .order_group_i, .order_header_i, .order_number_i,
      .order_registers_i, .order_done_o, .order_outcome_o, .order_made_o, .fence_i(fence), .place_i,
      .valid_i(verdict_valid), .ready_o(verdict_ready), .verdict_i(verdict),
      .decided_o(decided), .ready_i(decision_ready), .decision_o(decision),
      .again_o(again), .again_range_o(again_range), .off_o, .refused_o, .reason_o, .behind_o, .behind_peer_o,
      .commits_o, .hears_o, .busy_o(decides)
  );
  qw_carry_out carry_out (
      .clk, .rst_i, .frame_valid_i(frame_valid), .frame_ready_o(frame_ready), .frame_last_i(frame_last),
      .frame_data_i(frame_data), .frame_kept_i(frame_kept),
      .decided_i(decided), .ready_o(decision_ready), .decision_i(decision),
      .host_valid_o, .host_ready_i, .host_last_o, .host_data_o, .host_kept_o, .host_lost_o,
      .log_wants_o(log_wants), .log_valid_o(log_valid), .log_ready_i(log_ready_i && !log_stalls), .log_group_o,
      .log_index_o, .log_term_o(log_term), .log_beat_o, .log_data_o,
      .packet_valid_o(valid_of[0]), .packet_ready_i(ready_of[0]), .packet_last_o(last_of[0]),
      .packet_data_o(data_of[0]), .sending_o(sending_of[0]), .busy_o(carries_out)
  );
  qw_again repeats (
      .clk, .rst_i, .log_wants_i(log_wants), .log_valid_i(log_valid_o && log_ready_i), .log_group_i(log_group_o),
      .log_index_i(log_index_o), .log_term_i(log_term), .log_beat_i(log_beat_o), .log_data_i(log_data_o),
      .log_stalls_o(log_stalls), .ask_i(again), .ask_range_i(again_range), .off_i(off_o), .busy_o(busy),
      .packet_valid_o(valid_of[1]), .packet_ready_i(ready_of[1]), .packet_last_o(last_of[1]),
      .packet_data_o(data_of[1]), .sending_o(sending_of[1]), .left_o, .left_range_o
  );
  always_comb log_valid_o = log_valid && !log_stalls;
  always_comb busy_o = ends_busy || decides || carries_out || busy != 0;

  // Packets of both, one after the other. A fence waits until nothing is sent again for its group.
  logic is_inside, chosen, was;  // the first, or the one that repeats
  always_comb begin
    may_go[0] = valid_of[0] && (is_inside || !sending_of[0].is_fence || !busy[sending_of[0].group]);
    may_go[1] = valid_of[1];
    chosen = is_inside ? was : may_go[1] && (!was || !may_go[0]);
    packet_valid = may_go[chosen];
    packet_last = last_of[chosen];
    packet_data = data_of[chosen];
    sending = sending_of[chosen];
    // Inside a packet it is not asked whether there is a beat: that may wait for the log, and the log's for this.
    ready_of[0] = packet_ready && !chosen && (is_inside || may_go[0]);
    ready_of[1] = packet_ready && chosen;
  end
  always_ff @(posedge clk) begin
    if (packet_valid && packet_ready) begin
      is_inside <= !packet_last;
      was <= chosen;
    end
    if (rst_i) begin
      is_inside <= 1'b0;
      was <= 1'b0;
    end
  end
endmodule

// The core of Paxos roles: coordinators or acceptors of several deployments, between the same ends as a
// replica's (qw_core). A value that an acceptor votes for is written into the host's memory, as an entry is.
module qw_box
  import qw_pkg::*, qw_gate_pkg::*, qw_host_pkg::INSTANCES_MAX;
#(
    parameter int INSTANCES = INSTANCES_MAX
) (
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
    // Values.
    output logic                 log_valid_o,
    input  logic                 log_ready_i,
    output logic [GROUP_BITS-1:0] log_group_o,
    output logic [         63:0] log_index_o,
    output logic [          4:0] log_beat_o,
    output logic [BEAT_BITS-1:0] log_data_o,
    // What the host does to a role (qw_box_decide).
    input  logic                 order_valid_i,
    output logic                 order_ready_o,
    input  paxos_op_t            order_op_i,
    input  logic [GROUP_BITS-1:0] order_group_i,
    input  header_t              order_header_i,
    input  logic [         63:0] order_number_i,
    input  paxos_registers_t     order_registers_i,
    input  paxos_slot_t          order_slot_i,
    output logic                 order_done_o,
    output outcome_t             order_outcome_o,
    output paxos_registers_t     order_made_o,
    output paxos_slot_t          order_slot_o,
    // The host's.
    input  place_t               place_i,
    input  logic [GROUPS_MAX-1:0][7:0] destinations_i,
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
    output logic [GROUPS_MAX-1:0] off_o,
    output logic                 busy_o  // something is inside
);
  logic verdict_valid, verdict_ready, frame_valid, frame_ready, frame_last;
  verdict_t verdict;
  logic [BEAT_BITS-1:0] frame_data, packet_data;
  logic [6:0] frame_kept;
  logic fence, ends_busy, decides, carries_out;
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
  qw_box_decide #(.INSTANCES(INSTANCES)) decide (
      .clk, .rst_i, .order_valid_i, .order_ready_o, .order_op_i, .order_group_i, .order_header_i, .order_number_i,
      .order_registers_i, .order_slot_i, .order_done_o, .order_outcome_o, .order_made_o, .order_slot_o,
      .fence_i(fence), .destinations_i,
      .valid_i(verdict_valid), .ready_o(verdict_ready), .verdict_i(verdict),
      .decided_o(decided), .ready_i(decision_ready), .decision_o(decision), .off_o, .refused_o, .reason_o,
      .busy_o(decides)
  );
  // verilator lint_off UNUSEDSIGNAL
  logic log_wants;
  logic [63:0] log_round;
  // verilator lint_on UNUSEDSIGNAL
  qw_carry_out carry_out (
      .clk, .rst_i, .frame_valid_i(frame_valid), .frame_ready_o(frame_ready), .frame_last_i(frame_last),
      .frame_data_i(frame_data), .frame_kept_i(frame_kept),
      .decided_i(decided), .ready_o(decision_ready), .decision_i(decision),
      .host_valid_o, .host_ready_i, .host_last_o, .host_data_o, .host_kept_o, .host_lost_o,
      .log_wants_o(log_wants), .log_valid_o, .log_ready_i, .log_group_o, .log_index_o, .log_term_o(log_round),
      .log_beat_o, .log_data_o, .packet_valid_o(packet_valid), .packet_ready_i(packet_ready),
      .packet_last_o(packet_last), .packet_data_o(packet_data), .sending_o(sending), .busy_o(carries_out)
  );
  always_comb busy_o = ends_busy || decides || carries_out;
endmodule

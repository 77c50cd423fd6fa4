// Both ends of a core: what comes (qw_open), and what is sent (qw_seal), with one pipeline for the tags of
// both (qw_tags).
module qw_ends
  import qw_gate_pkg::*;
(
    input  logic                 clk,
    input  logic                 rst_i,
    // Frames from the network, and what shall become of them.
    input  logic                 rx_valid_i,
    input  logic                 rx_last_i,
    input  logic [BEAT_BITS-1:0] rx_data_i,
    input  logic [          6:0] rx_kept_i,
    input  logic                 rx_error_i,
    output logic                 valid_o,
    input  logic                 ready_i,
    output verdict_t             verdict_o,
    output logic                 frame_valid_o,
    input  logic                 frame_ready_i,
    output logic                 frame_last_o,
    output logic [BEAT_BITS-1:0] frame_data_o,
    output logic [          6:0] frame_kept_o,
    output logic                 lost_o,
    output logic                 broken_o,
    // Packets to be sent, and frames for the network.
    input  logic                 packet_valid_i,
    output logic                 packet_ready_o,
    input  logic                 packet_last_i,
    input  logic [BEAT_BITS-1:0] packet_data_i,
    input  sending_t             sending_i,
    output logic                 tx_valid_o,
    input  logic                 tx_ready_i,
    output logic                 tx_last_o,
    output logic [BEAT_BITS-1:0] tx_data_o,
    output logic [          6:0] tx_kept_o,
    output logic                 fence_o,
    output logic                 sent_o,
    output logic                 no_neighbour_o,
    output logic                 busy_o,  // a frame or a packet is inside
    // The host's. A key is written while it is not valid: its digest's words, then KEY_WORD_LOW and
    // KEY_WORD_HIGH.
    input  place_t               place_i,
    input  logic [GROUPS_MAX-1:0][KEYS-1:0] keys_valid_i,
    input  logic                 key_write_i,
    input  logic [GROUP_BITS+1:0] key_number_i,  // the group, then the key
    input  logic [          7:0] key_word_i,
    input  logic [         63:0] key_data_i,
    input  logic                 peer_write_i,
    input  logic [GROUP_BITS+2:0] peer_number_i,  // the group, then the replica
    input  endpoint_t            peer_i
);
  logic check_ask, check_valid, make_ask, make_ready, make_valid;
  tag_request_t check, make;
  logic [63:0] tag;
  logic seals;
  qw_tags tags (
      .clk, .rst_i, .key_write_i, .key_number_i, .key_word_i, .key_data_i,
      .check_ask_i(check_ask), .check_i(check), .check_valid_o(check_valid),
      .make_ask_i(make_ask), .make_ready_o(make_ready), .make_i(make), .make_valid_o(make_valid), .tag_o(tag)
  );
  qw_open open (
      .clk, .rst_i, .rx_valid_i, .rx_last_i, .rx_data_i, .rx_kept_i, .rx_error_i,
      .place_i, .keys_valid_i, .key_write_i, .key_number_i, .key_word_i, .key_data_i,
      .valid_o, .ready_i, .verdict_o, .frame_valid_o, .frame_ready_i, .frame_last_o, .frame_data_o, .frame_kept_o,
      .tag_ask_o(check_ask), .tag_request_o(check), .tag_valid_i(check_valid), .tag_i(tag),
      .lost_o, .broken_o
  );
  qw_seal seal (
      .clk, .rst_i, .valid_i(packet_valid_i), .ready_o(packet_ready_o), .last_i(packet_last_i),
      .data_i(packet_data_i), .sending_i, .place_i, .peer_write_i, .peer_number_i, .peer_i,
      .key_write_i, .key_number_i, .key_word_i, .key_data_i,
      .tag_ask_o(make_ask), .tag_ready_i(make_ready), .tag_request_o(make), .tag_valid_i(make_valid), .tag_i(tag),
      .tx_valid_o, .tx_ready_i, .tx_last_o, .tx_data_o, .tx_kept_o, .fence_o, .sent_o, .no_neighbour_o,
      .busy_o(seals)
  );
  // Each frame leaves, or is lost, or was broken.
  logic [15:0] frames;
  always_comb busy_o = frames != 0 || seals;
  always_ff @(posedge clk) begin
    frames <= frames + 16'(rx_valid_i && rx_last_i) - 16'(frame_valid_o && frame_ready_i && frame_last_o) -
        16'(lost_o) - 16'(broken_o);
    if (rst_i) frames <= '0;
  end
endmodule

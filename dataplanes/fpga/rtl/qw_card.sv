// A core, a replica's or one of Paxos roles, with all that a card's shell has to be given: streams of frames to
// and from the network and to the host, writes to the host's memory, registers over AXI4-Lite, an interrupt.
module qw_card
  import qw_pkg::*, qw_gate_pkg::*, qw_host_pkg::*;
#(
    parameter bit IS_BOX = 1'b0  // groups are Paxos roles
) (
    input  logic                 clk,
    input  logic                 rst_i,
    // Frames from the network, which wait for nobody; the first byte is the highest. `kept`: bytes of a beat.
    input  logic                 rx_valid_i,
    input  logic                 rx_last_i,
    input  logic [BEAT_BITS-1:0] rx_data_i,
    input  logic [          6:0] rx_kept_i,
    input  logic                 rx_error_i,
    // Frames for the network, and for the host.
    output logic                 tx_valid_o,
    input  logic                 tx_ready_i,
    output logic                 tx_last_o,
    output logic [BEAT_BITS-1:0] tx_data_o,
    output logic [          6:0] tx_kept_o,
    output logic                 host_valid_o,
    input  logic                 host_ready_i,
    output logic                 host_last_o,
    output logic [BEAT_BITS-1:0] host_data_o,
    output logic [          6:0] host_kept_o,
    // The log: beats for the host's memory, to be written in this order.
    output logic                 log_valid_o,
    input  logic                 log_ready_i,
    output logic [         63:0] log_address_o,
    output logic [BEAT_BITS-1:0] log_data_o,
    input  logic                 log_failed_i,  // a write of it, from then on
    // What a wrapper drops, a frame in each clock: of the host's own, and for the host.
    input  logic                 own_lost_i,
    input  logic                 long_i,
    // The host.
    input  logic [         11:0] s_axil_awaddr,
    input  logic                 s_axil_awvalid,
    output logic                 s_axil_awready,
    input  logic [         31:0] s_axil_wdata,
    input  logic [          3:0] s_axil_wstrb,
    input  logic                 s_axil_wvalid,
    output logic                 s_axil_wready,
    output logic [          1:0] s_axil_bresp,
    output logic                 s_axil_bvalid,
    input  logic                 s_axil_bready,
    input  logic [         11:0] s_axil_araddr,
    input  logic                 s_axil_arvalid,
    output logic                 s_axil_arready,
    output logic [         31:0] s_axil_rdata,
    output logic [          1:0] s_axil_rresp,
    output logic                 s_axil_rvalid,
    input  logic                 s_axil_rready,
    output logic                 interrupt_o,
    output logic                 busy_o  // something is inside
);
  logic order_valid, order_ready, order_done, left, behind, key_write, peer_write, commits, hears;
  logic [2:0] order_op;
  logic [GROUP_BITS-1:0] order_group, log_group;
  header_t order_header;
  logic [63:0] order_number, key_data, log_index;
  logic [REGISTERS_BITS/64-1:0][63:0] order_made;
  outcome_t order_outcome;
  logic [GROUPS_MAX-1:0] off;
  place_t place;
  // verilator lint_off UNUSEDSIGNAL
  // Not every core takes all of them.
  logic [REGISTERS_BITS/64-1:0][63:0] order_registers;
  logic [GROUPS_MAX-1:0][7:0] destinations;
  // verilator lint_on UNUSEDSIGNAL
  logic [GROUPS_MAX-1:0][KEYS-1:0] keys_valid;
  logic [GROUP_BITS+1:0] key_number;
  logic [7:0] key_word, reason;
  logic [GROUP_BITS+2:0] peer_number, behind_peer;
  endpoint_t peer;
  logic [GROUPS_MAX-1:0][63:0] rings, ring_masks;
  again_t left_range;
  logic [4:0] log_beat;
  localparam int PAXOS_WORDS = PAXOS_REGISTERS_BITS / 64, SLOT_WORDS = PAXOS_SLOT_BITS / 64;
  logic lost, broken, host_lost, sent, no_neighbour, refused, core_busy, log_goes;
  always_comb begin
    log_goes = log_valid_o && log_ready_i;
    log_address_o = rings[log_group] + (log_index & ring_masks[log_group]) * 64'(SLOT_STRIDE) +
        64'({log_beat, 6'd0});
    busy_o = core_busy || tx_valid_o || host_valid_o || log_valid_o;
  end
  if (IS_BOX) begin : gen_box
    paxos_registers_t made;
    paxos_slot_t made_slot;
    qw_box box (
        .clk, .rst_i, .rx_valid_i, .rx_last_i, .rx_data_i, .rx_kept_i, .rx_error_i,
        .tx_valid_o, .tx_ready_i, .tx_last_o, .tx_data_o, .tx_kept_o,
        .host_valid_o, .host_ready_i, .host_last_o, .host_data_o, .host_kept_o,
        .log_valid_o, .log_ready_i, .log_group_o(log_group), .log_index_o(log_index), .log_beat_o(log_beat),
        .log_data_o, .order_valid_i(order_valid), .order_ready_o(order_ready), .order_op_i(paxos_op_t'(order_op)),
        .order_group_i(order_group), .order_header_i(order_header), .order_number_i(order_number),
        .order_registers_i(paxos_registers_of_memory(order_registers[0+:PAXOS_WORDS])),
        .order_slot_i(paxos_slot_of_memory(order_registers[PAXOS_WORDS+:SLOT_WORDS])),
        .order_done_o(order_done), .order_outcome_o(order_outcome), .order_made_o(made), .order_slot_o(made_slot),
        .place_i(place), .destinations_i(destinations), .keys_valid_i(keys_valid), .key_write_i(key_write),
        .key_number_i(key_number), .key_word_i(key_word), .key_data_i(key_data), .peer_write_i(peer_write),
        .peer_number_i(peer_number), .peer_i(peer), .lost_o(lost), .broken_o(broken), .host_lost_o(host_lost),
        .sent_o(sent), .no_neighbour_o(no_neighbour), .refused_o(refused), .reason_o(reason), .off_o(off),
        .busy_o(core_busy)
    );
    always_comb begin
      order_made = '0;
      order_made[0+:PAXOS_WORDS] = memory_of_paxos_registers(made);
      order_made[PAXOS_WORDS+:SLOT_WORDS] = memory_of_paxos_slot(made_slot);
      {left, left_range, behind, behind_peer, commits, hears} = '0;
    end
  end else begin : gen_core
    registers_t made;
    always_comb order_made = memory_of_registers(made);
    qw_core core (
        .clk, .rst_i, .rx_valid_i, .rx_last_i, .rx_data_i, .rx_kept_i, .rx_error_i,
        .tx_valid_o, .tx_ready_i, .tx_last_o, .tx_data_o, .tx_kept_o,
        .host_valid_o, .host_ready_i, .host_last_o, .host_data_o, .host_kept_o,
        .log_valid_o, .log_ready_i, .log_group_o(log_group), .log_index_o(log_index), .log_beat_o(log_beat),
        .log_data_o, .left_o(left), .left_range_o(left_range),
        .order_valid_i(order_valid), .order_ready_o(order_ready), .order_op_i(op_t'(order_op)),
        .order_group_i(order_group), .order_header_i(order_header), .order_number_i(order_number),
        .order_registers_i(registers_of_memory(order_registers)),
        .order_done_o(order_done), .order_outcome_o(order_outcome), .order_made_o(made),
        .place_i(place), .keys_valid_i(keys_valid), .key_write_i(key_write), .key_number_i(key_number),
        .key_word_i(key_word), .key_data_i(key_data), .peer_write_i(peer_write), .peer_number_i(peer_number),
        .peer_i(peer), .lost_o(lost), .broken_o(broken), .host_lost_o(host_lost), .sent_o(sent),
        .no_neighbour_o(no_neighbour), .refused_o(refused), .reason_o(reason), .behind_o(behind),
        .behind_peer_o(behind_peer), .commits_o(commits), .hears_o(hears), .off_o(off), .busy_o(core_busy)
    );
  end
  qw_host #(.IS_BOX(IS_BOX)) host (
      .clk, .rst_i, .s_axil_awaddr, .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid,
      .s_axil_wready, .s_axil_bresp, .s_axil_bvalid, .s_axil_bready, .s_axil_araddr, .s_axil_arvalid,
      .s_axil_arready, .s_axil_rdata, .s_axil_rresp, .s_axil_rvalid, .s_axil_rready, .interrupt_o,
      .order_valid_o(order_valid), .order_ready_i(order_ready), .order_op_o(order_op), .order_group_o(order_group),
      .order_header_o(order_header), .order_number_o(order_number), .order_registers_o(order_registers),
      .order_done_i(order_done), .order_outcome_i(order_outcome), .order_made_i(order_made), .off_i(off),
      .place_o(place), .destinations_o(destinations), .keys_valid_o(keys_valid), .key_write_o(key_write), .key_number_o(key_number),
      .key_word_o(key_word), .key_data_o(key_data), .peer_write_o(peer_write), .peer_number_o(peer_number),
      .peer_o(peer), .rings_o(rings), .ring_masks_o(ring_masks), .left_i(left), .left_range_i(left_range),
      .behind_i(behind), .behind_peer_i(behind_peer), .busy_i(busy_o),
      .entry_begins_i(log_goes && log_beat == 5'd1), .entry_i(log_goes && log_beat == 0), .commits_i(commits),
      .hears_i(hears), .host_frame_i(host_valid_o && host_ready_i && host_last_o), .lost_i(lost), .broken_i(broken),
      .host_lost_i(host_lost), .own_lost_i, .long_i, .log_failed_i, .sent_i(sent),
      .no_neighbour_i(no_neighbour), .refused_i(refused), .reason_i(reason)
  );
endmodule

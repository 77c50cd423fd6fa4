// What the host reads and writes, over AXI4-Lite (registers.md): orders, keys, where replicas and rings are,
// what is left to it, notices and counters.
module qw_host
  import qw_pkg::*, qw_gate_pkg::*, qw_host_pkg::*;
#(
    parameter bit IS_BOX = 1'b0  // groups are Paxos roles
) (
    input  logic                 clk,
    input  logic                 rst_i,
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
    // Orders (qw_decide, qw_box_decide): what stands in `registers` as it was written, and what shall stand in
    // `made_registers`.
    output logic                 order_valid_o,
    input  logic                 order_ready_i,
    output logic [          2:0] order_op_o,
    output logic [GROUP_BITS-1:0] order_group_o,
    output header_t              order_header_o,
    output logic [         63:0] order_number_o,
    output logic [REGISTERS_BITS/64-1:0][63:0] order_registers_o,
    input  logic                 order_done_i,
    input  outcome_t             order_outcome_i,
    input  logic [REGISTERS_BITS/64-1:0][63:0] order_made_i,
    input  logic [GROUPS_MAX-1:0] off_i,
    // Where planes, replicas and rings are; keys.
    output place_t               place_o,
    output logic [GROUPS_MAX-1:0][7:0] destinations_o,
    output logic [GROUPS_MAX-1:0][KEYS-1:0] keys_valid_o,
    output logic                 key_write_o,
    output logic [GROUP_BITS+1:0] key_number_o,
    output logic [          7:0] key_word_o,
    output logic [         63:0] key_data_o,
    output logic                 peer_write_o,
    output logic [GROUP_BITS+2:0] peer_number_o,
    output endpoint_t            peer_o,
    output logic [GROUPS_MAX-1:0][63:0] rings_o,
    output logic [GROUPS_MAX-1:0][63:0] ring_masks_o,
    // What is left to the host.
    input  logic                 left_i,
    // verilator lint_off UNUSEDSIGNAL
    input  again_t               left_range_i,  // the registers that are in it the host reads itself
    // verilator lint_on UNUSEDSIGNAL
    input  logic                 behind_i,
    input  logic [GROUP_BITS+2:0] behind_peer_i,
    // What happens, each in one clock.
    input  logic                 busy_i,
    input  logic                 entry_begins_i,
    input  logic                 entry_i,
    input  logic                 commits_i,
    input  logic                 hears_i,
    input  logic                 host_frame_i,
    input  logic                 log_failed_i,  // from then on
    input  logic                 lost_i,
    input  logic                 broken_i,
    input  logic                 host_lost_i,
    input  logic                 own_lost_i,
    input  logic                 long_i,
    input  logic                 sent_i,
    input  logic                 no_neighbour_i,
    input  logic                 refused_i,
    input  logic [          7:0] reason_i
);
  localparam int WORDS = CORE_BYTES / 8;
  localparam int REGISTERS_WORDS = REGISTERS_BITS / 64, HEADER_WORDS = HEADER_BITS / 64;
  localparam logic [1:0] OKAY = 2'b00, REFUSED = 2'b10;
  typedef logic [8:0] word_t;  // of a number of 64 bits

  // Of something that stands there and is so many words long, which word this is.
  function automatic logic is_in(input word_t word, input int at, input int words);
    return int'(word) >= at / 8 && int'(word) < at / 8 + words;
  endfunction

  // ---- Numbers that the host writes.
  logic [31:0] low;
  logic [63:0] enabled, number, vlan, multicast, keys_valid, epochs, destinations, key_at, peer_end;
  logic [15:0] notice_entries;
  logic [31:0] notice_clocks;
  logic [REGISTERS_WORDS-1:0][63:0] given;
  logic [HEADER_WORDS-1:0][63:0] header;
  logic [2*GROUPS_MAX-1:0][63:0] addresses;
  logic [GROUPS_MAX-1:0][63:0] ends;
  logic [1:0][63:0] peer_address;

  // A write: accepted when both its parts are there, and all four bytes of it.
  logic writes, commits, is_written, is_ours;
  word_t word;
  logic [63:0] data;
  logic under_way;
  always_comb begin
    s_axil_awready = s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid;
    s_axil_wready = s_axil_awready;
    writes = s_axil_awready;
    word = s_axil_awaddr[11:3];
    data = {s_axil_wdata, low};
    // What an order is about stays until it is done.
    is_ours = is_in(word, CORE_CAUSES_AT, 4) || is_in(word, CORE_ORDER_AT, 1) ||
        is_in(word, CORE_NUMBER_AT, 1 + REGISTERS_WORDS + HEADER_WORDS) && !under_way ||
        is_in(word, CORE_VLAN_AT, 2) || is_in(word, CORE_ADDRESSES_AT, 2 * GROUPS_MAX) ||
        is_in(word, CORE_ENDS_AT, GROUPS_MAX) || is_in(word, CORE_KEYS_VALID_AT, 5) ||
        is_in(word, CORE_PEER_ADDRESS_AT, 4) || is_in(word, CORE_RINGS_AT, 2 * GROUPS_MAX) ||
        is_in(word, CORE_LEFT_WHAT_AT, 1) || is_in(word, CORE_BEHIND_AT, 1);
    is_written = writes && is_ours && s_axil_wstrb == '1 && s_axil_awaddr[1:0] == '0;
    commits = is_written && s_axil_awaddr[2];
  end
  always_ff @(posedge clk) begin
    if (is_written && !s_axil_awaddr[2]) low <= s_axil_wdata;
    if (writes) s_axil_bresp <= is_written ? OKAY : REFUSED;
    if (writes) s_axil_bvalid <= 1'b1;
    else if (s_axil_bready) s_axil_bvalid <= 1'b0;
    key_write_o <= commits && is_in(word, CORE_KEY_AT, 1) && !rst_i;
    if (commits && is_in(word, CORE_KEY_AT, 1)) key_data_o <= data;
    peer_write_o <= commits && is_in(word, CORE_PEER_AT, 1) && !rst_i;
    if (commits && is_in(word, CORE_PEER_AT, 1)) peer_number_o <= data[GROUP_BITS+2:0];
    if (commits) begin
      if (is_in(word, CORE_ENABLED_AT, 1)) enabled <= data;
      if (is_in(word, CORE_NOTICE_ENTRIES_AT, 1)) notice_entries <= data[15:0];
      if (is_in(word, CORE_NOTICE_CLOCKS_AT, 1)) notice_clocks <= data[31:0];
      if (is_in(word, CORE_NUMBER_AT, 1)) number <= data;
      for (int at = 0; at < REGISTERS_WORDS; at++) if (is_in(word, CORE_REGISTERS_AT + 8 * at, 1)) given[at] <= data;
      for (int at = 0; at < HEADER_WORDS; at++) if (is_in(word, CORE_HEADER_AT + 8 * at, 1)) header[at] <= data;
      if (is_in(word, CORE_VLAN_AT, 1)) vlan <= data;
      if (is_in(word, CORE_MULTICAST_AT, 1)) multicast <= data;
      for (int at = 0; at < 2 * GROUPS_MAX; at++) if (is_in(word, CORE_ADDRESSES_AT + 8 * at, 1)) addresses[at] <= data;
      for (int at = 0; at < GROUPS_MAX; at++) begin
        if (is_in(word, CORE_ENDS_AT + 8 * at, 1)) ends[at] <= data;
        if (is_in(word, CORE_RINGS_AT + 8 * at, 1)) rings_o[at] <= data;
        if (is_in(word, CORE_RING_MASKS_AT + 8 * at, 1)) ring_masks_o[at] <= data;
      end
      if (is_in(word, CORE_KEYS_VALID_AT, 1)) keys_valid <= data;
      if (is_in(word, CORE_EPOCHS_AT, 1)) epochs <= data;
      if (is_in(word, CORE_DESTINATIONS_AT, 1)) destinations <= data;
      if (is_in(word, CORE_KEY_AT_AT, 1)) key_at <= data;
      for (int at = 0; at < 2; at++) if (is_in(word, CORE_PEER_ADDRESS_AT + 8 * at, 1)) peer_address[at] <= data;
      if (is_in(word, CORE_PEER_END_AT, 1)) peer_end <= data;
    end
    if (rst_i) begin
      s_axil_bvalid <= 1'b0;
      {enabled, notice_entries, notice_clocks, vlan, multicast, keys_valid, epochs, destinations} <= '0;
      ends <= '0;
    end
  end
  always_comb begin
    place_o.vlan = vlan[11:0];
    place_o.multicast = multicast[31:0];
    place_o.cluster_epoch = epochs[GROUPS_MAX-1:0];
    place_o.clients_epoch = epochs[2*GROUPS_MAX-1:GROUPS_MAX];
    for (int at = 0; at < GROUPS_MAX; at++) place_o.at[at] = {addresses[2*at], addresses[2*at+1], ends[at]};
    keys_valid_o = keys_valid[GROUPS_MAX*KEYS-1:0];
    destinations_o = destinations;
    key_number_o = key_at[GROUP_BITS+1:0];
    key_word_o = key_at[15:8];
    peer_o = {peer_address[0], peer_address[1], peer_end};
  end

  // ---- Orders.
  localparam logic [7:0] ORDERS = IS_BOX ? 8'(PAXOS_OP_PUT_BACK) : 8'(OP_OFF);
  localparam logic [7:0] ENGAGES = IS_BOX ? 8'(PAXOS_OP_SWITCH_ON) : 8'(OP_ENGAGE);
  logic orders, is_order, sets, fits, order_refused;
  always_comb begin
    orders = commits && is_in(word, CORE_ORDER_AT, 1);
    sets = data[7:0] == ENGAGES || IS_BOX && data[7:0] == 8'(PAXOS_OP_PUT_BACK);
    // Of a role that is on, nobody but packets and steps change what is known of an instance. Two instances of a larger
    // window would have one place.
    fits = !IS_BOX || paxos_registers_of_memory(given[0+:PAXOS_REGISTERS_BITS/64]).window <= 32'(INSTANCES_MAX);
    is_order = !under_way && data[7:0] != 0 && data[7:0] <= ORDERS && data[15:8] < 8'(GROUPS_MAX) &&
        (!sets || off_i[data[8+:GROUP_BITS]] && fits);
    order_header_o = header_of_memory(header);
    order_registers_o = given;
    order_number_o = number;
  end
  always_ff @(posedge clk) begin
    if (orders) order_refused <= !is_order;
    if (orders && is_order) begin
      order_valid_o <= 1'b1;
      under_way <= 1'b1;
      order_op_o <= data[2:0];
      order_group_o <= data[8+:GROUP_BITS];
    end
    if (order_valid_o && order_ready_i) order_valid_o <= 1'b0;
    if (order_done_i) under_way <= 1'b0;
    if (rst_i) {order_valid_o, under_way, order_refused} <= '0;
  end

  // ---- What is left to the host.
  localparam int LEFT_BITS = $clog2(LEFT_MAX);
  typedef struct packed {
    logic [63:0] from, upto;
    logic [7:0] peer;
    logic [GROUP_BITS-1:0] group;
    logic answers;
  } left_t;
  left_t left, next_left;
  logic left_valid, left_taken, left_pushed;
  logic [LEFT_BITS:0] lefts;
  always_comb begin
    left = {left_range_i.from, left_range_i.upto, left_range_i.peer, left_range_i.group, left_range_i.answers};
    left_pushed = left_i && lefts < (LEFT_BITS + 1)'(LEFT_MAX);
    left_taken = left_valid && commits && is_in(word, CORE_LEFT_WHAT_AT, 1);
  end
  qw_fifo #(.WIDTH($bits(left_t)), .DEPTH(LEFT_MAX)) left_queue (
      .clk, .rst_i, .push_i(left_pushed), .data_i(left),
      .valid_o(left_valid), .ready_i(left_taken), .data_o(next_left)
  );
  logic [63:0] behind;
  always_ff @(posedge clk) begin
    lefts <= lefts + (LEFT_BITS + 1)'(left_pushed) - (LEFT_BITS + 1)'(left_taken);
    if (commits && is_in(word, CORE_BEHIND_AT, 1)) behind <= behind & ~data;
    if (behind_i) behind[behind_peer_i] <= 1'b1;
    if (rst_i) begin
      lefts <= '0;
      behind <= '0;
    end
  end

  // ---- Notices and interrupts.
  logic [15:0] unseen;  // entries since the last notice
  logic [31:0] unseen_clocks;  // since the first of them
  logic notice;
  logic [63:0] causes, happens;
  always_comb begin
    notice = unseen != 0 && (notice_entries != 0 && unseen >= notice_entries ||
                             notice_clocks != 0 && unseen_clocks >= notice_clocks);
    happens = '0;
    if (entry_begins_i) happens |= 64'(CAUSE_ENTRY);
    if (notice) happens |= 64'(CAUSE_ENTRIES);
    if (commits_i) happens |= 64'(CAUSE_COMMITTED);
    if (hears_i) happens |= 64'(CAUSE_HEARD);
    if (left_valid) happens |= 64'(CAUSE_LEFT);
    if (behind_i) happens |= 64'(CAUSE_BEHIND);
    if (host_frame_i) happens |= 64'(CAUSE_FRAME);
    if (order_done_i) happens |= 64'(CAUSE_ORDER);
    if (log_failed_i) happens |= 64'(CAUSE_LOG_FAILED);
  end
  always_ff @(posedge clk) begin
    unseen <= (notice ? '0 : unseen) + 16'(entry_i && (notice || unseen != '1));
    unseen_clocks <= notice || unseen == 0 ? '0 : unseen_clocks + 32'(unseen_clocks != '1);
    causes <= (commits && is_in(word, CORE_CAUSES_AT, 1) ? causes & ~data : causes) | happens;
    interrupt_o <= (causes & enabled) != 0 && !rst_i;
    if (rst_i) begin
      causes <= '0;
      unseen <= '0;
    end
  end

  // ---- Counters.
  logic [63:0] clocks;
  logic [COUNTS-1:0][63:0] counts;
  logic [COUNTS-1:0] counted;
  always_comb begin
    counted = '0;
    for (int at = 1; at < REASON_COUNT; at++) counted[at] = refused_i && reason_i == 8'(at);
    counted[REASON_COUNT+int'(COUNT_FRAMES_LOST)] = lost_i;
    counted[REASON_COUNT+int'(COUNT_FRAMES_BROKEN)] = broken_i;
    counted[REASON_COUNT+int'(COUNT_FRAMES_NOT_TAKEN)] = host_lost_i;
    counted[REASON_COUNT+int'(COUNT_FRAMES_SENT)] = sent_i;
    counted[REASON_COUNT+int'(COUNT_NO_NEIGHBOUR)] = no_neighbour_i;
    counted[REASON_COUNT+int'(COUNT_LEFT_LOST)] = left_i && !left_pushed;
    counted[REASON_COUNT+int'(COUNT_ENTRIES)] = entry_i;
    counted[REASON_COUNT+int'(COUNT_NOT_FOR_GROUP)] = refused_i && reason_i == REASON_NONE;
    counted[REASON_COUNT+int'(COUNT_FRAMES_OWN_LOST)] = own_lost_i;
    counted[REASON_COUNT+int'(COUNT_FRAMES_TOO_LONG)] = long_i;
  end
  always_ff @(posedge clk) begin
    clocks <= clocks + 1'b1;
    for (int at = 0; at < COUNTS; at++) if (counted[at]) counts[at] <= counts[at] + 1'b1;
    if (rst_i) begin
      clocks <= '0;
      counts <= '0;
    end
  end

  // ---- Reads.
  logic [WORDS-1:0][63:0] shown;
  always_comb begin
    shown[CORE_KEY_AT/8] = '0;
    shown[CORE_PEER_AT/8] = '0;
    shown[CORE_IDENTITY_AT/8] = {7'd0, IS_BOX, 8'(PLACES_OF_GROUP), 16'(GROUPS), 16'(MAP_VERSION), 16'(IDENTITY)};
    shown[CORE_CLOCKS_AT/8] = clocks;
    shown[CORE_STATE_AT/8] = (under_way ? 64'(STATE_UNDER_WAY) : '0) |
        (order_refused ? 64'(STATE_REFUSED) : '0) | (busy_i ? 64'(STATE_BUSY) : '0) |
        (log_failed_i ? 64'(STATE_LOG_FAILED) : '0);
    shown[CORE_OFF_AT/8] = 64'(off_i);
    shown[CORE_CAUSES_AT/8] = causes;
    shown[CORE_ENABLED_AT/8] = enabled;
    shown[CORE_NOTICE_ENTRIES_AT/8] = 64'(notice_entries);
    shown[CORE_NOTICE_CLOCKS_AT/8] = 64'(notice_clocks);
    shown[CORE_ORDER_AT/8] = {48'd0, 5'd0, order_group_o, 5'd0, order_op_o};
    shown[CORE_NUMBER_AT/8] = number;
    shown[CORE_REGISTERS_AT/8+:REGISTERS_WORDS] = given;
    shown[CORE_HEADER_AT/8+:HEADER_WORDS] = header;
    shown[CORE_MADE_HEADER_AT/8+:HEADER_WORDS] = memory_of_header(order_outcome_i.header);
    shown[CORE_MADE_INDEX_AT/8] = order_outcome_i.index;
    shown[CORE_MADE_COMMIT_FROM_AT/8] = order_outcome_i.commit_from;
    shown[CORE_MADE_ACTIONS_AT/8] = {24'd0, order_outcome_i.reason, order_outcome_i.actions};
    shown[CORE_MADE_REGISTERS_AT/8+:REGISTERS_WORDS] = order_made_i;
    shown[CORE_VLAN_AT/8] = vlan;
    shown[CORE_MULTICAST_AT/8] = multicast;
    shown[CORE_ADDRESSES_AT/8+:2*GROUPS_MAX] = addresses;
    shown[CORE_ENDS_AT/8+:GROUPS_MAX] = ends;
    shown[CORE_KEYS_VALID_AT/8] = keys_valid;
    shown[CORE_EPOCHS_AT/8] = epochs;
    shown[CORE_DESTINATIONS_AT/8] = destinations;
    shown[CORE_KEY_AT_AT/8] = key_at;
    shown[CORE_PEER_ADDRESS_AT/8+:2] = peer_address;
    shown[CORE_PEER_END_AT/8] = peer_end;
    shown[CORE_RINGS_AT/8+:GROUPS_MAX] = rings_o;
    shown[CORE_RING_MASKS_AT/8+:GROUPS_MAX] = ring_masks_o;
    shown[CORE_LEFT_WHAT_AT/8] = {40'd0, next_left.peer, 8'(next_left.group), 6'd0, next_left.answers, left_valid};
    shown[CORE_LEFT_FROM_AT/8] = next_left.from;
    shown[CORE_LEFT_UPTO_AT/8] = next_left.upto;
    shown[CORE_BEHIND_AT/8] = behind;
    shown[CORE_COUNT_AT/8+:COUNTS] = counts;
  end
  logic [63:0] read;
  logic [31:0] high;
  logic reads, is_there;
  always_comb begin
    s_axil_arready = s_axil_arvalid && !s_axil_rvalid;
    reads = s_axil_arready;
    is_there = int'(s_axil_araddr[11:3]) < WORDS && s_axil_araddr[1:0] == '0;
    read = is_there ? shown[s_axil_araddr[10:3]] : '0;
  end
  always_ff @(posedge clk) begin
    if (reads) begin
      s_axil_rdata <= s_axil_araddr[2] ? high : read[31:0];
      s_axil_rresp <= is_there ? OKAY : REFUSED;
      if (!s_axil_araddr[2]) high <= read[63:32];
    end
    if (reads) s_axil_rvalid <= 1'b1;
    else if (s_axil_rready) s_axil_rvalid <= 1'b0;
    if (rst_i) s_axil_rvalid <= 1'b0;
  end
endmodule

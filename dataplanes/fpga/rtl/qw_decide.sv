// A replica's common case: takes one step for each packet that was opened, and decides what becomes of its
// frame and what is sent: qw_serve and qw_act_on (dataplanes/xdp/bpf/plane.bpf.c, act.h).
module qw_decide
  import qw_pkg::*, qw_gate_pkg::*;
(
    input  logic                  clk,
    input  logic                  rst_i,
    // What the host does to a group: any operation but a packet's, one after the other. Its registers stay
    // as they are given until it is done. It gets the outcome, and the group's registers as they are then,
    // and carries out itself what that says; OFF is done when all that the group sends has left.
    input  logic                  order_valid_i,
    output logic                  order_ready_o,
    input  op_t                   order_op_i,
    input  logic [GROUP_BITS-1:0] order_group_i,
    input  header_t               order_header_i,
    input  logic [          63:0] order_number_i,
    input  registers_t            order_registers_i,
    output logic                  order_done_o,
    output outcome_t              order_outcome_o,
    output registers_t            order_made_o,
    input  logic                  fence_i,  // the fence has left
    // verilator lint_off UNUSEDSIGNAL
    input  place_t                place_i,
    // verilator lint_on UNUSEDSIGNAL
    // What was opened (qw_open).
    input  logic                  valid_i,
    output logic                  ready_o,
    input  verdict_t              verdict_i,
    // What becomes of it, in the same order.
    output logic                  decided_o,
    input  logic                  ready_i,
    output decision_t             decision_o,
    // Leader: entries to be sent again to a replica, or blind writes to be answered: from one index up to
    // another.
    output logic                  again_o,
    output again_t                again_range_o,
    output logic [GROUPS_MAX-1:0] off_o,  // these groups are off
    // A packet was not taken, for this reason (none: it came to the address of all, and must not); of those that
    // say something of a replica, which one.
    output logic                  refused_o,
    output logic [           7:0] reason_o,
    output logic                  behind_o,
    output logic [GROUP_BITS+2:0] behind_peer_o,
    // A packet moved a commit index; one answered a heartbeat, or may have: who
    // lacks entries answers with a question. Something is not decided yet.
    output logic                  commits_o,
    output logic                  hears_o,
    output logic                  busy_o
);
  localparam int WAITING_MAX = 8;

  // ---- Stage 0: a packet every second clock, if there is room for what becomes of it.
  logic just_went, steps;
  logic [3:0] waiting;  // decisions that are under way, those in the queue included
  // verilator lint_off UNUSEDSIGNAL
  verdict_t verdict1, verdict2, verdict3;
  // verilator lint_on UNUSEDSIGNAL
  logic valid1, valid2, valid3, steps1, steps2, steps3;
  logic orders1, orders2, orders3, under_way;
  logic [GROUP_BITS-1:0] group1, group2;
  always_comb begin
    // Only what turns a group off needs room: the others go though nothing is taken.
    order_ready_o = order_valid_i && !under_way && !just_went && (order_op_i != OP_OFF || waiting < 4'(WAITING_MAX));
    ready_o = valid_i && !order_ready_o && !just_went && waiting < 4'(WAITING_MAX);
    // To the address of all replicas goes only what a leader sends to all.
    steps = verdict_i.is_ours && verdict_i.reason == REASON_NONE &&
        !(verdict_i.found.to_group && verdict_i.header.kind != KIND_APPEND);
  end
  logic step_valid;
  outcome_t outcome2, outcome3;
  // verilator lint_off UNUSEDSIGNAL
  registers_t registers2, registers3;
  // verilator lint_on UNUSEDSIGNAL
  qw_step step (
      .clk,
      .rst_i,
      .valid_i(order_ready_o || ready_o && steps),
      .group_i(order_ready_o ? order_group_i : verdict_i.found.group),
      .op_i(order_ready_o ? order_op_i : OP_PACKET),
      .header_i(order_ready_o ? order_header_i : verdict_i.header),
      .number_i(order_number_i),
      .registers_i(order_registers_i),
      .valid_o(step_valid),
      .outcome_o(outcome2),
      .registers_o(registers2)
  );
  asking_t asking3;
  qw_gap gap (
      .clk,
      .rst_i,
      .valid_i(step_valid && (!orders2 || order_op_i == OP_ENGAGE)),
      .engages_i(orders2),
      .last_i(registers2.last_index),
      .group_i(group2),
      .kind_i(verdict2.header.kind),
      .index_i(verdict2.header.index),
      .outcome_i(outcome2),
      .asking_o(asking3)
  );
  always_ff @(posedge clk) begin
    just_went <= (ready_o || order_ready_o) && !rst_i;
    orders1 <= order_ready_o && !rst_i;
    orders2 <= orders1 && !rst_i;
    orders3 <= orders2 && !rst_i;
    group1 <= order_ready_o ? order_group_i : verdict_i.found.group;
    group2 <= group1;
    // The operation stands there until it is done.
    if (order_ready_o) under_way <= 1'b1;
    if (order_done_o) under_way <= 1'b0;
    order_done_o <= !rst_i && (order_op_i == OP_OFF ? fence_i : orders2);
    if (orders2) begin
      order_outcome_o <= outcome2;
      order_made_o <= registers2;
    end
    if (rst_i) under_way <= 1'b0;
    valid1 <= ready_o && !rst_i;
    verdict1 <= verdict_i;
    steps1 <= steps;
    valid2 <= valid1 && !rst_i;
    verdict2 <= verdict1;
    steps2 <= steps1;
    valid3 <= valid2 && !rst_i;
    verdict3 <= verdict2;
    steps3 <= steps2;
    outcome3 <= outcome2;
    registers3 <= registers2;
  end

  // ---- Stage 3: what becomes of it.
  decision_t decision3;
  // verilator lint_off UNUSEDSIGNAL
  header_t in3;
  // verilator lint_on UNUSEDSIGNAL
  logic is_softwares, for_host, leads;
  logic [REPLICAS_MAX-1:0] all, mine, the_leader;
  endpoint_t group_address;
  logic is_forward, brings_client;
  logic [15:0] command_bytes;
  // verilator lint_off UNUSEDSIGNAL
  logic [63:0] checksum_in_memory, bytes_in_memory;
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    in3 = verdict3.header;
    leads = registers3.role == ROLE_LEADER;
    is_forward = in3.kind == KIND_FORWARD;
    brings_client = is_forward || in3.kind == KIND_REQUEST;
    command_bytes = is_forward ? in3.payload_bytes - 16'(ORIGIN_BYTES) : in3.payload_bytes;
    for (int slot = 0; slot < REPLICAS_MAX; slot++) begin
      all[slot] = 8'(slot) < registers3.replicas;
      mine[slot] = 8'(slot) == registers3.me;
      the_leader[slot] = 8'(slot) == registers3.leader;
    end
    // RFC 1112, section 6.4
    group_address.address = {IPV4_MAPPED, place_i.multicast};
    group_address.port = place_i.at[verdict3.found.group].port;
    group_address.mac = {24'h01005e, 1'b0, place_i.multicast[22:0]};
    is_softwares = (outcome3.actions & ACTION_TO_SOFTWARE) != 0;
    for_host = in3.kind == KIND_REQUEST &&
        (outcome3.reason == REASON_OFF || outcome3.reason == REASON_MALFORMED) ||
        is_forward && outcome3.reason == REASON_OFF;

    decision3 = '0;
    decision3.has_frame = !orders3;
    decision3.lower = verdict3.found.lower;
    decision3.bytes = verdict3.found.udp_bytes - 16'(UDP_BYTES);
    decision3.sending.group = verdict3.found.group;
    decision3.sending.header = outcome3.header;
    decision3.index = outcome3.index;
    decision3.client_in_payload = is_forward;
    checksum_in_memory = in_memory({32'd0, in3.payload_crc32c});
    bytes_in_memory = in_memory({48'd0, command_bytes});
    decision3.slot.index = in_memory(outcome3.index);
    decision3.slot.previous_term =
        in_memory(in3.kind == KIND_APPEND ? in3.previous_term : outcome3.header.previous_term);
    decision3.slot.session = in_memory(in3.session);
    decision3.slot.sequence_ = in_memory(in3.sequence_);
    decision3.slot.payload_crc32c = checksum_in_memory[63:32];
    decision3.slot.payload_bytes = bytes_in_memory[63:48];
    decision3.slot.flags = in3.flags & FLAGS_OF_ENTRIES;
    decision3.slot.requester[0] = brings_client;
    if (in3.kind == KIND_REQUEST) begin
      decision3.slot.client = verdict3.found.sender;
      decision3.slot.answered_here[0] = (in3.flags & FLAG_BLIND) != 0;
    end
    if (orders3) begin
      decision3.sends = 1'b1;
      decision3.sending.is_fence = 1'b1;
      decision3.sending.group = order_group_i;
    end else if (!verdict3.is_ours) decision3.passes = 1'b1;
    else if (steps3 && is_softwares) decision3.passes = for_host;
    else if (steps3) begin
      decision3.stores = (outcome3.actions & ACTION_STORE) != 0;
      if (is_forward) decision3.moved = MOVED_WITHOUT_ORIGIN;
      if ((outcome3.actions & ACTION_FANOUT) != 0 && registers3.replicas > 8'd1) begin
        decision3.sends = 1'b1;
        decision3.with_payload = 1'b1;
        if (place_i.multicast != 0 && registers3.replicas > 8'd2) decision3.sending.to = group_address;
        else decision3.sending.peers = all & ~mine;
      end else if (asking3 == ASKING_MORE) begin
        decision3.sends = 1'b1;
        decision3.sending.peers = the_leader;
        decision3.sending.header = say(registers3, KIND_RETRANSMIT, outcome3.index + 1'b1, registers3.round);
      end else if (asking3 == ASKING_NOT) decision3.sends = 1'b0;
      else if ((outcome3.actions & ACTION_REPLY) != 0) begin
        decision3.sends = 1'b1;
        decision3.sending.peers = the_leader;
      end else if ((outcome3.actions & ACTION_FORWARD) != 0) begin
        decision3.sends = 1'b1;
        decision3.with_payload = 1'b1;
        decision3.moved = MOVED_WITH_ORIGIN;
        decision3.sending.peers = the_leader;
        decision3.sending.to = verdict3.found.sender;  // who asked
      end
    end
  end

  logic fans_out, resends, answers;
  always_comb begin
    fans_out = (outcome3.actions & ACTION_FANOUT) != 0 && registers3.replicas > 8'd1;
    resends = (outcome3.actions & ACTION_RESEND) != 0;
    answers = leads && (outcome3.actions & ACTION_COMMIT) != 0 && !fans_out;
  end
  always_ff @(posedge clk) begin
    again_o <= valid3 && steps3 && !is_softwares && (resends || answers) && !rst_i;
    again_range_o.answers <= !resends;
    again_range_o.group <= verdict3.found.group;
    again_range_o.from <= resends ? outcome3.index :
        (outcome3.commit_from > registers3.start_index ? outcome3.commit_from : registers3.start_index) + 1'b1;
    again_range_o.upto <= resends ? registers3.last_index : registers3.commit_index;
    again_range_o.peer <= in3.sender;
    again_range_o.me <= registers3.me;
    again_range_o.number <= registers3.group;
    again_range_o.term <= registers3.term;
    again_range_o.commit_index <= registers3.commit_index;
    if (orders2 && order_op_i == OP_OFF) off_o[group2] <= 1'b1;
    if (orders2 && order_op_i == OP_ENGAGE) off_o[group2] <= 1'b0;
    if (rst_i) off_o <= '1;
    refused_o <= valid3 && verdict3.is_ours && !rst_i &&
        (!steps3 || outcome3.reason != REASON_NONE);
    reason_o <= steps3 ? outcome3.reason : verdict3.reason;
    behind_o <= valid3 && steps3 && is_softwares && outcome3.reason == REASON_BEHIND_RING && !rst_i;
    behind_peer_o <= {verdict3.found.group, in3.sender[2:0]};
    commits_o <= valid3 && steps3 && !is_softwares && (outcome3.actions & ACTION_COMMIT) != 0 && !rst_i;
    hears_o <= valid3 && steps3 && !is_softwares && leads &&
        (in3.kind == KIND_HEARTBEAT_OK || in3.kind == KIND_RETRANSMIT) && !rst_i;
    busy_o <= waiting != 0 || valid1 || valid2 || valid3 || under_way;
    waiting <= waiting + 4'(ready_o || order_ready_o && order_op_i == OP_OFF) - 4'(decided_o && ready_i);
    if (rst_i) waiting <= '0;
  end
  qw_fifo #(.WIDTH($bits(decision_t)), .DEPTH(WAITING_MAX)) decisions (
      .clk,
      .rst_i,
      .push_i(valid3 || orders3 && order_op_i == OP_OFF),
      .data_i(decision3),
      .valid_o(decided_o),
      .ready_i,
      .data_o(decision_o)
  );
endmodule

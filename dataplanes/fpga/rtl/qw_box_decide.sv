// The common case of Paxos roles, coordinators and acceptors: takes one step for each packet that was opened,
// and decides what becomes of its frame and what is sent (dataplanes/xdp/bpf/box.h). What is seldom, and what
// has to be durable before it is said, is the host's: it gets the frame, and takes the step by an order.
module qw_box_decide
  import qw_pkg::*, qw_gate_pkg::*, qw_host_pkg::INSTANCES_MAX;
#(
    parameter int INSTANCES = INSTANCES_MAX  // of each group; a power of two, and at least its window
) (
    input  logic                  clk,
    input  logic                  rst_i,
    // What the host does to a role: any operation but a packet's, one after the other. What it is about stays
    // until it is done, which is when all that was decided before it has left and is written.
    input  logic                  order_valid_i,
    output logic                  order_ready_o,
    input  paxos_op_t             order_op_i,
    input  logic [GROUP_BITS-1:0] order_group_i,
    input  header_t               order_header_i,
    input  logic [          63:0] order_number_i,  // the instance, or what TRIM and CONFIGURE are about
    input  paxos_registers_t      order_registers_i,
    input  paxos_slot_t           order_slot_i,
    output logic                  order_done_o,
    output outcome_t              order_outcome_o,
    output paxos_registers_t      order_made_o,
    output paxos_slot_t           order_slot_o,
    input  logic                  fence_i,  // the fence has left
    input  logic [GROUPS_MAX-1:0][7:0] destinations_i,
    // What was opened (qw_open).
    input  logic                  valid_i,
    output logic                  ready_o,
    input  verdict_t              verdict_i,
    // What becomes of it, in the same order.
    output logic                  decided_o,
    input  logic                  ready_i,
    output decision_t             decision_o,
    output logic [GROUPS_MAX-1:0] off_o,  // these groups are off
    // A packet was not taken, for this reason.
    output logic                  refused_o,
    output logic [           7:0] reason_o,
    output logic                  busy_o
);
  localparam int WAITING_MAX = 8;
  localparam int PLACE_BITS = GROUP_BITS + $clog2(INSTANCES);
  typedef logic [PLACE_BITS-1:0] place_of_t;

  // ---- Stage 0: a packet or an order every second clock, if there is room for what becomes of it.
  logic just_went, goes, steps, is_box_kind, dropped, under_way;
  logic [3:0] waiting;  // decisions that are under way, those in the queue included
  place_of_t place0;
  always_comb begin
    order_ready_o = order_valid_i && !under_way && !just_went && waiting < 4'(WAITING_MAX);
    ready_o = valid_i && !order_ready_o && !just_went && waiting < 4'(WAITING_MAX);
    goes = order_ready_o || ready_o;
    is_box_kind = verdict_i.header.kind == KIND_SUBMIT ||
        verdict_i.header.kind == KIND_P2A && (verdict_i.header.flags & FLAG_TELL) == 0;
    // To the address of all goes only a proposal.
    dropped = verdict_i.is_ours && verdict_i.reason == REASON_NONE && verdict_i.found.to_group &&
        verdict_i.header.kind != KIND_P2A;
    steps = verdict_i.is_ours && verdict_i.reason == REASON_NONE && !dropped && is_box_kind;
    place0 = order_ready_o ? {order_group_i, order_number_i[$clog2(INSTANCES)-1:0]} :
        {verdict_i.found.group, verdict_i.header.index[$clog2(INSTANCES)-1:0]};
  end

  // ---- Stage 1: what is known of the instance is there.
  typedef struct packed {
    logic valid, orders, steps, dropped;
    place_of_t place;
    verdict_t verdict;
  } stage_t;
  // verilator lint_off UNUSEDSIGNAL
  stage_t stage0, stage1, stage2, stage3;
  // verilator lint_on UNUSEDSIGNAL
  paxos_slot_t instances[1<<PLACE_BITS];
  paxos_slot_t read1, slot1, slot3, slot4;
  place_of_t place4;
  logic changed3, changed4, step_valid;
  outcome_t outcome3;
  paxos_registers_t registers3;
  always_comb begin
    stage0.valid = goes && !rst_i;
    stage0.orders = order_ready_o;
    stage0.steps = steps;
    stage0.dropped = dropped;
    stage0.place = place0;
    stage0.verdict = verdict_i;
    // What is being written just now, or was while this was read, is not in what was read.
    slot1 = changed3 && stage3.place == stage1.place ? slot3 :
        changed4 && place4 == stage1.place ? slot4 : read1;
    if (stage1.orders && order_op_i == PAXOS_OP_PUT_BACK) slot1 = order_slot_i;
  end
  // What a reset leaves in the memory is not read: a role is switched on before it steps, and its host puts back
  // what it knows of each instance, or that it knows nothing.
  always_ff @(posedge clk) begin
    read1 <= instances[place0];
    if (changed3) instances[stage3.place] <= slot3;
    changed4 <= changed3;
    place4 <= stage3.place;
    slot4 <= slot3;
    stage1 <= stage0;
    stage2 <= stage1;
    stage3 <= stage2;
    if (rst_i) {stage1.valid, stage2.valid, stage3.valid} <= '0;
    just_went <= goes && !rst_i;
  end
  qw_paxos_step step (
      .clk,
      .rst_i,
      .valid_i(stage1.valid && (stage1.orders || stage1.steps)),
      .group_i(stage1.place[PLACE_BITS-1-:GROUP_BITS]),
      .op_i(stage1.orders ? order_op_i : PAXOS_OP_PACKET),
      .header_i(stage1.orders ? order_header_i : stage1.verdict.header),
      .slot_i(slot1),
      .number_i(order_number_i),
      .registers_i(order_registers_i),
      .valid_o(step_valid),
      .outcome_o(outcome3),
      .registers_o(registers3),
      .slot_changed_o(changed3),
      .slot_o(slot3)
  );

  // ---- Stage 3: what becomes of it.
  decision_t decision3;
  logic orders3, is_softwares;
  logic [REPLICAS_MAX-1:0] all;
  always_comb begin
    orders3 = stage3.valid && stage3.orders;
    is_softwares = (outcome3.actions & ACTION_TO_SOFTWARE) != 0;
    for (int at = 0; at < REPLICAS_MAX; at++) all[at] = 8'(at) < destinations_i[stage3.verdict.found.group];

    decision3 = '0;
    decision3.has_frame = !orders3;
    decision3.lower = stage3.verdict.found.lower;
    decision3.bytes = stage3.verdict.found.udp_bytes - 16'(UDP_BYTES);
    decision3.index = outcome3.index;
    decision3.slot = {in_slot(slot3), 128'd0};
    decision3.sending.group = stage3.verdict.found.group;
    decision3.sending.header = outcome3.header;
    if (orders3) begin
      decision3.sends = 1'b1;
      decision3.sending.is_fence = 1'b1;
      decision3.sending.group = order_group_i;
    end else if (!stage3.verdict.is_ours) decision3.passes = 1'b1;
    else if (stage3.steps && !is_softwares) begin
      decision3.stores = (outcome3.actions & ACTION_STORE) != 0;
      if ((outcome3.actions & ACTION_FANOUT) != 0) begin
        decision3.sends = all != 0;
        decision3.with_payload = 1'b1;
        decision3.sending.peers = all;
      end else if ((outcome3.actions & ACTION_REPLY) != 0) begin
        decision3.sends = 1'b1;
        decision3.sending.to = stage3.verdict.found.sender;
      end
    end else decision3.passes = stage3.verdict.reason == REASON_NONE && !stage3.dropped;
  end
  // A slot as it is in the host's memory, its first byte highest.
  function automatic logic [PAXOS_SLOT_BITS-1:0] in_slot(input paxos_slot_t slot);
    automatic logic [PAXOS_SLOT_BITS/64-1:0][63:0] words = memory_of_paxos_slot(slot);
    for (int at = 0; at < PAXOS_SLOT_BITS / 64; at++)
      in_slot[PAXOS_SLOT_BITS-1-64*at-:64] = in_memory(words[at]);
  endfunction

  always_ff @(posedge clk) begin
    if (order_ready_o) under_way <= 1'b1;
    if (order_done_o) under_way <= 1'b0;
    order_done_o <= under_way && fence_i && !rst_i;
    if (orders3) begin
      order_outcome_o <= outcome3;
      order_made_o <= registers3;
      order_slot_o <= slot3;
      off_o[order_group_i] <= registers3.role == PAXOS_ROLE_OFF;
    end
    refused_o <= stage3.valid && !stage3.orders && stage3.verdict.is_ours && !rst_i &&
        (stage3.steps ? outcome3.reason != REASON_NONE : stage3.verdict.reason != REASON_NONE || stage3.dropped);
    reason_o <= stage3.steps ? outcome3.reason : stage3.verdict.reason;
    waiting <= waiting + 4'(goes) - 4'(decided_o && ready_i);
    busy_o <= waiting != 0 || under_way;
    if (rst_i) begin
      under_way <= 1'b0;
      off_o <= '1;
      waiting <= '0;
    end
  end
  // verilator lint_off UNUSEDSIGNAL
  logic unused;
  always_comb unused = step_valid;  // with stage3, if there was a step
  // verilator lint_on UNUSEDSIGNAL
  qw_fifo #(.WIDTH($bits(decision_t)), .DEPTH(WAITING_MAX)) decisions (
      .clk,
      .rst_i,
      .push_i(stage3.valid),
      .data_i(decision3),
      .valid_o(decided_o),
      .ready_i,
      .data_o(decision_o)
  );
endmodule

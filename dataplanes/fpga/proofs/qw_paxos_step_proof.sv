// What must hold of an acceptor, about any one instance and any one round. Its slot is kept here, as a memory beside
// the step would keep it: what the last outcome changed is there for the next operation.
module qw_paxos_step_proof
  import qw_pkg::*, qw_gate_pkg::*;
(
    input logic             clk,
    input logic             rst_i,
    input logic             valid_i,
    input logic [GROUP_BITS-1:0] group_i,
    input paxos_op_t        op_i,
    input header_t          header_i,
    input paxos_slot_t      slot_i,
    input logic      [63:0] number_i,
    input paxos_registers_t registers_i,
    input logic             valid_o,
    input outcome_t         outcome_o,
    input logic             slot_changed_o,
    input paxos_slot_t      slot_o,
    // Within: an operation is in its second clock; the registers as they are.
    input logic             under_way,
    input paxos_registers_t live
);
  localparam logic [63:0] INDEX_MAX = ~64'd1;

  // Whichever group, instance and round: they stay the same.
  logic [GROUP_BITS-1:0] group;
  logic [63:0] instance_number, round;
  always_ff @(posedge clk) begin
    group <= group;
    instance_number <= instance_number;
    round <= round;
  end

  logic begun = 1'b0;
  logic valid1, valid2, is_place, is_place1, is_place2;
  paxos_op_t op1, op2;
  header_t in1, in2;
  // The slot of the instance's place.
  paxos_slot_t slot, slot_kept, slot1;
  // A role gets its registers, and with them what its host has put back.
  logic load;
  always_comb begin
    load = valid1 && op1 == PAXOS_OP_SWITCH_ON;
    is_place = ((header_i.index ^ instance_number) & 64'(live.window - 1)) == 0;
    slot = slot_changed_o && valid2 && is_place2 ? slot_o : slot_kept;
  end
  always_ff @(posedge clk) begin
    begun  <= 1'b1;
    valid1 <= valid_i && !rst_i;
    valid2 <= valid1 && !rst_i;
    op1    <= op_i;
    op2    <= op1;
    in1    <= header_i;
    in2    <= in1;
    is_place1 <= is_place;
    is_place2 <= is_place1;
    slot1 <= slot_i;
    slot_kept <= load ? slot1 : slot;
  end

  // ---- What is assumed.
  function automatic logic is_off(input paxos_registers_t of);
    return of.role != PAXOS_ROLE_COORDINATOR && of.role != PAXOS_ROLE_ACCEPTOR;
  endfunction
  // qw_paxos_sound of qw_paxos.h.
  function automatic logic is_sound(input paxos_registers_t of);
    automatic logic coordinates = of.role == PAXOS_ROLE_COORDINATOR;
    return !is_off(of) && of.configuration != 0 && of.window != 0 && (of.window & (of.window - 1)) == 0 &&
        of.held <= 1 && of.trimmed <= INDEX_MAX && !(coordinates && of.round < 64'(ROUND_OWNERS)) &&
        !(coordinates && of.round[7:0] != of.me) && !(coordinates && of.next_instance <= of.trimmed);
  endfunction
  // Whether an instance can have a slot: it is not beyond the window.
  function automatic logic may_have_slot(input paxos_registers_t of, input logic [63:0] number);
    return number <= of.trimmed || number - of.trimmed - 1 < 64'(of.window);
  endfunction
  // A slot says what was voted in a round that was promised, or voted in, of an instance that may have one.
  function automatic logic is_slot_sound(input paxos_registers_t of, input paxos_slot_t its);
    return its.vote_round <= its.round && (its.flags & ~FLAG_FRAGMENT) == 0 && may_have_slot(of, its.instance_);
  endfunction
  always_comb begin
    assume (instance_number != 0 && instance_number <= INDEX_MAX);
    if (!begun) assume (rst_i);
    if (begun) UnderWay_A: assert (under_way == valid1 && valid_o == valid2);
    if (valid1) assume (!valid_i);
    assume (group_i == group);
    if (load) assume (is_off(live) &&
        (is_off(registers_i) || is_sound(registers_i) && is_slot_sound(registers_i, slot1)));
    if (valid_i && op_i == PAXOS_OP_PUT_BACK) assume (is_off(live));
    if (valid_i && op_i == PAXOS_OP_CONFIGURE) assume (number_i != 0);
    if (valid_i && (op_i == PAXOS_OP_PACKET || op_i == PAXOS_OP_STEP) && is_place) assume (slot_i == slot);
  end

  // ---- What was said since the registers were loaded.
  logic is_packet, accepts, promises, promises_all, votes, is_round;
  logic is_voted, is_voted_kept, is_promised, is_promised_kept;
  logic [63:0] promised_all, promised_all_kept;  // highest
  logic [63:0] promised, promised_kept;          // for the instance alone, or voted in
  logic [63:0] holder, holder_kept;              // whom the round was promised to, for all
  header_t said, said_kept;                      // the value voted for in the round
  logic is_same;
  function automatic logic same_value(input header_t one, input header_t other);
    return one.session == other.session && one.sequence_ == other.sequence_ &&
        one.payload_crc32c == other.payload_crc32c && one.payload_bytes == other.payload_bytes &&
        (one.flags & FLAG_FRAGMENT) == (other.flags & FLAG_FRAGMENT);
  endfunction
  always_comb begin
    is_packet = begun && valid_o && valid2 && (op2 == PAXOS_OP_PACKET || op2 == PAXOS_OP_STEP);
    accepts = is_packet && (outcome_o.header.flags & FLAG_REFUSED) == 0 &&
        (outcome_o.actions & (ACTION_REPLY | ACTION_FANOUT)) != 0;
    promises_all = accepts && outcome_o.header.kind == KIND_P1B && outcome_o.header.index == 0;
    promises = accepts && outcome_o.header.kind == KIND_P1B && outcome_o.header.index == instance_number;
    votes = accepts && outcome_o.header.kind == KIND_P2B && outcome_o.header.index == instance_number;
    is_round = outcome_o.header.term == round;
    promised_all = promises_all && outcome_o.header.term > promised_all_kept ? outcome_o.header.term : promised_all_kept;
    promised = (promises || votes) && outcome_o.header.term > promised_kept ? outcome_o.header.term : promised_kept;
    is_voted = is_voted_kept || votes && is_round;
    said = votes && is_round ? outcome_o.header : said_kept;
    is_promised = is_promised_kept || promises_all && is_round;
    holder = promises_all && is_round ? in2.session : holder_kept;
  end
  always_ff @(posedge clk) begin
    promised_all_kept <= promised_all;
    promised_kept <= promised;
    is_voted_kept <= is_voted;
    said_kept <= said;
    is_promised_kept <= is_promised;
    holder_kept <= holder;
    if (load) begin
      // What was said before is what is loaded.
      promised_all_kept <= registers_i.round;
      promised_kept <= slot1.instance_ == instance_number ? slot1.round : '0;
      is_voted_kept <= slot1.instance_ == instance_number && slot1.vote_round == round && round != 0;
      said_kept <= '0;
      said_kept.session <= slot1.session;
      said_kept.sequence_ <= slot1.sequence_;
      said_kept.payload_crc32c <= slot1.payload_crc32c;
      said_kept.payload_bytes <= slot1.payload_bytes;
      said_kept.flags <= slot1.flags;
      is_promised_kept <= 1'b0;
    end
    if (rst_i) {promised_all_kept, promised_kept, is_voted_kept, is_promised_kept} <= '0;
  end

  // ---- What the registers and the slot keep of it.
  logic is_of, is_trimmed, is_on;
  paxos_registers_t state;
  always_comb begin
    state = live;
    is_on = begun && !is_off(state);
    is_of = slot.instance_ == instance_number;
    is_trimmed = instance_number <= state.trimmed;
    if (is_on) SlotSound_A: assert (!is_of || slot.vote_round <= slot.round && may_have_slot(state, instance_number));
    if (is_on) PowerOfTwo_A: assert (state.window != 0 && (state.window & (state.window - 1)) == 0);
    if (is_on) PromiseKept_A: assert (promised_all <= state.round &&
        (is_trimmed || promised <= state.round || is_of && promised <= slot.round));
    if (is_on) HolderKept_A: assert (!is_promised || state.round > round ||
        state.round == round && state.promised_to == holder);
    if (is_on) VoteKept_A: assert (!is_voted || is_trimmed || is_of && (slot.vote_round > round ||
        slot.vote_round == round && slot.session == said.session && slot.sequence_ == said.sequence_ &&
        slot.payload_crc32c == said.payload_crc32c && slot.payload_bytes == said.payload_bytes &&
        slot.flags == (said.flags & FLAG_FRAGMENT)));
  end

  // ---- What is promised of it.
  always_comb begin
    // A vote is not below what was promised, or voted in, before.
    if (votes) AbovePromise_A: assert (outcome_o.header.term >= promised_all_kept && outcome_o.header.term >= promised_kept);
    // A round has one value.
    if (votes && is_round && is_voted_kept) OneValue_A: assert (same_value(outcome_o.header, said_kept));
    // And it is the one asked for, of this configuration.
    if (votes) AsAsked_A: assert (in2.kind == KIND_P2A && in2.term == outcome_o.header.term &&
        in2.index == instance_number && same_value(in2, outcome_o.header) && in2.group == state.group &&
        in2.commit_index == state.configuration);
    // What is said of a vote is in the slot.
    if (votes) Stored_A: assert (is_of && slot.vote_round == outcome_o.header.term);
    // A round is promised to one coordinator, for all instances.
    if (promises_all && is_round && is_promised_kept) OneHolder_A: assert (in2.session == holder_kept);
  end
endmodule
bind qw_paxos_step qw_paxos_step_proof proof (.*, .under_way(valid2), .live(state1));

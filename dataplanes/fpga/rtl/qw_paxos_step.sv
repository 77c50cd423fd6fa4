// The common case of the Paxos roles (fastpath/include/qw_paxos.h), in two clocks: the first compares,
// the second decides. So it takes one operation every second clock, and the next one sees what it did.
// The slot of an operation's instance comes with it and goes back with the outcome. Names and order of the
// checks are those of the C; each stands where the C has it.
module qw_paxos_step
  import qw_pkg::*, qw_gate_pkg::*;
(
    input  logic             clk,
    input  logic             rst_i,
    // An operation; in the clock behind it there is none.
    input  logic             valid_i,
    input  logic [GROUP_BITS-1:0] group_i,
    input  paxos_op_t        op_i,
    input  header_t          header_i,     // PACKET, STEP
    input  paxos_slot_t      slot_i,       // PUT_BACK: the new one; else of the instance, whatever it holds
    input  logic      [63:0] number_i,     // CONFIGURE, TRIM
    input  paxos_registers_t registers_i,  // SWITCH_ON, in the clock behind as well
    // Two clocks later what is to be done, and the registers and the slot as they are then. TRIM: no action,
    // a reason if there is no such instance.
    output logic             valid_o,
    output outcome_t         outcome_o,
    output paxos_registers_t registers_o,
    output logic             slot_changed_o,
    output paxos_slot_t      slot_o
);
  localparam logic [7:0] FLAGS_OF_VALUES = FLAG_FRAGMENT;
  localparam logic [63:0] INDEX_MAX = ~64'd1;

  // Of all groups; of the one that has its turn, as the first clock reads it and the second keeps it.
  paxos_registers_t states[1<<GROUP_BITS];
  paxos_registers_t state1, state;
  logic [GROUP_BITS-1:0] group2;
  // Since the reset. The registers of others are zero.
  logic [(1<<GROUP_BITS)-1:0] has_stepped;
  always_comb state1 = has_stepped[group_i] ? states[group_i] : '0;

  // ---- First clock: comparisons.
  logic asks;
  logic [63:0] behind_trimmed, behind_next;
  always_comb begin
    asks = header_i.kind == KIND_P1A;
    behind_trimmed = header_i.index - state1.trimmed - 1;
    behind_next = state1.next_instance - state1.trimmed - 1;
  end

  typedef struct packed {
    logic version_fits, group_fits, too_long;
    logic submit_flags_fit, p2a_flags_fit;
    logic last_instance, next_outside;
    logic configuration_fits, round_below_owners, owner_fits;
    logic for_all, index_fits, is_trimmed, is_outside;
    logic below_all, in_single, equals_all, drawn_all;
    logic is_of, below_slot, equals_slot, drawn_slot, slot_above_all;
    logic in_bound, has_vote, is_vote_round, is_value;
    logic above_single, above_highest;
    logic trim_fits, trim_above, next_in_trim, next_in_trimmed;
  } compared_t;

  logic        valid2;
  paxos_op_t   op2;
  header_t     in2;
  paxos_slot_t slot2;
  logic [63:0] number2;
  compared_t   c2;

  always_ff @(posedge clk) begin
    valid2  <= valid_i && !rst_i;
    group2  <= group_i;
    state   <= state1;
    op2     <= op_i;
    in2     <= header_i;
    slot2   <= slot_i;
    number2 <= number_i;
    c2.version_fits       <= header_i.version == VERSION;
    c2.group_fits         <= header_i.group == state1.group;
    c2.too_long           <= header_i.payload_bytes > 16'(PAYLOAD_BYTES_MAX);
    c2.submit_flags_fit   <= (header_i.flags & ~(FLAGS_OF_VALUES | FLAG_EPOCH)) == 0;
    c2.p2a_flags_fit      <= (header_i.flags & ~(FLAGS_OF_VALUES | FLAG_EPOCH | FLAG_TELL)) == 0;
    c2.last_instance      <= state1.next_instance > INDEX_MAX;
    c2.next_outside       <= behind_next >= 64'(state1.window);
    c2.configuration_fits <= header_i.commit_index == state1.configuration;
    c2.round_below_owners <= header_i.term < 64'(ROUND_OWNERS);
    c2.owner_fits         <= header_i.term[7:0] == header_i.sender;
    c2.for_all            <= asks && header_i.index == 0;
    c2.index_fits         <= header_i.index - 1 < INDEX_MAX;
    c2.is_trimmed         <= header_i.index <= state1.trimmed;
    c2.is_outside         <= behind_trimmed >= 64'(state1.window);
    c2.below_all          <= header_i.term < state1.round;
    c2.equals_all         <= header_i.term == state1.round;
    c2.in_single          <= header_i.term <= state1.single_round;
    c2.drawn_all          <= header_i.session == state1.promised_to;
    c2.is_of              <= slot_i.instance_ == header_i.index;
    c2.below_slot         <= header_i.term < slot_i.round;
    c2.equals_slot        <= header_i.term == slot_i.round;
    c2.drawn_slot         <= header_i.session == slot_i.promised_to;
    c2.slot_above_all     <= slot_i.round > state1.round;
    c2.in_bound           <= header_i.index <= state1.bound;
    c2.has_vote           <= slot_i.instance_ == header_i.index && slot_i.vote_round != 0;
    c2.is_vote_round      <= slot_i.instance_ == header_i.index && slot_i.vote_round == header_i.term;
    c2.is_value           <= slot_i.session == header_i.session &&
        slot_i.sequence_ == header_i.sequence_ &&
        slot_i.payload_crc32c == header_i.payload_crc32c &&
        slot_i.payload_bytes == header_i.payload_bytes &&
        slot_i.flags == (header_i.flags & FLAGS_OF_VALUES);
    c2.above_single       <= header_i.term > state1.single_round;
    c2.above_highest      <= header_i.index > state1.highest;
    c2.trim_fits          <= number_i <= INDEX_MAX;
    c2.trim_above         <= number_i >= state1.trimmed;
    c2.next_in_trim       <= state1.next_instance <= number_i;
    c2.next_in_trimmed    <= state1.next_instance <= state1.trimmed;
  end

  // ---- Second clock: decisions.
  paxos_registers_t next;
  paxos_slot_t      kept;
  logic             keeps;
  outcome_t         out;

  // verilator lint_off UNUSEDSIGNAL
  // What every packet of a role begins with.
  function automatic header_t say(input paxos_registers_t of, input logic [7:0] kind,
                                  input logic [63:0] instance_number, input logic [63:0] round);
    say = '0;
    say.magic = MAGIC;
    say.version = VERSION;
    say.kind = kind;
    say.sender = of.me;
    say.group = of.group;
    say.term = round;
    say.index = instance_number;
    say.commit_index = of.configuration;
  endfunction
  // Acceptor: neither promised nor voted.
  function automatic outcome_t refuse(input paxos_registers_t of, input header_t in,
                                      input logic [63:0] promised, input logic [7:0] reason);
    refuse = '0;
    refuse.header = say(of, in.kind == KIND_P1A ? KIND_P1B : KIND_P2B, in.index, promised);
    refuse.header.flags = FLAG_REFUSED;
    refuse.header.previous_term = in.term;
    refuse.header.sequence_ = of.trimmed;
    refuse.reason = reason;
    refuse.actions = ACTION_REPLY;
  endfunction
  // The same with the value of another header.
  function automatic header_t with_value(input header_t of, input header_t value);
    with_value = of;
    with_value.flags = value.flags & FLAGS_OF_VALUES;
    with_value.payload_bytes = value.payload_bytes;
    with_value.payload_crc32c = value.payload_crc32c;
    with_value.session = value.session;
    with_value.sequence_ = value.sequence_;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  logic [63:0] promised;
  logic        below_promised, is_promised, holder_fits;
  logic [31:0] held;
  always_comb begin
    // What was promised for the instance: for all of them, or for it alone.
    promised       = c2.is_of && c2.slot_above_all ? slot2.round : state.round;
    below_promised = c2.below_all || c2.is_of && c2.below_slot;
    is_promised    = c2.is_of && c2.slot_above_all ? c2.equals_slot : c2.equals_all;
    holder_fits    = c2.is_of && c2.slot_above_all ? c2.drawn_slot : c2.drawn_all;
    held           = state.held != 0 ? ACTION_HOLD : '0;
  end

  always_comb begin
    next  = state;
    kept  = slot2;
    keeps = 1'b0;
    out   = '0;
    if (op2 == PAXOS_OP_SWITCH_ON) next = registers_i;
    else if (op2 == PAXOS_OP_OFF) next.role = PAXOS_ROLE_OFF;
    else if (op2 == PAXOS_OP_CONFIGURE) next.configuration = number2;
    else if (op2 == PAXOS_OP_PUT_BACK) keeps = 1'b1;
    else if (op2 == PAXOS_OP_LOOK) keeps = 1'b0;
    else if (op2 == PAXOS_OP_PACKET && state.held != 0) out = to_software(REASON_NONE);
    else if (op2 == PAXOS_OP_TRIM) begin
      if (!c2.trim_fits) out = drop(REASON_MALFORMED);
      else begin
        if (c2.trim_above) next.trimmed = number2;
        if (state.role == PAXOS_ROLE_COORDINATOR &&
            (c2.trim_above ? c2.next_in_trim : c2.next_in_trimmed))
          next.next_instance = next.trimmed + 1;
      end
    end
    else if (state.role != PAXOS_ROLE_COORDINATOR && state.role != PAXOS_ROLE_ACCEPTOR)
      out = to_software(REASON_OF_PAXOS_OFF);
    else if (!c2.version_fits) out = to_software(REASON_OF_PAXOS_VERSION);
    else if (!c2.group_fits) out = to_software(REASON_OF_PAXOS_GROUP);
    else if (c2.too_long) out = to_software(REASON_OF_PAXOS_BYTES);
    else if (state.role == PAXOS_ROLE_COORDINATOR && in2.kind == KIND_SUBMIT) begin
      if (in2.sender != 8'(SENDER_CLIENT)) out = to_software(REASON_OF_PAXOS_SUBMIT_SENDER);
      else if (in2.session == 0) out = to_software(REASON_OF_PAXOS_SUBMIT_SESSION);
      else if (!c2.submit_flags_fit) out = to_software(REASON_OF_PAXOS_SUBMIT_FLAGS);
      else if (c2.last_instance) out = to_software(REASON_OF_PAXOS_LAST_INSTANCE);
      else if (c2.next_outside) out = drop(REASON_OF_PAXOS_SUBMIT_WINDOW);
      else begin
        out.header = with_value(say(state, KIND_P2A, state.next_instance, state.round), in2);
        out.index = state.next_instance;
        out.actions = ACTION_FANOUT;
        next.next_instance = state.next_instance + 1;
      end
    end
    else if (state.role == PAXOS_ROLE_COORDINATOR || in2.kind != KIND_P1A && in2.kind != KIND_P2A)
      out = to_software(REASON_UNEXPECTED);
    else if (!c2.configuration_fits) out = to_software(REASON_OF_PAXOS_CONFIGURATION);
    else if (c2.round_below_owners) out = to_software(REASON_OF_PAXOS_ROUND);
    else if (!c2.owner_fits) out = to_software(REASON_OF_PAXOS_ROUND_OWNER);
    else if (in2.kind == KIND_P1A && in2.session == 0) out = to_software(REASON_OF_PAXOS_DRAWN);
    else if (c2.for_all) begin
      if (c2.below_all) out = refuse(state, in2, state.round, REASON_OF_PAXOS_ALL_OLD);
      else if (c2.in_single) out = refuse(state, in2, state.single_round, REASON_OF_PAXOS_ALL_SINGLE);
      else if (c2.equals_all && !c2.drawn_all)
        out = refuse(state, in2, state.round, REASON_OF_PAXOS_ALL_TAKEN);
      else begin
        next.round = in2.term;
        next.promised_to = in2.session;
        out.header = say(state, KIND_P1B, '0, in2.term);
        out.header.commit_index ^= in2.session;
        out.header.previous_term = state.bound;
        out.header.session = state.trimmed;
        out.header.sequence_ = state.highest;
        out.actions = ACTION_REPLY | held;
      end
    end
    else if (!c2.index_fits) out = to_software(REASON_OF_PAXOS_INSTANCE);
    else if (c2.is_trimmed) out = refuse(state, in2, state.round, REASON_OF_PAXOS_TRIMMED);
    else if (c2.is_outside) out = drop(REASON_OF_PAXOS_WINDOW);
    else if (in2.kind == KIND_P1A) begin
      if (c2.in_bound && !c2.has_vote) out = drop(REASON_OF_PAXOS_BOUND);
      else if (below_promised) out = refuse(state, in2, promised, REASON_OF_PAXOS_P1A_OLD);
      else if (is_promised && !holder_fits)
        out = refuse(state, in2, promised, REASON_OF_PAXOS_P1A_TAKEN);
      else begin
        if (!is_promised) begin
          keeps = 1'b1;
          if (!c2.is_of) begin
            kept = '0;
            kept.instance_ = in2.index;
          end
          kept.round = in2.term;
          kept.promised_to = in2.session;
          if (c2.above_single) next.single_round = in2.term;
        end
        out.header = say(state, KIND_P1B, in2.index, in2.term);
        out.header.commit_index ^= in2.session;
        out.actions = ACTION_REPLY | held;
        if (c2.has_vote) begin
          out.header.previous_term = slot2.vote_round;
          out.header.flags = slot2.flags;
          out.header.payload_bytes = slot2.payload_bytes;
          out.header.payload_crc32c = slot2.payload_crc32c;
          out.header.session = slot2.session;
          out.header.sequence_ = slot2.sequence_;
          out.index = in2.index;
          out.actions |= ACTION_VOTE;
        end
      end
    end
    else if (!c2.p2a_flags_fit) out = to_software(REASON_OF_PAXOS_P2A_FLAGS);
    else if (below_promised) out = refuse(state, in2, promised, REASON_OF_PAXOS_P2A_OLD);
    else if (c2.is_vote_round && !c2.is_value) out = to_software(REASON_OF_PAXOS_TWO_VALUES);
    else begin
      if (c2.is_vote_round) out.reason = REASON_OF_PAXOS_REPEATED;
      else begin
        keeps = 1'b1;
        if (!c2.is_of) begin
          kept = '0;
          kept.instance_ = in2.index;
        end
        if (!c2.is_of || !c2.below_slot && !c2.equals_slot) begin
          kept.round = in2.term;
          kept.promised_to = '0;
        end
        kept.vote_round = in2.term;
        kept.session = in2.session;
        kept.sequence_ = in2.sequence_;
        kept.payload_crc32c = in2.payload_crc32c;
        kept.payload_bytes = in2.payload_bytes;
        kept.flags = in2.flags & FLAGS_OF_VALUES;
        if (c2.above_highest) next.highest = in2.index;
        out.index = in2.index;
        out.actions = ACTION_STORE;
      end
      out.header = with_value(say(state, KIND_P2B, in2.index, in2.term), in2);
      out.header.previous_term = in2.term;
      out.actions |= ACTION_FANOUT | held;
      if ((in2.flags & FLAG_TELL) != 0) out.actions |= ACTION_REPLY;
    end
  end

  always_ff @(posedge clk) begin
    valid_o        <= valid2 && !rst_i;
    outcome_o      <= out;
    registers_o    <= next;
    slot_o         <= kept;
    slot_changed_o <= keeps && valid2 && !rst_i;
    if (valid2) states[group2] <= next;
    if (rst_i) has_stepped <= '0;
    else if (valid2) has_stepped[group2] <= 1'b1;
  end
endmodule

// The common case of a replica (fastpath/include/qw_step.h), in two clocks: the first compares, the
// second decides. So it takes one operation every second clock, and the next one sees what it did.
// Names and order of the checks are those of the C; each stands where the C has it.
module qw_step
  import qw_pkg::*, qw_gate_pkg::*;
(
    input  logic       clk,
    input  logic       rst_i,
    // An operation; in the clock behind it there is none.
    input  logic       valid_i,
    input  logic [GROUP_BITS-1:0] group_i,
    input  op_t        op_i,
    input  header_t    header_i,
    input  logic [63:0] number_i,  // PERSISTED, HEARTBEAT, RELEASE
    input  registers_t registers_i,  // ENGAGE, in the clock behind as well
    // Two clocks later what is to be done, and the registers as they are then. RELEASE: no action, a reason
    // if there is no such index.
    output logic       valid_o,
    output outcome_t   outcome_o,
    output registers_t registers_o
);
  localparam logic [7:0] FLAGS_OF_HOSTS = FLAG_TICK | FLAG_REFUSED | FLAG_BUNDLE;
  localparam int SLOTS = REPLICAS_MAX;

  // at_least[k][j]: what replica k has acknowledged is at least what j has.
  typedef logic [SLOTS-1:0][SLOTS-1:0] order_t;
  // Of all groups; of the one that has its turn, as the first clock reads it and the second keeps it.
  registers_t states[1<<GROUP_BITS];
  order_t     orders[1<<GROUP_BITS];
  registers_t state1, state;
  order_t     at_least;
  logic [GROUP_BITS-1:0] group2;
  // Since the reset. Others are off.
  logic [(1<<GROUP_BITS)-1:0] has_engaged;
  always_comb state1 = has_engaged[group_i] ? states[group_i] : '0;

  // ---- First clock: comparisons.
  // The index that a replica's register may go to: what a member says, what its host says, or the next.
  logic [63:0] candidate;
  logic        is_leader, is_follower;
  always_comb begin
    is_leader   = state1.role == ROLE_LEADER;
    is_follower = state1.role == ROLE_FOLLOWER;
    unique case (op_i)
      OP_PERSISTED: candidate = number_i;
      OP_PACKET:
      candidate = header_i.kind == KIND_REQUEST || header_i.kind == KIND_FORWARD ?
          state1.last_index + 1 : header_i.index;
      default: candidate = state1.last_index + 1;
    endcase
  end

  typedef struct packed {
    logic leads, follows, group_fits, version_fits, too_long;
    logic term_old, term_new, no_member, no_register, is_me, is_leaders;
    logic me_fits;
    logic index_after_start, index_in_last, index_is_next, index_ever;
    logic history_fits, last_ever;
    logic committed_in_last, committed_in_next, committed_is_news, last_is_news;
    logic sequence_in_heard, sequence_in_round;
    logic candidate_in_commit, number_in_last, number_in_persisted, number_in_round, number_in_released;
    logic candidate_after_start;
  } compared_t;

  op_t        op2;
  // verilator lint_off UNUSEDSIGNAL
  header_t    in2;  // not all fields decide something
  // verilator lint_on UNUSEDSIGNAL
  logic [63:0] number2, candidate2;
  compared_t  c2;
  logic [SLOTS-1:0] candidate_at_least2, at_least_candidate2;
  logic [SLOTS-1:0] after_start2, after_commit2, members2;
  logic [63:0] used2, open2, missing2;
  logic       valid2;

  logic [63:0] heard_by_sender;
  always_comb begin
    heard_by_sender = '0;
    for (int slot = 0; slot < SLOTS; slot++)
      if (header_i.sender == 8'(slot)) heard_by_sender |= state1.heard_round[slot];
  end

  always_ff @(posedge clk) begin
    valid2     <= valid_i && !rst_i;
    group2     <= group_i;
    state      <= state1;
    at_least   <= orders[group_i];
    op2        <= op_i;
    in2        <= header_i;
    number2    <= number_i;
    candidate2 <= candidate;
    c2.leads               <= is_leader;
    c2.follows             <= is_follower;
    c2.group_fits          <= header_i.group == state1.group;
    c2.version_fits        <= header_i.version == VERSION;
    c2.too_long            <= header_i.payload_bytes > 16'(PAYLOAD_BYTES_MAX);
    c2.term_old            <= header_i.term < state1.term;
    c2.term_new            <= header_i.term > state1.term;
    c2.no_member           <= header_i.sender >= state1.replicas;
    c2.no_register         <= header_i.sender >= 8'(SLOTS);
    c2.is_me               <= header_i.sender == state1.me;
    c2.is_leaders          <= header_i.sender == state1.leader;
    c2.me_fits             <= state1.me < state1.replicas && state1.me < 8'(SLOTS);
    c2.index_after_start   <= header_i.index > state1.start_index;
    c2.index_in_last       <= header_i.index <= state1.last_index;
    c2.index_is_next       <= header_i.index == state1.last_index + 1;
    c2.index_ever          <= header_i.index != '1;
    c2.history_fits        <= header_i.previous_term == state1.last_term;
    c2.last_ever           <= state1.last_index >= ~64'd1;
    c2.committed_in_last   <= header_i.commit_index < state1.last_index;
    c2.committed_in_next   <= header_i.commit_index < header_i.index;
    c2.committed_is_news   <= header_i.commit_index > state1.commit_index;
    c2.last_is_news        <= state1.last_index > state1.commit_index;
    c2.sequence_in_round   <= header_i.sequence_ <= state1.round;
    c2.sequence_in_heard   <= header_i.sequence_ <= heard_by_sender;
    c2.candidate_in_commit <= candidate <= state1.commit_index;
    c2.candidate_after_start <= candidate > state1.start_index;
    c2.number_in_last      <= number_i <= state1.last_index;
    c2.number_in_persisted <= number_i <= state1.persisted_index;
    c2.number_in_round     <= number_i <= state1.round;
    c2.number_in_released  <= number_i <= state1.released_index;
    used2                  <= state1.last_index - state1.released_index;
    open2                  <= state1.last_index - state1.commit_index;
    missing2               <= state1.last_index - header_i.index;
    for (int slot = 0; slot < SLOTS; slot++) begin
      candidate_at_least2[slot] <= candidate >= state1.match_index[slot];
      at_least_candidate2[slot] <= state1.match_index[slot] >= candidate;
      after_start2[slot]        <= state1.match_index[slot] > state1.start_index;
      after_commit2[slot]       <= state1.match_index[slot] > state1.commit_index;
      // The C shifts by the lowest four bits.
      members2[slot]            <= state1.replicas[3:0] > 4'(slot);
    end
  end

  // ---- Second clock: decisions.
  // Counting. `counted` is the slot whose register goes to the candidate.
  logic [SLOTS-1:0] counted, holds_candidate, is_best;
  logic [2:0]       holders_of_candidate;
  order_t           ge;  // at_least, as it is then
  logic [SLOTS-1:0] can_commit;
  logic             candidate_held;
  logic [63:0]      best;
  logic             any_best;
  logic [7:0]       counted_slot;
  always_comb begin
    counted_slot = op2 == OP_PACKET && in2.kind != KIND_REQUEST && in2.kind != KIND_FORWARD ?
        in2.sender : state.me;
    for (int slot = 0; slot < SLOTS; slot++) counted[slot] = counted_slot == 8'(slot);
    for (int k = 0; k < SLOTS; k++)
      for (int j = 0; j < SLOTS; j++)
        ge[k][j] = counted[k] && counted[j] ? 1'b1 :
            counted[k] ? candidate_at_least2[j] :
            counted[j] ? at_least_candidate2[k] : at_least[k][j];
    holds_candidate = (at_least_candidate2 | counted) & members2;
    holders_of_candidate = '0;
    for (int k = 0; k < SLOTS; k++) holders_of_candidate += 3'(holds_candidate[k]);
    candidate_held = {5'd0, holders_of_candidate} >= state.quorum && c2.candidate_after_start;
    for (int j = 0; j < SLOTS; j++) begin
      automatic logic [2:0] holders = '0;
      for (int k = 0; k < SLOTS; k++) holders += 3'(ge[k][j] & members2[k]);
      can_commit[j] = members2[j] && {5'd0, holders} >= state.quorum &&
          (counted[j] ? c2.candidate_after_start && !c2.candidate_in_commit :
              after_start2[j] && after_commit2[j]);
    end
    best = '0;
    for (int j = 0; j < SLOTS; j++) begin
      is_best[j] = can_commit[j];
      for (int k = 0; k < SLOTS; k++) if (can_commit[k] && !ge[j][k]) is_best[j] = 1'b0;
      if (is_best[j]) best |= counted[j] ? candidate2 : state.match_index[j];
    end
    any_best = |can_commit;
  end

  registers_t next;
  outcome_t   out;
  logic       moves_match;

  logic ring_full, window_full, for_hosts_only;
  logic [15:0] assigned_bytes;
  logic [63:0] next_index;
  always_comb begin
    ring_full = used2 >= 64'(state.ring_slots);
    window_full = open2 >= 64'(state.window);
    for_hosts_only = (in2.flags & FLAGS_OF_HOSTS) != 0 ||
        (in2.flags & FLAG_FRAGMENT) != 0 && in2.session == 0;
    assigned_bytes = op2 == OP_PACKET && in2.kind == KIND_FORWARD ?
        in2.payload_bytes - 16'(ORIGIN_BYTES) : in2.payload_bytes;
    next_index = state.last_index + 1;
  end

  // Leader: the registers and the outcome of counting everybody.
  `define QW_COUNT \
      if (any_best) begin \
        out.commit_from = state.commit_index; \
        next.commit_index = best; \
        out.actions |= ACTION_COMMIT; \
      end

  // Leader: gives a command its place.
  `define QW_ASSIGN \
      if (c2.last_ever) out = to_software(REASON_OF_LAST_INDEX_EVER); \
      else if (!c2.me_fits) out = to_software(REASON_OF_ASSIGN_REGISTER); \
      else if (ring_full) out = drop(REASON_OF_REQUEST_RING); \
      else if (window_full) out = drop(REASON_OF_REQUEST_WINDOW); \
      else begin \
        out.header = say(state, KIND_APPEND, next_index, in2.sequence_); \
        out.header.flags = in2.flags & FLAGS_OF_ENTRIES; \
        out.header.payload_bytes = assigned_bytes; \
        out.header.payload_crc32c = in2.payload_crc32c; \
        out.header.previous_term = state.last_term; \
        out.header.session = in2.session; \
        out.index = next_index; \
        out.actions = ACTION_STORE | ACTION_FANOUT; \
        next.last_index = next_index; \
        next.last_term = state.term; \
        if (state.held == 0) begin \
          next.persisted_index = next_index; \
          moves_match = 1'b1; \
          if (state.quorum <= 1) `QW_COUNT \
        end \
      end

  // Follower: what the leader knows to be committed, as far as it is here.
  logic        stores, learns;
  logic [63:0] known;
  always_comb begin
    stores = c2.index_is_next;  // of an APPEND that is taken
    if (in2.kind == KIND_APPEND && stores) begin
      known = c2.committed_in_next ? in2.commit_index : in2.index;
      learns = !c2.committed_in_next || c2.committed_is_news;
    end else begin
      known = c2.committed_in_last ? in2.commit_index : state.last_index;
      learns = c2.committed_in_last ? c2.committed_is_news : c2.last_is_news;
    end
  end

  logic is_question;
  always_comb begin
    next = state;
    out = '0;
    moves_match = 1'b0;
    is_question = in2.kind == KIND_RETRANSMIT;
    unique case (op2)
      OP_SUBMIT: begin
        if (!c2.leads) out = to_software(REASON_OF_SUBMIT_ROLE);
        else if (c2.too_long) out = to_software(REASON_OF_SUBMIT_BYTES);
        else `QW_ASSIGN
      end
      OP_PERSISTED: begin
        if (!c2.leads && !c2.follows) out = drop(REASON_OF_PERSISTED_ROLE);
        else if (state.held == 0) out = drop(REASON_OF_PERSISTED_HELD);
        else if (!c2.me_fits) out = drop(REASON_OF_PERSISTED_REGISTER);
        else if (!c2.number_in_last) out = drop(REASON_OF_PERSISTED_WITHIN_LAST);
        else if (c2.number_in_persisted) out = drop(REASON_OF_PERSISTED_MONOTONE);
        else begin
          next.persisted_index = number2;
          if (c2.leads) begin
            moves_match = 1'b1;
            `QW_COUNT
          end else begin
            out.actions = ACTION_REPLY;
            out.header = say(state, KIND_APPEND_OK, number2, state.round);
          end
        end
      end
      OP_HEARTBEAT: begin
        if (!c2.leads) out = drop(REASON_OF_HEARTBEAT_ROLE);
        else if (!c2.me_fits) out = drop(REASON_OF_HEARTBEAT_REGISTER);
        else if (c2.number_in_round) out = drop(REASON_OF_ASCENDING_ROUNDS);
        else begin
          next.round = number2;
          for (int slot = 0; slot < SLOTS; slot++)
            if (state.me == 8'(slot)) next.heard_round[slot] = number2;
          out.actions = ACTION_FANOUT;
          out.header = say(state, KIND_HEARTBEAT, state.last_index, number2);
        end
      end
      OP_RELEASE: begin
        if (!c2.number_in_last) out = drop(REASON_BEYOND_LAST);
        else if (!c2.number_in_released) next.released_index = number2;
      end
      OP_ENGAGE: next = registers_i;
      OP_OFF: next.role = ROLE_OFF;
      default: begin
        if (!c2.leads && !c2.follows) out = to_software(REASON_OF_OFF);
        else if (!c2.version_fits) out = to_software(REASON_OF_STEP_VERSION);
        else if (!c2.group_fits) out = to_software(REASON_OF_GROUP);
        else if (c2.too_long) out = to_software(REASON_OF_STEP_BYTES);
        else if (in2.kind == KIND_REQUEST) begin
          if (in2.sender != 8'(SENDER_CLIENT)) out = to_software(REASON_OF_CLIENT_SENDER);
          else if (for_hosts_only) out = to_software(REASON_MALFORMED);
          else if (c2.leads) begin
            `QW_ASSIGN
          end else if (in2.payload_bytes > 16'(PAYLOAD_BYTES_MAX - ORIGIN_BYTES))
            out = to_software(REASON_OF_REQUEST_BYTES);
          else begin
            out.header = say(state, KIND_FORWARD, '0, in2.sequence_);
            out.header.flags = in2.flags & (FLAG_BLIND | FLAG_FRAGMENT);
            out.header.payload_bytes = in2.payload_bytes + 16'(ORIGIN_BYTES);
            out.header.payload_crc32c = in2.payload_crc32c;
            out.header.session = in2.session;
            out.actions = ACTION_FORWARD;
          end
        end
        else if (c2.term_old) out = to_software(REASON_OF_TERM_OLD);
        else if (c2.term_new) out = to_software(REASON_OF_TERM_NEW);
        else if (c2.no_member) out = to_software(REASON_OF_MEMBER);
        else if (c2.no_register) out = to_software(REASON_OF_SENDER_REGISTER);
        else if (c2.is_me) out = to_software(REASON_OF_NOT_MYSELF);
        else if (c2.leads) begin
          unique case (in2.kind)
            KIND_FORWARD: begin
              if (in2.payload_bytes < 16'(ORIGIN_BYTES)) out = to_software(REASON_OF_FORWARD_BYTES);
              else if (for_hosts_only) out = to_software(REASON_MALFORMED);
              else `QW_ASSIGN
            end
            KIND_APPEND_OK, KIND_HEARTBEAT_OK, KIND_RETRANSMIT: begin
              if (!c2.index_in_last) out = to_software(REASON_OF_BEYOND_LAST);
              else if (!c2.sequence_in_round) out = to_software(REASON_OF_ROUND_SENT);
              else if (is_question && !c2.index_after_start)
                out = to_software(REASON_OF_RESEND_START);
              else if (is_question && missing2 >= 64'(state.ring_slots))
                out = to_software(REASON_OF_BEHIND_RING);
              else if (is_question && state.quorum < state.replicas &&
                       missing2 >= 64'(REPAIR_ENTRIES_MAX))
                out = to_software(REASON_OF_REPAIR);
              else begin
                if (is_question) begin
                  out.index = in2.index;
                  out.actions = ACTION_RESEND;
                end
                for (int slot = 0; slot < SLOTS; slot++)
                  if (counted[slot] && !c2.sequence_in_heard)
                    next.heard_round[slot] = in2.sequence_;
                // Who asks for an entry does not hold it.
                if (!is_question && c2.index_after_start && (counted & at_least_candidate2) == 0) begin
                  moves_match = 1'b1;
                  if (!c2.candidate_in_commit) begin
                    if (candidate_held) begin
                      out.commit_from = state.commit_index;
                      next.commit_index = in2.index;
                      out.actions |= ACTION_COMMIT;
                    end else `QW_COUNT
                  end
                end
              end
            end
            default: out = to_software(REASON_UNEXPECTED);
          endcase
        end
        else if (in2.kind == KIND_FORWARD) out = drop(REASON_OF_FORWARD_ONCE);
        else if (!c2.is_leaders) out = to_software(REASON_OF_LEADER_SENDER);
        else if (in2.kind == KIND_APPEND) begin
          if (!c2.index_after_start) out = drop(REASON_OF_BEFORE_START);
          else if (!c2.index_ever) out = to_software(REASON_OF_APPEND_INDEX);
          else if (c2.index_is_next && !c2.history_fits) out = to_software(REASON_OF_HISTORY);
          else if (c2.index_is_next && ring_full) out = drop(REASON_OF_APPEND_RING);
          else begin
            if (c2.index_in_last) begin
              out.reason = REASON_OF_REPEATED;
              out.actions = ACTION_REPLY;
            end else if (!c2.index_is_next) begin
              out.reason = REASON_OF_NEXT_INDEX;
              out.actions = ACTION_REPLY;
            end else begin
              out.actions = ACTION_STORE;
              out.index = in2.index;
              next.last_index = in2.index;
              next.last_term = state.term;
              if (state.held == 0) begin
                next.persisted_index = in2.index;
                out.actions |= ACTION_REPLY;
              end
            end
            if (learns) begin
              out.commit_from = state.commit_index;
              next.commit_index = known;
              out.actions |= ACTION_COMMIT;
            end
            if (out.reason == REASON_GAP)
              out.header = say(next, KIND_RETRANSMIT, next_index, state.round);
            else if ((out.actions & ACTION_REPLY) != 0)
              out.header = say(next, KIND_APPEND_OK, next.persisted_index, state.round);
          end
        end
        else if (in2.kind == KIND_HEARTBEAT) begin
          if (!c2.index_ever) out = to_software(REASON_OF_HEARTBEAT_INDEX);
          else begin
            if (!c2.sequence_in_round) next.round = in2.sequence_;
            out.actions = ACTION_REPLY;
            if (learns) begin
              out.commit_from = state.commit_index;
              next.commit_index = known;
              out.actions |= ACTION_COMMIT;
            end
            if (!c2.index_in_last) begin
              out.reason = REASON_GAP;
              out.header = say(next, KIND_RETRANSMIT, next_index, next.round);
            end else out.header = say(next, KIND_HEARTBEAT_OK, state.persisted_index, next.round);
          end
        end
        else out = to_software(REASON_UNEXPECTED);
      end
    endcase
  end
  `undef QW_ASSIGN
  `undef QW_COUNT

  registers_t after;
  always_comb begin
    after = next;
    for (int slot = 0; slot < SLOTS; slot++)
      if (moves_match && counted[slot]) after.match_index[slot] = candidate2;
  end
  order_t engaged;
  always_comb
    for (int k = 0; k < SLOTS; k++)
      for (int j = 0; j < SLOTS; j++)
        engaged[k][j] = registers_i.match_index[k] >= registers_i.match_index[j];

  always_ff @(posedge clk) begin
    valid_o     <= valid2 && !rst_i;
    outcome_o   <= out;
    registers_o <= after;
    if (rst_i) has_engaged <= '0;
    else if (valid2 && op2 == OP_ENGAGE) has_engaged[group2] <= 1'b1;
    if (valid2) begin
      states[group2] <= after;
      orders[group2] <= op2 == OP_ENGAGE ? engaged : moves_match ? ge : at_least;
    end
  end
endmodule

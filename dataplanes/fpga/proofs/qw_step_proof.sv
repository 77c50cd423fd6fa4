// What must hold of a replica's step, of any one of its groups: said of its ports, but for Read_A, which ties the
// memory to them.
module qw_step_proof
  import qw_pkg::*, qw_gate_pkg::*;
(
    input logic                  clk,
    input logic                  rst_i,
    input logic                  valid_i,
    input logic [GROUP_BITS-1:0] group_i,
    input op_t                   op_i,
    input header_t               header_i,
    input logic [          63:0] number_i,
    input registers_t            registers_i,
    input logic                  valid_o,
    input outcome_t              outcome_o,
    input registers_t            registers_o,
    // Within.
    input logic                  under_way,
    input registers_t            state1,
    input logic [REPLICAS_MAX-1:0][REPLICAS_MAX-1:0] orders[1<<GROUP_BITS],
    input logic [REPLICAS_MAX-1:0] counted,
    input logic [REPLICAS_MAX-1:0] can_commit,
    input logic [REPLICAS_MAX-1:0] is_best,
    input logic [          63:0] candidate2,
    input logic                  candidate_held,
    input logic [REPLICAS_MAX-1:0] holds_candidate,
    input logic [REPLICAS_MAX-1:0] members2,
    input logic [          63:0] best,
    input logic [REPLICAS_MAX-1:0][REPLICAS_MAX-1:0] ge
);
  // Whichever group it is: it stays the same.
  logic [GROUP_BITS-1:0] watched;
  always_ff @(posedge clk) watched <= watched;

  // Operations under way: in the clock behind, and in the one of the outcome.
  logic begun = 1'b0;
  logic valid1, valid2, is_steady1;
  logic [GROUP_BITS-1:0] group1, group2;
  op_t op1, op2;
  header_t in1, in2;
  logic [63:0] number1, number2;
  // The group's registers now, and before the operation whose outcome is there.
  registers_t kept, live, was;
  logic engaged_kept, engaged;
  logic is_outcome;  // of the group
  always_comb begin
    is_outcome = valid_o && valid2 && group2 == watched;
    live = is_outcome ? registers_o : kept;
    engaged = engaged_kept || is_outcome && op2 == OP_ENGAGE;
  end
  always_ff @(posedge clk) begin
    begun   <= 1'b1;
    valid1  <= valid_i && !rst_i;
    valid2  <= valid1 && !rst_i;
    group1  <= group_i;
    group2  <= group1;
    op1     <= op_i;
    op2     <= op1;
    in1     <= header_i;
    in2     <= in1;
    number1 <= number_i;
    number2 <= number1;
    was     <= live;
    kept    <= rst_i ? '0 : live;
    engaged_kept <= engaged && !rst_i;
  end

  // ---- What is assumed.
  function automatic logic is_off(input registers_t of);
    return of.role != ROLE_LEADER && of.role != ROLE_FOLLOWER;
  endfunction
  // qw_registers_sound of qw_step.h: what nobody but the host changes, and the rest.
  function automatic logic are_sizes_sound(input registers_t of);
    return of.replicas != 0 && of.replicas <= 8'(REPLICAS_MAX) && of.me < of.replicas && of.leader < of.replicas &&
        of.quorum <= of.replicas && {of.quorum, 1'b0} > 9'(of.replicas) && of.ring_slots != 0 &&
        (of.ring_slots & (of.ring_slots - 1)) == 0 && of.window != 0 && of.window <= of.ring_slots && of.held <= 1 &&
        of.term != 0 && (is_off(of) || (of.role == ROLE_LEADER) == (of.me == of.leader));
  endfunction
  function automatic logic is_sound(input registers_t of);
    return !is_off(of) && are_sizes_sound(of) && of.last_term <= of.term && of.last_index <= ~64'd1 &&
        of.commit_index <= of.last_index && of.start_index <= of.last_index &&
        of.released_index <= of.last_index && of.persisted_index <= of.last_index;
  endfunction
  // What a host has besides when it engages (Engine::granted): nobody has acknowledged what is not in the log, nor
  // the host what is not durable.
  function automatic logic is_held(input registers_t of);
    is_held = 1'b1;
    for (int k = 0; k < REPLICAS_MAX; k++) begin
      if (of.match_index[k] > of.last_index) is_held = 1'b0;
      if (of.me == 8'(k) && of.match_index[k] > of.persisted_index) is_held = 1'b0;
    end
  endfunction
  always_comb begin
    if (!begun) assume (rst_i);
    if (begun) UnderWay_A: assert (under_way == valid1 && valid_o == valid2);
    if (valid1) assume (!valid_i);
    assume (op_i <= OP_OFF);
    if (valid1 && op1 == OP_ENGAGE && group1 == watched)
      assume (is_sound(registers_i) && is_held(registers_i) && is_off(live));
  end

  // ---- What the memory gives is what it was given: qw_step_memory_proof.sv proves it.
  always_comb begin
    if (!rst_i && valid_i && group_i == watched) Read_A: assert (state1 == live);
  end
  // What stands beside it says how the indexes of two slots compare: of any two, so of every two.
  logic [2:0] slot, other_slot;
  always_ff @(posedge clk) begin
    slot <= slot;
    other_slot <= other_slot;
  end
  logic order_fits;
  always_comb begin
    assume (slot < 3'(REPLICAS_MAX) && other_slot < 3'(REPLICAS_MAX));
    if (begun && engaged)
      Order_A: assert (orders[watched][slot][other_slot] == (live.match_index[slot] >= live.match_index[other_slot]));
    order_fits = 1'b1;
    for (int k = 0; k < REPLICAS_MAX; k++)
      for (int j = 0; j < REPLICAS_MAX; j++)
        if (orders[watched][k][j] != (live.match_index[k] >= live.match_index[j])) order_fits = 1'b0;
    if (begun && engaged) EveryOrder_A: assert (order_fits);
  end

  // Of an operation under way: how indexes compare once it is done. So there is a highest one, and who has it is told.
  logic [2:0] third_slot;
  always_ff @(posedge clk) third_slot <= third_slot;
  logic counts;
  logic [REPLICAS_MAX-1:0][63:0] moved;
  logic ge_fits, ge_carries, best_fits, are_same, are_after_start;
  always_comb begin
    assume (third_slot < 3'(REPLICAS_MAX));
    counts = begun && valid1 && group1 == watched && engaged;
    ge_fits = 1'b1;
    ge_carries = 1'b1;
    best_fits = 1'b1;
    are_same = 1'b1;
    are_after_start = 1'b1;
    for (int k = 0; k < REPLICAS_MAX; k++) moved[k] = counted[k] ? candidate2 : live.match_index[k];
    for (int k = 0; k < REPLICAS_MAX; k++)
      for (int j = 0; j < REPLICAS_MAX; j++) begin
        if (is_best[k] && is_best[j] && moved[k] != moved[j]) are_same = 1'b0;
        if (ge[k][j] != (moved[k] >= moved[j]) || !ge[k][j] && !ge[j][k]) ge_fits = 1'b0;
        for (int i = 0; i < REPLICAS_MAX; i++) if (ge[k][j] && ge[j][i] && !ge[k][i]) ge_carries = 1'b0;
      end
    for (int k = 0; k < REPLICAS_MAX; k++) if (is_best[k] && best != moved[k]) best_fits = 1'b0;
    for (int k = 0; k < REPLICAS_MAX; k++) if (is_best[k] && moved[k] <= live.start_index) are_after_start = 1'b0;
    if (counts) Compares_A: assert (ge[slot][other_slot] == (moved[slot] >= moved[other_slot]));
    if (counts) EveryCompares_A: assert (ge_fits);
    if (counts && ge[slot][other_slot] && ge[other_slot][third_slot]) Carries_A: assert (ge[slot][third_slot]);
    if (counts) EveryCarries_A: assert (ge_carries);
    // Two that are the highest are the same.
    if (counts && is_best[slot] && is_best[other_slot]) Same_A: assert (moved[slot] == moved[other_slot]);
    if (counts) EverySame_A: assert (are_same);
    if (counts && can_commit != 0) Highest_A: assert (is_best != 0);
    if (counts) Best_A: assert (best_fits);
    // What may be committed is of this term.
    if (counts && is_best[slot]) AfterStart_A: assert (moved[slot] > live.start_index);
    if (counts) EveryAfterStart_A: assert (are_after_start);
  end
  // The same when the outcome is there.
  logic [REPLICAS_MAX-1:0][63:0] were_moved;
  logic [REPLICAS_MAX-1:0][REPLICAS_MAX-1:0] was_ge;
  logic [REPLICAS_MAX-1:0] was_best, held_candidate, were_members;
  logic [63:0] was_candidate;
  logic was_candidate_held;
  always_ff @(posedge clk) begin
    were_moved <= moved;
    was_ge <= ge;
    was_best <= is_best;
    held_candidate <= holds_candidate;
    were_members <= members2;
    was_candidate <= candidate2;
    was_candidate_held <= candidate_held;
  end

  // ---- Registers stay sound.
  logic match_within;
  always_comb begin
    match_within = 1'b1;
    for (int k = 0; k < REPLICAS_MAX; k++) if (live.match_index[k] > live.last_index) match_within = 1'b0;
    if (begun) LastEver_A: assert (live.last_index <= ~64'd1);
    if (begun) StartWithinLog_A: assert (live.start_index <= live.last_index);
    if (begun) ReleasedWithinLog_A: assert (live.released_index <= live.last_index);
    if (begun) DurableWithinLog_A: assert (live.persisted_index <= live.last_index);
    if (begun) Sizes_A: assert (engaged ? are_sizes_sound(live) : live == '0);
    if (begun) MatchWithinLog_A: assert (live.match_index[slot] <= live.last_index);
    if (begun) EveryMatchWithinLog_A: assert (match_within);
    // The host's own acknowledgement is of what is durable: in `sync`, what it says; else, its log.
    if (begun) OwnDurable_A: assert (slot != live.me[2:0] || live.match_index[slot] <= live.persisted_index);
    if (begun) CommitWithinLog_A: assert (live.commit_index <= live.last_index);
  end

  // ---- What was done.
  logic steps, is_packet, leads, follows, stores, commits;
  logic is_sender, is_me;
  logic [REPLICAS_MAX-1:0] holds;  // who has acknowledged what is committed now
  logic [7:0] holders;  // members of these
  logic are_moved, are_held, by_candidate;
  logic says_held, is_news, is_members;
  always_comb begin
    steps = begun && is_outcome && op2 != OP_ENGAGE;
    is_packet = op2 == OP_PACKET;
    leads = was.role == ROLE_LEADER;
    follows = was.role == ROLE_FOLLOWER;
    stores = (outcome_o.actions & ACTION_STORE) != 0;
    commits = (outcome_o.actions & ACTION_COMMIT) != 0;
    is_sender = in2.sender == 8'(slot);
    is_me = was.me == 8'(slot);
    for (int k = 0; k < REPLICAS_MAX; k++) holds[k] = live.match_index[k] >= live.commit_index;
    holders = '0;
    for (int k = 0; k < REPLICAS_MAX; k++) if (8'(k) < live.replicas && holds[k]) holders += 8'd1;
    // From a member of this term, about this group.
    is_members = is_packet && in2.term == was.term && in2.group == was.group && in2.version == VERSION &&
        in2.sender < was.replicas && in2.sender != was.me;
    is_news = is_members && (in2.kind == KIND_APPEND_OK || in2.kind == KIND_HEARTBEAT_OK);
    // Such packets say that everything up to their index is held.
    says_held = (outcome_o.actions & ACTION_REPLY) != 0 &&
        (outcome_o.header.kind == KIND_APPEND_OK || outcome_o.header.kind == KIND_HEARTBEAT_OK);
  end

  // ---- The log.
  always_comb begin
    // It grows by one entry, and only by one that is stored.
    if (steps) Grows_A: assert (stores ?
        live.last_index == was.last_index + 1 && was.last_index != '1 && outcome_o.index == live.last_index :
        live.last_index == was.last_index && live.last_term == was.last_term);
    // Who stores holds the entry before it, of the same term, and it is of the term that both are in.
    if (steps && stores && follows) Matches_A: assert (is_members && in2.kind == KIND_APPEND &&
        in2.sender == was.leader && in2.index == was.last_index + 1 && in2.index > was.start_index &&
        in2.previous_term == was.last_term && live.last_term == was.term);
    // A leader's entries are of its term, and say what stands before them.
    if (steps && stores && leads) Assigns_A: assert (outcome_o.header.kind == KIND_APPEND &&
        outcome_o.header.term == was.term && outcome_o.header.index == live.last_index &&
        outcome_o.header.previous_term == was.last_term && live.last_term == was.term);
    // An entry's slot is one whose entry the host has taken.
    if (steps && stores) Ring_A: assert (was.last_index - was.released_index < 64'(was.ring_slots));
    if (steps) Released_A: assert (live.released_index >= was.released_index);
    // A plane that is off does nothing.
    if (steps && !leads && !follows) Off_A: assert (live.last_index == was.last_index && is_off(live) &&
        live.commit_index == was.commit_index && live.persisted_index == was.persisted_index &&
        (outcome_o.actions & ~ACTION_TO_SOFTWARE) == 0);
  end

  // ---- What only the host changes, while the plane is off.
  always_comb
    if (steps) Term_A: assert (live.term == was.term && live.start_index == was.start_index && live.group == was.group &&
        live.ring_slots == was.ring_slots && live.window == was.window && live.me == was.me &&
        live.leader == was.leader && live.replicas == was.replicas && live.quorum == was.quorum &&
        live.held == was.held && (live.role == was.role || op2 == OP_OFF && is_off(live)));

  // ---- Commit.
  always_comb begin
    by_candidate = was_candidate_held && is_news && live.commit_index == was_candidate;
    are_moved = 1'b1;
    are_held = 1'b1;
    for (int k = 0; k < REPLICAS_MAX; k++) begin
      if (live.match_index[k] != were_moved[k]) are_moved = 1'b0;
      if (were_members[k] && by_candidate && holds[k] != held_candidate[k]) are_held = 1'b0;
      for (int j = 0; j < REPLICAS_MAX; j++)
        if (were_members[k] && !by_candidate && was_best[j] && holds[k] != was_ge[k][j]) are_held = 1'b0;
    end
    if (steps) CommitMonotone_A: assert (live.commit_index >= was.commit_index);
    if (steps) CommitSaid_A: assert (commits == (live.commit_index != was.commit_index) &&
        (!commits || outcome_o.commit_from == was.commit_index));
    // A leader commits what a member just acknowledged, or else what is the highest that may be, once that is counted.
    if (steps && leads && commits) Moves_A: assert (live.match_index[slot] == were_moved[slot]);
    if (steps && leads && commits) EveryMoves_A: assert (are_moved);
    if (steps && leads && commits && !by_candidate) Counted_A: assert (was_best != 0);
    if (steps && leads && commits && !by_candidate && was_best[other_slot])
      Chosen_A: assert (live.commit_index == were_moved[other_slot]);
    if (steps && leads && commits && were_members[slot] && (by_candidate || was_best[other_slot]))
      Held_A: assert (holds[slot] == (by_candidate ? held_candidate[slot] : was_ge[slot][other_slot]));
    if (steps && leads && commits) EveryHeld_A: assert (are_held);
    // A quorum has acknowledged it, and it is of the leader's own term. A follower commits what its leader says.
    if (steps && leads && commits) Quorum_A: assert (holders >= live.quorum);
    if (steps && leads && commits) OwnTerm_A: assert (live.commit_index > live.start_index);
    if (steps && follows && commits) Learns_A: assert (is_members && in2.sender == was.leader &&
        live.commit_index <= in2.commit_index);
  end

  // ---- Acknowledgements.
  logic match_fits;
  always_comb begin
    match_fits = live.match_index[slot] == was.match_index[slot] ||
        leads && live.match_index[slot] > was.match_index[slot] &&
        (is_me ? live.match_index[slot] == live.persisted_index :
             is_news && is_sender && in2.index == live.match_index[slot]);
    // A member has acknowledged what its register says, and the host what is durable here.
    if (steps) Counts_A: assert (match_fits);
    // In `sync` what is durable is what the host says; else it is the log.
    if (steps) Persists_A: assert (live.persisted_index == was.persisted_index || live.persisted_index > was.persisted_index &&
        (was.held != 0 ? op2 == OP_PERSISTED && live.persisted_index == number2 :
            stores && live.persisted_index == live.last_index));
    if (steps && says_held) Acknowledges_A: assert (follows && outcome_o.header.term == was.term &&
        outcome_o.header.group == was.group && outcome_o.header.sender == was.me &&
        outcome_o.header.index == live.persisted_index);
    // Rounds ascend, and a member is taken to have heard one that was said.
    if (steps) Rounds_A: assert (live.round >= was.round);
  end
endmodule
bind qw_step qw_step_proof proof (.*, .under_way(valid2));

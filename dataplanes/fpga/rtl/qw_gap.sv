// A follower's questions for what is missing: how often it asks, and when it asks for more
// (fastpath/include/qw_gap.h). What it says of a step is there in the clock behind the step's outcome.
module qw_gap
  import qw_pkg::*, qw_gate_pkg::*;
(
    input  logic                  clk,
    input  logic                  rst_i,
    // A packet, and what the step says of it; or a group engages, whose last entry is this one.
    input  logic                  valid_i,
    input  logic                  engages_i,
    input  logic [          63:0] last_i,
    input  logic [GROUP_BITS-1:0] group_i,
    input  logic [           7:0] kind_i,
    input  logic [          63:0] index_i,
    // verilator lint_off UNUSEDSIGNAL
    input  outcome_t              outcome_i,
    // verilator lint_on UNUSEDSIGNAL
    output asking_t               asking_o
);
  // Packets behind one gap that are not answered after one was.
  localparam logic [63:0] QUIET_MAX = 64'(8 * RESEND_ENTRIES_MAX);
  localparam logic [63:0] ENTRIES = 64'(RESEND_ENTRIES_MAX);

  typedef struct packed {
    logic [63:0] leader_last;  // highest index the leader has named
    logic [63:0] asked_index;  // what it was last asked for; 0: nothing
    logic [63:0] quiet;        // packets behind that gap since, and since something was stored
  } gap_t;
  gap_t gaps[1<<GROUP_BITS];
  logic [(1<<GROUP_BITS)-1:0] is_known;
  gap_t now, next;
  asking_t asking;
  logic [63:0] missing, patience;
  logic counts;
  always_comb begin
    now = is_known[group_i] ? gaps[group_i] : '0;
    next = now;
    asking = ASKING_AS_SAID;
    missing = outcome_i.header.index;
    counts = (kind_i == KIND_APPEND || kind_i == KIND_HEARTBEAT) && outcome_i.actions != 0 &&
        (outcome_i.actions & ACTION_TO_SOFTWARE) == 0;
    if (now.asked_index == missing) patience = QUIET_MAX;
    else if (now.asked_index != 0 && missing > now.asked_index && missing - now.asked_index < ENTRIES &&
             index_i - now.asked_index >= ENTRIES)
      patience = ENTRIES;
    else patience = '0;
    if (engages_i) next = '{leader_last: last_i, default: '0};
    else if (counts) begin
      if (index_i > now.leader_last) next.leader_last = index_i;
      if (outcome_i.reason == REASON_GAP) begin
        if (kind_i == KIND_APPEND && now.quiet < patience) begin
          next.quiet = now.quiet + 1'b1;
          asking = ASKING_NOT;
        end else begin
          next.asked_index = missing;
          next.quiet = '0;
        end
      end else if ((outcome_i.actions & ACTION_STORE) != 0 && now.asked_index != 0) begin
        next.quiet = '0;
        if (outcome_i.index == now.asked_index + ENTRIES - 1'b1 && next.leader_last > outcome_i.index) begin
          next.asked_index = outcome_i.index + 1'b1;
          asking = ASKING_MORE;
        end
      end
    end
  end
  always_ff @(posedge clk) begin
    asking_o <= asking;
    if (valid_i) gaps[group_i] <= next;
    if (rst_i) is_known <= '0;
    else if (valid_i) is_known[group_i] <= 1'b1;
  end
endmodule

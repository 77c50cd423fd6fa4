// A follower's questions for what is missing: how often it asks, and when it asks for more
// (fastpath/include/qw_gap.h). What it says of a step is there in the clock behind the step's outcome, a few gates deep. A
// packet every second clock: the first compares, the second decides.
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
  // ---- The clock of the outcome: comparisons.
  gap_t now;
  logic [63:0] missing, since;
  always_comb begin
    now = is_known[group_i] ? gaps[group_i] : '0;
    missing = outcome_i.header.index;
    since = missing - now.asked_index;
  end
  typedef struct packed {
    logic engages, counts, is_append, is_gap, stores;
    logic [GROUP_BITS-1:0] group;
    logic [63:0] index, missing, stored_next, quiet_next;
    logic has_asked, asked_same, asked_before, index_is_far;
    logic is_quiet, is_quiet_briefly;
    logic index_is_news, completes, leader_has_more, index_is_more;
  } compared_t;
  compared_t c3;
  gap_t gap3;
  logic valid3;
  always_ff @(posedge clk) begin
    valid3 <= valid_i && !rst_i;
    gap3 <= now;
    c3.engages <= engages_i;
    c3.counts <= (kind_i == KIND_APPEND || kind_i == KIND_HEARTBEAT) && outcome_i.actions != 0 &&
        (outcome_i.actions & ACTION_TO_SOFTWARE) == 0;
    c3.is_append <= kind_i == KIND_APPEND;
    c3.is_gap <= outcome_i.reason == REASON_GAP;
    c3.stores <= (outcome_i.actions & ACTION_STORE) != 0;
    c3.group <= group_i;
    c3.index <= engages_i ? last_i : index_i;
    c3.missing <= missing;
    c3.stored_next <= outcome_i.index + 1'b1;
    c3.quiet_next <= now.quiet + 1'b1;
    c3.has_asked <= now.asked_index != 0;
    c3.asked_same <= since == 0;
    c3.asked_before <= missing > now.asked_index && since < ENTRIES;
    c3.index_is_far <= index_i - now.asked_index >= ENTRIES;
    c3.is_quiet <= now.quiet < QUIET_MAX;
    c3.is_quiet_briefly <= now.quiet < ENTRIES;
    c3.index_is_news <= index_i > now.leader_last;
    c3.completes <= outcome_i.index - now.asked_index == ENTRIES - 1'b1;
    c3.leader_has_more <= now.leader_last > outcome_i.index;
    c3.index_is_more <= index_i > outcome_i.index;
  end

  // ---- The clock behind it: decisions.
  gap_t next;
  logic waits;
  always_comb begin
    next = gap3;
    asking_o = ASKING_AS_SAID;
    waits = c3.asked_same ? c3.is_quiet : c3.has_asked && c3.asked_before && c3.index_is_far && c3.is_quiet_briefly;
    if (c3.engages) next = '{leader_last: c3.index, default: '0};
    else if (c3.counts) begin
      if (c3.index_is_news) next.leader_last = c3.index;
      if (c3.is_gap) begin
        if (c3.is_append && waits) begin
          next.quiet = c3.quiet_next;
          asking_o = ASKING_NOT;
        end else begin
          next.asked_index = c3.missing;
          next.quiet = '0;
        end
      end else if (c3.stores && c3.has_asked) begin
        next.quiet = '0;
        if (c3.completes && (c3.leader_has_more || c3.index_is_news && c3.index_is_more)) begin
          next.asked_index = c3.stored_next;
          asking_o = ASKING_MORE;
        end
      end
    end
  end
  always_ff @(posedge clk) begin
    if (valid3) gaps[c3.group] <= next;
    if (rst_i) is_known <= '0;
    else if (valid3) is_known[c3.group] <= 1'b1;
  end
endmodule

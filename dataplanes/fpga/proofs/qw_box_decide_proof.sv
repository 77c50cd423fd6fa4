// That a Paxos role's step gets the slot that the one before it left, of any one place, however close behind it comes;
// and that nothing is decided for a role that is off. What a step says is free, but for when it says something, and
// that one that is off leaves all to software.
module qw_box_decide_proof
  import qw_pkg::*, qw_gate_pkg::*;
#(
    parameter int PLACE_BITS = 3
) (
    input logic                  clk,
    input logic                  rst_i,
    input paxos_op_t             order_op_i,
    input logic [GROUP_BITS-1:0] order_group_i,
    input logic                  fence_i,
    input logic                  order_done_o,
    input logic [GROUPS_MAX-1:0] off_o,
    // Within.
    input logic                  under_way,
    input logic                  orders1,
    input logic                  orders2,
    input logic                  orders3,
    input logic                  steps1,
    input logic                  steps2,
    input logic                  steps3,
    input logic                  valid1,
    input logic                  valid2,
    input logic                  valid3,
    input logic [PLACE_BITS-1:0] place1,
    input logic [PLACE_BITS-1:0] place3,
    input logic [GROUP_BITS-1:0] group3,
    input paxos_slot_t           slot1,
    input paxos_slot_t           read1,
    input paxos_slot_t           slot3,
    input paxos_slot_t           slot4,
    input logic                  changed3,
    input logic                  changed4,
    input logic [PLACE_BITS-1:0] place4,
    input paxos_slot_t           instances[1<<PLACE_BITS],
    input outcome_t              outcome3,
    input decision_t             decision3
);
  logic begun = 1'b0;
  // Whichever place and role: they stay the same.
  logic [PLACE_BITS-1:0] place;
  logic [GROUP_BITS-1:0] watched;
  // What the last step left there; and a clock ago.
  paxos_slot_t left, left_kept, before_kept;
  paxos_op_t op;
  logic was_fence, is_off, is_under_way;
  always_comb left = changed3 && place3 == place ? slot3 : left_kept;
  always_ff @(posedge clk) begin
    begun <= 1'b1;
    place <= place;
    watched <= watched;
    left_kept <= left;
    before_kept <= left_kept;
    op <= order_op_i;
    was_fence <= fence_i;
    is_under_way <= under_way;
    is_off <= off_o[watched];
  end
  always_comb begin
    if (!begun) assume (rst_i && instances[place] == left_kept);
    // A step says something two clocks after it was asked (paxos_step.UnderWay).
    assume (!changed3 || valid3 && (orders3 || steps3));
    // What an order is about stays until it is done (qw_host).
    if (begun && under_way) assume (order_op_i == op);
    if (begun && valid3 && steps3 && !orders3 && group3 == watched && off_o[watched])
      assume ((outcome3.actions & ~ACTION_TO_SOFTWARE) == 0);
  end
  always_comb begin
    if (begun) Memory_A: assert (instances[place] == left_kept);
    if (begun && place1 == place) ReadBefore_A: assert (read1 == before_kept);
    if (begun) Changed_A: assert (left_kept == (changed4 && place4 == place ? slot4 : before_kept));
    if (begun && valid1 && place1 == place && !(orders1 && order_op_i == PAXOS_OP_PUT_BACK))
      Slot_A: assert (slot1 == left);
    if (begun) Apart_A: assert (!(valid1 && valid2) && !(valid2 && valid3));
    if (begun && is_off && off_o[watched] && valid3 && !orders3 && steps3 && group3 == watched)
      OffDecidesNothing_A: assert (!decision3.sends && !decision3.stores);
    // An order is done when the fence behind it has left.
    if (begun && order_done_o) Fenced_A: assert (was_fence && is_under_way);
  end
endmodule
bind qw_box_decide qw_box_decide_proof #(.PLACE_BITS(PLACE_BITS)) proof (
    .*, .orders1(stage1.orders), .orders2(stage2.orders), .steps1(stage1.steps), .steps2(stage2.steps),
    .steps3(stage3.steps), .valid1(stage1.valid), .valid2(stage2.valid), .valid3(stage3.valid),
    .place1(stage1.place), .place3(stage3.place), .group3(stage3.verdict.found.group)
);

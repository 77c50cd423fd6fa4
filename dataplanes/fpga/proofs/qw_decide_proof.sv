// That nothing is decided to be sent, stored or sent again for a group that is off. What a step says is free, but for
// what is proved of it (step.Off): of a group that is off, nothing but that software has the packet.
module qw_decide_proof
  import qw_pkg::*, qw_gate_pkg::*;
#(
    parameter int WAITING_MAX = 8
) (
    input logic                  clk,
    input logic                  rst_i,
    input op_t                   order_op_i,
    input logic                  order_valid_i,
    input logic [GROUP_BITS-1:0] order_group_i,
    input logic                  order_ready_o,
    input logic [GROUPS_MAX-1:0] off_o,
    input logic                  fence_i,
    input logic                  order_done_o,
    input logic                  again_o,
    input again_t                again_range_o,
    // Within.
    input logic                  steps2,
    input logic                  valid2,
    input logic                  valid3,
    input logic                  steps3,
    input logic                  orders1,
    input logic                  orders2,
    input logic                  orders3,
    input logic                  under_way,
    input logic [           3:0] waiting,
    input verdict_t              verdict2,
    input verdict_t              verdict3,
    input outcome_t              outcome2,
    input decision_t             decision3,
    input logic                  pushes
);
  logic begun = 1'b0;
  logic [GROUP_BITS-1:0] watched;
  logic is_off, was_fence;
  op_t op;
  logic [GROUP_BITS-1:0] group;
  always_ff @(posedge clk) begin
    begun <= 1'b1;
    watched <= watched;
    was_fence <= fence_i;
    op <= order_op_i;
    group <= order_group_i;
    is_off <= off_o[watched];
  end
  always_comb begin
    if (!begun) assume (rst_i);
    // What an order is about stays until it is done (qw_host).
    if (begun && under_way) assume (order_op_i == op && order_group_i == group);
    // A fence leaves once, some time after it was pushed (seal.Fences).
    if (fence_i) assume (under_way && !orders1 && !orders2 && !orders3 && !order_done_o);
    // step.Off
    if (valid2 && steps2 && verdict2.found.group == watched && off_o[watched])
      assume ((outcome2.actions & ~ACTION_TO_SOFTWARE) == 0);
  end
  always_comb begin
    // One operation at a time: the next one's outcome sees what the one before it did.
    if (begun) Apart_A: assert (!(valid2 && valid3) && !(orders2 && (valid3 || valid2)) && !(orders3 && (valid2 || orders2 || valid3)));
    if (begun && is_off && off_o[watched] && valid3 && steps3 && verdict3.found.group == watched)
      OffDecidesNothing_A: assert (!decision3.sends && !decision3.stores);
    if (begun && again_o && is_off && off_o[watched]) OffRepeatsNothing_A: assert (again_range_o.group != watched);
    // An order that turns a group off is done when the fence has left, and no other one waits for that.
    if (begun && order_done_o && op == OP_OFF) Fenced_A: assert (was_fence);
  end

  // An order waits for nothing but, if it turns a group off, room for its mark: that many clocks, one after the other.
  // What turns a group off is behind all that was decided before three clocks later.
  logic [1:0] order_waits;
  logic [3:1] off_went;
  always_ff @(posedge clk) begin
    order_waits <= !rst_i && order_valid_i && !under_way && (order_op_i != OP_OFF || waiting < 4'(WAITING_MAX)) && !order_ready_o ? order_waits + 2'd1 : '0;
    off_went <= rst_i ? '0 : {off_went[2:1], order_ready_o && order_op_i == OP_OFF};
  end
  always_comb begin
    if (begun && (orders1 || orders2 || orders3 || order_done_o)) UnderWay_A: assert (under_way);
    if (begun) OrderGoes_A: assert (order_waits <= 2'd1);
    if (begun && off_went[3]) OffPushed_A: assert (pushes);
    // By its group the mark is held back until nothing is sent again for it (core.Waits).
    if (begun && off_went[3]) OffNamed_A: assert (decision3.sending.is_fence && decision3.sending.group == order_group_i);
  end
endmodule
bind qw_decide qw_decide_proof #(.WAITING_MAX(WAITING_MAX)) proof (.*, .pushes(decisions.push_i));

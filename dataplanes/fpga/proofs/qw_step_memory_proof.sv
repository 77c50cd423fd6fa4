// That the step's memory gives what it was given: apart from the rest, because it takes the memory to say so.
module qw_step_memory_proof
  import qw_pkg::*, qw_gate_pkg::*;
(
    input logic                  clk,
    input logic                  rst_i,
    input logic                  valid_i,
    input logic [GROUP_BITS-1:0] group_i,
    input op_t                   op_i,
    input logic                  valid_o,
    input registers_t            registers_o,
    // Within.
    input logic                  under_way,
    input registers_t            state1,
    input registers_t            stored,
    input logic [(1<<GROUP_BITS)-1:0] has_engaged
);
  logic [GROUP_BITS-1:0] watched;
  always_ff @(posedge clk) watched <= watched;

  logic begun = 1'b0;
  logic valid1, valid2, is_outcome;
  logic [GROUP_BITS-1:0] group1, group2;
  op_t op1, op2;
  registers_t kept, live;
  logic engaged_kept, engaged;
  always_comb begin
    is_outcome = valid_o && valid2 && group2 == watched;
    live = is_outcome ? registers_o : kept;
    engaged = engaged_kept || is_outcome && op2 == OP_ENGAGE;
    if (!begun) assume (rst_i);
    if (valid1) assume (!valid_i);
    assume (op_i <= OP_OFF);
  end
  always_ff @(posedge clk) begin
    begun  <= 1'b1;
    valid1 <= valid_i && !rst_i;
    valid2 <= valid1 && !rst_i;
    group1 <= group_i;
    group2 <= group1;
    op1    <= op_i;
    op2    <= op1;
    kept   <= rst_i ? '0 : live;
    engaged_kept <= engaged && !rst_i;
  end
  always_comb if (begun) begin
    UnderWay_A: assert (under_way == valid1 && valid_o == valid2);
    Read_A: assert (rst_i || !(valid_i && group_i == watched) || state1 == live);
    Engaged_A: assert (rst_i || engaged == has_engaged[watched]);
    Zero_A: assert (rst_i || engaged || live == '0);
    Stored_A: assert (rst_i || !engaged || stored == live);
  end
endmodule
bind qw_step qw_step_memory_proof proof (.*, .under_way(valid2), .stored(states[proof.watched]));

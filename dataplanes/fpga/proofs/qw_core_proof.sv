// How the two that send packets take turns. What is within either may do anything.
module qw_core_proof
  import qw_gate_pkg::*;
(
    input logic                  clk,
    input logic                  rst_i,
    // Within.
    input logic                  packet_valid,
    input logic                  packet_ready,
    input logic                  packet_last,
    input sending_t              sending,
    input logic [           1:0] ready_of,
    input logic [           1:0] may_go,
    input logic                  was,
    input logic [GROUPS_MAX-1:0] busy,
    input logic                  is_inside,
    input logic                  chosen
);
  logic begun = 1'b0;
  logic goes_on, was_chosen;
  always_ff @(posedge clk) begin
    begun <= 1'b1;
    if (packet_valid && packet_ready) begin
      goes_on <= !packet_last;
      was_chosen <= chosen;
    end
    if (rst_i) goes_on <= 1'b0;
  end
  always_comb begin
    if (!begun) assume (rst_i);
    if (begun) Inside_A: assert (goes_on == is_inside);
    // A packet is not mixed with another's beats.
    if (begun && goes_on) Whole_A: assert (chosen == was_chosen);
    // A fence, which comes from the first, goes when nothing is sent again for its group.
    if (begun && !goes_on && packet_valid && !chosen && sending.is_fence) Waits_A: assert (!busy[sending.group]);
    // Inside a packet nobody waits to be asked: an entry's beat may wait for the log, and the log's for this.
    if (begun && goes_on && packet_ready) Ready_A: assert (ready_of[was_chosen]);
    // Each waits for one packet of the other one at most.
    if (begun && !goes_on && may_go[!was]) Turns_A: assert (chosen == !was);
  end
endmodule
bind qw_core qw_core_proof proof (.*);

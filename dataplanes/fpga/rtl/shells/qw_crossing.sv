// A question crosses to another clock, and its answer comes back: one at a time. Question and answer stand still
// while the other side looks at them, so only a bit each way is synchronised. These two bits are not reset: who
// answers makes his like the other one, so a reset asks nothing again, whichever side it comes to first.
module qw_crossing #(
    parameter int ASK_BITS = 1,
    parameter int ANSWER_BITS = 1
) (
    // Who asks.
    input  logic                   ask_clk,
    input  logic                   ask_rst_i,
    input  logic                   ask_valid_i,
    output logic                   ask_ready_o,
    input  logic [   ASK_BITS-1:0] ask_i,
    output logic                   answer_valid_o,
    input  logic                   answer_ready_i,
    output logic [ANSWER_BITS-1:0] answer_o,
    // Who answers.
    input  logic                   clk,
    input  logic                   rst_i,
    output logic                   ask_valid_o,
    input  logic                   ask_ready_i,
    output logic [   ASK_BITS-1:0] ask_o,
    input  logic                   answer_valid_i,
    output logic                   answer_ready_o,
    input  logic [ANSWER_BITS-1:0] answer_i
);
  logic asked, answered, waits, taken;
  logic [ANSWER_BITS-1:0] answer;
  (* ASYNC_REG = "TRUE" *) logic [1:0] asked_there, answered_here;
  always_comb begin
    ask_ready_o = !waits && !ask_rst_i;
    ask_valid_o = asked_there[1] != answered && !taken;
    answer_ready_o = taken;
  end
  always_ff @(posedge ask_clk) begin
    answered_here <= {answered_here[0], answered};
    if (ask_valid_i && ask_ready_o) begin
      ask_o <= ask_i;
      asked <= !asked;
      waits <= 1'b1;
    end else if (answer_valid_o && answer_ready_i) begin
      answer_valid_o <= 1'b0;
      waits <= 1'b0;
    end else if (waits && answered_here[1] == asked && !answer_valid_o) begin
      answer_valid_o <= 1'b1;
      answer_o <= answer;
    end
    if (ask_rst_i) {waits, answer_valid_o} <= '0;
  end
  always_ff @(posedge clk) begin
    asked_there <= {asked_there[0], asked};
    if (ask_valid_o && ask_ready_i) taken <= 1'b1;
    if (taken && answer_valid_i) begin
      answer <= answer_i;
      answered <= asked_there[1];
      taken <= 1'b0;
    end
    if (rst_i) begin
      answered <= asked_there[1];
      taken <= 1'b0;
    end
  end
endmodule

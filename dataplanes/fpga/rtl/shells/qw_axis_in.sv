// A shell's stream of frames as the core takes it. What is left of a frame that a reset has cut is nobody's: it is
// taken and forgotten, as all is that comes during the reset.
module qw_axis_in
  import qw_gate_pkg::*, qw_shell_pkg::*;
(
    input  logic                  clk,
    input  logic                  rst_i,
    input  logic                  tvalid_i,
    output logic                  tready_o,
    input  logic                  tlast_i,
    input  logic [ BEAT_BITS-1:0] tdata_i,
    input  logic [BEAT_BYTES-1:0] tkeep_i,
    output logic                  valid_o,
    input  logic                  ready_i,
    output logic [ BEAT_BITS-1:0] data_o,
    output logic [           6:0] kept_o
);
  logic midst, next_midst, skips;
  // A reset must not forget that a frame has begun.
  initial midst = 1'b0;
  always_comb begin
    valid_o = tvalid_i && !skips && !rst_i;
    tready_o = ready_i || skips || rst_i;
    data_o = turned(tdata_i);
    kept_o = kept_of(tkeep_i);
    next_midst = tvalid_i && tready_o ? !tlast_i : midst;
  end
  always_ff @(posedge clk) begin
    midst <= next_midst;
    if (rst_i || !next_midst) skips <= next_midst;
  end
endmodule

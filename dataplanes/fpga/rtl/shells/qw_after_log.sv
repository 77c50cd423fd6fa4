// Holds back the answer to a read until all beats of the log that were taken before it are in the host's memory: a
// host that reads that OFF is done finds them there.
module qw_after_log
  import qw_shell_pkg::*;
(
    input  logic                    clk,
    input  logic                    rst_i,
    input  logic [LOG_OPEN_BITS-1:0] open_i,  // beats that are taken and not there yet
    input  logic                    landed_i,  // one more is there, in the order in which they were taken
    input  logic                    valid_i,
    output logic                    ready_o,
    output logic                    valid_o,
    input  logic                    ready_i
);
  logic waits;
  logic [LOG_OPEN_BITS-1:0] ahead;
  always_comb begin
    valid_o = valid_i && waits && ahead == 0;
    ready_o = ready_i && waits && ahead == 0;
  end
  always_ff @(posedge clk) begin
    if (!waits) begin
      waits <= valid_i;
      ahead <= open_i - LOG_OPEN_BITS'(landed_i);
    end else if (ahead != 0) ahead <= ahead - LOG_OPEN_BITS'(landed_i);
    else if (valid_i && ready_i) waits <= 1'b0;
    if (rst_i) waits <= 1'b0;
  end
endmodule

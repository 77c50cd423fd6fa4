// Frames as they came, until somebody knows what shall become of them. A frame that finds no room, or
// turns out to be broken, leaves no trace: its last beat says so.
module qw_frames
  import qw_gate_pkg::*;
#(
    parameter int DEPTH = 512  // beats, a power of two
) (
    input  logic                 clk,
    input  logic                 rst_i,
    input  logic                 valid_i,
    input  logic                 last_i,
    input  logic [BEAT_BITS-1:0] data_i,
    input  logic [          6:0] kept_i,    // bytes of this beat, 1 to 64
    input  logic                 broken_i,  // known with the last beat
    output logic                 lost_o,    // of the last beat's frame: there was no room
    output logic                 valid_o,
    input  logic                 ready_i,
    output logic                 last_o,
    output logic [BEAT_BITS-1:0] data_o,
    output logic [          6:0] kept_o
);
  localparam int BITS = $clog2(DEPTH);

  logic [BEAT_BITS+7:0] memory[DEPTH];
  logic [BITS:0] writing, whole, taken, next_taken;
  logic lost, fits;
  always_comb begin
    next_taken = taken + (BITS + 1)'(valid_o && ready_i);
    // A power of two: full where all bits but the highest are the same.
    fits = (writing ^ taken) != {1'b1, BITS'(0)};
    lost_o = lost || !fits;
  end
  always_ff @(posedge clk) begin
    if (valid_i && !lost_o) memory[writing[BITS-1:0]] <= {last_i, kept_i, data_i};
    {last_o, kept_o, data_o} <= memory[next_taken[BITS-1:0]];
    valid_o <= next_taken != whole;
    taken <= next_taken;
    if (valid_i) begin
      if (!lost_o) writing <= writing + 1'b1;
      lost <= lost_o && !last_i;
      if (last_i) begin
        if (lost_o || broken_i) writing <= whole;
        else whole <= writing + 1'b1;
      end
    end
    if (rst_i) begin
      writing <= '0;
      whole   <= '0;
      taken   <= '0;
      lost    <= 1'b0;
      valid_o <= 1'b0;
    end
  end
endmodule

// Makes records of frames: what stands behind UDP, on beats of its own, with zeros behind its end. Its
// words of 8 bytes are those of the packet. A record's last beat may come while the next frame's first
// one does, so frames need no gap between them.
//
// Each frame that is taken becomes one record, also one that ends too early.
module qw_record
  import qw_pkg::ORIGIN_BYTES, qw_gate_pkg::*;
(
    input  logic                 clk,
    input  logic                 rst_i,
    // A frame; what is not in each beat is known with the first.
    input  logic                 valid_i,
    input  logic                 first_i,
    input  logic                 last_i,
    input  logic [BEAT_BITS-1:0] data_i,
    input  logic                 take_i,
    input  logic [          1:0] lower_i,
    input  logic [          1:0] moved_i,
    input  logic [         15:0] bytes_i,  // of the record
    input  logic [GROUP_BITS-1:0] group_i,
    // Its record, two clocks behind the beat of the frame that completes one of its own.
    output logic                 valid_o,
    output logic                 first_o,
    output logic                 last_o,
    output logic [BEAT_BITS-1:0] data_o,
    output logic [         15:0] bytes_o,
    output logic [GROUP_BITS-1:0] group_o
);
  // The frame's beat before, and what is known of the frame.
  logic [BEAT_BITS-1:0] previous;
  logic taking, skips, begun, flush;
  logic [1:0] lower, moved;
  logic [15:0] bytes, left;  // of the record; those that are not out
  logic [GROUP_BITS-1:0] group;

  logic makes, ends;
  // verilator lint_off UNUSEDSIGNAL
  logic [2*BEAT_BITS-1:0] both;
  // verilator lint_on UNUSEDSIGNAL
  logic [BEAT_BITS-1:0] made;
  always_comb begin
    makes = flush || valid_i && !first_i && taking && !skips;
    ends = flush || left <= 16'(BEAT_BYTES);
    both = {previous, data_i};
    made = '0;
    for (int each = 0; each < 12; each++)
      if ({lower, moved} == {2'(each / 3), 2'(each % 3)})
        made = both[2*BEAT_BITS-1-8*(begin_of(2'(each/3),2'(each%3))%BEAT_BYTES)-:BEAT_BITS];
  end

  // Where a record begins in its frame.
  function automatic int begin_of(input logic [1:0] lower_of, input logic [1:0] moved_of);
    return int'(lower_bytes(lower_of)) + (moved_of == MOVED_WITHOUT_ORIGIN ? ORIGIN_BYTES :
        moved_of == MOVED_WITH_ORIGIN ? -ORIGIN_BYTES : 0);
  endfunction
  function automatic logic skips_a_beat(input logic [1:0] lower_of, input logic [1:0] moved_of);
    return moved_of == MOVED_NOT ? lower_of == LOWER_IPV6_VLAN :
        moved_of == MOVED_WITHOUT_ORIGIN && lower_of != LOWER_IPV4;
  endfunction

  // Stage 1: the beat. Stage 2: without what stands behind the record's end.
  logic valid1, first1, last1;
  logic [BEAT_BITS-1:0] data1;
  logic [15:0] bytes1, left1;
  logic [GROUP_BITS-1:0] group1;
  always_ff @(posedge clk) begin
    flush  <= 1'b0;
    valid1 <= makes;
    first1 <= !begun;
    last1  <= ends;
    data1  <= made;
    left1  <= left;
    bytes1 <= bytes;
    group1 <= group;
    if (makes) begin
      begun <= 1'b1;
      left  <= left - 16'(BEAT_BYTES);
      if (ends) taking <= 1'b0;
    end
    if (valid_i) begin
      previous <= data_i;
      skips  <= 1'b0;
      if (first_i) begin
        taking <= take_i;
        lower  <= lower_i;
        left   <= bytes_i;
        bytes  <= bytes_i;
        group  <= group_i;
        begun  <= 1'b0;
        moved  <= moved_i;
        skips  <= skips_a_beat(lower_i, moved_i);
        flush  <= last_i && take_i;
      end else begin
        flush <= last_i && taking && !(makes && ends);
      end
    end
    valid_o <= valid1;
    first_o <= first1;
    last_o  <= last1;
    bytes_o <= bytes1;
    group_o <= group1;
    for (int at = 0; at < BEAT_BYTES; at++)
      data_o[BEAT_BITS-1-8*at-:8] <= 16'(at) < left1 ? data1[BEAT_BITS-1-8*at-:8] : 8'h00;
    if (rst_i) begin
      flush   <= 1'b0;
      taking  <= 1'b0;
      valid1  <= 1'b0;
      valid_o <= 1'b0;
    end
  end
endmodule

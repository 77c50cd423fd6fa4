// CRC32C of a part of a record, a beat at a time. CHECKSUM_CLOCKS after a record's last beat it is
// there for one clock. The bits of a byte go in from the lowest one.
//
// The rule that a checksum begins with ones is the same as ones added to the first 32 bits. So all of
// this is linear, and each step is a matrix over bits.
module qw_crc32c
  import qw_gate_pkg::*;
(
    input  logic                 clk,
    input  logic                 rst_i,
    input  logic                 valid_i,
    input  logic                 first_i,
    input  logic                 last_i,
    input  logic [BEAT_BITS-1:0] data_i,    // the first byte is the highest
    // The part: bytes of the record, known with its second beat. The header has none of it.
    input  logic [         11:0] begin_i,
    input  logic [         11:0] end_i,
    output logic                 done_o,
    output logic [         31:0] checksum_o
);
  localparam logic [31:0] POLYNOMIAL = 32'h82f63b78;
  localparam int UNDO_STEPS = 6;  // a beat has fewer than 2^6 bytes behind the part

  typedef logic [31:0] column_t;

  // One bit more of zeros; and one less.
  function automatic column_t forward(input column_t state);
    return (state >> 1) ^ (state[0] ? POLYNOMIAL : '0);
  endfunction
  function automatic column_t backward(input column_t state);
    return state[31] ? ((state ^ POLYNOMIAL) << 1) | 32'd1 : state << 1;
  endfunction

  // What a one that goes in so many bits before the end becomes.
  typedef column_t [BEAT_BITS:0] columns_t;
  function automatic columns_t all_columns();
    column_t column;
    column = 32'd1;
    for (int bits = 0; bits <= BEAT_BITS; bits++) begin
      all_columns[bits] = column;
      column = forward(column);
    end
  endfunction
  localparam columns_t COLUMNS = all_columns();

  // What bit n of the state becomes with 2^step bytes of zeros less.
  typedef column_t [UNDO_STEPS-1:0][31:0] undo_t;
  function automatic undo_t all_undone();
    column_t column;
    for (int step = 0; step < UNDO_STEPS; step++)
      for (int at = 0; at < 32; at++) begin
        column = 32'd1 << at;
        for (int bits = 0; bits < 8 << step; bits++) column = backward(column);
        all_undone[step][at] = column;
      end
  endfunction
  localparam undo_t UNDO = all_undone();

  // Stage 1: the part's bytes, with ones added to its first 32 bits.
  logic [5:0] beat;
  logic valid1, last1, begins1;
  logic [BEAT_BITS-1:0] part1;
  logic [5:0] behind1;
  always_ff @(posedge clk) begin
    valid1  <= valid_i && !rst_i;
    last1   <= valid_i && last_i && !rst_i;
    begins1 <= first_i;
    if (rst_i) beat <= '0;
    else if (valid_i) beat <= last_i ? '0 : beat + 1'b1;
    for (int at = 0; at < BEAT_BYTES; at++) begin
      automatic logic [11:0] place = {beat, 6'(at)};
      automatic logic [7:0] byte_in = data_i[BEAT_BITS-1-8*at-:8];
      automatic logic is_in = !first_i && place >= begin_i && place < end_i;
      automatic logic is_begin = !first_i && place >= begin_i && place < begin_i + 12'd4;
      part1[BEAT_BITS-1-8*at-:8] <= (is_in ? byte_in : 8'h00) ^ (is_begin ? 8'hff : 8'h00);
    end
    // Bytes of this beat behind the part.
    behind1 <= 6'd0 - end_i[5:0];
  end

  // Stage 2: what each eighth of the beat adds. Stage 3: all of them.
  localparam int PARTS = 8;
  localparam int PART_BITS = BEAT_BITS / PARTS;
  column_t added2[PARTS], added3;
  always_ff @(posedge clk) begin
    for (int part = 0; part < PARTS; part++) begin
      automatic column_t sum = '0;
      for (int at = 0; at < PART_BITS; at++) begin
        automatic int place = PART_BITS * part + at;  // as bits go in
        // The first byte is the highest; its lowest bit goes in first.
        if (part1[BEAT_BITS-8-8*(place/8)+place%8]) sum ^= COLUMNS[BEAT_BITS-place];
      end
      added2[part] <= sum;
    end
    added3 <= ((added2[0] ^ added2[1]) ^ (added2[2] ^ added2[3])) ^
        ((added2[4] ^ added2[5]) ^ (added2[6] ^ added2[7]));
  end

  // Stage 4: the record so far.
  logic valid3, last3, begins3;
  logic [5:0] behind3;
  qw_delay_clean #(.CLOCKS(2)) valid_delay (.clk, .rst_i, .d(valid1), .q(valid3));
  qw_delay_clean #(.CLOCKS(2)) last_delay (.clk, .rst_i, .d(last1), .q(last3));
  qw_delay #(.WIDTH(1), .CLOCKS(2)) begins_delay (.clk, .d(begins1), .q(begins3));
  qw_delay #(.WIDTH(6), .CLOCKS(2)) behind_delay (.clk, .d(behind1), .q(behind3));
  column_t state4;
  logic last4;
  logic [5:0] behind4;
  always_ff @(posedge clk) begin
    automatic column_t moved = '0;
    for (int at = 0; at < 32; at++) if (state4[at]) moved ^= COLUMNS[BEAT_BITS-at];
    last4   <= last3 && !rst_i;
    behind4 <= behind3;
    if (valid3) state4 <= begins3 ? '0 : moved ^ added3;
  end

  // Stages 5 to 10: without the zeros behind the part.
  column_t state[UNDO_STEPS+1];
  logic [5:0] behind[UNDO_STEPS+1];
  always_comb state[0] = state4;
  always_comb behind[0] = behind4;
  for (genvar step = 0; step < UNDO_STEPS; step++) begin : g_undo
    always_ff @(posedge clk) begin
      automatic column_t undone = '0;
      for (int at = 0; at < 32; at++) if (state[step][at]) undone ^= UNDO[step][at];
      state[step+1]  <= behind[step][step] ? undone : state[step];
      behind[step+1] <= behind[step];
    end
  end
  qw_delay_clean #(.CLOCKS(UNDO_STEPS)) done_delay (.clk, .rst_i, .d(last4), .q(done_o));
  always_comb checksum_o = ~state[UNDO_STEPS];
endmodule

// The digest of a payload (fastpath/include/qw_digest.h): NH twice, the second time with the key moved
// by one word. Takes a record a beat at a time: beat 0 is the header's first 64 bytes, beat 1 begins
// with the tag. DIGEST_CLOCKS after a record's last beat its digest is there for one clock.
module qw_digest
  import qw_pkg::*, qw_gate_pkg::*;
(
    input  logic                 clk,
    input  logic                 rst_i,
    // A record. `words_i`: how many words of the payload, those cut off at its end included.
    input  logic                 valid_i,
    input  logic                 first_i,
    input  logic                 last_i,
    input  logic [BEAT_BITS-1:0] data_i,
    input  logic [GROUP_BITS+1:0] key_i,       // which of the keys, known with the second beat
    input  logic [          7:0] words_i,      // known with the second beat, too
    // The host's: a word of a key.
    input  logic                 key_write_i,
    input  logic [GROUP_BITS+1:0] key_number_i,
    input  logic [          7:0] key_word_i,
    input  logic [         63:0] key_data_i,
    // The digest, one clock long.
    output logic                 done_o,
    output logic [         63:0] first_o,
    output logic [         63:0] second_o
);
  localparam int LANES = BEAT_BYTES / 8;
  localparam int ROW_BITS = 5;

  // A row of keys is for a beat: lane n of beat r has the payload's word 8 (r - 1) - 1 + n, and the key
  // of the same number, for the second sum the next one. So lane 8 of a row is lane 0 of the next one.
  // Each lane has a memory of its own.
  logic [ROW_BITS-1:0] row, write_row;
  logic [2:0] write_lane;
  always_comb {write_row, write_lane} = key_word_i + 8'd9;
  logic [LANES:0][63:0] key1;
  for (genvar lane = 0; lane <= LANES; lane++) begin : g_bank
    logic [63:0] bank[GROUPS_MAX*KEYS<<ROW_BITS];
    always_ff @(posedge clk) begin
      if (key_write_i && write_lane == 3'(lane % LANES))
        bank[{key_number_i, lane == LANES ? write_row - 1'b1 : write_row}] <= key_data_i;
      key1[lane] <= bank[{key_i, row}];
    end
  end

  // Stage 1: the beat's words, which of them count, and its row of keys.
  logic valid1, last1, begins1;
  logic [LANES-1:0][63:0] word1;
  logic [LANES-1:0] counts1;
  always_ff @(posedge clk) begin
    valid1  <= valid_i;
    last1   <= valid_i && last_i;
    begins1 <= first_i;
    if (valid_i) row <= last_i ? '0 : row + 1'b1;
    for (int lane = 0; lane < LANES; lane++) begin
      // Little-endian, as the C loads it; the first byte on the wire is the highest of `data_i`.
      for (int at = 0; at < 8; at++)
        word1[lane][8*at+:8] <= data_i[BEAT_BITS-1-64*lane-8*at-:8];
      counts1[lane] <= row != 0 && {row, 3'(lane)} > 8'd8 && {row, 3'(lane)} < words_i + 8'd9;
    end
    if (rst_i) begin
      valid1 <= 1'b0;
      last1  <= 1'b0;
      row    <= '0;
    end
  end

  // Stage 2: words and keys added, 32 bits and 32 bits. Where no word counts, the product is 0.
  logic [1:0][LANES-1:0][31:0] low2, high2;
  always_ff @(posedge clk) begin
    for (int sum = 0; sum < 2; sum++)
      for (int lane = 0; lane < LANES; lane++) begin
        low2[sum][lane]  <= counts1[lane] ? word1[lane][31:0] + key1[lane+sum][31:0] : '0;
        high2[sum][lane] <= counts1[lane] ? word1[lane][63:32] + key1[lane+sum][63:32] : '0;
      end
  end

  // Stages 3 to 5: products, in the multipliers' own registers. Stages 6 to 8: their sum.
  logic [1:0][LANES-1:0][63:0] product3, product4, product5;
  logic [1:0][3:0][63:0] sum6;
  logic [1:0][1:0][63:0] sum7;
  logic [1:0][63:0] sum8;
  always_ff @(posedge clk) begin
    for (int sum = 0; sum < 2; sum++) begin
      for (int lane = 0; lane < LANES; lane++) begin
        product3[sum][lane] <= 64'(low2[sum][lane]) * 64'(high2[sum][lane]);
        product4[sum][lane] <= product3[sum][lane];
        product5[sum][lane] <= product4[sum][lane];
      end
      for (int at = 0; at < 4; at++)
        sum6[sum][at] <= product5[sum][2*at] + product5[sum][2*at+1];
      for (int at = 0; at < 2; at++) sum7[sum][at] <= sum6[sum][2*at] + sum6[sum][2*at+1];
      sum8[sum] <= sum7[sum][0] + sum7[sum][1];
    end
  end

  // Stage 9: the record's sum. A header's beat, whose products are 0, begins it.
  logic valid8, last8, begins8;
  qw_delay #(.WIDTH(1), .CLOCKS(7)) begins_delay (.clk, .d(begins1), .q(begins8));
  qw_delay_clean #(.CLOCKS(7)) valid_delay (.clk, .rst_i, .d(valid1), .q(valid8));
  qw_delay_clean #(.CLOCKS(7)) last_delay (.clk, .rst_i, .d(last1), .q(last8));
  always_ff @(posedge clk) begin
    done_o <= last8 && !rst_i;
    if (valid8) begin
      first_o  <= (begins8 ? '0 : first_o) + sum8[0];
      second_o <= (begins8 ? '0 : second_o) + sum8[1];
    end
  end
endmodule

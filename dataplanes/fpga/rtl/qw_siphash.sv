// The tag of a packet (fastpath/include/qw_tag.h): SipHash-2-4 of the header's first 64 bytes and, if
// there is a payload, of its digest. One packet a clock, HASH_CLOCKS later its tag. Each stage is half
// a round: one addition of 64 bits and what follows it.
module qw_siphash
  import qw_pkg::*, qw_gate_pkg::*;
(
    input  logic         clk,
    input  logic [127:0] key_i,      // as the host writes it: low in the lower half
    input  logic [511:0] header_i,   // in the order of the wire: the first byte is the highest
    input  logic         longer_i,   // a payload: the digest counts
    input  logic [ 63:0] first_i,    // of the digest
    input  logic [ 63:0] second_i,
    output logic [ 63:0] tag_o
);
  // Words: eight of the header, two of the digest, the last one.
  localparam int WORDS = 11;
  localparam int ROUNDS = 2 * WORDS + 4;
  localparam int STAGES = 2 * ROUNDS;
  // Where what a payload adds begins and ends, in stages.
  localparam int DIGEST_AT = 2 * 2 * 8;
  localparam int DIGEST_END = 2 * 2 * 10;

  typedef struct packed {logic [63:0] v0, v1, v2, v3;} state_t;

  function automatic logic [63:0] rotate(input logic [63:0] value, input int bits);
    return (value << bits) | (value >> (64 - bits));
  endfunction

  function automatic state_t first_half(input state_t s);
    first_half.v0 = s.v0 + s.v1;
    first_half.v2 = s.v2 + s.v3;
    first_half.v1 = rotate(s.v1, 13) ^ first_half.v0;
    first_half.v3 = rotate(s.v3, 16) ^ first_half.v2;
    first_half.v0 = rotate(first_half.v0, 32);
  endfunction

  function automatic state_t second_half(input state_t s);
    second_half.v0 = s.v0 + s.v3;
    second_half.v2 = s.v2 + s.v1;
    second_half.v3 = rotate(s.v3, 21) ^ second_half.v0;
    second_half.v1 = rotate(s.v1, 17) ^ second_half.v2;
    second_half.v2 = rotate(second_half.v2, 32);
  endfunction

  // Word n is needed at stage 4n, and again at stage 4n + 4.
  logic [63:0] word[WORDS];
  always_comb begin
    for (int n = 0; n < 8; n++) begin
      for (int byte_at = 0; byte_at < 8; byte_at++)
        word[n][8*byte_at+:8] = header_i[511-64*n-8*byte_at-:8];
    end
    word[8]  = first_i;
    word[9]  = second_i;
    word[10] = {longer_i ? 8'(TAG_OFFSET + DIGEST_BYTES) : 8'(TAG_OFFSET), 56'd0};
  end

  state_t at[STAGES+1];
  // What the digest's words would change, where there is none; and whether there is.
  state_t before_digest;
  logic   longer;

  always_comb begin
    at[0].v0 = key_i[63:0] ^ 64'h736f6d6570736575;
    at[0].v1 = key_i[127:64] ^ 64'h646f72616e646f6d;
    at[0].v2 = key_i[63:0] ^ 64'h6c7967656e657261;
    at[0].v3 = key_i[127:64] ^ 64'h7465646279746573;
  end

  logic [63:0] due[WORDS];      // each word when its rounds begin
  logic [63:0] past[WORDS];     // and when they have ended
  for (genvar n = 0; n < WORDS; n++) begin : g_word
    qw_delay #(.WIDTH(64), .CLOCKS(4 * n)) due_delay (.clk, .d(word[n]), .q(due[n]));
    qw_delay #(.WIDTH(64), .CLOCKS(4)) past_delay (.clk, .d(due[n]), .q(past[n]));
  end
  qw_delay #(.WIDTH(1), .CLOCKS(DIGEST_END)) longer_delay (.clk, .d(longer_i), .q(longer));
  state_t at_digest;
  always_comb begin
    at_digest = at[DIGEST_AT];
    at_digest.v0 ^= past[7];
  end
  qw_delay #(.WIDTH(256), .CLOCKS(DIGEST_END - DIGEST_AT)) bypass_delay (
      .clk,
      .d(at_digest),
      .q(before_digest)
  );

  for (genvar stage = 0; stage < STAGES; stage++) begin : g_stage
    localparam int WORD = stage / 4;
    state_t in;
    always_comb begin
      in = at[stage];
      if (stage == DIGEST_END && !longer) in = before_digest;
      else if (stage % 4 == 0 && WORD > 0 && WORD <= WORDS) in.v0 ^= past[WORD-1];
      if (stage % 4 == 0 && WORD < WORDS) in.v3 ^= due[WORD];
      if (stage == 4 * WORDS) in.v2 ^= 64'hff;
    end
    always_ff @(posedge clk) at[stage+1] <= stage % 2 == 0 ? first_half(in) : second_half(in);
  end

  always_comb tag_o = at[STAGES].v0 ^ at[STAGES].v1 ^ at[STAGES].v2 ^ at[STAGES].v3;
endmodule

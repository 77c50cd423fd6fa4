// The tags of what comes and of what is sent: one pipeline (qw_siphash), a packet a clock. What comes has
// its turn at once; at line rate it asks every second clock at most, which leaves as many turns for what
// is sent.
module qw_tags
  import qw_gate_pkg::*;
(
    input  logic         clk,
    input  logic         rst_i,
    // The host's: the two words of a key, KEY_WORD_LOW and KEY_WORD_HIGH.
    input  logic         key_write_i,
    input  logic [GROUP_BITS+1:0] key_number_i,
    input  logic [  7:0] key_word_i,
    input  logic [ 63:0] key_data_i,
    // To compare; TAG_CLOCKS later the tag is there for one clock.
    input  logic         check_ask_i,
    input  tag_request_t check_i,
    output logic         check_valid_o,
    // To send.
    input  logic         make_ask_i,
    output logic         make_ready_o,
    input  tag_request_t make_i,
    output logic         make_valid_o,
    output logic [ 63:0] tag_o
);
  logic [63:0] key_low[GROUPS_MAX*KEYS], key_high[GROUPS_MAX*KEYS];
  always_ff @(posedge clk) begin
    if (key_write_i && key_word_i == KEY_WORD_LOW) key_low[key_number_i] <= key_data_i;
    if (key_write_i && key_word_i == KEY_WORD_HIGH) key_high[key_number_i] <= key_data_i;
  end

  tag_request_t chosen;
  always_comb begin
    make_ready_o = !check_ask_i;
    chosen = check_ask_i ? check_i : make_i;
  end

  // verilator lint_off UNUSEDSIGNAL
  tag_request_t asked;  // its key's number is looked up already
  // verilator lint_on UNUSEDSIGNAL
  logic [127:0] key;
  always_ff @(posedge clk) begin
    asked <= chosen;
    key   <= {key_high[chosen.key], key_low[chosen.key]};
  end
  qw_siphash siphash (
      .clk,
      .key_i(key),
      .header_i(asked.header),
      .longer_i(asked.longer),
      .first_i(asked.first),
      .second_i(asked.second),
      .tag_o
  );
  qw_delay_clean #(.CLOCKS(TAG_CLOCKS)) check_delay (.clk, .rst_i, .d(check_ask_i), .q(check_valid_o));
  qw_delay_clean #(.CLOCKS(TAG_CLOCKS)) make_delay (
      .clk,
      .rst_i,
      .d(make_ask_i && make_ready_o),
      .q(make_valid_o)
  );
endmodule

// That a group for which entries are sent again says so (`busy`), from when it is asked to when the last has left: its
// fence waits for that. What the ring holds may be anything.
module qw_again_proof
  import qw_pkg::*, qw_gate_pkg::*;
#(
    localparam int ASKED_MAX = 8,
    localparam int RANGE_BITS = $bits(again_t)
) (
    input logic                  clk,
    input logic                  rst_i,
    input logic                  ask_i,
    input again_t                ask_range_i,
    input logic                  log_wants_i,
    input logic                  log_valid_i,
    input logic [GROUPS_MAX-1:0] off_i,
    input logic [GROUPS_MAX-1:0] busy_o,
    input logic                  packet_valid_o,
    input logic                  packet_ready_i,
    input logic                  packet_last_o,
    input sending_t              sending_o,
    // Within.
    input logic                  is_idle,
    input logic                  sends,
    input logic                  next_entry,
    input logic                  done,
    input logic [           4:0] beat,
    input again_t                now,
    input logic                  range_valid,
    input again_t                range,
    input logic [           3:0] pushed,
    input logic [           3:0] taken,
    input logic [RANGE_BITS-1:0] ranges_memory[ASKED_MAX],
    input logic [           3:0] asked,
    input logic [GROUPS_MAX-1:0][3:0] asked_of
);
  logic begun = 1'b0;
  logic [GROUP_BITS-1:0] watched;
  always_ff @(posedge clk) begin
    begun <= 1'b1;
    watched <= watched;
  end

  logic [3:0] waiting, of_group;
  again_t at_range;
  always_comb begin
    if (!begun) assume (rst_i);
    waiting = pushed - taken;
    of_group = 4'(!is_idle && now.group == watched);
    at_range = '0;
    for (int at = 0; at < ASKED_MAX; at++) begin
      at_range = ranges_memory[3'(taken+4'(at))];
      if (4'(at) < waiting && at_range.group == watched) of_group += 4'd1;
    end
    if (begun) Asked_A: assert (asked == waiting + 4'(!is_idle) && asked <= 4'(ASKED_MAX) && waiting <= 4'(ASKED_MAX) &&
        (!range_valid || waiting != 0));
    if (begun && range_valid) RangeHead_A: assert (range == again_t'(ranges_memory[taken[2:0]]));
    if (begun) Counted_A: assert (asked_of[watched] == of_group);
    // Who sends is busy.
    if (begun && packet_valid_o && sending_o.group == watched) Busy_A: assert (busy_o[watched]);
  end

  // What was begun is sent to its end, also of a group that is off; and nothing of one that is off begins.
  logic is_inside;
  always_ff @(posedge clk) begin
    if (packet_valid_o && packet_ready_i) is_inside <= !packet_last_o;
    if (rst_i) is_inside <= 1'b0;
  end
  always_comb begin
    // A slot is shorter than its place.
    if (packet_valid_o && beat == '1) assume (packet_last_o);
    if (begun) Inside_A: assert (is_inside == (sends && beat != 0));
    if (begun && !is_inside && off_i[watched]) OffBeginsNothing_A: assert (!packet_valid_o || sending_o.group != watched);
  end

  // What was asked ends: while packets are taken, nothing is written and nothing else is asked for, how many clocks pass
  // without a beat that goes or an entry that is done with. And entries are not more than may be.
  logic [2:0] still;
  always_ff @(posedge clk)
    still <= !rst_i && !is_idle && packet_ready_i && !log_wants_i && !log_valid_i && !ask_i &&
        !(packet_valid_o || next_entry || done) ? still + 3'd1 : '0;
  always_comb begin
    if (begun) Moves_A: assert (still <= 3'd4);
    if (begun && !is_idle && !now.answers) Short_A: assert (now.upto - now.from < 64'(RESEND_ENTRIES_MAX));
  end
endmodule
bind qw_again qw_again_proof proof (
    .*, .is_idle(state == IDLE), .sends(state == SENDS), .pushed(ranges.written), .taken(ranges.taken), .ranges_memory(ranges.memory)
);

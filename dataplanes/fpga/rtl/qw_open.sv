// Takes frames, finds those for a plane of ours, and checks them before any state is read: form, tag,
// a command's checksum (qw_open, dataplanes/xdp/bpf/plane.bpf.c; fastpath/include/qw_verify.h). Gives a
// verdict for each frame, in the order in which they came, and the frame itself beside it.
//
// Nobody holds up what comes: a frame that finds no room is lost, whole, and counted.
module qw_open
  import qw_pkg::*, qw_gate_pkg::*;
#(
    parameter int BEATS = 512  // that may wait for their verdict
) (
    input  logic                 clk,
    input  logic                 rst_i,
    // Frames from the network.
    input  logic                 rx_valid_i,
    input  logic                 rx_last_i,
    input  logic [BEAT_BITS-1:0] rx_data_i,   // the first byte is the highest
    input  logic [          6:0] rx_kept_i,   // bytes of this beat, 1 to 64
    input  logic                 rx_error_i,  // known with the last beat: the frame is broken
    // The host's.
    input  place_t               place_i,
    input  logic [GROUPS_MAX-1:0][KEYS-1:0] keys_valid_i,
    input  logic                 key_write_i,
    input  logic [GROUP_BITS+1:0] key_number_i,  // the group, then the key
    input  logic [          7:0] key_word_i,
    input  logic [         63:0] key_data_i,
    // What shall become of each frame, and its beats.
    output logic                 valid_o,
    input  logic                 ready_i,
    output verdict_t             verdict_o,
    output logic                 frame_valid_o,
    input  logic                 frame_ready_i,
    output logic                 frame_last_o,
    output logic [BEAT_BITS-1:0] frame_data_o,
    output logic [          6:0] frame_kept_o,
    // A tag is asked for in any clock, and said TAG_CLOCKS later.
    output logic                 tag_ask_o,
    output tag_request_t         tag_request_o,
    input  logic                 tag_valid_i,
    input  logic [         63:0] tag_i,
    // A frame for which there was no room; a broken one.
    output logic                 lost_o,
    output logic                 broken_o
);
  // ---- Frames. Stage 1: as it came. Stage 2: what its first beat says.
  logic valid1, first1, last1, error1, between;
  logic [BEAT_BITS-1:0] data1;
  logic [6:0] kept1;
  found_t found1;
  qw_find find (.data_i(data1), .place_i, .found_o(found1));

  logic valid2, first2, last2, error2;
  logic [BEAT_BITS-1:0] data2;
  logic [6:0] kept2;
  found_t found2;  // of the frame, from its first beat on
  always_ff @(posedge clk) begin
    valid1 <= rx_valid_i && !rst_i;
    first1 <= between;
    last1  <= rx_last_i;
    data1  <= rx_data_i;
    kept1  <= rx_kept_i;
    error1 <= rx_error_i;
    if (rst_i) between <= 1'b1;
    else if (rx_valid_i) between <= rx_last_i;
    valid2 <= valid1 && !rst_i;
    first2 <= first1;
    last2  <= last1;
    data2  <= data1;
    kept2  <= kept1;
    error2 <= error1;
    if (valid1 && first1) found2 <= found1;
  end

  // Only so many frames may be under way: so no queue below can be full.
  logic [$clog2(FRAMES_MAX):0] under_way;
  logic admits, admitted, no_room2;
  always_comb admits = first2 ? under_way < ($clog2(FRAMES_MAX) + 1)'(FRAMES_MAX) : admitted;

  qw_frames #(
      .DEPTH(BEATS)
  ) frames (
      .clk,
      .rst_i,
      .valid_i (valid2 && admits),
      .last_i  (last2),
      .data_i  (data2),
      .kept_i  (kept2),
      .broken_i(error2),
      .lost_o  (no_room2),
      .valid_o (frame_valid_o),
      .ready_i (frame_ready_i),
      .last_o  (frame_last_o),
      .data_o  (frame_data_o),
      .kept_o  (frame_kept_o)
  );

  // Stage 3: how long the frame was.
  typedef struct packed {
    logic   gone;  // it was lost, or broken
    logic   fits;  // it is as long as it says
    found_t found;
  } seen_t;
  logic valid3, gone3;
  logic [16:0] bytes, bytes3;
  found_t found3;
  seen_t seen3;
  always_ff @(posedge clk) begin
    if (valid2) begin
      admitted <= admits;
      bytes <= last2 ? '0 : bytes + 17'(kept2);
    end
    valid3   <= valid2 && admits && last2 && !rst_i;
    gone3    <= no_room2 || error2;
    bytes3   <= bytes + 17'(kept2);
    found3   <= found2;
    lost_o   <= valid2 && last2 && !error2 && (!admits || no_room2) && !rst_i;
    broken_o <= valid2 && last2 && error2 && !rst_i;
    if (rst_i) bytes <= '0;
  end
  always_comb begin
    seen3.gone = gone3;
    seen3.found = found3;
    seen3.fits = 17'(lower_bytes(found3.lower)) + 17'(found3.udp_bytes) <= bytes3 + 17'(UDP_BYTES);
  end
  logic seen_valid, take;
  seen_t seen;
  qw_fifo #(
      .WIDTH($bits(seen_t)),
      .DEPTH(FRAMES_MAX)
  ) seen_queue (
      .clk,
      .rst_i,
      .push_i (valid3),
      .data_i (seen3),
      .valid_o(seen_valid),
      .ready_i(take),
      .data_o (seen)
  );

  // ---- Records, and what stands in them.
  logic record_valid, record_first, record_last;
  logic [BEAT_BITS-1:0] record;
  logic [15:0] record_bytes;
  logic [GROUP_BITS-1:0] record_group;
  qw_record records (
      .clk,
      .rst_i,
      .valid_i(valid2 && admits),
      .first_i(first2),
      .last_i (last2),
      .data_i (data2),
      .take_i (found2.ours),
      .lower_i(found2.lower),
      .moved_i(MOVED_NOT),
      .bytes_i(found2.udp_bytes - 16'(UDP_BYTES)),
      .group_i(found2.group),
      .valid_o(record_valid),
      .first_o(record_first),
      .last_o (record_last),
      .data_o (record),
      .bytes_o(record_bytes),
      .group_o(record_group)
  );

  typedef struct packed {
    header_t header;
    logic [15:0] bytes;
    logic [GROUP_BITS-1:0] group;
  } packet_t;
  packet_t packet, packet4;
  logic second;
  always_ff @(posedge clk) begin
    if (rst_i) second <= 1'b0;
    else if (record_valid) second <= record_first && !record_last;
    if (record_valid && record_first) begin
      packet.header[HEADER_BITS-1-:BEAT_BITS] <= record;
      packet.bytes <= record_bytes;
      packet.group <= record_group;
    end
    if (record_valid && second) packet.header.tag <= record[BEAT_BITS-1-:64];
  end

  logic [1:0] key_number;
  logic [11:0] command_at;
  always_comb begin
    key_number = {is_clients(packet.header.kind), (packet.header.flags & FLAG_EPOCH) != 0};
    command_at = 12'(HEADER_BYTES) + (packet.header.kind == KIND_FORWARD ? 12'(ORIGIN_BYTES) : '0);
  end

  // Stage 4: digest and checksum, so many clocks behind the record's last beat.
  logic digest_done, done4;
  logic [63:0] first_sum, second_sum, first4, second4;
  logic [31:0] checksum4;
  qw_digest digest (
      .clk,
      .rst_i,
      .valid_i(record_valid),
      .first_i(record_first),
      .last_i(record_last),
      .data_i(record),
      .key_i({packet.group, key_number}),
      .words_i(8'((packet.header.payload_bytes + 16'd7) >> 3)),
      .key_write_i(key_write_i && key_word_i < 8'(DIGEST_KEY_WORDS)),
      .key_number_i,
      .key_word_i,
      .key_data_i,
      .done_o(digest_done),
      .first_o(first_sum),
      .second_o(second_sum)
  );
  qw_crc32c checksum (
      .clk,
      .rst_i,
      .valid_i(record_valid),
      .first_i(record_first),
      .last_i(record_last),
      .data_i(record),
      .begin_i(command_at),
      .end_i(12'(HEADER_BYTES) + packet.header.payload_bytes[11:0]),
      .done_o(done4),
      .checksum_o(checksum4)
  );
  always_ff @(posedge clk) begin
    first4  <= first_sum;
    second4 <= second_sum;
  end
  // The packet is complete in the clock behind the record's last beat.
  qw_delay #(.WIDTH($bits(packet_t)), .CLOCKS(CHECKSUM_CLOCKS - 1)) packet_delay (
      .clk,
      .d(packet),
      .q(packet4)
  );
  // verilator lint_off UNUSEDSIGNAL
  logic unused;
  always_comb unused = digest_done;  // DIGEST_CLOCKS, one before done4
  // verilator lint_on UNUSEDSIGNAL

  // ---- Stage 5: form; the tag is asked for. Stage 6: keys.
  function automatic logic payload_fits(input logic [7:0] kind, input logic [15:0] size);
    unique case (kind)
      KIND_REQUEST, KIND_APPEND, KIND_ANSWER, KIND_SUBMIT, KIND_P1B, KIND_P2A, KIND_P2B:
      return size <= 16'(PAYLOAD_BYTES_MAX);
      KIND_FORWARD:
      return size >= 16'(ORIGIN_BYTES) && size <= 16'(PAYLOAD_BYTES_MAX);
      KIND_APPEND_OK, KIND_RETRANSMIT, KIND_HEARTBEAT, KIND_HEARTBEAT_OK, KIND_CHECKPOINT:
      return size == 0;
      KIND_P1A, KIND_ADMIT: return size <= 16'(ACCEPTORS_MAX * LIFE_BYTES);
      default: return 1'b0;
    endcase
  endfunction
  function automatic logic brings_command(input logic [7:0] kind);
    return kind == KIND_REQUEST || kind == KIND_FORWARD || kind == KIND_SUBMIT;
  endfunction
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [7:0] check_form(input header_t header, input logic [15:0] found);
    automatic logic [16:0] packet_bytes = 17'(HEADER_BYTES) + 17'(header.payload_bytes);
    if (found < 16'(HEADER_BYTES)) return REASON_OF_HEADER_WHOLE;
    if (header.magic != MAGIC) return REASON_OF_MAGIC;
    if (header.version != VERSION) return REASON_OF_VERSION;
    if (!payload_fits(header.kind, header.payload_bytes)) return REASON_OF_PAYLOAD_SIZE;
    if (packet_bytes > 17'(found)) return REASON_OF_PACKET_WHOLE;
    if (packet_bytes != 17'(found)) return REASON_OF_EXACT_LENGTH;
    if ((header.flags & ~FLAGS_KNOWN) != 0) return REASON_OF_FLAGS_KNOWN;
    return REASON_NONE;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  typedef struct packed {
    header_t header;
    logic [7:0] reason;      // without tag and checksum
    logic wrong_checksum;
  } checked_t;
  logic valid5, valid6;
  checked_t checked5, checked6;
  logic [GROUP_BITS+1:0] key5;
  logic [63:0] first5, second5, said;
  logic key_valid5;
  always_comb key_valid5 = keys_valid_i[key5[GROUP_BITS+1-:GROUP_BITS]][key5[1:0]];
  always_ff @(posedge clk) begin
    valid5 <= done4 && !rst_i;
    checked5.header <= packet4.header;
    checked5.reason <= check_form(packet4.header, packet4.bytes);
    checked5.wrong_checksum <= brings_command(packet4.header.kind) && checksum4 != packet4.header.payload_crc32c;
    key5 <= {packet4.group, is_clients(packet4.header.kind), (packet4.header.flags & FLAG_EPOCH) != 0};
    first5 <= first4;
    second5 <= second4;
    valid6 <= valid5 && !rst_i;
    checked6 <= checked5;
    if (checked5.reason == REASON_NONE && !key_valid5) checked6.reason <= REASON_OF_KEY_VALID;
  end
  always_comb begin
    tag_ask_o = valid5;
    tag_request_o.key = key5;
    tag_request_o.header = checked5.header[HEADER_BITS-1-:BEAT_BITS];
    tag_request_o.longer = checked5.header.payload_bytes != 0;
    tag_request_o.first = first5;
    tag_request_o.second = second5;
  end
  qw_delay #(.WIDTH(64), .CLOCKS(TAG_CLOCKS)) said_delay (.clk, .d(checked5.header.tag), .q(said));

  logic checked_valid, tag_valid, take_checked, is_right;
  checked_t checked;
  qw_fifo #(
      .WIDTH($bits(checked_t)),
      .DEPTH(FRAMES_MAX)
  ) checked_queue (
      .clk,
      .rst_i,
      .push_i (valid6),
      .data_i (checked6),
      .valid_o(checked_valid),
      .ready_i(take_checked),
      .data_o (checked)
  );
  qw_fifo #(
      .WIDTH(1),
      .DEPTH(FRAMES_MAX)
  ) tag_queue (
      .clk,
      .rst_i,
      .push_i (tag_valid_i),
      .data_i (tag_i == said),
      .valid_o(tag_valid),
      .ready_i(take_checked),
      .data_o (is_right)
  );

  // ---- The verdict.
  logic [7:0] reason;
  always_comb begin
    take = seen_valid && (!seen.found.ours || checked_valid && tag_valid) && (!valid_o || ready_i);
    take_checked = take && seen.found.ours;
    if (checked.reason != REASON_NONE) reason = checked.reason;
    else if (!is_right) reason = REASON_OF_TAG;
    else if (checked.wrong_checksum) reason = REASON_CHECKSUM;
    else reason = REASON_NONE;
  end
  always_ff @(posedge clk) begin
    if (!valid_o || ready_i) begin
      valid_o <= take && !seen.gone;
      verdict_o.found <= seen.found;
      verdict_o.header <= checked.header;
      verdict_o.reason <= reason;
      verdict_o.is_ours <= seen.found.ours && seen.fits && reason != REASON_NOT_OURS;
      verdict_o.foreign <= seen.found.ours && seen.fits && reason == REASON_NOT_OURS;
    end
    under_way <= under_way + ($clog2(FRAMES_MAX) + 1)'(valid2 && first2 && admits) -
        ($clog2(FRAMES_MAX) + 1)'(take);
    if (rst_i) begin
      valid_o   <= 1'b0;
      under_way <= '0;
    end
  end
endmodule

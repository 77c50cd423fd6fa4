// Sends packets: signs each one (qw_seal, dataplanes/xdp/bpf/copy.h), and puts Ethernet, IP and UDP before it
// (qw_address, frame.h), once for each of those that it goes to.
module qw_seal
  import qw_pkg::*, qw_gate_pkg::*;
#(
    parameter int BEATS = 256,  // of packets that wait for their tag or for their turn
    parameter int PACKETS_MAX = 64,  // that may be within
    parameter int UNASKED_MAX = 16,  // of those, packets whose tag is not asked for
    parameter int JOBS_MAX = 8  // frames that are known and not begun
) (
    input  logic                 clk,
    input  logic                 rst_i,
    // A packet. Its first two beats have room for the header, whatever stands there; the payload is where a
    // record has it (qw_record), with zeros behind its end.
    input  logic                 valid_i,
    output logic                 ready_o,
    input  logic                 last_i,
    input  logic [BEAT_BITS-1:0] data_i,
    input  sending_t             sending_i,  // known with the first beat
    // The host's.
    // verilator lint_off UNUSEDSIGNAL
    input  place_t               place_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic                 peer_write_i,
    input  logic [GROUP_BITS+2:0] peer_number_i,  // the group, then the replica
    input  endpoint_t            peer_i,
    input  logic                 key_write_i,
    input  logic [GROUP_BITS+1:0] key_number_i,
    input  logic [          7:0] key_word_i,
    input  logic [         63:0] key_data_i,
    // Its tag.
    output logic                 tag_ask_o,
    input  logic                 tag_ready_i,
    output tag_request_t         tag_request_o,
    input  logic                 tag_valid_i,
    input  logic [         63:0] tag_i,
    // Frames for the network. Once a frame has begun there is a beat of it in each clock.
    output logic                 tx_valid_o,
    input  logic                 tx_ready_i,
    output logic                 tx_last_o,
    output logic [BEAT_BITS-1:0] tx_data_o,
    output logic [          6:0] tx_kept_o,
    // All that came before a fence has left.
    output logic                 fence_o,
    // A frame was made; one was not, because nobody knows the Ethernet address.
    output logic                 sent_o,
    output logic                 no_neighbour_o,
    output logic                 busy_o  // a packet has not left yet
);
  localparam int BITS = $clog2(BEATS);
  localparam int BLOCK_BITS = 8 * LOWER_IPV6_VLAN_BYTES;

  // ---- In. Stage 1: the beat, with the header in its place.
  logic takes, between;
  logic valid1, first1, last1;
  logic [BEAT_BITS-1:0] data1;
  sending_t sending1;
  header_t header;
  always_comb begin
    takes = valid_i && ready_o;
    header = sending_i.header;
    header.tag = '0;
    header.flags[0] = is_clients(header.kind) ? place_i.clients_epoch[sending_i.group] :
        place_i.cluster_epoch[sending_i.group];
  end
  always_ff @(posedge clk) begin
    valid1  <= takes && !rst_i;
    first1  <= between;
    last1   <= last_i;
    if (takes) begin
      between <= last_i;
      data1   <= between ? header[HEADER_BITS-1-:BEAT_BITS] : data_i;
      if (between) begin
        sending1 <= sending_i;
        sending1.header <= header;
      end
    end
    if (rst_i) between <= 1'b1;
  end
  // The second beat has the tag in it.
  logic is_second;
  always_ff @(posedge clk) begin
    if (rst_i) is_second <= 1'b0;
    else if (valid1) is_second <= first1;
  end
  logic [BEAT_BITS-1:0] data1_untagged;
  always_comb data1_untagged = is_second ? {64'd0, data1[BEAT_BITS-65:0]} : data1;

  // The packets, until all that they go to have them.
  logic [BEAT_BITS-1:0] memory[BEATS];
  logic [BITS-1:0] write_at, begins_at;
  logic [BITS:0] used;
  logic [4:0] beats;  // of the packet so far
  logic [BITS:0] freed;
  logic [$clog2(PACKETS_MAX):0] packets;
  logic [$clog2(UNASKED_MAX):0] unasked;
  logic ends_packet, asked;
  always_ff @(posedge clk) begin
    if (valid1) memory[write_at] <= data1_untagged;
    if (valid1) begin
      write_at <= write_at + 1'b1;
      beats <= last1 ? '0 : beats + 1'b1;
      if (last1) begins_at <= write_at + 1'b1;
    end
    used <= used + (BITS + 1)'(takes) - freed;
    packets <= packets + ($clog2(PACKETS_MAX) + 1)'(takes && between) - ($clog2(PACKETS_MAX) + 1)'(ends_packet);
    unasked <= unasked + ($clog2(UNASKED_MAX) + 1)'(takes && between) - ($clog2(UNASKED_MAX) + 1)'(asked);
    // Who was told that there is room may rely on it: an entry's beat that is offered to the log as well stays.
    ready_o <= ready_o && !takes ||
        used < (BITS + 1)'(BEATS - 4) && packets < ($clog2(PACKETS_MAX) + 1)'(PACKETS_MAX - 2) &&
        unasked < ($clog2(UNASKED_MAX) + 1)'(UNASKED_MAX - 2);
    if (rst_i) begin
      write_at <= '0;
      begins_at <= '0;
      beats <= '0;
      used <= '0;
      packets <= '0;
      unasked <= '0;
      ready_o <= 1'b0;
    end
  end

  // ---- What is known of a packet, once all of it is in.
  typedef struct packed {
    logic [BITS-1:0] begins_at;
    logic [4:0] beats;
    logic [15:0] payload_bytes;
    logic [GROUP_BITS-1:0] group;
    logic [REPLICAS_MAX-1:0] peers;
    endpoint_t to;
    logic is_fence;
  } packet_t;
  packet_t packet1, packet;
  always_comb begin
    packet1.begins_at = begins_at;
    packet1.beats = beats + 1'b1;
    packet1.payload_bytes = sending1.header.payload_bytes;
    packet1.group = sending1.group;
    packet1.peers = sending1.peers;
    packet1.to = sending1.to;
    packet1.is_fence = sending1.is_fence;
  end
  logic packet_valid, sum_valid, tag_valid, take;
  qw_fifo #(.WIDTH($bits(packet_t)), .DEPTH(PACKETS_MAX)) packet_queue (
      .clk, .rst_i, .push_i(valid1 && last1), .data_i(packet1),
      .valid_o(packet_valid), .ready_i(take), .data_o(packet)
  );

  // ---- Digest, and the sum that IPv6 asks for.
  logic digest_done;
  logic [63:0] first9, second9;
  logic [GROUP_BITS+1:0] key1;
  always_comb key1 = {sending1.group, is_clients(sending1.header.kind), sending1.header.flags[0]};
  qw_digest digest (
      .clk,
      .rst_i,
      .valid_i(valid1),
      .first_i(first1),
      .last_i(last1),
      .data_i(data1_untagged),
      .key_i(key1),
      .words_i(8'((sending1.header.payload_bytes + 16'd7) >> 3)),
      .key_write_i(key_write_i && key_word_i < 8'(DIGEST_KEY_WORDS)),
      .key_number_i,
      .key_word_i,
      .key_data_i,
      .done_o(digest_done),
      .first_o(first9),
      .second_o(second9)
  );
  typedef struct packed {
    logic [GROUP_BITS+1:0] key;
    logic [BEAT_BITS-1:0] header;
    logic longer;
  } hashed_t;
  hashed_t hashed1, hashed9;
  always_comb begin
    hashed1.key = key1;
    hashed1.header = sending1.header[HEADER_BITS-1-:BEAT_BITS];
    hashed1.longer = sending1.header.payload_bytes != 0;
  end
  qw_delay #(.WIDTH($bits(hashed_t)), .CLOCKS(DIGEST_CLOCKS)) hashed_delay (.clk, .d(hashed1), .q(hashed9));

  logic [7:0][17:0] sum2;
  logic [20:0] sum3;
  logic [26:0] sum4, sum9;
  logic valid3, begins3;
  qw_delay_clean #(.CLOCKS(2)) sum_valid_delay (.clk, .rst_i, .d(valid1), .q(valid3));
  qw_delay #(.WIDTH(1), .CLOCKS(2)) sum_begins_delay (.clk, .d(first1), .q(begins3));
  always_ff @(posedge clk) begin
    for (int at = 0; at < 8; at++)
      sum2[at] <= 18'(data1_untagged[64*at+:16]) + 18'(data1_untagged[64*at+16+:16]) +
          18'(data1_untagged[64*at+32+:16]) + 18'(data1_untagged[64*at+48+:16]);
    sum3 <= 21'(sum2[0]) + 21'(sum2[1]) + 21'(sum2[2]) + 21'(sum2[3]) + 21'(sum2[4]) + 21'(sum2[5]) +
        21'(sum2[6]) + 21'(sum2[7]);
    if (valid3) sum4 <= (begins3 ? '0 : sum4) + 27'(sum3);
  end
  qw_delay #(.WIDTH(27), .CLOCKS(DIGEST_CLOCKS - 3)) sum_delay (.clk, .d(sum4), .q(sum9));
  logic [26:0] sum;
  qw_fifo #(.WIDTH(27), .DEPTH(PACKETS_MAX)) sum_queue (
      .clk, .rst_i, .push_i(digest_done), .data_i(sum9),
      .valid_o(sum_valid), .ready_i(take), .data_o(sum)
  );

  // ---- The tag.
  tag_request_t request9;
  always_comb begin
    request9.key = hashed9.key;
    request9.header = hashed9.header;
    request9.longer = hashed9.longer;
    request9.first = first9;
    request9.second = second9;
    asked = tag_ask_o && tag_ready_i;
  end
  qw_fifo #(.WIDTH($bits(tag_request_t)), .DEPTH(UNASKED_MAX)) request_queue (
      .clk, .rst_i, .push_i(digest_done), .data_i(request9),
      .valid_o(tag_ask_o), .ready_i(tag_ready_i), .data_o(tag_request_o)
  );
  logic [63:0] tag;
  qw_fifo #(.WIDTH(64), .DEPTH(PACKETS_MAX)) tag_queue (
      .clk, .rst_i, .push_i(tag_valid_i), .data_i(tag_i),
      .valid_o(tag_valid), .ready_i(take), .data_o(tag)
  );

  // ---- One frame for each of those that the packet goes to. Stage J1: who. J2: sums. J3: checksums.
  typedef struct packed {
    packet_t packet;
    logic [63:0] tag;
    logic [26:0] added;  // its words, for the checksum
  } sealed_t;
  sealed_t now;
  logic busy, to_one, j0_valid, j0_last;
  logic [REPLICAS_MAX-1:0] peers_left;
  logic [2:0] peer;
  logic [3:0] jobs;  // under way, those in the queue included
  logic job_taken;
  always_comb begin
    peer = '0;
    for (int slot = REPLICAS_MAX - 1; slot >= 0; slot--) if (peers_left[slot]) peer = 3'(slot);
    j0_valid = busy && jobs < 4'(JOBS_MAX);
    j0_last = to_one || (peers_left & (peers_left - 1'b1)) == 0;
    take = packet_valid && sum_valid && tag_valid && (!busy || j0_valid && j0_last);
  end
  always_ff @(posedge clk) begin
    if (j0_valid) begin
      peers_left <= peers_left & (peers_left - 1'b1);
      if (j0_last) busy <= 1'b0;
    end
    if (take) begin
      busy <= 1'b1;
      now.packet <= packet;
      now.tag <= tag;
      now.added <= sum;
      peers_left <= packet.peers;
      to_one <= packet.peers == 0;
    end
    jobs <= jobs + 4'(j0_valid) - 4'(job_taken);
    if (rst_i) begin
      busy <= 1'b0;
      jobs <= '0;
    end
  end

  endpoint_t peers[GROUPS_MAX<<3];
  always_ff @(posedge clk) if (peer_write_i) peers[peer_number_i] <= peer_i;

  typedef struct packed {
    sealed_t sealed;
    endpoint_t to;
    endpoint_t own;
    logic is_ipv6;
    logic last;
  } way_t;
  function automatic logic [19:0] halves(input logic [127:0] of);
    halves = '0;
    for (int at = 0; at < 8; at++) halves += 20'(of[16*at+:16]);
  endfunction
  function automatic logic [15:0] folded(input logic [27:0] of);
    automatic logic [16:0] once = 17'(of[15:0]) + 17'(of[27:16]);
    return once[15:0] + 16'(once[16]);
  endfunction

  logic valid_j1, valid_j2, valid_j3;
  way_t way_j1, way_j2, way_j3;
  logic [15:0] udp_bytes_j1;
  logic [27:0] ip_sum_j2, udp_sum_j2;
  logic [15:0] ip_check_j3, udp_check_j3;
  always_comb udp_bytes_j1 = 16'(UDP_BYTES + HEADER_BYTES) + way_j1.sealed.packet.payload_bytes;
  always_ff @(posedge clk) begin
    valid_j1 <= j0_valid && !rst_i;
    way_j1.sealed <= now;
    way_j1.last <= j0_last;
    way_j1.to <= to_one ? now.packet.to : peers[{now.packet.group, peer}];
    way_j1.own <= place_i.at[now.packet.group];
    way_j1.is_ipv6 <= place_i.at[now.packet.group].address[127:32] != IPV4_MAPPED;
    valid_j2 <= valid_j1 && !rst_i;
    way_j2 <= way_j1;
    ip_sum_j2 <= 28'h4500 + 28'h4000 + {12'd0, 8'd64, 8'd17} + 28'(udp_bytes_j1 + 16'd20) +
        28'(way_j1.own.address[31:16]) + 28'(way_j1.own.address[15:0]) +
        28'(way_j1.to.address[31:16]) + 28'(way_j1.to.address[15:0]);
    udp_sum_j2 <= 28'(way_j1.sealed.added) + 28'(halves({64'd0, way_j1.sealed.tag})) +
        28'(halves(way_j1.own.address)) + 28'(halves(way_j1.to.address)) + 28'(udp_bytes_j1) +
        28'(udp_bytes_j1) + 28'd17 + 28'(way_j1.own.port) + 28'(way_j1.to.port);
    valid_j3 <= valid_j2 && !rst_i;
    way_j3 <= way_j2;
    ip_check_j3 <= ~folded(ip_sum_j2);
    udp_check_j3 <= ~folded(udp_sum_j2);
  end

  // What stands before the packet, from the highest byte on.
  typedef struct packed {
    logic [BITS-1:0] begins_at;
    logic [4:0] beats;
    logic [11:0] bytes;  // of the frame
    logic [1:0] lower;
    logic [BLOCK_BITS-1:0] block;
    logic [63:0] tag;
    logic known;         // where it goes to
    logic last;          // nobody else gets this packet
    logic is_fence;
  } job_t;
  job_t job_j3, job;
  logic [15:0] udp_bytes_j3;
  logic [31:0] vlan_j3;
  logic [319:0] ip_j3;
  logic [63:0] udp_j3;
  logic has_vlan;
  always_comb begin
    has_vlan = place_i.vlan != 0;
    udp_bytes_j3 = 16'(UDP_BYTES + HEADER_BYTES) + way_j3.sealed.packet.payload_bytes;
    vlan_j3 = {16'h8100, 4'd0, place_i.vlan};
    udp_j3 = {way_j3.own.port, way_j3.to.port, udp_bytes_j3,
              !way_j3.is_ipv6 ? 16'd0 : udp_check_j3 == 0 ? 16'hffff : udp_check_j3};
    ip_j3 = way_j3.is_ipv6 ?
        {32'h60000000, udp_bytes_j3, 8'd17, 8'd64, way_j3.own.address, way_j3.to.address} :
        {16'h4500, udp_bytes_j3 + 16'd20, 32'h00004000, 8'd64, 8'd17, ip_check_j3,
         way_j3.own.address[31:0], way_j3.to.address[31:0], 160'd0};
    job_j3.begins_at = way_j3.sealed.packet.begins_at;
    job_j3.beats = way_j3.sealed.packet.beats;
    job_j3.lower = {way_j3.is_ipv6, has_vlan};
    job_j3.bytes = 12'(lower_bytes(job_j3.lower)) + 12'(HEADER_BYTES) + way_j3.sealed.packet.payload_bytes[11:0];
    job_j3.tag = way_j3.sealed.tag;
    job_j3.known = way_j3.to.mac != 0;
    job_j3.last = way_j3.last;
    job_j3.is_fence = way_j3.sealed.packet.is_fence;
    job_j3.block = '0;
    unique case (job_j3.lower)
      LOWER_IPV4: job_j3.block[BLOCK_BITS-1-:8*LOWER_IPV4_BYTES] =
          {way_j3.to.mac, way_j3.own.mac, 16'h0800, ip_j3[319-:160], udp_j3};
      LOWER_IPV4_VLAN: job_j3.block[BLOCK_BITS-1-:8*LOWER_IPV4_VLAN_BYTES] =
          {way_j3.to.mac, way_j3.own.mac, vlan_j3, 16'h0800, ip_j3[319-:160], udp_j3};
      LOWER_IPV6: job_j3.block[BLOCK_BITS-1-:8*LOWER_IPV6_BYTES] =
          {way_j3.to.mac, way_j3.own.mac, 16'h86dd, ip_j3, udp_j3};
      LOWER_IPV6_VLAN: job_j3.block =
          {way_j3.to.mac, way_j3.own.mac, vlan_j3, 16'h86dd, ip_j3, udp_j3};
    endcase
  end
  logic job_valid;
  qw_fifo #(.WIDTH($bits(job_t)), .DEPTH(JOBS_MAX)) job_queue (
      .clk, .rst_i, .push_i(valid_j3), .data_i(job_j3),
      .valid_o(job_valid), .ready_i(job_taken), .data_o(job)
  );

  // ---- Out. Stage E1: a beat of the packet. E2: with the tag. E3: moved behind what stands before it.
  localparam int OUT_BEATS = 32;
  typedef struct packed {
    logic first, last, has_packet, has_tag;
    logic [6:0] kept;
    logic [1:0] lower;
    logic [BLOCK_BITS-1:0] block;
    logic [63:0] tag;
  } step_t;
  // verilator lint_off UNUSEDSIGNAL
  step_t step, step_e1, step_e2;  // the last stage has no use for all of it
  // verilator lint_on UNUSEDSIGNAL
  logic valid_e0, valid_e1, valid_e2, valid_e3;
  logic [4:0] out_beat, packet_beat;
  logic [5:0] out_beats;
  logic [5:0] outgoing;  // beats that are made and not taken
  logic fenced;
  logic [5:0] before_fence;  // of these, beats that stand before the fence
  logic [BEAT_BITS-1:0] memory_e1, packet_e1, packet_e2, before_e2, data_e3;
  logic last_e3, is_long;
  logic [6:0] kept_e3;
  always_comb begin
    is_long = job.lower == LOWER_IPV6_VLAN;  // a beat more before the packet
    out_beats = 6'((job.bytes + 12'd63) >> 6);
    packet_beat = is_long ? out_beat - 1'b1 : out_beat;
    step.first = out_beat == 0;
    step.last = 6'(out_beat) + 1'b1 == out_beats;
    step.has_packet = !(is_long && step.first) && packet_beat < job.beats;
    step.has_tag = step.has_packet && packet_beat == 5'd1;
    step.kept = step.last ? 7'(job.bytes - (12'(out_beat) << 6)) : 7'(BEAT_BYTES);
    step.lower = job.lower;
    step.block = job.block;
    step.tag = job.tag;
    valid_e0 = job_valid && job.known && outgoing < 6'(OUT_BEATS - 1);
    job_taken = job_valid && !job.known || valid_e0 && step.last;
    ends_packet = job_taken && job.last;
    freed = ends_packet ? (BITS + 1)'(job.beats) : '0;
  end

  function automatic logic [BEAT_BITS-1:0] moved(input logic [1:0] lower, input logic [BEAT_BITS-1:0] high,
                                                 input logic [BEAT_BITS-1:0] low);
    // verilator lint_off UNUSEDSIGNAL
    automatic logic [2*BEAT_BITS-1:0] both = {high, low};
    // verilator lint_on UNUSEDSIGNAL
    unique case (lower)
      LOWER_IPV4: return both[8*LOWER_IPV4_BYTES+:BEAT_BITS];
      LOWER_IPV4_VLAN: return both[8*LOWER_IPV4_VLAN_BYTES+:BEAT_BITS];
      LOWER_IPV6: return both[8*LOWER_IPV6_BYTES+:BEAT_BITS];
      LOWER_IPV6_VLAN: return both[8*(LOWER_IPV6_VLAN_BYTES-BEAT_BYTES)+:BEAT_BITS];
    endcase
  endfunction
  // The block's end, where it stands in front of the packet.
  function automatic logic [BEAT_BITS-1:0] block_end(input logic [1:0] lower, input logic [BLOCK_BITS-1:0] block);
    unique case (lower)
      LOWER_IPV4: return BEAT_BITS'(block >> BLOCK_BITS - 8 * LOWER_IPV4_BYTES);
      LOWER_IPV4_VLAN: return BEAT_BITS'(block >> BLOCK_BITS - 8 * LOWER_IPV4_VLAN_BYTES);
      LOWER_IPV6: return BEAT_BITS'(block >> BLOCK_BITS - 8 * LOWER_IPV6_BYTES);
      LOWER_IPV6_VLAN: return BEAT_BITS'(block);
    endcase
  endfunction

  always_comb begin
    packet_e1 = step_e1.has_packet ? memory_e1 : '0;
    if (step_e1.has_tag) packet_e1[BEAT_BITS-1-:64] = step_e1.tag;
  end
  always_ff @(posedge clk) begin
    if (valid_e0) out_beat <= step.last ? '0 : out_beat + 1'b1;
    memory_e1 <= memory[job.begins_at+BITS'(packet_beat)];
    valid_e1 <= valid_e0 && !rst_i;
    step_e1 <= step;
    valid_e2 <= valid_e1 && !rst_i;
    if (valid_e1) begin
      step_e2 <= step_e1;
      packet_e2 <= packet_e1;
      before_e2 <= step_e1.first ? block_end(step_e1.lower, step_e1.block) : packet_e2;
      // The first beat has nothing of the packet there.
      if (step_e1.lower == LOWER_IPV6_VLAN && step_e1.first) packet_e2 <= block_end(step_e1.lower, step_e1.block);
    end
    valid_e3 <= valid_e2 && !rst_i;
    last_e3 <= step_e2.last;
    kept_e3 <= step_e2.kept;
    data_e3 <= step_e2.lower == LOWER_IPV6_VLAN && step_e2.first ? step_e2.block[BLOCK_BITS-1-:BEAT_BITS] :
        moved(step_e2.lower, before_e2, packet_e2);
    outgoing <= outgoing + 6'(valid_e0) - 6'(tx_valid_o && tx_ready_i);
    sent_o <= valid_e0 && step.last && !rst_i;
    no_neighbour_o <= job_valid && !job.known && !job.is_fence && !rst_i;
    busy_o <= packets != 0 || outgoing != 0 || fenced;
    // There is one fence at a time.
    if (job_valid && job.is_fence) begin
      fenced <= 1'b1;
      before_fence <= outgoing - 6'(tx_valid_o && tx_ready_i);
    end else begin
      if (tx_valid_o && tx_ready_i && before_fence != 0) before_fence <= before_fence - 1'b1;
      if (fence_o) fenced <= 1'b0;
    end
    fence_o <= fenced && !fence_o && before_fence == 0 && !rst_i;
    if (rst_i) fenced <= 1'b0;
    if (rst_i) begin
      out_beat <= '0;
      outgoing <= '0;
    end
  end
  qw_fifo #(.WIDTH(BEAT_BITS + 8), .DEPTH(OUT_BEATS)) out_queue (
      .clk, .rst_i, .push_i(valid_e3), .data_i({last_e3, kept_e3, data_e3}),
      .valid_o(tx_valid_o), .ready_i(tx_ready_i), .data_o({tx_last_o, tx_kept_o, tx_data_o})
  );
endmodule

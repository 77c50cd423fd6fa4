// That nothing of a group leaves behind its fence, and that frames have no gaps. Digests, tags and sums may come at any
// time and say anything. Which group a frame is of is seen from the Ethernet address that it comes from: here one
// group's has its lowest bit set, and no other's.
module qw_seal_proof
  import qw_pkg::*, qw_gate_pkg::*;
#(
    parameter int BEATS = 32,
    parameter int PACKETS_MAX = 8,
    parameter int JOBS_MAX = 4,
    parameter int PACKET_BITS = 1,
    parameter int JOB_BITS = 1,
    localparam int OUT_BEATS = 32
) (
    input logic                  clk,
    input logic                  rst_i,
    input logic                  valid_i,
    input logic                  ready_o,
    input logic                  last_i,
    input sending_t              sending_i,
    input place_t                place_i,
    input logic                  tx_valid_o,
    input logic                  tx_ready_i,
    input logic                  tx_last_o,
    input logic                  fence_o,
    // Within: what is in each stage, from the first on.
    input logic                  between,
    input logic                  valid1,
    input logic                  last1,
    input sending_t              sending1,
    input logic [$clog2(PACKETS_MAX):0] packets,
    input logic [$clog2(PACKETS_MAX):0] packets_pushed,
    input logic [$clog2(PACKETS_MAX):0] packets_taken,
    input logic [PACKET_BITS-1:0] packets_memory[PACKETS_MAX],
    input logic                  packet_valid,
    input logic                  busy,
    input logic [REPLICAS_MAX-1:0] peers_left,
    input logic                  to_one,
    input logic [           3:0] jobs,
    input logic                  valid_j1,
    input logic                  valid_j2,
    input logic                  valid_j3,
    input logic [$clog2(JOBS_MAX):0] jobs_pushed,
    input logic [$clog2(JOBS_MAX):0] jobs_taken,
    input logic [  JOB_BITS-1:0] jobs_memory[JOBS_MAX],
    input logic                  job_valid,
    // Of the packets of these stages.
    input logic [GROUP_BITS-1:0] now_group,
    input logic                  now_is_fence,
    input logic [          47:0] now_mac,
    input logic                  j1_is_fence,
    input logic                  j1_last,
    input logic [          47:0] j1_mac,
    input logic [          47:0] j1_own_mac,
    input logic                  j2_is_fence,
    input logic                  j2_last,
    input logic [          47:0] j2_mac,
    input logic [          47:0] j2_own_mac,
    input logic                  j3_is_fence,
    input logic                  j3_last,
    input logic [          47:0] j3_mac,
    input logic [          47:0] j3_own_mac,
    input logic [PACKET_BITS-1:0] packet,
    input logic [  JOB_BITS-1:0] job,
    input logic                  job_known,
    input logic                  job_is_watched,
    input logic [          11:0] job_bytes,
    // The way out.
    input logic                  valid_e0,
    input logic                  valid_e1,
    input logic                  valid_e2,
    input logic                  valid_e3,
    input logic                  step_last,
    input logic                  e1_last,
    input logic                  e2_last,
    input logic                  last_e3,
    input logic [           4:0] out_beat,
    input logic [           5:0] outgoing,
    input logic                  fenced,
    input logic [           5:0] before_fence,
    input logic [           5:0] out_pushed,
    input logic [           5:0] out_taken,
    input logic                  out_head_last,
    input logic                  out_tail_last
);
  localparam int P = $clog2(PACKETS_MAX), J = $clog2(JOBS_MAX);
  // A packet and a frame as they are in their queues: where in them stands what is looked at.
  localparam int FENCE_AT = 0, ENDPOINT_BITS = $bits(endpoint_t);
  localparam int MAC_AT = 1, PEERS_AT = 1 + ENDPOINT_BITS, GROUP_AT = PEERS_AT + REPLICAS_MAX;
  localparam int LAST_AT = 1, KNOWN_AT = 2, OWN_AT = 3 + 64 + 8 * LOWER_IPV6_VLAN_BYTES - 96;

  logic begun = 1'b0;
  logic [GROUP_BITS-1:0] watched;
  place_t place;
  always_ff @(posedge clk) begin
    begun <= 1'b1;
    watched <= watched;
    place <= place_i;
  end

  // ---- What comes, and what is assumed of it.
  logic enters, is_coming, enters_fence, enters_watched;
  logic is_fenced;  // a fence is inside
  logic is_closed;  // the group's fence came, and nothing of it since
  always_comb begin
    enters = valid_i && ready_o && between;
    enters_fence = enters && sending_i.is_fence;
    enters_watched = enters && !sending_i.is_fence && sending_i.group == watched;
    if (!begun) assume (rst_i);
    if (begun) assume (place_i == place);
    for (int group = 0; group < GROUPS_MAX; group++)
      assume (place_i.at[group].mac[0] == (GROUP_BITS'(group) == watched));
    // The host orders one thing at a time, and a group that is off sends nothing until it engages (qw_decide).
    if (enters_fence) assume (!is_fenced);
    if (is_fenced && is_closed) assume (!enters_watched);
    // A fence goes nowhere.
    if (enters_fence) assume (sending_i.peers == 0 && sending_i.to.mac == 0);
    // No frame is longer than the longest packet.
    if (job_valid) assume (job_bytes > 12'd64 && job_bytes <= 12'd1514);
  end
  always_ff @(posedge clk) begin
    if (enters) is_coming <= 1'b1;
    else if (valid1 && last1) is_coming <= 1'b0;
    if (enters_fence) is_fenced <= 1'b1;
    else if (fence_o) is_fenced <= 1'b0;
    if (enters_fence && sending_i.group == watched) is_closed <= 1'b1;
    else if (enters_watched) is_closed <= 1'b0;
    if (rst_i) {is_coming, is_fenced, is_closed} <= '0;
  end

  // ---- What is inside, from the last that came to the first.
  logic [P:0] waiting;
  logic [J:0] made;
  logic fence_behind;  // the fence came later than what is looked at
  logic is_silent;     // nothing of the group came later than the fence
  logic are_fences_sound;
  logic [3:0] fences;
  logic [P+2:0] last_jobs;
  logic [PACKET_BITS-1:0] at_packet;
  logic [JOB_BITS-1:0] at_job;
  always_comb begin
    waiting = packets_pushed - packets_taken;
    made = jobs_pushed - jobs_taken;
    is_silent = 1'b1;
    are_fences_sound = 1'b1;
    fence_behind = 1'b0;
    fences = '0;
    last_jobs = '0;
    at_packet = '0;
    at_job = '0;
    if (is_coming) begin
      if (sending1.is_fence) begin
        fences += 4'd1;
        fence_behind = 1'b1;
        if (sending1.peers != 0 || sending1.to.mac != 0) are_fences_sound = 1'b0;
      end else if (sending1.group == watched && !fence_behind) is_silent = 1'b0;
    end
    for (int at = PACKETS_MAX - 1; at >= 0; at--) begin
      at_packet = packets_memory[P'(packets_taken+(P+1)'(at))];
      if ((P + 1)'(at) < waiting) begin
        if (at_packet[FENCE_AT]) begin
          fences += 4'd1;
          fence_behind = 1'b1;
          if (at_packet[PEERS_AT+:REPLICAS_MAX] != 0 || at_packet[MAC_AT+:48] != 0) are_fences_sound = 1'b0;
        end else if (at_packet[GROUP_AT+:GROUP_BITS] == watched && !fence_behind) is_silent = 1'b0;
      end
    end
    if (busy) begin
      if (now_is_fence) begin
        fences += 4'd1;
        fence_behind = 1'b1;
        if (!to_one || now_mac != 0) are_fences_sound = 1'b0;
      end else if (now_group == watched && !fence_behind) is_silent = 1'b0;
    end
    if (valid_j1) begin
      if (j1_is_fence) begin
        fences += 4'd1;
        fence_behind = 1'b1;
        if (j1_mac != 0) are_fences_sound = 1'b0;
      end else if (j1_own_mac[0] && !fence_behind) is_silent = 1'b0;
      last_jobs += (P + 3)'(j1_last);
    end
    if (valid_j2) begin
      if (j2_is_fence) begin
        fences += 4'd1;
        fence_behind = 1'b1;
        if (j2_mac != 0) are_fences_sound = 1'b0;
      end else if (j2_own_mac[0] && !fence_behind) is_silent = 1'b0;
      last_jobs += (P + 3)'(j2_last);
    end
    if (valid_j3) begin
      if (j3_is_fence) begin
        fences += 4'd1;
        fence_behind = 1'b1;
        if (j3_mac != 0) are_fences_sound = 1'b0;
      end else if (j3_own_mac[0] && !fence_behind) is_silent = 1'b0;
      last_jobs += (P + 3)'(j3_last);
    end
    for (int at = JOBS_MAX - 1; at >= 0; at--) begin
      at_job = jobs_memory[J'(jobs_taken+(J+1)'(at))];
      if ((J + 1)'(at) < made) begin
        if (at_job[FENCE_AT]) begin
          fences += 4'd1;
          fence_behind = 1'b1;
          if (at_job[KNOWN_AT]) are_fences_sound = 1'b0;
        end else if (at_job[OWN_AT] && !fence_behind) is_silent = 1'b0;
        last_jobs += (P + 3)'(at_job[LAST_AT]);
      end
    end
  end

  // ---- What was made and has not left: how many beats until the last one of the group has.
  logic takes;
  logic [5:0] of_group;
  always_comb takes = tx_valid_o && tx_ready_i;
  always_ff @(posedge clk) begin
    if (valid_e0 && job_is_watched) of_group <= outgoing + 6'd1 - 6'(takes);
    else if (takes && of_group != 0) of_group <= of_group - 6'd1;
    if (rst_i) of_group <= '0;
  end

  // ---- Counts are of what is there, so no queue is pushed where it is full.
  logic [5:0] leaving;
  always_comb begin
    leaving = out_pushed - out_taken;
    if (begun) Out_A: assert (outgoing == leaving + 6'(valid_e1) + 6'(valid_e2) + 6'(valid_e3) && leaving <= 6'(OUT_BEATS) &&
        outgoing < 6'(OUT_BEATS) && (!tx_valid_o || leaving != 0));
    if (begun) Jobs_A: assert (jobs == 4'(made) + 4'(valid_j1) + 4'(valid_j2) + 4'(valid_j3) && jobs <= 4'(JOBS_MAX) &&
        made <= (J + 1)'(JOBS_MAX) && (!job_valid || made != 0));
    // A queue's head is what stands first in it.
    if (begun && job_valid) JobHead_A: assert (job == jobs_memory[jobs_taken[J-1:0]]);
    if (begun && tx_valid_o) OutHead_A: assert (tx_last_o == out_head_last);
    if (begun) Packets_A: assert ((!packet_valid || packet == packets_memory[packets_taken[P-1:0]]) &&
        (P + 3)'(packets) == (P + 3)'(waiting) + (P + 3)'(is_coming) + (P + 3)'(busy) + last_jobs &&
        packets < (P + 1)'(PACKETS_MAX) && (!ready_o || packets < (P + 1)'(PACKETS_MAX - 1)) && waiting <= (P + 1)'(PACKETS_MAX) && (!packet_valid || waiting != 0) &&
        is_coming == (valid1 || !between) && (!valid1 || between == last1));
  end

  // ---- The fence.
  always_comb begin
    if (begun) Fences_A: assert (fences + 4'(fenced) == 4'(is_fenced) && are_fences_sound && (!fence_o || fenced));
    // Nothing of the group came later than its fence, and what came before it leaves before it is said that it has.
    if (begun) Behind_A: assert (of_group <= outgoing && (!fence_o || before_fence == 0) &&
        (!is_closed || is_silent && (is_fenced || of_group == 0) && (!fenced || of_group <= before_fence)));
    // When it is said that the fence has left, nothing of the group is inside, and nothing is until it sends again.
    if (begun && is_closed && (fence_o || !is_fenced)) Silent_A: assert (is_silent && of_group == 0);
  end

  // ---- Frames have no gaps. Whether a frame goes on behind each stage.
  logic open0, open1, open2, open3, is_inside, is_held;
  always_comb open0 = out_beat != 0;
  always_ff @(posedge clk) begin
    if (valid_e1) open1 <= !e1_last;
    if (valid_e2) open2 <= !e2_last;
    if (valid_e3) open3 <= !last_e3;
    if (takes) is_inside <= !tx_last_o;
    if (rst_i) {open1, open2, open3, is_inside} <= '0;
    is_held <= begun && !rst_i && job_valid && job_known && !(valid_e0 && step_last);
  end
  always_comb begin
    if (begun && is_held) JobStays_A: assert (job_valid && job_known);
    if (begun && open0) Begun_A: assert (job_valid && job_known && 12'(out_beat) < (job_bytes + 12'd63) >> 6);
    // A gap is only where so many beats wait that it does not get out.
    if (begun) Gaps_A: assert (
        (valid_e1 ? open0 == !e1_last : open0 == open1 && (!open1 || outgoing >= 6'(OUT_BEATS - 2))) &&
        (valid_e2 ? open1 == !e2_last : open1 == open2 && (!open2 || outgoing >= 6'(OUT_BEATS - 3))) &&
        (valid_e3 ? open2 == !last_e3 : open2 == open3 && (!open3 || outgoing >= 6'(OUT_BEATS - 4))));
    if (begun) Tail_A: assert (leaving == 0 ? !is_inside && !open3 : out_tail_last == !open3);
    if (begun && open3) Fed_A: assert (leaving > 6'(tx_valid_o));
    if (begun && is_inside) Whole_A: assert (tx_valid_o);
  end

  // ---- Nothing waits without a cause: for how many clocks, one after the other, while the network takes what it is offered.
  logic [2:0] makes_none;  // a frame is known, and no beat of it is made
  logic [2:0] knows_none;  // frames are under way, and none is known
  logic [2:0] offers_none;  // beats were made, and none is offered
  always_ff @(posedge clk) begin
    makes_none  <= !rst_i && tx_ready_i && job_valid && job_known && !valid_e0 ? makes_none + 3'd1 : '0;
    knows_none  <= !rst_i && jobs != 0 && !job_valid ? knows_none + 3'd1 : '0;
    offers_none <= !rst_i && outgoing != 0 && !tx_valid_o ? offers_none + 3'd1 : '0;
  end
  always_comb begin
    if (begun) Offered_A: assert (leaving <= 6'd1 || tx_valid_o);
    if (begun) Makes_A: assert (makes_none <= 3'd1);
    if (begun) Knows_A: assert (knows_none <= 3'd4);
    if (begun) Offers_A: assert (offers_none <= 3'd4);
  end
endmodule
bind qw_seal qw_seal_proof #(
    .BEATS(BEATS), .PACKETS_MAX(PACKETS_MAX), .JOBS_MAX(JOBS_MAX), .PACKET_BITS($bits(packet)), .JOB_BITS($bits(job))
) proof (
    .*,
    .packets_pushed(packet_queue.written), .packets_taken(packet_queue.taken), .packets_memory(packet_queue.memory),
    .jobs_pushed(job_queue.written), .jobs_taken(job_queue.taken), .jobs_memory(job_queue.memory),
    .now_group(now.packet.group), .now_is_fence(now.packet.is_fence), .now_mac(now.packet.to.mac),
    .j1_is_fence(way_j1.sealed.packet.is_fence), .j1_last(way_j1.last),
    .j1_mac(way_j1.to.mac), .j1_own_mac(way_j1.own.mac),
    .j2_is_fence(way_j2.sealed.packet.is_fence), .j2_last(way_j2.last), .j2_mac(way_j2.to.mac), .j2_own_mac(way_j2.own.mac),
    .j3_is_fence(way_j3.sealed.packet.is_fence), .j3_last(way_j3.last), .j3_mac(way_j3.to.mac), .j3_own_mac(way_j3.own.mac),
    .job_known(job.known), .job_is_watched(job.block[BLOCK_BITS-96]),
    .job_bytes(job.bytes),
    .step_last(step.last), .e1_last(step_e1.last), .e2_last(step_e2.last),
    .out_pushed(out_queue.written), .out_taken(out_queue.taken),
    .out_head_last(out_queue.memory[out_queue.taken[4:0]][BEAT_BITS+7]),
    .out_tail_last(out_queue.memory[5'(out_queue.written-6'd1)][BEAT_BITS+7])
);

// Where a frame's packet is, and whose it is: qw_find and qw_is_to_us (dataplanes/xdp/bpf/frame.h).
// All of it stands in a frame's first beat. Whether the frame is as long as it says shows at its end.
module qw_find
  import qw_gate_pkg::*;
(
    // verilator lint_off UNUSEDSIGNAL
    input  logic [BEAT_BITS-1:0] data_i,   // the first beat; to which Ethernet address is the card's to ask
    // verilator lint_on UNUSEDSIGNAL
    // verilator lint_off UNUSEDSIGNAL
    input  place_t               place_i,
    // verilator lint_on UNUSEDSIGNAL
    output found_t               found_o
);
  localparam logic [15:0] PROTO_VLAN = 16'h8100, PROTO_IPV4 = 16'h0800, PROTO_IPV6 = 16'h86dd;
  localparam logic [7:0] PROTO_UDP = 8'd17;
  localparam int ETHERNET_BYTES = 14, VLAN_BYTES = 4, IPV4_BYTES = 20, IPV6_BYTES = 40;
  localparam int BEHIND_BYTES = BEAT_BYTES - ETHERNET_BYTES;

  function automatic logic [15:0] half_at(input logic [8*BEHIND_BYTES-1:0] of, input int at);
    return of[8*(BEHIND_BYTES-at)-1-:16];
  endfunction

  logic has_vlan, vlan_fits;
  logic [15:0] outer_proto, proto;
  logic [8*BEHIND_BYTES-1:0] behind, ip;  // behind Ethernet, and behind the VLAN's tag
  always_comb begin
    outer_proto = data_i[BEAT_BITS-1-8*12-:16];
    has_vlan = outer_proto == PROTO_VLAN;
    behind = data_i[8*BEHIND_BYTES-1:0];
    proto = has_vlan ? half_at(behind, 2) : outer_proto;
    vlan_fits = has_vlan ? place_i.vlan != 0 && half_at(behind, 0)[11:0] == place_i.vlan :
        place_i.vlan == 0;
    ip = has_vlan ? behind << 8 * VLAN_BYTES : behind;
  end

  logic is_ipv6, ip_fits;
  logic [15:0] room, to_port;
  logic [127:0] to;
  always_comb begin
    is_ipv6 = proto == PROTO_IPV6;
    found_o = '0;
    found_o.lower = {is_ipv6, has_vlan};
    found_o.sender.mac = data_i[BEAT_BITS-1-8*6-:48];
    if (is_ipv6) begin
      ip_fits = half_at(ip, 0)[15:12] == 4'd6 && half_at(ip, 6)[15:8] == PROTO_UDP;
      room = half_at(ip, 4);
      found_o.sender.address = ip[8*(BEHIND_BYTES-8)-1-:128];
      to = ip[8*(BEHIND_BYTES-24)-1-:128];
      found_o.sender.port = half_at(ip, IPV6_BYTES);
      to_port = half_at(ip, IPV6_BYTES + 2);
      found_o.udp_bytes = half_at(ip, IPV6_BYTES + 4);
    end else begin
      // With options, or in fragments: seldom, so software's.
      ip_fits = proto == PROTO_IPV4 && half_at(ip, 0)[15:8] == 8'h45 &&
          half_at(ip, 8)[7:0] == PROTO_UDP && half_at(ip, 6)[13:0] == 0 &&
          half_at(ip, 2) >= 16'(IPV4_BYTES);
      room = half_at(ip, 2) - 16'(IPV4_BYTES);
      found_o.sender.address = {IPV4_MAPPED, ip[8*(BEHIND_BYTES-12)-1-:32]};
      to = {IPV4_MAPPED, ip[8*(BEHIND_BYTES-16)-1-:32]};
      found_o.sender.port = half_at(ip, IPV4_BYTES);
      to_port = half_at(ip, IPV4_BYTES + 2);
      found_o.udp_bytes = half_at(ip, IPV4_BYTES + 4);
    end
    found_o.to_group = !is_ipv6 && place_i.multicast != 0 && to[31:0] == place_i.multicast;
    for (int group = GROUPS_MAX - 1; group >= 0; group--)
      if (place_i.at[group].port != 0 && place_i.at[group].port == to_port) begin
        found_o.group = 3'(group);
        found_o.ours = to == place_i.at[group].address ||
            found_o.to_group && place_i.at[group].address[127:32] == IPV4_MAPPED;
      end
    if (!vlan_fits || !ip_fits || found_o.udp_bytes < 16'(UDP_BYTES) || found_o.udp_bytes > room)
      found_o.ours = 1'b0;
  end
endmodule

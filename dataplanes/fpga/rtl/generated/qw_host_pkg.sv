// Generated from dataplanes/fpga/shared.toml by `make generate`; do not edit.
// What a core's host reads and writes over AXI4-Lite, 32 bits at a time, lowest byte first. A number of 64 bits is written low half first: it changes with the high half. It is read low half first, which keeps the high half for the next read. What is only read refuses to be written (SLVERR), and so does what stands nowhere here; a bus that does not wait for a write's answer loses that. All numbers share one low half for writing and one high half for reading, so one lock is held over both halves, and over a whole order. A reset clears `enabled`, `notice_entries`, `notice_clocks`, `vlan`, `multicast`, `ends`, `keys_valid`, `epochs` and `destinations`, turns all groups off, and leaves the rest.
// verilator lint_off UNUSEDPARAM
package qw_host_pkg;
  // What `identity` begins with.
  localparam int IDENTITY = 20823;
  // Of this map.
  localparam int MAP_VERSION = 1;
  // Logs that one core may serve.
  localparam int GROUPS = 8;
  // Places for replicas of one group.
  localparam int PLACES_OF_GROUP = 8;
  // The replicas' two keys, then the clients' two. Which of a pair is the lowest bit of its epoch.
  localparam int KEYS_OF_GROUP = 4;
  // What is counted: the reasons by their numbers, then `count`.
  localparam int COUNTS = 40;
  // Bytes from one slot of a ring to the next. A slot is what the planes in the kernel have
  // (`qw_slot`).
  localparam int SLOT_STRIDE = 2048;
  // Instances of a Paxos role that a core knows of: its largest window.
  localparam int INSTANCES_MAX = 256;
  // Ranges of entries that are left to the host and that it has not looked at.
  localparam int LEFT_MAX = 64;

  // What the host does to a group: a step like a packet's, between those of packets. Leader: a
  // command of its own, in `header` as a REQUEST's.
  localparam logic [7:0] ORDER_SUBMIT = 8'd1;
  // What the host does to a group: a step like a packet's, between those of packets. Everything up
  // to `number` is durable.
  localparam logic [7:0] ORDER_PERSISTED = 8'd2;
  // What the host does to a group: a step like a packet's, between those of packets. Leader: says
  // that it lives, in the round `number`.
  localparam logic [7:0] ORDER_HEARTBEAT = 8'd3;
  // What the host does to a group: a step like a packet's, between those of packets. The host has
  // taken everything up to `number`. With 0 it changes nothing: so registers are read.
  localparam logic [7:0] ORDER_RELEASE = 8'd4;
  // What the host does to a group: a step like a packet's, between those of packets. The group gets
  // `registers`. Refused unless it is off.
  localparam logic [7:0] ORDER_ENGAGE = 8'd5;
  // What the host does to a group: a step like a packet's, between those of packets. The group
  // takes part no more. Done once all that it sends has left, and all that it stores was taken by
  // the shell, which must have it in memory before the host reads that this is done.
  localparam logic [7:0] ORDER_OFF = 8'd6;

  // What the host of a Paxos role does to it, as an order; each is done once all that was decided
  // before it has left and is written. The role gets the registers in `registers`. Refused unless
  // it is off, and where its window is more than `instances_max`.
  localparam logic [7:0] BOX_ORDER_SWITCH_ON = 8'd1;
  // What the host of a Paxos role does to it, as an order; each is done once all that was decided
  // before it has left and is written. The role is off.
  localparam logic [7:0] BOX_ORDER_OFF = 8'd2;
  // What the host of a Paxos role does to it, as an order; each is done once all that was decided
  // before it has left and is written. `number` becomes the configuration.
  localparam logic [7:0] BOX_ORDER_CONFIGURE = 8'd3;
  // What the host of a Paxos role does to it, as an order; each is done once all that was decided
  // before it has left and is written. Everything up to `number` is forgotten.
  localparam logic [7:0] BOX_ORDER_TRIM = 8'd4;
  // What the host of a Paxos role does to it, as an order; each is done once all that was decided
  // before it has left and is written. The step is taken for the packet in `header`; `number` is
  // its instance.
  localparam logic [7:0] BOX_ORDER_STEP = 8'd5;
  // What the host of a Paxos role does to it, as an order; each is done once all that was decided
  // before it has left and is written. Nothing: it is about the instance `number`.
  localparam logic [7:0] BOX_ORDER_LOOK = 8'd6;
  // What the host of a Paxos role does to it, as an order; each is done once all that was decided
  // before it has left and is written. The slot in `registers` becomes that of the instance
  // `number`. Refused unless the role is off.
  localparam logic [7:0] BOX_ORDER_PUT_BACK = 8'd7;

  // Cause of an interrupt. An entry has begun to be written: an early notice.
  localparam logic [31:0] CAUSE_ENTRY = 32'd1;
  // Cause of an interrupt. As many entries as `notice_entries` says have been written since the
  // last notice, or one, `notice_clocks` ago.
  localparam logic [31:0] CAUSE_ENTRIES = 32'd2;
  // Cause of an interrupt. A packet moved a commit index.
  localparam logic [31:0] CAUSE_COMMITTED = 32'd4;
  // Cause of an interrupt. Leader: a heartbeat was answered, or a replica asked for missing
  // entries.
  localparam logic [31:0] CAUSE_HEARD = 32'd8;
  // Cause of an interrupt. Something is left to the host: see `left_what`.
  localparam logic [31:0] CAUSE_LEFT = 32'd16;
  // Cause of an interrupt. A replica asks for what the ring holds no more: see `behind`.
  localparam logic [31:0] CAUSE_BEHIND = 32'd32;
  // Cause of an interrupt. A frame for the host has left the core.
  localparam logic [31:0] CAUSE_FRAME = 32'd64;
  // Cause of an interrupt. An order is done.
  localparam logic [31:0] CAUSE_ORDER = 32'd128;
  // Cause of an interrupt. The log was not written: see `state`. Comes again until the next reset.
  localparam logic [31:0] CAUSE_LOG_FAILED = 32'd256;

  // State of a core. An order is not done yet.
  localparam logic [31:0] STATE_UNDER_WAY = 32'd1;
  // State of a core. The last order was refused: a group was to be engaged, a role switched on or
  // an instance put back while it is not off, or with too large a window, there is no such order,
  // or another one was under way.
  localparam logic [31:0] STATE_REFUSED = 32'd2;
  // State of a core. A frame, a packet or an entry is inside. Between two modules it may read 0 for
  // a clock or two.
  localparam logic [31:0] STATE_BUSY = 32'd4;
  // State of a core. A write of the log has failed, and none is begun before the next reset. Take
  // no entry any more.
  localparam logic [31:0] STATE_LOG_FAILED = 32'd8;

  // What is counted behind the reasons. Frames from the network for which there was no room.
  localparam logic [31:0] COUNT_FRAMES_LOST = 32'd0;
  // What is counted behind the reasons. Frames that came broken, cut or too long.
  localparam logic [31:0] COUNT_FRAMES_BROKEN = 32'd1;
  // What is counted behind the reasons. Frames for the host that it did not take in time.
  localparam logic [31:0] COUNT_FRAMES_NOT_TAKEN = 32'd2;
  // What is counted behind the reasons. Frames sent.
  localparam logic [31:0] COUNT_FRAMES_SENT = 32'd3;
  // What is counted behind the reasons. Packets not sent to somebody whose Ethernet address is not
  // known.
  localparam logic [31:0] COUNT_NO_NEIGHBOUR = 32'd4;
  // What is counted behind the reasons. Ranges of entries left to the host that it did not look at
  // in time.
  localparam logic [31:0] COUNT_LEFT_LOST = 32'd5;
  // What is counted behind the reasons. Entries written.
  localparam logic [31:0] COUNT_ENTRIES = 32'd6;
  // What is counted behind the reasons. Packets dropped that came to the address of all replicas,
  // and must not.
  localparam logic [31:0] COUNT_NOT_FOR_GROUP = 32'd7;
  // What is counted behind the reasons. Of the host's own frames those that a wrapper did not send:
  // they came broken, or longer than it takes.
  localparam logic [31:0] COUNT_FRAMES_OWN_LOST = 32'd8;
  // What is counted behind the reasons. Frames for the host that are longer than a wrapper takes.
  localparam logic [31:0] COUNT_FRAMES_TOO_LONG = 32'd9;

  // The register map.
  localparam int CORE_BYTES = 1408;
  // Only read. 0x5157, this map's version, groups, each of 16 bits, then places of a group, 8 bits,
  // and 1 if groups are Paxos roles.
  localparam int CORE_IDENTITY_AT = 0;
  // Only read. Clocks since the reset.
  localparam int CORE_CLOCKS_AT = 8;
  // Only read. Bits: `state`.
  localparam int CORE_STATE_AT = 16;
  // Only read. A bit for each group that is off: it steps no more, though what it had decided may
  // still leave until OFF is done.
  localparam int CORE_OFF_AT = 24;
  // Bits: `cause`, of all groups together. Writing ones clears them; `left` comes again until there
  // is nothing left, `log_failed` until the next reset.
  localparam int CORE_CAUSES_AT = 32;
  // Causes that raise the interrupt.
  localparam int CORE_ENABLED_AT = 40;
  // Entries to a notice, 1 to 65,535; 0: none but that of `notice_clocks`.
  localparam int CORE_NOTICE_ENTRIES_AT = 48;
  // Clocks from an entry to its notice, 1 to 4,294,967,295; 0: no notice but that of
  // `notice_entries`.
  localparam int CORE_NOTICE_CLOCKS_AT = 56;
  // Writing it gives an order: its number (`order`, or `box_order` where groups are Paxos roles),
  // then, from bit 8 on, the group, 0 to 7. While one is under way another one is refused, which
  // shows in `state` once the first is done.
  localparam int CORE_ORDER_AT = 64;
  // What the order is about. This, `registers` and `header` refuse to be written while an order is
  // under way.
  localparam int CORE_NUMBER_AT = 72;
  // ENGAGE: they become the group's, and must be sound (`qw_registers_sound`; of a Paxos role
  // `qw_paxos_sound`): the core looks only whether a role's window is more than `instances_max`.
  // Laid out as `registers` in wire/format.toml. A Paxos role's (`paxos_registers`) come with an
  // instance's slot behind them (`paxos_slot`); for SWITCH_ON and PUT_BACK.
  localparam int CORE_REGISTERS_AT = 80;
  // SUBMIT: the command's. STEP: the packet's. As `header` in wire/format.toml, in the order of the
  // fields, but each in the byte order of this map.
  localparam int CORE_HEADER_AT = 280;
  // Only read. What the last order wants sent, by the host: the core sends nothing for an order.
  localparam int CORE_MADE_HEADER_AT = 352;
  // Only read. Of the last order's outcome.
  localparam int CORE_MADE_INDEX_AT = 424;
  // Only read. Of the last order's outcome.
  localparam int CORE_MADE_COMMIT_FROM_AT = 432;
  // Only read. Of the last order's outcome; from bit 32 on, its reason: of a group that is off,
  // say. Both as in wire/format.toml.
  localparam int CORE_MADE_ACTIONS_AT = 440;
  // Only read. The group's registers behind the last order; a Paxos role's with the slot of the
  // instance that `number` names, as it was left.
  localparam int CORE_MADE_REGISTERS_AT = 448;
  // The tag of frames, 0 to 4,094; 0: none.
  localparam int CORE_VLAN_AT = 648;
  // IPv4 address at which all replicas hear, its first byte highest; 0: none.
  localparam int CORE_MULTICAST_AT = 656;
  // Where the group's plane is, an IPv6 address (IPv4 mapped): the higher half, then the lower one;
  // for each group.
  localparam int CORE_ADDRESSES_AT = 664;
  // And its port, in the highest 16 bits, and its Ethernet address; for each group. Port 0: there
  // is no plane. No two groups may have the same port. So 10.0.0.1, port 7401, 02:00:00:00:00:01 is
  // `0` and `0x0000ffff0a000001` in `addresses`, and `0x1ce9020000000001` here.
  localparam int CORE_ENDS_AT = 792;
  // A bit for each key, four of a group: what is signed with it is taken. Of a group its replicas'
  // two keys, then its clients'. A key is written while its bit is 0, and while `epochs` does not
  // name it: what is sent is signed with that one, whatever this says.
  localparam int CORE_KEYS_VALID_AT = 856;
  // Which of its two keys a group signs with: a bit for each group between replicas, then, from bit
  // 8 on, to clients.
  localparam int CORE_EPOCHS_AT = 864;
  // Paxos roles: to how many of its first replicas' places a role sends what goes to all, 0 to 7;
  // eight bits for each, from the lowest on.
  localparam int CORE_DESTINATIONS_AT = 872;
  // Which word of a key `key` writes: the group, four keys each, and from bit 8 on the word: the
  // 173 of its digest (wire/README.md says how they are made), or 254 and 255, the tag's own key.
  localparam int CORE_KEY_AT_AT = 880;
  // Only written: this word.
  localparam int CORE_KEY_AT = 888;
  // Of a replica, as in `addresses`.
  localparam int CORE_PEER_ADDRESS_AT = 896;
  // And as in `ends`. Ethernet address 0: not known, and nothing is sent to it.
  localparam int CORE_PEER_END_AT = 912;
  // Writing it makes that the place of a replica: its group, eight places each.
  localparam int CORE_PEER_AT = 920;
  // Where in the host's memory a group's ring begins: to be written before the group is engaged, as
  // `ring_masks`. A reset leaves both as they were. An acceptor's has a slot for each instance of
  // its window: what is known of the instance (`paxos_slot`), 16 bytes of zero, and the value voted
  // for.
  localparam int CORE_RINGS_AT = 928;
  // Slots of a group's ring, a power of two and the `ring_slots` of its registers, less one. A ring
  // is so many times `slot_stride`, at a multiple of 64 bytes.
  localparam int CORE_RING_MASKS_AT = 992;
  // The first thing that is left to the host. Bit 0: there is one. 1: blind writes to be answered;
  // else entries to be sent again. From bit 8 on the group, from bit 16 on the replica. Writing it
  // takes that away.
  localparam int CORE_LEFT_WHAT_AT = 1056;
  // Only read. Its first index.
  localparam int CORE_LEFT_FROM_AT = 1064;
  // Only read. Its last one.
  localparam int CORE_LEFT_UPTO_AT = 1072;
  // A bit for each replica that asks for what the ring holds no more, eight of a group. Writing
  // ones clears them.
  localparam int CORE_BEHIND_AT = 1080;
  // Only read. How often it happened since the reset: the 26 reasons for which a packet was not
  // taken, by their numbers (wire/format.toml), then, from `0x510` on, `count`.
  localparam int CORE_COUNT_AT = 1088;
endpackage
// verilator lint_on UNUSEDPARAM

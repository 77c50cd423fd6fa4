"""A card's registers over AXI4-Lite: what the host writes is what the core gets, whole; orders, keys, notices; and where the log goes."""
import collections
import struct

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from cocotbext.axi import AxiResp
from card_host import AT, CAUSE, COUNT, NUMBER, REASONS, SHARED, STATE, Host
from dice import Dice
from frames import IPV4_MAPPED, endpoint_of, frame_of, signed
from in_c import Fastpath, Keys, Place
from layouts import HEADER, KIND, LIMIT, REASON, REGISTERS, ROLE
from test_crc32c import crc32c
from test_step import OPS, registers, stepped
from test_step import header as step_header

BEAT = 64
ONLY_READ = [field["name"] for field in SHARED["structs"][0]["fields"] if field["doc"].startswith("Only read.")]
# What keeps what is written, without doing anything.
KEPT = ["enabled", "number", "registers", "header", "multicast", "addresses", "ends", "epochs", "destinations", "key_at", "peer_address", "peer_end", "rings", "ring_masks"]


class Card(Host):
    """A card with its host, and a network that takes what it sends."""

    def __init__(self, dut):
        self.dut, self.dice, self.c = dut, Dice(), Fastpath()
        self.frames, self.host, self.log = [], [], []

    async def begin(self):
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start())
        dut.rx_valid_i.value = dut.rx_error_i.value = dut.log_failed_i.value = dut.own_lost_i.value = dut.long_i.value = 0
        dut.tx_ready_i.value = dut.host_ready_i.value = dut.log_ready_i.value = 1
        dut.rst_i.value = 1
        self.connect("s_axil", dut.clk, dut.rst_i)
        await ClockCycles(dut.clk, 8)
        dut.rst_i.value = 0
        await ClockCycles(dut.clk, 2)
        cocotb.start_soon(self.take(self.frames, "tx"))
        cocotb.start_soon(self.take(self.host, "host"))
        cocotb.start_soon(self.take_log())

    async def take(self, into, stream):
        frame = b""
        valid, last, data, kept = (getattr(self.dut, f"{stream}_{name}_o") for name in ("valid", "last", "data", "kept"))
        ready = getattr(self.dut, f"{stream}_ready_i")
        while True:
            await ReadOnly()
            if int(valid.value) and int(ready.value):
                frame += int(data.value).to_bytes(BEAT, "big")[:int(kept.value)]
                if int(last.value):
                    into.append(frame)
                    frame = b""
            await RisingEdge(self.dut.clk)

    async def take_log(self):
        while True:
            await ReadOnly()
            if int(self.dut.log_valid_o.value) and int(self.dut.log_ready_i.value):
                self.log.append((int(self.dut.log_address_o.value), int(self.dut.log_data_o.value).to_bytes(BEAT, "big")))
            await RisingEdge(self.dut.clk)

    async def receive(self, frame):
        dut = self.dut
        for at in range(0, len(frame), BEAT):
            beat = frame[at:at + BEAT]
            dut.rx_valid_i.value, dut.rx_last_i.value, dut.rx_kept_i.value = 1, at + BEAT >= len(frame), len(beat)
            dut.rx_data_i.value = int.from_bytes(beat.ljust(BEAT, b"\0"), "big")
            await RisingEdge(dut.clk)
        dut.rx_valid_i.value = 0

    async def rests(self):
        await ClockCycles(self.dut.clk, 4)
        while int(self.dut.busy_o.value):
            await RisingEdge(self.dut.clk)
        await ClockCycles(self.dut.clk, 20)


@cocotb.test()
async def a_number_changes_as_a_whole_and_what_is_only_read_does_not(dut):
    card = Card(dut)
    dice = card.dice
    await card.begin()
    assert await card.read("identity") == (NUMBER["places_of_group"] << 48 | NUMBER["groups"] << 32 | NUMBER["map_version"] << 16 | NUMBER["identity"])
    known = {}
    for _ in range(400):
        name = dice.one_of(KEPT)
        word = dice.below(AT[name][1] // 8)
        known[name, word] = dice.number(64)
        await card.write(name, known[name, word], word)
    for (name, word), value in known.items():
        assert await card.read(name, word) == value, (name, word)
    # Half of a number changes nothing; who has read the low half reads the high one of then.
    at = AT["rings"][0]
    await card.write("rings", 0x1111111122222222)
    assert await card.half(at, 0x33333333)
    assert await card.read("rings") == 0x1111111122222222
    low = (await card.axi.read(at, 4)).data
    await card.write("rings", 0x4444444455555555)
    assert (low, (await card.axi.read(at + 4, 4)).data) == (b"\x22" * 4, b"\x11" * 4)
    assert await card.read("rings") == 0x4444444455555555
    # What refuses to be written stays.
    clocks = await card.read("clocks")
    for name in ONLY_READ:
        for word in range(AT[name][1] // 8):
            before = None if name == "clocks" else await card.read(name, word)
            for half in range(2):
                assert not await card.half(AT[name][0] + 8 * word + 4 * half, dice.number(32)), name
            assert before is None or await card.read(name, word) == before, name
    assert await card.read("clocks") > clocks
    end = sum(AT["count"])
    for at in (end, end + 4, 4092):
        assert not await card.half(at, 1) and (await card.axi.read(at, 4)).resp == AxiResp.SLVERR, at
    for at, data in ((AT["rings"][0] + 1, b"\1\2"), (AT["rings"][0], b"\1"), (AT["rings"][0] + 6, b"\1\2")):
        assert (await card.axi.write(at, data)).resp == AxiResp.SLVERR, "less than 32 bits"
    assert await card.read("rings") == 0x4444444455555555


@cocotb.test()
async def orders_are_steps_as_in_the_c(dut):
    card, reached = Card(dut), collections.Counter()
    dice, c = card.dice, card.c
    await card.begin()
    states, is_on = [REGISTERS.zeros() for _ in range(NUMBER["groups"])], [False] * NUMBER["groups"]
    for _ in range(500):
        group = dice.below(2)
        state, op = states[group], dice.one_of([*OPS[1:], "submit", "engage"])
        engaged = registers(dice, c) if op == "engage" else None
        given = step_header(dice, state) if op == "submit" else None
        number = dice.near(state["round"] if op == "heartbeat" else state["last_index"])
        found = await card.order(op, group, given, number, engaged)
        # The registers are the host's only while the group is off and all of it has left: that is when OFF is done.
        if op == "engage" and is_on[group]:
            assert found is None, "it was engaged while it was on"
            reached["refused"] += 1
            continue
        state, expected = stepped(c, op, state, given or HEADER.zeros(), number, engaged)
        assert found == (expected, state), f"{op} {number} of {given} in {states[group]}\nin gates {found}\nin C     {(expected, state)}"
        states[group] = state
        reached[op] += 1
        is_on[group] = op == "engage" or is_on[group] and op != "off"
        reached["on"] += is_on[group]
    assert {*OPS[1:], "refused", "on"} <= {name for name, count in reached.items() if count}, reached
    for order in (0, 7, 255, OPS.index("engage") | 8 << 8, OPS.index("off") | 255 << 8):
        await card.write("order", order)
        assert await card.read("state") & STATE["refused"], order
    assert await card.order("off", 0), "and the next one is taken"


async def lead(card, place, keys):
    """The host gives a card its keys, its place and three replicas, and has the first group's lead."""
    base, masks, _ = await card.is_told(place, keys)
    state = {**REGISTERS.zeros(), "role": ROLE["leader"], "term": 3, "last_term": 3, "ring_slots": 16, "window": 16, "replicas": 3, "quorum": 2,
             "group": 7}
    await card.order("engage", 0, state=state)
    return base, masks


@cocotb.test()
async def the_log_goes_to_the_hosts_memory_and_the_host_is_told(dut):
    card, keys, place = Card(dut), Keys(), Place()
    dice = card.dice
    await card.begin()
    place.at[0] = endpoint_of(IPV4_MAPPED + dice.bytes(4), 7401, dice.bytes(6))
    base, masks = await lead(card, place, keys)
    every = sum(CAUSE.values())
    await card.write("causes", every)
    base_of = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "group": 7}

    async def come(header, payload=b""):
        given = {**base_of, **header, "payload_bytes": len(payload), "payload_crc32c": crc32c(payload) if payload else 0}
        await card.receive(frame_of(dice, place, 0, signed(card.c, keys, given, payload)))
        await card.rests()

    async def request(payload):
        await come({"kind": KIND["request"], "sender": LIMIT["sender_client"], "session": 1}, payload)

    # An entry: to its slot, first beat last; an early notice, no other yet.
    await card.write("notice_entries", 3)
    await card.write("enabled", CAUSE["entries"])
    payload = dice.bytes(200)
    await request(payload)
    slot = base + (1 & masks) * NUMBER["slot_stride"]
    beats = (72 + len(payload) + BEAT - 1) // BEAT
    assert [at for at, _ in card.log] == [*(slot + BEAT * beat for beat in range(1, beats)), slot]
    written = card.log[-1][1] + b"".join(data for _, data in card.log[:-1])
    assert struct.unpack_from("<Q", written)[0] == 1 and written[72:72 + len(payload)] == payload
    assert await card.read("causes") & (CAUSE["entry"] | CAUSE["entries"]) == CAUSE["entry"]
    assert not int(dut.interrupt_o.value) and len(card.frames) == 2
    for _ in range(2):
        await request(dice.bytes(5))
    assert int(dut.interrupt_o.value), "three entries"
    await card.write("causes", CAUSE["entries"])
    await ClockCycles(dut.clk, 3)
    assert not int(dut.interrupt_o.value)
    # By time.
    await card.write("notice_entries", 0)
    await card.write("notice_clocks", 5000)
    await request(dice.bytes(5))
    assert not int(dut.interrupt_o.value)
    await ClockCycles(dut.clk, 5000)
    assert int(dut.interrupt_o.value), "it waited long enough"
    await card.write("enabled", 0)
    # A commit, an answer to a heartbeat, what the ring holds no more, what is left to the host, a frame that is its own.
    for cause, header in (("committed", {"kind": KIND["append_ok"], "index": 2}), ("heard", {"kind": KIND["heartbeat_ok"], "index": 2}),
                          ("frame", None)):
        await card.write("causes", every)
        assert not await card.read("causes") & CAUSE[cause]
        if header:
            await come({**header, "sender": 1, "term": 3})
        else:
            await card.receive(dice.bytes(100))
            await card.rests()
        assert await card.read("causes") & CAUSE[cause], cause
    assert len(card.host) == 1
    # Four entries are on the chip: more than these is left to the host.
    await card.order("submit", 0, {**HEADER.zeros(), "magic": 0x5157, "version": 1, "kind": KIND["request"]})
    await come({"kind": KIND["retransmit"], "index": 4, "sender": 2, "term": 3})
    what = await card.read("left_what")
    assert (what & 3, what >> 8 & 0xff, what >> 16) == (1, 0, 2)
    assert (await card.read("left_from"), await card.read("left_upto")) == (5, 5)
    assert await card.read("causes") & CAUSE["left"]
    await card.write("left_what", 0)
    assert not await card.read("left_what") & 1
    state = {**REGISTERS.zeros(), "role": ROLE["leader"], "term": 3, "last_term": 3, "ring_slots": 16, "window": 16, "replicas": 3, "quorum": 2,
             "group": 7, "last_index": 90, "commit_index": 90, "released_index": 90}
    await card.order("off", 0)
    await card.order("engage", 0, state=state)
    await come({"kind": KIND["retransmit"], "index": 5, "sender": 2, "term": 3})
    assert await card.read("behind") == 1 << 2 and await card.read("causes") & CAUSE["behind"]
    await card.write("behind", 1 << 2)
    assert await card.read("behind") == 0
    counts = {name: await card.read("count", REASONS + number) for name, number in COUNT.items()}
    assert counts["entries"] == 4 and counts["frames_sent"] == len(card.frames) and counts["left_lost"] == 0, counts
    # More than there is room for.
    for index in range(NUMBER["left_max"] + 4):
        await come({"kind": KIND["retransmit"], "index": 80, "sender": 1, "term": 3})
    assert await card.read("count", REASONS + COUNT["left_lost"]) == 4
    # What is lost and broken, each once.
    async def counted(name):
        return await card.read("count", REASONS + COUNT[name])

    request_of = frame_of(dice, place, 0, signed(card.c, keys, {**base_of, "kind": KIND["request"], "sender": LIMIT["sender_client"]}, b""))
    dut.rx_error_i.value = 1
    await card.receive(request_of)
    dut.rx_error_i.value = 0
    await card.rests()
    assert await counted("frames_broken") == 1
    await card.write("peer_end", 7400 << 48)
    await card.write("peer", 1)
    await card.receive(request_of)
    await card.rests()
    assert await counted("no_neighbour") == 1
    # To the address of all goes only what a leader sends to all.
    place.multicast[:] = [239, 1, 2, 3]
    await card.write("multicast", 0xef010203)
    await card.receive(frame_of(dice, place, 0, signed(card.c, keys, {**base_of, "kind": KIND["append_ok"], "index": 91, "sender": 1, "term": 3}, b""),
                                to_group=True))
    await card.rests()
    assert await counted("not_for_group") == 1
    before = [await card.read("count", number) for number in range(REASONS)]
    await card.write("keys_valid", 0)
    await card.receive(request_of)
    await card.rests()
    tag = next(number for number, name in REASON.items() if name == "tag")
    after = [await card.read("count", number) for number in range(REASONS)]
    assert [after[number] - before[number] for number in range(REASONS)] == [number == tag for number in range(REASONS)]
    dut.host_ready_i.value = 0
    while not await counted("frames_not_taken"):
        await card.receive(dice.bytes(1500))


@cocotb.test()
async def what_an_order_is_about_stays_until_it_is_done(dut):
    """OFF is done when all has left, and the network takes nothing: so the order is under way for as long as it is looked at."""
    card, keys, place = Card(dut), Keys(), Place()
    dice = card.dice
    await card.begin()
    place.at[0] = endpoint_of(IPV4_MAPPED + dice.bytes(4), 7401, dice.bytes(6))
    await lead(card, place, keys)
    given = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "group": 7, "kind": KIND["request"], "sender": LIMIT["sender_client"]}
    # An early notice comes before the entry does, which finds no way into memory yet.
    await card.write("causes", sum(CAUSE.values()))
    dut.tx_ready_i.value = dut.log_ready_i.value = 0
    packet = signed(card.c, keys, {**given, "payload_bytes": 200, "payload_crc32c": crc32c(bytes(200))}, bytes(200))
    await card.receive(frame_of(dice, place, 0, packet))
    await ClockCycles(dut.clk, 400)
    assert not await card.read("causes") & CAUSE["entry"]
    dut.log_ready_i.value = 1
    await RisingEdge(dut.clk)
    dut.log_ready_i.value = 0
    await ClockCycles(dut.clk, 4)
    assert await card.read("causes") & CAUSE["entry"] and not await card.read("count", REASONS + COUNT["entries"])
    dut.log_ready_i.value = 1
    state = {**REGISTERS.zeros(), "role": ROLE["leader"], "term": 9, "replicas": 3, "quorum": 2, "ring_slots": 16, "window": 16}
    await card.write("number", 77)
    await card.write_memory("registers", REGISTERS.memory(state))
    await card.write("causes", CAUSE["order"])
    await card.write("order", OPS.index("off"))
    await ClockCycles(dut.clk, 400)
    assert await card.read("state") & (STATE["under_way"] | STATE["busy"]) == STATE["under_way"] | STATE["busy"]
    assert not await card.read("causes") & CAUSE["order"]
    for name in ("number", "registers", "header"):
        assert not await card.half(AT[name][0], 5) and not await card.half(AT[name][0] + 4, 5), name
    assert await card.read("number") == 77
    # Neither another order nor the group's next registers.
    await card.write("order", OPS.index("engage"))
    assert await card.read("state") & STATE["refused"]
    dut.tx_ready_i.value = 1
    while await card.read("state") & STATE["under_way"]:
        pass
    assert len(card.frames) == 2 and await card.read("causes") & CAUSE["order"]
    assert (await card.read_memory("made_registers", REGISTERS))["term"] == 3, "it was not engaged"
    assert await card.order("engage", 0, state=state), "it is off now"

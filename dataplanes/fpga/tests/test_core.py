"""A replica's core does with frames what the plane in the kernel does: steps, entries, packets, and what is the host's."""
import collections

import cocotb
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from cocotb.utils import get_sim_time
from ends import BEAT, REPLICAS, Bench, endpoint_vector
from figures import note
from frames import GROUPS, IPV4_MAPPED, any_frame, endpoint_of, frame_of, signed
from in_c import Gap
from kernel_plane import ORIGIN, Model, frame_to, in_a_new_term
from layouts import AGAIN, FLAG, HEADER, KIND, LIMIT, REGISTERS, ROLE, outcome_of_vector
from test_crc32c import crc32c
from test_step import OPS, registers, stepped
from test_step import header as step_header

WALKS, FRAMES = 60, 120
WANTED = {
    "host", "refused", "to software", "off", "stored by leader", "stored by follower", "forwarded entry", "fan-out", "multicast", "reply",
    "forward", "asks for more", "does not ask", "resend", "answer", "nothing", "sent again", "answered", "sent again by the host",
    "answered by the host", "answered by the host alone", *(f"host: {op}" for op in OPS[1:]),
}


class Core(Bench):
    """With somebody who takes what the core gives."""

    def __init__(self, dut):
        super().__init__(dut)
        self.host, self.slots, self.beats, self.left, self.written = [], {}, {}, [], []
        # What the ring on the chip has, by place.
        self.kept = {}

    async def begin(self):
        await super().begin()
        for task in (self.take_sent(), self.take_host(), self.take_log()):
            cocotb.start_soon(task)
        if hasattr(self.dut, "left_o"):
            cocotb.start_soon(self.take_left())

    async def take_host(self):
        dut, frame = self.dut, b""
        while True:
            dut.host_ready_i.value = int(self.dice.below(3) > 0)
            await ReadOnly()
            if int(dut.host_valid_o.value) and int(dut.host_ready_i.value):
                frame += int(dut.host_data_o.value).to_bytes(BEAT, "big")[:int(dut.host_kept_o.value)]
                if int(dut.host_last_o.value):
                    self.host.append(frame)
                    frame = b""
            assert not int(dut.host_lost_o.value) and not int(dut.lost_o.value), "the bench is too fast"
            await RisingEdge(dut.clk)

    async def take_log(self):
        dut, offered = self.dut, None
        # A shell may wait until a beat is offered, and what is offered stays until it is taken.
        waits = self.dice.below(2) == 0
        while True:
            dut.log_ready_i.value = int(self.dice.below(4) > 0 and not (waits and offered is None))
            await ReadOnly()
            is_offered = int(dut.log_valid_o.value)
            now = [int(it.value) for it in (dut.log_group_o, dut.log_index_o, dut.log_beat_o, dut.log_data_o)] if is_offered else None
            assert offered in (None, now), "what was offered to the log was withdrawn"
            offered = None if int(dut.log_ready_i.value) else now
            if is_offered and int(dut.log_ready_i.value):
                at = int(dut.log_group_o.value), int(dut.log_index_o.value)
                beat, data = int(dut.log_beat_o.value), int(dut.log_data_o.value).to_bytes(BEAT, "big")
                beats = self.beats.setdefault(at, [])
                if beat == 0:  # last
                    self.slots[at] = b"".join([data, *beats])
                    self.written.append((at, self.slots[at]))
                    del self.beats[at]
                else:
                    assert beat == len(beats) + 1
                    beats.append(data)
            await RisingEdge(dut.clk)

    async def take_left(self):
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            if int(dut.left_o.value):
                it = AGAIN.of_vector(int(dut.left_range_o.value))
                what = ("answer", it["group"], it["from"], it["upto"], None) if it["answers"] else \
                    ("resend", it["group"], it["from"], it["upto"], it["peer"])
                self.left.append(what)

    async def settled(self, model):
        """Waits until all that was decided is done."""
        for _ in range(300):
            await ClockCycles(self.dut.clk, 40)
            taken = [(self.frames, model.sent), (self.host, model.host), (self.slots, model.slots), (self.left, model.left)]
            if all(len(done) >= len(decided) for done, decided in taken):
                break
        await ClockCycles(self.dut.clk, 300)


async def order(dut, op, group, header=None, number=0, state=None):
    """The host does something to a group: the outcome, and the group's registers then."""
    dut.order_valid_i.value, dut.order_op_i.value, dut.order_group_i.value = 1, OPS.index(op), group
    dut.order_header_i.value, dut.order_number_i.value = HEADER.vector(header or HEADER.zeros()), number
    dut.order_registers_i.value = REGISTERS.vector(state or REGISTERS.zeros())
    is_taken = False
    while not is_taken:
        await ReadOnly()
        is_taken = bool(int(dut.order_ready_o.value))
        await RisingEdge(dut.clk)
    dut.order_valid_i.value = 0
    is_done = False
    while not is_done:
        await ReadOnly()
        is_done = bool(int(dut.order_done_o.value))
        outcome, made = int(dut.order_outcome_o.value), int(dut.order_made_o.value)
        await RisingEdge(dut.clk)
    return outcome_of_vector(outcome), REGISTERS.of_vector(made)


async def engage(dut, group, state):
    """The host gives a group its registers."""
    await order(dut, "engage", group, state=state)


async def order_all_the_time(bench, group, reached):
    """The host does something to a group to which no packets come, while they do to others; until `is_calm`."""
    dice, state = bench.dice, REGISTERS.zeros()
    await order(bench.dut, "engage", group, state=state)
    while not bench.is_calm:
        op = dice.one_of(OPS[1:])
        given, engaged = step_header(dice, state), registers(dice, bench.c) if op == "engage" else None
        number = dice.near(state["round"] if op == "heartbeat" else state["last_index"])
        state, expected = stepped(bench.c, op, state, given, number, engaged)
        found = await order(bench.dut, op, group, given, number, engaged)
        assert found == (expected, state), f"{op} {number} of {given}\nin gates {found}\nin C     {(expected, state)}"
        reached[f"host: {op}"] += 1
        await ClockCycles(bench.dut.clk, dice.below(40))


def random_frame(bench, place, model):
    """One that means something to its group, or any other."""
    group = bench.dice.below(GROUPS - 1)
    if bench.dice.seldom(12):
        return any_frame(bench.dice, bench.c, place, bench.keys)[0]
    return frame_to(bench, place, group, model.states[group])


def behind_a_gap(bench, place, group, state):
    """Frames to a follower that lacks many entries: it asks, is sent as many as one question brings, and has to ask for the next."""
    header = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "sender": state["leader"], "group": state["group"], "term": state["term"],
              "flags": 0 if bench.keys[group].pairs[0].valid & 1 else 1}
    last = state["last_index"]
    yield {**header, "kind": KIND["heartbeat"], "index": last + 100}
    for index in range(last + 1, last + 1 + LIMIT["resend_entries_max"]):
        term = state["last_term"] if index == last + 1 else state["term"]
        yield {**header, "kind": KIND["append"], "index": index, "previous_term": term}


def blind_writes(bench, place, group, state):
    """Frames to a leader: blind writes, asked of it or of a follower, and others; and a follower that acknowledges them."""
    dice, index = bench.dice, state["last_index"]
    epochs = [0 if bench.keys[group].pairs[pair].valid & 1 else 1 for pair in range(2)]
    base = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "group": state["group"], "sender": 1}
    for number in range(60):
        size = dice.one_of([0, 5, 56, 57, 1000])
        blind, command = FLAG["blind"] if dice.below(3) else 0, dice.bytes(size)
        write = {**base, "session": 1, "sequence": number, "payload_crc32c": crc32c(command)}
        if dice.below(2):
            payload, header = command, {**write, "kind": KIND["request"], "sender": LIMIT["sender_client"], "flags": blind | epochs[1]}
        else:
            payload = dice.bytes(ORIGIN) + command
            header = {**write, "kind": KIND["forward"], "term": state["term"], "flags": blind | epochs[0]}
        index += 1
        yield frame_of(dice, place, group, signed(bench.c, bench.keys[group], {**header, "payload_bytes": len(payload)}, payload), False)
        if dice.below(2):
            acknowledged = {**base, "kind": KIND["append_ok"], "term": state["term"], "index": index, "flags": epochs[0]}
            yield frame_of(dice, place, group, signed(bench.c, bench.keys[group], acknowledged, b""), False)


@cocotb.test()
async def frames_do_what_they_do_in_the_kernel(dut):
    bench = Core(dut)
    dice = bench.dice
    await bench.begin()
    reached = collections.Counter()
    for walk in range(WALKS):
        place, epochs = bench.place(dice.one_of([0, 0, 9]), dice.seldom(3))
        peers = await bench.give_peers(place)
        model = Model(bench, place, epochs, peers)
        for taken in (bench.frames, bench.host, bench.slots, bench.left):
            taken.clear()
        for group in range(GROUPS):
            state = in_a_new_term(dice, registers(dice, bench.c), walk)
            model.states[group] = state
            model.gaps[group] = Gap(state["last_index"])
            await engage(dut, group, state)
        bench.slowness = dice.one_of([0, 0, 2])
        frames = (random_frame(bench, place, model) for _ in range(FRAMES))
        if walk == 0:
            group = next(group for group in range(GROUPS - 1) if bench.keys[group].pairs[0].valid)
            state = {**model.states[group], "role": ROLE["follower"], "me": 0, "leader": 1, "replicas": 3, "quorum": 2, "ring_slots": 64,
                     "window": 64, "start_index": 0, "last_index": 9, "commit_index": 0, "persisted_index": 9, "released_index": 9, "held": 0}
            model.states[group], model.gaps[group] = state, Gap(state["last_index"])
            await engage(dut, group, state)
            frames = [frame_of(dice, place, group, signed(bench.c, bench.keys[group], header, b"")) for header in behind_a_gap(bench, place, group, state)]
        elif walk == 1:
            group = next(group for group in range(GROUPS - 1) if all(pair.valid for pair in bench.keys[group].pairs))
            state = {**model.states[group], "role": ROLE["leader"], "me": 0, "leader": 0, "replicas": 3, "quorum": 2, "ring_slots": 64,
                     "window": 64, "start_index": 0, "last_index": 9, "commit_index": 9, "persisted_index": 9, "released_index": 9, "held": 0,
                     "match_index": [9] * REPLICAS}
            model.states[group], model.gaps[group] = state, Gap(state["last_index"])
            await engage(dut, group, state)
            frames = blind_writes(bench, place, group, state)
        bench.is_calm = False
        ordering = cocotb.start_soon(order_all_the_time(bench, GROUPS - 1, reached))
        for frame in frames:
            before = model.copied()
            said = model.take(frame)
            reached[said] += 1
            if said in ("resend", "answer"):
                # Else what the ring has would depend on the clock.
                await bench.settled(before)
            await bench.receive(frame)
            if said in ("resend", "answer"):
                await bench.settled(model)
            while len(model.sent) - len(bench.frames) > 16 or len(model.host) - len(bench.host) > 4:
                await RisingEdge(dut.clk)
        await bench.settled(model)
        bench.is_calm = True
        await ordering
        assert bench.host == model.host
        assert len(bench.frames) == len(model.sent)
        for number, (frame, wanted) in enumerate(zip(bench.frames, model.sent)):
            assert frame == wanted, f"walk {walk}, frame {number}: {frame.hex()}, in C {wanted.hex()}"
        assert not bench.beats and bench.slots.keys() == model.slots.keys()
        for at, slot in model.slots.items():
            assert bench.slots[at][:len(slot)] == slot, f"walk {walk}, slot {at}: {bench.slots[at].hex()}, in C {slot.hex()}"
        assert bench.left == model.left
        reached += model.reached
    print(dict(reached), flush=True)
    assert WANTED <= set(reached), WANTED - set(reached)


def sent_by(frame, place, group):
    """Whether a frame comes from the port of a group's plane."""
    at = 12
    if frame[at:at + 2] == b"\x81\x00":
        at += 4
    udp = at + 2 + (20 if frame[at:at + 2] == b"\x08\x00" else 40)
    return frame[udp:udp + 2] == bytes(place.at[group].port)


@cocotb.test()
async def nothing_of_a_group_leaves_once_it_is_off(dut):
    bench = Core(dut)
    dice = bench.dice
    await bench.begin()
    dut.keys_valid_i.value = (1 << 32) - 1
    before = passed = 0
    for _ in range(20):
        place, epochs = bench.place(0, False)
        await bench.give_peers(place)
        for taken in (bench.frames, bench.host, bench.slots):
            taken.clear()
        state = {**REGISTERS.zeros(), "role": ROLE["leader"], "term": 3, "last_term": 3, "ring_slots": 4096, "window": 4096, "replicas": 3,
                 "quorum": 2}
        for group in range(2):
            await engage(dut, group, {**state, "group": group})
        request = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "kind": KIND["request"], "sender": LIMIT["sender_client"]}

        async def requests(count):
            for number in range(count):
                group = dice.below(2)
                packet = signed(bench.c, bench.keys[group], {**request, "group": group, "session": number}, b"")
                await bench.receive(frame_of(dice, place, group, packet, False))
                await ClockCycles(dut.clk, dice.below(24))

        bench.slowness = 6
        asking = cocotb.start_soon(requests(60))
        await ClockCycles(dut.clk, 200 + dice.below(600))
        await order(dut, "off", 0)
        mark, slots = len(bench.frames), sum(group == 0 for group, _ in bench.slots)
        before += sum(sent_by(frame, place, 0) for frame in bench.frames)
        await asking
        bench.slowness = 0
        await ClockCycles(dut.clk, 3000)
        assert not any(sent_by(frame, place, 0) for frame in bench.frames[mark:]), "it sends though it is off"
        assert slots == sum(group == 0 for group, _ in bench.slots), "it stores though it is off"
        passed += len(bench.host)
    assert before > 100 and passed > 100, (before, passed)


SIZES = (0, 64, 512, LIMIT["payload_bytes_max"])
# Clocks from one request to the next, down to what a core can send of it.
GAPS = (250, 125, 50, 25, 12, 8, 7, 6)


async def clocks_of(bench, frames, gap=0):
    """Frames, each so many clocks behind the one before, or without gaps: when the first beat of each frame that is sent leaves, in clocks
    behind the first that comes."""
    bench.clock, bench.begins = 0, []
    counting = cocotb.start_soon(bench.note_begins())
    for frame in frames:
        await bench.receive(frame)
        beats = (len(frame) + BEAT - 1) // BEAT
        if gap > beats:
            await ClockCycles(bench.dut.clk, gap - beats)
    await ClockCycles(bench.dut.clk, 900)
    counting.cancel()
    return [begin - 1 for begin in bench.begins]


def packet(bench, header, size):
    """One with so much payload, signed."""
    payload = bytes(size)
    given = {**header, "payload_bytes": size, "payload_crc32c": crc32c(payload)}
    return signed(bench.c, bench.keys[0], given, payload)


async def settle_alone(bench):
    """A core with its first group's keys and replicas, whose outputs are taken at once: where it is."""
    dut, dice = bench.dut, bench.dice
    await bench.begin()
    dut.tx_ready_i.value = dut.log_ready_i.value = dut.host_ready_i.value = 1
    place, _ = bench.place(0, False)
    for replica in range(REPLICAS):
        dut.peer_write_i.value, dut.peer_number_i.value = 1, replica
        dut.peer_i.value = endpoint_vector(endpoint_of(IPV4_MAPPED + dice.bytes(4), 7400, dice.bytes(6)))
        await RisingEdge(dut.clk)
    dut.peer_write_i.value = 0
    dut.keys_valid_i.value = (1 << 32) - 1
    return place


# README.md, "What the host orders", has how it is made up.
FENCE_CLOCKS_MAX = 32_000
HEADER_HERE = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "group": 7, "term": 3}
REQUEST = {**HEADER_HERE, "kind": KIND["request"], "sender": LIMIT["sender_client"], "term": 0}
STATE = {**REGISTERS.zeros(), "term": 3, "last_term": 3, "group": 7, "ring_slots": 1024, "window": 1024, "replicas": 3, "quorum": 2}
FOLLOWER = {**STATE, "role": ROLE["follower"], "me": 0, "leader": 1}
LEADER = {**STATE, "role": ROLE["leader"], "me": 0, "leader": 0}


def append(index):
    return {**HEADER_HERE, "kind": KIND["append"], "sender": 1, "index": index, "previous_term": 3}


@cocotb.test()
async def smallest_packets_take_two_clocks_each(dut):
    bench = Bench(dut)
    place = await settle_alone(bench)

    def frames_of(headers, size=0):
        return [frame_of(bench.dice, place, 0, packet(bench, each, size)) for each in headers]

    for size in SIZES:
        await engage(dut, 0, FOLLOWER)
        count = 300 if size == 0 else 40
        begins = await clocks_of(bench, frames_of([append(index) for index in range(1, count + 1)], size))
        assert len(begins) == count and (size or begins[-1] - begins[0] == 2 * (count - 1))
        note("follower, an entry to its acknowledgement", size, clocks=begins[0], clocks_a_packet=(begins[-1] - begins[0]) / (count - 1))
        await order(dut, "off", 0)
        await engage(dut, 0, LEADER)
        count = 100 if size == 0 else 20
        begins = await clocks_of(bench, frames_of([{**REQUEST, "session": number} for number in range(count)], size))
        assert len(begins) == 2 * count and (size or begins[-1] - begins[0] == 2 * (2 * count - 1))
        note("leader, a request to its first entry", size, clocks=begins[0], clocks_a_packet=(begins[-1] - begins[1]) / (count - 1))
        await order(dut, "off", 0)
    # With the largest requests, and as many copies of each as there may be, all queues of requests are full.
    for size, leader, count in (0, LEADER, 100), (SIZES[-1], {**LEADER, "replicas": REPLICAS, "quorum": REPLICAS}, 60):
        await engage(dut, 0, leader)
        asking = cocotb.start_soon(clocks_of(bench, frames_of([REQUEST] * count, size)))
        await ClockCycles(dut.clk, 100 + 20 * size // BEAT)
        begin = get_sim_time("ns")
        await order(dut, "off", 0)
        clocks = int(get_sim_time("ns") - begin) // 4
        assert clocks < FENCE_CLOCKS_MAX
        note("a busy group is off, and all that it sends has left", size, clocks=clocks, replicas=leader["replicas"])
        await asking


async def until(dut, signal):
    """Clocks until it is 1."""
    clocks = 0
    while True:
        await ReadOnly()
        if int(signal.value):
            return clocks
        clocks += 1
        await RisingEdge(dut.clk)


@cocotb.test()
async def what_is_not_loaded_waits_for_nothing(dut):
    """Requests at several rates; what an acknowledgement takes, and what a frame that is the host's."""
    bench = Bench(dut)
    place = await settle_alone(bench)
    await engage(dut, 0, LEADER)
    request = frame_of(bench.dice, place, 0, packet(bench, REQUEST, 50))
    waited = []
    for gap in GAPS:
        await order(dut, "off", 0)
        await engage(dut, 0, LEADER)
        begins = await clocks_of(bench, [request] * 120, gap)
        assert len(begins) == 240, "something was lost"
        waits = sorted(begin - gap * number for number, begin in enumerate(begins[::2]))
        waited.append(waits[0])
        note("leader, requests at a rate", 50, gap=gap, clocks=waits[60], clocks_p99=waits[118])
    assert len(set(waited)) == 1, "the first waits for nobody"
    for what, header, signal in (("leader, an acknowledgement to the commit", {**HEADER_HERE, "kind": KIND["append_ok"], "sender": 1, "index": 5}, dut.commits_o),
                                 ("a frame that is the host's", None, dut.host_valid_o)):
        frame = bytes(114) if header is None else frame_of(bench.dice, place, 0, packet(bench, header, 0))
        coming = cocotb.start_soon(bench.receive(frame))
        note(what, 0, clocks=await until(dut, signal) - 1)
        await coming
        await ClockCycles(dut.clk, 300)

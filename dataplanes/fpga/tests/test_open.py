"""Frames are found, checked and kept in gates as in the C, whatever comes, and however long whoever takes them waits."""
import collections
import cocotb
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from ends import BEAT, Bench
from frames import BRINGS_COMMAND, CHANGES, any_frame, smallest_frame
from in_c import found
from layouts import HEADER, HEADER_BYTES, KIND, LIMIT, REASON
from test_crc32c import crc32c

FRAMES = 1200  # of each part
NOT_OURS, CHECKSUM = 1, 5
# Of a verdict: behind the header, from the lowest bit.
FOUND = [("mac", 48), ("port", 16), ("address", 128), ("udp_bytes", 16), ("to_group", 1), ("lower", 2), ("group", 3), ("ours", 1)]
VERDICT = [*FOUND, ("foreign", 1), ("reason", 8), ("is_ours", 1)]
WANTED = {"host", "foreign", "none", "version", "malformed", "tag", "checksum"}


def expected(c, place, keys, frame):
    """What the C says of a frame."""
    it = found(place, frame)
    if it is None:
        return {"is_ours": 0, "foreign": 0}
    packet = frame[it.at:it.at + it.bytes]
    reason, header = c.check(keys[it.group], packet)
    if reason == NOT_OURS:
        return {"is_ours": 0, "foreign": 1}
    names = {value: name for name, value in KIND.items()}
    if reason == 0 and names[header["kind"]] in BRINGS_COMMAND:
        skipped = LIMIT["origin_bytes"] if header["kind"] == KIND["forward"] else 0
        reason = 0 if crc32c(packet[HEADER_BYTES + skipped:]) == header["payload_crc32c"] else CHECKSUM
    sender = it.sender
    return {
        "is_ours": 1, "foreign": 0, "reason": reason, "header": header, "group": it.group, "to_group": it.to_group,
        "udp_bytes": it.bytes + 8, "address": int.from_bytes(bytes(sender.address), "big"),
        "port": int.from_bytes(bytes(sender.port), "big"), "mac": int.from_bytes(bytes(sender.mac), "big"),
    }


def told(vector):
    """A verdict of the gates, as far as it says something."""
    header = HEADER.of_vector(vector & (1 << HEADER.bits) - 1)
    vector >>= HEADER.bits
    fields = {}
    for name, bits in VERDICT:
        fields[name] = vector & (1 << bits) - 1
        vector >>= bits
    if not fields["is_ours"]:
        return {"is_ours": 0, "foreign": fields["foreign"]}
    del fields["lower"], fields["ours"]
    return {**fields, "header": header}


class Taking(Bench):
    """With somebody who takes what comes."""

    def __init__(self, dut):
        super().__init__(dut)
        self.taken, self.stalls = [], 0

    async def begin(self):
        await super().begin()
        cocotb.start_soon(self.take())
        cocotb.start_soon(self.count())

    async def count(self):
        while True:
            await RisingEdge(self.dut.clk)
            await ReadOnly()
            self.counts["lost"] += int(self.dut.lost_o.value)
            self.counts["broken"] += int(self.dut.broken_o.value)

    async def take(self):
        """Takes verdicts and frames, now and then after a while."""
        dut = self.dut
        while True:
            while not int(dut.valid_o.value):
                await RisingEdge(dut.clk)
                await ReadOnly()
            await self.wait()
            verdict, frame, is_last = told(int(dut.verdict_o.value)), b"", False
            while not is_last:
                await self.wait()
                assert int(dut.frame_valid_o.value), "a frame is there before its verdict"
                kept = int(dut.frame_kept_o.value)
                frame += int(dut.frame_data_o.value).to_bytes(BEAT, "big")[:kept]
                is_last = bool(int(dut.frame_last_o.value))
                await RisingEdge(dut.clk)
                dut.frame_ready_i.value = 1
                dut.ready_i.value = int(is_last)
                await RisingEdge(dut.clk)
                dut.frame_ready_i.value = dut.ready_i.value = 0
                await ReadOnly()
            self.taken.append((verdict, frame))

    async def wait(self):
        while self.stalls and self.dice.seldom(3):
            await ClockCycles(self.dut.clk, 1 + self.dice.below(self.stalls))
            await ReadOnly()


@cocotb.test()
async def frames_are_found_and_checked_as_in_the_c(dut):
    bench = Taking(dut)
    dice = bench.dice
    await bench.begin()
    reached, changes = collections.Counter(), collections.Counter()
    for vlan, has_multicast, gaps, stalls in [(0, False, 0, 0), (0, True, 3, 0), (77, False, 0, 0), (77, True, 5, 40), (0, True, 0, 300)]:
        place, _ = bench.place(vlan, has_multicast)
        bench.stalls = stalls
        bench.taken.clear()
        bench.counts.clear()
        sent, broken = [], 0
        for _ in range(FRAMES):
            frame, change = any_frame(dice, bench.c, place, bench.keys)
            error = dice.seldom(50)
            await bench.receive(frame, error, gaps)
            changes[change] += 1
            broken += error
            if not error:
                sent.append(frame)
            # Who takes them is slower than the gates, and is overrun only where that is the question.
            if stalls < 300:
                while len(sent) - len(bench.taken) > 20:
                    await RisingEdge(dut.clk)
        bench.stalls, before = 0, -1
        while len(bench.taken) != before:
            before = len(bench.taken)
            await ClockCycles(dut.clk, 2000)
        lost = bench.counts["lost"]
        print(f"vlan {vlan}: {len(sent)} frames, {lost} lost, {broken} broken", flush=True)
        assert bench.counts["broken"] == broken
        assert len(bench.taken) == len(sent) - lost
        assert (lost > 0 if stalls >= 300 else not lost or stalls)
        at = 0
        for verdict, frame in bench.taken:
            while sent[at] != frame:
                at += 1  # lost
                assert at < len(sent), "a frame that was not sent"
            at += 1
            wanted = expected(bench.c, place, bench.keys, frame)
            assert verdict == wanted, f"{frame.hex()}: {verdict}, in C {wanted}"
            reached["foreign" if verdict["foreign"] else "host" if not verdict["is_ours"] else REASON[verdict["reason"]]] += 1
    print(dict(reached), dict(changes), flush=True)
    assert WANTED <= set(reached), WANTED - set(reached)
    assert set(CHANGES) <= set(changes)


@cocotb.test()
async def smallest_packets_take_two_clocks_each(dut):
    bench = Bench(dut)
    await bench.begin()
    place, _ = bench.place(0, False)
    dut.ready_i.value = dut.frame_ready_i.value = 1
    verdicts, clock = [], 0

    async def count():
        nonlocal clock
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            clock += 1
            if int(dut.valid_o.value):
                verdicts.append(clock)
            assert not int(dut.lost_o.value)

    cocotb.start_soon(count())
    frames = [smallest_frame(bench.dice, bench.c, place, bench.keys) for _ in range(300)]
    begun = clock
    for frame in frames:
        await bench.receive(frame)
    await ClockCycles(dut.clk, 200)
    assert len(verdicts) == len(frames)
    assert verdicts[-1] - verdicts[0] == 2 * (len(frames) - 1)
    print(f"figure: verdict {verdicts[0] - begun - 1} clocks behind a frame's first beat", flush=True)

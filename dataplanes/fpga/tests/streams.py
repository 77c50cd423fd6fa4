"""Streams of frames as shells have them: the first byte lowest, and a bit for each byte that is there. Who gives and who takes them waits
now and then, and who takes them holds the module to what every shell asks of it."""
import collections

import cocotb
from cocotb.triggers import RisingEdge

BEAT = 64


class Port:
    """The signals that begin so; `beside`: what stands beside frames."""

    def __init__(self, dut, prefix, clk, dice, beside=()):
        self.clk, self.dice, self.name = clk, dice, prefix
        self.valid, self.data, self.keep, self.last = (getattr(dut, f"{prefix}_{name}") for name in ("tvalid", "tdata", "tkeep", "tlast"))
        self.ready = getattr(dut, f"{prefix}_tready", None)
        self.beside = {name: getattr(dut, f"{prefix}_{name}") for name in beside}


class Source(Port):
    """Gives frames to a module. `has_gaps`: also in the middle of one."""

    def __init__(self, dut, prefix, clk, dice, beside=(), has_gaps=True):
        super().__init__(dut, prefix, clk, dice, beside)
        # One beat in so many waits; 0: none. How often the module let one wait. How many beats of a frame are given.
        self.queue, self.has_gaps, self.pauses, self.waited, self.given = collections.deque(), has_gaps, 3, 0, 0
        self.stops = False  # in the middle of a frame
        self.valid.value = 0
        cocotb.start_soon(self.run())

    def send(self, frame, **beside):
        """`beside` may end in `_at_end`: of the last beat, else of all."""
        self.queue.append((frame, beside))

    async def run(self):
        while True:
            if not self.queue:
                await RisingEdge(self.clk)
                continue
            frame, beside = self.queue[0]
            for at in range(0, len(frame), BEAT):
                while self.stops and self.given or self.pauses and (self.has_gaps or at == 0) and self.dice.seldom(self.pauses):
                    await RisingEdge(self.clk)
                await self.beat(frame[at:at + BEAT], at + BEAT >= len(frame), beside)
            self.queue.popleft()
            self.given = 0

    async def beat(self, bytes_, is_last, beside):
        self.valid.value, self.last.value, self.keep.value = 1, int(is_last), (1 << len(bytes_)) - 1
        # What stands behind the end is anything.
        self.data.value = int.from_bytes(bytes_ + self.dice.bytes(BEAT - len(bytes_)), "little")
        for name, signal in self.beside.items():
            width = len(signal)
            signal.value = beside[name] if name in beside else beside[f"{name}_at_end"] if is_last else self.dice.number(width)
        await RisingEdge(self.clk)
        while self.ready is not None and not int(self.ready.value):
            self.waited += 1
            await RisingEdge(self.clk)
        self.given += 1
        self.valid.value = 0

    @property
    def is_done(self):
        return not self.queue


class Sink(Port):
    """Takes frames from a module: `took` gets each, and what stood beside it. `is_reset`: whether nothing holds now."""

    def __init__(self, dut, prefix, clk, dice, took, beside=(), gapless=False, is_reset=lambda: False):
        super().__init__(dut, prefix, clk, dice, beside)
        # It takes one beat in so many.
        self.took, self.slowness, self.gapless, self.is_reset, self.stalls = took, 1, gapless, is_reset, 0
        # In which clock each frame began.
        self.clock, self.begins = 0, []
        cocotb.start_soon(self.run())

    async def run(self):
        frame, around, waits = b"", None, None
        while True:
            takes = self.ready is None or self.dice.seldom(self.slowness)
            if self.ready is not None:
                self.ready.value = int(takes)
            await RisingEdge(self.clk)
            self.clock += 1
            if self.is_reset():
                frame, around, waits = b"", None, None
                continue
            if not int(self.valid.value):
                assert waits is None, f"{self.name}: what waits was taken back"
                assert not frame or not self.gapless, f"{self.name}: a gap in a frame"
                continue
            data, keep, is_last = int(self.data.value), int(self.keep.value), int(self.last.value)
            beside = {name: int(signal.value) for name, signal in self.beside.items()}
            assert waits is None or waits == (data, keep, is_last, beside), f"{self.name}: what waits has changed"
            assert not frame or around == beside, f"{self.name}: what stands beside a frame changed within it"
            if not frame and waits is None:
                self.begins.append(self.clock)
            waits, around = None if takes else (data, keep, is_last, beside), beside
            if not takes:
                self.stalls += 1
                continue
            count = keep.bit_count()
            assert count and keep == (1 << count) - 1 and (is_last or count == BEAT), f"{self.name}: tkeep {keep:x}"
            frame += data.to_bytes(BEAT, "little")[:count]
            if is_last:
                self.took(frame, beside)
                frame = b""

"""The core in Corundum's application block keeps its contract: tags and marks beside frames, what was sent, and descriptors for the log."""
import collections

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from shells import BEAT, Shell, tests_of
from streams import Sink, Source

SIDEBAND = ("tuser",)
TAG_BITS = 16
CORE_TAG = (1 << TAG_BITS) - 1
FRAME_BYTES_MAX = 9214  # as the module has it


class Dma:
    """Corundum's: takes descriptors, reads what they are about from the block's memory, writes it to the host's, and says so."""

    def __init__(self, shell):
        self.shell, self.dut, self.dice = shell, shell.dut, shell.dice
        self.reading, self.landing = collections.deque(), collections.deque()
        valid = self.dut.data_dma_ram_rd_cmd_valid
        self.segments, self.row_bits = len(valid), len(self.dut.data_dma_ram_rd_cmd_addr) // len(valid)
        self.segment_bytes = len(self.dut.data_dma_ram_rd_resp_data) // len(valid) // 8
        self.pauses = shell.log_pauses()
        self.begin()

    def begin(self):
        self.dut.m_axis_data_dma_write_desc_ready.value = self.dut.s_axis_data_dma_write_desc_status_valid.value = 0
        self.dut.data_dma_ram_rd_cmd_valid.value = self.dut.data_dma_ram_rd_resp_ready.value = 0
        self.reading.clear()
        self.landing.clear()
        self.tasks = [cocotb.start_soon(task) for task in (self.take(), self.read(), self.say())]

    def end(self):
        for task in self.tasks:
            task.cancel()

    async def take(self):
        dut = self.dut
        desc = {name: getattr(dut, f"m_axis_data_dma_write_desc_{name}") for name in ("dma_addr", "ram_sel", "ram_addr", "imm_en", "len", "tag")}
        waits = None
        while True:
            ready = len(self.reading) < 8 and not next(self.pauses)
            dut.m_axis_data_dma_write_desc_ready.value = int(ready)
            await RisingEdge(self.shell.clk)
            if not int(dut.m_axis_data_dma_write_desc_valid.value):
                assert waits is None, "a descriptor was taken back"
                continue
            given = {name: int(signal.value) for name, signal in desc.items()}
            assert waits in (None, given), "a descriptor has changed"
            waits = None if ready else given
            if ready:
                assert given["len"] == BEAT and not given["imm_en"] and not given["ram_sel"]
                assert given["tag"] not in [each["tag"] for each in (*self.reading, *self.landing)], "a tag is in use"
                self.reading.append(given)

    async def read(self):
        """Each segment of the memory by itself, as far as the row's beat goes."""
        dut, width = self.dut, 8 * self.segment_bytes
        while True:
            if not self.reading:
                await RisingEdge(self.shell.clk)
                continue
            given = self.reading[0]
            row, at = divmod(given["ram_addr"], self.segments * self.segment_bytes)
            wanted = range(at // self.segment_bytes, (at + BEAT - 1) // self.segment_bytes + 1)
            asks, answers, data = set(wanted), set(wanted), {}
            while answers:
                takes = self.dice.number(self.segments)
                dut.data_dma_ram_rd_cmd_valid.value = sum(1 << segment for segment in asks)
                dut.data_dma_ram_rd_cmd_addr.value = sum(row << segment * self.row_bits for segment in asks)
                dut.data_dma_ram_rd_resp_ready.value = takes
                await RisingEdge(self.shell.clk)
                asked, answered = int(dut.data_dma_ram_rd_cmd_ready.value), int(dut.data_dma_ram_rd_resp_valid.value) & takes
                for segment in wanted:
                    if answered >> segment & 1:
                        data[segment] = int(dut.data_dma_ram_rd_resp_data.value) >> segment * width & (1 << width) - 1
                        answers.remove(segment)
                asks = {segment for segment in asks if not asked >> segment & 1}
            dut.data_dma_ram_rd_cmd_valid.value = dut.data_dma_ram_rd_resp_ready.value = 0
            row_bytes = b"".join(data[segment].to_bytes(self.segment_bytes, "little") for segment in wanted)
            at %= self.segment_bytes
            self.landing.append({**given, "data": row_bytes[at:at + BEAT]})
            self.reading.popleft()

    async def say(self):
        """What has landed is said later, and not always in order."""
        dut = self.dut
        status = {name: getattr(dut, f"s_axis_data_dma_write_desc_status_{name}") for name in ("valid", "tag", "error")}
        said = []
        while True:
            await RisingEdge(self.shell.clk)
            status["valid"].value = 0
            if self.landing and not next(self.pauses):
                given = self.landing[0]
                if self.shell.log_clocks:
                    await ClockCycles(self.shell.clk, self.shell.log_clocks)
                self.landing.popleft()
                if not self.shell.fails:
                    self.shell.written(given["dma_addr"], given["data"])
                said.append((given["tag"], int(self.shell.fails)))
            if said and self.dice.seldom(2):
                tag, error = said.pop(self.dice.below(min(len(said), 2)))
                status["valid"].value, status["tag"].value, status["error"].value = 1, tag, error and 1 + self.dice.below(15)


class Corundum(Shell):
    keeps_up = False

    async def begin(self):
        dut, clk, dice = self.dut, self.dut.clk, self.dice
        self.clk = clk
        self.tags, self.completions, self.said, self.heard = collections.deque(), collections.deque(), [], []
        cocotb.start_soon(Clock(clk, 4000, unit="ps").start())
        dut.rst.value = 1
        self.connect("s_axil_app_ctrl", clk, dut.rst)
        self.dma = Dma(self)
        self.rx = Source(dut, "s_axis_sync_rx", clk, dice, SIDEBAND)
        self.own = Source(dut, "s_axis_sync_tx", clk, dice, SIDEBAND)
        self.tx = Sink(dut, "m_axis_sync_tx", clk, dice, self.took_tx, SIDEBAND, is_reset=self.is_reset)
        self.to_host = Sink(dut, "m_axis_sync_rx", clk, dice, self.took_host, SIDEBAND, is_reset=self.is_reset)
        cocotb.start_soon(self.say_what_was_sent())
        cocotb.start_soon(self.hear_what_was_sent())
        await self.reset()
        return self

    def is_reset(self):
        return bool(int(self.dut.rst.value))

    async def reset(self):
        self.dut.rst.value = 1
        self.dma.end()
        await ClockCycles(self.clk, 10 + self.dice.below(60))
        self.dma.begin()
        self.dut.rst.value = 0
        self.released()
        await ClockCycles(self.clk, 10)

    def beside_rx(self, frame, is_broken):
        time = self.dice.number(96) << 1
        return {"tuser_at_end": time | is_broken}

    def beside_own(self, frame, is_lost, is_broken):
        tag = self.dice.below(CORE_TAG)
        if not is_lost:
            self.tags.append((frame, tag))
        return {"tuser": tag << 1 | is_broken}

    def check_tx(self, frame, beside, is_own):
        tag, is_bad = divmod(beside["tuser"], 2)
        while is_own and self.tags[0][0] != frame:
            self.tags.popleft()  # a reset has eaten it
        assert not is_bad and tag == (self.tags.popleft()[1] if is_own else CORE_TAG)
        self.completions.append((tag, self.dice.number(96)))

    def check_host(self, frame, beside):
        assert beside == {"tuser": 0}

    def check_in_the_end(self):
        assert self.heard == self.said and self.heard and self.reached["core's was sent"]

    async def say_what_was_sent(self):
        """The MAC says of each frame that it was sent, and when."""
        port = {name: getattr(self.dut, f"s_axis_sync_tx_cpl_{name}") for name in ("valid", "ready", "tag", "ts")}
        port["valid"].value = 0
        while True:
            await RisingEdge(self.clk)
            if self.completions and self.dice.seldom(2):
                port["valid"].value, (port["tag"].value, port["ts"].value) = 1, self.completions[0]
                await RisingEdge(self.clk)
                while not int(port["ready"].value):
                    await RisingEdge(self.clk)
                port["valid"].value = 0
                tag, time = self.completions.popleft()
                self.reached["core's was sent"] += tag == CORE_TAG
                if tag != CORE_TAG:
                    self.said.append((tag, time))

    async def hear_what_was_sent(self):
        """The host's side hears of its own frames alone."""
        port = {name: getattr(self.dut, f"m_axis_sync_tx_cpl_{name}") for name in ("valid", "ready", "tag", "ts")}
        while True:
            ready = int(self.dice.seldom(2))
            port["ready"].value = ready
            await RisingEdge(self.clk)
            if ready and int(port["valid"].value):
                self.heard.append((int(port["tag"].value), int(port["ts"].value)))


async def begin(dut):
    return await Corundum(dut, FRAME_BYTES_MAX, has_marks=True).begin()


globals().update(tests_of(begin))

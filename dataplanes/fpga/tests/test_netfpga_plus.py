"""The core as NetFPGA-PLUS's data path keeps the shell's contract: size, source and destination in tuser, and two resets."""
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from shells import Memory, Shell, tests_of
from streams import Sink, Source

SIDEBAND = ("tuser",)
# A bit for each port.
MAC, DMA = 1, 2


def tuser(source, destination, size):
    return destination << 24 | source << 16 | size


class NetFpga(Shell):
    async def begin(self):
        dut, clk, dice = self.dut, self.dut.axis_aclk, self.dice
        self.clk, self.in_reset = clk, True
        cocotb.start_soon(Clock(clk, 4000, unit="ps").start())
        cocotb.start_soon(Clock(dut.axi_aclk, 8000, unit="ps").start())
        dut.axis_resetn.value = dut.axi_resetn.value = 0
        self.connect("s_axil", dut.axi_aclk, dut.axi_resetn, False)
        Memory(self)
        self.rx = Source(dut, "s_axis_mac", clk, dice, SIDEBAND)
        self.own = Source(dut, "s_axis_dma", clk, dice, SIDEBAND)
        self.tx = Sink(dut, "m_axis_mac", clk, dice, self.took_tx, SIDEBAND, is_reset=lambda: self.in_reset)
        self.to_host = Sink(dut, "m_axis_dma", clk, dice, self.took_host, SIDEBAND, is_reset=lambda: self.in_reset)
        await self.reset()
        return self

    async def reset(self):
        """Each clock has its reset: one of them, or both, and either ends first."""
        dut, which, self.in_reset = self.dut, 3 if self.in_reset else 1 + self.dice.below(3), True
        resets = [signal for bit, signal in enumerate((dut.axis_resetn, dut.axi_resetn)) if which >> bit & 1]
        for signal in resets:
            signal.value = 0
        await ClockCycles(dut.axi_aclk, 4 + self.dice.below(40))
        for signal in resets:
            signal.value = 1
            await ClockCycles(dut.axi_aclk, self.dice.below(20))
        while not int(dut.shell.mod_rst_done_o.value):
            await ClockCycles(dut.axi_aclk, 1)
        self.in_reset = False
        self.released()

    def beside_rx(self, frame, _):
        return {"tuser": tuser(MAC, 0, len(frame))}

    def beside_own(self, frame, *_):
        return {"tuser": tuser(DMA, 0, len(frame))}

    def check_tx(self, frame, beside, _):
        assert beside == {"tuser": tuser(DMA, MAC, len(frame))}

    def check_host(self, frame, beside):
        assert beside == {"tuser": tuser(MAC, DMA, len(frame))}


async def begin(dut):
    return await NetFpga(dut).begin()


globals().update(tests_of(begin))

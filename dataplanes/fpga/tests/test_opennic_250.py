"""The core in OpenNIC's box of 250 MHz keeps the shell's contract: sizes, sources and destinations beside frames, and the reset pair."""
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from shells import Memory, Shell, tests_of
from streams import Sink, Source

SIDEBAND = ("tuser_size", "tuser_src", "tuser_dst")
# As the shell numbers them.
FUNCTION, MAC = 1 << 0, 1 << 6


class OpenNic(Shell):
    """What the boxes of both clocks have."""

    def is_reset(self):
        return not int(self.dut.mod_rst_done.value)

    async def begin(self, clk, half_period_ps):
        dut, self.clk = self.dut, clk
        cocotb.start_soon(Clock(clk, 2 * half_period_ps, unit="ps").start())
        cocotb.start_soon(Clock(dut.axil_aclk, 8000, unit="ps").start())
        dut.mod_rstn.value = 1
        self.connect("s_axil", dut.axil_aclk, dut.mod_rst_done, False)
        Memory(self)
        self.streams()
        await ClockCycles(dut.axil_aclk, 5)
        await self.reset()
        return self

    async def reset(self):
        """As the shell does it, through the pair."""
        dut = self.dut
        dut.mod_rstn.value = 0
        low = 1 + self.dice.below(60)
        await ClockCycles(dut.axil_aclk, 3)
        for _ in range(low):
            assert not int(dut.mod_rst_done.value), "it is not done while it is asked for"
            await RisingEdge(dut.axil_aclk)
        dut.mod_rstn.value = 1
        for _ in range(100):
            await RisingEdge(dut.axil_aclk)
            if int(dut.mod_rst_done.value):
                break
        self.released()
        for _ in range(40):
            await RisingEdge(dut.axil_aclk)
            assert int(dut.mod_rst_done.value), "it is done, and stays so"


class Box250(OpenNic):
    def streams(self):
        dut, clk, dice = self.dut, self.clk, self.dice
        self.rx = Source(dut, "s_axis_adap_rx_250mhz", clk, dice, SIDEBAND)
        self.own = Source(dut, "s_axis_qdma_h2c", clk, dice, SIDEBAND)
        self.tx = Sink(dut, "m_axis_adap_tx_250mhz", clk, dice, self.took_tx, SIDEBAND, is_reset=self.is_reset)
        self.to_host = Sink(dut, "m_axis_qdma_c2h", clk, dice, self.took_host, SIDEBAND, is_reset=self.is_reset)

    def beside_rx(self, frame, _):
        return {"tuser_size": len(frame), "tuser_src": MAC, "tuser_dst": 0}

    def beside_own(self, frame, *_):
        return {"tuser_size": len(frame), "tuser_src": FUNCTION, "tuser_dst": 0}

    def check_tx(self, frame, beside, _):
        assert beside == {"tuser_size": len(frame), "tuser_src": FUNCTION, "tuser_dst": MAC}

    def check_host(self, frame, beside):
        assert beside == {"tuser_size": len(frame), "tuser_src": MAC, "tuser_dst": FUNCTION}


async def begin(dut):
    return await Box250(dut).begin(dut.axis_aclk, 2000)


globals().update(tests_of(begin))

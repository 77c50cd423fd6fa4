"""The core in OpenNIC's box of 322 MHz keeps the shell's contract: nothing waits on the way in, frames have no gap on either way out, broken
ones leave no trace, and the reset pair."""
from shells import tests_of
from streams import Sink, Source
from test_opennic_250 import OpenNic

SIDEBAND = ("tuser_err",)


class Box322(OpenNic):
    def streams(self):
        dut, clk, dice = self.dut, self.clk, self.dice
        self.rx = Source(dut, "s_axis_cmac_rx", clk, dice, SIDEBAND)
        self.own = Source(dut, "s_axis_adap_tx_322mhz", clk, dice, SIDEBAND)
        self.tx = Sink(dut, "m_axis_cmac_tx", clk, dice, self.took_tx, SIDEBAND, True, self.is_reset)
        self.to_host = Sink(dut, "m_axis_adap_rx_322mhz", clk, dice, self.took_host, SIDEBAND, True, self.is_reset)
        assert self.rx.ready is None and self.to_host.ready is None

    def beside_rx(self, frame, is_broken):
        return {"tuser_err_at_end": int(is_broken)}

    def beside_own(self, frame, _, is_broken):
        return {"tuser_err_at_end": int(is_broken)}

    def check_tx(self, frame, beside, _):
        assert not beside["tuser_err"]

    def check_host(self, frame, beside):
        assert not beside["tuser_err"]


async def begin(dut):
    return await Box322(dut, has_marks=True).begin(dut.cmac_clk, 1552)


globals().update(tests_of(begin))

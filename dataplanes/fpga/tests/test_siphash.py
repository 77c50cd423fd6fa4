"""Tags in gates are those of the C; one packet a clock."""
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from dice import Dice
from in_c import Fastpath

HASH_CLOCKS = 52


@cocotb.test()
async def tags_are_those_of_the_c(dut):
    dice, c = Dice(), Fastpath()
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start())
    expected = []
    for number in range(2000 + HASH_CLOCKS):
        if number < 2000:
            secret = (dice.number(64), dice.number(64))
            header = dice.bytes(64)
            payload = dice.bytes(dice.one_of([0, 0, 1, 8, 100, 1376]))
            key = c.key(secret)
            expected.append(c.tag(key, header, payload))
            dut.key_i.value = secret[1] << 64 | secret[0]
            dut.header_i.value = int.from_bytes(header, "big")
            dut.longer_i.value = int(len(payload) > 0)
            first, second = digest(key, payload)
            dut.first_i.value, dut.second_i.value = first, second
        await RisingEdge(dut.clk)
        if number >= HASH_CLOCKS:
            found = int(dut.tag_o.value)
            assert found == expected[number - HASH_CLOCKS], f"packet {number - HASH_CLOCKS}: {found:#x}"


def digest(key, payload):
    """As qw_digest.h says it."""
    words = [int.from_bytes(payload[at:at + 8].ljust(8, b"\0"), "little") for at in range(0, len(payload), 8)]
    sums = [0, 0]
    for at, word in enumerate(words):
        for which in range(2):
            of = key.digest[at + which]
            low, high = (word + of) & 0xffffffff, ((word >> 32) + (of >> 32)) & 0xffffffff
            sums[which] = (sums[which] + low * high) & (1 << 64) - 1
    return sums

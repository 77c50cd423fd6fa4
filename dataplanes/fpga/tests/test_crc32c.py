"""Checksums of parts of records in gates are those of the usual CRC32C."""
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from dice import Dice

RECORDS = 1500
BEGINS = [72, 90]  # behind the header, and behind who asked a FORWARD
BEAT = 64


def table():
    made = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82f63b78 if number & 1 else 0)
        made.append(number)
    return made


TABLE = table()


def crc32c(of):
    state = 0xffffffff
    for byte in of:
        state = state >> 8 ^ TABLE[(state ^ byte) & 0xff]
    return state ^ 0xffffffff


@cocotb.test()
async def checksums_are_the_usual_ones(dut):
    assert crc32c(b"123456789") == 0xe3069283
    dice = Dice()
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start())
    dut.valid_i.value = 0
    dut.rst_i.value = 1
    await ClockCycles(dut.clk, 4)
    dut.rst_i.value = 0
    expected, found = [], []

    async def listen():
        while True:
            await RisingEdge(dut.clk)
            if int(dut.done_o.value):
                found.append(int(dut.checksum_o.value))

    cocotb.start_soon(listen())
    for _ in range(RECORDS):
        begin = dice.one_of(BEGINS)
        end = begin + dice.one_of([0, 1, 2, 3, 4, 5, 37, 38, 56, 57, 120, 1358, dice.below(1359)])
        record = dice.bytes(end)
        expected.append(crc32c(record[begin:]))
        beats = [record[at:at + BEAT].ljust(BEAT, b"\0") for at in range(0, len(record), BEAT)]
        for at, beat in enumerate(beats):
            dut.valid_i.value, dut.first_i.value, dut.last_i.value = 1, int(at == 0), int(at == len(beats) - 1)
            dut.data_i.value = int.from_bytes(beat, "big")
            dut.begin_i.value, dut.end_i.value = (begin, end) if at > 0 else (dice.number(12), dice.number(12))
            await RisingEdge(dut.clk)
            if dice.seldom(8):
                dut.valid_i.value = 0
                await RisingEdge(dut.clk)
    dut.valid_i.value = 0
    await ClockCycles(dut.clk, 20)
    assert found == expected

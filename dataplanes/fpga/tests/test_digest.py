"""Digests of payloads in gates are those of the C, whatever stands between and behind them."""
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from dice import Dice
from in_c import Fastpath
from test_siphash import digest

RECORDS = 3000
KEYS = 32
KEYS_USED = 6
TAG_END = 72
BEAT = 64


@cocotb.test()
async def digests_are_those_of_the_c(dut):
    dice, c = Dice(), Fastpath()
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start())
    dut.valid_i.value = dut.key_write_i.value = 0
    dut.rst_i.value = 1
    await ClockCycles(dut.clk, 4)
    dut.rst_i.value = 0
    keys = {number: c.key((dice.number(64), dice.number(64))) for number in dice.random.sample(range(KEYS), KEYS_USED)}
    dut.key_write_i.value = 1
    for number, key in keys.items():
        for place, word in enumerate(key.digest):
            dut.key_number_i.value, dut.key_word_i.value, dut.key_data_i.value = number, place, word
            await RisingEdge(dut.clk)
    dut.key_write_i.value = 0
    expected, found, sizes = [], [], set()

    async def listen():
        while True:
            await RisingEdge(dut.clk)
            if int(dut.done_o.value):
                found.append((int(dut.first_o.value), int(dut.second_o.value)))

    cocotb.start_soon(listen())
    for _ in range(RECORDS):
        payload = dice.bytes(dice.one_of([0, 1, 7, 8, 9, 55, 56, 57, 64, 120, 121, 1375, 1376, dice.below(1377)]))
        key = dice.one_of(list(keys))
        sizes.add(len(payload))
        expected.append(tuple(digest(keys[key], payload)) if payload else (0, 0))
        # What is cut off at the end are zeros, as the record's maker puts them there.
        record = dice.bytes(TAG_END) + payload
        beats = [record[at:at + BEAT].ljust(BEAT, b"\0") for at in range(0, len(record), BEAT)]
        for at, beat in enumerate(beats):
            dut.valid_i.value, dut.first_i.value, dut.last_i.value = 1, int(at == 0), int(at == len(beats) - 1)
            dut.data_i.value = int.from_bytes(beat, "big")
            dut.key_i.value = key if at > 0 else dice.below(KEYS)
            dut.words_i.value = (len(payload) + 7) // 8 if at > 0 else dice.number(8)
            await RisingEdge(dut.clk)
            if dice.seldom(8):
                dut.valid_i.value = 0
                dut.data_i.value = dice.number(512)
                await RisingEdge(dut.clk)
    dut.valid_i.value = 0
    await ClockCycles(dut.clk, 20)
    assert found == expected
    assert len(sizes) > 100

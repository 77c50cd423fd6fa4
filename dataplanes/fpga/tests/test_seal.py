"""What gates send is what the kernel's plane sends, byte for byte, to all that it goes to, while frames come as fast as they can."""
import collections
import cocotb
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from ends import BEAT, REPLICAS, Bench, endpoint_vector
from frames import GROUPS, IPV4_MAPPED, endpoint_of, frame_of, packet_of
from layouts import HEADER, HEADER_BYTES, KIND

PACKETS = 700  # of each part


class Sending(Bench):
    """With packets to be sent, and frames that come beside them."""

    async def begin(self):
        await super().begin()
        cocotb.start_soon(self.take_sent())

    async def send(self, header, payload, group, mask, to, gaps):
        """A packet, with anything where its header goes."""
        dut = self.dut
        record = self.dice.bytes(HEADER_BYTES) + payload
        dut.sending_i.value = ((HEADER.vector(header) << 3 | group) << REPLICAS | mask) << 192 | endpoint_vector(to)
        for at in range(0, len(record), BEAT):
            while gaps and self.dice.seldom(gaps):
                dut.packet_valid_i.value = 0
                await RisingEdge(dut.clk)
            dut.packet_valid_i.value = 1
            dut.packet_last_i.value = int(at + BEAT >= len(record))
            dut.packet_data_i.value = int.from_bytes(record[at:at + BEAT].ljust(BEAT, b"\0"), "big")
            while True:
                await ReadOnly()
                ready = int(dut.packet_ready_o.value)
                await RisingEdge(dut.clk)
                if ready:
                    break
        dut.packet_valid_i.value = 0

    async def traffic(self, place):
        """Frames to our planes, one behind the other; nobody looks at what becomes of them."""
        self.dut.ready_i.value = self.dut.frame_ready_i.value = 1
        while True:
            group = self.dice.below(GROUPS - 1)
            packet, _ = packet_of(self.dice, self.c, self.keys[group])
            await self.receive(frame_of(self.dice, place, group, packet))


@cocotb.test()
async def packets_are_sent_as_by_the_kernel(dut):
    bench = Sending(dut)
    dice = bench.dice
    await bench.begin()
    reached = collections.Counter()
    for vlan, slowness, gaps, has_traffic in [(0, 0, 0, False), (77, 0, 3, True), (0, 3, 0, True), (4095, 0, 0, True)]:
        place, epochs = bench.place(vlan, False)
        peers = await bench.give_peers(place)
        bench.slowness = slowness
        bench.frames.clear()
        bench.counts.clear()
        coming = cocotb.start_soon(bench.traffic(place)) if has_traffic else None
        expected, unknown = [], 0
        for _ in range(PACKETS):
            group = dice.below(GROUPS)
            packet, _ = packet_of(dice, bench.c, bench.keys[group])
            header, payload = HEADER.of_vector(int.from_bytes(packet[:HEADER_BYTES], "big")), packet[HEADER_BYTES:]
            mask = dice.one_of([0, 0, 1 << dice.below(REPLICAS), dice.number(REPLICAS)])
            to = dice.one_of(peers[group])
            await bench.send({**header, "flags": dice.number(8) & 0xff, "tag": dice.number(64)}, payload, group, mask, to, gaps)
            header = HEADER.of_vector(int(dut.sending_i.value) >> 192 + REPLICAS + 3)
            all_of_them = [peers[group][replica] for replica in range(REPLICAS) if mask >> replica & 1] if mask else [to]
            frames = bench.frames_of(place, epochs, group, header, payload, all_of_them)
            expected += frames
            unknown += len(all_of_them) - len(frames)
            family = "IPv4" if bytes(place.at[group].address)[:12] == IPV4_MAPPED else "IPv6"
            reached[f"{family}, vlan {vlan > 0}"] += 1
            reached["to several" if len(all_of_them) > 1 else "to one"] += 1
        for _ in range(40):
            if len(bench.frames) < len(expected):
                await ClockCycles(dut.clk, 2000)
        if coming:
            coming.cancel()
            dut.rx_valid_i.value = 0
            await ClockCycles(dut.clk, 400)
        assert len(bench.frames) == len(expected)
        for number, (frame, wanted) in enumerate(zip(bench.frames, expected)):
            assert frame == wanted, f"frame {number}: {frame.hex()}, in C {wanted.hex()}"
        assert (bench.counts["sent"], bench.counts["no neighbour"]) == (len(expected), unknown)
        reached["nobody knows where"] += unknown
        print(f"vlan {vlan}: {PACKETS} packets, {len(expected)} frames, {unknown} of unknown neighbours", flush=True)
    print(dict(reached), flush=True)
    assert len(reached) == 7, reached


@cocotb.test()
async def smallest_packets_take_two_clocks_for_each_that_they_go_to(dut):
    bench = Bench(dut)
    dice = bench.dice
    await bench.begin()
    bench.place(0, False)
    sending = Sending.send
    dut.peer_write_i.value = 1
    for replica in range(REPLICAS):
        dut.peer_number_i.value = replica
        dut.peer_i.value = endpoint_vector(endpoint_of(IPV4_MAPPED + dice.bytes(4), 7400, dice.bytes(6)))
        await RisingEdge(dut.clk)
    dut.peer_write_i.value = 0
    dut.tx_ready_i.value = 1
    cocotb.start_soon(bench.note_begins())
    header = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "kind": KIND["heartbeat"]}
    for mask, packets in [(0b1, 300), (0b111110, 100)]:
        bench.begins.clear()
        begun, each = bench.clock, bin(mask).count("1")
        for _ in range(packets):
            await sending(bench, header, b"", 0, mask, endpoint_of(bytes(16), 1, bytes(6)), 0)
        await ClockCycles(dut.clk, 1200)
        begins = bench.begins
        assert len(begins) == packets * each
        assert begins[-1] - begins[0] == 2 * (len(begins) - 1)
        print(f"figure: to {each}: first beat out {begins[0] - begun - 1} clocks behind the first one in", flush=True)

"""Both ends of a core under test: its clock, what the host tells it, and frames that come to it."""
import collections

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from dice import Dice
from frames import CLIENTS, GROUPS, IPV4_MAPPED, endpoint_of, place_of, signed
from in_c import Fastpath, Keys, sent
from layouts import FLAG, KIND, LIMIT

BEAT = 64
REPLICAS = LIMIT["replicas_max"]
KEY_WORD_LOW, KEY_WORD_HIGH = 254, 255
INPUTS = ["rx_valid_i", "key_write_i", "peer_write_i", "ready_i", "frame_ready_i", "packet_valid_i", "tx_ready_i", "order_valid_i", "host_ready_i", "log_ready_i"]


def endpoint_vector(endpoint):
    """As the gates have it: address, port, Ethernet address."""
    return int.from_bytes(bytes(endpoint.address) + bytes(endpoint.port) + bytes(endpoint.mac), "big")


class Bench:
    """What is the same for all tests."""

    def __init__(self, dut):
        self.dut, self.dice, self.c = dut, Dice(), Fastpath()
        # What was sent, and how slowly somebody takes it.
        self.frames, self.counts, self.slowness = [], collections.Counter(), 0
        # For those tests that count clocks.
        self.clock, self.begins = 0, []

    async def begin(self):
        """Resets it, and gives all groups their keys."""
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start())
        for name in INPUTS:
            if hasattr(dut, name):
                getattr(dut, name).value = 0
        dut.rst_i.value = 1
        await ClockCycles(dut.clk, 8)
        dut.rst_i.value = 0
        self.keys = [await self.give_keys(group) for group in range(GROUPS)]
        valid = [sum(1 << 2 * pair + epoch for pair in range(2) for epoch in range(2) if self.keys[group].pairs[pair].valid >> epoch & 1)
                 for group in range(GROUPS)]
        dut.keys_valid_i.value = sum(bits << 4 * group for group, bits in enumerate(valid))

    async def give_keys(self, group):
        """Four keys of a group, of which some are not valid."""
        dut, keys = self.dut, Keys()
        dut.key_write_i.value = 1
        for number in range(4):
            pair, epoch = divmod(number, 2)
            made = keys.pairs[pair].key[epoch] = self.c.key((self.dice.number(64), self.dice.number(64)))
            keys.pairs[pair].valid |= (not self.dice.seldom(6)) << epoch
            words = [*enumerate(made.digest), (KEY_WORD_LOW, made.low), (KEY_WORD_HIGH, made.high)]
            for place, word in words:
                dut.key_number_i.value, dut.key_word_i.value, dut.key_data_i.value = group << 2 | number, place, word
                await RisingEdge(dut.clk)
        dut.key_write_i.value = 0
        return keys

    def place(self, vlan, has_multicast):
        """Planes somewhere, and which keys they sign with: the replicas', then the clients', a bit for each group."""
        made, epochs = place_of(self.dice, vlan, has_multicast), [self.dice.number(GROUPS) for _ in range(2)]
        vector = vlan << 32 | int.from_bytes(bytes(made.multicast), "big")
        for group in reversed(range(GROUPS)):
            vector = vector << 192 | endpoint_vector(made.at[group])
        for bits in epochs:
            vector = vector << GROUPS | bits
        self.dut.place_i.value = vector
        return made, epochs

    async def receive(self, frame, error=False, gaps=0):
        """A frame comes, with gaps now and then."""
        dut = self.dut
        for at in range(0, len(frame), BEAT):
            while gaps and self.dice.seldom(gaps):
                dut.rx_valid_i.value = 0
                await RisingEdge(dut.clk)
            beat = frame[at:at + BEAT]
            dut.rx_valid_i.value = 1
            dut.rx_last_i.value = int(at + BEAT >= len(frame))
            dut.rx_error_i.value = int(error)
            dut.rx_kept_i.value = len(beat)
            # What stands behind the end is anything.
            dut.rx_data_i.value = int.from_bytes(beat + self.dice.bytes(BEAT - len(beat)), "big")
            await RisingEdge(dut.clk)
        dut.rx_valid_i.value = 0

    async def take_sent(self):
        """Takes what is sent."""
        dut, frame = self.dut, b""
        while True:
            dut.tx_ready_i.value = int(not self.slowness or self.dice.seldom(self.slowness))
            was_ready = dut.tx_ready_i.value
            await ReadOnly()
            valid, ready = int(dut.tx_valid_o.value), int(dut.tx_ready_i.value)
            assert valid or not frame, "a frame has no gap"
            if valid and ready:
                frame += int(dut.tx_data_o.value).to_bytes(BEAT, "big")[:int(dut.tx_kept_o.value)]
                if int(dut.tx_last_o.value):
                    self.frames.append(frame)
                    frame = b""
            self.counts["sent"] += int(dut.sent_o.value)
            self.counts["no neighbour"] += int(dut.no_neighbour_o.value)
            await RisingEdge(dut.clk)

    async def give_peers(self, place):
        """Where the replicas of all groups are; of some, nobody knows the Ethernet address."""
        peers = []
        for group in range(GROUPS):
            is_ipv4 = bytes(place.at[group].address)[:12] == IPV4_MAPPED
            for replica in range(REPLICAS):
                address = IPV4_MAPPED + self.dice.bytes(4) if is_ipv4 else self.dice.bytes(16)
                mac = bytes(6) if self.dice.seldom(8) else self.dice.bytes(6)
                peer = endpoint_of(address, 1 + self.dice.below(65535), mac)
                peers.append(peer)
                self.dut.peer_write_i.value = 1
                self.dut.peer_number_i.value = group << 3 | replica
                self.dut.peer_i.value = endpoint_vector(peer)
                await RisingEdge(self.dut.clk)
        self.dut.peer_write_i.value = 0
        return [peers[REPLICAS * group:REPLICAS * (group + 1)] for group in range(GROUPS)]

    async def note_begins(self):
        """Notes in `begins` in which clock each frame that is sent begins; who takes them is always ready."""
        dut, is_begin = self.dut, True
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            self.clock += 1
            if int(dut.tx_valid_o.value):
                if is_begin:
                    self.begins.append(self.clock)
                is_begin = bool(int(dut.tx_last_o.value))

    def frames_of(self, place, epochs, group, header, payload, all_of_them):
        """The frames in which the kernel's plane would send a packet to those whose Ethernet address it knows."""
        is_clients = {value: name for name, value in KIND.items()}.get(header["kind"]) in CLIENTS
        epoch = epochs[is_clients] >> group & 1
        header = {**header, "flags": header["flags"] & ~FLAG["epoch"] | epoch}
        packet = signed(self.c, self.keys[group], header, payload)
        return [sent(place, group, each, packet) for each in all_of_them if any(each.mac)]

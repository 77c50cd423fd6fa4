"""The host of a card, as its registers know it (registers.md)."""
import ctypes
import struct
import tomllib

from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from frames import IPV4_MAPPED, endpoint_of
from layouts import FORMAT, HEADER, REGISTERS, ROOT
from test_step import OPS

SHARED = tomllib.loads((ROOT / "dataplanes/fpga/shared.toml").read_text())
NUMBER = {entry["name"]: entry["value"] for entry in SHARED["limits"]}
CAUSE, STATE, COUNT = ({value["name"]: value["value"] for value in enum["values"]} for enum in SHARED["enums"] if enum["name"] in ("cause", "state", "count"))
BYTES = {"registers": 200, "header": 72}
REASONS = len(FORMAT["reasons"])


def places():
    """Where each register stands, and how many bytes it has."""
    at, found = 0, {}
    for field in SHARED["structs"][0]["fields"]:
        count = field.get("count", 1)
        size = (field["bits"] // 8 if "bits" in field else BYTES[field["is"]]) * NUMBER.get(count, count)
        found[field["name"]] = at, size
        at += size
    return found


AT = places()


class Host:
    """Of a bench with `dut`, `dice` and `c`."""
    OPS = OPS

    def connect(self, prefix, clk, rst, active_level=True):
        """By the ports that begin so; each channel waits now and then."""
        self.axi = AxiLiteMaster(AxiLiteBus.from_prefix(self.dut, prefix), clk, rst, reset_active_level=active_level)
        for interface in (self.axi.write_if, self.axi.read_if):
            interface.log.setLevel("WARNING")
        for channel in (self.axi.write_if.aw_channel, self.axi.write_if.w_channel, self.axi.write_if.b_channel,
                        self.axi.read_if.ar_channel, self.axi.read_if.r_channel):
            channel.set_pause_generator(iter(lambda: self.dice.seldom(3), None))

    async def half(self, at, value):
        """Writes 32 bits; whether they were taken."""
        return (await self.axi.write(at, value.to_bytes(4, "little"))).resp == AxiResp.OKAY

    async def write(self, name, value, word=0):
        at = AT[name][0] + 8 * word
        for half in range(2):
            assert await self.half(at + 4 * half, value >> 32 * half & 0xffffffff), name

    async def read(self, name, word=0):
        at = AT[name][0] + 8 * word
        halves = [int.from_bytes((await self.axi.read(at + 4 * half, 4)).data, "little") for half in range(2)]
        return halves[1] << 32 | halves[0]

    async def write_memory(self, name, made):
        """A structure as the host has it in memory."""
        for word, value in enumerate(struct.unpack(f"<{ctypes.sizeof(made) // 8}Q", bytes(made))):
            await self.write(name, value, word)

    async def read_memory(self, name, layout):
        words = [await self.read(name, word) for word in range(AT[name][1] // 8)]
        return layout.values(layout.in_memory.from_buffer_copy(struct.pack(f"<{len(words)}Q", *words)))

    async def order(self, op, group, given=None, number=0, state=None):
        """Its outcome and the registers then; None if it is refused."""
        if state:
            await self.write_memory("registers", REGISTERS.memory(state))
        outcome = await self.ordered(op, group, given, number)
        return outcome and (outcome, await self.read_memory("made_registers", REGISTERS))

    async def ordered(self, op, group, given, number):
        """Its outcome; None if it is refused."""
        if given:
            await self.write_memory("header", HEADER.memory(given))
        await self.write("number", number)
        await self.write("order", self.OPS.index(op) | group << 8)
        for _ in range(1000):
            said = await self.read("state")
            if said & STATE["refused"]:
                return None
            if not said & STATE["under_way"]:
                break
        else:
            raise AssertionError(f"{op} is not done")
        does = await self.read("made_actions")
        return {"header": await self.read_memory("made_header", HEADER), "index": await self.read("made_index"),
                "commit_from": await self.read("made_commit_from"), "actions": does & 0xffffffff, "reason": does >> 32}

    async def is_told(self, place, keys, replicas=3, masks=15, has_payloads=True):
        """The first group's keys, one of each pair, where its plane, its replicas and its ring are: the ring's begin, its mask, the replicas.
        Without payloads a packet's tag needs two words of its key."""
        dice, peers = self.dice, []
        for pair in range(2):
            made = keys.pairs[pair].key[0] = self.c.key((dice.number(64), dice.number(64)))
            keys.pairs[pair].valid = 1
            digest = enumerate(made.digest) if has_payloads else ()
            for word, value in (*digest, (254, made.low), (255, made.high)):
                await self.write("key_at", word << 8 | pair << 1)
                await self.write("key", value)
        await self.write("keys_valid", 0b0101)
        await self.write("addresses", int.from_bytes(bytes(place.at[0].address)[:8], "big"))
        await self.write("addresses", int.from_bytes(bytes(place.at[0].address)[8:], "big"), 1)
        await self.write("ends", int.from_bytes(bytes(place.at[0].port) + bytes(place.at[0].mac), "big"))
        for replica in range(replicas):
            peer = endpoint_of(IPV4_MAPPED + dice.bytes(4), 7400, dice.bytes(6))
            await self.write("peer_address", int.from_bytes(bytes(peer.address)[:8], "big"))
            await self.write("peer_address", int.from_bytes(bytes(peer.address)[8:], "big"), 1)
            await self.write("peer_end", int.from_bytes(bytes(peer.port) + bytes(peer.mac), "big"))
            await self.write("peer", replica)
            peers.append(peer)
        base = dice.number(40) << 12
        await self.write("rings", base)
        await self.write("ring_masks", masks)
        return base, masks, peers

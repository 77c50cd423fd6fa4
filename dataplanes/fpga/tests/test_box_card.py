"""A card with the core of Paxos roles: orders over AXI4-Lite, values in the host's memory, and what is sent."""
import collections
import ctypes

import cocotb
from card_host import NUMBER, STATE
from frames import IPV4_MAPPED, endpoint_of, frame_of, signed
from in_c import Keys, Place
from layouts import FLAG, HEADER, KIND, PAXOS_REGISTERS, PAXOS_ROLE, PAXOS_SLOT
from test_card import Card
from test_crc32c import crc32c
from test_paxos_step import OPS, registers, stepped
from test_paxos_step import header as step_header


class Both(ctypes.Structure):
    """What stands in `registers` and `made_registers`."""
    _fields_ = [("registers", PAXOS_REGISTERS.in_memory), ("slot", PAXOS_SLOT.in_memory)]


class Boxes(Card):
    OPS = OPS

    async def order(self, op, group, given=None, number=0, state=None, slot=None):
        """Its outcome, the registers and the slot then; None if it is refused."""
        both = Both(PAXOS_REGISTERS.memory(state or PAXOS_REGISTERS.zeros()), PAXOS_SLOT.memory(slot or PAXOS_SLOT.zeros()))
        await self.write_memory("registers", both)
        outcome = await self.ordered(op, group, given, number)
        if outcome is None:
            return None
        words = [await self.read("made_registers", word) for word in range(ctypes.sizeof(Both) // 8)]
        made = Both.from_buffer_copy(b"".join(word.to_bytes(8, "little") for word in words))
        return outcome, PAXOS_REGISTERS.values(made.registers), PAXOS_SLOT.values(made.slot)


@cocotb.test()
async def orders_are_those_of_the_box_in_the_kernel(dut):
    card, reached = Boxes(dut), collections.Counter()
    dice = card.dice
    await card.begin()
    assert await card.read("identity") == 1 << 56 | NUMBER["places_of_group"] << 48 | NUMBER["groups"] << 32 | 1 << 16 | NUMBER["identity"]
    state, known = PAXOS_REGISTERS.zeros(), {}
    # What configures says 3, which is an instance to the card.
    assert await card.order("put_back", 5, number=3)
    known[3] = PAXOS_SLOT.zeros()
    for _ in range(600):
        op = dice.one_of(["step", "step", "put_back", *OPS[1:]])
        given, made = step_header(dice, state), registers(dice, card.c)
        number = 3 if op == "configure" else given["index"]
        if number % NUMBER["instances_max"] not in known and op != "put_back":
            continue
        put = {**PAXOS_SLOT.zeros(), "instance": number, "round": state["round"], "vote_round": dice.one_of([0, state["round"]]), "session": 1}
        found = await card.order(op, 5, given, number, made, put)
        if op in ("switch_on", "put_back") and state["role"]:
            assert found is None, f"{op} while it was on"
            reached["refused"] += 1
            continue
        slot = put if op == "put_back" else known[number % NUMBER["instances_max"]]
        state, slot, outcome = stepped(card.c, op, state, slot, given, number, made)
        known[number % NUMBER["instances_max"]] = slot
        assert found == (outcome, state, slot), f"{op} {number} of {given}\nin gates {found}\nin C     {(outcome, state, slot)}"
        reached[op] += 1
    assert {*OPS[1:], "refused"} <= set(reached), reached
    await card.order("off", 5)
    large, largest = ({**registers(dice, card.c), "window": window} for window in (2 * NUMBER["instances_max"], NUMBER["instances_max"]))
    assert await card.order("switch_on", 5, state=large) is None, "two of its instances have one place"
    assert await card.order("switch_on", 5, state=largest) is not None
    for order in (0, 8, 255, OPS.index("off") | 8 << 8):
        await card.write("order", order)
        assert await card.read("state") & STATE["refused"], order


@cocotb.test()
async def a_value_goes_to_the_hosts_memory_and_to_whom_it_is_told(dut):
    card, keys, place = Boxes(dut), Keys(), Place()
    dice = card.dice
    await card.begin()
    place.at[0] = endpoint_of(IPV4_MAPPED + dice.bytes(4), 7401, dice.bytes(6))
    base, masks, _ = await card.is_told(place, keys)
    await card.write("destinations", 3)
    state = {**PAXOS_REGISTERS.zeros(), "role": PAXOS_ROLE["acceptor"], "configuration": 3, "round": 256, "group": 7, "window": 16, "me": 1}
    assert await card.order("put_back", 0, number=5)
    assert await card.order("switch_on", 0, state=state)
    payload = dice.bytes(200)
    given = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "kind": KIND["p2a"], "group": 7, "term": 256, "index": 5, "commit_index": 3,
             "session": 9, "sequence": 4, "payload_bytes": len(payload), "payload_crc32c": crc32c(payload)}
    await card.receive(frame_of(dice, place, 0, signed(card.c, keys, given, payload)))
    await card.rests()
    at = base + (5 & masks) * NUMBER["slot_stride"]
    assert [where for where, _ in card.log] == [*(at + 64 * beat for beat in range(1, len(card.log))), at]
    written = card.log[-1][1] + b"".join(data for _, data in card.log[:-1])
    slot = {**PAXOS_SLOT.zeros(), "instance": 5, "round": 256, "vote_round": 256, "session": 9, "sequence": 4,
            "payload_crc32c": given["payload_crc32c"], "payload_bytes": len(payload)}
    assert written[:72 + len(payload)] == bytes(PAXOS_SLOT.memory(slot)) + bytes(16) + payload
    assert len(card.frames) == 3 and not card.host
    # Who asks to be told, and a question, are the host's; what it orders sees the vote.
    for header in ({**given, "flags": FLAG["tell"]}, {**given, "kind": KIND["p1a"], "payload_bytes": 0, "session": 11}):
        frame = frame_of(dice, place, 0, signed(card.c, keys, header, payload if header["payload_bytes"] else b""))
        await card.receive(frame)
        await card.rests()
        assert card.host.pop() == frame
    asked = {**given, "kind": KIND["p1a"], "term": 512, "session": 11, "payload_bytes": 0, "sender": 0}
    outcome, _, made = await card.order("step", 0, asked, 5)
    assert (outcome["header"]["previous_term"], outcome["index"], made["round"]) == (256, 5, 512), (outcome, made)
    # One that says only what is durable leaves it to its host.
    await card.order("off", 0)
    await card.order("switch_on", 0, state={**state, "held": 1})
    await card.receive(frame_of(dice, place, 0, signed(card.c, keys, {**given, "term": 768}, payload)))
    await card.rests()
    assert len(card.host) == 1 and len(card.frames) == 3

"""The step of the Paxos roles in gates does what the C does, to every register, slot and bit of the outcome."""
from collections import Counter

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from dice import Dice
from in_c import Fastpath
from layouts import ACTION, FLAG, HEADER, KIND, LIMIT, PAXOS_REGISTERS, PAXOS_ROLE, PAXOS_SLOT, REASON, outcome_of_vector

OPERATIONS = 60_000
WALK = 40
WINDOW = 4
# As paxos_op_t has them.
OPS = ["packet", "switch_on", "off", "configure", "trim", "step", "look", "put_back"]
GROUPS = 8
OWNERS = LIMIT["round_owners"]
# What must have been reached, or too little was shown.
WANTED = """
coordinator packet submit none fanout
coordinator packet submit window_full nothing
coordinator packet submit malformed to_software
coordinator packet submit stranger to_software
coordinator packet p2b unexpected to_software
coordinator trim - none nothing
acceptor packet p1a none reply
acceptor step p1a none reply+hold
acceptor packet p1a none reply+vote
acceptor packet p1a round_old reply
acceptor packet p1a round_taken reply
acceptor packet p1a no_member nothing
acceptor packet p1a trimmed reply
acceptor packet p2a none store+fanout
acceptor packet p2a none store+fanout+reply
acceptor step p2a none store+fanout+hold
acceptor packet p2a repeated fanout
acceptor packet p2a round_old reply
acceptor packet p2a two_values to_software
acceptor packet p2a window_full nothing
acceptor packet p2a trimmed reply
acceptor packet p2a configuration to_software
acceptor trim - none nothing
off packet p2a off to_software
acceptor packet p2a left to_software
coordinator configure - none nothing
acceptor off - none nothing
off configure - none nothing
acceptor look - none nothing
acceptor put_back - none nothing
acceptor step p1a none reply+hold+vote
""".split("\n")[1:-1]


def registers(dice, c):
    """Such as a host may load."""
    while True:
        trimmed = dice.one_of([0, 4, 100, (1 << 64) - 8])
        round_of = dice.below(4) * OWNERS + dice.below(2)
        role = PAXOS_ROLE["coordinator"] if dice.below(4) == 0 else PAXOS_ROLE["acceptor"]
        made = {
            **PAXOS_REGISTERS.zeros(),
            "configuration": 3, "round": round_of, "promised_to": dice.below(3),
            "single_round": dice.below(4) * OWNERS, "next_instance": trimmed + 1 + dice.below(6),
            "trimmed": trimmed, "bound": dice.one_of([0, trimmed + dice.below(4)]),
            "highest": trimmed + dice.below(3), "group": 7, "window": WINDOW, "role": role,
            "me": round_of % OWNERS, "held": dice.below(2),
        }
        if dice.seldom(64):
            made["role"] = PAXOS_ROLE["off"]
            return made
        if c.is_paxos_sound(made):
            return made


def header(dice, state):
    kind = KIND[dice.one_of(["p1a", "p2a", "p2a"])]
    if state["role"] == PAXOS_ROLE["coordinator"]:
        kind = KIND["submit"]
    if dice.seldom(12):
        kind = dice.below(17)
    round_of = dice.one_of([state["round"], state["round"] + OWNERS, dice.below(4) * OWNERS + dice.below(3)])
    sender = LIMIT["sender_client"] if kind == KIND["submit"] else round_of % OWNERS
    index = dice.one_of([0, *range(state["trimmed"], state["trimmed"] + 6)]) % (1 << 64)
    return {
        **HEADER.zeros(),
        "magic": 0x5157, "version": 2 if dice.seldom(64) else 1, "kind": kind,
        "sender": dice.number(8) if dice.seldom(32) else sender,
        "flags": dice.one_of([0, 0, 0, FLAG["fragment"], FLAG["tell"], dice.one_of(list(FLAG.values()))]),
        "payload_bytes": dice.one_of([0, 5, 5, 5, 1376, 1377]), "group": 8 if dice.seldom(64) else 7,
        "payload_crc32c": dice.one_of([1, 1, 1, 2]), "term": round_of % (1 << 64),
        "index": dice.near(index) if dice.seldom() else index, "previous_term": dice.number(64),
        "commit_index": 4 if dice.seldom() else 3, "session": dice.one_of([0, 1, 1, 2]), "sequence": dice.one_of([1, 1, 2]),
        "tag": dice.number(64),
    }


def stepped(c, op, state, slot, header, number, given):
    """What becomes of registers and slot, and the outcome; the step's by the C, the rest as the plane in the kernel has it (box.h)."""
    nothing = {"header": HEADER.zeros(), "index": 0, "commit_from": 0, "actions": 0, "reason": 0}
    if op == "switch_on":
        return given, slot, nothing
    if op == "off":
        return {**state, "role": PAXOS_ROLE["off"]}, slot, nothing
    if op == "configure":
        return {**state, "configuration": number}, slot, nothing
    if op in ("look", "put_back"):
        return state, slot, nothing
    if op == "packet" and state["held"]:
        return state, slot, {**nothing, "actions": ACTION["to_software"]}
    return c.paxos("packet" if op == "step" else op, state, slot, header, number)


def name(before, op, given, outcome):
    role = {number: role for role, number in PAXOS_ROLE.items()}[before["role"]]
    kind = {number: kind for kind, number in KIND.items()}.get(given["kind"], "?") if op in ("packet", "step") else "-"
    actions = "+".join(action for action, bit in ACTION.items() if outcome["actions"] & bit) or "nothing"
    reason = "left" if op == "packet" and before["held"] and actions == "to_software" else REASON[outcome["reason"]]
    return f"{role} {op} {kind} {reason} {actions}"


@cocotb.test()
async def the_step_is_that_of_the_c(dut):
    dice, c, reached = Dice(), Fastpath(), Counter()
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start())
    dut.valid_i.value = 0
    dut.rst_i.value = 1
    await ClockCycles(dut.clk, 4)
    dut.rst_i.value = 0
    states, slots = [PAXOS_REGISTERS.zeros() for _ in range(GROUPS)], {}
    for number in range(OPERATIONS):
        group = dice.below(GROUPS)
        state = states[group]
        op = dice.one_of(["packet"] * 8 + ["step"] * 8 + ["trim", "configure", "look", "put_back"])
        if dice.seldom(WALK) or not state["role"] and dice.seldom(4):
            op = "off" if dice.seldom(8) else "switch_on"
        if op == "switch_on":
            slots = {at: slot for at, slot in slots.items() if at[0] != group}
        given, made = header(dice, state), registers(dice, c)
        place = group, given["index"] % WINDOW
        slot = slots.get(place, PAXOS_SLOT.zeros())
        count = 3 if op == "configure" and dice.below(4) else dice.near(state["trimmed"])
        dut.op_i.value, dut.group_i.value, dut.header_i.value, dut.number_i.value = OPS.index(op), group, HEADER.vector(given), count
        dut.slot_i.value, dut.registers_i.value = PAXOS_SLOT.vector(slot), PAXOS_REGISTERS.vector(made)
        dut.valid_i.value = 1
        await RisingEdge(dut.clk)
        dut.valid_i.value = 0
        dut.header_i.value, dut.group_i.value = dice.number(HEADER.bits), dice.below(GROUPS)
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        assert int(dut.valid_o.value) == 1
        before = state
        state, kept, expected = stepped(c, op, state, slot, given, count, made)
        found = outcome_of_vector(int(dut.outcome_o.value))
        why = f"operation {number}: {op} {count} of {given} with {slot} in {before}"
        assert found == expected, f"{why}\nin gates {found}\nin C     {expected}"
        in_gates = PAXOS_REGISTERS.of_vector(int(dut.registers_o.value))
        assert in_gates == state, f"{why}\nin gates {in_gates}\nin C     {state}"
        changed = int(dut.slot_changed_o.value) == 1
        assert changed or kept == slot, f"{why}\nin C {kept}"
        assert PAXOS_SLOT.of_vector(int(dut.slot_o.value)) == kept, f"{why}\nin C {kept}"
        states[group], slots[place] = state, kept
        reached[name(before, op, given, expected)] += 1
    missing = [wanted for wanted in WANTED if wanted not in reached]
    assert not missing, f"never reached: {missing}; but {sorted(reached)}"

"""The replica's step in gates does what the C does, to every register and bit of the outcome."""
from collections import Counter

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from dice import Dice
from in_c import Fastpath
from layouts import ACTION, FLAG, HEADER, KIND, LIMIT, REASON, REGISTERS, ROLE, outcome_of_vector

OPERATIONS = 60_000
WALK = 40
GROUPS = 8
# In the order in which the gates number them; of the last two the kernel's plane has the C (dataplanes/xdp/bpf/control.h).
OPS = ["packet", "submit", "persisted", "heartbeat", "release", "engage", "off"]
SLOTS = LIMIT["replicas_max"]
NO_OUTCOME = {"header": HEADER.zeros(), "index": 0, "commit_from": 0, "actions": 0, "reason": 0}
# What must have been reached, or too little was shown.
WANTED = """
leader packet request none store+fanout
leader packet request ring_full nothing
leader packet request window_full nothing
leader packet request malformed to_software
leader packet forward none store+fanout
leader packet append_ok none nothing
leader packet append_ok none commit
leader packet append_ok beyond_last to_software
leader packet heartbeat_ok none nothing
leader packet retransmit none resend
leader packet retransmit behind_ring to_software
leader packet append unexpected to_software
leader packet append_ok term_old to_software
leader packet append_ok term_new to_software
leader submit - none store+fanout
leader persisted - none nothing
leader persisted - none commit
leader heartbeat - none fanout
leader release - none nothing
leader release - beyond_last nothing
follower packet request none forward
follower packet forward unexpected nothing
follower packet append none store
follower packet append none store+reply
follower packet append none store+reply+commit
follower packet append repeated reply
follower packet append gap reply
follower packet append history to_software
follower packet append ring_full nothing
follower packet append before_start nothing
follower packet append stranger to_software
follower packet heartbeat none reply
follower packet heartbeat none reply+commit
follower packet heartbeat gap reply
follower persisted - none reply
off packet append off to_software
leader engage - none nothing
follower off - none nothing
""".split("\n")[1:-1]


def registers(dice, c):
    """Such as a host may load."""
    while True:
        start = dice.one_of([0, 5, 100, (1 << 64) - 6])
        last = min(start + dice.below(9), (1 << 64) - 2)
        commit = last - dice.below(min(last, 5) + 1)
        replicas = dice.one_of([1, 2, 3, 3, 5, 5, 7])
        me = dice.below(replicas)
        leads = dice.below(2) == 0
        term = dice.one_of([1, 7, (1 << 64) - 1])
        made = {
            **REGISTERS.zeros(),
            "term": term, "start_index": start, "last_index": last, "last_term": max(term - dice.below(2), 0),
            "commit_index": commit, "persisted_index": last - dice.below(min(last, 3) + 1),
            "released_index": last - dice.below(min(last, 4) + 1), "round": dice.below(4),
            "match_index": [last - dice.below(min(last, 6) + 1) for _ in range(SLOTS)],
            "heard_round": [dice.below(4) for _ in range(SLOTS)],
            "group": 7, "ring_slots": dice.one_of([4, 8]), "window": dice.one_of([2, 4]),
            "role": ROLE["leader"] if leads else ROLE["follower"], "me": me,
            "leader": me if leads else (me + 1) % replicas, "replicas": replicas,
            "quorum": dice.one_of([replicas // 2 + 1, replicas]), "held": dice.below(2),
        }
        if dice.seldom(64):
            made["role"] = ROLE["off"]
            return made
        if c.is_sound(made):
            return made


def header(dice, state):
    kinds = ["request", "forward", "append_ok", "append_ok", "heartbeat_ok", "retransmit"]
    if state["role"] != ROLE["leader"]:
        kinds = ["append", "append", "append", "append", "heartbeat", "request", "forward"]
    kind = KIND[dice.one_of(kinds)]
    if dice.seldom(24):
        kind = dice.below(17)
    sender = dice.below(state["replicas"]) if state["role"] == ROLE["leader"] else state["leader"]
    if kind == KIND["request"]:
        sender = LIMIT["sender_client"]
    if dice.seldom(24):
        sender = dice.one_of([0, 1, 6, 7, 200, 255])
    index = dice.near(state["last_index"])
    if state["role"] != ROLE["leader"] and dice.below(2) == 0:
        index = (state["last_index"] + 1) % (1 << 64)
    return {
        **HEADER.zeros(),
        "magic": 0x5157, "version": 2 if dice.seldom(64) else 1, "kind": kind, "sender": sender,
        "flags": dice.one_of(list(FLAG.values())) if dice.seldom(8) else 0,
        "payload_bytes": dice.one_of([0, 5, 17, 18, 19, 1358, 1359, 1376, 1377]),
        "group": 8 if dice.seldom(64) else 7, "payload_crc32c": dice.number(32),
        "term": dice.near(state["term"]) if dice.seldom(8) else state["term"], "index": index,
        "previous_term": dice.near(state["last_term"]) if dice.seldom(6) else state["last_term"],
        "commit_index": dice.near(state["last_index"]), "session": dice.one_of([0, 1, dice.number(64)]),
        "sequence": dice.near(state["round"]), "tag": dice.number(64),
    }


def stepped(c, op, state, given, number, engaged):
    """The registers after an operation, and its outcome."""
    if op in ("engage", "off"):
        state = engaged if op == "engage" else {**state, "role": ROLE["off"]}
        return state, NO_OUTCOME
    return c.replica(op, state, given, number)


def name(before, op, given, outcome):
    role = {number: role for role, number in ROLE.items()}[before["role"]]
    kind = {number: kind for kind, number in KIND.items()}.get(given["kind"], "?") if op == "packet" else "-"
    actions = "+".join(action for action, bit in ACTION.items() if outcome["actions"] & bit) or "nothing"
    return f"{role} {op} {kind} {REASON[outcome['reason']]} {actions}"


@cocotb.test()
async def the_step_is_that_of_the_c(dut):
    dice, c, reached = Dice(), Fastpath(), Counter()
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start())
    dut.valid_i.value = 0
    dut.rst_i.value = 1
    await ClockCycles(dut.clk, 4)
    dut.rst_i.value = 0
    # Until it engages a group is off.
    states, steps = [REGISTERS.zeros() for _ in range(GROUPS)], [WALK - 3] * GROUPS
    for number in range(OPERATIONS):
        group = dice.below(GROUPS)
        steps[group] += 1
        if steps[group] == WALK:
            steps[group], op = 0, "engage"
        else:
            op = "packet" if dice.below(8) else dice.one_of(OPS[:5]) if dice.below(8) else "off"
        state, dut.group_i.value, engaged = states[group], group, registers(dice, c) if op == "engage" else REGISTERS.zeros()
        dut.registers_i.value = REGISTERS.vector(engaged)
        given = header(dice, state)
        count = dice.near(state["round"] if op == "heartbeat" else state["last_index"])
        dut.op_i.value, dut.header_i.value, dut.number_i.value = OPS.index(op), HEADER.vector(given), count
        dut.valid_i.value = 1
        await RisingEdge(dut.clk)
        dut.valid_i.value = 0
        # What stands there when nothing is valid counts for nothing.
        dut.header_i.value, dut.group_i.value = dice.number(HEADER.bits), dice.below(GROUPS)
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        assert int(dut.valid_o.value) == 1
        before, (state, expected) = state, stepped(c, op, state, given, count, engaged)
        states[group] = state
        found = outcome_of_vector(int(dut.outcome_o.value))
        why = f"operation {number}: {op} {count} of {given} in {before}"
        assert found == expected, f"{why}\nin gates {found}\nin C     {expected}"
        in_gates = REGISTERS.of_vector(int(dut.registers_o.value))
        assert in_gates == state, f"{why}\nin gates {in_gates}\nin C     {state}"
        reached[name(before, op, given, expected)] += 1
    missing = [wanted for wanted in WANTED if wanted not in reached]
    assert not missing, f"never reached: {missing}; but {dict(reached)}"

"""The core of Paxos roles does with frames what the box in the kernel does (dataplanes/xdp/bpf/box.h)."""
import collections

import cocotb
from card_host import NUMBER
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from ends import REPLICAS, Bench
from figures import note
from frames import BRINGS_COMMAND, CONFIGURATIONS, GROUPS, IPV4_MAPPED, WITHOUT_PAYLOAD, any_frame, endpoint_of, frame_of, signed
from layouts import ACTION, FLAG, HEADER, KIND, LIMIT, PAXOS_REGISTERS, PAXOS_ROLE, PAXOS_SLOT, REASON, outcome_of_vector
from test_core import SIZES, Core, clocks_of, packet, sent_by, settle_alone
from test_crc32c import crc32c
from test_open import expected
from test_paxos_step import OPS, registers, stepped
from test_paxos_step import header as step_header

WALKS, FRAMES = 30, 120
# Instances of a group that the chip has places for.
INSTANCES = NUMBER["instances_max"]
NAMES = {value: name for name, value in KIND.items()}
WANTED = {
    "host", "refused", "left", "left: durable", "left: told", "to software", "submit: fan-out", "p2a: fan-out", "stored", "repeated", "reply", "nothing",
    "to nobody", "not for all", *(f"host: {op}" for op in OPS[1:]), "step: vote", "step: store",
}


class Model:
    """What the box in the kernel does, in its words, around the C of the step."""

    def __init__(self, bench, place, epochs, peers, destinations):
        self.bench, self.place, self.epochs, self.peers, self.destinations = bench, place, epochs, peers, destinations
        self.states = [PAXOS_REGISTERS.zeros()] * GROUPS
        self.host, self.sent, self.written, self.reached = [], [], [], collections.Counter()

    def take(self, frame):
        bench, verdict = self.bench, expected(self.bench.c, self.place, self.bench.keys, frame)
        if not verdict["is_ours"]:
            self.host.append(frame)
            return "host"
        header, group = verdict["header"], verdict["group"]
        if verdict["reason"]:
            return "refused"
        kind = NAMES[header["kind"]]
        if verdict["to_group"] and kind != "p2a":
            return "not for all"
        is_told = kind == "p2a" and header["flags"] & FLAG["tell"]
        if kind not in ("submit", "p2a") or is_told:
            self.host.append(frame)
            return "left: told" if is_told else "left"
        payload = frame[len(frame) - header["payload_bytes"]:] if header["payload_bytes"] else b""
        before = self.states[group]
        self.states[group], slot, out = stepped(bench.c, "packet", before, bench.slot(group, header["index"]), header, 0, None)
        does = {name for name, bit in ACTION.items() if out["actions"] & bit}
        if "to_software" in does:
            self.host.append(frame)
            return "left: durable" if before["held"] else "to software"
        bench.keep(group, header["index"], slot)
        if "store" in does:
            self.reached["stored"] += 1
            self.written.append(((group, out["index"]), bytes(PAXOS_SLOT.memory(slot)) + bytes(16) + payload))
        if "fanout" in does:
            self.reached["repeated"] += REASON[out["reason"]] == "repeated"
            count = self.destinations[group]
            self.sent += bench.frames_of(self.place, self.epochs, group, out["header"], payload, self.peers[group][:count])
            return f"{kind}: fan-out" if count else "to nobody"
        if "reply" in does:
            to = endpoint_of(verdict["address"].to_bytes(16, "big"), verdict["port"], verdict["mac"].to_bytes(6, "big"))
            self.sent += bench.frames_of(self.place, self.epochs, group, out["header"], b"", [to])
            return "reply"
        return "nothing"


class Box(Core):
    """With what is known of instances."""

    def __init__(self, dut):
        super().__init__(dut)
        self.known = {}

    def slot(self, group, instance):
        # What stands there before the host puts something back is anything.
        return self.known.get((group, instance % INSTANCES), PAXOS_SLOT.zeros())

    def keep(self, group, instance, slot):
        self.known[group, instance % INSTANCES] = slot

    async def order(self, op, group, header=None, number=0, state=None, slot=None):
        """The host does something to a role: the outcome, the registers and the instance's slot then."""
        dut = self.dut
        dut.order_valid_i.value, dut.order_op_i.value, dut.order_group_i.value = 1, OPS.index(op), group
        dut.order_header_i.value, dut.order_number_i.value = HEADER.vector(header or HEADER.zeros()), number
        dut.order_registers_i.value = PAXOS_REGISTERS.vector(state or PAXOS_REGISTERS.zeros())
        dut.order_slot_i.value = PAXOS_SLOT.vector(slot or PAXOS_SLOT.zeros())
        for wanted in (dut.order_ready_o, dut.order_done_o):
            is_so = False
            while not is_so:
                await ReadOnly()
                is_so = bool(int(wanted.value))
                made = [int(each.value) for each in (dut.order_outcome_o, dut.order_made_o, dut.order_slot_o)]
                await RisingEdge(dut.clk)
            dut.order_valid_i.value = 0
        return outcome_of_vector(made[0]), PAXOS_REGISTERS.of_vector(made[1]), PAXOS_SLOT.of_vector(made[2])

    async def give_destinations(self, counts):
        self.dut.destinations_i.value = sum(count << 8 * group for group, count in enumerate(counts))

    async def forget(self):
        """The host puts back that nothing is known."""
        for group in range(GROUPS):
            for place in range(INSTANCES):
                await self.order("put_back", group, number=place)

    async def settled(self, model):
        for _ in range(300):
            await ClockCycles(self.dut.clk, 40)
            if all(len(done) >= len(decided) for done, decided in ((self.frames, model.sent), (self.host, model.host), (self.written, model.written))):
                break
        await ClockCycles(self.dut.clk, 200)

    async def obeys(self, op, group, state, reached):
        """An order does what it does to a role in this state; the registers then."""
        dice = self.dice
        given = step_header(dice, state)
        number = given["index"] if op in ("step", "look", "put_back") else dice.near(state["trimmed"])
        if op == "configure":
            number = 3
        made = registers(dice, self.c) if op == "switch_on" else None
        put = {**PAXOS_SLOT.zeros(), "instance": number, "round": state["round"], "vote_round": dice.one_of([0, state["round"]]), "session": 1}
        slot = put if op == "put_back" else self.slot(group, number)
        state, slot, outcome = stepped(self.c, op, state, slot, given, number, made)
        found = await self.order(op, group, given, number, made, put)
        self.keep(group, number, slot)
        assert found == (outcome, state, slot), f"{op} {number} of {given}\nin gates {found}\nin C     {(outcome, state, slot)}"
        reached[f"host: {op}"] += 1
        for action in ("vote", "store"):
            reached[f"step: {action}"] += bool(outcome["actions"] & ACTION[action])
        return state


async def order_all_the_time(bench, group, reached):
    """The host does something to a role to which no packets come, while they do to others; until `is_calm`."""
    state = registers(bench.dice, bench.c)
    await bench.order("switch_on", group, state=state)
    while not bench.is_calm:
        op = bench.dice.one_of(["step"] * 8 + OPS[1:])
        state = await bench.obeys(op, group, state, reached)
        await ClockCycles(bench.dut.clk, bench.dice.below(40))


def frame_to(bench, place, group, state):
    """A frame that means something to a role in this state, with a right tag."""
    dice = bench.dice
    header = step_header(dice, state)
    name = NAMES.get(header["kind"], "?")
    size = min(header["payload_bytes"], LIMIT["payload_bytes_max"]) if not dice.seldom(4) else dice.one_of([56, 57, 64, dice.below(1377)])
    if name in WITHOUT_PAYLOAD or name == "?":
        size = 0
    elif name in CONFIGURATIONS:
        size = dice.below(LIMIT["acceptors_max"] * LIMIT["life_bytes"] + 1)
    elif name == "forward":
        size = max(size, LIMIT["origin_bytes"])
    payload = dice.bytes(size)
    valid = bench.keys[group].pairs[name in ("request", "answer", "submit")].valid
    header.update(payload_bytes=size, version=1, flags=header["flags"] & ~FLAG["epoch"] & 0x7f | (0 if valid & 1 else 1))
    if name in BRINGS_COMMAND:
        header["payload_crc32c"] = crc32c(payload[LIMIT["origin_bytes"] if name == "forward" else 0:])
    to_group = place.multicast[0] and bytes(place.at[group].address)[:12] == IPV4_MAPPED and dice.seldom(4)
    return frame_of(dice, place, group, signed(bench.c, bench.keys[group], header, payload), to_group)


@cocotb.test()
async def frames_do_what_they_do_in_the_kernel(dut):
    bench = Box(dut)
    dice = bench.dice
    await bench.begin()
    await bench.forget()
    reached = collections.Counter()
    for walk in range(WALKS):
        place, epochs = bench.place(dice.one_of([0, 0, 9]), dice.seldom(3))
        peers = await bench.give_peers(place)
        destinations = [dice.one_of([0, 1, 1, 2, 3, REPLICAS]) for _ in range(GROUPS)]
        await bench.give_destinations(destinations)
        model = Model(bench, place, epochs, peers, destinations)
        for taken in (bench.frames, bench.host, bench.written):
            taken.clear()
        for group in range(GROUPS - 1):
            made = registers(dice, bench.c)
            model.states[group] = {**made, "held": int(made["held"] and dice.seldom(3))}
            await bench.order("switch_on", group, state=model.states[group])
        bench.slowness = dice.one_of([0, 0, 2])
        bench.is_calm = False
        ordering = cocotb.start_soon(order_all_the_time(bench, GROUPS - 1, reached))
        again = None
        for _ in range(FRAMES):
            group = dice.below(GROUPS - 1)
            if again and dice.seldom(6):
                frame = again
            elif dice.seldom(12):
                frame = any_frame(dice, bench.c, place, bench.keys)[0]
            else:
                frame = frame_to(bench, place, group, model.states[group])
            said = model.take(frame)
            reached[said] += 1
            if said == "p2a: fan-out":
                again = frame
            await bench.receive(frame)
            while len(model.sent) - len(bench.frames) > 16 or len(model.host) - len(bench.host) > 4:
                await RisingEdge(dut.clk)
        bench.is_calm = True
        await ordering
        await bench.settled(model)
        assert bench.host == model.host
        assert len(bench.frames) == len(model.sent)
        for number, (frame, wanted) in enumerate(zip(bench.frames, model.sent)):
            assert frame == wanted, f"walk {walk}, frame {number}: {frame.hex()}, in C {wanted.hex()}"
        assert not bench.beats and len(bench.written) == len(model.written)
        for (at, value), (wanted_at, wanted) in zip(bench.written, model.written):
            assert at == wanted_at and value[:len(wanted)] == wanted, f"walk {walk}, {at}: {value.hex()}, in C {wanted.hex()}"
        # What the host does to those to which packets came: it sees what they did.
        for group in range(GROUPS - 1):
            for _ in range(4):
                op = dice.one_of(["step"] * 4 + ["look", "trim", "put_back", "configure", "off"])
                model.states[group] = await bench.obeys(op, group, model.states[group], reached)
        reached += model.reached
    print(dict(reached), flush=True)
    assert WANTED <= set(reached), WANTED - set(reached)


@cocotb.test()
async def nothing_of_a_role_leaves_once_it_is_off(dut):
    bench = Box(dut)
    dice = bench.dice
    await bench.begin()
    dut.keys_valid_i.value = (1 << 32) - 1
    await bench.give_destinations([2] * GROUPS)
    state = {**PAXOS_REGISTERS.zeros(), "role": PAXOS_ROLE["coordinator"], "round": 256, "next_instance": 1, "window": INSTANCES, "me": 0}
    submit = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "kind": KIND["submit"], "sender": LIMIT["sender_client"]}
    before = passed = 0
    for _ in range(20):
        place, _ = bench.place(0, False)
        await bench.give_peers(place)
        for taken in (bench.frames, bench.host):
            taken.clear()
        for group in range(2):
            await bench.order("switch_on", group, state={**state, "group": group})

        async def submits(count):
            for number in range(count):
                group = dice.below(2)
                packet = signed(bench.c, bench.keys[group], {**submit, "group": group, "session": 1 + number}, b"")
                await bench.receive(frame_of(dice, place, group, packet, False))
                await ClockCycles(dut.clk, dice.below(24))

        bench.slowness = 6
        asking = cocotb.start_soon(submits(60))
        await ClockCycles(dut.clk, 200 + dice.below(600))
        await bench.order("off", 0)
        mark = len(bench.frames)
        before += sum(sent_by(frame, place, 0) for frame in bench.frames)
        await asking
        bench.slowness = 0
        await ClockCycles(dut.clk, 3000)
        assert not any(sent_by(frame, place, 0) for frame in bench.frames[mark:]), "it sends though it is off"
        passed += len(bench.host)
    assert before > 100 and passed > 100, (before, passed)


@cocotb.test()
async def smallest_packets_take_two_clocks_each(dut):
    bench = Bench(dut)
    place = await settle_alone(bench)
    dut.destinations_i.value = 1
    base = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "session": 1}
    state = {**PAXOS_REGISTERS.zeros(), "round": 256, "next_instance": 1, "window": INSTANCES}
    kinds = {
        "coordinator": [{**base, "kind": KIND["submit"], "sender": LIMIT["sender_client"]} for _ in range(200)],
        "acceptor": [{**base, "kind": KIND["p2a"], "term": 256, "index": instance} for instance in range(1, 201)],
    }
    for role, headers in kinds.items():
        for size in SIZES:
            for instance in range(1, 201):
                await Box.order(bench, "put_back", 0, number=instance)
            await Box.order(bench, "switch_on", 0, state={**state, "role": PAXOS_ROLE[role]})
            count = 200 if size == 0 else 40
            begins = await clocks_of(bench, [frame_of(bench.dice, place, 0, packet(bench, each, size)) for each in headers[:count]])
            assert len(begins) == count and (size or begins[-1] - begins[0] == 2 * (count - 1)), (len(begins), begins[:1], begins[-1:])
            note(f"{role}, a packet to what it sends", size, clocks=begins[0], clocks_a_packet=(begins[-1] - begins[0]) / (count - 1))
            await Box.order(bench, "off", 0)

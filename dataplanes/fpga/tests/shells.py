"""A core in a shell: what every shell has to do, whatever its streams, registers and log look like. The benches of single shells say that."""
import collections

import cocotb
from card_host import CAUSE, COUNT, NUMBER, REASONS, STATE, Host
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiSlaveWrite, AxiWriteBus
from ends import BEAT, REPLICAS, Bench
from frames import GROUPS, IPV4_MAPPED, any_frame, endpoint_of, frame_of, signed
from in_c import Gap, Keys, Place
from kernel_plane import Model, frame_to, in_a_new_term
from layouts import HEADER, KIND, LIMIT, REGISTERS, ROLE
from test_step import OPS, registers

WALKS, FRAMES, TIMES_OFF, RESETS = 8, 50, 6, 4
SLOTS = 8
CORE_BYTES = 512 * BEAT  # of frames that wait in the core
# What the host's own frames begin with, and the network's that are not ours.
OWN, FOREIGN = b"\x02own\0\0", b"\x02net\0\0"
WANTED = {"host", "refused", "stored by leader", "stored by follower", "fan-out", "reply", "own", "stalled own", "stalled tx", "stalled log"}


class Shell(Bench, Host):
    """A core in a shell. A bench gives it `clk`; `rx` and `own`, sources; `tx` and `to_host`, sinks; its registers; and the log, to `written`."""

    keeps_up = True  # the way of the log to the host's memory is as wide as the network

    def __init__(self, dut, frame_bytes_max=1518, has_marks=False):
        super().__init__(dut)
        # `has_marks`: broken frames come, too, from either side, and are marked.
        self.frame_bytes_max, self.has_marks = frame_bytes_max, has_marks
        self.kept, self.keys, self.reached = {}, [Keys() for _ in range(GROUPS)], collections.Counter()
        self.own_given, self.own_frames, self.host = [], [], []
        self.slots, self.beats, self.base, self.fails, self.log_slowness, self.log_clocks = {}, {}, None, False, 1, 0

    def took_tx(self, frame, beside):
        is_own = frame.startswith(OWN)
        (self.own_frames if is_own else self.frames).append(frame)
        self.check_tx(frame, beside, is_own)

    def took_host(self, frame, beside):
        self.host.append(frame)
        self.check_host(frame, beside)

    def log_pauses(self):
        """Short ones, and long ones."""
        while True:
            count = 400 if self.log_slowness > 1 and self.dice.seldom(60) else self.dice.below(1 + self.log_slowness)
            self.reached["stalled log"] += count > 0
            yield from [True] * count
            yield False

    def written(self, address, data):
        """A beat is in the host's memory. An entry's first one comes last."""
        assert len(data) == BEAT and 0 <= address - self.base < SLOTS * NUMBER["slot_stride"], hex(address)
        slot, at = divmod(address - self.base, NUMBER["slot_stride"])
        beats = self.beats.setdefault(slot, [])
        if at:
            assert at == BEAT * (len(beats) + 1), "out of order"
            beats.append(data)
            return
        index = int.from_bytes(data[:8], "little")
        assert index % SLOTS == slot
        self.slots[0, index] = b"".join([data, *beats])
        del self.beats[slot]

    async def told(self, has_payloads=False):
        """The host tells the card what it has to know."""
        self.place = Place()
        self.place.at[0] = endpoint_of(IPV4_MAPPED + self.dice.bytes(4), 7401, self.dice.bytes(6))
        self.base, _, peers = await self.is_told(self.place, self.keys[0], REPLICAS, SLOTS - 1, has_payloads)
        self.model = Model(self, self.place, [0, 0], [peers] * GROUPS)

    def forget(self):
        model = self.model
        for taken in (self.frames, self.own_given, self.own_frames, self.host, self.slots, model.host, model.sent, model.slots, model.left):
            taken.clear()

    async def settled(self, model):
        """Until all that comes of what was given has come."""
        for _ in range(400):
            await ClockCycles(self.clk, 40)
            taken = [(self.frames, model.sent), (self.host, model.host), (self.slots, model.slots), (self.own_frames, self.own_given)]
            if self.rx.is_done and self.own.is_done and all(len(done) >= len(decided) for done, decided in taken):
                break
        await ClockCycles(self.clk, 400)

    def check_in_the_end(self):
        """What a shell has besides."""

    def released(self):
        """A reset is over."""
        self.is_left_over = bool(self.rx.given), bool(self.own.given)

    async def counted(self, name):
        return await self.read("count", REASONS + COUNT[name])

    def give_own(self, size=None, is_lost=False, is_broken=False):
        """The host sends something. `is_lost`: the shell will not send it."""
        size = size or self.dice.one_of([60, 64, 65, 128, 60 + self.dice.below(self.frame_bytes_max - 59), self.frame_bytes_max])
        frame = OWN + self.dice.bytes(size - len(OWN))
        self.own.send(frame, **self.beside_own(frame, is_lost, is_broken))
        if not is_lost:
            self.own_given.append(frame)

    def give(self, frame, is_broken=False):
        """Something comes from the network."""
        self.rx.send(frame, **self.beside_rx(frame, is_broken))

    def request(self, number):
        given = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "group": 7, "kind": KIND["request"], "sender": LIMIT["sender_client"]}
        return frame_of(self.dice, self.place, 0, signed(self.c, self.keys[0], {**given, "session": number}, b""))


class Memory:
    """The host's, behind AXI4."""

    def __init__(self, shell):
        self.shell = shell
        slave = AxiSlaveWrite(AxiWriteBus.from_prefix(shell.dut, "m_axi"), shell.clk, target=self)
        slave.log.setLevel("ERROR")
        for channel in (slave.aw_channel, slave.w_channel, slave.b_channel):
            channel.set_pause_generator(shell.log_pauses())

    async def write(self, address, data):
        if self.shell.log_clocks:
            await ClockCycles(self.shell.clk, self.shell.log_clocks)
        if self.shell.fails:
            raise OSError("this write fails")
        self.shell.written(address, bytes(data))


def a_state(shell, walk):
    """Of a leader and of a follower in turn."""
    while True:
        state = in_a_new_term(shell.dice, registers(shell.dice, shell.c), walk)
        if state["role"] == [ROLE["leader"], ROLE["follower"]][walk % 2] and state["replicas"] > 1 and state["last_index"] < 1 << 32:
            return {**state, "ring_slots": 4096, "window": 4096}


def leads(term):
    return {**REGISTERS.zeros(), "role": ROLE["leader"], "term": term, "last_term": term, "ring_slots": 4096, "window": 4096, "replicas": 3,
            "quorum": 2, "group": 7}


async def frames_in_and_out(shell):
    """Frames do what they do in the kernel; what is not ours reaches the host, and its own frames leave; broken ones leave no trace."""
    dice, broken = shell.dice, 0
    await shell.told(has_payloads=True)
    for walk in range(WALKS):
        model, state = shell.model, a_state(shell, walk)
        assert not walk or await shell.order("off", 0)
        assert await shell.order("engage", 0, state=state)
        shell.forget()
        model.states[0], model.gaps[0] = state, Gap(state["last_index"])
        shell.tx.slowness, shell.to_host.slowness, shell.log_slowness = dice.one_of([1, 2, 4]), dice.one_of([1, 3]), dice.below(3)
        shell.own.pauses, shell.rx.pauses = dice.one_of([0, 3]), dice.one_of([0, 3])
        if walk == 0:
            shell.tx.slowness, shell.own.pauses = 4, 0
            # More than there is room for while the network is slow: so some must wait.
            for _ in range(6):
                shell.give_own(shell.frame_bytes_max)
                shell.reached["own"] += 1
            # Longer than any room: it leaves no trace.
            longest = BEAT * 2 ** (4 * shell.frame_bytes_max // BEAT).bit_length()
            shell.give_own(longest, is_lost=True)
            if longest < CORE_BYTES:
                shell.give(FOREIGN + dice.bytes(longest - len(FOREIGN)))
                shell.reached["too long"] += 1
        for _ in range(FRAMES):
            if dice.seldom(3):
                shell.give_own()
                shell.reached["own"] += 1
            if shell.has_marks and dice.seldom(8):
                shell.give_own(is_lost=True, is_broken=True)
                shell.reached["own, broken"] += 1
            frame = frame_to(shell, shell.place, 0, model.states[0]) if dice.below(4) else any_frame(dice, shell.c, shell.place, shell.keys, dice.one_of([None, 0]))[0]
            if len(frame) > shell.frame_bytes_max:
                continue
            if shell.has_marks and dice.seldom(6):
                shell.give(frame, True)
                broken += 1
                continue
            before = model.copied()
            said = model.take(frame)
            shell.reached[said] += 1
            if said in ("resend", "answer"):
                # Else what the ring has would depend on the clock.
                await shell.settled(before)
            shell.give(frame)
            if said in ("resend", "answer"):
                await shell.settled(model)
            while len(model.sent) - len(shell.frames) > 16 or len(model.host) - len(shell.host) > 4 or len(shell.rx.queue) > 4:
                await RisingEdge(shell.clk)
        await shell.settled(model)
        for taken, given in ((shell.host, model.host), (shell.own_frames, shell.own_given), (shell.frames, model.sent)):
            assert len(taken) == len(given)
        assert shell.host == model.host, "another frame for the host"
        assert shell.own_frames == shell.own_given, "another one of its own"
        for number, (frame, wanted) in enumerate(zip(shell.frames, model.sent)):
            assert frame == wanted, f"walk {walk}, frame {number}: {frame.hex()}, in C {wanted.hex()}"
        assert not shell.beats and shell.slots.keys() == model.slots.keys()
        for at, slot in model.slots.items():
            assert shell.slots[at][:len(slot)] == slot, f"walk {walk}, slot {at}: {shell.slots[at].hex()}, in C {slot.hex()}"
        shell.reached += model.reached
        model.reached.clear()
    shell.check_in_the_end()
    assert await shell.counted("frames_broken") == broken
    assert await shell.counted("frames_too_long") == shell.reached["too long"] == int(shell.frame_bytes_max < 9000)
    assert await shell.counted("frames_own_lost") == 1 + shell.reached["own, broken"]
    for name in ("frames_lost", "frames_not_taken"):
        assert await shell.counted(name) == 0, "the bench is too fast"
    assert shell.rx.waited == 0, "what is received does not wait"
    shell.reached.update({"broken": broken, "stalled own": shell.own.waited, "stalled tx": shell.tx.stalls})
    print(dict(shell.reached), flush=True)
    wanted = WANTED | ({"broken", "own, broken"} if shell.has_marks else set())
    reached = {name for name, count in shell.reached.items() if count}
    assert wanted <= reached, wanted - reached


async def the_smallest_packets_keep_up(shell):
    """With a frame of 114 bytes every second clock, a follower acknowledges each, where the log is fast enough; whatever the host does meanwhile."""
    await shell.told()
    shell.own.stops = True
    shell.give_own(500)
    state = {**leads(3), "role": ROLE["follower"], "me": 0, "leader": 1}
    assert await shell.order("engage", 0, state=state)
    shell.log_slowness, shell.rx.pauses = 0, 0
    header = {**HEADER.zeros(), "magic": 0x5157, "version": 1, "group": 7, "term": 3, "kind": KIND["append"], "sender": 1, "previous_term": 3}
    frames = [frame_of(shell.dice, shell.place, 0, signed(shell.c, shell.keys[0], {**header, "index": index}, b"")) for index in range(1, 101)]
    await RisingEdge(shell.clk)
    begin = shell.tx.clock + 3  # the first beat is taken two clocks later; one is counted less, as of the core alone
    for frame in frames:
        shell.give(frame)
    await ClockCycles(shell.clk, 1500)
    begins = shell.tx.begins
    assert len(begins) == len(frames) == len(shell.frames) == len(shell.slots), (len(begins), len(shell.frames), len(shell.slots))
    print(f"figure: an entry to its acknowledgement: {begins[0] - begin} clocks; one every {(begins[-1] - begins[0]) / (len(begins) - 1):g}", flush=True)
    assert not shell.keeps_up or begins[-1] - begins[0] == 2 * (len(begins) - 1)
    assert shell.own.given and not shell.own_frames, "it has stopped in the middle of a frame"
    shell.own.stops = False
    await ClockCycles(shell.clk, 200)
    assert shell.own_frames == shell.own_given


async def the_log_is_in_memory_once_off_is_done(shell):
    """And nothing of the group leaves then."""
    dice, stored, late = shell.dice, 0, 0
    await shell.told()
    for time in range(TIMES_OFF):
        shell.forget()
        shell.log_slowness, shell.tx.slowness = 1, 1
        assert await shell.order("engage", 0, state=leads(3 + time))
        for number in range(60):
            shell.give(shell.request(number))
        while len(shell.slots) < 4:
            await RisingEdge(shell.clk)
        # Everything that it stores is on its way for long.
        shell.log_clocks = 100 + dice.below(100)
        await shell.write("order", OPS.index("off"))
        while await shell.read("state") & STATE["under_way"]:
            late += 1
        slots = dict(shell.slots)
        shell.log_clocks = 0
        await ClockCycles(shell.clk, 4000)
        assert shell.slots == slots and not shell.beats, "what is stored comes after OFF"
        stored += len(slots)
        assert len(slots) < 60, "OFF came too late"
    print({"stored": stored, "looked again": late}, flush=True)
    assert stored > 4 * TIMES_OFF


async def no_write_is_begun_once_one_has_failed(shell):
    """Until the next reset. The registers go on."""
    for time in range(2):
        await shell.told()
        shell.forget()
        await shell.write("enabled", CAUSE["log_failed"])
        assert await shell.order("engage", 0, state=leads(3 + time))
        shell.give(shell.request(1))
        await ClockCycles(shell.clk, 1500)
        assert len(shell.slots) == 1 and not int(shell.dut.interrupt_o.value) and not await shell.read("state") & STATE["log_failed"]
        shell.fails = True
        for number in range(3):
            shell.give(shell.request(2 + number))
        await ClockCycles(shell.clk, 1500)
        shell.fails = False
        for number in range(3):
            shell.give(shell.request(5 + number))
        await ClockCycles(shell.clk, 1500)
        assert len(shell.slots) == 1, "something was stored behind what failed"
        assert int(shell.dut.interrupt_o.value), "the host is not told"
        await shell.write("causes", CAUSE["log_failed"])
        assert await shell.read("causes") & CAUSE["log_failed"], "it is forgotten"
        assert await shell.read("identity") & 0xffff == NUMBER["identity"]
        assert await shell.read("state") & STATE["busy"] and await shell.read("state") & STATE["log_failed"]
        await shell.reset()
        shell.beats.clear()
        assert not await shell.read("state") & STATE["log_failed"] and await shell.read("off") == 0xff


async def a_reset_leaves_no_half_frame(shell):
    """It comes in the middle of frames, of which neither side sees what is left."""
    dice, reached, size = shell.dice, collections.Counter(), 1514
    for _ in range(RESETS):
        for taken in (shell.host, shell.own_given, shell.own_frames):
            taken.clear()
        shell.rx.pauses = shell.own.pauses = 2
        given = [FOREIGN + dice.bytes(size - len(FOREIGN)) for _ in range(14)]
        for frame in given:
            shell.give(frame)
            shell.give_own(size)
        await ClockCycles(shell.clk, dice.below(60))
        reached["cut"] += bool(shell.rx.given)
        await shell.reset()
        reached["left over"] += shell.is_left_over[0]
        reached["left over, own"] += shell.is_left_over[1]
        after = [FOREIGN + dice.bytes(100) for _ in range(2)]
        for frame in after:
            shell.give(frame)
        for _ in range(2):
            shell.give_own()
        for _ in range(200):
            await ClockCycles(shell.clk, 40)
            if shell.rx.is_done and shell.own.is_done:
                break
        await ClockCycles(shell.clk, 600)
        assert shell.host[-2:] == after and shell.own_frames[-2:] == shell.own_given[-2:]
        assert all(frame in given for frame in shell.host[:-2]), "a piece of a frame"
        assert not shell.frames
        assert await shell.read("clocks") < 100_000 and await shell.counted("frames_broken") == 0
    print(dict(reached), flush=True)
    assert all(reached[name] for name in ("cut", "left over", "left over, own")), reached


TESTS = [frames_in_and_out, the_smallest_packets_keep_up, the_log_is_in_memory_once_off_is_done, no_write_is_begun_once_one_has_failed, a_reset_leaves_no_half_frame]


def tests_of(begin):
    """The tests of a shell, by name; `begin` makes its bench and resets it."""

    def test_of(what):
        async def test(dut):
            await what(await begin(dut))

        return cocotb.test(name=what.__name__)(test)

    return {what.__name__: test_of(what) for what in TESTS}

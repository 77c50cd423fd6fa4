"""What the plane in the kernel does with frames (dataplanes/xdp/bpf/act.h), around the C of the step; and frames that mean something to it."""
import collections
import copy
import struct

from frames import BRINGS_COMMAND, GROUPS, IPV4_MAPPED, WITHOUT_PAYLOAD, endpoint_of, frame_of, signed
from in_c import Gap
from layouts import ACTION, FLAG, HEADER, HEADER_BYTES, KIND, LIMIT, REASON, REGISTERS, ROLE
from test_crc32c import crc32c
from test_open import expected
from test_step import header as step_header

# Entries that the chip keeps.
PLACES = 256
SLOT_HEAD = struct.Struct("<QQQQIHBB16s2s6sHB5x")
ORIGIN = LIMIT["origin_bytes"]
ENTRY_FLAGS = FLAG["blind"] | FLAG["tick"] | FLAG["fragment"] | FLAG["bundle"]
NAMES = {value: name for name, value in KIND.items()}


def place_of(group, index):
    """Where in the ring on the chip an entry is."""
    return (index + group * PLACES // GROUPS) % PLACES


class Model:
    """What the kernel's plane does, in its words (dataplanes/xdp/bpf/act.h), around the C of the step."""

    def __init__(self, bench, place, epochs, peers):
        self.bench, self.place, self.epochs, self.peers = bench, place, epochs, peers
        self.states, self.gaps = [REGISTERS.zeros()] * GROUPS, [Gap() for _ in range(GROUPS)]
        self.host, self.sent, self.slots, self.left, self.reached = [], [], {}, [], collections.Counter()

    def copied(self):
        """As it is now, whatever it takes later."""
        made = copy.copy(self)
        made.sent, made.host, made.slots, made.left = (copy.copy(each) for each in (self.sent, self.host, self.slots, self.left))
        return made

    def repeat(self, group, first, last, of_entry, written=None):
        """What is done for entries from the ring on the chip, up to the first that is not there, is being written, or is the host's."""
        for index in range(first, last + 1):
            kept = self.bench.kept.get(place_of(group, index))
            if index == written or not kept or kept[:3] != (group, index, self.states[group]["term"]):
                return index
            if of_entry(index, SLOT_HEAD.unpack(kept[3][:SLOT_HEAD.size]), kept[3][SLOT_HEAD.size:]):
                return index
        return None

    def resend(self, group, first, peer):
        state = self.states[group]
        last = min(state["last_index"], first + LIMIT["resend_entries_max"] - 1)

        def send(index, slot, payload):
            header = {**self.says(group, "append", index), "previous_term": slot[1], "session": slot[2], "sequence": slot[3],
                      "payload_crc32c": slot[4], "payload_bytes": slot[5], "flags": slot[6]}
            self.reached["sent again"] += 1
            self.send(group, header, payload, [self.peers[group][peer]])

        left = self.repeat(group, first, last, send)
        if left is not None:
            self.reached["sent again by the host"] += 1
            self.left.append(("resend", group, left, last, peer))

    def answer(self, group, first, written):
        def answer(index, slot, _):
            if slot[12]:
                self.reached["answered"] += 1
                header = {**self.says(group, "answer", index), "session": slot[2], "sequence": slot[3]}
                address, port, mac = slot[8], int.from_bytes(slot[9], "big"), slot[10]
                self.send(group, header, b"", [endpoint_of(address, port, mac)])
            elif slot[6] & FLAG["blind"] and slot[7]:
                self.reached["answered by the host alone"] += 1
                return True
            return False

        last = self.states[group]["commit_index"]
        left = self.repeat(group, first, last, answer, written)
        if left is not None:
            self.reached["answered by the host"] += 1
            self.left.append(("answer", group, left, last, None))

    def says(self, group, kind, index):
        state = self.states[group]
        return {**HEADER.zeros(), "magic": 0x5157, "version": 1, "kind": KIND[kind], "sender": state["me"], "group": state["group"],
                "term": state["term"], "index": index, "commit_index": state["commit_index"]}

    def send(self, group, header, payload, all_of_them):
        self.sent += self.bench.frames_of(self.place, self.epochs, group, header, payload, all_of_them)

    def take(self, frame):
        verdict = expected(self.bench.c, self.place, self.bench.keys, frame)
        if not verdict["is_ours"]:
            self.host.append(frame)
            return "host"
        header = verdict["header"]
        if verdict["reason"] or verdict["to_group"] and header["kind"] != KIND["append"]:
            return "refused"
        packet_at = len(frame) - HEADER_BYTES - header["payload_bytes"]
        payload = frame[packet_at + HEADER_BYTES:]
        return self.step(verdict, header, payload, frame)

    def step(self, verdict, header, payload, frame):
        group, kind = verdict["group"], NAMES[header["kind"]]
        state, out = self.bench.c.replica("packet", self.states[group], header, 0)
        self.states[group] = state
        asking = self.bench.c.asking(self.gaps[group], header, out)
        does = {name for name, bit in ACTION.items() if out["actions"] & bit}
        reason = REASON[out["reason"]]
        if "to_software" in does:
            if kind == "request" and reason in ("off", "malformed") or kind == "forward" and reason == "off":
                self.host.append(frame)
                return "off" if reason == "off" else "host"
            return "to software"
        is_leader = state["role"] == ROLE["leader"]
        if "store" in does:
            self.store(group, kind, header, payload, out, verdict)
            self.reached["stored by leader" if is_leader else "stored by follower"] += 1
            self.reached["forwarded entry"] += kind == "forward"
        leader = [self.peers[group][state["leader"]]]
        if "fanout" in does and state["replicas"] > 1:
            others = [self.peers[group][slot] for slot in range(state["replicas"]) if slot != state["me"]]
            multicast = bytes(self.place.multicast)
            if multicast[0] and state["replicas"] > 2:
                port = int.from_bytes(bytes(self.place.at[group].port), "big")
                mac = bytes([1, 0, 0x5e, multicast[1] & 0x7f, *multicast[2:]])
                others = [endpoint_of(IPV4_MAPPED + multicast, port, mac)]
            self.send(group, out["header"], payload[ORIGIN:] if kind == "forward" else payload, others)
            return "multicast" if multicast[0] and state["replicas"] > 2 else "fan-out"
        if asking == 2:
            self.send(group, {**self.says(group, "retransmit", out["index"] + 1), "sequence": state["round"]}, b"", leader)
            return "asks for more"
        if asking == 1:
            return "does not ask"
        if "reply" in does:
            self.send(group, out["header"], b"", leader)
            return "reply"
        if "forward" in does:
            origin = verdict["address"].to_bytes(16, "big") + verdict["port"].to_bytes(2, "big")
            self.send(group, out["header"], origin + payload, leader)
            return "forward"
        if "resend" in does:
            self.resend(group, out["index"], header["sender"])
            return "resend"
        if "commit" in does and is_leader:
            self.answer(group, max(out["commit_from"], state["start_index"]) + 1, out["index"] if "store" in does else None)
            return "answer"
        return "nothing"

    def store(self, group, kind, header, payload, out, verdict):
        flags, client, previous = header["flags"] & ENTRY_FLAGS, bytes(24), out["header"]["previous_term"]
        if kind == "append":
            previous = header["previous_term"]
        elif kind == "request":
            client = verdict["address"].to_bytes(16, "big") + verdict["port"].to_bytes(2, "big") + verdict["mac"].to_bytes(6, "big")
        else:
            client, payload = payload[:ORIGIN] + bytes(6), payload[ORIGIN:]
        here = kind == "request" and bool(flags & FLAG["blind"])
        head = SLOT_HEAD.pack(out["index"], previous, header["session"], header["sequence"], header["payload_crc32c"], len(payload), flags,
                              kind != "append", client[:16], client[16:18], client[18:], 0, here)
        self.slots[group, out["index"]] = head + payload
        self.bench.kept[place_of(group, out["index"])] = group, out["index"], out["header"]["term"], head + payload


def frame_to(bench, place, group, state):
    """A frame that means something to a replica in this state, with a right tag."""
    dice = bench.dice
    header = step_header(dice, state)
    name = NAMES.get(header["kind"], "?")
    size = 0 if name in WITHOUT_PAYLOAD or name == "?" else dice.one_of([0, 5, 18, 19, 56, 57, 64, 100, dice.below(1377)])
    if name == "forward":
        size = max(size, ORIGIN)
    payload = dice.bytes(size)
    header.update(payload_bytes=size, version=1)
    valid = bench.keys[group].pairs[name in ("request", "answer", "submit")].valid
    header["flags"] = header["flags"] & ~FLAG["epoch"] | (0 if valid & 1 else 1)
    if name in BRINGS_COMMAND:
        header["payload_crc32c"] = crc32c(payload[ORIGIN if name == "forward" else 0:])
    to_group = place.multicast[0] and bytes(place.at[group].address)[:12] == IPV4_MAPPED and dice.seldom(4)
    return frame_of(dice, place, group, signed(bench.c, bench.keys[group], header, payload), to_group)


def in_a_new_term(dice, state, walk):
    """In one term nobody stores another entry under an index that has one."""
    term = dice.one_of([1 + 8 * walk, (1 << 64) - 1 - 8 * walk])
    return {**state, "term": term, "last_term": term - dice.below(2)}

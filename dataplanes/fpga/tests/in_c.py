"""The C of fastpath/, compiled once, called from tests of gates."""
import ctypes
import os
import subprocess
from pathlib import Path

from layouts import HEADER, HEADER_BYTES, PAXOS_REGISTERS, PAXOS_SLOT, REGISTERS, ROOT


class Outcome(ctypes.Structure):
    _fields_ = [("header", HEADER.in_memory), ("index", ctypes.c_uint64), ("commit_from", ctypes.c_uint64),
                ("actions", ctypes.c_uint32), ("reason", ctypes.c_uint32)]


class TagKey(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64), ("digest", ctypes.c_uint64 * 173)]


class Endpoint(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint8 * 16), ("port", ctypes.c_uint8 * 2), ("mac", ctypes.c_uint8 * 6)]


class Place(ctypes.Structure):
    """Where planes are (tests/host/found.c)."""
    _fields_ = [("vlan", ctypes.c_uint32), ("multicast", ctypes.c_uint8 * 4), ("at", Endpoint * 8)]


class Found(ctypes.Structure):
    """What is found in a frame (the same)."""
    _fields_ = [("at", ctypes.c_uint32), ("bytes", ctypes.c_uint32), ("group", ctypes.c_uint32), ("to_group", ctypes.c_uint32),
                ("sender", Endpoint)]


class KeyPair(ctypes.Structure):
    _fields_ = [("key", TagKey * 2), ("valid", ctypes.c_uint64)]


class Gap(ctypes.Structure):
    """What a follower has asked for (fastpath/shared.toml)."""
    _fields_ = [("leader_last", ctypes.c_uint64), ("asked_index", ctypes.c_uint64), ("quiet", ctypes.c_uint64)]


class Keys(ctypes.Structure):
    """The replicas', then the clients'."""
    _fields_ = [("pairs", KeyPair * 2)]


# Each library with its source and where that looks for headers.
LIBRARIES = {
    "fastpath": ("fastpath/src/shim.c", ["fastpath/include", "wire/generated"]),
    "found": ("dataplanes/fpga/tests/host/found.c",
              ["dataplanes/fpga/tests/host", "dataplanes/xdp/bpf", "fastpath/include", "wire/generated"]),
}


def load(name):
    return ctypes.CDLL(str(Path(os.environ["QUORUMWIRE_HDL_BUILD"]) / f"{name}.so"))


def compile_into(folder):
    """What `load` loads."""
    for name, (source, headers) in LIBRARIES.items():
        subprocess.run(["cc", "-O2", "-std=gnu11", "-shared", "-fPIC", *(f"-I{ROOT / header}" for header in headers),
                        str(ROOT / source), "-o", str(folder / f"{name}.so")], check=True)


class Fastpath:
    """Each call gives what it returned and how it left the registers."""

    def __init__(self):
        self.c = load("fastpath")
        self.c.qw_real_tag.restype = ctypes.c_uint64

    def _told(self, state, out):
        return REGISTERS.values(state), outcome_of(out)

    def replica(self, op, registers, header, number):
        """An operation on a replica's registers."""
        state, out = REGISTERS.memory(registers), Outcome()
        given, of, to = HEADER.memory(header), ctypes.byref(state), ctypes.byref(out)
        number = ctypes.c_uint64(number)
        if op == "packet":
            self.c.qw_real_step(of, ctypes.byref(given), to)
        elif op == "submit":
            self.c.qw_real_submit(of, ctypes.byref(given), to)
        elif op == "persisted":
            self.c.qw_real_persisted(of, number, to)
        elif op == "heartbeat":
            self.c.qw_real_heartbeat(of, number, to)
        else:
            out.reason = 0 if self.c.qw_real_release(of, number) else BEYOND_LAST
        return self._told(state, out)

    def asking(self, gap, header, outcome):
        """What a follower asks for beyond what the step says: 0 as it says, 1 nothing, 2 more."""
        out = Outcome(HEADER.memory(outcome["header"]), *(outcome[name] for name in ("index", "commit_from", "actions", "reason")))
        return self.c.qw_real_gap_after(ctypes.byref(gap), ctypes.byref(HEADER.memory(header)), ctypes.byref(out))

    def is_sound(self, registers):
        return bool(self.c.qw_real_registers_sound(ctypes.byref(REGISTERS.memory(registers))))

    def paxos(self, op, registers, slot, header, number):
        """An operation on a Paxos role's registers: those, the slot, and the outcome."""
        state, kept, out = PAXOS_REGISTERS.memory(registers), PAXOS_SLOT.memory(slot), Outcome()
        if op == "packet":
            given = HEADER.memory(header)
            self.c.qw_real_paxos_step(ctypes.byref(state), ctypes.byref(kept), ctypes.byref(given), ctypes.byref(out))
        else:
            out.reason = 0 if self.c.qw_real_paxos_trim(ctypes.byref(state), ctypes.c_uint64(number)) else MALFORMED
        return PAXOS_REGISTERS.values(state), PAXOS_SLOT.values(kept), outcome_of(out)

    def is_paxos_sound(self, registers):
        return bool(self.c.qw_real_paxos_sound(ctypes.byref(PAXOS_REGISTERS.memory(registers))))

    def key(self, secret):
        made = TagKey()
        given = (ctypes.c_uint64 * 2)(*secret)
        self.c.qw_real_tag_key_make(ctypes.byref(made), ctypes.byref(given))
        return made

    def check(self, keys, packet):
        """The reason why a packet is not taken, as far as form and tag say, and its header."""
        header, given = HEADER.in_memory(), packet.ljust(HEADER_BYTES, b"\0")
        reason = self.c.qw_real_check_form(given, ctypes.c_uint32(len(packet)), ctypes.byref(header))
        if reason == 0:
            payload = packet[HEADER_BYTES:]
            reason = self.c.qw_real_check_tag(ctypes.byref(keys), ctypes.byref(header), packet, payload)
        return reason, HEADER.values(header)

    def tag(self, key, header, payload):
        return self.c.qw_real_tag(ctypes.byref(key), header, payload, ctypes.c_uint32(len(payload)))


def found(place, frame):
    """Where the packet in a frame is, or None if it is none of ours."""
    library, it = load("found"), Found()
    said = library.qw_found(ctypes.byref(place), frame, ctypes.c_uint32(len(frame)), ctypes.byref(it))
    if said < 0:
        raise OSError("qw_found could not ask")
    return it if said else None


def sent(place, group, to, packet):
    """The frame in which a group's plane sends a packet."""
    library, frame = load("found"), ctypes.create_string_buffer(len(packet) + 66)
    made = library.qw_sent(ctypes.byref(place), ctypes.c_uint32(group), ctypes.byref(to), packet, ctypes.c_uint32(len(packet)), frame)
    if made <= 0:
        raise OSError("qw_sent could not make it")
    return frame.raw[:made]


# Why a call that returns a truth has refused, as the gates say it.
BEYOND_LAST, MALFORMED = 14, 3


def outcome_of(out):
    return {"header": HEADER.values(out.header), "index": out.index, "commit_from": out.commit_from,
            "actions": out.actions, "reason": out.reason}

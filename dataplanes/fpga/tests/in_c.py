"""The C of fastpath/, compiled once, called from tests of gates."""
import ctypes
import os
import subprocess
from pathlib import Path

from layouts import HEADER, PAXOS_REGISTERS, PAXOS_SLOT, REGISTERS, ROOT


class Outcome(ctypes.Structure):
    _fields_ = [("header", HEADER.in_memory), ("index", ctypes.c_uint64), ("commit_from", ctypes.c_uint64),
                ("actions", ctypes.c_uint32), ("reason", ctypes.c_uint32)]


class TagKey(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64), ("digest", ctypes.c_uint64 * 173)]


def load():
    library = Path(os.environ["QUORUMWIRE_HDL_BUILD"]) / "fastpath.so"
    return ctypes.CDLL(str(library))


def compile_into(folder):
    """What `load` loads."""
    library = folder / "fastpath.so"
    subprocess.run(["cc", "-O2", "-std=gnu11", "-shared", "-fPIC", f"-I{ROOT}/fastpath/include", f"-I{ROOT}/wire/generated",
                    f"{ROOT}/fastpath/src/shim.c", "-o", str(library)], check=True)


class Fastpath:
    """Each call gives what it returned and how it left the registers."""

    def __init__(self):
        self.c = load()
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

    def tag(self, key, header, payload):
        return self.c.qw_real_tag(ctypes.byref(key), header, payload, ctypes.c_uint32(len(payload)))


# Why a call that returns a truth has refused, as the gates say it.
BEYOND_LAST, MALFORMED = 14, 3


def outcome_of(out):
    return {"header": HEADER.values(out.header), "index": out.index, "commit_from": out.commit_from,
            "actions": out.actions, "reason": out.reason}

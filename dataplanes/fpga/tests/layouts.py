"""Headers, registers and outcomes as Python values: in memory as the C has them, and as vectors as the gates have them.

The layouts come from wire/format.toml, as those of the C and of the gates do.
"""
import ctypes
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FORMAT = tomllib.loads((ROOT / "wire/format.toml").read_text())
OF_BITS = {1: ctypes.c_uint8, 3: ctypes.c_uint8, 8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}


class Layout:
    """Fields one behind the other: name, bits, elements (None: a number)."""

    def __init__(self, name, fields):
        self.name = name
        self.fields = [(field["name"], field["bits"], field.get("count")) for field in fields]
        of = [(name, OF_BITS[bits] * count if count else OF_BITS[bits]) for name, bits, count in self.fields]
        self.in_memory = type(name, (ctypes.Structure,), {"_fields_": of})

    def zeros(self):
        return {name: [0] * count if count else 0 for name, _, count in self.fields}

    def memory(self, values):
        made = self.in_memory()
        for name, _, count in self.fields:
            if count:
                getattr(made, name)[:] = values[name]
            else:
                setattr(made, name, values[name])
        return made

    def values(self, memory):
        return {name: list(getattr(memory, name)) if count else getattr(memory, name) for name, _, count in self.fields}

    @property
    def bits(self):
        return sum(bits * (count or 1) for _, bits, count in self.fields)

    def vector(self, values):
        """The first field is the highest, and element 0 of an array the lowest."""
        made = 0
        for name, bits, count in self.fields:
            for value in reversed(values[name]) if count else [values[name]]:
                made = made << bits | value
        return made

    def of_vector(self, vector):
        found = {}
        for name, bits, count in reversed(self.fields):
            taken = []
            for _ in range(count or 1):
                taken.append(vector & (1 << bits) - 1)
                vector >>= bits
            found[name] = taken if count else taken[0]
        return {name: found[name] for name, _, _ in self.fields}


HEADER = Layout("header", FORMAT["header"]["fields"])
REGISTERS = Layout("registers", FORMAT["registers"]["fields"])
HEADER_BYTES = HEADER.bits // 8
PAXOS_REGISTERS = Layout("paxos_registers", FORMAT["paxos_registers"]["fields"])
PAXOS_SLOT = Layout("paxos_slot", FORMAT["paxos_slot"]["fields"])
# Of the gates (rtl/qw_gate_pkg.sv), with the header in front of it.
OUTCOME_TAIL = Layout("outcome_tail", [
    {"name": "index", "bits": 64}, {"name": "commit_from", "bits": 64},
    {"name": "actions", "bits": 32}, {"name": "reason", "bits": 8},
])

KIND = {name: entry["value"] for name, entry in FORMAT["kinds"].items()}
FLAG = {name: 1 << entry["bit"] for name, entry in FORMAT["flags"].items()}
ROLE = {name: entry["value"] for name, entry in FORMAT["roles"].items()}
PAXOS_ROLE = {name: entry["value"] for name, entry in FORMAT["paxos_roles"].items()}
ACTION = {name: 1 << entry["bit"] for name, entry in FORMAT["actions"].items()}
REASON = {entry["value"]: name for name, entry in FORMAT["reasons"].items()}
LIMIT = {name: entry["value"] for name, entry in FORMAT["limits"].items()}

# As qw_gate_pkg has it.
AGAIN = Layout("again", [
    {"name": name, "bits": bits} for name, bits in
    [("answers", 1), ("group", 3), ("from", 64), ("upto", 64), ("peer", 8), ("me", 8), ("number", 32), ("term", 64), ("commit_index", 64)]
])


def outcome_of_vector(vector):
    """The outcome of a step in gates."""
    tail = OUTCOME_TAIL.of_vector(vector & (1 << OUTCOME_TAIL.bits) - 1)
    return {"header": HEADER.of_vector(vector >> OUTCOME_TAIL.bits), **tail}

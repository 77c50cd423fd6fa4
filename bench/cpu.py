"""CPU time as the kernel counts it, in /proc (steps of 10 ms): of processes and of the machine.

Linux only.
"""
import contextlib
import os
import resource
from pathlib import Path
from typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# The parent of all kernel threads.
KERNEL_THREADS = 2


class Used(NamedTuple):
    """CPU seconds of a process, its ended threads included."""

    user: float
    system: float

    def since(self, earlier):
        return Used(self.user - earlier.user, self.system - earlier.system)

    @property
    def total(self):
        return self.user + self.system


class Machine(NamedTuple):
    """CPU seconds of all cores together. What a hypervisor took away (steal) counts as busy, and so do softirqs."""

    busy: float
    idle: float
    softirq: float = 0.0

    def since(self, earlier):
        return Machine(self.busy - earlier.busy, self.idle - earlier.idle, self.softirq - earlier.softirq)


def of_process(pid):
    """What a process has used since it started."""
    return parse_process(Path(f"/proc/{pid}/stat").read_text())


def of_machine():
    """What the machine has used since it started."""
    return parse_machine(Path("/proc/stat").read_text())


def of_ended_children_and_self():
    """CPU seconds of this process and of the children it has waited for: the load program, no server."""
    sums = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in sums)


def parse_process(text):
    # The second field, the program's name, is in parentheses and may contain anything.
    fields = text.rsplit(")", 1)[1].split()
    return Used(int(fields[11]) / TICKS_PER_SECOND, int(fields[12]) / TICKS_PER_SECOND)


def parse_machine(text):
    name, *fields = text.split("\n", 1)[0].split()
    if name != "cpu" or len(fields) < 8:
        raise ValueError(f"/proc/stat is not understood: {text[:80]!r}")
    user, nice, system, idle, iowait, irq, softirq, steal = (int(field) / TICKS_PER_SECOND for field in fields[:8])
    return Machine(user + nice + system + irq + softirq + steal, idle + iowait, softirq)


def niceness(pid):
    """The nice values of all threads of a process."""
    found = set()
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            found.add(int(path.read_text().rsplit(")", 1)[1].split()[16]))
    return found


def of_all_but(ours):
    """What processes used that are no descendants of `ours`, their ended children included; no kernel threads,
    which work for everybody."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            pid = int(path.parent.name)
            parents[pid] = int(fields[1])
            used[pid] = sum(int(field) for field in fields[11:15]) / TICKS_PER_SECOND

    def is_other(pid):
        while pid > 1:
            if pid in (ours, KERNEL_THREADS):
                return False
            pid = parents.get(pid, 0)
        return True

    return sum(seconds for pid, seconds in used.items() if pid != KERNEL_THREADS and is_other(pid))

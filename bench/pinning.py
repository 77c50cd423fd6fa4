"""Which cores servers and load programs run on: the same for every system.

What is started inherits the cores of whoever starts it, so this process takes them on for a while.
"""
import contextlib
import os

CORES_MIN = 4
# One core in so many is the load program's.
LOAD_SHARE = 4


class Pinning:
    """Where processes run; without one of them everywhere."""

    def __init__(self, all_cores, servers=None, load=None):
        self.all_cores, self.servers, self.load = all_cores, servers, load

    def described(self):
        if self.servers is None:
            return f"none: with fewer than {CORES_MIN} cores the scheduler shares them out"
        return f"servers on cores {listed(self.servers)}, load programs on {listed(self.load)}"

    def as_server(self):
        return on(self.servers, self.all_cores)

    def as_load(self):
        return on(self.load, self.all_cores)


def choose(cores, forced=False):
    """The load program gets the last cores where there are enough of them, or if that is asked for."""
    cores = sorted(cores)
    if len(cores) < 2 or (len(cores) < CORES_MIN and not forced):
        return Pinning(set(cores))
    count = max(1, len(cores) // LOAD_SHARE)
    return Pinning(set(cores), set(cores[:-count]), set(cores[-count:]))


@contextlib.contextmanager
def on(cores, all_cores):
    if cores is None:
        yield
        return
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cores)


def listed(cores):
    return ",".join(map(str, sorted(cores)))

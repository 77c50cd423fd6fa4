"""A load while something happens to replicas at known moments, and both on one axis of time."""
import json
import math
import time
from typing import NamedTuple

from load import LOAD_SECONDS_EXTRA
from plane_load import Usage
from processes import Failed, start, tail

INTERVAL_MS_MIN = 50
# As many as the load program prints.
INTERVALS_MAX = 1_000
# What the moment when a load began may be wrong by, since it is told from its end.
ALIGNMENT_MS_MAX = 1_000


class Timeline(NamedTuple):
    """One run. Times are milliseconds since the measurement began."""

    intervals: list  # as the load program prints them
    marks: list  # (at_ms, what)
    gap: object  # (from_ms, ms): the longest time without a successful write; None: unknown
    errors: dict

    def throughput(self):
        """(second, operations a second) in the middle of each interval; the last one may be shorter than the others."""
        return [(at, rate) for at, rate, _ in self.steps()]

    def p99(self):
        """(second, microseconds); None where nothing was answered."""
        return [(at, p99) for at, _, p99 in self.steps()]

    def steps(self):
        found, begin = [], 0
        for each in self.intervals:
            end = each["at_ms"]
            if end > begin:
                found.append(((begin + end) / 2_000, each["operations"] * 1_000 / (end - begin), each["p99_us"]))
            begin = end
        return found

    def rate_between(self, begin_ms, end_ms):
        """Operations a second of the intervals that lie wholly within; None without any."""
        operations, milliseconds, before = 0, 0, 0
        for each in self.intervals:
            if before >= begin_ms and each["at_ms"] <= end_ms:
                operations += each["operations"]
                milliseconds += each["at_ms"] - before
            before = each["at_ms"]
        return operations * 1_000 / milliseconds if milliseconds else None


class Event(NamedTuple):
    """What is done so many seconds after the load was started."""

    at: float
    what: str
    do: object


def aligned(printed, started_ms, ended_ms, happened):
    """What a load program printed and when things happened (wall clock, milliseconds), on the load's axis.

    The measurement began where the program says; if it does not, its seconds before it ended.
    """
    began = printed.get("began_unix_ms", ended_ms - printed["seconds"] * 1_000)
    if not started_ms - ALIGNMENT_MS_MAX <= began <= ended_ms:
        raise Failed(f"the load cannot have begun {began - started_ms:.0f} ms after it was started")
    gap = printed.get("longest_gap")
    within = (gap["from_unix_ms"] - began, gap["ms"]) if gap else None
    return Timeline(printed["intervals"], [(at - began, what) for at, what in happened], within, printed["errors"])


def interval_ms(seconds):
    """The shortest for so long a run."""
    return max(INTERVAL_MS_MIN, math.ceil(seconds * 1_000 / INTERVALS_MAX))


def run(stack, cluster, asked, seconds, events, more=()):
    """Puts a load on all replicas, lets events happen meanwhile, and waits for its end. The run, and how many percent of
    the machine others used."""
    output, log = cluster.folder / "load.json", cluster.folder / "load.log"
    command = cluster.load_command(asked, seconds, ["--interval-ms", interval_ms(seconds), "--survive", *more], everybody=True)
    happened, before = [], Usage.now([])
    with open(output, "wb") as printed:
        started = time.time()
        process = start(stack, command, log, stdout=printed)
        for event in sorted(events, key=lambda it: it.at):
            time.sleep(max(0.0, started + event.at - time.time()))
            if process.poll() is not None:
                raise Failed(f"the load ended before {event.what}: {tail(log)}")
            happened.append((time.time() * 1e3, event.what))
            event.do()
        process.wait(seconds + LOAD_SECONDS_EXTRA)
        ended = time.time()
    if process.returncode != 0:
        raise Failed(f"the load: {tail(log)}")
    used = Usage.now([]).since(before)
    line = aligned(json.loads(output.read_text()), started * 1e3, ended * 1e3, happened)
    return line, 100 * used.others / (used.busy + used.idle)

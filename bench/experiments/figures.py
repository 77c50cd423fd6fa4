"""The arithmetic of the experiments. What was not measured is None, never zero."""
import math
import random
import statistics
from itertools import takewhile
from typing import NamedTuple

# A system keeps up with what is offered while it answers this share of it,
KEEPS_UP = 0.95
# and its p99 is bearable up to so many times the shortest at any rate that it keeps up with.
KNEE_TIMES = 5
# Clocks of the load program and of the harness are the same, but one looks a little after the other.
KILL_TOLERANCE_MS = 50
# Writes that stop once more so soon after a kill stop because of it, or of the machine.
SOON_MS = 1000
RESAMPLED_TIMES = 1000


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def percentile(values, percent):
    """The nearest rank: a value that was measured, for few values the largest."""
    ordered = sorted(value for value in values if value is not None)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else None


def cumulative(values):
    """(value, fraction of values that are not above it), ascending."""
    ordered = sorted(value for value in values if value is not None)
    return [(value, (place + 1) / len(ordered)) for place, value in enumerate(ordered)]


class Ratio(NamedTuple):
    """Of medians; low and high are of the rounds both took part in."""

    value: float
    low: float
    high: float


def ratio(ours, theirs):
    """Of two figures by round; None where one of them is not there. `theirs` None: the figure itself."""
    if not ours:
        return None
    if theirs is None:
        return Ratio(statistics.median(ours.values()), min(ours.values()), max(ours.values()))
    both = [ours[n] / theirs[n] for n in ours if theirs.get(n)]
    if not both:
        return None
    return Ratio(statistics.median(ours.values()) / statistics.median(theirs.values()), min(both), max(both))


def ratio_of_percentiles(ours, theirs, percent):
    """Of a percentile of all of ours to that of all of theirs, such as a p99 of kills. Low and high are what nineteen of twenty ratios lie
    between, if as many are drawn anew from both at random (bootstrap), always the same random.
    """
    if not ours or not theirs:
        return None
    draw = random.Random(0)
    drawn = sorted(
        percentile(draw.choices(ours, k=len(ours)), percent) / percentile(draw.choices(theirs, k=len(theirs)), percent)
        for _ in range(RESAMPLED_TIMES)
    )
    low, high = percentile(drawn, 2.5), percentile(drawn, 97.5)
    return Ratio(percentile(ours, percent) / percentile(theirs, percent), low, high)


class Rate(NamedTuple):
    """One point of a sweep, of medians."""

    offered: float
    answered: float
    p50_us: float
    p99_us: float


def knee(rates):
    """The highest rate that a system keeps up with at a bearable p99; None if there is none.

    A rate behind one that was not borne does not count: there it was luck.
    """
    kept_up = list(takewhile(lambda rate: None not in rate and rate.answered >= KEEPS_UP * rate.offered, sorted(rates)))
    if not kept_up:
        return None
    # What is slower at a lower rate was slow by a moment's noise.
    best = min(range(len(kept_up)), key=lambda place: kept_up[place].p99_us)
    bearable = KNEE_TIMES * kept_up[best].p99_us
    return list(takewhile(lambda rate: rate.p99_us <= bearable, kept_up[best:]))[-1]


NO_WRITE_AFTERWARDS = "no write succeeded after the kill, up to the end of the run"


class Gap(NamedTuple):
    """Milliseconds without a successful write that a kill cost: exactly, or at most; and how long after it that ended."""

    ms: float
    exact: bool
    after_kill_ms: float | None = None


def longest_soon_after(printed, killed_at_ms):
    """Milliseconds: the longest time without a write that began in the second after a kill, but not with it; at most so long, if
    none of those that the load program tells did. What happens when writes go on, and then do not for another moment.
    """
    gaps = printed["longest_gaps"]
    soon = [gap["ms"] for gap in gaps if KILL_TOLERANCE_MS < gap["from_unix_ms"] - killed_at_ms <= SOON_MS]
    return max(soon, default=gaps[-1]["ms"])


def gap_of_kill(printed, killed_at_ms):
    """What a load program that outlived a kill says of it; a text if nothing can be said.

    It tells the longest gaps of its run, the longest first. On a busy machine some that are longer than the kill's may lie
    elsewhere. If it is not among them, it was no longer than any: to leave such kills out would leave out the short ones.
    """
    gaps = printed.get("longest_gaps") or []
    if not gaps:
        return "the load program says of no gap"
    writes_go_on = writes_at_the_end(printed.get("intervals"))
    if not writes_go_on and not all(gap["recovered"] for gap in gaps):
        return NO_WRITE_AFTERWARDS
    for gap in gaps:
        begins_after, ends_after = gap["from_unix_ms"] - killed_at_ms, gap["to_unix_ms"] - killed_at_ms
        if begins_after <= KILL_TOLERANCE_MS and ends_after >= 0:
            return Gap(gap["ms"], True, ends_after)
    # A write succeeded where a gap begins.
    if writes_go_on or any(gap["from_unix_ms"] > killed_at_ms for gap in gaps):
        return Gap(gaps[-1]["ms"], False)
    return NO_WRITE_AFTERWARDS


def writes_at_the_end(intervals):
    """Whether the last full interval had successes: the very last one may be a sliver."""
    return any(interval["operations"] > 0 for interval in (intervals or [])[-2:])

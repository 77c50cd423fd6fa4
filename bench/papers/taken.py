"""All that was measured in a run: figures, distributions and runs over time, by round, part and system."""
import csv
import json
import statistics
from typing import NamedTuple

from papers import curves


class Row(NamedTuple):
    """One figure. `at` is where on the part's axis: lanes, a rate's fraction, bytes, a percentage."""

    round: int
    part: str
    system: str
    at: object
    metric: str
    value: object


class Taken:
    """Filled while it is measured; asked by the page."""

    def __init__(self):
        self.rows = []
        self.distributions = []  # (round, part, system, at, cdf)
        self.timelines = []  # (round, part, system, timeline)
        self.failures = []  # (round, measurement's name, system, reason)
        self.errors = []  # (round, part, system, where on the axis, {reason: requests that failed by it})
        self.missing = {}  # (measurement's name, system): reason
        self.parts = {}  # part: measurement's name

    def add(self, round_number, part, system, at, **figures):
        self.rows += [Row(round_number, part, system, at, metric, value) for metric, value in figures.items()]

    def belongs(self, rows, timelines, name):
        """Whatever was added since there were so many rows and timelines is this measurement's."""
        added = [row.part for row in self.rows[rows:]] + [part for _, part, *_ in self.timelines[timelines:]]
        self.parts.update(dict.fromkeys(added, name))

    def parts_of(self, names):
        """The parts that these measurements added."""
        return {part for part, name in self.parts.items() if name in names}

    def rounds_of(self, parts):
        """In how many rounds anything of these was measured."""
        return len({n for n, part, *_ in [*self.rows, *self.timelines] if part in parts})

    def values(self, part, system, at, metric):
        """One for each round that has it."""
        wanted = (part, system, at, metric)
        return [row.value for row in self.rows if row[1:5] == wanted and row.value is not None]

    def median(self, part, system, at, metric):
        values = self.values(part, system, at, metric)
        return statistics.median(values) if values else None

    def places(self, part, system=None):
        """Where on the axis there is anything, in the order in which it was measured."""
        return list(dict.fromkeys(row.at for row in self.rows if row.part == part and system in (None, row.system)))

    def systems(self, part):
        """In the order in which they were measured."""
        every = [*((row.part, row.system) for row in self.rows), *((of, system) for _, of, system, _ in self.timelines)]
        return list(dict.fromkeys(system for of, system in every if of == part))

    def cdf(self, part, system, at):
        """The middle of all rounds; empty if there is none."""
        found = [cdf for _, *of, cdf in self.distributions if of == [part, system, at]]
        return curves.middle(found) if found else []

    def timelines_of(self, part, system):
        return [line for _, *of, line in self.timelines if of == [part, system]]

    def typical(self, part, system):
        """The run whose gap is the middle one; None if there is none."""
        lines = sorted(self.timelines_of(part, system), key=lambda line: line.gap[1] if line.gap else 0)
        return lines[len(lines) // 2] if lines else None

    def write(self, folder):
        """Every single figure, one file for each part and kind."""
        for part in dict.fromkeys(row.part for row in self.rows):
            rows = [(row.round, row.system, row.at, row.metric, rounded(row.value)) for row in self.rows if row.part == part]
            write_csv(folder / f"{part}.csv", ["round", "system", "at", "metric", "value"], rows)
        for part in dict.fromkeys(part for _, part, *_ in self.distributions):
            rows = [
                (n, system, at, rounded(us), f"{share:.6f}")
                for n, of, system, at, cdf in self.distributions if of == part for us, share in cdf
            ]
            write_csv(folder / f"{part}-cdf.csv", ["round", "system", "at", "us", "fraction"], rows)
        for part in dict.fromkeys(part for _, part, *_ in self.timelines):
            write_timelines(folder / f"{part}-time.csv", [it for it in self.timelines if it[1] == part])


def write_timelines(path, timelines):
    rows = []
    for n, _, system, line in timelines:
        rows += [(n, system, each["at_ms"], each["operations"], each["errors"], each["p50_us"], each["p99_us"], "") for each in line.intervals]
        rows += [(n, system, rounded(at), "", "", "", "", what) for at, what in line.marks]
        rows += [(n, system, rounded(line.gap[0]), "", "", "", "", f"gap of {line.gap[1]:.1f} ms begins")] if line.gap else []
        rows += [(n, system, "", "", json.dumps(line.errors), "", "", "all errors")] if line.errors else []
    write_csv(path, ["round", "system", "at_ms", "operations", "errors", "p50_us", "p99_us", "event"], rows)


def rounded(value):
    return f"{value:.3f}" if isinstance(value, float) else value


def write_csv(path, headings, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(headings)
        writer.writerows(rows)

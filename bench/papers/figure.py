"""What a figure of a paper is here: words about theirs, and how ours is measured and shown.

Their figures are words in captions. They are not in any plot or table of ours.
"""
from pathlib import Path
from typing import NamedTuple

from papers import curves
from plots import Plot, Series
from report import number, spread, table

DENSITY_BINS = 40


class Measurement(NamedTuple):
    """What is measured at a stretch on one system after the other. Several figures may show parts of it."""

    name: str
    systems: tuple
    measure: object  # (turn) -> None
    needs: tuple = ()  # options of `quorumwire bench`
    on_disk: bool = False  # where the replicas' data are; else in memory, so that no disk is measured
    missing: object = None  # () -> why it cannot be measured here, or None
    once: bool = False  # it counts, and would find the same in each round


class Panel(NamedTuple):
    """One plot with its table, and the paper's own beside it in words."""

    name: str
    title: str
    theirs: str  # what the paper shows there, with the source
    show: object  # (taken, path of the plot, title) -> (Plot or None, table's text)


class Figure(NamedTuple):
    """One figure or table of a paper."""

    name: str
    source: str
    title: str
    theirs: str  # what the paper measured and found
    ours: str  # what is measured in its place
    differs: str
    panels: tuple
    measurements: tuple
    not_here: tuple = ()  # (what, why)


class Paper(NamedTuple):
    """A paper several of whose figures come from one set-up."""

    name: str
    prefix: str  # of its figures' names
    setup: str
    differs: str
    not_here: tuple

    def figure(self, number, title, theirs, panels, measurements, not_here=None, ours="", differs=""):
        joined = (f"{self.setup} {theirs}", ours, f"{self.differs} {differs}".strip())
        missing = self.not_here if not_here is None else not_here
        return Figure(f"{self.prefix}-{number}", f"{self.name}, figure {number}", title, *joined, panels, measurements, missing)


class Axis(NamedTuple):
    """What is on an axis: a measured figure, or (None) where on the part's own axis it was measured."""

    label: str
    metric: object = None
    log: bool = False


def points(taken, part, system, x, y):
    """Medians over the rounds, in the order of the axis."""
    found = []
    for at in taken.places(part, system):
        value = taken.median(part, system, at, y.metric)
        across = at if x.metric is None else taken.median(part, system, at, x.metric)
        if across is not None:
            found.append((across, value))
    return found


def lines(part, x, y, *more, at="at", of="", beside=(), unit="µs"):
    """Lines of `y` over `x`; `more` axes have lines of their own, `y` and they in one plot with one `unit`. With `of`, only
    of systems whose names end so. What is `beside` stands in the table alone."""
    def show(taken, path, title):
        series = [
            Series(f"{system}, {axis.label}" if more else system, points(taken, part, system, x, axis))
            for system in taken.systems(part) if system.endswith(of) for axis in (y, *more)
        ]
        label = y.label if not more else unit
        plot = Plot(path, title, x.label, label, series, log_x=x.log, log_y=y.log)
        shown = [axis for axis in (x, *beside, y, *more) if axis.metric is not None]
        return plot, figures(taken, part, at, [(axis.label, axis.metric) for axis in shown], of)

    return show


def bars(part, y, *more, at="at"):
    """A group of bars for each place on the part's axis, or, with `more`, for each system: CPU of several roles."""
    def show(taken, path, title):
        names = taken.systems(part)
        if more:
            series = [
                Series(axis.label, [(name, first(taken, part, name, axis.metric)) for name in names]) for axis in (y, *more)
            ]
        else:
            series = [
                Series(name, [(str(place), taken.median(part, name, place, y.metric)) for place in taken.places(part)])
                for name in names
            ]
        label = y.label if not more else "% of one core"
        plot = Plot(path, title, at if not more else "", label, series, bars=True)
        return plot, figures(taken, part, at, [(axis.label, axis.metric) for axis in (y, *more)])

    return show


def first(taken, part, system, metric):
    places = taken.places(part, system)
    return taken.median(part, system, places[0], metric) if places else None


def figures(taken, part, at, metrics, of=""):
    """Medians and spreads of all places of a part."""
    rows = []
    for system in (name for name in taken.systems(part) if name.endswith(of)):
        for place in taken.places(part, system):
            columns = [taken.values(part, system, place, metric) for _, metric in metrics]
            rows.append([system, str(place), *map(median_of, columns)])
    return table(["system", at, *(label for label, _ in metrics)], rows)


def median_of(values):
    """With the spread, if there are several."""
    return "–" if not values else spread(values) if len(values) > 1 else number(values[0])


def distribution(part, ats, dense=False):
    """CDFs, or probability densities, at these places of a part's axis."""
    def show(taken, path, title):
        series, rows = [], []
        for system in taken.systems(part):
            for at in ats:
                cdf = taken.cdf(part, system, at)
                if not cdf:
                    continue
                name = system if len(ats) == 1 else f"{system}, {at}"
                drawn = curves.density(cdf, DENSITY_BINS) if dense else cdf
                series.append(Series(name, [(us, height) for us, height in drawn]))
                # Medians of the rounds' own: those of the merged distribution are no round's.
                mean, deviation = (taken.median(part, system, at, metric) for metric in ("mean_us", "deviation_us"))
                reached = (curves.quantile(cdf, share) for share in (0.5, 0.9, 0.99))
                rows.append([name, *("–" if it is None else number(it) for it in (*reached, mean, deviation))])
        label = "fraction of requests per µs" if dense else "fraction of requests"
        plot = Plot(path, title, "latency, µs", label, series, log_x=not dense, markers=False)
        return plot, table(["of", "p50 µs", "p90 µs", "p99 µs", "mean µs", "standard deviation µs"], rows)

    return show


def over_time(part, latency=False):
    """Operations a second over time (or p99), what happened as dashed lines; one run of several, the one with the middle gap."""
    def show(taken, path, title):
        series, marks, rows = [], (), []
        for system in taken.systems(part):
            line = taken.typical(part, system)
            series.append(Series(system, line.p99() if latency else line.throughput()))
            # All are asked to happen at the same moments; what is drawn are the first system's.
            marks = marks or line.marks
            rows.append([system, *gap_columns(taken.timelines_of(part, system))])
        label = "p99, µs" if latency else "operations/s"
        plot = Plot(path, title, "seconds", label, series, log_y=latency, markers=False, marked_x=tuple(at / 1e3 for at, _ in marks))
        headings = ["system", "longest time without a write, ms", "it began, ms after the first dashed line",
                    "operations/s before", "at the end"]
        happened = ", ".join(f"{what} ({at / 1e3:.2f} s)" for at, what in marks)
        return plot, (f"Dashed: {happened}.\n\n" if marks else "") + table(headings, rows)

    return show


def gap_columns(timelines):
    gaps = [line.gap[1] for line in timelines if line.gap]
    begins = [line.gap[0] - line.marks[0][0] for line in timelines if line.gap and line.marks]
    before = [line.rate_between(0, line.marks[0][0]) for line in timelines if line.marks]
    after = [line.rate_between(line.marks[-1][0], line.intervals[-1]["at_ms"]) for line in timelines if line.marks and line.intervals]
    return [spread(found) if found else "–" for found in (gaps, begins, kept(before), kept(after))]


def kept(values):
    return [value for value in values if value is not None]


def listed(part, at, *metrics):
    """A table of what was measured at each place, (heading, metric); no plot."""
    def show(taken, _path, _title):
        return None, figures(taken, part, at, metrics)

    return show


def at_fractions(part, ats):
    """A table of mean and standard deviation, median over the rounds; no plot."""
    def show(taken, _path, _title):
        rows = [
            [system, at, *(spread(values) if values else "–" for values in columns_of(taken, part, system, at))]
            for system in taken.systems(part) for at in ats
        ]
        return None, table(["system", "of the maximum", "operations/s", "mean µs", "standard deviation µs"], rows)

    return show


def columns_of(taken, part, system, at):
    return [taken.values(part, system, at, metric) for metric in ("operations_per_second", "mean_us", "deviation_us")]


def plot_path(folder, panel):
    return Path(folder) / f"{panel.name}.svg"

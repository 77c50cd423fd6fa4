"""Tables and plots that several experiments share."""
from experiments.figures import ratio
from plots import SERIES_MAX, Plot, Series
from report import NOT_MEASURED, number, spread, table

# Stands in each of several plots where one has too many lines.
REFERENCE = "quorumwire memory"


def cell(found, experiment, system, setting, field):
    """Median and spread; else a word."""
    values = found.of(experiment, system, setting, field)
    if values:
        return spread(values.values())
    # A turn that failed as a whole has no more than the beginning of a setting.
    tried = any(one.setting == tuple(setting)[: len(one.setting)] for one in found.failed(experiment, system))
    return "failed" if tried else NOT_MEASURED


def cell_beside(found, experiment, system, setting, field, other):
    """Median, and in parentheses what it is of `other`, a system and a setting: the ratio of medians, smallest and largest of the rounds.

    Without another, or where that was not measured, the cell alone.
    """
    shown = cell(found, experiment, system, setting, field)
    times = other and ratio(found.of(experiment, system, setting, field), found.of(experiment, *other, field))
    if not times:
        return shown
    return f"{number(found.median(experiment, system, setting, field))} ({number(times.value)}; {number(times.low)}–{number(times.high)})"


def grid(found, experiment, columns):
    """A row for each system; `columns`: (heading, setting, field)."""
    rows = [
        [system, *(cell(found, experiment, system, setting, field) for _, setting, field in columns)]
        for system in found.systems(experiment)
    ]
    return table(["system", *(heading for heading, _, _ in columns)], rows)


def single(value):
    return NOT_MEASURED if value is None else number(value)


def in_parts(plot):
    """The same plot in as many as it takes to tell its lines apart, each with the reference."""
    there = [series for series in plot.series if any(y is not None for _, y in series.points)]
    if len(there) <= SERIES_MAX:
        return [plot._replace(series=there)] if there else []
    first = [series for series in there if series.name == REFERENCE]
    others = [series for series in there if series.name != REFERENCE]
    size = SERIES_MAX - len(first)
    parts = [first + others[at : at + size] for at in range(0, len(others), size)]
    return [
        plot._replace(series=part, title=f"{plot.title} ({n} of {len(parts)})", path=plot.path.with_stem(f"{plot.path.stem}-{n}"))
        for n, part in enumerate(parts, start=1)
    ]


def lines(found, experiment, settings, field, x_of):
    """A line for each system: medians over the settings."""
    return [
        Series(system, [(x_of(setting), found.median(experiment, system, setting, field)) for setting in settings])
        for system in found.systems(experiment)
    ]


def plot_of(folder, file_name, title, x_label, y_label, series, **more):
    return in_parts(Plot(folder / f"{file_name}.svg", title, x_label, y_label, series, **more))

"""Plots as data; `draw` makes SVG files of them."""
import json
import subprocess
from pathlib import Path
from typing import NamedTuple

DRAW = Path(__file__).resolve().parent / "draw"
SECONDS_MAX = 120
SERIES_MAX = 8


class Series(NamedTuple):
    """One line, or one colour of bars. Of points without a figure (None) nothing is drawn."""

    name: str
    points: list  # (x, y); for bars x is a name


class Plot(NamedTuple):
    """One plot. What stands beside it (the caption) is the report's."""

    path: Path
    title: str
    x_label: str
    y_label: str
    series: list
    log_x: bool = False
    log_y: bool = False
    bars: bool = False
    markers: bool = True
    marked_x: tuple = ()  # such as when somebody was killed


def as_json(plot):
    """What `draw` reads; a series without points is left out, never drawn as zero."""
    series = [
        {"name": each.name, "points": [[x, y] for x, y in each.points if y is not None]} for each in plot.series
    ]
    there = [each for each in series if each["points"]]
    if len(there) > SERIES_MAX:
        raise ValueError(f"{plot.title}: {len(there)} series, of which nobody tells more than {SERIES_MAX} apart")
    return {**plot._asdict(), "path": str(plot.path), "series": there}


def shown(file_name, caption):
    """How a report shows a plot."""
    return f"![{caption}](plots/{file_name})\n\n*{caption}*"


def draw_and_show(made, folder):
    """Draws those of these plots, each with its caption, that have anything to show; what the report shows of them, or why it shows none."""
    there = [(plot, caption) for plot, caption in made if any(series.points for series in plot.series)]
    if not there:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    reason = draw([plot for plot, _ in there])
    return [shown(plot.path.name, caption) for plot, caption in there] if reason is None else [f"No plots were drawn: {reason}."]


def draw(plots):
    """Draws those that have anything to show; why none was drawn, or None."""
    described = [described for described in map(as_json, plots) if described["series"]]
    text = "".join(json.dumps(one) + "\n" for one in described)
    try:
        done = subprocess.run([DRAW], input=text, capture_output=True, text=True, timeout=SECONDS_MAX)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode != 0:
        return done.stderr.strip().rsplit("\n", 1)[-1]
    return None

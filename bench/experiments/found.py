"""What the experiments found, and why some of it is not there; as CSV, too."""
import csv
from typing import NamedTuple

from experiments.figures import median


class Point(NamedTuple):
    """One measurement."""

    experiment: str
    round: int
    system: str
    setting: tuple  # values of the experiment's setting_names
    figures: dict  # name: number or None


class Failure(NamedTuple):
    """One that was tried and has no figures."""

    experiment: str
    round: int
    system: str
    setting: tuple
    reason: str


class Found:
    """All of a run."""

    def __init__(self):
        self.points = []
        self.curves = []  # (experiment, round, system, [(x, y), ...])
        self.failures = []
        self.not_offered = {}  # (experiment, system): why
        self.partly = {}  # (experiment, system): with what alone, and why
        self.left_out = {}  # experiment: why
        self.plots = {}  # experiment: [(file's name, caption)]
        self.not_drawn = {}  # experiment: why

    def add(self, experiment, round_number, system, setting, figures):
        self.points.append(Point(experiment, round_number, system, tuple(setting), dict(figures)))

    def fail(self, experiment, round_number, system, setting, reason):
        self.failures.append(Failure(experiment, round_number, system, tuple(setting), str(reason)))

    def of(self, experiment, system, setting, field):
        """Round and figure, of the rounds that have it."""
        return {
            point.round: point.figures[field]
            for point in self.points
            if (point.experiment, point.system, point.setting) == (experiment, system, tuple(setting))
            and point.figures.get(field) is not None
        }

    def median(self, experiment, system, setting, field):
        return median(self.of(experiment, system, setting, field).values())

    def systems(self, experiment):
        """All that were tried, in their order."""
        tried = [*self.points, *self.failures]
        return list(dict.fromkeys(one.system for one in tried if one.experiment == experiment))

    def settings(self, experiment):
        """All that were tried; where a whole turn failed, what there was to it."""
        tried = [*self.points, *self.failures]
        return list(dict.fromkeys(one.setting for one in tried if one.experiment == experiment and one.setting))

    def failed(self, experiment, system):
        return [one for one in self.failures if (one.experiment, one.system) == (experiment, system)]

    def rounds(self, experiment):
        """The fewest rounds that any point has."""
        counted = {}
        for point in self.points:
            if point.experiment == experiment:
                counted.setdefault((point.system, point.setting), set()).add(point.round)
        return min(map(len, counted.values()), default=0)


def write_csv(found, experiment, path):
    """All points of an experiment, and what has none; a figure that is missing is an empty cell."""
    points = [point for point in found.points if point.experiment == experiment.name]
    fields = list(dict.fromkeys(field for point in points for field in point.figures))
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["round", "system", *experiment.setting_names, *fields, "failed"])
        for point in points:
            cells = (point.figures.get(field) for field in fields)
            writer.writerow([point.round, point.system, *point.setting, *map(cell, cells), ""])
        for one in (one for one in found.failures if one.experiment == experiment.name):
            setting = [*one.setting, *[""] * len(experiment.setting_names)][: len(experiment.setting_names)]
            writer.writerow([one.round, one.system, *setting, *[""] * len(fields), one.reason])


def write_curves(found, experiment, path):
    """Curves of an experiment, one point a line."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["round", "system", "x", "fraction"])
        for name, round_number, system, curve in found.curves:
            if name == experiment.name:
                writer.writerows([round_number, system, x, y] for x, y in curve)


def cell(figure):
    if figure is None:
        return ""
    return f"{figure:.3f}" if isinstance(figure, float) else figure

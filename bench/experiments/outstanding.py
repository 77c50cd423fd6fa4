"""One request outstanding: how its latency is distributed."""
from experiments.tables import grid, plot_of
from experiments.turns import Experiment
from plots import Series

POINTS_MAX = 200


class Outstanding(Experiment):
    name = "outstanding"
    title = "One request outstanding"
    about = "One connection that waits for each answer. The line of each system is of the round whose p50 is the median one."
    redis_clients = True

    def turn(self, turn):
        printed = turn.take((), 1, 1, ["--cdf"])
        if printed is None:
            return
        curve = curve_of(printed)
        if curve:
            turn.found.curves.append((self.name, turn.round, turn.system, curve))

    def section(self, found):
        columns = [("p50 µs", (), "p50_us"), ("p90 µs", (), "p90_us"), ("p99 µs", (), "p99_us"), ("p99.9 µs", (), "p999_us"),
                   ("operations/s", (), "operations_per_second")]
        return grid(found, self.name, columns)

    def plots(self, found, folder):
        series = [Series(system, middle_curve(found, self.name, system)) for system in found.systems(self.name)]
        caption = "Latency with one request outstanding: the share of requests (up) that took at most so long (right)."
        return [(plot, caption) for plot in plot_of(
            folder, "latency-cdf", "One request outstanding", "latency, µs", "share of requests", series, log_x=True, markers=False)]


def curve_of(printed):
    """(µs, fraction), ascending; none if a load program does not print it."""
    return [(float(us), float(fraction)) for us, fraction in printed.get("latency_cdf") or []][:POINTS_MAX]


def middle_curve(found, experiment, system):
    """That of the round whose p50 is the (lower) median one."""
    of_rounds = found.of(experiment, system, (), "p50_us")
    curves = {n: curve for name, n, of, curve in found.curves if (name, of) == (experiment, system) and n in of_rounds}
    ordered = sorted(curves, key=of_rounds.get)
    return curves[ordered[(len(ordered) - 1) // 2]] if ordered else []

"""Throughput against latency: open loops at rates up to beyond what a system can do."""
from experiments.figures import KEEPS_UP, KNEE_TIMES, Rate, knee
from experiments.tables import cell, plot_of, single
from experiments.turns import Experiment
from plots import Series
from report import number, table

# So many requests may be under way; then those that are due wait at the client, and that counts.
CONNECTIONS, IN_FLIGHT = 32, 16
CLOSED = "closed loop"
RATE_MIN = 10
SHOWN = (0.1, 0.25, 0.5, 0.75)


class Sweep(Experiment):
    name = "sweep"
    title = "Throughput against latency"
    setting_names = ("fraction",)
    about = (
        f"First a closed loop of {CONNECTIONS}×{IN_FLIGHT} finds the maximum, then open loops offer fractions of that turn's "
        "maximum. A request's latency counts from when it was due, so one that had to wait for others is not left out "
        f"(coordinated omission). The knee is the highest rate such that at it and at every lower one at least {KEEPS_UP * 100:.0f} % is "
        f"answered, and that from the rate with the shortest p99 on none has more than {KNEE_TIMES} times that."
    )

    def turn(self, turn):
        printed = turn.take((CLOSED,), CONNECTIONS, IN_FLIGHT)
        if printed is None:
            return
        for fraction in turn.length.fractions:
            rate = max(RATE_MIN, round(printed["operations_per_second"] * fraction))
            turn.take((fraction,), CONNECTIONS, IN_FLIGHT, ["--rate", str(rate)], warm_up=False)

    def section(self, found):
        headings = ["system", "closed loop, operations/s", *(f"p50 / p99 µs at {share * 100:.0f} %" for share in SHOWN),
                    "knee, operations/s", "knee, p50 / p99 µs"]
        rows = []
        for system in found.systems(self.name):
            at = knee(rates_of(found, system))
            shown = (f"{single(found.median(self.name, system, (share,), 'p50_us'))} / "
                     f"{single(found.median(self.name, system, (share,), 'p99_us'))}" for share in SHOWN)
            knee_cells = ["none found", ""] if at is None else [number(at.answered), f"{number(at.p50_us)} / {number(at.p99_us)}"]
            rows.append([system, cell(found, self.name, system, (CLOSED,), "operations_per_second"), *shown, *knee_cells])
        return table(headings, rows)

    def plots(self, found, folder):
        made = []
        for field, word in (("p50_us", "p50"), ("p99_us", "p99")):
            series = [
                Series(system, [(rate.answered, getattr(rate, field)) for rate in sorted(rates_of(found, system)) if None not in rate])
                for system in found.systems(self.name)
            ]
            caption = f"Answered requests per second against {word}, open loop: beyond the knee latency grows and throughput does not."
            made += [(plot, caption) for plot in plot_of(
                folder, f"throughput-latency-{word}", f"Throughput against {word}", "answered per second", f"{word}, µs", series,
                log_x=True, log_y=True)]
        return made


def rates_of(found, system):
    """The sweep's points, of medians; the closed loop is none of them."""
    fields = ("offered_per_second", "operations_per_second", "p50_us", "p99_us")
    return [
        Rate(*(found.median(Sweep.name, system, setting, field) for field in fields))
        for setting in found.settings(Sweep.name)
        if setting != (CLOSED,) and found.of(Sweep.name, system, setting, "p50_us")
    ]

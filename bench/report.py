"""From samples to tables, ratios and CSV.

A peer without samples is named as such, never shown as zero.
"""
import csv
import statistics

import redis_benchmark
from load import LATENCY, MANY, PIPELINED, Sample
from plots import Plot, Series

ROUNDS_MIN = 5
# Above this share of the machine, others may have changed the figures.
OTHERS_PERCENT_MAX = 10
# Of what failed.
REASONS_SHOWN_MAX = 12
REASON_LENGTH_MAX = 300
NOT_MEASURED = "not measured"


class Results:
    """All samples of a run, and why some are not there."""

    def __init__(self, peers, workloads):
        self.peers = [(peer.name, peer.note) for peer in peers]
        self.taken = {peer.name: peer.workloads for peer in peers}
        self.workloads = workloads
        self.rows = []  # (round, peer, workload, sample)
        self.missing = {}
        self.failures = []  # (round, peer, reason)
        self.remarks = []
        self.of_redis_benchmark = []

    def add(self, round_number, peer_name, workload, sample):
        self.rows.append((round_number, peer_name, workload, sample))

    def of(self, peer_name, workload, field):
        """Round and figure, of the rounds that have it."""
        return {
            round_number: getattr(sample, field)
            for round_number, name, done, sample in self.rows
            if (name, done) == (peer_name, workload) and getattr(sample, field) is not None
        }

    def takes(self, peer_name, workload):
        """Whether this peer is measured under this load."""
        return workload in self.taken[peer_name]

    def missing_word(self, peer_name):
        """What stands where the figures of this peer would be."""
        if peer_name in self.missing:
            return "missing"
        return "failed" if any(name == peer_name for _, name, _ in self.failures) else NOT_MEASURED


def number(value):
    """Three digits that count, of less than a tenth three behind the point, and no less than the whole part."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if 0 < abs(value) < 0.0995:
        return f"{value:.3f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def wanted(bound):
    """A bound, (is at most?, number), in words; nothing if there is none."""
    return f"{'≤' if bound[0] else '≥'} {bound[1]:g}" if bound else ""


def reached(bound, value):
    """Whether it holds; a question mark if nothing was measured, nothing if there is no bound."""
    if bound is None:
        return ""
    if value is None:
        return "?"
    at_most, limit = bound
    return "yes" if (value <= limit if at_most else value >= limit) else "**no**"


def spread(values):
    """The median, and in parentheses the smallest and the largest; of no values, that there are none."""
    values = list(values)
    if not values:
        return NOT_MEASURED
    return f"{number(statistics.median(values))} ({number(min(values))}–{number(max(values))})"


def in_one_line(reason):
    words = " ".join(reason.split())
    return words if len(words) <= REASON_LENGTH_MAX else f"{words[:REASON_LENGTH_MAX]} …"


def table(headings, rows):
    """A Markdown table that reads as text, too."""
    cells = [headings, *rows]
    widths = [max(len(row[n]) for row in cells) for n in range(len(headings))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def figures_table(results, workload):
    shown = ["operations_per_second", "p50_us", "p90_us", "p99_us", "p999_us", "server_cpu_us", "client_cpu_us"]
    headings = ["system", "operations/s", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "server CPU µs/op", "client CPU µs/op", "failed", "rounds"]
    rows = []
    for name, _ in results.peers:
        columns = [results.of(name, workload, field).values() for field in shown]
        if not columns[0] and not results.takes(name, workload):
            continue
        if not columns[0]:
            rows.append([name, results.missing_word(name), *[""] * (len(headings) - 2)])
            continue
        failed = sum(results.of(name, workload, "failed_requests").values())
        rows.append([name, *map(spread, columns), str(failed), str(len(columns[0]))])
    return table(headings, rows)


def places_table(results, workload):
    shown = ["leader_user_us", "leader_system_us", "followers_user_us", "followers_system_us", "softirq_us"]
    headings = ["system", "leader, user", "leader, kernel", "followers, user", "followers, kernel", "softirqs, all", "machine idle %", "used by others %"]
    rows = []
    for name, _ in results.peers:
        columns = [list(results.of(name, workload, field).values()) for field in [*shown, "idle_percent", "others_percent"]]
        if columns[0]:
            rows.append([name, *(number(statistics.median(column)) for column in columns[:-1]), spread(columns[-1])])
    return table(headings, rows)


def redis_benchmark_table(lines):
    headings = ["test", "in flight", "system", "requests/s", "p50 µs", "p99 µs"]
    rows = []
    for key in dict.fromkeys((line.in_flight, line.test, line.system) for line in sorted(lines, key=lambda it: it.in_flight)):
        of = [line for line in lines if (line.in_flight, line.test, line.system) == key]
        in_flight, test, system = key
        figures = (spread(getattr(line, field) for line in of) for field in ("requests_per_second", "p50_us", "p99_us"))
        rows.append([test, f"{redis_benchmark.CONNECTIONS}×{in_flight}", system, *figures])
    return table(headings, rows)


def remarks(results):
    """What whoever reads the figures must know."""
    found = [f"{name} is missing: {reason}" for name, reason in results.missing.items()]
    found += [f"round {n}, {name} failed: {reason}" for n, name, reason in results.failures]
    found += results.remarks
    crowded, few = [], []
    for name, _ in results.peers:
        for workload in results.workloads:
            others = results.of(name, workload, "others_percent").values()
            if others and statistics.median(others) > OTHERS_PERCENT_MAX:
                crowded.append(f"{name} {workload}")
            if others and len(others) < ROUNDS_MIN:
                few.append(f"{name} {workload}")
    if crowded:
        found.append(f"others used more than {OTHERS_PERCENT_MAX} % of the machine, measure again when it is quiet: {', '.join(crowded)}")
    if few:
        found.append(f"fewer than {ROUNDS_MIN} rounds, no more than a trial: {', '.join(few)}")
    return found


def bars(results, systems, workload, field, name):
    """One colour: a figure of all these systems that have it."""
    medians = {system: results.of(system, workload, field).values() for system in systems}
    return Series(name, [(system, statistics.median(values)) for system, values in medians.items() if values])


def plots(results, folder):
    """Each with its caption."""
    peers = [peer for peer, _ in results.peers]
    latency = Plot(
        folder / "closed-loops-latency.svg", "One request in flight (1×1), writes", "", "µs",
        [bars(results, peers, LATENCY, field, name) for field, name in (("p50_us", "p50"), ("p99_us", "p99"))], log_y=True, bars=True,
    )
    throughput = Plot(
        folder / "closed-loops-throughput.svg", "Many requests in flight, writes", "", "operations/s",
        [bars(results, peers, workload, "operations_per_second", str(workload)) for workload in (MANY, PIPELINED)], log_y=True, bars=True,
    )
    cpu = Plot(
        folder / "closed-loops-cpu.svg", "CPU of all servers for an operation, writes", "", "µs",
        [bars(results, peers, workload, "server_cpu_us", str(workload)) for workload in (MANY, PIPELINED)], log_y=True, bars=True,
    )
    return [
        (latency, "Latency of one request at a time, µs; each step of the axis is ten times the one below."),
        (throughput, "Operations a second of 64 clients that each wait, and of eight with 64 requests in flight each."),
        (cpu, "CPU of all servers for one operation under the same loads, µs."),
    ]


def closed_loops(results, facts, versions, plots_shown=()):
    """The part of the report on closed loops."""
    parts = [f"Measured: {facts}."]
    for workload in results.workloads:
        parts += [f"### {workload}: {workload.name}", figures_table(results, workload)]
        places = places_table(results, workload)
        parts += ["Server CPU by place, µs per operation (medians), softirqs of the whole machine (most of them charged to "
                  "whichever process they interrupted, so not to be added), and who else used the machine:", places]
    if results.of_redis_benchmark:
        parts += [
            "### redis-benchmark",
            f"`redis-benchmark -t {','.join(redis_benchmark.TESTS)}`, without and with `-P 16`, in the same turns; `MSET` sets ten keys. It "
            "cannot wait for a replica, so Redis stands here unreplicated, and every write of ours is at a majority.",
            redis_benchmark_table(results.of_redis_benchmark),
        ]
    parts += plots_shown
    found = remarks(results)
    parts += ["### Remarks on closed loops", "\n".join(f"- {remark}" for remark in found) if found else "None: nothing was missing, nothing failed."]
    parts += ["### Systems", "\n".join(f"- {name}: {note}; {versions.get(name, 'version unknown')}" for name, note in results.peers)]
    return "\n\n".join(parts)


def write_csv(results, path):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["round", "system", "workload", "connections", "in_flight", "write_percent", *Sample._fields])
        for round_number, name, workload, sample in results.rows:
            figures = (f"{figure:.3f}" if isinstance(figure, float) else figure for figure in sample)
            writer.writerow([round_number, name, workload.name, workload.connections, workload.in_flight, workload.write_percent, *figures])

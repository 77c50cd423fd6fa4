"""From measurements of data planes to tables. What they are to each other is in aims.py."""
import csv
import statistics

from plane_load import GET_ONE, MANY_INSIDE, MANY_OUTSIDE, ONE_INSIDE, ONE_OUTSIDE, SET_ONE, SYSTEMS, Repair, Sample, Workload
from plots import Plot
from report import NOT_MEASURED, OTHERS_PERCENT_MAX, ROUNDS_MIN, bars, number, spread, table


class PlaneResults:
    """All measurements of a run."""

    def __init__(self):
        self.rows = []  # (round, system's name, workload, sample)
        self.repairs = []  # (round, repair)
        self.steps = []  # (round, one line of what `planes-load steps` printed)
        self.failures = []  # (round, system's name, reason)
        self.missing = None

    def of(self, system, workload, field):
        """Round and figure."""
        return {
            n: getattr(sample, field) for n, name, done, sample in self.rows if (name, done) == (system, workload)
        }


P50, PER_CPU = "p50_us", "operations_per_cpu_second"
# Of these the spread is shown.
SPREAD = [P50, "p90_us", "p99_us", "p999_us", "operations_per_second"]


def systems_table(results):
    shown = [*SPREAD, PER_CPU, "cpu_us", "hosts_user_us", "hosts_system_us"]
    headings = ["system", "load", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "operations/s", "per CPU second", "CPU µs/op", "hosts, user", "hosts, kernel", "sent again"]
    rows = []
    for system in SYSTEMS:
        for workload in system.workloads:
            columns = [list(results.of(system.name, workload, field).values()) for field in shown]
            if not columns[0]:
                rows.append([system.name, str(workload), NOT_MEASURED, *[""] * (len(headings) - 3)])
                continue
            again = sum(results.of(system.name, workload, "sent_again").values())
            figures = [spread(column) for column in columns[:len(SPREAD)]]
            figures += [number(statistics.median(column)) for column in columns[len(SPREAD):]]
            rows.append([system.name, str(workload), *figures, str(again)])
    return table(headings, rows)


def repairs_table(results):
    columns = [[getattr(repair, field) for _, repair in results.repairs] for field in Repair._fields]
    rows = [[field.replace("_", " "), spread(column)] for field, column in zip(Repair._fields, columns)]
    return table(["a straggler's repair", "median"], rows)


def of_rounds(results):
    """What a step took in each round, by what it is, the bytes of its payload and what it is without."""
    found = {}
    for n, step in results.steps:
        found.setdefault((step["what"], step["payload_bytes"], step["without"]), {})[n] = step["ns"]
    return found


def steps_table(results):
    whole = {(what, size): took for (what, size, without), took in of_rounds(results).items() if not without}
    sizes = sorted({size for _, size in whole})
    names = list(dict.fromkeys(what for what, _ in whole))
    rows = [[name, *(spread(whole[name, size].values()) if (name, size) in whole else "" for size in sizes)] for name in names]
    return table(["ns for one packet", *(f"{size} B" for size in sizes)], rows)


def checks_table(results):
    """The differences of rounds, in which both were measured one behind the other."""
    at = 64
    found = of_rounds(results)
    left_out = {(what, without): took for (what, _, without), took in found.items() if without}
    variants = list(dict.fromkeys(without for _, without in left_out))
    names = list(dict.fromkeys(what for what, _ in left_out))

    def costs(name, variant):
        whole, less = found.get((name, at, ""), {}), left_out.get((name, variant), {})
        differences = [whole[n] - less[n] for n in whole if n in less]
        return spread(differences) if differences else ""

    rows = [["all of these" if "," in variant else variant, *(costs(name, variant) for name in names)] for variant in variants]
    return table([f"ns that a check costs, {at} B", *names], rows)


def remarks(results):
    found = [f"round {n}, {name} failed: {reason}" for n, name, reason in results.failures]
    others = [sample.others_percent for *_, sample in results.rows]
    if others:
        found.append(f"other programs' share of the machine while these were measured: {spread(others)} %")
        if statistics.median(others) > OTHERS_PERCENT_MAX:
            found.append(f"more than {OTHERS_PERCENT_MAX} %: measure again when it is quiet")
    rounds = len({n for n, *_ in results.rows})
    if rounds < ROUNDS_MIN:
        found.append(f"fewer than {ROUNDS_MIN} rounds, no more than a trial: {rounds}")
    return "\n".join(f"- {remark}" for remark in found) or "None."


def plots(results, folder):
    """Each with its caption."""
    names = [system.name for system in SYSTEMS]
    one = [bars(results, names, workload, P50, str(workload)) for workload in (ONE_OUTSIDE, ONE_INSIDE, GET_ONE, SET_ONE)]
    many = [bars(results, names, workload, "cpu_us", str(workload)) for workload in (MANY_OUTSIDE, MANY_INSIDE)]
    return [
        (Plot(folder / "planes-latency.svg", "Data planes, one request in flight", "", "p50 µs", one, log_y=True, bars=True),
         "Latency of one request at a time, p50, µs; each step of the axis is ten times the one below."),
        (Plot(folder / "planes-cpu.svg", "Data planes, 32 requests in flight", "", "CPU µs per operation", many, bars=True),
         "CPU of all there is (replicas, kernel, client) for one operation, µs."),
    ]


def markdown(results, facts, plots_shown=()):
    """The part of the report."""
    if results.missing:
        return f"Not measured: {results.missing}."
    parts = [
        f"Measured: {facts}.",
        "Replicas in network namespaces on this machine, a Linux bridge between them, tags on, `--durability "
        "memory`, commands of 64 bytes unless said otherwise. Each measurement is the quietest of several short ones "
        "(README.md).",
        systems_table(results),
        "CPU is all that the machine used but for other programs: replicas, kernel and client; \"hosts\" are the "
        "replicas' processes, which the kernel also charges for packets that arrived while they ran.",
    ]
    parts += plots_shown
    if results.repairs:
        parts.append(repairs_table(results))
    if results.steps:
        parts += [
            "The program's own time, everything in the cache, in each round the fastest of many runs. A difference whose spread goes "
            "from below 0 to above is too small to be seen:",
            steps_table(results), checks_table(results),
        ]
    parts += ["Remarks on this part:", remarks(results)]
    parts.append("\n".join(f"- {system.name}: {system.note}" for system in SYSTEMS))
    return "\n\n".join(parts)


def write_csv(results, path):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["round", "system", *Workload._fields, *Sample._fields])
        for n, name, workload, sample in results.rows:
            figures = (f"{figure:.3f}" if isinstance(figure, float) else figure for figure in sample)
            writer.writerow([n, name, *workload, *figures])

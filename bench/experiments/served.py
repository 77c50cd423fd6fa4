"""Servers that somebody else has written, alone and as replicas of ours run them."""
from experiments.figures import ratio
from experiments.tables import cell_beside
from experiments.turns import Experiment
from report import table

WAITING, PIPELINED, READS = "24×1 writes", "24×16 writes", "24×16 reads"
SHAPES = {WAITING: (24, 1, ()), PIPELINED: (24, 16, ()), READS: (24, 16, ("--write-percent", "0"))}
COLUMNS = [
    ("operations/s", "operations_per_second"), ("p50 µs", "p50_us"), ("p99 µs", "p99_us"), ("CPU of the program µs/op", "program_us"),
    ("of all at the leader", "leader_us"), ("of all replicas", "server_cpu_us"),
]


class Served(Experiment):
    name = "served"
    title = "Unmodified servers"
    setting_names = ("load",)
    redis_clients = True
    about = (
        "The same server alone, and on each of three replicas under `quorumwire run`; 24 connections, one request or 16 in flight on each. "
        "The program's CPU is that of the leader's; then that of the leader's replica and its program together, and that of all "
        "replicas and their programs. In parentheses what a figure is of that of the program alone (the ratio of medians, smallest and "
        "largest of the rounds)."
    )

    def takes(self, peer):
        return getattr(peer, "program", None) is not None

    def turn(self, turn):
        for load, (connections, in_flight, more) in SHAPES.items():
            turn.take((load,), connections, in_flight, more)

    def section(self, found):
        return "\n\n".join(f"{load}:\n\n{of_load(found, load)}" for load in SHAPES)


def of_load(found, load):
    systems = found.systems(Served.name)
    headings = ["system", *(heading for heading, _ in COLUMNS)]
    return table(headings, [
        [system, *(cell_beside(found, Served.name, system, (load,), field, beside(system, systems, load)) for _, field in COLUMNS)]
        for system in systems
    ])


def to_alone(found, system, load, field):
    """A figure to that of the same program alone; None if one of them is missing."""
    alone = beside(system, found.systems(Served.name), load)
    return ratio(found.of(Served.name, system, (load,), field), found.of(Served.name, *alone, field)) if alone else None


def beside(system, systems, load):
    """The same program alone, which has the shorter name that this one's ends with."""
    alone = [it for it in systems if it != system and system.endswith((f", {it}", f", {it}-server"))]
    return (alone[0], (load,)) if alone else None

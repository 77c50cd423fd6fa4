"""What the plane's program at an interface does to traffic that is none of its own."""
from experiments.loads import ONE, PIPELINED, SHAPES
from experiments.tables import cell_beside
from experiments.turns import Experiment, Variant
from peers.interface import INTO, OUT_OF, interfaces
from processes import OUTSIDE, why
from report import table

BULK = {INTO: "TCP in, Gbit/s", OUT_OF: "TCP out, Gbit/s"}
COLUMNS = [
    ("1×1, p50 µs", (ONE,), "p50_us"), ("1×1, p99 µs", (ONE,), "p99_us"), ("8×64, operations/s", (PIPELINED,), "operations_per_second"),
    *((heading, (direction,), "gbit_per_second") for direction, heading in BULK.items()),
]


class Traffic(Experiment):
    name = "traffic"
    title = "Other traffic at the plane's interface"
    setting_names = ("load",)
    about = (
        "A memcached of somebody else's, written to over TCP, and one TCP connection that carries as much as it can (iperf3), into the leader's "
        "machine and out of it, by the interface of a plane whose replicas have nothing to do. The interfaces are virtual Ethernet pairs: where "
        "one end has a program in its driver, the other no longer hands over many segments as one, whatever the program does; network cards were "
        "not at hand. In parentheses what a figure is of that without a program (the ratio of medians, smallest and largest of the rounds)."
    )

    def takes(self, peer):
        return hasattr(peer, "interfaces") and super().takes(peer)

    def variants(self, systems, _length):
        return [Variant(interface, systems.data) for peer in systems.ready if self.takes(peer) for interface in peer.interfaces()]

    def turn(self, turn):
        for load in (ONE, PIPELINED):
            turn.take((load,), *SHAPES[load])
        for direction in BULK:
            try:
                gbit, others_percent = turn.cluster.bulk(direction, turn.length.seconds, turn.length.warm_up_seconds)
            except OUTSIDE as failed:
                turn.fail((direction,), why(failed))
                continue
            turn.found.add(self.name, turn.round, turn.system, (direction,), {"gbit_per_second": gbit, "others_percent": others_percent})
            turn.say(f"{self.name}, round {turn.round}, {turn.system}: {BULK[direction]}: {gbit:.2f}, others {others_percent:.0f} %")

    def section(self, found):
        notes = {one.name: one.note for one in interfaces(None)}
        first, *_ = notes
        systems = [name for name in notes if name in found.systems(self.name)]
        rows = [
            [system, *(cell_beside(found, self.name, system, setting, field, None if system == first else (first, setting)) for _, setting, field in COLUMNS)]
            for system in systems
        ]
        said = "\n".join(f"- {system}: {notes[system]}" for system in systems)
        return table(["system", *(heading for heading, _, _ in COLUMNS)], rows) + "\n\n" + said

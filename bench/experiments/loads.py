"""Experiments that put on the same closed loops with something else changed: bytes, reads, replicas, the disk."""
import math
import os
import time
from pathlib import Path

from experiments.figures import median
from experiments.tables import grid, lines, plot_of
from experiments.turns import Experiment, Variant
from processes import Failed

ONE, MANY, PIPELINED = "1×1", "64×1", "8×64"
SHAPES = {ONE: (1, 1), MANY: (64, 1), PIPELINED: (8, 64)}
FLUSHES, FLUSH_BYTES = 200, 4096


class Payload(Experiment):
    name = "payload"
    title = "Payload"
    setting_names = ("bytes", "load")
    about = "Values of other sizes. A packet of the planes holds one command of 1,376 bytes: 1,392 go in two fragments, 16 KiB in more."

    def turn(self, turn):
        for count in turn.length.value_bytes:
            for load in (ONE, PIPELINED):
                turn.take((count, load), *SHAPES[load], ["--value-bytes", str(count)])

    def section(self, found):
        return "\n\n".join(
            f"{what}:\n\n" + grid(found, self.name, [(f"{count} B", (count, load), field) for count in sizes(found)])
            for what, load, field in ((f"p50 µs, {ONE}", ONE, "p50_us"), (f"operations/s, {PIPELINED}", PIPELINED, "operations_per_second"),
                                      (f"server CPU µs per operation, {PIPELINED}", PIPELINED, "server_cpu_us"))
        )

    def plots(self, found, folder):
        made = []
        for load, field, label, what in ((ONE, "p50_us", "p50, µs", "latency"), (PIPELINED, "operations_per_second", "operations/s", "throughput")):
            series = lines(found, self.name, [(count, load) for count in sizes(found)], field, lambda setting: setting[0])
            made += [(plot, f"Size of the value against {what}, {load}.") for plot in plot_of(
                folder, f"payload-{what}", f"Payload and {what}, {load}", "bytes of a value", label, series, log_x=True, log_y=True)]
        return made


def sizes(found):
    return sorted({setting[0] for setting in found.settings(Payload.name)})


class Mixed(Experiment):
    name = "mixed"
    title = "Reads and mixed loads"
    setting_names = ("write_percent", "load")
    about = (
        "Reads alone, nine reads to a write, halves, and writes alone. Ours are linearizable at the leader, under its lease, or, with "
        "`--reads read-index`, after a majority has confirmed it. What the reads of others promise is in the notes on the systems."
    )
    redis_clients = True
    PERCENTS = (0, 10, 50, 100)

    def part_of(self, peer, _length):
        if not writes(peer):
            return "reads alone: with writes it is no other than with `--reads lease`"
        why = why_not_read(peer)
        return why and f"writes alone: {why}"

    def percents(self, peer):
        if why_not_read(peer) is not None:
            return (100,)
        return self.PERCENTS if writes(peer) else (0,)

    def turn(self, turn):
        percents = self.percents(turn.variant.peer)
        if 0 in percents:
            turn.take((0, ONE), *SHAPES[ONE], ["--write-percent", "0"])
        for percent in percents:
            turn.take((percent, MANY), *SHAPES[MANY], ["--write-percent", str(percent)])

    def section(self, found):
        alone = [("p50 µs", (0, ONE), "p50_us"), ("p90 µs", (0, ONE), "p90_us"), ("p99 µs", (0, ONE), "p99_us"), ("p99.9 µs", (0, ONE), "p999_us")]
        rates = [(f"{100 - percent} % reads", (percent, MANY), "operations_per_second") for percent in self.PERCENTS]
        tails = [(f"{100 - percent} % reads", (percent, MANY), "p99_us") for percent in self.PERCENTS]
        return "\n\n".join([f"Reads, {ONE}:", grid(found, self.name, alone), f"Operations/s, {MANY}:", grid(found, self.name, rates),
                            f"p99 µs, {MANY}:", grid(found, self.name, tails)])

    def plots(self, found, folder):
        settings = [(percent, MANY) for percent in self.PERCENTS]
        series = lines(found, self.name, settings, "operations_per_second", lambda setting: 100 - setting[0])
        caption = f"Share of reads against throughput, {MANY}."
        return [(plot, caption) for plot in plot_of(
            folder, "mixed", "Reads and writes mixed", "% reads", "operations/s", series, log_y=True)]


def writes(peer):
    return getattr(peer, "writes", True)


def why_not_read(peer):
    return getattr(peer, "why_not_read", None)


class Replicas(Experiment):
    name = "replicas"
    title = "3, 5 and 7 replicas"
    setting_names = ("replicas", "load")
    about = (
        "All replicas share this machine's cores, so more of them cost throughput here that they would not cost on machines of "
        "their own; what an operation costs in CPU is comparable."
    )

    def variants(self, systems, length):
        return [
            Variant(peer, systems.data, (count,))
            for count in length.replicas for peer in systems.with_replicas(count) if self.takes(peer) and count <= replicas_max(peer)
        ]

    def why_not(self, peer):
        return None if hasattr(peer, "replicas") else "it runs here as one server, or with one replica"

    def part_of(self, peer, length):
        most = replicas_max(peer)
        return f"at most {most} replicas: it takes no more" if most < max(length.replicas) else None

    def turn(self, turn):
        (wanted,) = turn.variant.setting
        if len(turn.cluster.servers) != wanted:
            raise Failed(f"{len(turn.cluster.servers)} replicas were started, not {wanted}")
        for load in (ONE, PIPELINED):
            turn.take((load,), *SHAPES[load])

    def section(self, found):
        counts = sorted({setting[0] for setting in found.settings(self.name)})
        return "\n\n".join(
            f"{what}:\n\n" + grid(found, self.name, [(f"{count} replicas", (count, load), field) for count in counts])
            for what, load, field in ((f"p50 µs, {ONE}", ONE, "p50_us"), (f"operations/s, {PIPELINED}", PIPELINED, "operations_per_second"),
                                      (f"server CPU µs per operation, all replicas, {PIPELINED}", PIPELINED, "server_cpu_us"))
        )

    def plots(self, found, folder):
        counts = sorted({setting[0] for setting in found.settings(self.name)})
        made = []
        for load, field, label, what in ((ONE, "p50_us", "p50, µs", "latency"), (PIPELINED, "operations_per_second", "operations/s", "throughput")):
            series = lines(found, self.name, [(count, load) for count in counts], field, lambda setting: setting[0])
            made += [(plot, f"Number of replicas against {what}, {load}.") for plot in plot_of(
                folder, f"replicas-{what}", f"Replicas and {what}, {load}", "replicas", label, series, log_y=True)]
        return made


def replicas_max(peer):
    return getattr(peer, "replicas_max", math.inf)


class Durability(Experiment):
    name = "durability"
    title = "Memory and disk"
    setting_names = ("data on", "load")
    about = (
        "Every system with its data on tmpfs, where a flush costs a system call and no disk, and once more on this machine's disk, the same "
        "for all. `sync` of ours and etcd flush before they acknowledge; what others do is in the notes on the systems."
    )

    def why_not(self, peer):
        return "keeps nothing on a disk, as it runs here" if getattr(peer, "keeps_nothing", False) else None

    def variants(self, systems, _length):
        taken = [peer for peer in systems.ready if self.takes(peer)]
        return [Variant(peer, folder, (place,)) for place, folder in (("tmpfs", systems.data), ("disk", systems.disk)) for peer in taken]

    def turn(self, turn):
        # The disk's own speed in the same minute; on tmpfs this is what the system call costs.
        flush = {"flush_p50_us": flush_us(turn.folder)}
        turn.found.add(self.name, turn.round, turn.system, (*turn.variant.setting, "flush"), flush)
        for load in (ONE, PIPELINED):
            turn.take((load,), *SHAPES[load])

    def section(self, found):
        columns = [
            (f"{place}, {what}", (place, load), field)
            for what, load, field in (("p50 µs 1×1", ONE, "p50_us"), ("p99 µs 1×1", ONE, "p99_us"), ("operations/s 8×64", PIPELINED, "operations_per_second"))
            for place in ("tmpfs", "disk")
        ]
        flushes = {
            place: median(value for system in found.systems(self.name)
                          for value in found.of(self.name, system, (place, "flush"), "flush_p50_us").values())
            for place in ("tmpfs", "disk")
        }
        said = ", ".join(f"{place} {value:,.0f} µs" for place, value in flushes.items() if value is not None)
        return grid(found, self.name, columns) + (f"\n\nA write of {FLUSH_BYTES} bytes with `fdatasync`, median: {said}." if said else "")


def flush_us(folder):
    """The median of some writes with `fdatasync`."""
    taken = []
    with open(Path(folder) / "flushes", "wb", buffering=0) as file:
        for _ in range(FLUSHES):
            begin = time.monotonic()
            file.write(bytes(FLUSH_BYTES))
            os.fdatasync(file.fileno())
            taken.append((time.monotonic() - begin) * 1e6)
    return median(taken)

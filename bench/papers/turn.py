"""One system's turn in one round: it is started anew, loaded, and what comes out goes into `Taken`."""
import contextlib
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import plane_load
from papers import curves, over_time
from papers.cluster import ELECTION_TIMEOUT_MS, UNREPLICATED, Cluster, Unreplicated, put_on
from papers.places import Namespaced
from papers.roles import Deployment

WARM_UP_SECONDS = 1
FILL_SECONDS_MAX = 60
# So many seconds of a measurement is one run over time.
OVER_TIME_SECONDS = 6


class Turn(NamedTuple):
    """All that a measurement needs."""

    stack: object
    place: object
    tools: object
    folder: object
    round: int
    system: object
    seconds: int
    taken: object
    say: object

    def start(self, durability="memory", election_timeout_ms=ELECTION_TIMEOUT_MS):
        """Starts the system; it ends with the turn."""
        if self.system in UNREPLICATED:
            return Unreplicated(self.stack, self.place, self.tools, self.system, self.folder)
        return Cluster(self.stack, self.place, self.tools, self.system, self.folder, durability, election_timeout_ms)

    def start_roles(self, acceptors=3, learners=1):
        """Starts a deployment of the Paxos roles; it ends with the turn."""
        return Deployment(self.stack, self.place, self.tools, self.system, self.folder, acceptors, learners)

    @contextlib.contextmanager
    def for_a_while(self):
        """A turn within this one: what it starts ends with it."""
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir=self.folder))
            yield self._replace(stack=stack, folder=Path(folder))

    def highest(self, cluster, load):
        """Operations a second of a closed loop, for rates that are fractions of it. Warms up first."""
        self.warm_up(cluster, load)
        printed, _ = put_on(cluster, load, self.seconds)
        return printed["operations_per_second"]

    def fill(self, cluster, load):
        """Stores all keys of a load, however long that takes within a limit."""
        put_on(cluster, load, FILL_SECONDS_MAX, "--operations", load.connections * load.in_flight)

    def warm_up(self, cluster, load):
        """Not counted."""
        put_on(cluster, load, WARM_UP_SECONDS)

    def record(self, cluster, part, at, load, *more, label=None):
        """Loads it and keeps the figures; the operations a second."""
        before = durations(cluster)
        printed, sample = put_on(cluster, load, self.seconds, *more)
        name = label or self.system.name
        self.taken.add(self.round, part, name, at, **figures_of(printed, sample), **since(durations(cluster), before))
        self.taken.errors.append((self.round, part, name, at, printed["errors"]))
        if "latency_cdf" in printed:
            self.taken.distributions.append((self.round, part, name, at, printed["latency_cdf"]))
            mean, deviation = curves.mean_and_deviation(printed["latency_cdf"])
            # The mean is the load program's own, out of all requests.
            self.taken.add(self.round, part, name, at, cdf_mean_us=mean, deviation_us=deviation)
        self.say(f"{part}, {name}, {at}: {sample.operations_per_second:,.0f}/s, p50 {sample.p50_us:,.0f} µs")
        return sample.operations_per_second

    def record_plane_client(self, running, part, at, workload, label=None):
        """The same with `planes-load`, the client of data planes (plane_load.py)."""
        sample = plane_load.measure(running, workload)
        name = label or self.system.name
        self.taken.add(
            self.round, part, name, at, operations_per_second=sample.operations_per_second, p50_us=sample.p50_us,
            p90_us=sample.p90_us, p99_us=sample.p99_us, p999_us=sample.p999_us, cpu_us=sample.cpu_us, others_percent=sample.others_percent,
        )
        self.say(f"{part}, {name}, {at}: {sample.operations_per_second:,.0f}/s, p50 {sample.p50_us:,.2f} µs")

    def has_plane_client(self):
        """Whether `planes-load` can ask it."""
        with_plane = isinstance(self.place, Namespaced) and self.system.plane in ("socket", "xdp")
        return with_plane and os.access(self.tools.load, os.X_OK)

    def record_over_time(self, cluster, part, load, events, more=()):
        """Runs a load while events happen, whose times are fractions of the run."""
        seconds = self.seconds * OVER_TIME_SECONDS
        timed = [over_time.Event(share * seconds, what, do) for share, what, do in events]
        line, others_percent = over_time.run(self.stack, cluster, load, seconds, timed, more)
        failed = sum(line.errors.values())
        self.taken.add(self.round, part, self.system.name, "whole run", failed=failed, others_percent=others_percent)
        self.taken.errors.append((self.round, part, self.system.name, "whole run", line.errors))
        self.taken.timelines.append((self.round, part, self.system.name, line))
        gap = f"{line.gap[1]:.1f} ms without a write" if line.gap else "no write at all"
        self.say(f"{part}, {self.system.name}: {gap}")


def figures_of(printed, sample):
    """What is kept of one load: latencies, throughput, CPU of each role as % of one core."""
    latency, per_second = printed["latency_us"], sample.operations_per_second
    core_percent = per_second / 1e4  # from microseconds per operation
    return {
        "operations_per_second": per_second,
        "mean_us": latency["mean"], "p50_us": latency["p50"], "p90_us": latency["p90"], "p99_us": latency["p99"],
        "leader_percent": (sample.leader_user_us + sample.leader_system_us) * core_percent,
        "followers_percent": (sample.followers_user_us + sample.followers_system_us) * core_percent,
        "client_percent": sample.client_cpu_us * core_percent,
        "failed": sample.failed_requests, "others_percent": sample.others_percent,
    }


def durations(cluster):
    return cluster.durations() if isinstance(cluster, Cluster) else {}


# What the leader counts itself, and what it is called here: from taking a write to its commit; from having what a client of
# an unmodified server sent to giving it to the log.
COUNTED = {"commit": "commit", "served_wait": "wait"}


def since(now, before):
    """Of what ended in between."""
    found = {}
    for name, called in COUNTED.items():
        if name not in now or name not in before:
            continue
        counts = [late - early for late, early in zip(now[name][0], before[name][0])]
        if sum(counts) > 0:
            found |= {
                f"{called}_mean_us": (now[name][1] - before[name][1]) / sum(counts),
                f"{called}_p50_us": curves.bucket_quantile(counts, 0.5), f"{called}_p99_us": curves.bucket_quantile(counts, 0.99),
            }
    return found

"""What the design aims at, for replication in the servers or the socket plane and for the plane `xdp`, beside what was
measured in this run. A figure that is missing says so.
"""
from typing import NamedTuple

from experiments.failover import Failover, gaps_of
from experiments.figures import percentile, ratio, ratio_of_single
from experiments.follower import STOPPED, to_healthy
from experiments.loads import ONE
from load import LATENCY, MANY, PIPELINED, READS
from plane_load import MANY_OUTSIDE, ONE_OUTSIDE
from report import NOT_MEASURED, number, table

OFF, OFF_REDIS, SOCKET, XDP = "quorumwire memory", "quorumwire memory, Redis client", "quorumwire memory, plane socket", "quorumwire memory, plane xdp"
PLANE_XDP = "xdp"  # as `planes` calls it
# By the beginning of their names; the first that was measured counts.
ETCD, REDIS_WAIT, REDIS, DRAGONBOAT = ("etcd 3.6", "etcd"), ("redis, WAIT 1",), ("redis",), ("dragonboat",)


class Aim(NamedTuple):
    """One line. `of` makes a Ratio, or None, of (measured, who of ours)."""

    what: str
    software: tuple  # (is at most?, number)
    xdp: tuple  # None: no aim
    of: object
    redis_client: bool = False  # ours, too, is asked in Redis' protocol where no plane runs


class Measured(NamedTuple):
    """All that one run found."""

    results: object
    found: object
    planes: object  # or None

    def theirs(self, names, workload, field):
        """Round and figure of the first of these peers that has it."""
        for name in names:
            for peer, _ in self.results.peers:
                figures = self.results.of(peer, workload, field) if is_called(peer, name) else {}
                if figures:
                    return figures
        return {}

    def ours(self, name, workload, field, of_plane=None):
        """The same of ours; of XDP, where a workload of the planes' part is what comes nearest, that one."""
        if name == XDP and of_plane is not None:
            return self.planes.of(PLANE_XDP, *of_plane) if self.planes else {}
        return self.results.of(name, workload, field)


def is_called(peer, name):
    """Whether it is that one, or that one with its version."""
    return peer == name or (peer.startswith(name) and peer[len(name)] in " .-")


def closed(workload, field, names, of_plane=None):
    """A ratio of figures of the closed loops."""
    return lambda measured, ours: ratio_if(measured.ours(ours, workload, field, of_plane), measured.theirs(names, workload, field))


def ratio_if(ours, theirs):
    return ratio(ours, theirs) if theirs else None


def failover_p99(measured, ours):
    def p99(name):
        return percentile(gaps_of(measured.found, name), 99)

    systems = measured.found.systems(Failover.name)
    etcds = [p99(system) for name in ETCD for system in systems if is_called(system, name)]
    there = [gap for gap in etcds if gap is not None]
    return ratio_of_single(p99(ours), there[0] if there else None)


def stopped(measured, ours):
    return to_healthy(measured.found, ours, STOPPED, ONE)


ONE_XDP, MANY_XDP_CPU = (ONE_OUTSIDE, "p50_us"), (MANY_OUTSIDE, "cpu_us")
AIMS = [
    Aim("p50, one outstanding, to Redis+WAIT's", (True, 1.0), (True, 0.25), closed(LATENCY, "p50_us", REDIS_WAIT, ONE_XDP), True),
    Aim("p50, one outstanding, to etcd's", (True, 0.15), (True, 0.03), closed(LATENCY, "p50_us", ETCD, ONE_XDP)),
    Aim("unpipelined, 64 clients, operations/s, to Redis+WAIT's", (False, 1.5), (False, 4), closed(MANY, "operations_per_second", REDIS_WAIT), True),
    Aim("the same, to dragonboat's", (False, 2), None, closed(MANY, "operations_per_second", DRAGONBOAT)),
    Aim("pipelined, server CPU per operation, to dragonboat's", (True, 1.0), (True, 0.5), closed(PIPELINED, "server_cpu_us", DRAGONBOAT, MANY_XDP_CPU)),
    Aim("p50 of reads under the lease, to unreplicated Redis'", (True, 1.3), (True, 0.7), closed(READS, "p50_us", REDIS), True),
    Aim("fail-over gap, p99, to etcd's", (True, 0.15), (True, 0.05), failover_p99),
    Aim("one stopped follower, p99, to healthy", (True, 1.2), (True, 1.2), stopped),
]
REMARK = (
    "Three replicas, 64 bytes, `memory`, ratios of medians in this run (in parentheses the rounds'; a fail-over p99 is of all kills). "
    "Reached is reached by both, off and socket, as far as they were measured. Where no plane runs and Redis is the other, ours is "
    "asked in Redis' protocol; etcd is 3.6 if it was measured, else Debian's. The plane xdp stands in network namespaces behind a "
    "bridge, with a UDP client (the part on data planes), the others on loopback, and its CPU is everything's, client and network included, where the others' is "
    "the servers': both flatter the others. For what that part does not measure (64 clients, reads, fail-over, a stopped follower) the "
    "plane xdp is asked over TCP, as the others are, from its own namespace."
)


def aims_table(results, found, planes):
    measured = Measured(results, found, planes)
    rows = []
    for aim in AIMS:
        off = aim.of(measured, OFF_REDIS if aim.redis_client else OFF)
        socket, xdp = aim.of(measured, SOCKET), aim.of(measured, XDP)
        rows.append([
            aim.what, wanted(aim.software), shown(off), shown(socket), reached(aim.software, [off, socket]),
            wanted(aim.xdp), shown(xdp) if aim.xdp else "", reached(aim.xdp, [xdp]),
        ])
    headings = ["figure", "aim, off or socket", "planes off", "socket", "reached", "aim, xdp", "xdp", "reached"]
    return table(headings, rows) + "\n\n" + REMARK


def shown(value):
    if value is None:
        return NOT_MEASURED
    return number(value.value) if value.low == value.high else f"{number(value.value)} ({number(value.low)}–{number(value.high)})"


def wanted(bound):
    if bound is None:
        return "none"
    at_most, limit = bound
    return f"{'≤' if at_most else '≥'} {limit:g}"


def reached(bound, values):
    """Whether all that were measured hold; a question mark if none was."""
    values = [value for value in values if value is not None]
    if bound is None:
        return ""
    if not values:
        return "?"
    at_most, limit = bound
    return "yes" if all((it.value <= limit) if at_most else (it.value >= limit) for it in values) else "**no**"

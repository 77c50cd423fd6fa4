"""What the design aims at, beside what was measured in this run. A figure that is missing says so."""
import statistics
from typing import NamedTuple

from experiments.failover import Failover, gaps_of
from experiments.figures import Ratio, ratio, ratio_of_percentiles
from experiments.follower import STOPPED, Follower, to_healthy
from experiments.loads import ONE
from experiments.served import PIPELINED as PIPELINED_TO_SERVED
from experiments.served import Served, to_alone
from load import LATENCY, MANY, PIPELINED, READS
from plane_load import CLIENTS, GET_MANY, GET_ONE, LARGE, MANY_INSIDE, MANY_OUTSIDE, ONE_INSIDE, ONE_OUTSIDE, SET_ONE, SMALL
from profiles import CLOSED_LOOPS, PLANES
from report import NOT_MEASURED, number, reached, table, wanted

OFF, OFF_REDIS, SYNC = "quorumwire memory", "quorumwire memory, Redis client", "quorumwire sync"
BY_ROUNDS = "quorumwire memory, Redis client, read index"
SOCKET, XDP, DEAD = "quorumwire memory, plane socket", "quorumwire memory, plane xdp", "quorumwire memory, Redis client, one dead"
SERVED_REDIS, SERVED_MEMCACHED = "quorumwire run, redis-server", "quorumwire run, memcached"
# As the part on data planes calls them.
PLANE_SOCKET, SLEEPING, PLANE_XDP = "socket", "socket, sleeps at once", "xdp"
PLANE_READING, READING_IN_SERVER = "xdp, memcached", "xdp, memcached, reads in the server"
QUIET, APART, ECHO, PLANE_MEMCACHED = "xdp, hosts at nice 19", "xdp, hosts on one core", "echo", "memcached"
ALONE, ALONE_NO_TAG, ALONE_NO_CHECK = "programs alone", "programs alone, no tag", "programs alone, no check"
# By the beginning of their names; the first that was measured counts.
ETCD, REDIS_WAIT, REDIS, DRAGONBOAT, MEMCACHED = ("etcd 3.6", "etcd"), ("redis, WAIT 1",), ("redis",), ("dragonboat",), ("memcached",)
P50, P99, RATE, CPU, PER_CPU = "p50_us", "p99_us", "operations_per_second", "server_cpu_us", "operations_per_cpu_second"


class Aim(NamedTuple):
    """One line. `value` makes a Ratio, or None, of what was measured."""

    what: str
    ours: str
    bound: object  # (is at most?, number); None if only to be looked at
    value: object


class Measured(NamedTuple):
    """All that one run found."""

    results: object
    found: object
    planes: object  # or None

    def first_of(self, names, workload, field):
        """Round and figure of the first of these peers that has it."""
        for name in names:
            for peer, _ in self.results.peers:
                figures = self.results.of(peer, workload, field) if is_called(peer, name) else {}
                if figures:
                    return figures
        return {}


def is_called(peer, name):
    """Whether it is that one, or that one with its version."""
    return peer == name or (peer.startswith(name) and peer[len(name)] in " .-")


def most(limit):
    return True, limit


def least(limit):
    return False, limit


def closed(what, workload, field, names, bounds):
    """A line for each of ours, by name: its figure of the closed loops to that of the first of `names`."""

    def value_of(ours):
        def value(measured):
            theirs = measured.first_of(names, workload, field)
            return ratio(measured.results.of(ours, workload, field), theirs) if theirs else None
        return value

    return [Aim(what, ours, bound, value_of(ours)) for ours, bound in bounds.items()]


def of_plane(what, load, field, names, workload, their_field, bound, plane=PLANE_XDP):
    """The plane xdp asked by a UDP client, which the part on data planes measures, to a peer in the closed loop."""

    def value(measured):
        theirs = measured.first_of(names, workload, their_field)
        return ratio(measured.planes.of(plane, load, field), theirs) if measured.planes and theirs else None

    return [Aim(what, XDP_UDP, bound, value)]


def to_itself(what, workload, field, bounds):
    def value_of(ours):
        return lambda measured: ratio(measured.results.of(ours, workload, field), None)

    return [Aim(what, ours, bound, value_of(ours)) for ours, bound in bounds.items()]


def of_rounds(ratios):
    """The median of the rounds' own."""
    return Ratio(statistics.median(ratios), min(ratios), max(ratios)) if ratios else None


def in_planes(what, load, field, theirs, bounds):
    """A line for each of these systems of the part on data planes: its figure to another one (system, load, field) of the same round;
    to one of its own where that names no system."""

    def value_of(ours):
        def value(measured):
            if measured.planes is None:
                return None
            figures, others = measured.planes.of(ours, load, field), measured.planes.of(theirs[0] or ours, *theirs[1:])
            return of_rounds([figures[n] / others[n] for n in figures if others.get(n)])
        return value

    return [Aim(what, ours, bound, value_of(ours)) for ours, bound in bounds.items()]


def while_repaired(bounds):
    def value(measured):
        repairs = measured.planes.repairs if measured.planes else []
        return of_rounds([repair.during_per_second / repair.before_per_second for _, repair in repairs])

    return [Aim("throughput while a straggler is repaired, to before", ours, bound, value) for ours, bound in bounds.items()]


def after_kills(bounds):
    def value_of(ours):
        def value(measured):
            systems = measured.found.systems(Failover.name)
            etcds = [gaps_of(measured.found, system) for name in ETCD for system in systems if is_called(system, name)]
            return ratio_of_percentiles(gaps_of(measured.found, ours), next(filter(None, etcds), None), 99)
        return value

    return [Aim("fail-over gap, p99 of all kills, to etcd's", ours, bound, value_of(ours)) for ours, bound in bounds.items()]


def of_served(bounds):
    """CPU of a program and its leader's replica to that of the program alone."""

    def value_of(ours):
        return lambda measured: to_alone(measured.found, ours, PIPELINED_TO_SERVED, "leader_us")

    return [Aim("CPU at the leader, 24×16 writes, to that of the program alone", ours, bound, value_of(ours)) for ours, bound in bounds.items()]


def one_stopped(bounds):
    def value_of(ours):
        return lambda measured: to_healthy(measured.found, ours, STOPPED, ONE)

    return [Aim("p99, 1×1, one stopped follower, to healthy", ours, bound, value_of(ours)) for ours, bound in bounds.items()]


XDP_UDP = "plane xdp, UDP client"
# The name of the aims that take two parts of the report.
PLANES_BESIDE = "planes beside closed loops"
OF_CLOSED_LOOPS = [
    *closed("p50, 1×1, to Redis+WAIT's", LATENCY, P50, REDIS_WAIT, {OFF_REDIS: most(1.0), SOCKET: most(1.0), XDP: None}),
    *closed("p50, 1×1, to etcd's", LATENCY, P50, ETCD, {OFF: most(0.15), SOCKET: most(0.15), SYNC: most(0.25)}),
    *closed("throughput, 64×1, to Redis+WAIT's", MANY, RATE, REDIS_WAIT, {OFF_REDIS: least(1.5), SOCKET: least(1.5), XDP: None}),
    *closed("throughput, 64×1, to dragonboat's", MANY, RATE, DRAGONBOAT, {OFF_REDIS: least(2), SOCKET: least(2)}),
    *closed("throughput, 8×64, to etcd's", PIPELINED, RATE, ETCD, {OFF: least(10), SYNC: least(10)}),
    *closed("server CPU, 8×64, to dragonboat's", PIPELINED, CPU, DRAGONBOAT, {OFF: most(1.0), OFF_REDIS: most(1.0), SOCKET: most(1.0), XDP: most(0.5)}),
    *to_itself("server CPU, 8×64, µs per operation", PIPELINED, CPU, {OFF: most(5), SYNC: most(5)}),
    *closed("p50 of reads, 1×1, under the lease, to unreplicated Redis'", READS, P50, REDIS, {OFF_REDIS: most(1.3), SOCKET: most(1.3)}),
    *closed("p50 of reads, 1×1, by read index, to unreplicated Redis'", READS, P50, REDIS, {BY_ROUNDS: None}),
    *closed("p99, 1×1, one dead follower, to healthy", LATENCY, P99, (OFF_REDIS,), {DEAD: most(1.2)}),
    *closed("p99, 64×1, one dead follower, to healthy", MANY, P99, (OFF_REDIS,), {DEAD: most(1.2)}),
    *closed("p50, 1×1, to memcached's", LATENCY, P50, MEMCACHED, {OFF: None, SYNC: None}),
    *closed("throughput, 8×64, to memcached's", PIPELINED, RATE, MEMCACHED, {OFF: None, SYNC: None}),
    *closed("server CPU, 8×64, to memcached's", PIPELINED, CPU, MEMCACHED, {OFF: None, SYNC: None}),
]
OF_PLANES_BESIDE = [
    *of_plane("p50, 1×1, to Redis+WAIT's", ONE_OUTSIDE, P50, REDIS_WAIT, LATENCY, P50, most(0.25)),
    *of_plane("p50, 1×1, to etcd's", ONE_OUTSIDE, P50, ETCD, LATENCY, P50, most(0.03)),
    *of_plane("throughput, 64×1, to Redis+WAIT's", CLIENTS, RATE, REDIS_WAIT, MANY, RATE, least(4)),
    *of_plane("server CPU, 8×64, to dragonboat's (ours: 32 in flight)", MANY_OUTSIDE, "cpu_us", DRAGONBOAT, PIPELINED, CPU, most(0.5)),
    *of_plane("p50 of reads, 1×1, under the lease, to unreplicated Redis'", GET_ONE, P50, REDIS, READS, P50, most(0.7), PLANE_READING),
]
OF_PLANES = [
    *in_planes("p50, UDP client, one in flight, to that of xdp", ONE_OUTSIDE, P50, (PLANE_XDP, ONE_OUTSIDE, P50),
               {PLANE_SOCKET: least(5), SLEEPING: None}),
    *in_planes("p50, UDP client, one in flight, to a bare echo's", ONE_OUTSIDE, P50, (ECHO, ONE_OUTSIDE, P50),
               {PLANE_XDP: most(2.3), QUIET: None, ALONE: None}),
    *in_planes("p50, client in the kernel, one in flight, to a bare echo's", ONE_INSIDE, P50, (ECHO, ONE_INSIDE, P50),
               {PLANE_XDP: most(4.2), QUIET: None, APART: None, ALONE: None, ALONE_NO_TAG: most(3.5), ALONE_NO_CHECK: None}),
    *in_planes("p99 to p50, client in the kernel, one in flight", ONE_INSIDE, P99, (None, ONE_INSIDE, P50),
               {ALONE: most(1.6), PLANE_XDP: most(1.6), APART: most(1.6)}),
    *in_planes("operations per CPU second, UDP client, 32 in flight, to those of socket", MANY_OUTSIDE, PER_CPU,
               (PLANE_SOCKET, MANY_OUTSIDE, PER_CPU), {PLANE_XDP: least(4), QUIET: None, ALONE: None}),
    *in_planes("operations per CPU second, UDP client, 32 in flight, to those of socket that sleeps at once", MANY_OUTSIDE, PER_CPU,
               (SLEEPING, MANY_OUTSIDE, PER_CPU), {PLANE_XDP: None}),
    *in_planes("operations per CPU second, client in the kernel, 32 in flight, to those of socket with a UDP client", MANY_INSIDE, PER_CPU,
               (PLANE_SOCKET, MANY_OUTSIDE, PER_CPU), {PLANE_XDP: None}),
    *in_planes("p50 of memcached's `get`, one in flight, to that of reads in the server", GET_ONE, P50,
               (READING_IN_SERVER, GET_ONE, P50), {PLANE_READING: None}),
    *in_planes("p50 of memcached's `get`, one in flight, to unreplicated memcached's", GET_ONE, P50,
               (PLANE_MEMCACHED, GET_ONE, P50), {PLANE_READING: None}),
    *in_planes("`get`s per CPU second, 32 in flight, to those of reads in the server", GET_MANY, PER_CPU,
               (READING_IN_SERVER, GET_MANY, PER_CPU), {PLANE_READING: None}),
    *in_planes("`get`s per CPU second, 32 in flight, to unreplicated memcached's", GET_MANY, PER_CPU,
               (PLANE_MEMCACHED, GET_MANY, PER_CPU), {PLANE_READING: None}),
    *in_planes("p50 of memcached's `set`, one in flight, to unreplicated memcached's", SET_ONE, P50,
               (PLANE_MEMCACHED, SET_ONE, P50), {PLANE_READING: None}),
    *in_planes("p50, client in the kernel, of 1376 B to 16 B", LARGE, P50, (None, SMALL, P50), {PLANE_XDP: most(1.5)}),
    *in_planes("p50, client in the kernel, five replicas to three", ONE_INSIDE, P50, (PLANE_XDP, ONE_INSIDE, P50), {"xdp, five": most(1.7)}),
    *in_planes("p50, client in the kernel, five replicas to three", ONE_INSIDE, P50, (ALONE, ONE_INSIDE, P50), {"programs alone, five": None}),
    *while_repaired({PLANE_XDP: least(0.8)}),
]
# Titles and aims, by the part of the report that measures them.
AIMS = {
    CLOSED_LOOPS: ("Closed loops", OF_CLOSED_LOOPS),
    PLANES_BESIDE: ("Data planes beside closed loops", OF_PLANES_BESIDE),
    PLANES: ("Data planes", OF_PLANES),
    Failover.name: ("Fail-over", after_kills({OFF: most(0.15), SOCKET: most(0.15), XDP: most(0.05)})),
    Served.name: ("Unmodified servers", of_served({SERVED_REDIS: most(1.6), SERVED_MEMCACHED: most(1.6)})),
    Follower.name: ("A stopped follower", one_stopped({OFF: most(1.2), SOCKET: most(1.2), XDP: most(1.2)})),
}
REMARK = (
    "Three replicas, 64 bytes; ratios of medians in one run, beside them the smallest and the largest of the rounds. etcd is 3.6 if it was "
    "measured, else Debian's. The plane xdp with a UDP client stands in network namespaces behind a bridge (the part on data planes), the "
    "others on loopback, and its CPU is everything's, client and network included, where the others' is the servers': both flatter the "
    "others. Its figures are the quietest of five quarters of a second, the others' are of three seconds: that flatters the plane. The servers' "
    "CPU of the plane xdp asked over TCP is without what runs in softirqs, as everybody's is, but more of its work does; they stand in a column "
    "of their own. For what that part does not measure (fail-over, a stopped follower) the plane xdp is asked over TCP, as the others are, from its "
    "own namespace. With either plane the clients of the closed loops speak memcached's protocol, without one Redis', if the line says so: the "
    "protocols cost differently. The plane's 64 clients with UDP share a socket; its reads are an ordinary memcached client's. Ratios of data planes alone are of "
    "neighbours in one round, here their medians over the rounds. Beside a ratio of fail-over gaps stands what nineteen of twenty ratios "
    "lie between if kills are drawn anew at random from both."
)


def aims_table(part, results, found, planes):
    """A part's aims; empty if it has none."""
    measured = Measured(results, found, planes)
    rows = []
    _, aims = AIMS.get(part, ("", []))
    for aim in aims:
        value = aim.value(measured)
        shown = (number(value.value), spread_of(value)) if value else (NOT_MEASURED, "")
        rows.append([aim.what, aim.ours, *shown, wanted(aim.bound), reached(aim.bound, value and value.value)])
    return table(["figure", "of", "median", "rounds", "aim", "reached"], rows) if rows else ""


def spread_of(value):
    return "" if value.low == value.high else f"{number(value.low)}–{number(value.high)}"

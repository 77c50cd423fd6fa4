"""Waverunner: shares by plane, rates and sizes, fail-over and view change, applications (table 1, figures 5 to 12)."""
import plane_load
from papers import curves, gates, shares
from papers.cluster import MEMCACHED, OFF, OURS, REDIS, UNREPLICATED, XDP, Load, System
from papers.figure import Axis, Figure, Measurement, Panel, Paper, bars, lines, listed, over_time

IN_FLIGHT = (1, 2, 4, 8, 16, 32)
# Multiples of 8, as `planes-load` takes them; theirs were packets of 50 bytes and more.
SMALL_BYTES, PLANE_SIZES = 16, (16, 64, 256, 512, 1024, 1376)
VALUE_BYTES, VALUE_SIZES = 8, (8, 64, 256, 1024)
FRACTIONS = {"10 %": 0.1, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "90 %": 0.9}
CONNECTIONS, LANES = 8, 64
# Of the highest rate with the largest values, so that all sizes can have the same rate.
STEADY_FRACTION = 0.25
WRITE_PERCENTS = (0, 10, 50, 90, 100)
# Theirs.
FAILOVER_TIMEOUT_MS = 1_000
HALTS_AT, RESUMES_AT, CHANGES_AT = 1 / 3, 2 / 3, 1 / 2

ALONE = System("programs alone", "alone", "the plane's programs without replicas behind them")


def many(value_bytes=VALUE_BYTES, write_percent=100, protocol="memcached"):
    return Load(CONNECTIONS, LANES, write_percent, value_bytes, protocol=protocol)


def with_plane_client(turn):
    """What the client in the kernel asks: a cluster, or programs alone."""
    if turn.system is ALONE:
        system = plane_load.System(ALONE.name, ALONE.note, ALONE.plane, 3, [])
        return plane_load.start_system(turn.stack, system, turn.place.network, turn.tools, turn.folder)
    return turn.start().as_running()


def measure_replication(turn):
    running = with_plane_client(turn)
    for count in IN_FLIGHT:
        workload = plane_load.Workload(plane_load.INSIDE, count, SMALL_BYTES)
        turn.record_plane_client(running, "waverunner-replication", count, workload)
    for size in PLANE_SIZES:
        workload = plane_load.Workload(plane_load.INSIDE, 1, size)
        turn.record_plane_client(running, "waverunner-sizes-inside", size, workload)


def measure_rates(turn):
    cluster = turn.start()
    rates = curves.rates_at(turn.highest(cluster, many()), FRACTIONS.values())
    for at, rate in zip(FRACTIONS, rates):
        turn.record(cluster, "waverunner-rates", at, many(), "--rate", rate)


def measure_sizes(turn):
    cluster = turn.start()
    (rate,) = curves.rates_at(turn.highest(cluster, many(VALUE_SIZES[-1])), (STEADY_FRACTION,))
    for size in VALUE_SIZES:
        turn.record(cluster, "waverunner-sizes", size, many(size), "--rate", rate)


def measure_failover(turn):
    cluster = turn.start(election_timeout_ms=FAILOVER_TIMEOUT_MS)
    first, halt = cluster.leader, turn.stack.enter_context(Halt())
    events = [
        (HALTS_AT, "the leader is halted", lambda: halt.begin(cluster, first)),
        (RESUMES_AT, "it is resumed", halt.end),
    ]
    turn.record_over_time(cluster, "waverunner-failover", many(), events)


class Halt:
    """A replica is halted at one moment and resumed at another, or at the end at the latest."""

    def __init__(self):
        self.halted = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def begin(self, cluster, slot):
        self.halted = cluster.halted(slot)
        self.halted.__enter__()

    def end(self):
        halted, self.halted = self.halted, None
        if halted is not None:
            halted.__exit__(None, None, None)


def measure_view_change(turn):
    cluster = turn.start()
    follower = next(slot for slot in cluster.members if slot != cluster.leader)

    def remove():
        cluster.ask("member", "remove", "--id", str(follower))

    turn.record_over_time(cluster, "waverunner-view-change", many(), [(CHANGES_AT, "a follower is removed", remove)])


def protocols_of(system):
    return [system.plane] if system in UNREPLICATED else ["memcached", "redis"]


def label_of(system, protocol):
    return f"{system.name} alone" if system in UNREPLICATED else f"{system.name}, {protocol}"


def measure_applications(turn):
    cluster = turn.start()
    for protocol in protocols_of(turn.system):
        label = label_of(turn.system, protocol)
        turn.warm_up(cluster, many(protocol=protocol, write_percent=50))
        turn.record(cluster, "waverunner-peak", "50 % writes", many(write_percent=50, protocol=protocol), label=label)


def measure_mixes(turn):
    cluster = turn.start()
    turn.warm_up(cluster, many())
    for percent in WRITE_PERCENTS:
        turn.record(cluster, "waverunner-mixes", percent, many(write_percent=percent))


def measure_application_latency(turn):
    cluster = turn.start()
    for protocol in protocols_of(turn.system):
        label = label_of(turn.system, protocol)
        turn.warm_up(cluster, Load(1, 1, 50, protocol=protocol))
        for size in VALUE_SIZES:
            load = Load(1, 1, 50, size, protocol=protocol)
            turn.record(cluster, "waverunner-latency", size, load, label=label)
            for name, percent in (("writes", 100), ("reads", 0)):
                apart = load._replace(write_percent=percent)
                turn.record(cluster, f"waverunner-latency-{name}", size, apart, label=label)


def measure_shares(turn):
    cluster = turn.start()
    turn.warm_up(cluster, many())
    sampled = shares.Sampled(turn.stack, cluster.processes[cluster.leader].pid, turn.folder)
    turn.record(cluster, "waverunner-shares-load", "writes", many())
    for kind, percent in sampled.stop().items():
        turn.taken.add(turn.round, "waverunner-shares", turn.system.name, kind, percent=percent)


def measure_lines(turn):
    for plane, lines_of_code in shares.lines_by_plane():
        turn.taken.add(turn.round, "waverunner-lines", COUNTED.name, plane, lines=lines_of_code)


THROUGHPUT = Axis("operations/s", "operations_per_second")
P50, P90, P99 = Axis("p50 µs", "p50_us"), Axis("p90 µs", "p90_us"), Axis("p99 µs", "p99_us")
SIZE = Axis("bytes of a value", log=True)
OVER_TIME_NEEDS = ("--interval-ms", "--survive")

COUNTED = System("quorumwire", "counted", "the files of this repository")
SHARES = Measurement("waverunner-shares", OURS, measure_shares, missing=shares.why_no_perf)
LINES = Measurement("waverunner-lines", (COUNTED,), measure_lines, once=True)
REPLICATION = Measurement("waverunner-replication", (XDP, ALONE), measure_replication)
RATES = Measurement("waverunner-rates", OURS, measure_rates, ("--rate",))
SIZES = Measurement("waverunner-sizes", OURS, measure_sizes, ("--rate",))
FAILOVER = Measurement("waverunner-failover", OURS, measure_failover, OVER_TIME_NEEDS)
VIEW_CHANGE = Measurement("waverunner-view-change", OURS, measure_view_change, OVER_TIME_NEEDS)
APPLICATIONS = Measurement("waverunner-applications", (*OURS, *UNREPLICATED), measure_applications)
MIXES = Measurement("waverunner-mixes", (*OURS, MEMCACHED), measure_mixes)
APPLICATION_LATENCY = Measurement("waverunner-latency", (OFF, XDP, MEMCACHED, REDIS), measure_application_latency)

SETUP = ("Three replicas with Xilinx U280 FPGAs as network cards at 100 Gbit/s, which replicate Raft's log; elections and "
         "recovery in "
         "software; clients with DPDK, open loop.")
DIFFERS = ("The kernel's receive path (`xdp`) stands where their FPGA stands, veth pairs and a bridge on one machine where their "
           "network of 100 Gbit/s stands, and the load program shares the machine's cores with three replicas.")
NO_FPGA = ("an FPGA at 100 Gbit/s", "there is none here")
NO_OTHERS = ("Mu and DPDK-Raft", "RDMA cards and DPDK ports are not here")
READS = ("replicated reads", "ours are answered under the leader's lease and never enter the log; theirs are replicated "
                             "like writes")

figure = Paper("Waverunner", "waverunner", SETUP, DIFFERS, (NO_FPGA,)).figure

FIGURES = (
    Figure(
        "waverunner-table-1", "Waverunner, table 1 and section 2.3", "What a replica spends on its planes, and how much code they are",
        "Processor time and lines of three Rafts in software, theirs, NuRaft and etcd, by control plane (what happens about once a year), data plane and "
        "application; of theirs also what in the data plane is system-related.",
        "`perf record` of the leader while 8 connections have 64 writes each under way, values of 8 B, memcached's protocol. A sample in the server's own "
        "code belongs to the plane of the innermost function of ours that is there (`bench/papers/shares.py` says which file is of which plane), one "
        "in the kernel to the system call that it was made for. Lines are those of code, without tests, generated files, blank lines and comments.",
        "Theirs puts the network's part into the data plane; here it stands by itself, as in (c). With `xdp` the data plane's part in the kernel "
        "runs when packets come, on whoever is interrupted: what of it hits other processes is not in these figures. Our control plane has TLS, "
        "keys, options, dashboards and backups in it.",
        (
            Panel("waverunner-table-1-a", "Processor time of the leader's process",
                  "Waverunner, table 1 (a): data plane 88 % and application 12 % in theirs, 92 and 8 in NuRaft, 72 and 28 in etcd; control plane next to "
                  "nothing. (c): in theirs 6.1 % reading descriptors of the network, 16.8 % writing them, 5.9 % other RPC, 9.6 % getting memory, 13.3 % "
                  "counting references and freeing.",
                  listed("waverunner-shares", "spent on", ("% of all", "percent"))),
            Panel("waverunner-table-1-a-load", "The load meanwhile", "Waverunner, table 1, says nothing of it.",
                  listed("waverunner-shares-load", "load", ("operations/s", "operations_per_second"), ("p50 µs", "p50_us"))),
            Panel("waverunner-table-1-b", "Lines of code",
                  "Waverunner, table 1 (b), control plane, data plane, application: 1,500, 200, 5,400 in theirs; 3,600, 1,100, 6,000 in NuRaft; 1,700, "
                  "180, 8,900 in etcd.",
                  listed("waverunner-lines", "of the", ("lines", "lines"))),
        ),
        (SHARES, LINES), (("NuRaft and etcd", "theirs to count; what a replica of ours spends is counted"),),
    ),
    figure(
        5, "Rate against the latency of replication",
        "Packets of 50 bytes (64 for Mu), an application that discards them, rates raised in steps of a million a second; "
        "latency at the leader from a request's "
        "arrival to the acknowledgements of half of the followers.",
        (
            Panel("waverunner-5", "Latency against rate, client in the kernel",
                  "Waverunner, figure 5: up to 26 million requests a second, where the leader's 85.5 Gbit/s are used up; "
                  "Mu some 2 and DPDK-Raft "
                  "some 5 million. Latency of Waverunner 1.8 µs at p50, p90 and p99 and at all rates (a bare round trip "
                  "1.68 µs); p50 of Mu 2.5 to "
                  "4.3 µs, of DPDK-Raft from 5 µs. Waverunner uses next to no CPU of the hosts, DPDK-Raft 18 cores at its peak.",
                  lines("waverunner-replication", THROUGHPUT, P50, P90, P99, at="under way")),
            Panel("waverunner-5-gates", "A request's way through the leader's core, simulated, against rate",
                  "Waverunner, figure 5, as above.",
                  lines("gates-rates", Axis("million requests/s at 250 MHz", "requests_m"), P50, P99, at="clocks between requests")),
        ),
        (REPLICATION, gates.CLOCKS), (NO_FPGA, NO_OTHERS, ("time stamps at the leader", "the client in the kernel is the nearest: no system "
                                                                           "call is in what it measures")),
        ours="A client in the kernel at its interface (`planes-load inside`) with 1 to 32 commands of 16 bytes under way, "
             "over `--plane xdp`, and over "
             "the plane's programs alone, which as their application throw away what they store. The quietest of five "
             "short runs (README.md). And the leader's core in gates, simulated, which takes requests of 50 bytes at a steady rate up to one every 6 "
             "clocks: from a request's first beat in to the first beat of the first entry out.",
        differs=f"A closed loop. {gates.DIFFERS} What they measured has followers and a network in it, which figure 7 adds up.",
    ),
    figure(
        6, "Rate against latency end to end",
        "As figure 5, at the client.",
        (
            Panel("waverunner-6", "p50 and p99 against rate, at the client",
                  "Waverunner, figure 6: end to end adds 4 to 6 µs to the latency of replication, at p50 as in the tail; "
                  "with DPDK-Raft much more, because "
                  "it batches.",
                  lines("waverunner-rates", THROUGHPUT, P50, P99, at="of the maximum")),
            Panel("waverunner-6-p90", "p90 against rate, the same runs",
                  "Waverunner, figure 6, as above.", lines("waverunner-rates", THROUGHPUT, P90, at="of the maximum")),
        ),
        (RATES,), (NO_FPGA, NO_OTHERS, ("a second, quiet client that measures", "one load program does both; its open "
                                                                                "loop counts from when a request was due")),
        ours="An open loop over memcached's protocol, values of 8 B, at 10 to 90 % of what a closed loop (8 connections "
             "with 64 writes) reached in the same turn.",
    ),
    figure(
        7, "Latency with the size of a request",
        "One million requests a second, payloads from the smallest to the largest.",
        (
            Panel("waverunner-7", "Latency with size, client in the kernel",
                  "Waverunner, figure 7: 1.79 µs for the smallest packets, at most 2.13 µs for the largest; p99 nearly as p50.",
                  lines("waverunner-sizes-inside", Axis("bytes of a command", log=True), P50, P99, at="bytes")),
            Panel("waverunner-7-client", "Latency with size, at a quarter of each system's own highest rate, at the client",
                  "Waverunner, figure 7, as above; theirs was measured at the leader.",
                  lines("waverunner-sizes", SIZE, P50, P99, at="bytes", beside=(THROUGHPUT,))),
            Panel("waverunner-7-gates", "From a request to its commit through cores in gates, simulated, without a network",
                  "Waverunner, figure 7, as above.",
                  lines("gates-sizes", Axis("bytes of payload"), Axis("request to entry", "leader_us"),
                        Axis("entry to acknowledgement", "follower_us"), Axis("acknowledgement to commit", "commit_us"), Axis("together", "whole_us"),
                        at="bytes")),
        ),
        (REPLICATION, SIZES, gates.CLOCKS), (NO_FPGA, ("a million requests a second", "more than this machine carries beside three "
                                                                        "replicas and the client; the rate is a quarter of the "
                                         "highest with values of 1 KiB, for all sizes of a system alike")),
        ours="The client in the kernel with one command of 16 to 1,376 bytes under way; and an open loop at one rate for all "
             "sizes of a system, with values of 8 B to 1 KiB. And the leader's and a follower's core in gates, simulated: microseconds at 250 MHz of each "
             "part of a request's way to its commit, one after the other.",
        differs=f"{gates.DIFFERS} Their cores' way has a network and PCIe in it, ours nothing but the cores.",
    ),
    figure(
        8, "A leader fails and comes back",
        "After 10 s the leader is halted, at 15 s it goes on; followers wait one second before an election.",
        (
            Panel("waverunner-8", "Requests a second over time",
                  "Waverunner, figure 8: nothing is answered for slightly more than the second that followers wait; after "
                  "the old leader is back, "
                  "software brings it up to date within some 200 ms, and then the hardware goes on.",
                  over_time("waverunner-failover")),
        ),
        (FAILOVER,), ours="A closed loop (8 connections with 64 writes) over all replicas; the leader's process is "
                          "stopped (SIGSTOP), and in namespaces its cable cut, since "
                          "a program in the kernel would go on, after a third of the run, and goes on (SIGCONT) after two "
                          "thirds. `--election-timeout-ms 1000`, as theirs. The load program gives up on a request to whoever does not answer "
                          "after 250 ms and tries the next address, so gaps come in steps of that.",
        differs="Ours repairs a replica while the plane goes on; theirs stops the plane meanwhile.",
    ),
    figure(
        9, "The members change",
        "After 10 s one of three replicas is removed.",
        (
            Panel("waverunner-9", "Requests a second over time",
                  "Waverunner, figure 9: the leader turns the hardware off, has a new term elected, changes the members, "
                  "and turns it on again; the text gives no figures.",
                  over_time("waverunner-view-change")),
        ),
        (VIEW_CHANGE,), ours="`quorumwire member remove` of a follower in the middle of the run, under the load of figure 8.",
    ),
    figure(
        10, "Peak throughput of applications",
        "A hash table, memcached and Redis, changed to take requests from Waverunner; sharded over cores; keys and values "
        "of 8 bytes.",
        (
            Panel("waverunner-10", "Operations a second, half writes",
                  "Waverunner, figure 10: memcached and Redis as they are 1.5 million requests a second, behind "
                  "Waverunner 20.7 and 19.9 million.",
                  bars("waverunner-peak", THROUGHPUT, at="load")),
        ),
        (APPLICATIONS,), (NO_FPGA, READS,
                          ("memcached and Redis themselves behind our replication", "this checkout has one application, "
                                                                                    "our store, which speaks both "
                                                                                    "protocols; unreplicated "
                           "memcached and Redis are the originals beside it"),
                          ("shards over many cores", "one group, and all on a few cores")),
        ours="Our store by both protocols, and memcached and Redis alone in the same place; 8 connections with 64 "
             "requests, values of 8 B. memcached 1.6.18 sends the answer of each `get` in a TCP segment of its own, those of pipelined "
             "`set`s together (the kernel's count of segments says so), which makes its reads the slow ones.",
    ),
    figure(
        11, "Throughput with the share of writes",
        "memcached behind Waverunner, GETs and PUTs mixed.",
        (
            Panel("waverunner-11", "Operations a second with the share of writes, memcached's protocol",
                  "Waverunner, figure 11: the more GETs, the more throughput, since a PUT locks, too. With Redis the mix "
                  "makes no difference.",
                  lines("waverunner-mixes", Axis("% writes"), THROUGHPUT, at="% writes")),
        ),
        (MIXES,), (NO_FPGA, READS, ("Redis", "the mix made no difference there; figures 10 and 12 have its protocol")), ours="Our store and memcached alone, both by memcached's protocol, 0 to 100 % writes. memcached's `get`s "
                                         "are slow, as in figure 10.",
    ),
    figure(
        12, "Latency of applications",
        "Half GETs, half PUTs, values of 8 to 1,024 bytes.",
        (
            Panel("waverunner-12", "p50 of the mix, one request under way",
                  "Waverunner, figure 12: memcached and Redis as they are 41 to 44 µs; behind Waverunner mostly 11.69 and "
                  "12.07 µs. PUTs are the faster "
                  "ones there, since the leader's FPGA answers them alone.",
                  lines("waverunner-latency", SIZE, P50, at="bytes")),
            Panel("waverunner-12-p99", "p99 of the mix, the same runs", "Waverunner, figure 12: the bars are p99; the "
                                                                        "text gives no figures for them.",
                  lines("waverunner-latency", SIZE, P99, at="bytes")),
            Panel("waverunner-12-writes", "p50, writes only", "Waverunner, figure 12, PUTs, as above.",
                  lines("waverunner-latency-writes", SIZE, P50, at="bytes")),
            Panel("waverunner-12-reads", "p50, reads only", "Waverunner, figure 12, GETs, as above.",
                  lines("waverunner-latency-reads", SIZE, P50, at="bytes")),
        ),
        (APPLICATION_LATENCY,), (NO_FPGA, READS, ("the plane `socket`", "it would take a quarter of an hour more; RESULTS.md has it with "
                                                                 "one request under way, by memcached's protocol"),
                                  ("GETs and PUTs of one mix apart", "the load program has one latency for "
                                                                                    "all; beside the mix, writes only and "
                                                                                    "reads only are shown")),
        ours="One connection with one request under way, by both protocols, and memcached and Redis alone.",
    ),
)

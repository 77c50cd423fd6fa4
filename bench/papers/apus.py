"""APUS: unmodified servers; latency of consensus with replicas and connections, and what replication costs (figures 4 to 6)."""
from papers.cluster import MEMCACHED, REDIS, Load, System
from papers.figure import Axis, Measurement, Panel, Paper, lines

CONNECTIONS, CONNECTIONS_MAX = (1, 2, 4, 8, 16, 24), 24
VALUE_BYTES = 64
REPLICAS = (3, 5, 7)
MIXES = {"50 % writes": 50, "10 % writes": 10}


def served(program, protocol, replicas=3):
    return System(f"{protocol} under run", "none", f"{replicas} replicas, `quorumwire run -- {program}`", program, replicas)


BY_REPLICAS = tuple(served("redis-server", "redis", replicas) for replicas in REPLICAS)
MOST = BY_REPLICAS[-1]
REDIS_RUN, MEMCACHED_RUN = BY_REPLICAS[0], served("memcached", "memcached")
PROTOCOLS = {REDIS: "redis", REDIS_RUN: "redis", MEMCACHED: "memcached", MEMCACHED_RUN: "memcached"}


def each_waits(connections, protocol="redis", write_percent=100):
    return Load(connections, 1, write_percent, VALUE_BYTES, protocol=protocol)


def measure_replicas(turn):
    cluster = turn.start()
    turn.warm_up(cluster, each_waits(CONNECTIONS_MAX))
    turn.record(cluster, "apus-replicas", turn.system.replicas, each_waits(CONNECTIONS_MAX))


def measure_connections(turn):
    cluster = turn.start()
    turn.warm_up(cluster, each_waits(CONNECTIONS_MAX))
    for mix, percent in MIXES.items():
        for count in CONNECTIONS:
            turn.record(cluster, "apus-connections", count, each_waits(count, write_percent=percent), label=mix)


def measure_overhead(turn):
    cluster, protocol = turn.start(), PROTOCOLS[turn.system]
    turn.warm_up(cluster, each_waits(CONNECTIONS_MAX, protocol))
    for count in CONNECTIONS:
        turn.record(cluster, "apus-overhead", count, each_waits(count, protocol))


THROUGHPUT, MEAN = Axis("operations/s", "operations_per_second"), Axis("mean µs", "mean_us")
COMMIT, WAIT = Axis("in consensus, mean µs", "commit_mean_us"), Axis("waiting for it, mean µs", "wait_mean_us")
COUNT = Axis("connections")

BY_COUNT = Measurement("apus-replicas", BY_REPLICAS, measure_replicas)
BY_CONNECTIONS = Measurement("apus-connections", (MOST,), measure_connections)
OVERHEAD = Measurement("apus-overhead", (REDIS, REDIS_RUN, MEMCACHED, MEMCACHED_RUN), measure_overhead)

SETUP = ("Machines of 24 and 28 hyperthreads with RDMA cards at 40 Gbit/s; the leader writes inputs that it has intercepted into "
         "the other replicas' memory.")
DIFFERS = ("All replicas, their programs and the client share one machine's cores, so that each replica more takes time from "
           "the others; replication is by TCP between network namespaces, not by RDMA. A program's input comes from the "
           "committed log alone, the leader's too.")
NO_RDMA = ("RDMA", "there is no such card here")
NO_OTHERS = ("libpaxos, ZooKeeper, Crane, S-Paxos and DARE beside it", "ZooKeeper is measured beside us in RESULTS.md; the "
                                                                       "others are in no package here")
SEVEN = ("nine replicas", "a cluster has seven at most")

figure = Paper("APUS", "apus", SETUP, DIFFERS, (NO_RDMA, NO_OTHERS)).figure

FIGURES = (
    figure(
        4, "Latency of consensus with the number of replicas",
        "24 connections to a Redis, three to nine replicas, beside five other protocols.",
        (
            Panel("apus-4", "Latency with the number of replicas",
                  "APUS, figure 4 and section 5.1: in consensus nearly as long with nine replicas as with three, since the leader's "
                  "writes go on side by side; three of the others take longer in proportion to the replicas, and all but "
                  "DARE at least 32 times as long.",
                  lines("apus-replicas", Axis("replicas"), COMMIT, WAIT, MEAN, at="replicas", beside=(THROUGHPUT,))),
        ),
        (BY_COUNT,), (NO_RDMA, NO_OTHERS, SEVEN),
        ours="24 connections with one write of 64 B under way each, to the leader. In consensus: from the leader's taking of a "
             "batch of inputs to its commit; waiting for it: from what a client sent being there to its batch being given to the "
             "log. Both are the leader's own. The mean is the client's.",
    ),
    figure(
        5, "Waiting for consensus, and in it",
        "Seven replicas; half SET and half GET, and one SET to nine GET; connections from one to 24.",
        (
            Panel("apus-5", "The two parts of latency with the number of connections",
                  "APUS, figure 5 and section 5.2: the time in consensus hardly changes with connections; that of waiting "
                  "grows. On average 4.9 times faster than DARE, which is faster with one connection.",
                  lines("apus-connections", COUNT, COMMIT, WAIT, at="connections", beside=(THROUGHPUT, MEAN))),
        ),
        (BY_CONNECTIONS,), (NO_RDMA, ("DARE", "it is in no package here")),
        ours="The same with 64 B, each connection with one request under way. GET goes through the log as SET does: nobody "
             "but the program knows what it is.",
    ),
    figure(
        6, "Servers alone and replicated",
        "Nine servers with one to 32 connections, alone and on nine replicas.",
        (
            Panel("apus-6-throughput", "Operations a second with the number of connections",
                  "APUS, figure 6 and section 5.3: 4.2 % less throughput in the mean of all servers than alone.",
                  lines("apus-overhead", COUNT, THROUGHPUT, at="connections")),
            Panel("apus-6-latency", "Mean response time, the same runs",
                  "APUS, section 5.3: 4.3 % more in the mean of all servers.",
                  lines("apus-overhead", COUNT, MEAN, at="connections")),
        ),
        (OVERHEAD,),
        (NO_RDMA, SEVEN, ("SSDB, MongoDB, MediaTomb, Calvin", "they are in no package here"),
         ("MySQL", "its threads are refused: docs/served-programs.md"), ("ClamAV, OpenLDAP", "no load program for them is here")),
        ours="Redis and memcached (`-t 1`), 64 B written by one to 24 connections with one request under way each, alone and on three replicas.",
    ),
)

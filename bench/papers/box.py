"""Consensus in a Box: a round's latency, rates, sizes, the two quorums, mixed loads, an election under load (figures 9 to 15)."""
from papers import curves
from papers.cluster import OURS, Load
from papers.figure import Axis, Measurement, Panel, Paper, distribution, lines, over_time

VALUE_BYTES = 16  # theirs, and keys of 16 bytes as ours
SIZES = (16, 64, 256, 512, 1024)
FRACTIONS = {"10 %": 0.1, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "90 %": 0.9}
CONNECTIONS, IN_FLIGHT = 8, 64
QUORUMS = {"majority": "2/3", "all": "3/3"}
MIXES = (10, 20)
# What a replica that lost its memory must be sent: 64 MiB.
STATE = Load(CONNECTIONS, IN_FLIGHT, 0, 1024, 65_536)
FAILS_AT, RETURNS_AT = 1 / 3, 2 / 3
ELECTION_TIMEOUT_MS = 400  # the server's default


def alone(value_bytes):
    return Load(1, 1, value_bytes=value_bytes)


def many(value_bytes, write_percent=100):
    return Load(CONNECTIONS, IN_FLIGHT, write_percent, value_bytes)


def measure_rounds(turn):
    cluster = turn.start()
    turn.warm_up(cluster, alone(VALUE_BYTES))
    turn.record(cluster, "box-round", "one client", alone(VALUE_BYTES), "--cdf")


def measure_sizes_alone(turn):
    cluster = turn.start()
    turn.warm_up(cluster, alone(VALUE_BYTES))
    for size in SIZES:
        turn.record(cluster, "box-sizes-alone", size, alone(size))


def measure_rates(turn):
    cluster = turn.start()
    rates = curves.rates_at(turn.highest(cluster, many(VALUE_BYTES)), FRACTIONS.values())
    for quorum, name in QUORUMS.items():
        cluster.demand(quorum)
        for at, rate in zip(FRACTIONS, rates):
            label = f"{turn.system.name}, {name}"
            turn.record(cluster, "box-quorums", at, many(VALUE_BYTES), "--rate", rate, label=label)


def measure_sizes(turn):
    cluster = turn.start()
    turn.warm_up(cluster, many(VALUE_BYTES))
    for size in SIZES:
        turn.record(cluster, "box-writes", size, many(size))
        for percent in MIXES:
            label = f"{turn.system.name}, {percent} % writes"
            turn.record(cluster, "box-mixed", size, many(size, percent), label=label)


def measure_election(turn):
    cluster = turn.start(election_timeout_ms=ELECTION_TIMEOUT_MS)
    turn.fill(cluster, STATE)
    first = cluster.leader
    events = [
        (FAILS_AT, "the leader is killed", lambda: cluster.kill(first)),
        (RETURNS_AT, "it is started again, empty", lambda: cluster.start_again(first)),
    ]
    load = Load(CONNECTIONS, 8, 100, STATE.value_bytes, STATE.keys)
    turn.record_over_time(cluster, "box-election", load, events)


THROUGHPUT, P50, P99 = Axis("operations/s", "operations_per_second"), Axis("p50 µs", "p50_us"), Axis("p99 µs", "p99_us")
SIZE = Axis("bytes of a value", log=True)
COMMIT = Axis("commit at the leader, mean µs", "commit_mean_us")
COMMIT_P99 = Axis("commit at the leader, p99 µs", "commit_p99_us")

ROUNDS = Measurement("box-round", OURS, measure_rounds, ("--cdf",))
SIZES_ALONE = Measurement("box-sizes-alone", OURS, measure_sizes_alone)
RATES = Measurement("box-rates", OURS, measure_rates, ("--rate",))
SIZES_MANY = Measurement("box-sizes", OURS, measure_sizes)
ELECTION = Measurement("box-election", OURS, measure_election, ("--interval-ms", "--survive"))

SETUP = ("Three FPGAs (Xilinx VC709) behind a 10 Gbit/s switch that hold ZooKeeper's atomic broadcast and a key-value "
         "store, connected with "
         "each other by TCP or by direct links; memaslap as the client.")
DIFFERS = ("Planes off stands where their TCP stands, and socket and xdp where their direct links stand, with UDP over "
           "the same (virtual) "
           "cables. Replication is by our protocol, replicas are processes on one machine, the store is in the process: "
           "clients come by "
           "memcached's protocol over TCP, as theirs.")
IN_THE_DEVICE = "time stamps in the device at the leader"
AT_LEADER = (IN_THE_DEVICE, "here the leader's own histogram of commit (20 buckets, so its percentiles are rough, its mean is not) and "
                            "the client's latency")
AT_CLIENT = (IN_THE_DEVICE, "here the client's latency")
NO_FPGA = ("FPGAs and direct links between them", "there are none here")
NO_OTHERS = ("libpaxos, etcd and ZooKeeper beside it", "others are measured beside us in RESULTS.md, under equal loads; "
                                                       "here are only our parts")

figure = Paper("Consensus in a Box", "box", SETUP, DIFFERS, (NO_FPGA,)).figure

FIGURES = (
    figure(
        9, "Latency of a consensus round: its distribution, and with size",
        "One thread sent a million writes of 16 B keys and 16 B values, one after the other.",
        (
            Panel("box-9-a", "Probability density of latency, one client",
                  "Consensus in a Box, figure 9 (a): at the leader, direct links take about a third of TCP's time (rounds "
                  "of 3 to 10 µs, "
                  "says the related work); libpaxos 3 and etcd's Raft more than ten times as long on average, with much "
                  "higher 99th percentiles.",
                  distribution("box-round", ("one client",), dense=True)),
            Panel("box-9-b", "Latency with the size of a value, at the leader",
                  "Consensus in a Box, figure 9 (b): a round's latency grows linearly with size and stays below 16 µs at "
                  "1 KB over TCP.",
                  lines("box-sizes-alone", SIZE, COMMIT, COMMIT_P99, at="bytes")),
        ),
        (ROUNDS, SIZES_ALONE), (AT_LEADER, NO_FPGA, NO_OTHERS),
        ours="One connection with one write of 16 B under way; latency at the client. Then sizes to 1 KiB, latency as the leader "
             "counts it: from taking a write to its commit.",
    ),
    figure(
        10, "Latency with the rate of replicated writes",
        "Clients raised the rate of small writes until buffers would have filled.",
        (
            Panel("box-10", "Latency against rate, at the client",
                  "Consensus in a Box, figure 10: with payloads below 48 B up to 2.4 million rounds a second over TCP and "
                  "nearly 4 million over "
                  "direct links before something limits. The curves end there rather than rise, because overload was not "
                  "driven further.",
                  lines("box-quorums", THROUGHPUT, P50, P99, at="of the maximum", of="2/3")),
        ),
        (RATES,), (AT_CLIENT, NO_FPGA), ours="An open loop at 10 to 90 % of what a closed loop (8 connections with 64 writes each) reached in the same "
                       "turn. The lines named 2/3 are this figure's.",
    ),
    figure(
        11, "A majority against all",
        "The leader can be told at run time to wait for a majority or for all.",
        (
            Panel("box-11", "p99 against rate, both quorums",
                  "Consensus in a Box, figure 11: waiting for one node more does not add much latency, under load "
                  "neither, over TCP nor "
                  "over direct links. The text gives no figures.",
                  lines("box-quorums", THROUGHPUT, P99, at="of the maximum")),
        ),
        (RATES,), (AT_CLIENT, NO_FPGA), ours="The runs of figure 10, with `quorumwire quorum majority` (2/3) and `quorumwire quorum all` (3/3), both "
                       "at the same rates.",
    ),
    figure(
        12, "Round trips of one client",
        "One client thread over one TCP connection.",
        (
            Panel("box-12", "Latency with the size of a value, at the client",
                  "Consensus in a Box, figure 12: round trips are some 30 µs longer than what the leader measures, which "
                  "is the client's network "
                  "stack; it also makes the high percentiles uncertain.",
                  lines("box-sizes-alone", SIZE, P50, P99, at="bytes")),
        ),
        (SIZES_ALONE,), (NO_FPGA,), ours="One connection with one write under way, values of 16 B to 1 KiB; p50 and p99 "
                                         "at the client.",
    ),
    figure(
        13, "Throughput of writes with their size",
        "Several client machines, keys of 16 B, values of several sizes, every request replicated.",
        (
            Panel("box-13", "Writes a second with the size of a value",
                  "Consensus in a Box, figure 13: over direct links the consensus module limits, over TCP that and the "
                  "TCP stack together: "
                  "the leader sends three times as many messages as it receives. The text gives no figures beyond those "
                  "of figure 10.",
                  lines("box-writes", SIZE, THROUGHPUT, at="bytes")),
        ),
        (SIZES_MANY,), (NO_FPGA, ("several client machines", "one machine: the client shares the cores")),
        ours="8 connections with 64 writes under way each, values of 16 B to 1 KiB.",
    ),
    figure(
        14, "Mixed loads",
        "10 % and 20 % writes, the rest reads, values of several sizes.",
        (
            Panel("box-14", "Operations a second with the size of a value, 10 and 20 % writes",
                  "Consensus in a Box, figure 14: both mixes do the same: with small requests the clients limit, with "
                  "large ones the network; 20 % "
                  "writes are slightly ahead, since their answers are smaller. ZooKeeper and etcd, on RAM disks, do "
                  "nearly an order of magnitude "
                  "less with small messages (elsewhere: ZooKeeper some sixty thousand rounds a second), and about the "
                  "same with large ones as with small.",
                  lines("box-mixed", SIZE, THROUGHPUT, at="bytes")),
        ),
        (SIZES_MANY,), (NO_FPGA, NO_OTHERS),
        ours="8 connections with 64 requests under way each, 10 % and 20 % writes. Reads are answered under the leader's lease.",
    ),
    figure(
        15, "An election under load, and a replica that comes back",
        "Only writes, by several clients over TCP. At 56 s the leader fails; after 2 minutes it comes back and must be sent "
        "the state (a hash table of 256 MB and 2 GB of values).",
        (
            Panel("box-15", "Writes a second over time",
                  "Consensus in a Box, figure 15: the dip is the 100 ms that clients wait before they try another node; "
                  "the election takes about as "
                  "long as a round (10 µs on average) after a time-out of 50 µs. While the state is transferred the "
                  "leader takes no "
                  "writes: 2 to 3 s, at 10 Gbit/s.",
                  over_time("box-election")),
            Panel("box-15-p99", "p99 over time, the same runs",
                  "Consensus in a Box, figure 15, as above; the paper does not show latency there.",
                  over_time("box-election", latency=True)),
        ),
        (ELECTION,), (NO_FPGA, ("a state of 2.25 GB", "64 MiB of values here, so that a run is short; replicas and their "
                                                      "transfer share one machine's memory")),
        ours="8 connections with 8 writes of 1 KiB under way each, over all replicas; the leader is killed with SIGKILL "
             "after a third "
             "of the run and started again, its memory gone, after two thirds (dashed lines).",
        differs="Ours goes on taking writes while it sends the state. Clients try again after the load program's own "
                "pause, not after 100 ms.",
    ),
)

"""CAANS: throughput against latency, its distribution, CPU by role, an application, failures (figures 7 and 8, table 4)."""
import plane_load
from papers import curves
from papers.cluster import OURS, Load
from papers.figure import Axis, Figure, Measurement, Panel, at_fractions, bars, distribution, lines, over_time

# Theirs were 1 to 22, each.
LANES = (1, 2, 4, 6, 8, 12, 16, 22)
FRACTIONS = {"25 %": 0.25, "50 %": 0.5, "75 %": 0.75}
MESSAGE_BYTES = 64
ELECTION_TIMEOUT_MS = 400  # the server's default
FAILS_AT = 1 / 3


def lanes(count, write_percent=100):
    """As theirs: so many clients that each wait for their answer."""
    return Load(count, 1, write_percent, MESSAGE_BYTES)


def measure_lanes(turn):
    cluster = turn.start()
    turn.warm_up(cluster, lanes(LANES[-1]))
    for count in LANES:
        turn.record(cluster, "caans-lanes", count, lanes(count))
    turn.record(cluster, "caans-lanes-busy", LANES[-1], lanes(LANES[-1]))
    if turn.has_plane_client():
        for count in LANES:
            workload = plane_load.Workload(plane_load.OUTSIDE, count, MESSAGE_BYTES)
            turn.record_plane_client(cluster.as_running(), "caans-lanes-udp", count, workload)


def measure_fractions(turn):
    cluster = turn.start()
    most = turn.highest(cluster, lanes(LANES[-1]))
    for name, rate in zip(FRACTIONS, curves.rates_at(most, FRACTIONS.values())):
        turn.record(cluster, "caans-fractions", name, lanes(LANES[-1]), "--rate", rate, "--cdf")


def measure_application(turn):
    cluster = turn.start(durability="sync")
    turn.warm_up(cluster, lanes(LANES[-1], 50))
    for count in LANES:
        turn.record(cluster, "caans-application", count, lanes(count, 50))


def measure_follower_failure(turn):
    cluster = turn.start(election_timeout_ms=ELECTION_TIMEOUT_MS)
    follower = next(slot for slot in cluster.members if slot != cluster.leader)
    events = [(FAILS_AT, "a follower is killed", lambda: cluster.kill(follower))]
    turn.record_over_time(cluster, "caans-follower", lanes(LANES[-1]), events)


def measure_leader_failure(turn):
    cluster = turn.start(election_timeout_ms=ELECTION_TIMEOUT_MS)
    events = [(FAILS_AT, "the leader is killed", lambda: cluster.kill(cluster.leader))]
    turn.record_over_time(cluster, "caans-leader", lanes(LANES[-1]), events)


THROUGHPUT, MEAN = Axis("operations/s", "operations_per_second"), Axis("mean µs", "mean_us")
LEADER, CLIENT = Axis("leader", "leader_percent"), Axis("client", "client_percent")
FOLLOWERS = Axis("two followers", "followers_percent")
OVER_TIME_NEEDS = ("--interval-ms", "--survive")

MEASURE_LANES = Measurement("caans-lanes", OURS, measure_lanes)
MEASURE_FRACTIONS = Measurement("caans-fractions", OURS, measure_fractions, ("--rate", "--cdf"))
MEASURE_APPLICATION = Measurement("caans-application", OURS, measure_application, on_disk=True)
MEASURE_FOLLOWER = Measurement("caans-follower", OURS, measure_follower_failure, OVER_TIME_NEEDS)
MEASURE_LEADER = Measurement("caans-leader", OURS, measure_leader_failure, OVER_TIME_NEEDS)

NO_LIBPAXOS = ("libpaxos", "it is their software to compare with; ours is the same server with planes off")
NO_DEVICE = ("coordinator and acceptors in an FPGA or a switch", "there is no such device here; the plane `xdp` is the "
                                                                 "nearest: the kernel's receive path")

FIGURES = (
    Figure(
        "caans-7", "CAANS, figure 7 and section 6.3", "Throughput and latency end to end, CPU by role",
        "One to 22 client threads, each with one 64-byte message under way, three acceptors; coordinator and acceptors in "
        "NetFPGA SUME boards at 10 Gbit/s, learners and an echo server on machines. Compared with libpaxos, all in software.",
        "The same numbers of clients, each with one write of 64 bytes under way, over memcached's protocol to the leader; and, "
        "for planes, their own UDP client with as many requests under way; that one prints no mean, so p50 stands in its place, and of "
        "each round the quietest of five quarters of a second counts.",
        "Three replicas that are coordinator, acceptor and learner at once, not roles on machines of their own; one "
        "machine, whose cores replicas and clients share; no FPGA. The client measures, theirs too. Eight of the "
        "22 numbers of clients.",
        (
            Panel("caans-7-a", "Throughput against latency, client over TCP",
                  "CAANS, figure 7 (a): libpaxos reached 59,604 messages a second, CAANS 134,094 (2.24 times as many). "
                  "Latency of libpaxos "
                  "from 157 µs, at its lowest throughput, to 2,510 µs; of CAANS from 52 µs, and never above 686 µs.",
                  lines("caans-lanes", THROUGHPUT, MEAN, at="clients")),
            Panel("caans-7-a-udp", "Throughput against latency, the planes' own client over UDP",
                  "CAANS, figure 7 (a), as above.",
                  lines("caans-lanes-udp", THROUGHPUT, Axis("p50 µs", "p50_us"), at="under way")),
            Panel("caans-7-b", "Distribution of latency at 25 and 75 % of each one's own maximum",
                  "CAANS, figure 7 (b): the distributions at fractions of each system's own maximum; those of CAANS were "
                  "shorter and less spread. Table 4 has means and deviations.",
                  distribution("caans-fractions", ("25 %", "75 %"))),
            Panel("caans-7-c", "CPU by role, % of one core, 22 clients",
                  "CAANS, figure 7 (c): at the highest throughput with CAANS a learner's CPU was used to nearly 100 %: with "
                  "coordinator and acceptors gone from the machines, the learner is what limits.",
                  bars("caans-lanes-busy", LEADER, FOLLOWERS, CLIENT, at="clients")),
        ),
        (MEASURE_LANES, MEASURE_FRACTIONS),
        (NO_LIBPAXOS, NO_DEVICE,
         ("CPU of the plane `xdp` by role", "what runs in the kernel's receive path is charged to whoever is interrupted; "
                                            "the share in the "
                                            "processes is shown")),
    ),
    Figure(
        "caans-7-d", "CAANS, figure 7 (d) and section 6.3", "An application that keeps its data on a disk",
        "As figure 7, with LevelDB behind the learners: half gets, half puts.",
        "The key-value store with `--durability sync`, its log on this machine's disk (all else of figure 7 is in memory); the same "
        "numbers of clients, each with one request of 64 bytes under way, half reads, half writes, over memcached's protocol.",
        "As figure 7. A write is answered once it is flushed at a majority; LevelDB's own flushes nothing if it is not told to. Reads "
        "are answered under the leader's lease, theirs went through consensus.",
        (
            Panel("caans-7-d", "Throughput against latency, half reads, half writes, on disk",
                  "CAANS, figure 7 (d): CAANS reached 75,825 messages a second and libpaxos 58,427: with CAANS the application "
                  "limits, with libpaxos still the coordinator.",
                  lines("caans-application", THROUGHPUT, MEAN, at="clients")),
        ),
        (MEASURE_APPLICATION,),
        (NO_LIBPAXOS, NO_DEVICE,
         ("LevelDB", "the application here is the key-value store: its log is on the disk as LevelDB's is, its items are in memory")),
    ),
    Figure(
        "caans-table-4", "CAANS, table 4 and section 6.3", "Latency at 25, 50 and 75 % of the maximum",
        "Mean and standard deviation of latency while each system carried these fractions of its own maximum.",
        "An open loop at these fractions of what a closed loop of 22 clients reached in the same turn; latency counts from when "
        "a request was due.",
        "As figure 7. Theirs varied the rate with the clients of a closed loop, as far as the text tells; counted from when "
        "a request was due, what waited behind others is not forgotten.",
        (
            Panel("caans-table-4", "Mean and standard deviation",
                  "CAANS, table 4, mean and standard deviation in µs. CAANS: 60.8 and 38.4 at 25 %, 582.5 and 389.2 at 50 "
                  "%, 653.9 and "
                  "385.1 at 75 %. libpaxos: 275.9 and 92.7, 637.4 and 145.4, 1,800.1 and 465.0.",
                  at_fractions("caans-fractions", FRACTIONS)),
        ),
        (MEASURE_FRACTIONS,),
        (NO_LIBPAXOS, NO_DEVICE),
    ),
    Figure(
        "caans-8", "CAANS, figure 8 and section 6.4", "An acceptor and the coordinator fail",
        "The load of figure 7 goes on while (a) one of three acceptors fails, (b) the coordinator in hardware fails and one in "
        "software takes its place.",
        "22 clients, each with one write under way, over connections to all replicas; (a) a follower, (b) the leader is killed "
        "with SIGKILL after a third of the run. The dashed line is the moment.",
        "A replica is acceptor and learner in one. Ours elects another leader by itself, theirs was re-routed; the new leader "
        "runs in the same plane again after an election in software.",
        (
            Panel("caans-8-a", "A follower is killed",
                  "CAANS, figure 8 (a): throughput rises after an acceptor is lost, because the learners, which limit, "
                  "have fewer "
                  "messages to take.",
                  over_time("caans-follower")),
            Panel("caans-8-b", "The leader is killed",
                  "CAANS, figure 8 (b): the system goes on with a coordinator in software, which takes more work; the text "
                  "gives no figures. "
                  "A second device as the spare was not at hand.",
                  over_time("caans-leader")),
        ),
        (MEASURE_FOLLOWER, MEASURE_LEADER),
        (NO_DEVICE,),
    ),
)

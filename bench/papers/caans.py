"""CAANS: who limits, throughput against latency, CPU by role, applications, failures (figures 2, 7 and 8, tables 1 to 4)."""
import json

from papers import curves, gates, roles
from papers.cluster import Load, System
from papers.figure import Axis, Figure, Measurement, Panel, at_fractions, bars, distribution, lines, listed, over_time
from papers.roles import PROCESSES, ROLES
from processes import output_of

# Theirs were 1 to 22, each; the last one is more than theirs.
LANES = (1, 2, 4, 6, 8, 12, 16, 22, 64)
BUSY = 22
APPLICATION_LANES = (1, 4, 8, 22, 64)
FRACTIONS = {"25 %": 0.25, "50 %": 0.5, "75 %": 0.75}
ACCEPTORS = (3, 5, 7)
MESSAGE_BYTES = 64
SERVERS = 3
FAILS_AT, RETURNS_AT, BACK_AT = 1 / 4, 1 / 2, 3 / 4
STEPS_SECONDS_MAX = 240
STEPS_OF = ("anybody, other traffic", "acceptor, P2A", "coordinator, SUBMIT", "follower, APPEND", "leader, REQUEST")
ALONE = System("the programs alone", "alone", "the plane's programs, run by the kernel again and again on one packet")


def lanes(count):
    """As theirs: so many clients that each wait for their answer."""
    return Load(count, 1, 100, MESSAGE_BYTES)


def measure_acceptors(turn):
    for count in ACCEPTORS:
        with turn.for_a_while() as once:
            deployment = once.start_roles(acceptors=count)
            once.warm_up(deployment, lanes(LANES[-1]))
            once.record(deployment, "caans-acceptors", count, lanes(LANES[-1]))


def measure_lanes(turn):
    deployment = turn.start_roles()
    turn.warm_up(deployment, lanes(LANES[-1]))
    for count in LANES:
        turn.record(deployment, "caans-lanes", count, lanes(count))
    turn.record(deployment, "caans-lanes-busy", BUSY, lanes(BUSY))


def measure_fractions(turn):
    deployment = turn.start_roles()
    most = turn.highest(deployment, lanes(BUSY))
    for name, rate in zip(FRACTIONS, curves.rates_at(most, FRACTIONS.values())):
        turn.record(deployment, "caans-fractions", name, lanes(BUSY), "--rate", rate, "--cdf")


def measure_servers(turn, application, operation):
    deployment = turn.start_roles(learners=SERVERS)
    addresses = deployment.start_servers(application)
    for count in APPLICATION_LANES:
        found = deployment.measure_servers(addresses, operation, count, turn.seconds)
        turn.taken.add(turn.round, f"caans-{application}", turn.system.name, count, **found)
        turn.say(f"caans-{application}, {turn.system.name}, {count}: {found['operations_per_second']:,}/s, p50 {found['p50_us']} µs")


def measure_echo(turn):
    measure_servers(turn, "echo", "echo")


def measure_leveldb(turn):
    measure_servers(turn, "leveldb", "mix")


def measure_acceptor_failure(turn):
    deployment = turn.start_roles()
    events = [(FAILS_AT, "an acceptor is killed", lambda: deployment.kill("acceptor", 0))]
    turn.record_over_time(deployment, "caans-acceptor", lanes(BUSY), events)


def measure_coordinator_failure(turn):
    deployment = turn.start_roles()
    events = [
        (FAILS_AT, "the coordinator is killed", lambda: deployment.kill("coordinator", 0)),
        (RETURNS_AT, "it is started again, as a backup", lambda: deployment.start("coordinator", 0)),
        (BACK_AT, "the one in software is killed", lambda: deployment.kill("coordinator", 1)),
    ]
    turn.record_over_time(deployment, "caans-coordinator", lanes(BUSY), events)


def measure_take_over(turn):
    deployment = turn.start_roles()
    for what, waited_ms in roles.take_overs(deployment):
        turn.taken.add(turn.round, "caans-take-over", turn.system.name, what, waited_ms=waited_ms)
        turn.say(f"caans-take-over, {turn.system.name}, {what}: {waited_ms:.1f} ms")


def measure_steps(turn):
    for line in output_of([str(turn.tools.load), "steps", "--whole"], STEPS_SECONDS_MAX).splitlines():
        step = json.loads(line)
        if step["what"] in STEPS_OF:
            turn.taken.add(turn.round, "caans-steps", step["what"], step["payload_bytes"], ns=step["ns"])


THROUGHPUT, MEAN = Axis("values/s", "operations_per_second"), Axis("mean µs", "mean_us")
P50 = Axis("p50 µs", "p50_us")
COORDINATOR, LEARNER = Axis("coordinators", "leader_percent"), Axis("learner, proposer", "client_percent")
ALL_ACCEPTORS = Axis("acceptors together", "followers_percent")

NEEDS = ("--deployment",)
MEASURE_ACCEPTORS = Measurement("caans-acceptors", (PROCESSES,), measure_acceptors, NEEDS)
MEASURE_LANES = Measurement("caans-lanes", ROLES, measure_lanes, NEEDS)
MEASURE_FRACTIONS = Measurement("caans-fractions", ROLES, measure_fractions, NEEDS)
MEASURE_ECHO = Measurement("caans-echo", ROLES, measure_echo, NEEDS, missing=roles.why_no_servers)
MEASURE_LEVELDB = Measurement("caans-leveldb", ROLES, measure_leveldb, NEEDS, on_disk=True, missing=roles.why_no_servers)
MEASURE_ACCEPTOR = Measurement("caans-acceptor", ROLES, measure_acceptor_failure, NEEDS)
MEASURE_COORDINATOR = Measurement("caans-coordinator", ROLES, measure_coordinator_failure, NEEDS)
MEASURE_TAKE_OVER = Measurement("caans-take-over", ROLES, measure_take_over, NEEDS)
MEASURE_STEPS = Measurement("caans-steps", (ALONE,), measure_steps)

NO_LIBPAXOS = ("libpaxos", "it is their software to compare with; ours is the same deployment with its roles in processes")
NO_DEVICE = ("coordinator and acceptors in an FPGA", "there is no such device here; the kernel's receive path (XDP) is the nearest")
NO_BOARD = ("cores on a board", "there is none here; they are simulated, and made for a chip without being placed")
SET_UP = (
    "A deployment of a coordinator and its backup, three acceptors and one learner with its proposer, each in a network namespace. The "
    "load is `quorumwire bench --deployment` in the learner's process: latency is from proposing a value of 64 bytes to learning that it "
    f"was decided. Programs in software look for packets for {roles.BUSY_POLL_US} µs before they sleep, the learner in both systems."
)
DIFFERS = (
    "One machine, whose two cores all hosts share, and virtual cables; no FPGA. What runs in the kernel's receive path runs on the core of "
    "whoever sent the packet."
)

FIGURES = (
    Figure(
        "caans-2", "CAANS, figure 2 and section 2.2", "Who limits a deployment in software",
        "CPU of proposer, coordinator, acceptors and learner of libpaxos at its peak throughput, and of acceptors and learners with more learners.",
        f"{SET_UP} Three, five and seven acceptors, 64 values under way.",
        f"{DIFFERS} They had more learners, three acceptors each time; here there are more acceptors and one learner.",
        (
            Panel("caans-2", "CPU by role, % of one core, at the highest throughput",
                  "CAANS, figure 2: (a) the coordinator limits; (b) with more learners acceptors take more CPU, and learners less.",
                  lines("caans-acceptors", Axis("acceptors", None), COORDINATOR, ALL_ACCEPTORS, LEARNER, at="acceptors",
                        beside=(THROUGHPUT,), unit="% of one core")),
        ),
        (MEASURE_ACCEPTORS,), (NO_LIBPAXOS,),
    ),
    Figure(
        "caans-7", "CAANS, figure 7 (a, b, c) and section 6.3", "Throughput and latency end to end, CPU by role",
        "One to 22 client threads, each with one 64-byte message under way, three acceptors; coordinator and acceptors in "
        "NetFPGA SUME boards at 10 Gbit/s, learners and an echo server on machines. Compared with libpaxos, all in software.",
        f"{SET_UP} As many values under way as they had threads, and 64. Beside it their echo server: three servers of `apps/leveldb` with "
        "`--application echo`, each a learner with a proposer; a client asks one of them over TCP.",
        f"{DIFFERS} Eight of the 22 numbers of clients. Their client's machine proposed, the learners' answered; here the server that is asked "
        "does both. Aimed at were a third of the latency with one value under way, and 2.24 times the throughput, as theirs. At 74e16c3 the first "
        "was reached (22 µs against 204), the second was not: 1.86 times at the highest of each. The learner limits, as theirs did: with roles in "
        "switches it takes a whole core, of the two that all of them run on.",
        (
            Panel("caans-7-a", "Throughput against latency",
                  "CAANS, figure 7 (a): libpaxos reached 59,604 messages a second, CAANS 134,094 (2.24 times as many). "
                  "Latency of libpaxos from 157 µs, at its lowest throughput, to 2,510 µs; of CAANS from 52 µs, and never above 686 µs.",
                  lines("caans-lanes", THROUGHPUT, MEAN, at="under way", beside=(P50,))),
            Panel("caans-7-a-echo", "Throughput against latency of the echo server, client over TCP",
                  "CAANS, figure 7 (a), as above.",
                  lines("caans-echo", THROUGHPUT, MEAN, at="under way", beside=(P50,))),
            Panel("caans-7-b", "Distribution of latency at 25 and 75 % of each one's own maximum",
                  "CAANS, figure 7 (b): the distributions at fractions of each system's own maximum; those of CAANS were "
                  "shorter and less spread. Table 4 has means and deviations.",
                  distribution("caans-fractions", ("25 %", "75 %"))),
            Panel("caans-7-c", "CPU by role, % of one core, 22 under way",
                  "CAANS, figure 7 (c): at the highest throughput with CAANS a learner's CPU was used to nearly 100 %: with "
                  "coordinator and acceptors gone from the machines, the learner is what limits.",
                  bars("caans-lanes-busy", COORDINATOR, ALL_ACCEPTORS, LEARNER, at="under way")),
        ),
        (MEASURE_LANES, MEASURE_ECHO, MEASURE_FRACTIONS),
        (NO_LIBPAXOS, NO_DEVICE,
         ("CPU of roles in the kernel", "what runs in the receive path is charged to whoever is interrupted, here the learner; "
                                        "the share in the processes is shown")),
    ),
    Figure(
        "caans-7-d", "CAANS, figure 7 (d) and section 6.3", "Replicated LevelDB",
        "As figure 7, with LevelDB behind the learners: half gets, half puts.",
        "Three servers of `apps/leveldb` with their data on this machine's disk; a client asks one of them over TCP, half gets and half puts "
        "of 64 bytes, all of them values.", DIFFERS,
        (
            Panel("caans-7-d", "Throughput against latency, half gets, half puts",
                  "CAANS, figure 7 (d): CAANS reached 75,825 messages a second and libpaxos 58,427: with CAANS the application "
                  "limits, with libpaxos still the coordinator.",
                  lines("caans-leveldb", THROUGHPUT, MEAN, at="under way", beside=(P50,))),
        ),
        (MEASURE_LEVELDB,), (NO_LIBPAXOS, NO_DEVICE),
    ),
    Figure(
        "caans-table-1", "CAANS, table 1 and section 6.2", "What a role adds to forwarding",
        "Latency of forwarding, of an acceptor and of a coordinator in devices at 200 and 250 MHz, between two points of the pipeline.",
        "Nanoseconds of the program in the kernel's receive path for one packet, everything in the cache, in each round the fastest of many "
        "runs; what a packet costs that is none of its business stands for forwarding. The replica's steps stand beside them. And clocks of the "
        "core in gates, in simulation, from a frame's first beat in to the first beat out.",
        "Theirs is a pipeline's latency, which no load changes, and so is that of the core in gates; that of the kernel's receive path is a "
        f"processor's time, copies to all acceptors not among it. {gates.DIFFERS} Of the core's clocks 106 are in the pipeline for tags, which theirs "
        "do not have: each packet is checked, and signed anew.",
        (
            Panel("caans-table-1", "Nanoseconds for one packet",
                  "CAANS, table 1, P4FPGA at 250 MHz: forwarding 0.37 µs, acceptor 0.79 µs, coordinator 0.72 µs; SDNet at 200 MHz: 0.73, 1.44 and "
                  "1.21 µs.",
                  listed("caans-steps", "bytes", ("ns", "ns"))),
            Panel("caans-table-1-gates", "Clocks of the core in gates, simulated", "CAANS, table 1, as above.",
                  listed("gates-roles", "bytes", ("clocks", "clocks"), ("µs at 200 MHz", "us_200"), ("µs at 250 MHz", "us_250"))),
        ),
        (MEASURE_STEPS, gates.CLOCKS), (NO_BOARD,),
    ),
    Figure(
        "caans-table-2", "CAANS, table 2 and section 6.2", "Latency and rate, computed for a clock",
        "Clock cycles that SDNet's compiler reports for coordinator and acceptor, multiplied with the clock of three boards; packets a second from the "
        "bus and the clock.",
        "Clocks of the core in gates for packets of the smallest size, 114 bytes, as a simulation counts them, at the clocks of their three "
        "boards; the coordinator with one destination, since it sends once for each.",
        gates.DIFFERS,
        (
            Panel("caans-table-2", "The smallest packets at three clocks",
                  "CAANS, table 2: at 200 MHz coordinator 1.280 µs, acceptor 1.515 µs, 60 million packets a second; at 250 MHz 1.024 µs, 1.212 µs and 60 "
                  "million; at 300 MHz 0.867 µs, 1.023 µs and 150 million.",
                  listed("gates-computed", "clock", ("µs", "us"), ("million packets/s", "packets_m"))),
        ),
        (gates.CLOCKS,), (NO_BOARD,),
    ),
    Figure(
        "caans-table-3", "CAANS, table 3 and section 6.2", "What the roles take of a chip",
        "Lookup tables, registers and memories of a NetFPGA SUME (Virtex 7) with P4FPGA and 65,535 instances.",
        "The core of the Paxos roles as yosys makes it for the same family (`xc7`) and for UltraScale+ (`xcup`), from dataplanes/fpga/resources.md; that "
        "of a replica beside it. Lookup tables that are memory or shift registers (LUTRAM) are among the lookup tables; BRAM are blocks of 36 Kbit.",
        "From synthesis alone: nothing was placed. Theirs is the whole design, ports and switch included, ours the core without a shell; ours checks and "
        "makes tags, which takes most, and has eight deployments of 256 instances, whose values are in the host's memory.",
        (
            Panel("caans-table-3", "Parts of a chip",
                  "CAANS, table 3: 84,674 of 433,200 lookup tables (19.5 %), 103,921 of 866,400 registers (11.9 %), 801 of 1,470 BRAM (54.4 %).",
                  listed("gates-resources", "family", ("lookup tables", "lut"), ("of these LUTRAM", "lutram"), ("registers", "ff"), ("BRAM", "bram"))),
        ),
        (gates.TAKEN_OF_A_CHIP,), (NO_BOARD,),
    ),
    Figure(
        "caans-table-4", "CAANS, table 4 and section 6.3", "Latency at 25, 50 and 75 % of the maximum",
        "Mean and standard deviation of latency while each system carried these fractions of its own maximum.",
        f"{SET_UP} An open loop at these fractions of what a closed loop of 22 reached in the same turn; latency counts from when a value was "
        "due.",
        f"{DIFFERS} Theirs varied the rate with the clients of a closed loop, as far as the text tells; counted from when "
        "a value was due, what waited behind others is not forgotten.",
        (
            Panel("caans-table-4", "Mean and standard deviation",
                  "CAANS, table 4, mean and standard deviation in µs. CAANS: 60.8 and 38.4 at 25 %, 582.5 and 389.2 at 50 "
                  "%, 653.9 and 385.1 at 75 %. libpaxos: 275.9 and 92.7, 637.4 and 145.4, 1,800.1 and 465.0.",
                  at_fractions("caans-fractions", FRACTIONS)),
        ),
        (MEASURE_FRACTIONS,), (NO_LIBPAXOS, NO_DEVICE),
    ),
    Figure(
        "caans-8", "CAANS, figure 8 and section 6.4", "An acceptor and the coordinator fail",
        "The load of figure 7 goes on while (a) one of three acceptors fails, (b) the coordinator in hardware fails and one in "
        "software takes its place.",
        f"{SET_UP} 22 values under way. (a) An acceptor is killed. (b) The coordinator is killed, and its backup in software takes over by "
        "itself; the first one is started again, and takes over when the backup is killed. Dashed lines are these moments.",
        f"{DIFFERS} Theirs was re-routed by hand; ours takes over after 40 ms of silence (`silence-ms`), less where a proposer waits. "
        "Aimed at was that nobody waits longer than 50 ms. At 74e16c3 that was missed when the first one in a switch was killed (half of 15 kills "
        "took longer than 54 ms, one 83) and kept in the median of all others: 40 ms of silence leave 10 for phase 1, and for a processor that two "
        "busy hosts have.",
        (
            Panel("caans-8-a", "An acceptor is killed",
                  "CAANS, figure 8 (a): throughput rises after an acceptor is lost, because the learners, which limit, "
                  "have fewer messages to take.",
                  over_time("caans-acceptor")),
            Panel("caans-8-b", "The coordinator is killed, and comes back",
                  "CAANS, figure 8 (b): the system goes on with a coordinator in software, which takes more work; the text "
                  "gives no figures. A second device as the spare was not at hand.",
                  over_time("caans-coordinator")),
            Panel("caans-8-take-over", "The longest time without a decided value when who coordinates is killed",
                  "CAANS, section 6.4, gives none.",
                  listed("caans-take-over", "from, to", ("ms", "waited_ms"))),
        ),
        (MEASURE_ACCEPTOR, MEASURE_COORDINATOR, MEASURE_TAKE_OVER), (NO_DEVICE,),
    ),
)

"""Data planes under load: what is started, and what one measurement of it is.

Replicas are processes of `quorumwire server` in network namespaces (namespaces.py); the load comes from
`planes-load` (bench/planes). Names of systems and workloads stand here.
"""
import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import cpu
import namespaces
from namespaces import CLIENT_HOST, FIRST_REPLICA_HOST, INTERFACE, address, mac, port
from processes import Failed, output_of, start, tail, wait_until
from replica import COMMAND_SECONDS_MAX, HTTP_PORT, MEMCACHED_PORT, PLANE_PORT, Replicas, leader_of_serving

LOAD_SECONDS_EXTRA = 20
WARM_UP_SECONDS = 0.1
SECONDS = 0.25
# So often everything is measured, one after the other; the quietest counts.
WINDOWS = 5
QUIET_NICE = 19
REPAIR_SECONDS_MIN = 0.02  # a shorter one is too short to tell a rate from
STRAGGLER_CUT_SECONDS = 0.1
REPAIR_BEFORE_SECONDS = 0.6
REPAIR_LOAD_SECONDS = 2.5
# A follower with no more to get than this is one that follows.
CAUGHT_UP_ENTRIES = 256


class Workload(NamedTuple):
    """A closed loop. `outside`: a UDP socket; `inside`: a program in the kernel, at the client's interface."""

    where: str
    in_flight: int
    payload_bytes: int = 64
    memcached: str = ""  # the command of an ordinary memcached client over UDP; empty: a client of the planes

    def __str__(self):
        asked = f"memcached's `{self.memcached}`, " if self.memcached else ""
        return f"{asked}{self.where}, {self.in_flight} in flight, {self.payload_bytes} B"


OUTSIDE, INSIDE = "outside", "inside"
ONE_OUTSIDE, ONE_INSIDE = Workload(OUTSIDE, 1), Workload(INSIDE, 1)
MANY_OUTSIDE, MANY_INSIDE = Workload(OUTSIDE, 32), Workload(INSIDE, 32)
CLIENTS = Workload(OUTSIDE, 64)
REPAIRED = Workload(INSIDE, 8)
GET_ONE, GET_MANY, SET_ONE = (Workload(OUTSIDE, count, memcached=command) for count, command in ((1, "get"), (32, "get"), (1, "set")))
SMALL, LARGE = Workload(INSIDE, 1, 16), Workload(INSIDE, 1, 1376)


class System(NamedTuple):
    """What is loaded."""

    name: str
    note: str
    plane: str  # "echo", "alone", "memcached", or as the option `plane` of the server
    replicas: int
    workloads: list
    nice: int = 0
    on_one_core: bool = False  # the replicas' processes on the last core alone
    without: str = ""
    # A loaded machine shall measure badly, not hold elections; None: the server's default.
    election_timeout_ms: int | None = 10_000
    options: tuple = ()  # more of the server's
    durability: str = "memory"


SYSTEMS = [
    System("echo", "an XDP program that sends frames back, no replica", "echo", 1, [ONE_OUTSIDE, ONE_INSIDE, LARGE]),
    System(
        "programs alone", "the plane's programs without replicas behind them: what they store is thrown away",
        "alone", 3, [ONE_OUTSIDE, MANY_OUTSIDE, ONE_INSIDE, MANY_INSIDE],
    ),
    System(
        "programs alone, no tag", "the same, without tags: unsafe, to see what these cost",
        "alone", 3, [ONE_INSIDE], without="tag",
    ),
    System(
        "programs alone, no check", "the same, without anything that can be left out (the table of what checks cost)",
        "alone", 3, [ONE_INSIDE], without="tag,checksum,counters,window,lock,wake",
    ),
    System("socket", "three replicas, `--plane socket`", "socket", 3, [ONE_OUTSIDE, MANY_OUTSIDE]),
    System(
        "socket, sleeps at once", "the same with `--busy-poll-us 0`", "socket", 3,
        [ONE_OUTSIDE, MANY_OUTSIDE], options=("--busy-poll-us", "0"),
    ),
    System(
        "xdp", "three replicas, `--plane xdp`", "xdp", 3,
        [ONE_OUTSIDE, MANY_OUTSIDE, CLIENTS, ONE_INSIDE, MANY_INSIDE, SMALL, LARGE],
    ),
    System(
        "xdp, hosts at nice 19", "the same, the replicas' processes give way to everything", "xdp", 3,
        [ONE_OUTSIDE, MANY_OUTSIDE, ONE_INSIDE, MANY_INSIDE], QUIET_NICE,
    ),
    System(
        "xdp, hosts on one core", "the same, the replicas' processes on the last of the machine's cores", "xdp", 3,
        [ONE_OUTSIDE, ONE_INSIDE, MANY_INSIDE], on_one_core=True,
    ),
    System("xdp, five", "five replicas, `--plane xdp`", "xdp", 5, [ONE_OUTSIDE, ONE_INSIDE]),
    System(
        "xdp, memcached", "three replicas, `--plane xdp --memcached-udp`: `get` is answered in the kernel", "xdp", 3,
        [GET_ONE, GET_MANY, SET_ONE], options=("--memcached-udp",),
    ),
    System(
        "xdp, memcached, reads in the server", "the same with `--plane-reads off`", "xdp", 3,
        [GET_ONE, GET_MANY], options=("--memcached-udp", "--plane-reads", "off"),
    ),
    System("memcached", "unreplicated, `-t 1`, over UDP", "memcached", 1, [GET_ONE, GET_MANY, SET_ONE]),
    System("programs alone, five", "five without replicas behind them", "alone", 5, [ONE_INSIDE]),
]


class Sample(NamedTuple):
    """One run of the load. CPU in microseconds per operation, of the whole machine without what others took."""

    operations: int
    operations_per_second: float
    operations_per_cpu_second: float
    p50_us: float
    p90_us: float
    p99_us: float
    p999_us: float
    hosts_user_us: float
    hosts_system_us: float
    cpu_us: float
    sent_again: int
    refused: int
    others_percent: float


class Tools(NamedTuple):
    """Programs that are started."""

    server: Path
    load: Path

    def missing(self):
        """Why nothing can be measured; None if it can."""
        if os.geteuid() != 0:
            return "network namespaces take root"
        for path in self:
            if not os.access(path, os.X_OK):
                return f"{path.name} is not built: `make build-bench`"
        return None


class Running(NamedTuple):
    """A system that is ready."""

    system: System
    network: object
    pids: list
    leader_host: int
    keys: object  # a file, or None for an echo
    tools: Tools

    def load_command(self, workload, *more, seconds=SECONDS):
        to = MEMCACHED_PORT if workload.memcached else PLANE_PORT
        command = [str(self.tools.load), workload.where, "--to", f"{address(self.leader_host)}:{to}",
                   "--in-flight", str(workload.in_flight), "--payload-bytes", str(workload.payload_bytes),
                   "--seconds", str(seconds), "--warm-up-seconds", str(WARM_UP_SECONDS), *more]
        if workload.memcached:
            command += ["--memcached", workload.memcached]
        elif self.keys is not None:
            command += ["--keys", str(self.keys)]
        if workload.where == INSIDE:
            command += ["--interface", INTERFACE, "--from-mac", mac(CLIENT_HOST), "--to-mac", mac(self.leader_host)]
            command += ["--no-tag"] if "tag" in self.system.without else []
        return self.network.command_in(CLIENT_HOST, command)


def make_network(stack, tools, replicas):
    """For all systems of a run."""
    network = namespaces.Network(stack, replicas)
    ports = [port(host) for host in network.hosts]
    # Else nothing arrives that a program at the other end of a cable sends.
    let_pass(network, tools.server, "sw", ports)
    return network


def let_pass(network, server, host, interfaces):
    """Gives interfaces of a host, or ports of the bridge (`sw`), a program that lets everything pass."""
    namespaces.quiet(network.command_in(host, [str(server), "veth-pass", *interfaces]))


def start_system(stack, system, network, tools, folder):
    """Starts a system and waits until it serves."""
    if system.plane == "echo":
        return start_echo(stack, system, network, tools, folder)
    if system.plane == "memcached":
        return start_memcached(stack, system, network, tools, folder)
    if system.plane == "alone":
        return start_alone(stack, system, network, tools, folder)
    servers, leader, keys = start_replicas(stack, system, network, tools, folder)
    return Running(system, network, [server.pid for server in servers], FIRST_REPLICA_HOST + leader, keys, tools)


def start_echo(stack, system, network, tools, folder):
    command = [str(tools.load), "echo", "--interface", INTERFACE, "--port", str(PLANE_PORT)]
    start_until_ready(stack, network.command_in(FIRST_REPLICA_HOST, command), folder)
    return Running(system, network, [], FIRST_REPLICA_HOST, None, tools)


def start_memcached(stack, system, network, tools, folder):
    process = memcached_at(stack, network, FIRST_REPLICA_HOST, MEMCACHED_PORT, tools.server, folder)
    return Running(system, network, [process.pid], FIRST_REPLICA_HOST, None, tools)


def memcached_at(stack, network, host, port_number, server, folder):
    """memcached's process, which answers, at a host's port for TCP and UDP."""
    if shutil.which("memcached") is None:
        raise Failed("memcached is not installed: `tools/setup`")
    own, log = address(host), folder / "memcached.log"
    command = ["memcached", "-u", "root", "-l", own, "-p", str(port_number), "-U", str(port_number), "-t", "1"]
    process = start(stack, network.command_in(host, command), log)
    asks = [str(server), "bench", "--json", "--operations", "1", "--addr", f"{own}:{port_number}"]

    def answers():
        with contextlib.suppress(Failed):
            return bool(output_of(network.command_in(CLIENT_HOST, asks), COMMAND_SECONDS_MAX))
        return False

    wait_until("memcached", answers, [process], log)
    return process


def start_alone(stack, system, network, tools, folder):
    keys = replicas_of(system, tools, folder).make_keys()
    command = [str(tools.load), "alone", "--interface", INTERFACE, "--keys", str(keys)]
    for slot in range(system.replicas):
        host = FIRST_REPLICA_HOST + slot
        namespace = f"{namespaces.FOLDER}/{network.namespace(host)}"
        command += ["--replica", f"{namespace},{address(host)}:{PLANE_PORT},{mac(host)}"]
    command += ["--without", system.without] if system.without else []
    start_until_ready(stack, command, folder)
    return Running(system, network, [], FIRST_REPLICA_HOST, keys, tools)


def start_until_ready(stack, command, folder):
    """A program that says `ready`, and ends when its input does."""
    log = folder / "programs.log"
    process = start(stack, command, log, stdin=subprocess.PIPE)
    stack.callback(process.stdin.close)
    wait_until("programs in the kernel", lambda: b"ready" in log.read_bytes(), [process], log)


def replicas_of(system, tools, folder):
    addresses = [address(FIRST_REPLICA_HOST + slot) for slot in range(system.replicas)]
    return Replicas(tools.server, folder, addresses, system.plane, system.durability, system.election_timeout_ms, system.options)


def start_replicas(stack, system, network, tools, folder):
    """All of a system's, which serve: processes by slot, who leads, and the keys for clients of planes."""
    replicas = replicas_of(system, tools, folder)
    keys = replicas.make_keys()
    servers = [start_replica(stack, system, network, replicas, slot) for slot in range(system.replicas)]
    return servers, wait_until_they_serve(system, network, tools, folder, servers), keys


def start_replica(stack, system, network, replicas, slot):
    command = replicas.command(slot)
    command = ["nice", "-n", str(system.nice), *command] if system.nice else command
    command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command] if system.on_one_core else command
    return start(stack, network.command_in(FIRST_REPLICA_HOST + slot, command), replicas.folder / f"replica-{slot}.log")


def wait_until_they_serve(system, network, tools, folder, servers):
    """Who leads then."""
    leader = None

    def holds():
        nonlocal leader
        leader = leader_of_serving(status_of(network, tools), range(system.replicas), system.plane)
        return leader is not None

    wait_until(f"{system.name}: waiting until all replicas serve", holds, servers, folder / "replica-0.log")
    return leader


def status_of(network, tools):
    command = [str(tools.server), "status", "--json", "--addr", f"{address(FIRST_REPLICA_HOST)}:{HTTP_PORT}"]
    with contextlib.suppress(Failed, ValueError):
        return json.loads(output_of(network.command_in(CLIENT_HOST, command), COMMAND_SECONDS_MAX))
    return {}


def measure(running, workload):
    """The quietest of several runs of the load: what others do on the machine's processors is not what is measured."""
    samples = [measure_once(running, workload) for _ in range(WINDOWS)]
    quietest = min(samples, key=lambda sample: sample.p50_us)
    # What went wrong in any of them, and how loud the machine was, is said of all.
    return quietest._replace(
        sent_again=sum(sample.sent_again for sample in samples),
        refused=sum(sample.refused for sample in samples),
        others_percent=max(sample.others_percent for sample in samples),
    )


def measure_once(running, workload):
    """Runs the load and measures the machine meanwhile."""
    before = Usage.now(running.pids)
    text = output_of(running.load_command(workload), SECONDS + WARM_UP_SECONDS + LOAD_SECONDS_EXTRA)
    after = Usage.now(running.pids)
    printed = json.loads(text)
    # The load program's own start and its warm-up take CPU, too, and have operations.
    operations = printed["operations"]
    if operations < 1:
        raise Failed(f"no request was answered: {text}")
    share = printed["seconds"] / (after.at - before.at)
    used = after.since(before)
    per_operation = share * 1e6 / operations
    ours = max(used.busy - used.others, 1e-3)
    return Sample(
        operations=operations,
        operations_per_second=operations / printed["seconds"],
        operations_per_cpu_second=operations / (ours * share),
        p50_us=printed["p50_us"],
        p90_us=printed["p90_us"],
        p99_us=printed["p99_us"],
        p999_us=printed["p999_us"],
        hosts_user_us=used.hosts_user * per_operation,
        hosts_system_us=used.hosts_system * per_operation,
        cpu_us=ours * per_operation,
        sent_again=printed["sent_again"],
        refused=printed["refused"],
        others_percent=used.others_percent,
    )


class Repair(NamedTuple):
    """A follower that missed entries gets them again while the load goes on."""

    before_per_second: float
    during_per_second: float
    missed_entries: int
    repair_ms: float
    resent_by_plane: int
    left_to_software: int  # asked for what the leader's ring did not hold any more


class Look(NamedTuple):
    """What there was at a moment, in seconds."""

    at: float
    answers: int
    last_indexes: list

    @property
    def missing(self):
        """Entries that the last replica has less than the first."""
        return max(self.last_indexes) - min(self.last_indexes)


def measure_repair(running, folder):
    """Cuts the last follower's cable for a while: throughput before, and from then until it has all again."""
    network, cable = running.network, port(FIRST_REPLICA_HOST + running.system.replicas - 1)
    trace, log = folder / "trace.json", folder / "trace.log"
    before = leader_counters(network, running.tools)
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(open(trace, "wb"))
        command = running.load_command(REPAIRED, "--watch", ",".join(map(str, running.pids)), seconds=REPAIR_LOAD_SECONDS)
        load = start(stack, command, log, stdout=output)
        time.sleep(REPAIR_BEFORE_SECONDS)
        cut = time.monotonic()
        with cut_cable(network, cable):
            time.sleep(STRAGGLER_CUT_SECONDS)
        healed = time.monotonic()
        load.wait(REPAIR_LOAD_SECONDS + LOAD_SECONDS_EXTRA)
    if load.returncode != 0:
        raise Failed(f"the load: {tail(log)}")
    after = leader_counters(network, running.tools)
    looks = [Look(at / 1e9, *rest) for at, *rest in json.loads(trace.read_text())["trace"]]
    behind = [look for look in looks if look.at >= healed]
    repaired = next((look for look in behind if look.missing <= CAUGHT_UP_ENTRIES), None)
    if repaired is None:
        raise Failed(f"the follower did not catch up while the load went on: {behind[-1:]}")
    return Repair(
        before_per_second=rate(looks, cut - REPAIR_BEFORE_SECONDS / 2, cut),
        during_per_second=rate(looks, healed, max(repaired.at, healed + REPAIR_SECONDS_MIN)),
        missed_entries=behind[0].missing,
        repair_ms=(repaired.at - healed) * 1e3,
        resent_by_plane=after["plane_entries_resent"] - before["plane_entries_resent"],
        left_to_software=after["plane_behind_ring"] - before["plane_behind_ring"],
    )


@contextlib.contextmanager
def cut_cable(network, cable):
    """Nothing is forwarded to a port of the bridge meanwhile."""
    def change(script):
        namespaces.quiet(network.command_in("sw", ["nft", "-f", "-"]), script)

    change("add table bridge cut\n"
           "add chain bridge cut crossing { type filter hook forward priority 0; }\n"
           f'add rule bridge cut crossing oifname "{cable}" drop\n')
    try:
        yield
    finally:
        change("delete table bridge cut\n")


def rate(looks, begin, end):
    """Answers a second between two moments."""
    within = [look for look in looks if begin <= look.at <= end]
    if len(within) < 2:
        raise Failed("the repair was too short to measure")
    return (within[-1].answers - within[0].answers) / (within[-1].at - within[0].at)


def leader_counters(network, tools):
    status = status_of(network, tools)
    for replica in status.get("replicas", []):
        if replica["id"] == status.get("leader"):
            return replica["report"]["counters"]
    raise Failed("no leader is known")


class Usage(NamedTuple):
    """CPU seconds up to a moment."""

    at: float
    busy: float
    idle: float
    others: float
    hosts_user: float
    hosts_system: float

    @classmethod
    def now(cls, pids):
        machine = cpu.of_machine()
        hosts = [cpu.of_process(pid) for pid in pids]
        others = cpu.of_all_but(ours=os.getpid())
        return cls(time.monotonic(), machine.busy, machine.idle, others,
                   sum(it.user for it in hosts), sum(it.system for it in hosts))

    @property
    def others_percent(self):
        """Of the machine."""
        return 100 * self.others / (self.busy + self.idle)

    def since(self, earlier):
        return Usage(*(now - then for now, then in zip(self, earlier)))

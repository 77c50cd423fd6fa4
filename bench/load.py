"""What load is put on, and what one run of a load program measured."""
import contextlib
import json
from typing import NamedTuple

import cpu
from processes import Failed, output_of

VALUE_BYTES = 64
KEYS = 1000
# Above the time it was told to take: connecting, and answers still in flight.
LOAD_SECONDS_EXTRA = 30


class Workload(NamedTuple):
    """A closed loop: every connection keeps so many requests in flight."""

    name: str
    connections: int
    in_flight: int
    write_percent: int = 100

    def __str__(self):
        return f"{self.connections}×{self.in_flight}{'' if self.write_percent else ' reads'}"


LATENCY = Workload("latency", 1, 1)
PIPELINED = Workload("pipelined", 8, 64)
WIDE = Workload("wide", 32, 8)
MANY = Workload("unpipelined", 64, 1)
READS = Workload("reads", 1, 1, 0)


class Server(NamedTuple):
    """A process that serves."""

    pid: int
    leads: bool
    is_program: bool = False  # an unmodified server: alone, or what replicas of ours run


class Cluster(NamedTuple):
    """A peer that runs and is ready."""

    servers: list
    load_command: object  # (workload, seconds) -> list of words
    redis: object = None  # where `redis-benchmark` may ask; None: it does not speak that protocol, or only with more words
    # (seconds, more=[]) -> list of words: a load on all replicas that outlives the leader; None: nobody takes over.
    survive_command: object = None
    load_with: object = None  # (connections, in_flight, seconds, more) -> list of words: on the leader, `more` goes before what is usual
    bulk: object = None  # (direction, seconds, warm-up seconds) -> Gbit/s of one TCP connection, others' share of the machine in %
    leader_now: object = None  # () -> pid of who leads at this moment; None: as it was at the start
    cut_off: object = None  # (place in `servers`) -> context in which nothing reaches it; None: a stopped process answers nothing anyway

    def leader_pid(self):
        """Who leads, asked of the running system where it can be asked again."""
        if self.leader_now is not None:
            return self.leader_now()
        return next(server.pid for server in self.servers if server.leads)


def pid_of_leader(processes, ports, leads):
    """Of the process whose port says that it leads; None if none does, or several do."""
    leading = [process.pid for process, port in zip(processes, ports) if leads(port)]
    return leading[0] if len(leading) == 1 else None


class Sample(NamedTuple):
    """One run of a load program. CPU in microseconds per operation; that of softirqs is the whole machine's, and the
    kernel charges most of it to whichever process was interrupted, too: beside the others, not on top of them.
    """

    operations: int
    operations_per_second: float
    p50_us: float
    p90_us: float  # None where a load program does not print it; p99.9 likewise
    p99_us: float
    p999_us: float
    server_cpu_us: float
    leader_user_us: float
    leader_system_us: float
    followers_user_us: float
    followers_system_us: float
    client_cpu_us: float
    softirq_us: float
    failed_requests: int
    others_percent: float
    idle_percent: float
    leader_us: float  # all its processes
    program_us: float  # of these the unmodified server, 0 if it is none


def put_on(cluster, workload, seconds):
    """Runs the load program; what it printed."""
    return printed_by(cluster.load_command(workload, seconds), seconds)


def printed_by(command, seconds):
    """Runs a load program for so long; what it printed."""
    return parse(output_of(command, seconds + LOAD_SECONDS_EXTRA))


def parse(text):
    with contextlib.suppress(ValueError):
        printed = json.loads(text)
        if isinstance(printed, dict):
            return printed
    raise Failed(f"the load program printed {text[:200]!r}")


def measure(cluster, workload, seconds):
    """Runs the load program and measures it, the servers and the machine meanwhile."""
    return measure_command(cluster, cluster.load_command(workload, seconds), seconds)[0]


def measure_command(cluster, command, seconds):
    """The same for any load: the sample, and what the load program printed."""
    pids = [server.pid for server in cluster.servers]
    before, machine_before, ours_before = used_by(pids), cpu.of_machine(), cpu.of_ended_children_and_self()
    printed = printed_by(command, seconds)
    ours = cpu.of_ended_children_and_self() - ours_before
    machine = cpu.of_machine().since(machine_before)
    after = used_by(pids)
    used = [(server, now.since(then)) for server, now, then in zip(cluster.servers, after, before)]
    return sample_of(printed, used, ours, machine), printed


def used_by(pids):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [cpu.of_process(pid) for pid in pids]
    raise Failed("a server has ended while it was measured")


def sample_of(printed, used, ours, machine):
    """`used` is of each server; `ours` of the load program and this one, seconds."""
    operations = printed["operations"]
    if operations < 1:
        raise Failed(f"no request succeeded: {printed['errors']}")

    def per_operation(seconds):
        return sum(seconds) * 1e6 / operations

    everything = machine.busy + machine.idle
    others = machine.busy - ours - sum(of_server.total for _, of_server in used)
    return Sample(
        operations=operations,
        operations_per_second=printed["operations_per_second"],
        p50_us=printed["latency_us"]["p50"],
        p90_us=printed["latency_us"].get("p90"),
        p99_us=printed["latency_us"]["p99"],
        p999_us=printed["latency_us"].get("p999"),
        server_cpu_us=per_operation(of_server.total for _, of_server in used),
        leader_user_us=per_operation(of_server.user for it, of_server in used if it.leads),
        leader_system_us=per_operation(of_server.system for it, of_server in used if it.leads),
        followers_user_us=per_operation(of_server.user for it, of_server in used if not it.leads),
        followers_system_us=per_operation(of_server.system for it, of_server in used if not it.leads),
        client_cpu_us=printed["client_cpu_us_per_operation"],
        softirq_us=per_operation([machine.softirq]),
        failed_requests=sum(printed["errors"].values()),
        # The kernel's two ways of counting differ by some ticks.
        others_percent=max(0.0, others) * 100 / everything,
        idle_percent=machine.idle * 100 / everything,
        leader_us=per_operation(of_server.total for it, of_server in used if it.leads),
        program_us=per_operation(of_server.total for it, of_server in used if it.leads and it.is_program),
    )

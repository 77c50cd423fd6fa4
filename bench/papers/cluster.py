"""What is measured: our replicas, or an unreplicated server in their place. Starting, asking, killing, halting, loading.

Nothing here knows which figure is wanted.
"""
import contextlib
import json
import os
import signal
import time
from typing import NamedTuple

import cpu
import load
import plane_load
from namespaces import FIRST_REPLICA_HOST
from processes import Failed, output_of, start, wait_until
from replica import COMMAND_SECONDS_MAX, HTTP_PORT, MEMCACHED_PORT, REDIS_PORT, Replicas, children_of, leader_of_serving, reports_of

# A loaded machine shall measure badly, not hold elections; figures with failures say another.
ELECTION_TIMEOUT_MS = 10_000
AGREE_SECONDS_MAX = 30
POLL_SECONDS = 0.05


class System(NamedTuple):
    """One line in a plot."""

    name: str
    plane: str  # as the option `plane` of the server, or an unreplicated server's name
    note: str
    program: str = ""  # an unmodified server that each replica runs, of replica.py's
    replicas: int = 3


OFF = System("planes off", "none", "three replicas, `--plane none`: replication by TCP in the servers")
SOCKET = System("socket", "socket", "three replicas, `--plane socket`: the fast path's step over UDP")
XDP = System("xdp", "xdp", "three replicas, `--plane xdp`: the fast path's step in the kernel's receive path")
MEMCACHED = System("memcached", "memcached", "one process, unreplicated, `-t 1`")
REDIS = System("redis", "redis", "one process, unreplicated, nothing on disk")
OURS = (OFF, SOCKET, XDP)
UNREPLICATED = (MEMCACHED, REDIS)


class Load(NamedTuple):
    """What `quorumwire bench` is told."""

    connections: int
    in_flight: int
    write_percent: int = 100
    value_bytes: int = 64
    keys: int = 1000
    protocol: str = "memcached"

    def words(self):
        named = {"connections": self.connections, "in-flight": self.in_flight, "value-bytes": self.value_bytes,
                 "keys": self.keys, "write-percent": self.write_percent, "protocol": self.protocol}
        return [word for name, value in named.items() for word in (f"--{name}", str(value))]


def serve_programs(status, members):
    """Whether clients reach the program of each member."""
    reports = reports_of(status)
    return all(reports.get(slot, {}).get("program") for slot in members)


class Loaded:
    """What a load can be put on."""

    def load_command(self, asked, seconds, more=(), everybody=False):
        """The words that put it on."""
        return self.place.at_client([
            str(self.tools.server), "bench", "--json", "--seconds", str(seconds),
            "--addr", self.addresses(asked.protocol, everybody), *asked.words(), *map(str, more),
        ])


class Cluster(Loaded):
    """Replicas that serve; they end with `stack`."""

    def __init__(self, stack, place, tools, system, folder, durability="memory", election_timeout_ms=ELECTION_TIMEOUT_MS):
        self.stack, self.place, self.tools, self.system, self.folder = stack, place, tools, system, folder
        self.members = list(range(system.replicas))
        addresses = [place.address(slot) for slot in self.members]
        self.replicas = Replicas(tools.server, folder, addresses, system.plane, durability, election_timeout_ms, program=system.program)
        self.keys = self.replicas.make_keys()
        self.processes = {slot: self.start_replica(slot) for slot in self.members}
        self.leader = self.wait_until_it_serves()

    def start_replica(self, slot):
        return start(self.stack, self.place.at_replica(slot, self.replicas.command(slot)), self.log(slot))

    def log(self, slot):
        return self.folder / f"replica-{slot}.log"

    def wait_until_it_serves(self):
        """Waits until a leader is known, all members answer, serve their program if they have one and, with planes, run a fast
        term; who leads."""
        leader = None

        def holds():
            nonlocal leader
            status = self.status()
            leader = leader_of_serving(status, self.members, self.system.plane)
            return leader is not None and (not self.system.program or serve_programs(status, self.members))

        alive = [self.processes[slot] for slot in self.members]
        wait_until(f"{self.system.name}: waiting for a leader", holds, alive, self.log(0))
        return leader

    def status(self):
        """What the first replica that answers says of all."""
        for slot in self.members:
            with contextlib.suppress(Failed, ValueError):
                # It fails where a member is away, and prints what it knows all the same.
                command = ["sh", "-c", '"$0" status --json --addr "$1" || true', str(self.tools.server), self.http(slot)]
                found = json.loads(output_of(self.place.at_client(command), COMMAND_SECONDS_MAX))
                if found.get("leader") is not None:
                    return found
        return {}

    def http(self, slot):
        return f"{self.place.address(slot)}:{HTTP_PORT}"

    def ask(self, *words, of=None):
        """One of the commands that change something, sent to a replica."""
        command = [str(self.tools.server), *words, "--addr", self.http(self.leader if of is None else of)]
        output_of(self.place.at_client(command), COMMAND_SECONDS_MAX)

    def demand(self, quorum):
        """Sets the quorum, `majority` or `all`, and waits until replicas serve with it."""
        # Asking for what is in force already is refused.
        if not self.has_quorum(quorum):
            self.ask("quorum", quorum)
        deadline = time.monotonic() + AGREE_SECONDS_MAX
        while not self.has_quorum(quorum):
            if time.monotonic() > deadline:
                raise Failed(f"{self.system.name}: not all of quorum {quorum} after {AGREE_SECONDS_MAX} s")
            time.sleep(POLL_SECONDS)
        self.leader = self.wait_until_it_serves()

    def has_quorum(self, quorum):
        reports = reports_of(self.status()).values()
        return bool(reports) and all(report.get("quorum") == quorum for report in reports)

    def durations(self):
        """What the leader counts of its own times so far, by name: buckets, and their sum in microseconds; empty: unknown."""
        for replica in self.status().get("replicas", []):
            if replica["id"] == self.leader and replica.get("report"):
                counted = replica["report"]["durations"]
                return {name: (of["bucket_counts"], of["sum_us"]) for name, of in counted.items()}
        return {}

    def kill(self, slot):
        os.kill(self.processes[slot].pid, signal.SIGKILL)

    def start_again(self, slot):
        self.processes[slot] = self.start_replica(slot)

    @contextlib.contextmanager
    def halted(self, slot):
        """A replica does nothing meanwhile: its process stands, and its cable, where there is one, is cut, because a
        program in the kernel would go on."""
        pid = self.processes[slot].pid
        with contextlib.ExitStack() as undone:
            cut = self.place.cut_off(slot)
            if cut is not None:
                undone.enter_context(cut)
            os.kill(pid, signal.SIGSTOP)
            undone.callback(os.kill, pid, signal.SIGCONT)
            yield

    @property
    def pids(self):
        return [self.processes[slot].pid for slot in self.members]

    def addresses(self, protocol="memcached", everybody=False):
        """Of the leader, or of all, the leader first."""
        port = REDIS_PORT if protocol == "redis" else MEMCACHED_PORT
        others = [slot for slot in self.members if slot != self.leader] if everybody else []
        return ",".join(f"{self.place.address(slot)}:{port}" for slot in [self.leader, *others])

    def servers(self):
        """And what they run."""
        replicas = [load.Server(self.processes[slot].pid, slot == self.leader) for slot in self.members]
        programs = ((child, replica.leads) for replica in replicas for child in children_of(replica.pid))
        return replicas + [load.Server(child, leads, is_program=True) for child, leads in programs]

    def as_running(self):
        """What `planes-load` is told of it; namespaces only."""
        of_planes = plane_load.System(self.system.name, self.system.note, self.system.plane, 3, [])
        return plane_load.Running(
            of_planes, self.place.network, self.pids, FIRST_REPLICA_HOST + self.leader, self.keys, self.tools,
        )


class Unreplicated(Loaded):
    """memcached or Redis alone where the first replica would be."""

    def __init__(self, stack, place, tools, system, folder):
        self.place, self.tools, self.system = place, tools, system
        self.port = MEMCACHED_PORT if system is MEMCACHED else REDIS_PORT
        own, log = place.address(0), folder / f"{system.plane}.log"
        if system is MEMCACHED:
            command = ["memcached", "-l", own, "-p", str(self.port), "-U", "0", "-t", "1", "-m", "1024"]
            command += ["-u", "root"] if os.geteuid() == 0 else []
        else:
            command = ["redis-server", "--port", str(self.port), "--bind", own, "--dir", str(folder), "--save", "",
                       "--appendonly", "no", "--protected-mode", "no"]
        self.process = start(stack, place.at_replica(0, command), log)
        wait_until(system.name, self.answers, [self.process], log)

    def answers(self):
        command = [str(self.tools.server), "bench", "--json", "--operations", "1", "--addr", self.addresses(), *self.words()]
        with contextlib.suppress(Failed):
            output_of(self.place.at_client(command), COMMAND_SECONDS_MAX)
            return True
        return False

    def words(self):
        return Load(1, 1, protocol=self.system.plane).words()

    def addresses(self, _protocol=None, everybody=False):
        del everybody  # there is one
        return f"{self.place.address(0)}:{self.port}"

    def servers(self):
        return [load.Server(self.process.pid, True, is_program=True)]


def put_on(cluster, asked, seconds, *more):
    """Runs the load program against the leader; what it printed, and the sample beside it (load.py)."""
    servers = cluster.servers()
    pids = [server.pid for server in servers]
    before, machine_before, ours_before = load.used_by(pids), cpu.of_machine(), cpu.of_ended_children_and_self()
    text = output_of(cluster.load_command(asked, seconds, more), seconds + load.LOAD_SECONDS_EXTRA)
    try:
        printed = json.loads(text)
    except ValueError:
        raise Failed(f"the load program printed {text[:200]!r}") from None
    ours = cpu.of_ended_children_and_self() - ours_before
    machine = cpu.of_machine().since(machine_before)
    used = [(server, now.since(then)) for server, now, then in zip(servers, load.used_by(pids), before)]
    return printed, load.sample_of(printed, used, ours, machine)

"""What the peers that are Go programs of ours have in common: building, starting, and finding who leads.

Each is a replicated key-value server over a library for Raft that others use, asked in Redis' protocol.
"""
import os
import re
import shutil
import socket
from pathlib import Path

from load import LATENCY, MANY, PIPELINED, READS, WIDE, Cluster, Server
from peers.quorumwire import Load
from processes import Failed, free_ports, output_of, start, wait_until

COMMAND_SECONDS_MAX = 20
# With what they need, on a machine that never did.
BUILD_SECONDS_MAX = 1800
ASK_SECONDS_MAX = 2
ANSWER_BYTES_MAX = 1 << 12
INFO = b"*1\r\n$4\r\nINFO\r\n"


class GoPeer:
    """A cluster of one of the programs beside this file; a subclass says which, and what it is called."""

    name = note = source = library = None
    workloads = [LATENCY, MANY, PIPELINED, READS, WIDE]

    def __init__(self, built, load_binary, replicas=3):
        self.binary = built / self.source
        self.load_binary = load_binary
        self.replicas = replicas

    def options(self, _folder, _replica):
        """What this program is told beside the addresses."""
        return []

    def missing(self):
        """Why it cannot be measured; None if it can. Builds it."""
        if shutil.which("go") is None:
            return "it needs Go to be built: `tools/setup bench`"
        if not os.access(self.load_binary, os.X_OK):
            return f"its load program, {self.load_binary.name}, is not built: `make build`"
        command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(self.binary), "."]
        try:
            output_of(command, BUILD_SECONDS_MAX, cwd=self.folder_of_source())
        except Failed as failed:
            return f"it cannot be built: {failed}"
        return None

    def folder_of_source(self):
        return Path(__file__).parent / self.source

    def version(self):
        found = re.search(rf"{re.escape(self.library)} (v\S+)", (self.folder_of_source() / "go.mod").read_text())
        if not found:
            raise Failed(f"{self.name}: no {self.library} in go.mod")
        go = output_of(["go", "env", "GOVERSION"], COMMAND_SECONDS_MAX).strip()
        return f"{self.library} {found[1]} ({go})"

    def start(self, stack, folder):
        """Starts the replicas and waits until all know who leads; they end with `stack`."""
        log_path = folder / f"{self.source}.log"
        ports = free_ports(2 * self.replicas)
        peer_ports, client_ports = ports[: self.replicas], ports[self.replicas :]
        common = [str(self.binary), "-peers", listed(peer_ports), "-clients", listed(client_ports)]
        processes = [
            start(stack, [*common, "-replica", str(replica), *self.options(folder, replica)], log_path)
            for replica in range(self.replicas)
        ]
        wait_until(self.name, lambda: leader_of(client_ports) is not None, processes, log_path)
        leader = leader_of(client_ports)
        if leader is None:
            raise Failed(f"{self.name}: the leader was lost at once")
        servers = [Server(process.pid, port == leader) for process, port in zip(processes, client_ports)]
        return self.cluster(servers, client_ports, leader)

    def cluster(self, servers, ports, leader):
        """`servers` in the order of `ports`, of which one is the leader's."""
        load = Load(self.load_binary, address(leader), "--protocol", "redis")
        everywhere = Load(self.load_binary, listed(ports), "--protocol", "redis")
        pids = dict(zip(ports, (server.pid for server in servers)))
        return Cluster(
            servers,
            load.of_workload,
            survive_command=everywhere.surviving,
            load_with=load.with_more,
            leader_now=lambda: pids.get(leader_of(ports, some_may_be_dead=True)),
        )


def address(port):
    return f"127.0.0.1:{port}"


def listed(ports):
    return ",".join(map(address, ports))


def leader_of(ports, some_may_be_dead=False):
    """The port of the one that says it leads, if all name it; else None. Those who may be dead may say nothing."""
    answers = {port: ask(port) for port in ports}
    said = {port: standing_of(answer) for port, answer in answers.items() if answer or not some_may_be_dead}
    leading = [port for port, (role, _) in said.items() if role == "leader"]
    if len(leading) == 1 and all(leader == address(leading[0]) for _, leader in said.values()):
        return leading[0]
    return None


def ask(port):
    """What a replica answers to INFO; empty if it does not."""
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), ASK_SECONDS_MAX) as connection:
            connection.sendall(INFO)
            # Its end: an empty string's end behind the last line's.
            while not answer.endswith(b"\r\n\r\n") and len(answer) < ANSWER_BYTES_MAX:
                part = connection.recv(ANSWER_BYTES_MAX)
                if not part:
                    return ""
                answer += part
    except OSError:
        return ""
    return answer.decode(errors="replace")


def standing_of(answer):
    """Role and leader's address; both empty if the answer is not understood."""
    found = re.search(r"^role:(leader|follower)\r\nleader:(\S*)\r$", answer, re.MULTILINE)
    return (found[1], found[2]) if found else ("", "")

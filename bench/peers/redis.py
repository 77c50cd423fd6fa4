"""Redis: unreplicated, and with one replica that a client waits for. The upper bound of what a server behind the same
protocol does here, and what people use today for data that shall survive a machine.
"""
import os
import shutil

from load import LATENCY, MANY, PIPELINED, READS, WIDE, Cluster, Server
from peers.quorumwire import Load
from processes import free_ports, output_of, start, wait_until

COMMAND_SECONDS_MAX = 20


class Redis:
    """One process, or two of which the second is the first one's replica."""

    keeps_nothing = True  # on a disk, as it is started here

    def __init__(self, load_binary, replicated):
        self.load_binary = load_binary
        self.replicated = replicated
        # What others serve unmodified is measured beside it.
        self.program = None if replicated else "redis-server"
        if replicated:
            self.name = "redis, WAIT 1"
            self.note = "a server and its replica, nothing on disk; behind each write a `WAIT 1 0`, sent with it"
            self.workloads = [LATENCY, MANY, PIPELINED, WIDE]
        else:
            self.name = "redis"
            self.note = "one process, unreplicated, nothing on disk; the same load program"
            self.workloads = [LATENCY, MANY, PIPELINED, WIDE, READS]

    def missing(self):
        if shutil.which("redis-server") is None:
            return "redis-server is not installed: `tools/setup`"
        if not os.access(self.load_binary, os.X_OK):
            return f"its load program, {self.load_binary.name}, is not built: `make build`"
        return None

    def version(self):
        return output_of(["redis-server", "--version"], COMMAND_SECONDS_MAX).strip()

    def start(self, stack, folder):
        """Starts it and waits until it serves and its replica follows; it ends with `stack`."""
        ports = free_ports(2 if self.replicated else 1)
        servers = []
        for place, port in enumerate(ports):
            log_path = folder / f"redis-{place}.log"
            data = folder / f"redis-{place}"
            data.mkdir()
            command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(data),
                       "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"]
            if place > 0:
                command += ["--replicaof", "127.0.0.1", str(ports[0])]
            servers.append(start(stack, command, log_path))
        wanted = f"connected_slaves:{len(ports) - 1}"
        last = folder / f"redis-{len(ports) - 1}.log"
        wait_until("redis", lambda: wanted in self.replication(ports[0]) and self.is_up(ports), servers, last)
        more = ["--protocol", "redis", *(["--wait", "1"] if self.replicated else [])]
        processes = [Server(process.pid, place == 0, is_program=True) for place, process in enumerate(servers)]
        address = f"127.0.0.1:{ports[0]}"
        # It cannot send a `WAIT` behind each write.
        alone = None if self.replicated else address
        load = Load(self.load_binary, address, *more)
        # Without Redis Sentinel nobody takes over.
        return Cluster(processes, load.of_workload, alone, load_with=load.with_more)

    def is_up(self, ports):
        """Whether the replica, if there is one, has all that the server has."""
        return not self.replicated or "master_link_status:up" in self.replication(ports[1])

    def replication(self, port):
        # Before it listens the command fails, and says so on its standard output.
        command = ["sh", "-c", f"redis-cli -p {port} info replication || true"]
        return output_of(command, COMMAND_SECONDS_MAX)

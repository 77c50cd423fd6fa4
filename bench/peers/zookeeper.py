"""Debian's ZooKeeper: one server for each replica, and the load program over a Go client."""
import contextlib
import re
import shutil
import socket
from pathlib import Path

from load import LATENCY, MANY, PIPELINED, READS, Cluster, Server, pid_of_leader
from peers.go_programs import COMMAND_SECONDS_MAX, LoadProgram
from processes import Failed, free_ports, output_of, start, wait_until

JAR = Path("/usr/share/java/zookeeper.jar")
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
VERSION_MAIN = "org.apache.zookeeper.version.VersionInfoMain"
ASK_SECONDS_MAX = 2
ANSWER_BYTES_MAX = 1 << 16
# Load that is not counted, before the first measurement of a turn: Java compiles what is used often only after some
# seconds, and is several times slower before.
JIT_WARM_UP_SECONDS = 8
WARM_UP_EXTRA_SECONDS_MAX = 60
# As Debian's and the project's own example have it, but for the last five lines.
CONFIGURATION = """
tickTime=2000
initLimit=10
syncLimit=5
dataDir={data}
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
forceSync=no
admin.enableServer=false
4lw.commands.whitelist=srvr
"""
LOGGING = """
log4j.rootLogger=WARN, CONSOLE
log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender
log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout
log4j.appender.CONSOLE.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
"""


class ZooKeeper:
    """Without waiting for disks: `forceSync=no`, as our `memory` does not either."""

    name = "zookeeper"
    workloads = [LATENCY, MANY, PIPELINED, READS]

    def __init__(self, built, replicas=3):
        self.replicas = replicas
        self.load = LoadProgram(built, "zookeeper", "github.com/go-zookeeper/zk")
        self.note = (
            f"Debian’s, {replicas} servers, data on tmpfs, `forceSync=no`, so it waits for no disk; load on the leader by a program "
            f"over a Go client, after {JIT_WARM_UP_SECONDS} s of load for Java’s compiler; a read is `sync` and `getData`, which "
            "is as near to linearizable as it comes"
        )

    def missing(self):
        """Why it cannot be measured; None if it can. Builds its load program."""
        if not JAR.exists() or shutil.which("java") is None:
            return "zookeeper is not installed: `tools/setup bench`"
        return self.load.why_not_built()

    def version(self):
        said = output_of(["java", "-cp", str(JAR), VERSION_MAIN], COMMAND_SECONDS_MAX)
        number = re.search(r"version (\S+)", said)
        java = output_of(["java", "--version"], COMMAND_SECONDS_MAX).splitlines()
        if not (number and java):
            raise Failed(f"ZooKeeper's version is not understood: {said!r}")
        return f"ZooKeeper {number[1].rstrip(',')} ({java[0]}), {self.load.version()}"

    def start(self, stack, folder):
        """Starts the servers, waits until one leads and the others follow it, and warms Java up; they end with `stack`."""
        log_path = folder / "zookeeper.log"
        ports = free_ports(3 * self.replicas)
        clients = ports[:self.replicas]
        quorum = list(zip(ports[self.replicas:2 * self.replicas], ports[2 * self.replicas:]))
        everyone = "".join(f"server.{n}=127.0.0.1:{peer}:{election}\n" for n, (peer, election) in enumerate(quorum, start=1))
        (folder / "log4j.properties").write_text(LOGGING)
        processes = []
        for n, port in enumerate(clients, start=1):
            data = folder / f"zookeeper-{n}"
            data.mkdir()
            (data / "myid").write_text(f"{n}\n")
            settings = folder / f"zookeeper-{n}.cfg"
            settings.write_text(CONFIGURATION.format(data=data, port=port) + everyone)
            command = ["java", "-cp", f"{folder}:{JAR}", MAIN, str(settings)]
            processes.append(start(stack, command, log_path))
        modes = ["follower"] * (self.replicas - 1) + ["leader"]
        wait_until(self.name, lambda: sorted(map(mode, clients)) == modes, processes, log_path)
        servers = [Server(process.pid, mode(port) == "leader") for process, port in zip(processes, clients)]
        if [server.leads for server in servers].count(True) != 1:
            raise Failed(f"{self.name}: who leads has changed at once")
        addresses = [f"127.0.0.1:{port}" for port in clients]
        leader = next(address for address, server in zip(addresses, servers) if server.leads)
        cluster = Cluster(
            servers,
            **self.load.commands(leader, addresses),
            leader_now=lambda: pid_of_leader(processes, clients, lambda port: mode(port) == "leader"),
        )
        output_of(cluster.load_command(PIPELINED, JIT_WARM_UP_SECONDS), JIT_WARM_UP_SECONDS + WARM_UP_EXTRA_SECONDS_MAX)
        return cluster


def mode(port):
    """What a server says it is by the four-letter word `srvr`: leader or follower; empty while it is neither."""
    found = re.search(r"^Mode: (\w+)$", ask(port, b"srvr"), re.MULTILINE)
    return found[1] if found else ""


def ask(port, word):
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), ASK_SECONDS_MAX) as connection:
        connection.sendall(word)
        while len(answer) < ANSWER_BYTES_MAX and (more := connection.recv(ANSWER_BYTES_MAX)):
            answer += more
    return answer.decode(errors="replace")

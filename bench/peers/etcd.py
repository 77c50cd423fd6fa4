"""etcd: 3.6, built here, and Debian's; load by a program over etcd's own client."""
import http.client
import json
import re
import shutil

from load import LATENCY, MANY, PIPELINED, READS, WIDE, Cluster, Server, pid_of_leader
from peers.go_programs import AS_RELEASED, COMMAND_SECONDS_MAX, PEERS, LoadProgram, why_not_built
from processes import Failed, free_ports, output_of, start, wait_until

ASK_SECONDS_MAX = 2
ANSWER_BYTES_MAX = 1 << 20
SERVER_SOURCE = PEERS / "etcd36"
SERVER_PACKAGE = "go.etcd.io/etcd/server/v3"


class Etcd:
    """As it comes, but for its data on tmpfs and less logging."""

    def __init__(self, built, debian=False, replicas=3):
        self.debian = debian
        self.replicas = replicas
        self.binary = "etcd" if debian else str(built / "etcd-3.6")
        self.load = LoadProgram(built, "etcd", "go.etcd.io/etcd/client/v3")
        self.name = "etcd (Debian)" if debian else "etcd"
        self.note = (
            f"{'Debian’s' if debian else '3.6, built here'}, {replicas} members, data on tmpfs, defaults; "
            "load on the leader by a program over its own Go client; its reads are linearizable"
        )
        self.workloads = [LATENCY, PIPELINED] if debian else [LATENCY, MANY, PIPELINED, READS, WIDE]

    def missing(self):
        """Why it cannot be measured; None if it can. Builds it and its load program."""
        if not self.debian:
            reason = why_not_built("it", SERVER_SOURCE, SERVER_PACKAGE, self.binary, AS_RELEASED)
        else:
            reason = None if shutil.which(self.binary) else "etcd is not installed: `tools/setup bench`"
        return reason or self.load.why_not_built()

    def version(self):
        server = output_of([self.binary, "--version"], COMMAND_SECONDS_MAX)
        number = re.search(r"etcd Version: (\S+)", server)
        built_with = re.search(r"Go Version: (\S+)", server)
        if not (number and built_with):
            raise Failed(f"etcd's version is not understood: {server!r}")
        return f"etcd {number[1]} ({built_with[1]}), {self.load.version()}"

    def start(self, stack, folder):
        """Starts the members and waits until all are healthy; they end with `stack`."""
        log_path = folder / "etcd.log"
        ports = free_ports(2 * self.replicas)
        client_ports, peer_ports = ports[:self.replicas], ports[self.replicas:]
        everyone = ",".join(f"member{n}=http://127.0.0.1:{port}" for n, port in enumerate(peer_ports))
        processes = []
        for n in range(self.replicas):
            client, peer = (f"http://127.0.0.1:{port}" for port in (client_ports[n], peer_ports[n]))
            command = [
                self.binary, "--name", f"member{n}", "--data-dir", str(folder / f"member{n}"),
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", everyone, "--initial-cluster-state", "new",
                "--initial-cluster-token", "quorumwire-bench", "--logger", "zap", "--log-level", "warn",
            ]
            processes.append(start(stack, command, log_path))
        wait_until(self.name, lambda: all(healthy(port) for port in client_ports), processes, log_path)
        leads = [is_leader(port) for port in client_ports]
        if leads.count(True) != 1:
            raise Failed(f"{self.name}: {leads.count(True)} leaders")
        servers = [Server(process.pid, leading) for process, leading in zip(processes, leads)]
        addresses = [f"127.0.0.1:{port}" for port in client_ports]
        return Cluster(
            servers,
            **self.load.commands(addresses[leads.index(True)], addresses),
            leader_now=lambda: pid_of_leader(processes, client_ports, is_leader),
        )


def ask(port, method, path, body=None):
    """One JSON answer; None if there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_SECONDS_MAX)
    try:
        connection.request(method, path, body)
        return json.loads(connection.getresponse().read(ANSWER_BYTES_MAX))
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def healthy(port):
    return (ask(port, "GET", "/health") or {}).get("health") == "true"


def is_leader(port):
    status = ask(port, "POST", "/v3/maintenance/status", "{}") or {}
    return status.get("leader") is not None and status["leader"] == status.get("header", {}).get("member_id")

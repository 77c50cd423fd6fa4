"""Debian's etcd: three members, and the load program over etcd's own client, built here."""
import http.client
import json
import re
import shutil
from pathlib import Path

from load import KEYS, LATENCY, PIPELINED, VALUE_BYTES, WIDE, Cluster, Server
from processes import Failed, free_ports, output_of, start, wait_until

COMMAND_SECONDS_MAX = 20
BUILD_SECONDS_MAX = 900
ASK_SECONDS_MAX = 2
MEMBERS = 3
LOAD_SOURCE = Path(__file__).parent / "etcd-load"


class Etcd:
    """As it comes, but for its data on tmpfs and less logging."""

    name = "etcd"
    note = "three members, data on tmpfs, defaults; load on the leader by a program over its own Go client"
    workloads = [LATENCY, PIPELINED, WIDE]

    def __init__(self, built):
        self.load_binary = built / "etcd-load"

    def missing(self):
        """Why it cannot be measured; None if it can. Builds its load program."""
        if shutil.which("etcd") is None:
            return "etcd is not installed: `tools/setup bench`"
        if shutil.which("go") is None:
            return "its load program needs Go to be built: `tools/setup bench`"
        command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(self.load_binary), "."]
        try:
            output_of(command, BUILD_SECONDS_MAX, cwd=LOAD_SOURCE)
        except Failed as failed:
            return f"its load program cannot be built: {failed}"
        return None

    def version(self):
        server = output_of(["etcd", "--version"], COMMAND_SECONDS_MAX)
        number = re.search(r"etcd Version: (\S+)", server)
        built_with = re.search(r"Go Version: (\S+)", server)
        client = re.search(r"etcd/client/v3 (v\S+)", (LOAD_SOURCE / "go.mod").read_text())
        go = output_of(["go", "env", "GOVERSION"], COMMAND_SECONDS_MAX).strip()
        if not (number and built_with and client):
            raise Failed(f"etcd's version is not understood: {server!r}")
        return f"etcd {number[1]} ({built_with[1]}), client {client[1]} ({go})"

    def start(self, stack, folder):
        """Starts the members and waits until all are healthy; they end with `stack`."""
        log_path = folder / "etcd.log"
        ports = free_ports(2 * MEMBERS)
        client_ports, peer_ports = ports[:MEMBERS], ports[MEMBERS:]
        everyone = ",".join(f"member{n}=http://127.0.0.1:{port}" for n, port in enumerate(peer_ports))
        processes = []
        for n in range(MEMBERS):
            client, peer = (f"http://127.0.0.1:{port}" for port in (client_ports[n], peer_ports[n]))
            command = [
                "etcd", "--name", f"member{n}", "--data-dir", str(folder / f"member{n}"),
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", everyone, "--initial-cluster-state", "new",
                "--initial-cluster-token", "quorumwire-bench", "--logger", "zap", "--log-level", "warn",
            ]
            processes.append(start(stack, command, log_path))
        wait_until("etcd", lambda: all(healthy(port) for port in client_ports), processes, log_path)
        leads = [is_leader(port) for port in client_ports]
        if leads.count(True) != 1:
            raise Failed(f"etcd: {leads.count(True)} leaders")
        servers = [Server(process.pid, leading) for process, leading in zip(processes, leads)]
        return Cluster(servers, self.load_command(client_ports[leads.index(True)]))

    def load_command(self, port):
        return lambda workload, seconds: [
            str(self.load_binary), "-endpoints", f"127.0.0.1:{port}", "-seconds", str(seconds),
            "-connections", str(workload.connections), "-in-flight", str(workload.in_flight),
            "-value-bytes", str(VALUE_BYTES), "-keys", str(KEYS),
        ]


def ask(port, method, path, body=None):
    """One small JSON answer; None if there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_SECONDS_MAX)
    try:
        connection.request(method, path, body)
        return json.loads(connection.getresponse().read(1 << 16))
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def healthy(port):
    return (ask(port, "GET", "/health") or {}).get("health") == "true"


def is_leader(port):
    status = ask(port, "POST", "/v3/maintenance/status", "{}") or {}
    return status.get("leader") is not None and status["leader"] == status.get("header", {}).get("member_id")

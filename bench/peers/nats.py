"""NATS JetStream: servers built here, one bucket in their memory, and the load program over NATS' own client."""
import json

from load import LATENCY, MANY, PIPELINED, Cluster, Server
from peers.etcd import ask
from peers.go_programs import AS_RELEASED, COMMAND_SECONDS_MAX, PEERS, LoadProgram, why_not_built
from processes import Failed, free_ports, output_of, start, wait_until

SERVER_SOURCE = PEERS / "nats-server"
SERVER_PACKAGE = "github.com/nats-io/nats-server/v2"
# The stream behind the load program's bucket.
STREAM = "KV_bench"
STREAMS_PATH = "/jsz?accounts=true&streams=true"


class Nats:
    """A write is a publish that the stream's leader acknowledges once a majority has it."""

    name = "nats"
    # A bucket's reads are answered by any replica, or by the leader without asking.
    why_not_read = "it has no linearizable read"
    workloads = [LATENCY, MANY, PIPELINED]
    # Of a stream.
    replicas_max = 5

    def __init__(self, built, replicas=3):
        self.replicas = replicas
        self.binary = built / "nats-server"
        self.load = LoadProgram(built, "nats", "github.com/nats-io/nats.go", "--replicas", str(replicas))
        self.note = (
            f"JetStream, built here, {replicas} servers, one bucket of {replicas} replicas in memory, defaults; load on the server that "
            "leads the bucket’s stream, by a program over its own Go client"
        )

    def missing(self):
        """Why it cannot be measured; None if it can. Builds it and its load program."""
        return why_not_built("it", SERVER_SOURCE, SERVER_PACKAGE, self.binary, AS_RELEASED) or self.load.why_not_built()

    def version(self):
        return f"{output_of([str(self.binary), '--version'], COMMAND_SECONDS_MAX).strip()}, {self.load.version()}"

    def start(self, stack, folder):
        """Starts the servers, makes the bucket and waits until all its replicas are up to date; they end with `stack`."""
        log_path = folder / "nats.log"
        ports = free_ports(3 * self.replicas)
        clients, routes, monitors = (ports[n * self.replicas:][:self.replicas] for n in range(3))
        processes = []
        for n in range(self.replicas):
            settings = folder / f"nats-{n}.json"
            settings.write_text(json.dumps(configuration(n, folder, clients[n], routes, monitors[n])))
            processes.append(start(stack, [str(self.binary), "--config", str(settings)], log_path))
        wait_until(self.name, lambda: all(has_leader(port, self.replicas) for port in monitors), processes, log_path)
        addresses = [f"127.0.0.1:{port}" for port in clients]
        self.load.prepare(addresses[0])
        wait_until(f"{self.name}: the stream", lambda: self.leader(monitors) is not None, processes, log_path)
        leader = self.leader(monitors)
        if leader is None:
            raise Failed(f"{self.name}: the stream's leader was lost at once")
        servers = [Server(process.pid, n == leader) for n, process in enumerate(processes)]
        pids = dict(enumerate(server.pid for server in servers))
        return Cluster(servers, **self.load.commands(addresses[leader], addresses), leader_now=lambda: pids.get(self.leader(monitors, behind_max=1)))

    def leader(self, monitors, behind_max=0):
        """Which server says that it leads the stream and that all others but so many are up to date; None if none does."""
        for n, port in enumerate(monitors):
            stream = stream_of(ask(port, "GET", STREAMS_PATH)) or {}
            cluster = stream.get("cluster") or {}
            others = cluster.get("replicas") or []
            current = [replica for replica in others if replica.get("current")]
            if cluster.get("leader") == server_name(n) and len(current) >= self.replicas - 1 - behind_max:
                return n
        return None


def server_name(n):
    return f"server{n}"


def configuration(n, folder, client, routes, monitor):
    """Of one server. JSON is understood as NATS' own language, too."""
    return {
        "server_name": server_name(n),
        "listen": f"127.0.0.1:{client}",
        "http": f"127.0.0.1:{monitor}",
        "jetstream": {"store_dir": str(folder / f"nats-{n}")},
        "cluster": {
            "name": "quorumwire-bench",
            "listen": f"127.0.0.1:{routes[n]}",
            "routes": [f"nats://127.0.0.1:{port}" for port in routes],
        },
    }


def has_leader(monitor, replicas):
    """Whether a server knows who leads JetStream, among all servers."""
    meta = (ask(monitor, "GET", "/jsz") or {}).get("meta_cluster") or {}
    return bool(meta.get("leader")) and meta.get("cluster_size") == replicas


def stream_of(answer):
    """The stream's part of what a monitoring port says; None if it is not there."""
    for account in (answer or {}).get("account_details") or []:
        for stream in account.get("stream_detail") or []:
            if stream.get("name") == STREAM:
                return stream
    return None

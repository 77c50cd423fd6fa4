"""Unmodified servers that replicas of ours run: `quorumwire run`, as `quorumwire dev` starts it."""
import shutil

from load import Cluster, Server
from peers.quorumwire import Load, Quorumwire
from processes import free_ports
from replica import PROGRAMS, children_of


class Served(Quorumwire):
    """One of them on each replica; only the part on unmodified servers asks it."""

    def __init__(self, binary, program, durability="memory", replicas=3):
        arguments, protocol = PROGRAMS[program]
        super().__init__(binary, durability, protocol, replicas=replicas, experiments=("served",))
        self.program, self.arguments = program, arguments
        self.name = f"quorumwire run, {program}"
        self.note = (
            f"{replicas} replicas, each with a {program} of its own, `--durability {durability}`, without TLS, data on tmpfs; "
            "load on the leader"
        )

    def missing(self):
        if shutil.which(self.program) is None:
            return f"{self.program} is not installed: `tools/setup bench`"
        return super().missing()

    def of_servers(self):
        (port,) = free_ports(1)
        return [*(super().of_servers() or ["--"]), "--", self.program, *self.arguments, str(port)]

    def cluster(self, started):
        replicas, leading = self.replicas_of(started)
        servers = [Server(replica["pid"], replica is leading) for replica in replicas]
        servers += [Server(child, server.leads, is_program=True) for server in servers for child in children_of(server.pid)]
        load = Load(self.binary, leading["server"], "--protocol", self.protocol)
        return Cluster(servers, load.of_workload, load_with=load.with_more)


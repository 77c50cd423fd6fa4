"""Our own cluster with its common case in the kernel: servers and load programs in network namespaces (namespaces.py)."""
import os
from pathlib import Path

import plane_load
from load import LATENCY, MANY, PIPELINED, READS, WIDE, Cluster, Server
from namespaces import CLIENT_HOST, FIRST_REPLICA_HOST, address, port
from peers.quorumwire import COMMAND_SECONDS_MAX, Load
from plane_load import System, Tools
from peers.interface import interfaces
from processes import output_of
from replica import MEMCACHED_PORT


class QuorumwireXdp:
    """`--plane xdp` behind the same load program as everybody else's: TCP, over a Linux bridge."""

    def __init__(self, binary, durability="memory", replicas=3, experiments=None):
        self.binary = binary
        self.durability = durability
        self.replicas = replicas
        self.experiments = experiments
        self.name = f"quorumwire {durability}, plane xdp"
        self.note = (
            f"{replicas} replicas, `--plane xdp`, `--durability {durability}`, each in a network namespace; load on the leader by TCP from another one, over a "
            "bridge, which the others on loopback do not have to cross; a UDP client is in the part on data planes"
        )
        self.workloads = [LATENCY, MANY, PIPELINED, WIDE, READS] if experiments is None else []

    def missing(self):
        """Why it cannot be measured; None if it can."""
        if os.geteuid() != 0:
            return "network namespaces take root"
        if not os.access(self.binary, os.X_OK):
            return f"{self.binary.name} is not built: `make build`"
        return None

    def version(self):
        return output_of([str(self.binary), "--version"], COMMAND_SECONDS_MAX).strip()

    def interfaces(self):
        """With the plane's programs and without."""
        return interfaces(self.binary)

    def start(self, stack, folder):
        """Starts it and waits until a fast term runs; it ends with `stack`, network included."""
        # Timeouts are the defaults: leaders are killed here.
        system = System(self.name, self.note, "xdp", self.replicas, [], election_timeout_ms=None, durability=self.durability)
        tools = Tools(self.binary, Path())
        network = plane_load.make_network(stack, tools, self.replicas)
        processes, leader, _ = plane_load.start_replicas(stack, system, network, tools, folder)
        addresses = [f"{address(FIRST_REPLICA_HOST + slot)}:{MEMCACHED_PORT}" for slot in range(self.replicas)]
        load, everywhere = Load(self.binary, addresses[leader]), Load(self.binary, ",".join(addresses))

        def from_client(words):
            return lambda *asked, **more: network.command_in(CLIENT_HOST, words(*asked, **more))

        def leader_now():
            now = plane_load.status_of(network, tools).get("leader")
            return None if now is None else processes[now].pid

        return Cluster(
            [Server(process.pid, slot == leader) for slot, process in enumerate(processes)],
            from_client(load.of_workload),
            survive_command=from_client(everywhere.surviving),
            load_with=from_client(load.with_more),
            leader_now=leader_now,
            cut_off=lambda slot: plane_load.cut_cable(network, port(FIRST_REPLICA_HOST + slot)),
        )

"""A machine whose interface has, or has not, programs of ours, and on it servers that have nothing to do with them."""
import shutil

import namespaces
import plane_load
from load import Cluster, Server
from namespaces import CLIENT_HOST, FIRST_REPLICA_HOST, INTERFACE, address, port
from peers.quorumwire import Load
from plane_load import System, Tools
from processes import Failed, start, wait_until

REPLICAS = 3
# Not that of the replica's own clients.
MEMCACHED_PORT = 11311
IPERF_PORT = 5201
INTO, OUT_OF = "in", "out"


class Interface:
    """`mode`: where the plane's program is, or None without replicas; `passes`: a program that lets everything pass at each end."""

    def __init__(self, binary, name, note, mode=None, passes=False):
        self.binary, self.name, self.note, self.mode, self.passes = binary, name, note, mode, passes

    def start(self, stack, folder):
        """Ends with `stack`, network included."""
        for program in ("iperf3", "memcached"):
            if shutil.which(program) is None:
                raise Failed(f"{program} is not installed: `tools/setup bench`")
        network = namespaces.Network(stack, REPLICAS)
        replicas = range(FIRST_REPLICA_HOST, FIRST_REPLICA_HOST + REPLICAS)
        # In generic mode nothing leaves by a way that takes them.
        if self.passes or self.mode == "driver":
            self.let_pass(network, "sw", map(port, replicas))
        if self.passes:
            self.let_pass(network, FIRST_REPLICA_HOST, [INTERFACE])
        processes, host = self.start_replicas(stack, network, folder) if self.mode else ([], FIRST_REPLICA_HOST)
        memcached = plane_load.memcached_at(stack, network, host, MEMCACHED_PORT, self.binary, folder)
        start_iperf(stack, network, host, folder)
        load = Load(self.binary, f"{address(host)}:{MEMCACHED_PORT}")
        return Cluster(
            [Server(process.pid, process is memcached) for process in [memcached, *processes]],
            None,
            load_with=lambda *asked: network.command_in(CLIENT_HOST, load.with_more(*asked)),
            bulk_command=lambda *asked: network.command_in(CLIENT_HOST, iperf(host, *asked)),
        )

    def let_pass(self, network, host, interfaces):
        namespaces.quiet(network.command_in(host, [str(self.binary), "veth-pass", *interfaces]))

    def start_replicas(self, stack, network, folder):
        """Their processes, and where the leader is."""
        system = System(self.name, self.note, "xdp", REPLICAS, [], options=("--xdp-mode", self.mode))
        tools = Tools(self.binary, None)
        replicas = plane_load.replicas_of(system, tools, folder)
        replicas.make_keys()
        processes = plane_load.start_replicas(stack, system, network, replicas)
        return processes, FIRST_REPLICA_HOST + plane_load.wait_for_fast_term(system, network, tools, folder, processes)


def start_iperf(stack, network, host, folder):
    log = folder / "iperf3.log"
    words = ["iperf3", "--server", "--forceflush", "--bind", address(host), "--port", str(IPERF_PORT)]
    process = start(stack, network.command_in(host, words), log)
    wait_until("iperf3", lambda: b"listening" in log.read_bytes(), [process], log)


def iperf(host, direction, seconds, warm_up_seconds):
    """The words that send as much as one TCP connection can, into a host or out of it."""
    return ["iperf3", "--json", "--client", address(host), "--port", str(IPERF_PORT), "--time", str(seconds), "--omit", str(warm_up_seconds),
            *(["--reverse"] if direction == OUT_OF else [])]


def gbit_per_second(printed):
    """What arrived, of what iperf3 printed."""
    return printed["end"]["sum_received"]["bits_per_second"] / 1e9


def interfaces(binary):
    """Those that are compared; to the first one."""
    return [
        Interface(binary, "no program", "no replica runs, no interface has a program"),
        Interface(
            binary, "programs that let all pass", "no replica runs; `quorumwire veth-pass` at both ends of the replicas' cables: what any "
            "program in a veth pair's driver costs", passes=True,
        ),
        Interface(binary, "plane xdp", "three idle replicas, `--plane xdp --xdp-mode driver`, `veth-pass` at the other ends", "driver"),
        Interface(binary, "plane xdp, generic mode", "three idle replicas, `--plane xdp --xdp-mode generic`, no `veth-pass`", "generic"),
    ]

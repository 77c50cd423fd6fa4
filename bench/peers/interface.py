"""A machine whose interface has, or has not, programs of ours, and on it servers that have nothing to do with them."""
import contextlib
import shutil

import namespaces
import plane_load
from load import LOAD_SECONDS_EXTRA, Cluster, Server, parse
from namespaces import CLIENT_HOST, FIRST_REPLICA_HOST, INTERFACE, address, port
from peers.quorumwire import Load
from plane_load import System, Tools, Usage
from processes import Failed, output_of, start, wait_until

REPLICAS = 3
# Not that of the replica's own clients.
MEMCACHED_PORT = 11311
INTO, OUT_OF = "in", "out"
NOWHERE = "none"


class Interface:
    """`mode`: where the plane's program is, `NOWHERE` without a plane, or None without replicas; `passes`: programs that let everything pass, at both ends of cables."""

    def __init__(self, binary, name, note, mode=None, passes=False):
        self.binary, self.name, self.note, self.mode, self.passes = binary, name, note, mode, passes

    def start(self, stack, folder):
        """Ends with `stack`, network included."""
        network = namespaces.Network(stack, REPLICAS)
        replicas = range(FIRST_REPLICA_HOST, FIRST_REPLICA_HOST + REPLICAS)
        # In generic mode nothing leaves by a way that takes them.
        if self.passes or self.mode == "driver":
            plane_load.let_pass(network, self.binary, "sw", map(port, replicas))
        if self.passes:
            for host in replicas:
                plane_load.let_pass(network, self.binary, host, [INTERFACE])
        processes, host = self.start_replicas(stack, network, folder) if self.mode else ([], FIRST_REPLICA_HOST)
        memcached = plane_load.memcached_at(stack, network, host, MEMCACHED_PORT, self.binary, folder)
        load = Load(self.binary, f"{address(host)}:{MEMCACHED_PORT}")
        return Cluster(
            [Server(process.pid, process is memcached) for process in [memcached, *processes]],
            None,
            load_with=lambda *asked: network.command_in(CLIENT_HOST, load.with_more(*asked)),
            bulk=lambda *asked: bulk(network, host, folder, *asked),
        )

    def start_replicas(self, stack, network, folder):
        """Their processes, and where the leader is."""
        plane, options = ("none", ()) if self.mode == NOWHERE else ("xdp", ("--xdp-mode", self.mode))
        system = System(self.name, self.note, plane, REPLICAS, [], options=options)
        processes, leader, _ = plane_load.start_replicas(stack, system, network, Tools(self.binary, None), folder)
        return processes, FIRST_REPLICA_HOST + leader


def bulk(network, host, folder, direction, seconds, warm_up_seconds):
    """As much as one TCP connection carries into a host or out of it, Gbit/s; and what others used of the machine, in per cent."""
    if shutil.which("iperf3") is None:
        raise Failed("iperf3 is not installed: `tools/setup bench`")
    asks = network.command_in(CLIENT_HOST, ["iperf3", "--client", address(host), *of_client(direction, seconds, warm_up_seconds)])
    with contextlib.ExitStack() as stack:
        log = folder / f"iperf3-{direction}.log"
        # Ends by itself after one connection.
        serves = network.command_in(host, ["iperf3", "--server", "--bind", address(host), "--one-off", "--forceflush"])
        server = start(stack, serves, log)
        wait_until("iperf3", lambda: b"listening" in log.read_bytes(), [server], log)
        before = Usage.now([])
        printed = output_of(asks, seconds + warm_up_seconds + LOAD_SECONDS_EXTRA)
        used = Usage.now([]).since(before)
    return gbit_per_second(printed), used.others_percent


def of_client(direction, seconds, warm_up_seconds):
    """It sends; reversed, it receives."""
    return ["--json", "--time", str(seconds), "--omit", str(warm_up_seconds), *(["--reverse"] if direction == OUT_OF else [])]


def gbit_per_second(printed):
    """What arrived, of what iperf3 printed."""
    said = parse(printed)
    if "error" in said:
        raise Failed(f"iperf3: {said['error']}")
    return said["end"]["sum_received"]["bits_per_second"] / 1e9


def interfaces(binary):
    """Those that are compared; to the first one."""
    return [
        Interface(binary, "no program", "no replica runs, no interface has a program"),
        Interface(binary, "replicas without a plane", "three idle replicas, `--plane none`, no interface has a program", NOWHERE),
        Interface(
            binary, "programs that let all pass", "no replica runs; `quorumwire veth-pass` at both ends of the replicas' cables: what any "
            "program in a veth pair's driver costs", passes=True,
        ),
        Interface(binary, "plane xdp", "three idle replicas, `--plane xdp --xdp-mode driver`, `quorumwire veth-pass` at the other ends of their cables", "driver"),
        Interface(binary, "plane xdp, generic mode", "three idle replicas, `--plane xdp --xdp-mode generic`, no `veth-pass`", "generic"),
    ]

"""Unreplicated memcached: the upper bound of what a server behind the same protocol does here."""
import os
import shutil
import socket

from load import LATENCY, PIPELINED, WIDE, Cluster, Server
from peers.quorumwire import Load
from processes import free_ports, output_of, start, wait_until

COMMAND_SECONDS_MAX = 20
CONNECT_SECONDS_MAX = 1


class Memcached:
    """One worker thread, as one replica of ours has one for its clients."""

    keeps_nothing = True  # on a disk, as it is started here
    name = "memcached"
    program = "memcached"
    note = "one process, unreplicated, `-t 1`; the same load program"
    workloads = [LATENCY, PIPELINED, WIDE]

    def __init__(self, load_binary):
        self.load_binary = load_binary

    def missing(self):
        if shutil.which("memcached") is None:
            return "memcached is not installed: `tools/setup bench`"
        if not os.access(self.load_binary, os.X_OK):
            return f"its load program, {self.load_binary.name}, is not built: `make build`"
        return None

    def version(self):
        return output_of(["memcached", "--version"], COMMAND_SECONDS_MAX).strip()

    def start(self, stack, folder):
        """Starts it and waits until it serves; it ends with `stack`."""
        log_path = folder / "memcached.log"
        (port,) = free_ports(1)
        command = ["memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "1", "-m", "64"]
        if os.geteuid() == 0:
            command += ["-u", "root"]
        process = start(stack, command, log_path)
        wait_until("memcached", lambda: accepts(port), [process], log_path)
        load = Load(self.load_binary, f"127.0.0.1:{port}")
        return Cluster([Server(process.pid, True, is_program=True)], load.of_workload, load_with=load.with_more)


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), CONNECT_SECONDS_MAX).close()
    except OSError:
        return False
    return True

"""Our own cluster: three replicas as `quorumwire dev` starts them."""
import json
import os

import signal

from load import KEYS, LATENCY, MANY, PIPELINED, READS, VALUE_BYTES, WIDE, Cluster, Server
from processes import Failed, output_of, start, wait_until

COMMAND_SECONDS_MAX = 20
RAISE_PRIORITY = "--raise-priority"


def load_command(binary, address, *more):
    """The load program for everything that speaks memcached's protocol or, if `more` says so, Redis'."""
    return lambda workload, seconds: [
        str(binary), "bench", "--json", "--addr", address, "--seconds", str(seconds),
        "--connections", str(workload.connections), "--in-flight", str(workload.in_flight),
        "--value-bytes", str(VALUE_BYTES), "--keys", str(KEYS), "--write-percent", str(workload.write_percent), *more,
    ]


class Quorumwire:
    """One of the two durabilities; with `protocol` redis for Redis clients, with `dead` after a follower has died."""

    def __init__(self, binary, durability, protocol="memcached", dead=False):
        self.binary = binary
        self.durability = durability
        self.protocol = protocol
        self.dead = dead
        kind = ", Redis client" if protocol == "redis" else ""
        self.name = f"quorumwire {durability}{kind}{', one dead' if dead else ''}"
        self.note = (
            f"three replicas{', one of which was killed' if dead else ''}, `--durability {durability}`, without TLS as all others, data on tmpfs; "
            f"load on the leader{', in Redis’ protocol' if kind else ''}"
        )
        self.workloads = [LATENCY, MANY, PIPELINED, WIDE] + ([READS] if kind and not dead else [])

    def missing(self):
        """Why it cannot be measured; None if it can."""
        if os.access(self.binary, os.X_OK):
            return None
        return f"{self.binary.name} is not built: `make build`"

    def version(self):
        return output_of([str(self.binary), "--version"], COMMAND_SECONDS_MAX).strip()

    def start(self, stack, folder):
        """Starts it and waits until it serves; it ends with `stack`."""
        log_path = folder / "dev.log"
        data = folder / "data"
        answer = folder / "dev.json"
        command = [str(self.binary), "dev", "--insecure", "--json", "--replicas", "3",
                   "--durability", self.durability, "--dir", str(data), *self.equal_priority()]
        dev = start(stack, command, log_path, stdout=stack.enter_context(open(answer, "wb")))
        wait_until(f"{self.name}: waiting for a leader", lambda: answer.read_bytes().endswith(b"\n"), [dev], log_path)
        return self.cluster(json.loads(answer.read_bytes()))

    def cluster(self, started):
        replicas, leader = started["replicas"], started["leader"]
        leading = [replica for replica in replicas if replica["id"] == leader]
        if len(replicas) != 3 or len(leading) != 1:
            raise Failed(f"{self.name}: unexpected answer of dev: {started}")
        if self.dead:
            follower = next(replica for replica in replicas if replica["id"] != leader)
            os.kill(follower["pid"], signal.SIGKILL)
            replicas.remove(follower)
        servers = [Server(replica["pid"], replica["id"] == leader) for replica in replicas]
        load = load_command(self.binary, leading[0][self.protocol], "--protocol", self.protocol)
        return Cluster(servers, load, leading[0]["redis"] if self.protocol == "redis" and not self.dead else None)

    def equal_priority(self):
        """Replicas raise their own priority unless told not to; here everybody's is the same."""
        if RAISE_PRIORITY in output_of([str(self.binary), "server", "--help"], COMMAND_SECONDS_MAX):
            return ["--", RAISE_PRIORITY, "0"]
        return []

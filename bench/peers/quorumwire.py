"""Our own cluster: three replicas as `quorumwire dev` starts them."""
import json
import os

from load import KEYS, VALUE_BYTES, Cluster, Server
from processes import Failed, output_of, start, wait_until

COMMAND_SECONDS_MAX = 20
RAISE_PRIORITY = "--raise-priority"


def load_command(binary, address):
    """The load program for everything that speaks memcached's protocol."""
    return lambda workload, seconds: [
        str(binary), "bench", "--json", "--addr", address, "--seconds", str(seconds),
        "--connections", str(workload.connections), "--in-flight", str(workload.in_flight),
        "--value-bytes", str(VALUE_BYTES), "--keys", str(KEYS),
    ]


class Quorumwire:
    """One of the two durabilities."""

    def __init__(self, binary, durability):
        self.binary = binary
        self.durability = durability
        self.name = f"quorumwire {durability}"
        self.note = f"three replicas, `--durability {durability}`, data on tmpfs; load on the leader"

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
        command = [str(self.binary), "dev", "--json", "--replicas", "3",
                   "--durability", self.durability, "--dir", str(data), *self.equal_priority()]
        dev = start(stack, command, log_path, stdout=stack.enter_context(open(answer, "wb")))
        wait_until(f"{self.name}: waiting for a leader", lambda: answer.read_bytes().endswith(b"\n"), [dev], log_path)
        return self.cluster(json.loads(answer.read_bytes()))

    def cluster(self, started):
        replicas, leader = started["replicas"], started["leader"]
        leading = [replica for replica in replicas if replica["id"] == leader]
        if len(replicas) != 3 or len(leading) != 1:
            raise Failed(f"{self.name}: unexpected answer of dev: {started}")
        servers = [Server(replica["pid"], replica["id"] == leader) for replica in replicas]
        return Cluster(servers, load_command(self.binary, leading[0]["memcached"]))

    def equal_priority(self):
        """Replicas raise their own priority unless told not to; here everybody's is the same."""
        if RAISE_PRIORITY in output_of([str(self.binary), "server", "--help"], COMMAND_SECONDS_MAX):
            return ["--", RAISE_PRIORITY, "0"]
        return []

"""hashicorp/raft, the library below Consul, Nomad and Vault, in a small server of ours."""
from peers.go_peer import GoPeer


class HashicorpRaft(GoPeer):
    """Its log is in memory. Timeouts are the library's unless `fast`."""

    keeps_nothing = True  # on a disk: the log is lost with the process
    source = "hashicorp-raft"
    library = "github.com/hashicorp/raft"

    def __init__(self, built, load_binary, replicas=3, fast=False):
        super().__init__(built, load_binary, replicas)
        self.fast = fast
        self.name = f"hashicorp/raft{', fast' if fast else ''}"
        timeouts = "150 ms for heartbeats and elections" if fast else "the library's timeouts"
        self.note = (
            f"{replicas} replicas, log in memory, {timeouts}; load on the leader in Redis’ protocol, "
            "reads after a majority has confirmed the leader"
        )

    def options(self, _folder, _replica):
        return ["-fast"] if self.fast else []

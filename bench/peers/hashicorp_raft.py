"""hashicorp/raft, the library below Consul, Nomad and Vault, in a small server of ours."""
from peers.go_peer import GoPeer


class HashicorpRaft(GoPeer):
    """Its log is in memory. Timeouts are the library's."""

    keeps_nothing = True  # on a disk: the log is lost with the process
    source = "hashicorp-raft"
    library = "github.com/hashicorp/raft"

    name = "hashicorp/raft"

    def __init__(self, built, load_binary, replicas=3):
        super().__init__(built, load_binary, replicas)
        self.note = (
            f"{replicas} replicas, log in memory, the library's timeouts; load on the leader in Redis’ protocol, "
            "reads after a majority has confirmed the leader"
        )

"""dragonboat, a library for Raft made for throughput, in a small server of ours."""
from peers.go_peer import GoPeer


class Dragonboat(GoPeer):
    """Its log (`tan`, the quicker of its two) is in files on tmpfs."""

    name = "dragonboat"
    source = "dragonboat"
    library = "github.com/lni/dragonboat/v4"

    def __init__(self, built, load_binary, replicas=3):
        super().__init__(built, load_binary, replicas)
        self.note = (
            f"{replicas} replicas, `tan` log on tmpfs, RTT 10 ms, ElectionRTT 20; load on the leader in Redis’ protocol, "
            "reads by ReadIndex"
        )

    def options(self, folder, replica):
        return ["-dir", str(folder / f"replica{replica}")]

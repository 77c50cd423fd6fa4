"""One replica of ours that is measured: its ports, and the words that start it."""
from typing import NamedTuple

from processes import output_of

PEER_PORT, PLANE_PORT, OWN_PORT = 7400, 7401, 7402
MEMCACHED_PORT, REDIS_PORT, HTTP_PORT = 11211, 6379, 8080
CLUSTER = "bench"
COMMAND_SECONDS_MAX = 20


def leader_of_serving(status, members, plane):
    """Who leads, by a cluster's status, once all members report and, with a plane, run a fast term; None before."""
    reports = {it["id"]: it.get("report") or {} for it in status.get("replicas", [])}
    serve = all(reports.get(n) and (plane == "none" or reports[n].get("fast_term")) for n in members)
    leader = status.get("leader")
    return leader if serve and leader in members else None


class Replicas(NamedTuple):
    """Those of a cluster, each at an address of its own."""

    server: object  # the program
    folder: object  # what they keep goes here, keys included
    addresses: list  # by slot
    plane: str  # as the option `plane` of the server
    durability: str = "memory"
    election_timeout_ms: int | None = None  # the server's default
    options: tuple = ()  # more of the server's

    @property
    def secret(self):
        return self.folder / "secret.toml"

    def make_keys(self):
        """Makes what replicas share; the keys for clients of planes."""
        keys, server = self.folder / "clients.toml", str(self.server)
        output_of([server, "keys", "new", "--file", str(self.secret)], COMMAND_SECONDS_MAX)
        for_clients = ["--file", str(self.secret), "--cluster", CLUSTER, "--out", str(keys)]
        output_of([server, "keys", "plane-clients", *for_clients], COMMAND_SECONDS_MAX)
        return keys

    def command(self, slot):
        """Starts one. Servers raise their own priority unless told not to; where others are measured, everybody's is the same."""
        own = self.addresses[slot]
        listens = {"peer": PEER_PORT, "memcached": MEMCACHED_PORT, "redis": REDIS_PORT, "client": OWN_PORT, "http": HTTP_PORT}
        named = {
            "cluster": CLUSTER, "id": slot, "dir": self.folder / f"data-{slot}", "durability": self.durability, "raise-priority": 0,
            "members": ",".join(f"{n}={address}:{PEER_PORT}" for n, address in enumerate(self.addresses)),
            **{f"listen-{what}": f"{own}:{port}" for what, port in listens.items()},
        }
        if self.plane != "none":
            named |= {"plane": self.plane, "listen-plane": f"{own}:{PLANE_PORT}", "secret-file": self.secret}
        if self.election_timeout_ms is not None:
            named["election-timeout-ms"] = self.election_timeout_ms
        words = [word for name, value in named.items() for word in (f"--{name}", str(value))]
        return [str(self.server), "server", "--insecure", *words, *self.options]

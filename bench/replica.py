"""One replica of ours that is measured: its ports, and the words that start it."""
import os
from pathlib import Path
from typing import NamedTuple

from processes import output_of

PEER_PORT, PLANE_PORT, OWN_PORT = 7400, 7401, 7402
MEMCACHED_PORT, REDIS_PORT, HTTP_PORT = 11211, 6379, 8080
CLUSTER = "bench"
COMMAND_SECONDS_MAX = 20
# Unmodified servers: their arguments, without the port that goes behind them, and the protocol that they speak. Nothing is
# on disk, as when they are alone.
PROGRAMS = {
    "redis-server": (["--save", "", "--appendonly", "no", "--protected-mode", "no", "--port"], "redis"),
    "memcached": (["-U", "0", "-t", "1", "-m", "64", *(["-u", "root"] if os.geteuid() == 0 else []), "-p"], "memcached"),
}


def reports_of(status):
    """By replica; empty of those that do not report."""
    return {it["id"]: it.get("report") or {} for it in status.get("replicas", [])}


def leader_of_serving(status, members, plane):
    """Who leads, by a cluster's status, once all members report and, with a plane, run a fast term; None before."""
    reports = reports_of(status)
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
    program: str = ""  # an unmodified server that each of them runs, of `PROGRAMS`

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
        listens = {"peer": PEER_PORT, "client": OWN_PORT, "http": HTTP_PORT}
        # A program's clients come to the port that our own store has for its protocol.
        clients = {"memcached": MEMCACHED_PORT, "redis": REDIS_PORT}
        arguments, protocol = PROGRAMS.get(self.program, ([], None))
        listens |= {} if self.program else clients
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
        if not self.program:
            return [str(self.server), "server", "--insecure", *words, *self.options]
        port = clients[protocol]
        published = ["--publish", f"{port}={own}:{port}"]
        return [str(self.server), "run", "--insecure", *words, *published, *self.options, "--", self.program, *arguments, str(port)]


def children_of(pid):
    """Whatever thread started them: of a replica, the program that it runs."""
    listed = (path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for children in listed for child in children]

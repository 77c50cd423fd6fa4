"""Our own cluster: three replicas as `quorumwire dev` starts them."""
import contextlib
import json
import os
import signal

from load import KEYS, LATENCY, MANY, PIPELINED, READS, VALUE_BYTES, WIDE, Cluster, Server
from processes import Failed, output_of, start, wait_until

COMMAND_SECONDS_MAX = 20
RAISE_PRIORITY = "--raise-priority"


# A load that outlives its server: one connection for each of three replicas.
SURVIVING = (3, 1)


class Load:
    """The load program for everything that speaks memcached's protocol or, if `always` says so, Redis'."""

    def __init__(self, binary, address, *always):
        self.binary, self.address, self.always = binary, address, always

    def of_workload(self, workload, seconds):
        return self.with_more(workload.connections, workload.in_flight, seconds, ["--write-percent", str(workload.write_percent)])

    def with_more(self, connections, in_flight, seconds, more):
        """Each option once: what `more` gives is not also given as it usually is."""
        usual = {"--value-bytes": str(VALUE_BYTES), "--keys": str(KEYS), "--write-percent": "100"}
        given = [word for name, value in usual.items() if name not in more for word in (name, value)]
        return [
            str(self.binary), "bench", "--json", "--addr", self.address, "--seconds", str(seconds),
            "--connections", str(connections), "--in-flight", str(in_flight), *given, *self.always, *more,
        ]

    def surviving(self, seconds, more=()):
        return self.with_more(*SURVIVING, seconds, ["--survive", *more])


class Quorumwire:
    """One of the two durabilities; with `protocol` redis for Redis clients, with `dead` after a follower has died;
    `plane` is where the common case runs: none or socket; `reads` is what reads rest on: lease or read-index, with
    which nothing but reads is measured; of experiments it takes part in those of `experiments` alone if there are any, and in
    no closed loop of writes beside them.
    """

    def __init__(self, binary, durability, protocol="memcached", dead=False, replicas=3, plane="none", reads="lease", experiments=None):
        self.binary = binary
        self.experiments = experiments
        self.replicas = replicas
        self.plane = plane
        self.durability = durability
        self.protocol = protocol
        self.dead = dead
        kind = ", Redis client" if protocol == "redis" else ""
        of_plane = "" if plane == "none" else f", plane {plane}"
        self.reads = reads
        of_reads = "" if reads == "lease" else ", read index"
        self.name = f"quorumwire {durability}{of_plane}{kind}{of_reads}{', one dead' if dead else ''}"
        self.note = (
            f"{replicas} replicas{of_plane}{', one of which was killed' if dead else ''}, `--durability {durability}`"
            f"{f', `--reads {reads}`' if of_reads else ''}, without TLS as all others, data on tmpfs; "
            f"load on the leader{', in Redis’ protocol' if kind else ''}"
        )
        self.workloads = [LATENCY, MANY, PIPELINED, WIDE] + ([READS] if (kind or of_plane) and not dead else [])
        if experiments is not None:
            self.workloads = []
        self.writes = not of_reads
        if of_reads:
            self.workloads = [READS]

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
        command = [str(self.binary), "dev", "--insecure", "--json", "--replicas", str(self.replicas),
                   "--durability", self.durability, "--plane", self.plane, "--dir", str(data), *self.of_servers()]
        dev = start(stack, command, log_path, stdout=stack.enter_context(open(answer, "wb")))
        wait_until(f"{self.name}: waiting for a leader", lambda: answer.read_bytes().endswith(b"\n"), [dev], log_path)
        return self.cluster(json.loads(answer.read_bytes()))

    def leader_pid(self, replicas):
        """Who leads now, by the first replica that knows; None while none does."""
        for asked in replicas:
            # It fails while there is no leader.
            with contextlib.suppress(Failed):
                command = [str(self.binary), "status", "--json", "--addr", asked["http"]]
                leader = json.loads(output_of(command, COMMAND_SECONDS_MAX))["leader"]
                return next(replica["pid"] for replica in replicas if replica["id"] == leader)
        return None

    def replicas_of(self, started):
        """What `dev` says of all, and of the leader."""
        replicas = started["replicas"]
        leading = [replica for replica in replicas if replica["id"] == started["leader"]]
        if len(replicas) != self.replicas or len(leading) != 1:
            raise Failed(f"{self.name}: unexpected answer of dev: {started}")
        return replicas, leading[0]

    def cluster(self, started):
        (replicas, leading), leader = self.replicas_of(started), started["leader"]
        if self.dead:
            follower = next(replica for replica in replicas if replica["id"] != leader)
            os.kill(follower["pid"], signal.SIGKILL)
            replicas.remove(follower)
        servers = [Server(replica["pid"], replica["id"] == leader) for replica in replicas]
        load = Load(self.binary, leading[self.protocol], "--protocol", self.protocol)
        everywhere = Load(self.binary, ",".join(replica[self.protocol] for replica in replicas), "--protocol", self.protocol)
        return Cluster(
            servers,
            load.of_workload,
            leading["redis"] if self.protocol == "redis" and PIPELINED in self.workloads and not self.dead else None,
            # With one of three dead nobody is left who could take over.
            survive_command=None if self.dead else everywhere.surviving,
            load_with=load.with_more,
            leader_now=lambda: self.leader_pid(replicas),
        )

    def of_servers(self):
        """Options of the replicas. They raise their own priority unless told not to; here everybody's is the same."""
        options = ["--reads", self.reads] if self.reads != "lease" else []
        if RAISE_PRIORITY in output_of([str(self.binary), "server", "--help"], COMMAND_SECONDS_MAX):
            options += [RAISE_PRIORITY, "0"]
        return ["--", *options] if options else []

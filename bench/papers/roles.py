"""A deployment of the Paxos roles that is measured: coordinators, acceptors and learners, each on a host of its own.

Nothing here knows which figure is wanted.
"""
import contextlib
import json
import os
import re
import signal
import time
from pathlib import Path

import load
from papers.cluster import Loaded, System
from processes import Failed, output_of, start, tail, wait_until
from replica import COMMAND_SECONDS_MAX

PORT = 7500
LEVELDB_PORT = 7600
# Of the software roles, and of every program that learns: what the aims compare with is as fast as it can be.
BUSY_POLL_US = 50
# Room for what is decided between two checkpoints of a load.
WINDOW = 16_384
COORDINATORS = 2
LEVELDB = Path(__file__).resolve().parents[2] / "target/leveldb/bin"
SECONDS_MAX = 20
# As a coordinator's log says it.
COORDINATES = "it coordinates"
PRINTED = re.compile(r"operations (\d+), (\d+) per s, p50 (\d+) us, p99 (\d+) us, mean (\d+) us, errors (\d+)")

SWITCHES = System("roles in xdp switches", "xdp", "`quorumwire switch --plane xdp`, acceptors in memory")
PROCESSES = System("roles in processes", "socket", f"`quorumwire switch --plane socket --busy-poll-us {BUSY_POLL_US}`, acceptors in memory")
ROLES = (SWITCHES, PROCESSES)


class Deployment(Loaded):
    """Switches that serve; they end with `stack`. The backup coordinator is a process in any system, as in figure 8."""

    def __init__(self, stack, place, tools, system, folder, acceptors=3, learners=1):
        self.stack, self.place, self.tools, self.system, self.folder = stack, place, tools, system, folder
        self.acceptors, self.learners = acceptors, learners
        self.file = folder / "deployment.toml"
        self.write_files()
        self.processes = {}
        self.is_killed = False
        for number in range(acceptors):
            self.run(*self.words("acceptor", number), "--make-folder", "first", at=self.slot("acceptor", number))
            self.start("acceptor", number)
        # A backup that hears nobody takes over, and the first takes longer to start in the kernel.
        self.start("coordinator", 0)
        self.wait_until_it_decides()
        self.start("coordinator", 1)
        stack.callback(self.refuse_a_take_over)

    def slot(self, role, number):
        """Whose host it is."""
        first = {"coordinator": 0, "acceptor": COORDINATORS, "learner": COORDINATORS + self.acceptors}
        return first[role] + number

    def address(self, role, number):
        return f"{self.place.address(self.slot(role, number))}:{PORT}"

    def write_files(self):
        server, secret = str(self.tools.server), self.folder / "secret.toml"
        output_of([server, "keys", "new", "--file", str(secret)], COMMAND_SECONDS_MAX)
        for_all = ["--file", str(secret), "--cluster", "bench", "--out", str(self.folder / "deployment.keys")]
        output_of([server, "keys", "plane-clients", *for_all], COMMAND_SECONDS_MAX)
        counts = {"coordinator": COORDINATORS, "acceptor": self.acceptors, "learner": self.learners}
        lines = ['name = "bench"', 'key-file = "deployment.keys"', f"window = {WINDOW}"]
        for role, count in counts.items():
            lines.append(f"{role}s = [{', '.join(f'{chr(34)}{self.address(role, n)}{chr(34)}' for n in range(count))}]")
        self.file.write_text("\n".join(lines) + "\n")

    def words(self, role, number):
        words = ["switch", "--deployment", self.file, "--role", role, "--number", number, "--durability", "memory"]
        words += ["--dir", self.folder / f"{role}-{number}"] if role == "acceptor" else []
        in_software = self.system.plane == "socket" or (role, number) == ("coordinator", 1)
        words += ["--busy-poll-us", BUSY_POLL_US] if in_software else ["--plane", "xdp"]
        return [str(word) for word in words]

    def run(self, *words, at):
        output_of(self.place.at_replica(at, [str(self.tools.server), *words]), COMMAND_SECONDS_MAX)

    def start(self, role, number):
        command = [str(self.tools.server), *self.words(role, number)]
        at = self.slot(role, number)
        self.processes[role, number] = start(self.stack, self.place.at_replica(at, command), self.log(role, number))

    def kill(self, role, number):
        """Its process goes, and with that its program in the kernel."""
        process = self.processes.pop((role, number))
        self.is_killed |= role == "coordinator"
        os.kill(process.pid, signal.SIGKILL)
        process.wait(SECONDS_MAX)

    def refuse_a_take_over(self):
        """What is measured is the first coordinator, unless it was killed."""
        if not self.is_killed and COORDINATES in self.log("coordinator", 1).read_text():
            raise Failed(f"{self.system.name}: the backup took over, though nobody was killed")

    def log(self, role, number):
        return self.folder / f"{role}-{number}.log"

    def wait_until_it_decides(self):
        def decides():
            with contextlib.suppress(Failed):
                output_of(self.load_words(1, 1, "--operations", 1), COMMAND_SECONDS_MAX)
                return True
            return False

        wait_until(f"{self.system.name}: waiting until a value is decided", decides, list(self.processes.values()), self.log("coordinator", 0))

    def load_words(self, connections, seconds, *more, value_bytes=64):
        words = ["bench", "--json", "--deployment", self.file, "--dir", self.folder / "learner-0", "--busy-poll-us", BUSY_POLL_US,
                 "--connections", connections, "--in-flight", 1, "--seconds", seconds, "--value-bytes", value_bytes, *more]
        return self.place.at_replica(self.slot("learner", 0), [str(self.tools.server), *map(str, words)])

    def load_command(self, asked, seconds, more=(), everybody=False):
        del everybody  # a proposer asks whoever coordinates
        return self.load_words(asked.connections, seconds, *more, value_bytes=asked.value_bytes)

    def servers(self):
        """Those that coordinate, and those that vote."""
        return [load.Server(process.pid, role == "coordinator") for (role, _), process in self.processes.items()]

    # The programs of apps/leveldb, each of which is a learner with a proposer.

    def start_servers(self, application):
        """One for each learner; where their clients come to."""
        found, processes = [], []
        for number in range(self.learners):
            at = self.slot("learner", number)
            address = f"{self.place.address(at)}:{LEVELDB_PORT}"
            config, log = self.folder / f"library-{number}.toml", self.folder / f"leveldb-{number}.log"
            config.write_text(f'deployment = "paxos"\ndeployment_file = "{self.file}"\nlearner = {number}\n'
                              f'dir = "{self.folder / f"leveldb-{number}" / "learner"}"\nbusy_poll_us = {BUSY_POLL_US}\n')
            own = self.folder / f"leveldb-{number}"
            own.mkdir()
            words = [LEVELDB / "quorumwire-leveldb", "--configuration", config, "--learner", number, "--listen", address, "--application", application]
            words += ["--dir", own] if application == "leveldb" else []
            processes.append(start(self.stack, self.place.at_replica(at, [str(word) for word in words]), log))
            found.append(address)
        operation = "echo" if application == "echo" else "mix"

        def answers():
            with contextlib.suppress(Failed):
                return self.measure_servers(found[:1], operation, 1, 1)["operations_per_second"] > 0
            return False

        wait_until(f"{self.system.name}: waiting for {application}", answers, processes, self.folder / "leveldb-0.log")
        return found

    def measure_servers(self, addresses, operation, outstanding, seconds):
        """Asks the first server, as their clients' process has one proposer."""
        words = [LEVELDB / "quorumwire-leveldb-client", "--servers", addresses[0], "--operation", operation,
                 "--outstanding", outstanding, "--seconds", seconds, "--value-bytes", 64, "--keys", 1000, "bench"]
        printed = output_of(self.place.at_client([str(word) for word in words]), seconds + load.LOAD_SECONDS_EXTRA)
        found = PRINTED.search(printed)
        if found is None or int(found[6]) > 0:
            raise Failed(f"the load printed {printed[:200]!r}")
        _, per_second, p50, p99, mean, _ = map(int, found.groups())
        return {"operations_per_second": per_second, "p50_us": p50, "p99_us": p99, "mean_us": mean}


def why_no_servers():
    """Why programs of apps/leveldb cannot be measured; None if they can."""
    return None if os.access(LEVELDB / "quorumwire-leveldb", os.X_OK) else "apps/leveldb is not built: `make leveldb`"


# Each cycle: the first coordinator is killed, is started again as a backup, and takes over when the other is killed.
CYCLES, CYCLE_SECONDS = 3, 6
KILLED_AT, RETURNS_AT, BACK_AT, OTHER_RETURNS_AT = 1, 2, 4, 5
TO_SOFTWARE, BACK = "the first, its backup", "the backup, the first"
# What a kill costs begins within this.
WITHIN_MS = 1_000


def take_overs(deployment):
    """Kills whoever coordinates again and again while a load goes on: (which, milliseconds without a decided value)."""
    output, log = deployment.folder / "take-over.json", deployment.folder / "take-over.log"
    kills = []

    def kill(what, number):
        deployment.kill("coordinator", number)
        kills.append((time.time() * 1e3, what))

    events = [
        (cycle * CYCLE_SECONDS + at, do, words)
        for cycle in range(CYCLES)
        for at, do, words in ((KILLED_AT, kill, (TO_SOFTWARE, 0)), (RETURNS_AT, deployment.start, ("coordinator", 0)),
                              (BACK_AT, kill, (BACK, 1)), (OTHER_RETURNS_AT, deployment.start, ("coordinator", 1)))
    ]
    seconds = CYCLES * CYCLE_SECONDS + 1
    with open(output, "wb") as printed:
        process = start(deployment.stack, deployment.load_words(22, seconds, "--survive"), log, stdout=printed)
        begun = time.time()
        for at, do, words in events:
            time.sleep(max(0.0, begun + at - time.time()))
            do(*words)
        process.wait(seconds + load.LOAD_SECONDS_EXTRA)
    if process.returncode != 0:
        raise Failed(f"the load: {tail(log)}")
    gaps = json.loads(output.read_text())["longest_gaps"]
    return [(what, waited_ms(gaps, at)) for at, what in kills]


def waited_ms(gaps, killed_ms):
    """The longest time that a kill may have cost; where it is not among the longest of the run, at most the shortest of those."""
    of_kill = [gap["ms"] for gap in gaps if gap["to_unix_ms"] >= killed_ms and gap["from_unix_ms"] <= killed_ms + WITHIN_MS]
    return max(of_kill, default=min(gap["ms"] for gap in gaps))

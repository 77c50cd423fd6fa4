"""One follower that is slow, or stopped: what that does to everybody else's requests."""
import contextlib
import sys
from pathlib import Path

from experiments.figures import ratio
from experiments.loads import MANY, ONE, SHAPES
from experiments.tables import cell_beside
from experiments.turns import Experiment
from processes import start, stop, wait_until
from report import table

PAUSE = Path(__file__).parent / "pause"
SLOW_STOPPED_MS, SLOW_RUNNING_MS = 50, 50
# With fewer servers a majority needs all of them.
SERVERS_MIN = 3
HEALTHY, SLOW, STOPPED = "healthy", "slow", "stopped"


class Follower(Experiment):
    name = "follower"
    title = "A slow or stopped follower"
    setting_names = ("follower", "load")
    about = (
        f"One follower's process is stopped for {SLOW_STOPPED_MS} ms out of every {SLOW_STOPPED_MS + SLOW_RUNNING_MS} (SIGSTOP, SIGCONT: "
        "slow), or for good (SIGSTOP: stopped, its connections stay open). A program in the kernel goes on while its process stands, "
        "for some 16 thousand entries: with `plane xdp` the cable of a stopped follower is cut, too. In parentheses beside each p99 what it is of the healthy "
        "one, measured before in the same turn (the ratio of medians, smallest and largest of the rounds)."
    )

    def turn(self, turn):
        if len(turn.cluster.servers) < SERVERS_MIN:
            turn.found.not_offered[self.name, turn.system] = "fewer than three servers: without one of them no write is acknowledged, or none is replicated"
            return
        slot, follower = next((slot, server.pid) for slot, server in enumerate(turn.cluster.servers) if not server.leads)
        for state, running_ms in ((HEALTHY, None), (SLOW, SLOW_RUNNING_MS), (STOPPED, 0)):
            with contextlib.ExitStack() as stack:
                if running_ms is not None:
                    pause(stack, follower, running_ms, turn.folder / f"pause-{state}.log")
                if state == STOPPED and turn.cluster.cut_off is not None:
                    stack.enter_context(turn.cluster.cut_off(slot))
                for load in (ONE, MANY):
                    turn.take((state, load), *SHAPES[load])

    def section(self, found):
        headings = ["system", *(f"{load}, {state}" for load in (ONE, MANY) for state in (HEALTHY, SLOW, STOPPED))]
        rows = [
            [system, *(with_healthy(found, system, state, load) for load in (ONE, MANY) for state in (HEALTHY, SLOW, STOPPED))]
            for system in found.systems(self.name)
        ]
        return "p99, µs:\n\n" + table(headings, rows)


def pause(stack, pid, running_ms, log_path):
    """Stops a process until the stack ends, with or without pauses between the stops."""
    process = start(stack, [sys.executable, str(PAUSE), str(pid), str(SLOW_STOPPED_MS), str(running_ms)], log_path)
    # Before the servers are told to end, else one of them would not hear it.
    stack.callback(stop, process)
    wait_until("the stopping of a follower", lambda: b"stopped" in log_path.read_bytes(), [process], log_path)


def to_healthy(found, system, state, load):
    """p99 to that of the healthy system; None if one of them is missing."""
    return ratio(found.of(Follower.name, system, (state, load), "p99_us"), found.of(Follower.name, system, (HEALTHY, load), "p99_us"))


def with_healthy(found, system, state, load):
    """p99, and what it is of the healthy system's."""
    healthy = None if state == HEALTHY else (system, (HEALTHY, load))
    return cell_beside(found, Follower.name, system, (state, load), "p99_us", healthy)

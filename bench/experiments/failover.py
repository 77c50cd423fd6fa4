"""The leader is killed under load: how long nobody can write."""
import contextlib
import os
import random
import signal
import time

from experiments.figures import cumulative, gap_of_kill, longest_soon_after, percentile
from experiments.tables import plot_of, single
from experiments.turns import Experiment
from load import LOAD_SECONDS_EXTRA, parse
from plots import Series
from processes import Failed, start, tail
from report import table

BEFORE_SECONDS = 2.0
# So that kills do not fall into step with heartbeats.
JITTER_SECONDS = 0.5
# Whether anything succeeds at the end is seen by intervals; there are few of them.
INTERVAL_MS = 500


class Failover(Experiment):
    name = "failover"
    title = "Fail-over"
    about = (
        "Under load by three connections that each wait for an answer and go on at another replica when one is gone, the leader's "
        "process is killed (SIGKILL), at a moment chosen by chance. The gap is the longest time between two writes that succeeded "
        "around the kill, as the clients saw it. Where it is not among the 64 longest of its run, which then are the machine's noise, "
        "it was no longer than the shortest of those; then that one counts, and stands under \"at most\". Every kill is in a fresh "
        "cluster with default timeouts; systems take turns. "
        "A p99 of fewer than a hundred kills is the longest of them. The next is the longest time without a write that began within the "
        "second after, if writes stopped once more; the machine's own pauses are among those."
    )

    def rounds(self, length):
        return length.kills

    def how(self, length):
        return f"{length.kills} kills, each followed by {length.seconds_after_kill} s of load"

    def turn(self, turn):
        if turn.cluster.survive_command is None:
            turn.found.not_offered[self.name, turn.system] = "no other process takes over by itself, as it runs here"
            return
        seconds = round(BEFORE_SECONDS + JITTER_SECONDS) + turn.length.seconds_after_kill
        log, answer = turn.folder / "survive.log", turn.folder / "survive.json"
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(open(answer, "wb"))
            load = start(stack, turn.cluster.survive_command(seconds, ["--interval-ms", str(INTERVAL_MS)]), log, stdout=output)
            time.sleep(BEFORE_SECONDS + random.uniform(0, JITTER_SECONDS))
            if load.poll() is not None:
                raise Failed(f"the load ended before the kill: {tail(log)}")
            killed_at_ms = kill(turn.cluster)
            wait_for(load, seconds + LOAD_SECONDS_EXTRA, log)
        printed = parse(answer.read_text())
        gap = gap_of_kill(printed, killed_at_ms)
        if isinstance(gap, str):
            raise Failed(gap)
        figures = {
            "gap_ms": gap.ms, "at_most": int(not gap.exact), "after_kill_ms": gap.after_kill_ms,
            "next_ms": longest_soon_after(printed, killed_at_ms),
            "operations": printed["operations"], "failed_requests": sum(printed["errors"].values()),
        }
        turn.found.add(self.name, turn.round, turn.system, (), figures)
        turn.say(f"{self.name}, kill {turn.round}, {turn.system}: {'' if gap.exact else 'at most '}{gap.ms:,.1f} ms without a write")

    def section(self, found):
        headings = ["system", "kills measured", "at most", "not measured", "median ms", "p90 ms", "p99 ms", "longest ms",
                    "the next: median ms", "longest ms"]
        rows = []
        for system in found.systems(self.name):
            gaps = gaps_of(found, system)
            following = found.of(self.name, system, (), "next_ms").values()
            figures = [single(percentile(gaps, percent)) for percent in (50, 90, 99, 100)]
            figures += [single(percentile(following, percent)) for percent in (50, 100)]
            at_most = sum(found.of(self.name, system, (), "at_most").values())
            rows.append([system, str(len(gaps)), str(at_most), str(len(found.failed(self.name, system))), *figures])
        return table(headings, rows)

    def plots(self, found, folder):
        series = [Series(system, cumulative(gaps_of(found, system))) for system in found.systems(self.name)]
        caption = "Fail-over: the share of kills (up) after which writes succeeded again within so long (right)."
        return [(plot, caption) for plot in plot_of(
            folder, "failover-cdf", "Time without a write after kill -9 of the leader", "ms", "share of kills", series, log_x=True)]


def kill(cluster):
    """Kills whoever leads; when, in milliseconds of the wall clock."""
    leader = cluster.leader_pid()
    if leader is None:
        raise Failed("nobody led when the leader was to be killed")
    at_ms = time.time() * 1000
    with contextlib.suppress(ProcessLookupError):
        os.kill(leader, signal.SIGKILL)
        return at_ms
    raise Failed("the leader had ended before it was killed")


def wait_for(load, seconds_max, log):
    """Polls, because the child must be gone before its answer is read, and this process must hear signals."""
    end = time.monotonic() + seconds_max
    while load.poll() is None:
        if time.monotonic() > end:
            raise Failed(f"the load took more than {seconds_max} s")
        time.sleep(0.05)
    if load.returncode != 0:
        raise Failed(f"the load: exit code {load.returncode}; log: {tail(log)}")


def gaps_of(found, system):
    return list(found.of(Failover.name, system, (), "gap_ms").values())

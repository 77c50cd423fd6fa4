"""Every experiment with a load program and servers that do nothing: what is asked of them, what is kept and shown."""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import pinning
import processes
from experiments import ALL, follower, report
from experiments.found import Found
from experiments.sweep import rates_of
from experiments.turns import Length, Systems, measure_all
from load import Cluster, Server
from report import NOT_MEASURED

HERE = Path(__file__).parent
FAKE = HERE / "fake_load"
DEADLINE_SECONDS = 20
STOPS_SECONDS_MAX = 5
LENGTH = Length(rounds=2, warm_up_seconds=0, seconds=1, kills=2, seconds_after_kill=1, fractions=(0.25, 0.5, 0.75, 1.2),
                value_bytes=(8, 16384), replicas=(3, 5), budget_seconds=300)
# Stops another program by `pause`, tells both process ids, and waits.
PAUSING = """
import contextlib, pathlib, sys, time
import processes
from experiments import follower
with contextlib.ExitStack() as stack:
    child = processes.start(stack, ["sleep", "600"], "/dev/null")
    follower.pause(stack, child.pid, 0, pathlib.Path(sys.argv[1]))
    print(child.pid, flush=True)
    time.sleep(600)
"""


class Peer:
    """Servers that sleep."""

    def __init__(self, name, replicas=3, survives=True, loads=True):
        self.name, self.replicas, self.survives, self.loads = name, replicas, survives, loads

    def start(self, stack, folder):
        started = [processes.start(stack, ["sleep", "600"], folder / "log") for _ in range(self.replicas)]
        leader = started[0].pid
        for process in started:
            # It is `setpriv` at first.
            processes.wait_until("sleep", lambda: comm(process.pid) == "sleep", [process], folder / "log")

        def words(connections, in_flight, seconds, more):
            return [str(FAKE), "--connections", str(connections), "--in-flight", str(in_flight), "--seconds", str(seconds), *more]

        def surviving(seconds, more=()):
            return words(3, 1, seconds, ["--survive", "--leader", str(leader), *more])

        return Cluster(
            [Server(process.pid, process.pid == leader) for process in started], None,
            survive_command=surviving if self.survives else None, load_with=words if self.loads else None,
        )


class AtInterfaces(Peer):
    """Is measured with programs at its interface and without; without, twice as much arrives, and nothing leaves."""

    first_fails = False

    def interfaces(self):
        return [Interface("no program", 2.0, self.first_fails), Interface("plane xdp", 1.0)]


class Interface(Peer):
    def __init__(self, name, gbit_per_second, fails=False):
        super().__init__(name)
        self.gbit_per_second, self.fails = gbit_per_second, fails

    def start(self, stack, folder):
        if self.fails:
            raise processes.Failed("no such cable")
        return super().start(stack, folder)._replace(bulk=self.bulk)

    def bulk(self, direction, _seconds, _warm_up_seconds):
        if direction == "out":
            raise processes.Failed("nothing leaves")
        return self.gbit_per_second, 60


def comm(pid):
    return Path(f"/proc/{pid}/comm").read_text().strip()


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while its file is read
        return None


def state_once_stopped(pid):
    """A process that runs on another core stands a moment after its signal."""
    until = time.monotonic() + STOPS_SECONDS_MAX
    while (found := state(pid)) != "T" and time.monotonic() < until:
        time.sleep(0.001)
    return found


def run(name, peers, length=LENGTH, said=None, absent=()):
    """One experiment, from beginning to end."""
    found = Found()
    experiment = called(name)
    done = []
    with tempfile.TemporaryDirectory() as folder, mock.patch.multiple("experiments.failover", BEFORE_SECONDS=0, JITTER_SECONDS=0):
        systems = Systems(peers, lambda count: [Peer(peer.name, count) for peer in peers], Path(folder), Path(folder), absent)
        say = (lambda _: None) if said is None else said.append
        measure_all([experiment], systems, length, pinning.choose(os.sched_getaffinity(0)), found, say, done.append)
    assert done == [experiment]
    return found


def called(name):
    (experiment,) = [experiment for experiment in ALL if experiment.name == name]
    return experiment


def shown(found, name):
    return report.section(found, called(name), "now and here")


def line_of(text, system):
    return next(line for line in text.splitlines() if line.startswith(f"| {system} "))


class Experiments(unittest.TestCase):
    def test_outstanding_keeps_tails_and_the_curve(self):
        found = run("outstanding", [Peer("a")])
        self.assertEqual(found.of("outstanding", "a", (), "p999_us"), {1: 300, 2: 300})
        self.assertEqual([curve for *_, curve in found.curves], [[(50, 0.25), (100, 0.5), (300, 1.0)]] * 2)

    def test_a_sweep_offers_fractions_of_the_maximum_and_finds_the_knee(self):
        found = run("sweep", [Peer("a")])
        self.assertEqual(sorted(rate.offered for rate in rates_of(found, "a")), [250, 500, 750, 1200])
        line = line_of(shown(found, "sweep"), "a")
        self.assertIn("750", line)
        self.assertIn("100 / 200", line)

    def test_values_that_are_too_large_for_one_fail_there_only(self):
        found = run("payload", [Peer("a")])
        text = shown(found, "payload")
        self.assertIn("failed", line_of(text, "a"))
        self.assertIn("100 (100–100)", line_of(text, "a"))
        self.assertIn("too large for me", text)
        self.assertNotIn("| 0", line_of(text, "a"))

    def test_other_traffic_is_compared_with_that_without_programs(self):
        said = []
        found = run("traffic", [AtInterfaces("a"), Peer("b")], said=said)
        self.assertEqual(found.systems("traffic"), ["no program", "plane xdp"])
        text = shown(found, "traffic")
        self.assertIn("| 2.00 (2.00–2.00) ", line_of(text, "no program"))
        self.assertIn("| 1.00 (0.50; 0.50–0.50) ", line_of(text, "plane xdp"))
        self.assertIn("failed", line_of(text, "plane xdp"))
        self.assertIn("nothing leaves", text)
        self.assertIn("- plane xdp: three idle replicas", text)
        shares = [point.figures["others_percent"] for point in found.points]
        self.assertIn(60, shares)
        self.assertIn(f"at most {max(shares):.0f} %", text)  # 60, unless others took more while this test ran
        self.assertTrue(any("1.00" in line for line in said))

    def test_other_traffic_is_compared_with_nothing_else(self):
        with mock.patch.object(AtInterfaces, "first_fails", True):
            text = shown(run("traffic", [AtInterfaces("a")]), "traffic")
        self.assertIn("no such cable", text)
        self.assertIn("failed", line_of(text, "no program"))
        self.assertIn("| 1.00 (1.00–1.00) ", line_of(text, "plane xdp"))

    def test_replicas_are_counted(self):
        found = run("replicas", [Peer("a")])
        self.assertEqual(set(found.settings("replicas")), {(n, load) for n in (3, 5) for load in ("1×1", "8×64")})
        with mock.patch.object(Peer, "__init__", lambda self, name, *_: vars(self).update(
                name=name, replicas=3, survives=True, loads=True)):
            found = run("replicas", [Peer("a")])
        self.assertEqual({one.setting for one in found.failures}, {(5,)})
        self.assertIn("3 replicas were started, not 5", shown(found, "replicas"))

    def test_who_can_have_no_more_replicas_takes_part_with_fewer(self):
        with mock.patch.object(Peer, "replicas_max", 3, create=True):
            found = run("replicas", [Peer("a")])
        self.assertEqual({count for count, _ in found.settings("replicas")}, {3})
        self.assertEqual(found.failures, [])
        self.assertIn("a takes part with at most 3 replicas", shown(found, "replicas"))

    def test_memory_and_disk_are_both_measured(self):
        found = run("durability", [Peer("a")])
        self.assertEqual({setting[0] for setting in found.settings("durability")}, {"tmpfs", "disk"})
        self.assertGreater(found.median("durability", "a", ("disk", "flush"), "flush_p50_us"), 0)
        self.assertIn("with `fdatasync`, median: tmpfs ", shown(found, "durability"))

    def test_who_keeps_nothing_is_named_where_data_are_kept(self):
        keeps_nothing = Peer("b")
        keeps_nothing.keeps_nothing = True
        found = run("durability", [Peer("a"), keeps_nothing])
        self.assertEqual(found.systems("durability"), ["a"])
        self.assertIn("b takes no part: keeps nothing", shown(found, "durability"))

    def test_who_has_no_replicas_is_named_where_they_are_counted(self):
        alone = Peer("b")
        del alone.replicas
        found = run("replicas", [Peer("a"), alone])
        self.assertEqual(found.systems("replicas"), ["a"])
        self.assertIn("b takes no part: it runs here as one server", shown(found, "replicas"))

    def test_reads_and_writes_are_mixed(self):
        found = run("mixed", [Peer("a")])
        self.assertIn((10, "64×1"), found.settings("mixed"))
        self.assertIn("90 % reads", shown(found, "mixed"))

    def test_who_has_no_reads_takes_part_with_writes(self):
        with mock.patch.object(Peer, "why_not_read", "it cannot", create=True):
            found = run("mixed", [Peer("a")])
        self.assertEqual(found.settings("mixed"), [(100, "64×1")])
        self.assertEqual(found.failures, [])
        self.assertIn("a takes part with writes alone: it cannot", shown(found, "mixed"))

    def test_who_is_there_for_reads_takes_part_where_there_are_reads(self):
        peer = Peer("quorumwire for reads")
        peer.writes, peer.experiments = False, ("mixed",)
        self.assertEqual(run("outstanding", [peer]).points, [])
        self.assertEqual({setting for setting in run("mixed", [peer]).settings("mixed")}, {(0, "1×1"), (0, "64×1")})

    def test_what_others_used_is_told(self):
        self.assertIn("used by others of the machine, of all its measurements: median ", shown(run("mixed", [Peer("a")]), "mixed"))

    def test_a_server_that_vanishes_ends_its_turn_and_no_other(self):
        class Vanishing(Peer):
            def start(self, stack, folder):
                raise FileNotFoundError("/proc/1/stat")

        found = run("mixed", [Vanishing("a"), Peer("b")])
        self.assertEqual({one.reason for one in found.failures}, {"FileNotFoundError: /proc/1/stat"})
        self.assertIn("b", found.systems("mixed"))

    def test_what_is_said_of_how_often_is_what_is_done(self):
        self.assertIn("2 kills", called("failover").how(LENGTH))
        self.assertNotIn("kills", called("sweep").how(LENGTH))

    def test_the_leader_is_killed_and_the_gap_kept(self):
        said = []
        found = run("failover", [Peer("a"), Peer("nobody takes over", survives=False)], said=said)
        self.assertEqual(found.of("failover", "a", (), "gap_ms"), {1: 30.0, 2: 30.0}, said)
        text = shown(found, "failover")
        self.assertIn("| 2 ", line_of(text, "a"))
        self.assertIn("nobody takes over takes no part", text)

    def test_followers_are_slow_or_stopped_and_go_on(self):
        found = run("follower", [Peer("a"), Peer("two", replicas=2)])
        self.assertEqual({setting[0] for setting in found.settings("follower")}, {"healthy", "slow", "stopped"})
        text = shown(found, "follower")
        self.assertIn("200 (1.00; 1.00–1.00)", line_of(text, "a"))
        self.assertIn("two takes no part: fewer than three servers", text)

    def test_what_goes_on_while_its_process_is_stopped_is_cut_off(self):
        cut = []

        class WithCables(Peer):
            def start(self, stack, folder):
                @contextlib.contextmanager
                def cut_off(slot):
                    cut.append((slot, state_once_stopped(cluster.servers[slot].pid)))
                    yield
                    cut.append("mended")

                cluster = super().start(stack, folder)._replace(cut_off=cut_off)
                return cluster

        run("follower", [WithCables("a")])
        self.assertEqual(cut, [(1, "T"), "mended"] * LENGTH.rounds)

    def test_what_takes_no_other_load_is_named(self):
        text = shown(run("mixed", [Peer("a", loads=False)]), "mixed")
        self.assertIn("Not measured: no system could take part", text)
        self.assertIn("a takes no part: its load program takes no other loads", text)

    def test_who_is_absent_is_named_where_it_would_take_part(self):
        absent = [(Peer("b"), "missing: not installed"), (Peer("c"), "left out"), (Peer("d"), "left out")]
        for peers in ([Peer("a")], []):
            text = shown(run("mixed", peers, absent=absent), "mixed")
            self.assertIn("- b takes no part: missing: not installed\n- c; d take no part: left out", text)
            self.assertNotIn("| b", text)
        dead = Peer("dead")
        dead.dead = True
        self.assertNotIn("dead takes no part", shown(run("mixed", [Peer("a")], absent=[(dead, "left out")]), "mixed"))

    def test_what_found_no_time_says_so(self):
        found = run("mixed", [Peer("a")], LENGTH._replace(budget_seconds=-1))
        self.assertIn("Not measured: no time was left", shown(found, "mixed"))

    def test_plots_are_of_what_was_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            found = run("sweep", [Peer("a")])
            report.draw_plots(found, called("sweep"), Path(folder))
            self.assertEqual(found.not_drawn, {}, "`tools/setup` installs what draws")
            self.assertEqual(sorted(path.name for path in Path(folder).iterdir()), ["throughput-latency-p50.svg", "throughput-latency-p99.svg"])
            self.assertIn("](plots/throughput-latency-p50.svg)", shown(found, "sweep"))
            found = run("failover", [Peer("a", survives=False)])
            report.draw_plots(found, called("failover"), Path(folder))
            self.assertEqual(found.not_drawn, {})
            self.assertNotIn("plots/", shown(found, "failover"))

    def test_plots_that_cannot_be_drawn_are_missed_with_the_reason(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(report, "draw", return_value="no matplotlib"):
            found = run("sweep", [Peer("a")])
            report.draw_plots(found, called("sweep"), Path(folder))
        self.assertIn("no plots were drawn: no matplotlib", shown(found, "sweep"))

    def test_every_figure_is_in_the_csv_and_a_missing_one_is_empty(self):
        found = Found()
        found.add("payload", 1, "a", (8, "1×1"), {"p50_us": 1.5, "p999_us": None})
        found.fail("payload", 2, "a", (8, "1×1"), "no leader")
        with tempfile.TemporaryDirectory() as folder:
            report.write_files(found, called("payload"), Path(folder))
            rows = (Path(folder) / "payload.csv").read_text().splitlines()
        self.assertEqual(rows, ["round,system,bytes,load,p50_us,p999_us,failed", "1,a,8,1×1,1.500,,", "2,a,8,1×1,,,no leader"])
        self.assertIn(NOT_MEASURED, report.section(found, ALL[0], "now and here").lower())


class Pause(unittest.TestCase):
    def wait(self, holds, what):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(processes.POLL_SECONDS)

    def test_a_process_is_stopped_until_the_stack_ends(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as outer:
            pid = processes.start(outer, ["sleep", "600"], os.devnull).pid
            with contextlib.ExitStack() as stack:
                follower.pause(stack, pid, 0, Path(folder) / "log")
                self.wait(lambda: state(pid) == "T", "it runs")
            self.wait(lambda: state(pid) == "S", "it is stopped still")

    def test_nothing_stays_stopped_when_the_harness_is_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
            parent = subprocess.Popen([sys.executable, "-c", PAUSING, str(Path(folder) / "log")], cwd=HERE.parent,
                                      stdout=subprocess.PIPE, env=environment)
            with parent.stdout:
                pid = int(parent.stdout.readline())
            self.wait(lambda: state(pid) == "T", "it runs")
            parent.send_signal(signal.SIGKILL)
            parent.wait(DEADLINE_SECONDS)
            self.wait(lambda: state(pid) in (None, "Z"), "it is left over")


if __name__ == "__main__":
    unittest.main()

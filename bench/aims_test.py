"""The table of aims, profiles and cores: what was not measured is a question mark, and nothing is left out silently."""
import argparse
import os
import unittest

import aims
import pinning
import profiles
import report
from experiments.found import Found
from load import LATENCY, MANY, PIPELINED, READS, Sample
from plane_load import ONE_INSIDE, ONE_OUTSIDE, Repair
from plane_load import Sample as PlaneSample
from plane_report import PlaneResults

NAMES = ["quorumwire memory", "quorumwire memory, Redis client", "quorumwire memory, plane socket", "etcd", "etcd 3.6", "redis, WAIT 1",
         "redis", "dragonboat"]


class Peer:
    note = "a peer"
    workloads = [LATENCY, MANY, PIPELINED, READS]

    def __init__(self, name):
        self.name = name


def results(**figures_of):
    """One round of 1×1: p50 by name, with underscores for whatever is between words."""
    made = report.Results([Peer(name) for name in NAMES], Peer.workloads)
    for name, p50 in figures_of.items():
        (peer,) = [full for full in NAMES if full.replace(", ", "_").replace(" ", "_").replace(".", "_") == name]
        made.add(1, peer, LATENCY, Sample(**{**dict.fromkeys(Sample._fields, 1.0), "p50_us": p50}))
    return made


def plane_sample(**figures):
    return PlaneSample(**{**dict.fromkeys(PlaneSample._fields, 1.0), **figures})


def row(text, what, ours):
    """Median, rounds, aim, reached."""
    lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|"))
    (cells,) = [cells for cells in lines if cells[:2] == [what, ours]]
    return cells[2:]


REDIS_WAIT, ETCD = "p50, 1×1, to Redis+WAIT's", "p50, 1×1, to etcd's"


class Aims(unittest.TestCase):
    def test_nothing_measured_is_nothing_reached_and_nothing_missed(self):
        text = aims_table(results(), Found(), None)
        for aim in (aim for _, part in aims.AIMS.values() for aim in part):
            median, rounds, _, reached = row(text, aim.what, aim.ours)
            self.assertEqual((median, rounds, reached), (report.NOT_MEASURED, "", "?" if aim.bound else ""))

    def test_an_aim_is_reached_on_its_own_side(self):
        for bound, value, said in (((True, 0.25), 0.25, "yes"), ((True, 0.25), 0.26, "**no**"), ((False, 10), 10, "yes"), ((False, 10), 9.9, "**no**")):
            self.assertEqual(report.reached(bound, value), said)

    def test_a_ratio_is_to_the_right_one(self):
        made = results(quorumwire_memory=10, quorumwire_memory_Redis_client=20, etcd=100, redis_WAIT_1=40)
        text = aims_table(made, Found(), None)
        self.assertEqual(row(text, REDIS_WAIT, aims.OFF_REDIS), ["0.50", "", "≤ 1", "yes"])
        self.assertEqual(row(text, ETCD, aims.OFF), ["0.10", "", "≤ 0.15", "yes"])
        made = results(quorumwire_memory=10, quorumwire_memory_plane_socket=20, etcd=1000, etcd_3_6=100)
        text = aims_table(made, Found(), None)
        self.assertEqual([row(text, ETCD, ours)[3] for ours in (aims.OFF, aims.SOCKET, aims.SYNC)], ["yes", "**no**", "?"])

    def test_the_spread_is_of_the_rounds_that_both_took_part_in(self):
        made = results(quorumwire_memory=10, etcd=100)
        for n, figures in ((2, {"quorumwire memory": 20, "etcd": 100}), (3, {"quorumwire memory": 1000})):
            for name, p50 in figures.items():
                made.add(n, name, LATENCY, Sample(**{**dict.fromkeys(Sample._fields, 1.0), "p50_us": p50}))
        self.assertEqual(row(aims_table(made, Found(), None), ETCD, aims.OFF), ["0.20", "0.10–0.20", "≤ 0.15", "**no**"])

    def test_the_plane_in_the_kernel_is_compared_too(self):
        planes = PlaneResults()
        planes.rows.append((1, "xdp", ONE_OUTSIDE, plane_sample(p50_us=15)))
        text = aims_table(results(redis_WAIT_1=100), Found(), planes)
        self.assertEqual(row(text, REDIS_WAIT, aims.XDP_UDP), ["0.15", "", "≤ 0.25", "yes"])
        self.assertEqual(row(text, ETCD, aims.XDP_UDP)[0], report.NOT_MEASURED)

    def test_planes_are_compared_within_a_round_and_the_median_counts(self):
        planes = PlaneResults()
        for n, figures in enumerate(((60, 10, 5), (90, 30, 10), (40, 10, 5)), start=1):
            for name, p50 in zip(("socket", "xdp", "echo"), figures):
                planes.rows.append((n, name, ONE_OUTSIDE, plane_sample(p50_us=p50)))
            planes.rows.append((n, "xdp", ONE_INSIDE, plane_sample(p50_us=10, p99_us=10 * n)))
        planes.repairs.append((1, Repair(1000.0, 500.0, 10, 1.0, 10, 0)))
        text = aims.aims_table(profiles.PLANES, None, None, planes)
        # 6, 3 and 4; of medians it would be 60 / 10.
        self.assertEqual(row(text, "p50, UDP client, one in flight, to that of xdp", "socket"), ["4.00", "3.00–6.00", "≥ 5", "**no**"])
        self.assertEqual(row(text, "p50, UDP client, one in flight, to a bare echo's", "xdp"), ["2.00", "2.00–3.00", "≤ 2.3", "yes"])
        self.assertEqual(row(text, "p99 to p50, client in the kernel, one in flight", "xdp"), ["2.00", "1.00–3.00", "≤ 1.6", "**no**"])
        self.assertEqual(row(text, "throughput while a straggler is repaired, to before", "xdp"), ["0.50", "", "≥ 0.8", "**no**"])
        self.assertEqual(row(text, "p50, client in the kernel, of 1376 B to 16 B", "xdp")[0], report.NOT_MEASURED)

    def test_gaps_of_kills_and_a_stopped_follower(self):
        found = Found()
        for n in range(1, 31):
            found.add("failover", n, "quorumwire memory", (), {"gap_ms": 30.0 + n})
            found.add("failover", n, "etcd", (), {"gap_ms": 1000.0})
        for n, p99 in ((1, 10.0), (2, 13.0)):
            found.add("follower", n, "quorumwire memory", ("healthy", "1×1"), {"p99_us": 10.0})
            found.add("follower", n, "quorumwire memory", ("stopped", "1×1"), {"p99_us": p99})
        text = aims_table(results(), found, None)
        self.assertEqual(row(text, "fail-over gap, p99 of all kills, to etcd's", aims.OFF), ["0.060", "0.057–0.060", "≤ 0.15", "yes"])
        self.assertEqual(row(text, "p99, 1×1, one stopped follower, to healthy", aims.OFF), ["1.15", "1.00–1.30", "≤ 1.2", "yes"])

    def test_names_with_versions_are_known_and_others_are_not(self):
        self.assertTrue(aims.is_called("etcd 3.6", "etcd"))
        self.assertTrue(aims.is_called("etcd 3.6.8", "etcd 3.6"))
        self.assertFalse(aims.is_called("redis, WAIT 1", "redis"))
        self.assertFalse(aims.is_called("etcdx", "etcd"))


def aims_table(*measured):
    return "\n".join(aims.aims_table(part, *measured) for part in aims.AIMS)


class Profiles(unittest.TestCase):
    def test_only_names_parts_systems_or_both(self):
        both = profiles.chosen(profiles.FULL, "sweep;etcd", NAMES)
        self.assertEqual((both.parts, both.systems), (["sweep"], ("etcd",)))
        systems = profiles.chosen(profiles.USUAL, "etcd;redis, WAIT 1", NAMES)
        self.assertEqual((systems.parts, systems.systems), ([profiles.SIDE_BY_SIDE], ("etcd", "redis, WAIT 1")))
        parts = profiles.chosen(profiles.SHORT, "payload", NAMES)
        self.assertEqual((parts.parts, parts.systems), (["payload"], profiles.SHORT_SYSTEMS))
        with self.assertRaisesRegex(profiles.Refused, "'nobody' is refused; allowed: side-by-side"):
            profiles.chosen(profiles.FULL, "sweep;nobody", NAMES)

    def test_whole_parts_of_the_report_are_no_trials(self):
        def is_trial(only, **shorter):
            asked = argparse.Namespace(**{**dict.fromkeys(("rounds", "seconds", "kills", "binary")), **shorter})
            profile = profiles.shortened(profiles.chosen(profiles.USUAL, only, NAMES), asked.rounds, asked.seconds, asked.kills)
            return profiles.is_trial(profile, asked)

        self.assertEqual([is_trial(only) for only in (None, "sweep;failover", "side-by-side", "planes")], [False] * 4)
        self.assertEqual([is_trial(only) for only in ("sweep;etcd", "planes;etcd")], [True, True])
        self.assertTrue(is_trial("failover", kills=3))
        self.assertEqual(profiles.chosen(profiles.USUAL, "failover", NAMES).limit_seconds, profiles.FULL.limit_seconds)

    def test_a_profile_says_what_it_leaves_out(self):
        self.assertEqual([*profiles.parts_left_out(profiles.FULL), *profiles.left_out(profiles.FULL, NAMES)], [])
        said = "; ".join([*profiles.parts_left_out(profiles.SHORT), *profiles.left_out(profiles.SHORT, NAMES)])
        for word in ("payload", "planes", "dragonboat", "redis-benchmark", "rounds: 1, not 5"):
            self.assertIn(word, said)

    def test_the_full_one_has_all_that_a_report_needs(self):
        self.assertGreaterEqual(profiles.FULL.rounds, report.ROUNDS_MIN)
        self.assertGreaterEqual(profiles.FULL.length.rounds, report.ROUNDS_MIN)
        self.assertEqual(profiles.FULL.length.kills, 30)
        self.assertEqual(set(profiles.FULL.parts), set(profiles.PARTS))

    def test_trials_are_shorter_everywhere(self):
        trial = profiles.shortened(profiles.FULL, rounds=1, seconds=2, kills=3)
        self.assertEqual((trial.rounds, trial.seconds), (1, 2))
        self.assertEqual((trial.length.rounds, trial.length.seconds, trial.length.kills), (1, 2, 3))
        self.assertEqual(profiles.shortened(profiles.FULL), profiles.FULL)


class Cores(unittest.TestCase):
    def test_the_load_has_cores_of_its_own_where_there_are_enough(self):
        chosen = pinning.choose(range(8))
        self.assertEqual((chosen.servers, chosen.load), ({0, 1, 2, 3, 4, 5}, {6, 7}))
        self.assertIsNone(pinning.choose(range(2)).servers)
        self.assertEqual(pinning.choose(range(2), forced=True).load, {1})
        self.assertIsNone(pinning.choose(range(1), forced=True).load)
        self.assertIn("load programs on 6,7", chosen.described())

    def test_afterwards_everything_runs_everywhere_again(self):
        every = os.sched_getaffinity(0)
        chosen = pinning.choose(every, forced=True)
        self.assertEqual(chosen.load is None, len(every) == 1)
        with chosen.as_load():
            self.assertEqual(os.sched_getaffinity(0), chosen.load or every)
        self.assertEqual(os.sched_getaffinity(0), every)


if __name__ == "__main__":
    unittest.main()

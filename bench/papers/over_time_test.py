import unittest

from papers.over_time import Timeline, aligned, interval_ms
from processes import Failed


def interval(at_ms, operations, p99_us=10):
    return {"at_ms": at_ms, "operations": operations, "errors": 0, "p50_us": 5, "p99_us": p99_us}


PRINTED = {
    "seconds": 2.0, "intervals": [interval(100, 50)], "errors": {"timeout": 2},
    "longest_gap": {"from_unix_ms": 1_001_500.0, "to_unix_ms": 1_001_900.0, "ms": 400.0, "recovered": True},
}


class AlignedTest(unittest.TestCase):
    def test_a_load_that_does_not_say_when_it_began_did_its_seconds_before_its_end(self):
        found = aligned(PRINTED, 1_000_900, 1_003_000, [(1_001_500, "killed")])
        self.assertEqual(found.marks, [(500, "killed")])
        self.assertEqual(found.gap, (500, 400))
        self.assertEqual(found.errors, {"timeout": 2})

    def test_a_load_that_says_when_it_began_is_believed(self):
        found = aligned({**PRINTED, "began_unix_ms": 1_001_400.0}, 1_000_900, 1_004_000, [(1_001_500, "killed")])
        self.assertEqual(found.marks, [(100, "killed")])

    def test_a_load_that_began_long_before_it_was_started_is_refused(self):
        with self.assertRaises(Failed):
            aligned(PRINTED, 1_003_000, 1_003_100, [])

    def test_without_a_gap_there_is_none(self):
        without = {name: value for name, value in PRINTED.items() if name != "longest_gap"}
        self.assertIsNone(aligned(without, 1_000_900, 1_003_000, []).gap)


class TimelineTest(unittest.TestCase):
    LINE = Timeline([interval(100, 50), interval(200, 0, None), interval(250, 50)], [], None, {})

    def test_throughput_counts_an_interval_s_own_length(self):
        self.assertEqual(self.LINE.throughput(), [(0.05, 500), (0.15, 0), (0.225, 1000)])

    def test_where_nothing_was_answered_there_is_no_latency(self):
        self.assertEqual([p99 for _, p99 in self.LINE.p99()], [10, None, 10])

    def test_a_rate_is_of_the_intervals_that_lie_wholly_within(self):
        self.assertEqual(self.LINE.rate_between(0, 200), 250)
        self.assertEqual(self.LINE.rate_between(50, 240), 0)
        self.assertIsNone(self.LINE.rate_between(210, 240))

    def test_a_long_run_has_longer_intervals(self):
        self.assertEqual(interval_ms(18), 50)
        self.assertEqual(interval_ms(1800), 1800)


if __name__ == "__main__":
    unittest.main()

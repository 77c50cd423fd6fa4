import unittest
from types import SimpleNamespace

from papers.turn import figures_of, since


class FiguresTest(unittest.TestCase):
    def test_cpu_is_percent_of_one_core(self):
        sample = SimpleNamespace(
            operations_per_second=50_000, leader_user_us=4, leader_system_us=6, followers_user_us=2, followers_system_us=2,
            client_cpu_us=1, failed_requests=0, others_percent=0,
        )
        printed = {"latency_us": {"mean": 1, "p50": 1, "p90": 1, "p99": 1}}
        found = figures_of(printed, sample)
        self.assertEqual((found["leader_percent"], found["followers_percent"], found["client_percent"]), (50, 20, 5))


class SinceTest(unittest.TestCase):
    def test_only_what_was_committed_in_between_counts(self):
        none = [0] * 21
        before, now = [*none], [*none]
        before[0], now[0], now[2] = 100, 100, 4
        found = since({"commit": (now, 560.0)}, {"commit": (before, 500.0)})
        self.assertEqual(found["commit_mean_us"], 15)
        self.assertEqual(found["commit_p50_us"], 15)

    def test_without_commits_there_is_nothing(self):
        self.assertEqual(since({"commit": ([1], 5)}, {"commit": ([1], 5)}), {})
        self.assertEqual(since({}, {"commit": ([1], 5)}), {})


if __name__ == "__main__":
    unittest.main()

"""The arithmetic: knees, gaps, ratios, and that a missing figure is never a zero."""
import unittest

from experiments import figures
from experiments.figures import KNEE_TIMES, Gap, Rate, Ratio, gap_of_kill, knee, ratio


def rate(offered, p99, answered=None):
    return Rate(offered, offered if answered is None else answered, p99 / 2, p99)


class Knee(unittest.TestCase):
    def test_it_is_the_last_rate_that_is_kept_up_with_and_borne(self):
        rates = [rate(100, 10), rate(200, 12), rate(300, 10 * KNEE_TIMES), rate(400, 10 * KNEE_TIMES + 1)]
        self.assertEqual(knee(rates).offered, 300)
        self.assertEqual(knee(reversed(rates)).offered, 300)

    def test_a_long_tail_at_the_lowest_rate_makes_no_later_one_bearable(self):
        self.assertEqual(knee([rate(100, 10 * KNEE_TIMES + 1), rate(200, 10), rate(300, 10 * KNEE_TIMES + 1)]).offered, 200)
        self.assertEqual(knee([rate(100, 20), rate(200, 10), rate(300, 10 * KNEE_TIMES + 1)]).offered, 200)

    def test_a_rate_that_is_not_answered_is_behind_it(self):
        self.assertEqual(knee([rate(100, 10), rate(200, 10, answered=180)]).offered, 100)
        self.assertEqual(knee([rate(100, 10), rate(200, 10, answered=190)]).offered, 200)

    def test_a_good_one_behind_a_bad_one_is_luck(self):
        self.assertEqual(knee([rate(100, 10), rate(200, 1000), rate(300, 10)]).offered, 100)

    def test_without_points_there_is_none(self):
        self.assertIsNone(knee([]))
        self.assertIsNone(knee([rate(100, 10, answered=10)]))
        self.assertIsNone(knee([Rate(100, None, 1, 2)]))


class Gaps(unittest.TestCase):
    KILL = 1_000_000.0

    def gaps(self, *gaps, at_the_end=(7, 9)):
        """Of gaps that begin and end so long after the kill, the longest first."""
        longest = [
            {"from_unix_ms": self.KILL + begin, "to_unix_ms": self.KILL + end, "ms": end - begin, "recovered": recovered}
            for begin, end, recovered in gaps
        ]
        return gap_of_kill({"longest_gaps": longest, "intervals": [{"operations": n} for n in at_the_end]}, self.KILL)

    def test_one_around_the_kill_is_the_kills(self):
        self.assertEqual(self.gaps((-2, 28, True)), Gap(30, True, 28))
        self.assertEqual(self.gaps((figures.KILL_TOLERANCE_MS, 100, True)), Gap(50, True, 100))

    def test_longer_ones_elsewhere_do_not_hide_it(self):
        self.assertEqual(self.gaps((400, 900, True), (-500, -100, True), (-2, 28, True), (-10, -3, True)), Gap(30, True, 28))

    def test_of_several_near_the_kill_the_longest_counts(self):
        self.assertEqual(self.gaps((10, 50, True), (-2, 28, True)), Gap(40, True, 50))

    def test_if_all_are_elsewhere_it_is_no_longer_than_the_shortest_of_them(self):
        self.assertEqual(self.gaps((400, 900, True), (-500, -100, True)), Gap(400, False))
        self.assertEqual(self.gaps((-500, -100, True), at_the_end=(7, 0)), Gap(400, False))
        self.assertEqual(self.gaps((400, 900, True), at_the_end=(0, 0)), Gap(500, False))

    def test_without_a_write_afterwards_there_is_no_gap_but_an_outage(self):
        self.assertEqual(self.gaps((-500, -100, True), at_the_end=(7, 0, 0)), figures.NO_WRITE_AFTERWARDS)
        self.assertEqual(self.gaps((-500, -100, True), at_the_end=()), figures.NO_WRITE_AFTERWARDS)
        self.assertEqual(self.gaps((-2, 8000, False), at_the_end=(0, 0)), figures.NO_WRITE_AFTERWARDS)
        self.assertEqual(self.gaps((-9000, -100, True), (-2, 8000, False), at_the_end=(0, 0)), figures.NO_WRITE_AFTERWARDS)
        self.assertEqual(self.gaps((1000, 1040, False), at_the_end=(7, 9)), Gap(40, False))

    def test_a_second_time_without_writes_is_told_apart(self):
        def after(*gaps):
            longest = [{"ms": to - begin, "from_unix_ms": self.KILL + begin} for begin, to in gaps]
            return figures.longest_soon_after({"longest_gaps": longest}, self.KILL)

        self.assertEqual(after((-2, 900), (80, 380), (500, 510)), 300)
        self.assertEqual(after((-2, 28), (1500, 1519), (-700, -690)), 10, "at most the shortest of all")

    def test_none_is_not_zero(self):
        for printed in ({}, {"longest_gaps": None}, {"longest_gaps": []}):
            self.assertEqual(gap_of_kill(printed, self.KILL), "the load program says of no gap")


class Ratios(unittest.TestCase):
    def test_of_medians_with_the_rounds_as_spread(self):
        self.assertEqual(ratio({1: 10, 2: 30, 3: 20}, {1: 100, 2: 100, 3: 50}), Ratio(0.2, 0.1, 0.4))

    def test_what_one_of_them_lacks_is_no_ratio(self):
        self.assertIsNone(ratio({}, {1: 1}))
        self.assertIsNone(ratio({1: 1}, {}))
        self.assertIsNone(ratio({1: 1}, {2: 1}))
        self.assertIsNone(figures.ratio_of_percentiles([], [3], 99))
        self.assertIsNone(figures.ratio_of_percentiles([3], None, 99))

    def test_of_percentiles_the_spread_is_of_what_might_have_been_drawn(self):
        self.assertEqual(figures.ratio_of_percentiles([3, 3], [6, 6], 99), Ratio(0.5, 0.5, 0.5))
        found = figures.ratio_of_percentiles([1] * 15 + [2] * 15, [10] * 29 + [100], 99)
        self.assertEqual(found.value, 0.02)
        self.assertEqual((found.low, found.high), (0.02, 0.2))
        self.assertEqual(figures.ratio_of_percentiles([1] * 15 + [2] * 15, [10] * 29 + [100], 99), found)

    def test_without_another_it_is_the_figure(self):
        self.assertEqual(ratio({1: 10, 2: 30, 3: 20}, None), Ratio(20, 10, 30))


class Distributions(unittest.TestCase):
    def test_a_percentile_is_a_value_that_was_measured(self):
        self.assertEqual(figures.percentile(range(1, 101), 99), 99)
        self.assertEqual(figures.percentile([3, 1, 2], 99), 3)
        self.assertEqual(figures.percentile([3, 1, 2], 50), 2)
        self.assertIsNone(figures.percentile([], 50))
        self.assertIsNone(figures.percentile([None], 50))

    def test_shares_end_at_one(self):
        self.assertEqual(figures.cumulative([4, None, 2]), [(2, 0.5), (4, 1.0)])
        self.assertEqual(figures.cumulative([]), [])

    def test_a_median_leaves_out_what_is_missing(self):
        self.assertEqual(figures.median([None, 4, 2]), 3)
        self.assertIsNone(figures.median([None]))


if __name__ == "__main__":
    unittest.main()

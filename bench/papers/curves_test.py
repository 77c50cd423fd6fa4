import unittest

from papers import curves


class CurvesTest(unittest.TestCase):
    EVEN = [[100, 0.0], [200, 1.0]]  # everything between 100 and 200, evenly

    def test_shares_lie_on_the_line_between_two_points(self):
        self.assertEqual(curves.share_within(self.EVEN, 99), 0.0)
        self.assertAlmostEqual(curves.share_within(self.EVEN, 125), 0.25)
        self.assertEqual(curves.share_within(self.EVEN, 500), 1.0)

    def test_two_points_at_one_place_are_a_step(self):
        self.assertEqual(curves.share_within([[10, 0.2], [10, 0.8], [20, 1.0]], 10), 0.8)

    def test_a_quantile_is_where_the_share_is_reached(self):
        self.assertAlmostEqual(curves.quantile(self.EVEN, 0.25), 125)
        self.assertEqual(curves.quantile([[7, 0.6], [9, 1.0]], 0.5), 7)
        self.assertIsNone(curves.quantile([[7, 0.6], [9, 0.98]], 0.99))

    def test_of_several_runs_the_middle_one_counts_at_each_share(self):
        others = [[[100, 0.0], [300, 1.0]], [[100, 0.0], [9000, 1.0]]]
        found = curves.middle([self.EVEN, *others])
        self.assertEqual(found[-1], [300, 1.0])
        self.assertAlmostEqual(curves.quantile(found, 0.5), 200)

    def test_the_tail_stays(self):
        tailed = [[100, 0.0], [200, 0.995], [300, 0.999], [90_000, 1.0]]
        found = curves.middle([tailed, tailed, self.EVEN])
        self.assertAlmostEqual(curves.quantile(found, 0.999), 300)
        self.assertEqual(found[-1], [90_000, 1.0])
        self.assertEqual([share for _, share in found], sorted(share for _, share in found))

    def test_a_distribution_is_bounded_and_ends_where_one_of_the_runs_does(self):
        cdf = [[n, n / 1000] for n in range(1, 1001)]
        found = curves.middle([cdf])
        self.assertLessEqual(len(found), len(curves.SHARES))
        self.assertEqual(found[-1], [1000, 1.0])
        self.assertEqual(curves.middle([cdf, [[10, 0.5]]])[-1][1], 0.5)

    def test_a_density_holds_what_it_is_made_of(self):
        found = curves.density(self.EVEN, 11)
        width = found[1][0] - found[0][0]
        self.assertAlmostEqual(sum(height * width for _, height in found), 0.99)
        for _, height in found:
            self.assertAlmostEqual(height, 0.01)

    def test_a_density_begins_with_all_at_the_first_point(self):
        found = curves.density([[10, 0.5], [20, 1.0]], 2)
        self.assertGreater(found[0][1], found[1][1])

    def test_a_density_of_one_point_is_none(self):
        self.assertEqual(curves.density([[10, 1.0]], 10), [])
        self.assertEqual(curves.density([], 10), [])

    def test_mean_and_deviation_of_an_even_distribution(self):
        mean, deviation = curves.mean_and_deviation(self.EVEN)
        self.assertAlmostEqual(mean, 150)
        self.assertAlmostEqual(deviation, 100 / 12**0.5)

    def test_mean_and_deviation_of_one_value(self):
        mean, deviation = curves.mean_and_deviation([[42, 1.0]])
        self.assertEqual((mean, deviation), (42, 0))

    def test_rates_are_whole_and_never_none(self):
        self.assertEqual(curves.rates_at(1001, (0.25, 0.5, 0.75)), [250, 500, 751])
        self.assertEqual(curves.rates_at(1, (0.25,)), [1])

    def test_quantiles_of_buckets(self):
        counts = [0, 10, 10, *[0] * 18]
        self.assertEqual(curves.bucket_quantile(counts, 0.5), 10)
        self.assertEqual(curves.bucket_quantile(counts, 0.75), 15)
        self.assertIsNone(curves.bucket_quantile([0] * 21, 0.5))
        self.assertIsNone(curves.bucket_quantile([*[0] * 20, 4], 0.5), "above the last bound nobody knows where")


if __name__ == "__main__":
    unittest.main()

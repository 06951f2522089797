# SPDX-License-Identifier: MIT
"""Statistics on vectors whose results are known."""

import math
import random
import statistics
import unittest

from hellobench import stats


def blocks(*values):
    return dict(enumerate(values))


class Summary(unittest.TestCase):
    def test_a_known_sample(self):
        self.assertEqual(stats.summary([4, 1, 3, 2, 100]),
                         {"n": 5, "median": 3, "mad": 1, "min": 1, "max": 100, "q1": 2, "q3": 4})

    def test_one_value_is_all_of_its_own_figures(self):
        self.assertEqual(stats.summary([7.0]), {"n": 1, "median": 7.0, "mad": 0.0, "min": 7.0,
                                                "max": 7.0, "q1": 7.0, "q3": 7.0})

    def test_what_is_not_known_is_not_counted(self):
        self.assertEqual(stats.summary([None, 2, None, 4])["n"], 2)
        self.assertEqual(stats.summary([None]), {"n": 0, "median": None, "mad": None, "min": None,
                                                 "max": None, "q1": None, "q3": None})


class MedianInterval(unittest.TestCase):
    def test_its_ranks_and_coverage_are_the_known_ones(self):
        for n, low, high, coverage in ((5, 1, 5, 93.8), (6, 1, 6, 96.9), (8, 2, 7, 93.0),
                                       (10, 2, 9, 97.9), (12, 3, 10, 96.1), (15, 4, 12, 96.5)):
            values = list(range(1, n + 1))
            random.Random(n).shuffle(values)
            interval = stats.median_interval(values)
            self.assertEqual(interval[:2], (low, high))
            self.assertAlmostEqual(interval[2] * 100, coverage, delta=0.05)

    def test_fewer_than_five_values_have_none(self):
        self.assertIsNone(stats.median_interval([1, 2, 3, 4]))
        self.assertIsNone(stats.median_interval([1, 2, 3, 4, None]))

    def test_it_covers_the_median_as_often_as_it_says(self):
        generator = random.Random("coverage")
        for n in (5, 10, 15):
            hits = 0
            for _ in range(2000):
                low, high, coverage = stats.median_interval(
                    [generator.lognormvariate(0, 1) for _ in range(n)])
                hits += low <= 1 <= high
            self.assertAlmostEqual(hits / 2000, coverage, delta=0.025)


class Compare(unittest.TestCase):
    def test_the_ratio_is_that_of_each_block_not_of_the_medians(self):
        # The machine doubled its speed from block to block; the ratio never changed.
        base = blocks(1, 2, 4, 8, 16)
        twice = {block: 2 * value for block, value in base.items()}
        compared = stats.compare(twice, base)
        self.assertEqual((compared.ratio, compared.low, compared.high), (2, 2, 2))
        self.assertEqual((compared.decision, compared.n, compared.coverage), ("faster", 5, 0.9375))
        self.assertAlmostEqual(compared.geometric_mean, 2)

    def test_only_blocks_with_both_count(self):
        compared = stats.compare({0: 2, 1: None, 2: 2, 3: 2}, {0: 1, 1: 1, 2: 0, 4: 1})
        self.assertEqual((compared.n, compared.ratio), (1, 2))

    def test_too_few_blocks_have_a_ratio_but_no_interval(self):
        compared = stats.compare(blocks(3, 3, 3, 3), blocks(1, 1, 1, 1))
        self.assertEqual((compared.ratio, compared.low, compared.coverage), (3, None, None))
        self.assertEqual(compared.decision, "inconclusive")

    def test_nothing_in_common_has_no_ratio(self):
        compared = stats.compare({0: 1}, {1: 1})
        self.assertEqual((compared.ratio, compared.n, compared.p, compared.geometric_mean),
                         (None, 0, None, None))

    def test_the_decision_at_its_bounds(self):
        for low, high, word in ((1.0201, 1.1, "faster"), (1.02, 1.1, "inconclusive"),
                                (0.9, 0.9799, "slower"), (0.9, 0.98, "inconclusive"),
                                (0.98, 1.02, "equivalent"), (0.9799, 1.02, "inconclusive"),
                                (0.98, 1.0201, "inconclusive"), (0.5, 2, "inconclusive"),
                                (None, None, "inconclusive")):
            self.assertEqual(stats.decide(low, high, 0.02), word, (low, high))

    def test_less_is_faster_where_less_is_better(self):
        less = stats.compare(blocks(1, 1, 1, 1, 1), blocks(2, 2, 2, 2, 2), lower_is_better=True)
        self.assertEqual((less.ratio, less.decision), (0.5, "faster"))
        more = stats.compare(blocks(2, 2, 2, 2, 2), blocks(1, 1, 1, 1, 1), lower_is_better=True)
        self.assertEqual(more.decision, "slower")

    def test_the_margin_is_two_percent_or_the_noise_of_the_machine(self):
        self.assertEqual([stats.margin_for(floor) for floor in (None, 0.01, 0.05)],
                         [0.02, 0.02, 0.05])


class Bootstrap(unittest.TestCase):
    VALUES = [1.01, 1.02, 1.03, 1.05, 1.05, 1.06, 1.08, 1.09, 1.1, 1.3]

    def test_it_is_there_from_ten_values_and_labelled(self):
        self.assertIsNone(stats.bootstrap(self.VALUES[:9]))
        found = stats.bootstrap(self.VALUES)
        self.assertEqual((found["resamples"], found["coverage"], found["method"]),
                         (10_000, 0.95, "bias-corrected bootstrap"))
        self.assertLess(1.01, found["low"])
        self.assertLess(found["low"], statistics.median(self.VALUES))
        self.assertLess(statistics.median(self.VALUES), found["high"])
        self.assertLess(found["high"], 1.3)

    def test_the_same_values_in_any_order_give_the_same_interval(self):
        stats._resampled_middles.cache_clear()
        first = stats.bootstrap(self.VALUES)
        stats._resampled_middles.cache_clear()
        self.assertEqual(stats.bootstrap(self.VALUES[::-1]), first)

    def test_equal_values_have_no_width(self):
        found = stats.bootstrap([2.0] * 12)
        self.assertEqual((found["low"], found["high"]), (2.0, 2.0))

    def test_it_is_corrected_for_a_median_that_resamples_mostly_exceed(self):
        values = [2.0 ** power for power in range(20)]
        medians = sorted((values[low] + values[high]) / 2
                         for (low, high), count in stats._resampled_middles(20).items()
                         for _ in range(count))
        estimate = statistics.median(values)
        below = sum((median < estimate) + (median == estimate) / 2 for median in medians) / 10_000
        normal = statistics.NormalDist()
        share = normal.cdf(2 * normal.inv_cdf(below) + normal.inv_cdf(0.975))
        self.assertLess(below, 0.495)
        self.assertEqual(stats.bootstrap(values)["high"], medians[int(share * 10_000)])
        self.assertLess(stats.bootstrap(values)["high"], medians[9750])

    def test_its_resamples_have_the_middles_that_chance_gives(self):
        # P(median of 11 draws <= the 4th of 11 values) = P(Bin(11, 4/11) >= 6).
        share = sum(count for (low, _), count in stats._resampled_middles(11).items() if low <= 3)
        expected = sum(math.comb(11, hits) * (4 / 11) ** hits * (7 / 11) ** (11 - hits)
                       for hits in range(6, 12))
        self.assertAlmostEqual(share / 10_000, expected, delta=0.02)


class ManyComparisons(unittest.TestCase):
    def test_the_sign_test_of_known_counts(self):
        self.assertEqual(stats.sign_test([2] * 5), 0.0625)
        self.assertEqual(stats.sign_test([2] * 9 + [0.5]), 22 / 1024)
        self.assertEqual(stats.sign_test([2, 0.5]), 1.0)
        self.assertEqual(stats.sign_test([1, 1]), 1.0)
        self.assertIsNone(stats.sign_test([]))

    def test_holm_steps_down(self):
        adjusted = stats.holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
        for name, p in (("a", 0.03), ("b", 0.06), ("c", 0.06), ("d", 0.02)):
            self.assertAlmostEqual(adjusted[name], p)

    def test_holm_never_exceeds_one_and_leaves_out_what_was_not_tested(self):
        self.assertEqual(stats.holm({"a": 0.7, "b": None, "c": 0.6}),
                         {"a": 1.0, "b": None, "c": 1.0})


class Unpaired(unittest.TestCase):
    def test_the_counts_are_those_of_all_orders(self):
        self.assertEqual(stats._rank_sum_counts(2, 2), [1, 1, 2, 1, 1])
        self.assertEqual(sum(stats._rank_sum_counts(10, 10)), math.comb(20, 10))

    def test_a_known_interval(self):
        # 5 and 5 values: P(U <= 2) = 4 / 252, P(U <= 3) = 7 / 252, P(U <= 4) = 12 / 252.
        compared = stats.compare_unpaired([1, 1.1, 1.2, 1.3, 1.4], [1] * 5)
        self.assertAlmostEqual(compared.coverage, 1 - 2 * 7 / 252)
        self.assertEqual((compared.low, compared.high, compared.ratio), (1, 1.4, 1.2))

    def test_runs_that_do_not_overlap_are_told_apart(self):
        slower = stats.compare_unpaired([80, 81, 82, 83, 84], [100, 101, 102, 103, 104])
        self.assertEqual((slower.decision, slower.method), ("slower", "mann-whitney"))
        self.assertAlmostEqual(slower.p, 2 / 252)

    def test_three_repeats_are_too_few(self):
        compared = stats.compare_unpaired([3, 3, 3], [1, 1, 1])
        self.assertEqual((compared.ratio, compared.low, compared.decision),
                         (3, None, "inconclusive"))

    def test_no_values_have_no_ratio(self):
        self.assertIsNone(stats.compare_unpaired([], [1, 2]).ratio)


class TieGroups(unittest.TestCase):
    def test_what_cannot_be_told_apart_shares_a_rank(self):
        groups = stats.tie_groups({
            "slow": blocks(50, 51, 50, 52, 50), "a": blocks(100, 102, 99, 101, 100),
            "b": blocks(101, 99, 100, 100, 102), "none": blocks(None, None)})
        self.assertEqual(groups, [["a", "b"], ["slow"]])

    def test_the_best_is_the_least_where_less_is_better(self):
        groups = stats.tie_groups({"much": blocks(*[9.0] * 5), "little": blocks(*[3.0] * 5)},
                                  lower_is_better=True)
        self.assertEqual(groups, [["little"], ["much"]])

    def test_few_repeats_are_told_apart_by_their_ranges(self):
        self.assertEqual(stats.tie_groups({"a": blocks(10, 11, 12), "b": blocks(5, 6, 7)}),
                         [["a"], ["b"]])
        self.assertEqual(stats.tie_groups({"a": blocks(10, 11, 12), "b": blocks(9, 10, 10.5)}),
                         [["a", "b"]])

    def test_a_single_repeat_ranks_nobody(self):
        self.assertEqual(stats.tie_groups({"a": {0: 10}, "b": {0: 1}}), [["a", "b"]])


if __name__ == "__main__":
    unittest.main()

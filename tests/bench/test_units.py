# SPDX-License-Identifier: MIT
"""Figures with their units: what each tool prints, and what is no figure."""

import unittest

from hellobench.parsers import histogram, units


class Units(unittest.TestCase):
    def each(self, convert, table):
        for text, expected in table:
            with self.subTest(text=text):
                value = convert(text)
                if expected is None:
                    self.assertIsNone(value)
                else:
                    self.assertAlmostEqual(value, expected, places=6)

    def test_times_of_all_units_become_microseconds(self):
        self.each(units.duration_us, [
            ("283.48us", 283.48), ("4.84ms", 4840), ("2.14s", 2.14e6), ("2.14s ", 2.14e6),
            ("1.20m", 72e6), ("1.00h", 3600e6), ("0us", 0), ("500ns", 0.5), ("1.5\u00b5s", 1.5),
            ("250.0000 ms", 250000), ("0.1039 secs", 103900), ("  1.02ms", 1020)])

    def test_what_is_no_time_is_none_and_never_zero(self):
        self.each(units.duration_us, [
            ("", None), ("NaN", None), ("-nan", None), ("us", None), ("1.2", None), ("1.2x", None),
            ("1.2.3ms", None), ("ms 1", None), ("inf s", None)])

    def test_requests_count_by_thousands(self):
        self.each(units.count, [("44.30k", 44300), ("1.05M", 1.05e6), ("2.00G", 2e9), ("0.00", 0),
                                ("7", 7), ("1.00T", 1e12), ("-nan", None), ("5q", None)])

    def test_sizes_count_by_1024(self):
        self.each(units.size_bytes, [
            ("0.00B", 0), ("109.38KB", 112005.12), ("5.04MB", 5.04 * 2**20), ("1.00GB", 2**30),
            ("1.00TB", 2**40), ("49.59 MiB", 49.59 * 2**20), ("4.85", None), ("4.85M", None)])

    def test_a_percentage_that_is_not_a_number_is_none(self):
        self.each(units.percent, [("90.74%", 90.74), ("-nan%", None), ("nan%", None), ("%", None)])

    def test_the_last_printed_place_is_the_blur_of_a_figure(self):
        self.assertAlmostEqual(units.step("1.00s", units.duration_us), 10000)
        self.assertAlmostEqual(units.step("34.47ms", units.duration_us), 10)
        self.assertAlmostEqual(units.step("40us", units.duration_us), 1)
        self.assertIsNone(units.step("-nan", units.number))

    def test_json_values_that_are_not_finite_are_none(self):
        for value in (None, True, "1", float("nan"), float("inf"), 10 ** 400, [1]):
            with self.subTest(value=value):
                self.assertIsNone(units.finite(value))
        self.assertEqual(units.finite(3), 3.0)
        self.assertIsNone(units.whole(-1))
        self.assertIsNone(units.whole(1.5))


class Histogram(unittest.TestCase):
    def test_a_percentile_is_a_value_that_was_seen(self):
        pairs = histogram.of_values([5, 1, 1, 9])
        self.assertEqual(pairs, [(1, 2), (5, 1), (9, 1)])
        self.assertEqual([histogram.percentile(pairs, p) for p in (0, 50, 51, 75, 76, 100)],
                         [1, 1, 5, 5, 9, 9])

    def test_no_sample_has_no_percentile(self):
        self.assertIsNone(histogram.percentile([], 50))


if __name__ == "__main__":
    unittest.main()

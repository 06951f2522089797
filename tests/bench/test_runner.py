# SPDX-License-Identifier: MIT
"""What a cell is marked with beside its result."""

import unittest

from hellobench import runner
from hellobench.model import Cell


class Marks(unittest.TestCase):
    def marks(self, overflows=None, steal=None, foreign=None):
        cell = Cell("it", "peak", "main", 0, 0)
        cell.network.listen_overflows = overflows
        cell.noise.steal_pct, cell.noise.foreign_cores = steal, foreign
        found = list(runner.marks(cell))
        self.assertFalse(any(problem.fatal for problem in found))
        return [(problem.code, problem.text) for problem in found]

    def test_a_quiet_run_or_one_of_which_nothing_is_known_has_none(self):
        self.assertEqual(self.marks(), [])
        self.assertEqual(self.marks(overflows=0, steal=2.0, foreign=0.2), [])

    def test_connections_that_a_full_queue_dropped_are_told(self):
        self.assertEqual(self.marks(overflows=7), [("LISTEN_OVERFLOWS", "7 times")])

    def test_stolen_time_and_other_programs_are_told_with_their_figures(self):
        self.assertEqual(self.marks(steal=3.14, foreign=0.1), [("NOISY", "steal_pct 3.1")])
        self.assertEqual(self.marks(steal=0.0, foreign=0.5), [("NOISY", "foreign_cores 0.5")])


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""What a cell is marked with beside its result."""

import signal
import unittest

from hellobench import profile, runner
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


class Client:
    """Ends by itself after `ends` seconds; None: never."""

    def __init__(self, ends):
        self.ends, self.passed, self.signals = ends, 0, []

    def wait(self, _, seconds):
        self.passed += seconds
        return 0 if self.ends is not None and self.passed >= self.ends else None

    def signal(self, _, number):
        self.signals.append(number)


class Waiting(unittest.TestCase):
    STEP = profile.Step("s", ["hey"], limit_s=10, tool_timeout_s=20)

    def test_a_client_that_ends_in_time_is_left_alone(self):
        client = Client(ends=10)
        self.assertEqual(runner.wait_for(client, 1, self.STEP), (0, False))
        self.assertEqual(client.signals, [])

    def test_a_client_that_was_told_to_stop_may_wait_for_its_requests_under_way(self):
        client = Client(ends=35)
        self.assertEqual(runner.wait_for(client, 1, self.STEP), (0, True))
        self.assertEqual(client.signals, [signal.SIGINT])

    def test_a_client_that_does_not_stop_either_has_no_status(self):
        self.assertEqual(runner.wait_for(Client(ends=None), 1, self.STEP), (None, True))


if __name__ == "__main__":
    unittest.main()

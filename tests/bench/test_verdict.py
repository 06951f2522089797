# SPDX-License-Identifier: MIT
"""The verdict on a run: every row of its truth table, and each limit at and below."""

import unittest

from hellobench import verdict
from hellobench.model import Cpu

USUAL = {"server_cpus": 2, "client_threads": 1, "shared": False, "single_threaded": False,
         "fixed_rate": False, "errors": 0, "idle_share": 0.5}


def judge(server=0.2, client=0.2, thread=None, **changes):
    """Of cores used; the server was given two, the client can use one."""
    cpu = Cpu(server_cores=server, client_cores=client, max_thread=thread)
    return verdict.verdict(cpu, **(USUAL | changes))


class VerdictTest(unittest.TestCase):
    def check(self, expected, *cases):
        for case in cases:
            with self.subTest(case):
                self.assertEqual(judge(**case), expected)

    def test_errors_come_before_everything(self):
        self.check("ERRORS", {"errors": 1}, {"errors": 1, "server": 2.0}, {"errors": 1,
                   "client": 1.0}, {"errors": 1, "fixed_rate": True}, {"errors": 1, "server": None})

    def test_a_server_that_uses_what_it_was_given_is_the_limit(self):
        self.check("SERVER_BOUND", {"server": 1.8}, {"server": 2.0, "client": 1.0},
                   {"server": 1.8, "shared": True, "idle_share": 0.0},
                   {"server": 1.8, "fixed_rate": True}, {"server": 1.8, "client": None})

    def test_the_only_thread_of_a_server_is_its_limit(self):
        busy = {"server": 0.96, "thread": 0.95}
        self.check("SERVER_BOUND", busy | {"single_threaded": True},
                   busy | {"single_threaded": True, "client": 0.95})
        self.check("UNSATURATED", busy, busy | {"single_threaded": True, "thread": 0.94},
                   busy | {"single_threaded": True, "thread": None})

    def test_a_busy_client_is_the_limit_only_while_the_server_has_room(self):
        self.check("CLIENT_BOUND", {"client": 0.9}, {"client": 1.0, "server": 1.59},
                   {"client": 1.0, "shared": True, "idle_share": 0.0},
                   {"client": 1.0, "fixed_rate": True})
        self.check("UNSATURATED", {"client": 0.89}, {"client": 1.0, "server": 1.6},
                   {"client": 1.0, "server": 1.79}, {"client": 1.0, "client_threads": 2})

    def test_shared_processors_without_idle_time_are_the_limit(self):
        self.check("MACHINE_BOUND", {"server": 1.2, "client": 0.8, "shared": True,
                                     "idle_share": 0.049},
                   {"server": None, "shared": True, "idle_share": 0.0},
                   {"client": 1.0, "server": 1.6, "shared": True, "idle_share": 0.0},
                   {"shared": True, "idle_share": 0.0, "fixed_rate": True})
        self.check("UNSATURATED", {"shared": True, "idle_share": 0.05},
                   {"shared": True, "idle_share": None}, {"idle_share": 0.0})

    def test_a_fixed_rate_is_the_limit_where_nothing_else_is(self):
        self.check("RATE_LIMITED", {"fixed_rate": True}, {"fixed_rate": True, "server": None})

    def test_without_figures_there_is_no_verdict(self):
        self.check("UNKNOWN", {"server": None}, {"server": None, "client": 1.0}, {"client": None},
                   {"server_cpus": 0})

    def test_every_verdict_is_explained(self):
        found = {judge(server=server, client=client, errors=errors, shared=shared, fixed_rate=rate,
                       idle_share=0.0)
                 for server in (None, 0.1, 2.0) for client in (0.1, 1.0) for errors in (0, 1)
                 for shared in (False, True) for rate in (False, True)}
        self.assertEqual(found, set(verdict.MEANINGS))


if __name__ == "__main__":
    unittest.main()

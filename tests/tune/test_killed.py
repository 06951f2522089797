# SPDX-License-Identifier: MIT
"""apply and revert killed at any point, on a machine made of files; then revert is exact.

The same on the kernel's own keys: test_namespaces.py.
"""

import unittest

from fake_machine import OnAMachine, RefusingTree, killed_at_every_call


class Killed(OnAMachine):
    """The process dies before any one of its calls that change a file."""

    def is_key(self, path):
        return path.startswith(str(self.machine.keys))

    def killed_at_every_call(self, *arguments):
        return killed_at_every_call(lambda: self.machine.tune(*arguments), self.is_key)

    def test_in_apply_then_revert_restores_every_byte(self):
        for number in self.killed_at_every_call("apply", "server", "client", "--persist"):
            with self.subTest(call=number):
                self.tune("revert")
                self.assert_as_before()
        self.assertGreater(number, 20)

    def test_in_apply_then_the_next_apply_completes_it(self):
        for number in self.killed_at_every_call("apply", "server", "client"):
            with self.subTest(call=number):
                self.tune("apply", "server", "client")
                self.tune("verify")
                self.tune("revert")
                self.assert_as_before()

    def test_in_a_second_apply_then_revert_restores_what_was_before_the_first(self):
        self.tune("apply", "server")
        for number in self.killed_at_every_call("apply", "published", "client"):
            with self.subTest(call=number):
                self.tune("revert")
                self.assert_as_before()
                self.tune("apply", "server")

    def test_in_revert_then_the_next_revert_completes_it(self):
        self.tune("apply", "server", "client", "--persist")
        for number in self.killed_at_every_call("revert"):
            with self.subTest(call=number):
                self.tune("revert")
                self.assert_as_before()
                self.tune("apply", "server", "client", "--persist")

    def test_in_a_roll_back_then_revert_restores_every_byte(self):
        bad = self.machine.profile("net.core.somaxconn = 1\nnet.ipv4.tcp_migrate_req = 1\n"
                                   "net.ipv4.tcp_tw_reuse = 7\n")
        self.use_tree(RefusingTree)
        for number in self.killed_at_every_call("apply", bad):
            with self.subTest(call=number):
                self.tune("revert")
                self.assert_as_before()


if __name__ == "__main__":
    unittest.main()

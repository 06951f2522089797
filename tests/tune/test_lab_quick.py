# SPDX-License-Identifier: MIT
"""The experiments that take a second or two, on this kernel. HELLO_LAB=all runs the others too."""

import os
import pathlib
import shutil
import tempfile
import unittest

from hellotune.lab import catalogue
from lab_runner import CHECKOUT, expect_to_hold

NOBODY = 65534


class QuickExperiments(unittest.TestCase):
    def test_somaxconn_caps_the_backlog(self):
        expect_to_hold(self, "somaxconn")

    def test_time_wait_stays_with_the_side_that_closes_first(self):
        expect_to_hold(self, "tw-side")

    def test_tw_reuse_needs_timestamps_and_a_pause(self):
        expect_to_hold(self, "tw-reuse")

    def test_fin_timeout_is_not_about_time_wait(self):
        expect_to_hold(self, "fin-timeout")

    def test_a_client_can_connect_to_itself(self):
        expect_to_hold(self, "self-connect")

    def test_a_closing_listener_hands_its_queue_over(self):
        expect_to_hold(self, "migrate")

    def test_a_new_namespace_has_the_defaults(self):
        expect_to_hold(self, "inherit")


class Surroundings(unittest.TestCase):
    def test_an_ordinary_user_can_run_it(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            copy.chmod(0o755)
            for name in ("scripts", "sysctl"):
                shutil.copytree(CHECKOUT / name, copy / name)
            # Root becomes somebody else; who is somebody else already, needs nothing.
            become = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            try:
                expect_to_hold(self, "tw-side", "migrate", checkout=copy,
                               **become if os.geteuid() == 0 else {})
            except PermissionError as error:
                self.skipTest(f"can't become another user here: {error}")

    def test_it_leaves_the_machine_as_it_was(self):
        before = machine()
        expect_to_hold(self, "inherit", "self-connect")
        self.assertEqual(machine(), before)


def machine():
    """What a namespace that leaked would have changed."""
    keys = ("net/core/somaxconn", "net/ipv4/ip_local_port_range", "net/ipv4/tcp_fin_timeout",
            "net/ipv4/ip_local_reserved_ports")
    values = [pathlib.Path("/proc/sys", key).read_text() for key in keys]
    links = [line.split(":")[0].strip() for line in
             pathlib.Path("/proc/net/dev").read_text().splitlines()[2:]]
    return values, links


@unittest.skipUnless(os.environ.get("HELLO_LAB") == "all", "slow: HELLO_LAB=all runs them")
class SlowExperiments(unittest.TestCase):
    def test_all_others_hold(self):
        for name, one in catalogue.experiments().items():
            if not one.quick:
                with self.subTest(experiment=name):
                    expect_to_hold(self, name)


if __name__ == "__main__":
    unittest.main()

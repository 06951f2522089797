# SPDX-License-Identifier: MIT
"""What is said where a key can't be written: the cause, and what would help."""

import unittest

from hellotune import sysctl_files
from hellotune.containers import Place, io_uring_status
from hellotune.kernel_keys import Access

HOST = Place(initial_netns=True, container="", uid=0, net_admin=True)
USER = Place(initial_netns=True, container="", uid=1000, net_admin=False)
CONTAINER = Place(initial_netns=False, container="docker", uid=0, net_admin=False)
SETTINGS = sysctl_files.parse(b"net.core.somaxconn = 65535\nvm.swappiness = 1\n"
                              b"#= net.ipv4.tcp_syncookies = 1\n", "x")


class Refusals(unittest.TestCase):
    def test_an_ordinary_user_is_told_the_capability_and_the_command(self):
        self.assertIn("CAP_NET_ADMIN", USER.refusal(Access.DENIED, "net.core.somaxconn"))
        self.assertIn("uid 0", USER.refusal(Access.DENIED, "vm.swappiness"))
        lines = USER.remedies({Access.DENIED}, ["/x y/tune", "apply", "server"], SETTINGS)
        self.assertEqual(lines[0], "as root: sudo '/x y/tune' apply server")

    def test_root_without_the_capability_is_not_told_to_use_sudo(self):
        lines = CONTAINER.remedies({Access.DENIED}, ["tune"], SETTINGS)
        self.assertNotIn("sudo", " ".join(lines))
        self.assertIn("--cap-add NET_ADMIN", " ".join(lines))

    def test_a_read_only_tree_is_set_from_outside(self):
        lines = CONTAINER.remedies({Access.READ_ONLY_MOUNT}, ["tune"], SETTINGS)
        self.assertEqual(lines[0], "start the container with: docker run"
                                   " --sysctl net.core.somaxconn=65535")

    def test_a_missing_key_has_another_reason_in_another_namespace(self):
        key = "net.core.netdev_max_backlog"
        self.assertIn("not in this network namespace", CONTAINER.refusal(Access.ABSENT, key))
        self.assertIn("no such key", HOST.refusal(Access.ABSENT, key))
        self.assertIn("no such key", CONTAINER.refusal(Access.ABSENT, "vm.no_such"))

    def test_a_plan_that_is_possible_needs_no_remedy(self):
        self.assertEqual(HOST.remedies(set(), ["tune"], SETTINGS), [])


class Reach(unittest.TestCase):
    def test_only_keys_outside_net_change_the_machine_from_within_a_part_of_it(self):
        self.assertTrue(CONTAINER.changes_machine("vm.swappiness"))
        self.assertFalse(CONTAINER.changes_machine("net.core.somaxconn"))
        self.assertFalse(HOST.changes_machine("vm.swappiness"))

    def test_each_place_says_how_far_an_apply_reaches(self):
        self.assertIn("bridge network", HOST.notes()[0])
        self.assertIn("this network namespace only", CONTAINER.notes()[0])
        shared = Place(initial_netns=True, container="docker", uid=0, net_admin=True)
        self.assertIn("the host has these values", shared.notes()[0])

    def test_io_uring_is_asked_and_not_guessed(self):
        self.assertRegex(io_uring_status(), "^(allowed|refused|this kernel has none)")


if __name__ == "__main__":
    unittest.main()

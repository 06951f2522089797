# SPDX-License-Identifier: MIT
"""apply --persist: one file of our own, and what other files make of the same keys at boot."""

import unittest

from fake_machine import Machine, OnAMachine
from hellotune import persist

OURS = "etc/sysctl.d/60-hello-uring.conf"


class Persist(OnAMachine):
    def setUp(self):
        super().setUp()
        self.file = self.machine.root / OURS

    def put(self, name, text):
        Machine.put(self.machine.root / name, text)

    def test_only_our_file_is_written_and_revert_removes_it(self):
        self.tune("apply", "server", "--persist")
        self.assertIn("net.core.somaxconn = 65535\n", self.file.read_text())
        self.assertEqual((self.machine.root / "etc/sysctl.conf").read_text(),
                         "# the administrator's\n")
        self.tune("revert")
        self.assert_as_before()

    def test_nothing_is_written_without_the_option(self):
        self.tune("apply", "server")
        self.assertFalse(self.file.exists())

    def test_a_second_apply_writes_the_same_bytes(self):
        self.tune("apply", "server", "--persist")
        once = self.file.read_bytes()
        self.tune("apply", "server", "--persist")
        self.assertEqual(self.file.read_bytes(), once)

    def test_the_file_has_all_that_was_applied_and_the_values_in_force(self):
        Machine.put(self.machine.keys / "net/core/somaxconn", "100000\n")
        self.tune("apply", "server")
        self.tune("apply", "client", "--persist")
        text = self.file.read_text()
        self.assertIn("net.core.somaxconn = 100000\n", text)
        self.assertIn("net.ipv4.ip_local_port_range = 10240 65535\n", text)
        self.assertNotIn("syncookies", text)

    def test_a_file_of_somebody_else_stops_all(self):
        self.put(OURS, "net.core.somaxconn = 5\n")
        before = self.machine.everything()
        self.assertIn("somebody else's", self.tune("apply", "--persist", status=3))
        self.tune("apply")
        self.tune("revert")
        self.assertEqual(self.machine.everything(), before)

    def test_a_file_that_was_edited_is_kept_unless_forced(self):
        self.tune("apply", "--persist")
        self.put(OURS, self.file.read_text() + "net.ipv4.tcp_tw_reuse = 1\n")
        self.assertIn("--force", self.tune("revert", status=1))
        self.assertTrue(self.file.exists())
        self.tune("revert", "--force")
        self.assert_as_before()

    def test_after_a_reboot_revert_removes_the_file_and_no_value_is_touched(self):
        self.tune("apply", "--persist")
        Machine.put(self.machine.keys / "kernel/random/boot_id", "99999999-2222\n")
        self.tune("revert")
        self.assertFalse(self.file.exists())
        self.assertEqual(self.machine.key("net/core/somaxconn"), "65535\n")

    def test_another_network_namespace_leaves_the_file_alone(self):
        self.tune("apply", "--persist")
        namespace = self.machine.root / "proc/self/ns/net"
        namespace.rename(namespace.with_name("old"))
        Machine.put(namespace, "")
        self.assertIn("nothing was applied", self.tune("revert"))
        self.assertTrue(self.file.exists())
        self.assertIn("another network namespace", self.tune("apply", "--persist", status=3))

    def test_a_folder_that_cannot_be_written_takes_all_keys_back(self):
        real = persist.BootFile.write

        def full(self, values):
            raise OSError(28, "No space left on device")

        persist.BootFile.write = full
        self.addCleanup(setattr, persist.BootFile, "write", real)
        self.assertIn("No space left", self.tune("apply", "--persist", status=1))
        self.assert_as_before()

    def test_a_dry_run_names_the_file(self):
        self.assertIn(OURS, self.tune("apply", "--persist", "--dry-run"))
        self.assert_as_before()

    def test_a_later_file_with_another_value_is_warned_of_and_fails_verify(self):
        self.put("etc/sysctl.conf", "# first\nnet.core.somaxconn=128\n")
        (self.machine.root / "etc/sysctl.d/99-sysctl.conf").symlink_to("../sysctl.conf")
        self.assertIn("99-sysctl.conf:2 makes it 128", self.tune("apply", "--persist"))
        self.assertIn("AT BOOT", self.tune("verify", status=1))
        self.put("etc/sysctl.conf", "net.core.somaxconn=70000\n")
        self.tune("verify")


class AtBoot(OnAMachine):
    def winner(self, key="net.core.somaxconn"):
        line = persist.winner(persist.boot_lines(self.machine.root), key)
        return line and (line.path.removeprefix(str(self.machine.root) + "/"), line.value)

    def put(self, name, text):
        Machine.put(self.machine.root / name, text)

    def test_files_go_by_their_names_and_not_by_their_folders(self):
        self.put("usr/lib/sysctl.d/99-z.conf", "net.core.somaxconn=1\n")
        self.put("etc/sysctl.d/10-a.conf", "net.core.somaxconn=2\n")
        self.assertEqual(self.winner(), ("usr/lib/sysctl.d/99-z.conf", "1"))

    def test_of_two_files_with_one_name_the_one_in_etc_counts(self):
        self.put("usr/lib/sysctl.d/50-a.conf", "net.core.somaxconn=1\n")
        self.put("run/sysctl.d/50-a.conf", "net.core.somaxconn=2\n")
        self.put("etc/sysctl.d/50-a.conf", "# nothing: it masks the others\n")
        self.assertIsNone(self.winner())

    def test_sysctl_conf_comes_last_where_no_link_leads_to_it(self):
        self.put("etc/sysctl.d/99-z.conf", "net.core.somaxconn=1\n")
        self.put("etc/sysctl.conf", "net.core.somaxconn=2\n")
        self.assertEqual(self.winner(), ("etc/sysctl.conf", "2"))

    def test_a_line_with_the_key_beats_a_pattern(self):
        self.put("etc/sysctl.d/10-a.conf", "-net.ipv4.conf.eth0.rp_filter = 1\n")
        self.put("etc/sysctl.d/20-b.conf", "net/ipv4/conf/*/rp_filter = 2\n")
        self.assertEqual(self.winner("net.ipv4.conf.eth0.rp_filter")[1], "1")
        self.assertEqual(self.winner("net.ipv4.conf.lo.rp_filter")[1], "2")

    def test_lines_that_make_no_sense_are_passed_over(self):
        self.put("etc/sysctl.d/10-a.conf", "what\n= 1\n../x = 1\n\xff\nnet.core.somaxconn=1")
        self.assertEqual(self.winner(), ("etc/sysctl.d/10-a.conf", "1"))


if __name__ == "__main__":
    unittest.main()

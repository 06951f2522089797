# SPDX-License-Identifier: MIT
"""apply and revert on a machine made of files: all or nothing, and exactly back."""

import fcntl
import os
import signal
import threading
import unittest

from fake_machine import Machine, OnAMachine, RefusingTree
from hellotune import kernel_keys, transaction
from hellotune.kernel_keys import KeyTree, WriteError


class PortTree(KeyTree):
    """A kernel that wants the range of ports above the privileged ones, as the real one does."""

    def write(self, key, text):
        now = {name: self.read(f"net.ipv4.{name}").split()[0]
               for name in ("ip_unprivileged_port_start", "ip_local_port_range")}
        now[key.removeprefix("net.ipv4.")] = text.split()[0]
        if int(now["ip_unprivileged_port_start"]) > int(now["ip_local_port_range"]):
            raise WriteError("the kernel refused it: Invalid argument (EINVAL)")
        super().write(key, text)


class Apply(OnAMachine):
    def test_without_names_it_applies_the_server_profile(self):
        self.tune("apply")
        self.assertEqual(self.machine.key("net/core/somaxconn"), "65535\n")
        self.assertEqual(self.machine.key("net/ipv4/tcp_tw_reuse"), "2\n")

    def test_a_dry_run_writes_nothing(self):
        self.assertIn("4096 -> 65535", self.tune("apply", "server", "client", "--dry-run"))
        self.assert_as_before()

    def test_a_dry_run_with_keep_going_shows_what_could_be_set(self):
        path = self.machine.profile("net.core.somaxconn = 1\nnet.gone.key = 1\n")
        said = self.tune("apply", "--dry-run", "--keep-going", path, status=3)
        self.assertIn("would be written net.core.somaxconn", said)
        self.assertNotIn("--keep-going", said)
        self.assert_as_before()

    def test_a_value_that_is_already_enough_is_left_alone(self):
        self.set("net/core/somaxconn", "100000\n")
        self.assertIn("already", self.tune("apply"))
        self.assertEqual(self.machine.key("net/core/somaxconn"), "100000\n")

    def test_numbers_are_compared_whatever_their_length(self):
        path = self.machine.profile("#@ compare: min\nfs.file-max = 2097152\n")
        self.assertIn("already", self.tune("apply", path))
        path = self.machine.profile("#@ compare: min\nfs.file-max = 9223372036854775808\n")
        self.assertIn("->", self.tune("apply", path, "--dry-run"))

    def test_blanks_and_tabs_between_words_make_no_difference(self):
        path = self.machine.profile("net.ipv4.ip_local_port_range = 32768   60999\n")
        self.assertIn("already", self.tune("apply", path))

    def test_a_list_gets_ours_added(self):
        self.set("net/ipv4/ip_local_reserved_ports", "22,9000-9001\n")
        before = self.machine.everything()
        path = self.machine.profile(
            "#@ compare: merge\nnet.ipv4.ip_local_reserved_ports = 8080-8082,9002\n")
        self.tune("apply", path)
        self.assertEqual(self.machine.key("net/ipv4/ip_local_reserved_ports"),
                         "22,8080-8082,9000-9002\n")
        self.assertIn("already", self.tune("apply", path))
        self.tune("revert")
        self.assertEqual(self.machine.everything(), before)

    def test_of_two_profiles_the_later_wins(self):
        self.set("net/core/netdev_max_backlog", "1000\n")
        self.tune("apply", "server", "published")
        self.assertEqual(self.machine.key("net/core/somaxconn"), "1024\n")

    def test_unprivileged_ports_are_set_before_the_range_that_must_lie_above_them(self):
        path = self.machine.profile("net.ipv4.ip_local_port_range = 500 600\n"
                                    "net.ipv4.ip_unprivileged_port_start = 80\n")
        said = self.tune("apply", path)
        self.assertLess(said.index("ip_unprivileged_port_start"), said.index("port_range"))
        said = self.tune("revert")
        self.assertGreater(said.index("ip_unprivileged_port_start"), said.index("port_range"))

    def test_raising_the_unprivileged_ports_comes_after_the_range(self):
        self.use_tree(PortTree)
        for start, ports in (("1024", "40000 60999"), ("35000", "40000 60999"), ("0", "500 60999"),
                             ("1024", "10240 60999"), ("0", "500 60999")):
            self.tune("apply", self.machine.profile(
                f"net.ipv4.ip_unprivileged_port_start = {start}\n"
                f"net.ipv4.ip_local_port_range = {ports}\n"))
        self.tune("revert")
        self.assert_as_before()

    def test_the_way_back_is_in_that_order_however_the_keys_were_written(self):
        self.use_tree(PortTree)
        for text in ("net.ipv4.ip_local_port_range = 40000 60999\n",
                     "net.ipv4.ip_unprivileged_port_start = 35000\n",
                     "net.ipv4.ip_unprivileged_port_start = 0\n"
                     "net.ipv4.ip_local_port_range = 500 60999\n"):
            self.tune("apply", self.machine.profile(text))
        self.tune("revert")
        self.assert_as_before()

    def test_a_required_key_that_is_missing_stops_all(self):
        path = self.machine.profile("net.core.somaxconn = 1\nnet.ipv4.no_such_key = 1\n")
        said = self.tune("apply", path, status=3)
        self.assertIn("has no such key", said)
        self.assertIn("nothing was changed", said)
        self.assert_as_before()

    def test_an_optional_key_that_is_missing_is_skipped_with_the_reason(self):
        (self.machine.keys / "net/ipv4/tcp_migrate_req").unlink()
        said = self.tune("apply")
        self.assertRegex(said, "skipped +net.ipv4.tcp_migrate_req: .*has no such key")
        self.assertEqual(self.machine.key("net/core/somaxconn"), "65535\n")

    def test_without_proc_the_cause_is_named(self):
        for path in sorted(self.machine.keys.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        self.assertIn("is /proc mounted", self.tune("apply", status=3))

    def test_a_read_only_key_stops_all(self):
        (self.machine.keys / "net/core/somaxconn").chmod(0o444)
        self.assertIn("read-only", self.tune("apply", status=3))
        self.assertEqual(self.machine.key("net/ipv4/tcp_migrate_req"), "0\n")

    def test_keep_going_sets_what_can_be_set_and_says_so_in_its_status(self):
        path = self.machine.profile("net.core.somaxconn = 1\nnet.ipv4.no_such_key = 1\n")
        self.tune("apply", path, "--keep-going", status=3)
        self.assertEqual(self.machine.key("net/core/somaxconn"), "1\n")
        self.tune("revert")
        self.assert_as_before()

    def test_a_key_that_changes_others_is_refused(self):
        self.set("net/ipv4/ip_forward", "0\n")
        path = self.machine.profile("net.ipv4.ip_forward = 1\n")
        self.assertIn("by hand", self.tune("apply", path, status=3))
        self.assertEqual(self.machine.key("net/ipv4/ip_forward"), "0\n")

    def test_links_and_folders_in_the_tree_are_no_keys(self):
        os.symlink(self.machine.root / "etc/sysctl.conf", self.machine.keys / "net/link")
        for key in ("net.link", "net.core"):
            path = self.machine.profile(f"{key} = 1\n")
            self.assertIn("leaves /proc/sys", self.tune("apply", path, status=3))

    def test_all_files_are_understood_before_the_first_write(self):
        path = self.machine.profile("net.core.somaxconn = 1\nnonsense\n")
        self.assertIn("own.conf:2", self.tune("apply", "client", path, status=2))
        self.assert_as_before()

    def test_a_profile_that_can_be_read_only_once_or_never_ends_is_refused(self):
        pipe = self.machine.profiles / "pipe.conf"
        os.mkfifo(pipe)
        for path in (str(pipe), str(self.machine.profiles)):
            self.assertIn("no ordinary file", self.tune("apply", path, status=2))

    def test_an_unknown_profile_is_bad_usage(self):
        self.assertIn("server client verify published", self.tune("apply", "nope", status=2))
        self.assertIn("No such file", self.tune("apply", "./nope.conf", status=2))

    def test_a_second_tune_at_work_is_told_to_wait(self):
        store = self.machine.root / "run/tune"
        store.mkdir(parents=True)
        with open(store / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another tune", self.tune("apply", status=4))
        self.assert_as_before()

    def test_in_another_network_namespace_the_machines_keys_are_refused_without_global(self):
        (self.machine.keys / "net/core/netdev_max_backlog").unlink()
        before = self.machine.everything()
        self.assertIn("--global", self.tune("apply", "published", status=3))
        self.assertEqual(self.machine.everything(), before)
        self.tune("apply", "published", "--global")
        self.assertEqual(self.machine.key("vm/swappiness"), "0\n")
        self.tune("revert")
        self.assertEqual(self.machine.everything(), before)

    def test_in_a_container_the_machines_keys_are_refused_without_global(self):
        Machine.put(self.machine.root / ".dockerenv", "")
        self.assertIn("container (docker)", self.tune("apply", "published", status=3))
        self.assertIn("the host has these values", self.tune("apply", "server"))


class Failures(OnAMachine):
    def setUp(self):
        super().setUp()
        self.bad = self.machine.profile(
            "net.core.somaxconn = 128\nnet.ipv4.tcp_migrate_req = 1\nnet.ipv4.tcp_tw_reuse = 7\n"
            "net.ipv4.ip_local_port_range = 10240 65535\n")

    def test_a_refused_value_takes_back_all_keys_of_the_run(self):
        self.use_tree(RefusingTree)
        said = self.tune("apply", self.bad, status=1)
        self.assertIn("EINVAL", said)
        self.assertRegex(said, "rolled back +net.core.somaxconn")
        self.assert_as_before()

    def test_a_failed_second_apply_leaves_the_first_ones_values_and_state(self):
        self.use_tree(RefusingTree)
        self.tune("apply", "server")
        applied = self.machine.everything()
        self.tune("apply", self.bad, status=1)
        self.assertEqual(self.machine.everything(), applied)
        self.tune("revert")
        self.assert_as_before()

    def test_with_keep_going_only_the_refused_key_is_taken_back(self):
        self.use_tree(RefusingTree)
        said = self.tune("apply", self.bad, "--keep-going", status=1)
        self.assertRegex(said, "failed +net.ipv4.tcp_tw_reuse")
        self.assertEqual(self.machine.key("net/ipv4/tcp_tw_reuse"), "2\n")
        self.assertEqual(self.machine.key("net/ipv4/ip_local_port_range"), "10240 65535\n")
        self.assertNotIn("tcp_tw_reuse", self.machine.state_file().read_text())
        self.tune("revert")
        self.assert_as_before()

    def test_a_key_that_goes_away_before_its_turn_leaves_nothing_behind(self):
        self.use_tree(self.tree_that_loses("net/ipv4/tcp_tw_reuse", at="net.ipv4.tcp_migrate_req"))
        self.tune("apply", self.vanishing_profile(), status=1)
        del self.before["proc/sys/net/ipv4/tcp_tw_reuse"]
        self.assert_as_before()

    def test_with_keep_going_a_key_that_goes_away_is_like_one_that_was_refused(self):
        self.use_tree(self.tree_that_loses("net/ipv4/tcp_tw_reuse", at="net.ipv4.tcp_migrate_req"))
        said = self.tune("apply", "--keep-going", self.vanishing_profile(), status=1)
        self.assertIn("No such file", said)
        self.assertEqual(self.machine.key("net/ipv4/tcp_syncookies"), "0\n")

    def vanishing_profile(self):
        return self.machine.profile("net.ipv4.tcp_migrate_req = 1\nnet.ipv4.tcp_tw_reuse = 1\n"
                                    "net.ipv4.tcp_syncookies = 0\n")

    def tree_that_loses(self, name, at):
        class Losing(KeyTree):
            def write(inner, key, text):
                super().write(key, text)
                if key == at:
                    (self.machine.keys / name).unlink(missing_ok=True)
        return Losing

    def test_a_value_that_reads_back_otherwise_is_a_failure(self):
        real = os.write

        def clamp(file, data):
            if data == b"128\n":
                return real(file, b"127\n") * 0 + len(data)
            return real(file, data)

        kernel_keys.os.write = clamp
        try:
            said = self.tune("apply", self.bad, status=1)
        finally:
            kernel_keys.os.write = real
        self.assertIn("the kernel shows '127'", said)
        self.assert_as_before()

    def test_a_signal_takes_back_all_keys_of_the_run(self):
        path = self.machine.profile("".join(
            f"net.test{number}.a = 1\n" for number in range(400)))
        for number in range(400):
            self.set(f"net/test{number}/a", "0\n")
        before = self.machine.everything()
        for which in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=which):
                said = self.interrupted(which, path)
                self.assertIn(f"interrupted by {which.name}", said)
                self.assertEqual(self.machine.everything(), before)

    def test_a_signal_that_is_to_be_ignored_is_ignored(self):
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_IGN))
        path = self.machine.profile("net.core.somaxconn = 1\nnet.ipv4.tcp_tw_reuse = 1\n")
        self.interrupted(signal.SIGHUP, path, at="net.core.somaxconn", status=0)
        self.assertEqual(self.machine.key("net/ipv4/tcp_tw_reuse"), "1\n")

    def interrupted(self, which, path, at="net.test200.a", status=1):
        """apply, with a signal that arrives as it has written the key."""
        class Interrupting(KeyTree):
            def write(self, key, text):
                super().write(key, text)
                if key == at and text == "1":
                    os.kill(os.getpid(), which)

        self.assertIs(threading.current_thread(), threading.main_thread())
        self.use_tree(Interrupting)
        return self.tune("apply", path, status=status)

    def test_the_state_is_on_the_disk_before_the_first_write(self):
        seen = []

        class Looking(KeyTree):
            def write(inner, key, text):
                seen.append(self.machine.state_file().read_text())
                super().write(key, text)

        self.use_tree(Looking)
        self.tune("apply")
        self.assertIn("net.core.somaxconn\t4096\\n\t65535\n", seen[0])
        self.assertIn("net.ipv4.tcp_migrate_req\t0\\n\t1\n", seen[0])


class Revert(OnAMachine):
    def test_bytes_that_are_no_text_come_back(self):
        path = self.machine.profile("kernel.domainname = x\n")
        key = self.machine.keys / "kernel/domainname"
        key.write_bytes(b"caf\xe9\n")
        self.tune("apply", path)
        self.assertEqual(key.read_bytes(), b"x\n")
        self.tune("revert")
        self.assertEqual(key.read_bytes(), b"caf\xe9\n")

    def test_it_restores_every_byte(self):
        self.tune("apply", "server", "client")
        self.tune("revert")
        self.assert_as_before()

    def test_after_two_applies_it_restores_the_first_original(self):
        self.tune("apply", "server", "client")
        self.tune("apply", "server", "client")
        self.tune("apply", "published")
        self.tune("apply", "server", "client")
        self.tune("revert")
        self.assert_as_before()

    def test_a_second_apply_of_the_same_changes_nothing(self):
        self.tune("apply", "server")
        once = self.machine.everything()
        self.tune("apply", "server")
        self.assertEqual(self.machine.everything(), once)

    def test_a_second_revert_has_nothing_to_do(self):
        self.tune("apply")
        self.tune("revert")
        self.assertIn("nothing was applied", self.tune("revert"))

    def test_a_value_that_somebody_else_set_is_kept_and_all_three_are_named(self):
        self.tune("apply", "server")
        self.set("net/core/somaxconn", "555\n")
        said = self.tune("revert", status=1)
        for value in ("4096", "65535", "555"):
            self.assertIn(value, said)
        self.assertEqual(self.machine.key("net/core/somaxconn"), "555\n")
        self.assertEqual(self.machine.key("net/ipv4/tcp_migrate_req"), "0\n")
        self.tune("revert", "--force")
        self.assert_as_before()

    def test_a_value_that_somebody_else_restored_is_no_conflict(self):
        self.tune("apply", "server")
        self.set("net/core/somaxconn", "4096\n")
        self.tune("revert")
        self.assert_as_before()

    def test_what_the_first_apply_wrote_is_foreign_after_the_second(self):
        self.tune("apply", "server")
        self.tune("apply", "published")
        self.set("net/core/somaxconn", "65535\n")
        self.tune("revert", status=1)

    def test_a_key_that_has_gone_is_reported_and_can_be_forgotten(self):
        self.tune("apply", "server")
        (self.machine.keys / "net/ipv4/tcp_migrate_req").unlink()
        self.assertIn("can't be read any more", self.tune("revert", status=1))
        self.tune("revert", "--force")
        self.assertIsNone(self.machine.state_file())

    def test_a_key_that_can_no_longer_be_written_stops_all(self):
        self.tune("apply", "server")
        applied = self.machine.everything()
        (self.machine.keys / "net/core/somaxconn").chmod(0o444)
        self.tune("revert", status=3)
        self.assertEqual(self.machine.everything(), applied)

    def test_after_a_reboot_nothing_is_restored(self):
        self.tune("apply", "server")
        self.set("kernel/random/boot_id", "99999999-2222-3333-4444-555555555555\n")
        after = self.machine.everything()
        self.assertIn("other boots", self.tune("revert"))
        self.assertEqual(self.machine.everything(), after)

    def test_in_another_network_namespace_nothing_is_restored(self):
        self.tune("apply", "server")
        namespace = self.machine.root / "proc/self/ns/net"
        namespace.rename(namespace.with_name("old"))
        Machine.put(namespace, "")
        after = self.machine.everything()
        self.assertIn("other boots or network namespaces", self.tune("revert"))
        self.assertEqual(self.machine.everything(), after)

    def test_a_namespace_that_got_an_old_ones_inode_is_another_one(self):
        self.tune("apply", "server")
        path = self.machine.state_file()
        text = path.read_text()
        head, _, rest = text.partition("#netns\t")
        first, _, rest = rest.partition("\n")
        device, inode, cookie = first.split("\t")
        if cookie == "-":
            self.skipTest("Linux before 5.14 gives namespaces no number of their own")
        path.write_text(f"{head}#netns\t{device}\t{inode}\t1{cookie}\n{rest}")
        self.assertIn("nothing was applied", self.tune("revert"))
        self.assertEqual(self.machine.key("net/core/somaxconn"), "65535\n")
        self.set("net/core/somaxconn", "4096\n")
        self.set("net/ipv4/tcp_migrate_req", "0\n")
        self.tune("apply", "server")
        self.tune("revert")
        self.assert_as_before()


class Ports(unittest.TestCase):
    def test_lists_are_compared_by_their_numbers(self):
        self.assertTrue(kernel_keys.same("80,81,82", "80-82"))
        self.assertFalse(kernel_keys.same("80,81", "80-82"))
        self.assertEqual(kernel_keys.port_list({443, 80, 82, 81}), "80-82,443")

    def test_signals_get_their_handlers_back(self):
        before = signal.getsignal(signal.SIGTERM)
        with transaction.DeferredSignals():
            self.assertNotEqual(signal.getsignal(signal.SIGTERM), before)
        self.assertEqual(signal.getsignal(signal.SIGTERM), before)


if __name__ == "__main__":
    unittest.main()

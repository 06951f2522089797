# SPDX-License-Identifier: MIT
"""show, diff, verify, explain, docker-args and the command line itself, on a machine of files."""

import os
import subprocess
import unittest

from fake_machine import TUNE, Machine, OnAMachine


class Verify(OnAMachine):
    def test_without_names_it_checks_what_was_applied_and_the_lines_that_are_only_checked(self):
        self.assertIn("1 keys checked", self.tune("verify"))
        self.tune("apply", "server")
        self.assertIn("3 keys checked, all as wanted", self.tune("verify"))
        self.set("net/core/somaxconn", "128\n")
        said = self.tune("verify", status=1)
        self.assertRegex(said, "DIFFERS +net.core.somaxconn = 128 +wanted >= 65535")

    def test_a_profile_that_is_already_satisfied_counts_as_applied(self):
        self.set("net/core/somaxconn", "65535\n")
        self.set("net/ipv4/tcp_migrate_req", "1\n")
        self.tune("apply", "server")
        self.set("net/ipv4/tcp_migrate_req", "0\n")
        self.tune("verify", status=1)

    def test_a_missing_key_is_a_mismatch_unless_it_is_optional(self):
        (self.machine.keys / "net/ipv4/tcp_migrate_req").unlink()
        self.set("net/core/somaxconn", "65535\n")
        self.assertIn("skipped", self.tune("verify", "server"))
        (self.machine.keys / "net/core/somaxconn").unlink()
        self.assertIn("MISSING", self.tune("verify", "server", status=1))

    def test_an_own_file_is_found_again_from_another_folder(self):
        path = self.machine.profile("net.ipv4.tcp_tw_reuse = 1\n")
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(os.path.dirname(path))
        self.tune("apply", "./own.conf")
        os.chdir("/")
        self.assertIn("net.ipv4.tcp_tw_reuse = 1", self.tune("verify"))

    def test_json_has_every_key_and_the_verdict(self):
        status, value = self.machine.json("verify", "server")
        self.assertEqual((status, value["ok"]), (1, False))
        row = value["keys"][0]
        self.assertEqual((row["key"], row["wanted"], row["current"], row["status"]),
                         ("net.core.somaxconn", "65535", "4096", "differs"))


    def test_lines_that_are_only_checked_can_not_be_applied(self):
        self.assertIn("only checked", self.tune("apply", "verify"))
        self.assertIsNone(self.machine.state_file())


class Diff(OnAMachine):
    def test_its_status_says_whether_anything_differs(self):
        self.assertIn("+ net.core.somaxconn >= 65535", self.tune("diff", "server", status=1))
        self.tune("apply", "server")
        self.assertEqual(self.tune("diff", "server"), "")

    def test_with_nothing_applied_it_says_how_to_ask_for_a_profile(self):
        self.assertIn("tune diff server", self.tune("diff"))

    def test_json_lists_the_differences(self):
        status, value = self.machine.json("diff", "server", "verify")
        self.assertEqual((status, value["same"], len(value["keys"])), (1, False, 2))


class Show(OnAMachine):
    def test_it_shows_all_profiles_but_the_published_one(self):
        said = self.tune("show")
        self.assertIn("net.ipv4.ip_local_port_range = 32768 60999", said)
        self.assertNotIn("vm.swappiness", said)

    def test_it_tells_which_file_has_the_last_word_at_boot(self):
        Machine.put(self.machine.root / "etc/sysctl.d/99-mine.conf", "net/core/somaxconn = 128\n")
        Machine.put(self.machine.root / "usr/lib/sysctl.d/10-a.conf", "net.core.somaxconn = 1\n")
        self.assertRegex(self.tune("show"), "99-mine.conf:1: 128")

    def test_json_has_the_surroundings(self):
        _, value = self.machine.json("show")
        self.assertIn("open files", value["environment"])
        self.assertIn(", the initial one", value["environment"]["network namespace"])


class Explain(OnAMachine):
    def test_a_key_is_explained_with_its_value(self):
        said = self.tune("explain", "net.core.somaxconn")
        self.assertIn("4096", said)
        self.assertIn("a longer queue", said)

    def test_a_line_from_somewhere_is_judged(self):
        said = self.tune("explain", "net/core/somaxconn = 1024")
        self.assertIn("1024: server has 65535", said)
        self.assertIn("does what server asks for", self.tune("explain", "somaxconn=70000"))
        self.assertIn("we leave this key alone", self.tune("explain", "net.ipv4.tcp_rfc1337=1"))

    def test_all_keys_can_be_explained(self):
        said = self.tune("explain", "--all")
        for key in ("net.core.somaxconn", "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_rfc1337"):
            self.assertIn(f"\n{key}\n", "\n" + said)

    def test_an_unknown_key_gets_similar_ones(self):
        self.assertIn("net.core.somaxconn", self.tune("explain", "net.ipv4.somaxconn", status=2))
        self.tune("explain", "nonsense", status=2)
        self.tune("explain", "net/../../etc/passwd", status=2)
        self.tune("explain", status=2)


class DockerArgs(OnAMachine):
    def test_keys_of_the_namespace_become_options_and_the_machines_a_remark(self):
        said = self.tune("docker-args", "client", "published")
        self.assertIn("--sysctl 'net.ipv4.ip_local_port_range=10240 65535'\n", said)
        self.assertIn("--ulimit nofile=", said)
        self.assertNotIn("--sysctl vm.", said)
        self.assertIn("# vm.swappiness = 0: the machine's", said)
        self.assertIn("seccomp", said)

    def test_only_options_go_to_standard_output(self):
        running = self.machine.start("docker-args")
        both, _ = running.communicate(timeout=30)
        self.assertEqual(running.returncode, 0)
        options = [line for line in both.splitlines() if not line.startswith("#")]
        self.assertTrue(all(line.startswith("--") for line in options), both)


class CommandLine(OnAMachine):
    def test_bad_usage_has_its_own_status(self):
        self.tune(status=2)
        self.tune("frobnicate", status=2)
        self.tune("apply", "--frobnicate", status=2)
        self.tune("watch", status=2)
        self.assertIn("exit status", self.tune("--help"))

    def test_a_reader_that_goes_away_does_not_stop_an_apply(self):
        read, write = os.pipe()
        os.close(read)
        subprocess.run([TUNE, "apply"], env=self.machine.environment(), stdout=write, stderr=write,
                       timeout=30)
        os.close(write)
        self.assertEqual(self.machine.key("net/core/somaxconn"), "65535\n")
        self.assertIn("restored", self.tune("revert"))

    def test_closed_streams_do_not_stop_a_verb(self):
        for verbs in ("apply server client", "show", "verify", "diff --json", "revert"):
            for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
                with self.subTest(verb=verbs, closed=closed):
                    done = subprocess.run(["/bin/sh", "-c", f"exec '{TUNE}' {verbs} {closed}"],
                                          env=self.machine.environment(), timeout=30,
                                          capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_as_before()

    def test_a_value_that_can_not_be_printed_is_shown_by_its_code(self):
        path = self.machine.profile("kernel.domainname = caf\u00e9\n")
        self.set("kernel/domainname", "th\u00e9\n")
        done = subprocess.run([TUNE, "apply", path], timeout=30, capture_output=True, text=True,
                              env={**self.machine.environment(), "PYTHONIOENCODING": "ascii"})
        self.assertEqual((done.returncode, done.stderr.count("Traceback")), (0, 0), done.stderr)
        self.assertIn(r"th\xe9 -> caf\xe9", done.stdout)


if __name__ == "__main__":
    unittest.main()

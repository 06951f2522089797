# SPDX-License-Identifier: MIT
"""Whole runs: no misbehaving server gets a number, nothing is lost, nothing is left behind."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import unittest

from trial import SERVER, Trial, codes
from waiting import wait_until


@unittest.skipUnless(shutil.which("ab"), "ab is not installed")
class RunTest(unittest.TestCase):
    def setUp(self):
        self.trial = Trial()
        self.addCleanup(self.trial.__exit__)

    def run_one(self, mode, sound=0, argv=None, **changes):
        """The only cell of a run of one entrant that misbehaves, and the exit status."""
        self.trial.entrant("it", mode, sound, ready=changes.pop("ready", 5))
        self.trial.profile(["it"], argv, **changes)
        status, out, err = self.trial.run()
        self.assertTrue(self.trial.cells(), out + err)
        self.assertEqual(self.trial.servers(), [])
        return self.trial.only_cell(), status

    def check_no_number(self, cell, status, code):
        self.assertIn(code, codes(cell), cell["problems"])
        self.assertFalse(cell["valid"])
        self.assertIsNone(cell["rps"])
        self.assertEqual(status, 4)

    def test_a_good_server_gets_a_number_and_a_report(self):
        cell, status = self.run_one("ok")
        self.assertEqual(status, 0, cell["problems"])
        self.assertEqual(cell["requests"]["ok"], 60)
        self.assertGreater(cell["rps"], 0)
        self.assertGreater(cell["cpu"]["server_us_per_req"], 0)
        self.assertIn("| **it** |", (self.trial.out / "report.md").read_text())

    def test_a_server_that_never_answers_is_not_ready(self):
        self.check_no_number(*self.run_one("hang", ready=1), "NOT_READY")

    def test_a_server_that_ends_at_once_says_so(self):
        self.trial.entrant("it")
        file = self.trial.folder / "entrants/it/entrant.toml"
        file.write_text(file.read_text().replace('"ok"', '"nonsense"'))
        self.trial.profile(["it"])
        status, *_ = self.trial.run()
        self.check_no_number(self.trial.only_cell(), status, "START_FAILED")

    def test_a_server_with_the_wrong_body_is_never_measured(self):
        cell, status = self.run_one("wrong_body", ready=1)
        self.check_no_number(cell, status, "NOT_READY")
        self.assertIn("instead of", cell["problems"][0]["text"])

    def test_a_server_that_begins_to_hang_gets_no_number(self):
        cell, status = self.run_one("hang", sound=40)
        self.check_no_number(cell, status, "TOOL_FAILED")

    def test_a_server_that_begins_to_answer_503_gets_no_number(self):
        self.check_no_number(*self.run_one("503", sound=40), "WRONG_STATUS")

    def test_a_server_that_begins_to_answer_another_body_gets_no_number(self):
        self.check_no_number(*self.run_one("wrong_body", sound=40), "WRONG_SIZE")

    def test_a_server_that_begins_to_answer_another_body_of_the_same_size_gets_no_number(self):
        cell, status = self.run_one("same_size", sound=40)
        self.check_no_number(cell, status, "VERIFY_FAILED")
        self.assertIsNone(cell["requests"]["ok"])

    @unittest.skipUnless(shutil.which("wrk"), "wrk is not installed")
    def test_a_server_that_begins_to_answer_another_2xx_gets_no_number_from_wrk(self):
        argv = ["wrk", "-t1", "-c3", "-d1s", "{url}"]
        cell, status = self.run_one("status_203", sound=40, argv=argv, keepalive=True)
        self.assertIsNone(cell["rps"])
        self.assertEqual(status, 4)
        # Connections of others, in the same namespace, may be what is named.
        self.assertTrue(codes(cell) & {"VERIFY_FAILED", "KEEPALIVE_MISMATCH"}, cell["problems"])

    @unittest.skipUnless(shutil.which("wrk"), "wrk is not installed")
    def test_a_server_that_lets_half_of_the_connections_hang_gets_no_number_from_wrk(self):
        argv = ["wrk", "-t1", "-c10", "-d3s", "{url}"]
        cell, status = self.run_one("stalls", argv=argv, keepalive=True, concurrency=10)
        self.check_no_number(cell, status, "HUNG")

    @unittest.skipUnless(shutil.which("hey"), "hey is not installed")
    def test_a_server_that_begins_to_cut_its_bodies_gets_no_number_from_hey(self):
        argv = ["hey", "-disable-keepalive", "-n", "60", "-c", "3", "{url}"]
        self.check_no_number(*self.run_one("short_body", sound=40, argv=argv), "VERIFY_FAILED")

    def test_a_server_that_begins_to_close_without_an_answer_gets_no_number(self):
        cell, status = self.run_one("no_response", sound=40)
        self.assertFalse(cell["valid"])
        self.assertIsNone(cell["rps"])
        self.assertEqual(status, 4)
        self.assertTrue(codes(cell) & {"NO_RESPONSE", "WRONG_SIZE", "ERRORS"}, cell["problems"])

    def test_a_server_that_resets_connections_gets_no_number(self):
        self.check_no_number(*self.run_one("reset", sound=40), "TOOL_FAILED")

    def test_a_server_that_dies_in_the_middle_gets_no_number(self):
        self.check_no_number(*self.run_one("dies", sound=60), "SERVER_DIED")

    def test_a_server_that_refuses_keep_alive_is_not_measured_as_if_it_kept_it(self):
        argv = ["ab", "-q", "-k", "-n", "60", "-c", "3", "{url}"]
        cell, status = self.run_one("no_keepalive", argv=argv, keepalive=True)
        self.assertFalse(cell["valid"])
        self.assertEqual(status, 4)
        self.assertTrue(codes(cell) & {"KEEPALIVE_MISMATCH", "VERIFY_FAILED"}, cell["problems"])

    def test_a_server_that_needs_its_time_to_start_is_measured_cleanly(self):
        cell, status = self.run_one("slow_start", ready=15)
        self.assertEqual(status, 0, cell["problems"])
        self.assertEqual(cell["requests"]["ok"], 60)

    def test_a_client_that_would_take_too_long_is_told_to_report_what_it_has(self):
        argv = ["ab", "-q", "-n", "10000000", "-c", "3", "{url}"]
        cell, status = self.run_one("ok", argv=argv, limit=2)
        self.assertIn("TIME_LIMIT", codes(cell))
        self.assertEqual(status, 0, cell["problems"])
        self.assertAlmostEqual(cell["rps"], cell["requests"]["ok"] / cell["duration_s"], 3)

    def test_an_entrant_that_is_not_installed_keeps_its_row_and_fails_nothing(self):
        self.trial.entrant("here")
        self.trial.entrant("absent", command="no-such-command-anywhere")
        self.trial.profile(["here", "absent"])
        status, out, err = self.trial.run()
        self.assertEqual(status, 0, out + err)
        self.assertEqual([cell["entrant"] for cell in self.trial.cells()], ["here"])
        self.assertIn("no-such-command-anywhere", (self.trial.out / "report.md").read_text())

    def test_where_nothing_is_installed_the_run_says_how_to_and_ends_with_7(self):
        self.trial.entrant("absent", command="no-such-command-anywhere")
        self.trial.profile(["absent"])
        status, _, err = self.trial.run()
        self.assertEqual(status, 7, err)
        self.assertIn("have no-such-command-anywhere in PATH", err)

    def test_an_unknown_format_and_a_port_beyond_the_last_are_refused_before_the_run(self):
        self.trial.entrant("it")
        self.trial.profile(["it"])
        for words in (("--format", "md,pdf"), ("--port", "70000")):
            status, _, err = self.trial.run(*words)
            self.assertEqual((status, self.trial.out.exists()), (2, False), err)

    def test_a_port_that_is_taken_is_refused_and_its_owner_named_and_left_alone(self):
        self.trial.entrant("it")
        self.trial.profile(["it"])
        with socket.create_server(("127.0.0.1", 0)) as other:
            status, *_ = self.trial.run("--port", str(other.getsockname()[1]))
            self.check_no_number(self.trial.only_cell(), status, "PORT_BUSY")
            self.assertIn(f"pid {os.getpid()}", self.trial.only_cell()["problems"][0]["text"])
            socket.create_connection(other.getsockname(), 5).close()

    def test_where_the_profile_says_so_the_server_is_kept_running_between_repeats(self):
        self.trial.entrant("it")
        self.trial.profile(["it"], blocks=3, restart=False)
        self.trial.run()
        starts = {cell["start_ms"] for cell in self.trial.cells()}
        self.assertEqual((len(self.trial.cells()), len(starts)), (3, 1))

    def test_a_missing_client_is_a_reason_and_not_an_end(self):
        self.trial.entrant("it")
        self.trial.profile(["it"], argv=["no-such-client", "{url}"])
        status, out, err = self.trial.run()
        self.check_no_number(self.trial.only_cell(), status, "TOOL_MISSING")

    def test_a_missing_command_of_the_warm_up_is_a_reason_and_not_an_end(self):
        self.trial.entrant("it")
        self.trial.profile(["it"])
        path = self.trial.folder / "profiles/trial.toml"
        path.write_text(path.read_text().replace(
            "\n[[steps]]", 'warm_up = ["no-such-client", "{url}"]\n\n[[steps]]'))
        status, out, err = self.trial.run()
        self.assertNotIn("Traceback", err)
        self.check_no_number(self.trial.only_cell(), status, "TOOL_MISSING")

    def test_a_client_whose_output_cannot_be_read_is_a_reason_and_not_an_end(self):
        self.trial.entrant("it")
        self.trial.profile(["it"], argv=["true", "{url}"])
        status, out, err = self.trial.run()
        self.check_no_number(self.trial.only_cell(), status, "TOOL_MISSING")

    def test_a_dry_run_prints_every_command_and_starts_nothing(self):
        self.trial.entrant("it")
        self.trial.profile(["it"])
        status, out, _ = self.trial.run("--dry-run")
        self.assertEqual(status, 0)
        self.assertIn("misbehaving_server.py", out)
        self.assertIn("ab -q -n 60 -c 3 -s 2 http://127.0.0.1:PORT/", out)
        self.assertFalse(self.trial.out.exists())

    def test_results_are_never_written_over(self):
        self.trial.entrant("it")
        self.trial.profile(["it"])
        self.trial.run()
        before = (self.trial.out / "journal.jsonl").read_bytes()
        status, _, err = self.trial.run()
        self.assertEqual(status, 2)
        self.assertIn("not empty", err)
        self.assertEqual((self.trial.out / "journal.jsonl").read_bytes(), before)


@unittest.skipUnless(shutil.which("ab"), "ab is not installed")
class BrokenOffTest(unittest.TestCase):
    def setUp(self):
        self.trial = Trial()
        self.addCleanup(self.trial.__exit__)
        for name in ("one", "two"):
            self.trial.entrant(name)
        self.trial.profile(["one", "two"], blocks=3)

    def break_off(self, number):
        """Sends `number` to the harness while its third cell runs; its exit status."""
        process = self.trial.begin("run", "trial", "--ui", "quiet", "--format",
                                   "md", "--out", str(self.trial.out))
        self.assertTrue(wait_until(lambda: len(self.trial.cells()) >= 2
                                   and self.trial.servers()))
        process.send_signal(number)
        process.communicate(timeout=60)
        return process.returncode

    def check_resumes(self):
        kept = self.trial.cells()
        wait_until(lambda: not self.trial.servers())
        status, out, err = self.trial.bench("resume", str(self.trial.out), "--ui", "plain",
                                            "--format", "md")
        self.assertEqual(status, 0, out + err)
        cells = self.trial.cells()
        self.assertEqual(cells[:len(kept)], kept)
        self.assertEqual(sorted((cell["block"], cell["entrant"]) for cell in cells),
                         [(block, name) for block in range(3) for name in ("one", "two")])

    def test_kill_9_loses_the_cell_alone_and_leaves_no_process(self):
        self.assertEqual(self.break_off(signal.SIGKILL), -signal.SIGKILL)
        self.check_resumes()

    def test_ctrl_c_ends_with_130_and_a_report_of_what_there_is(self):
        self.assertEqual(self.break_off(signal.SIGINT), 130)
        self.assertTrue((self.trial.out / "report.md").exists())
        self.check_resumes()

    def test_what_nohup_ignores_does_not_end_a_run(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            status = self.break_off(signal.SIGHUP)
        finally:
            signal.signal(signal.SIGHUP, before)
        self.assertEqual((status, len(self.trial.cells())), (0, 6))

    def check_ends_with_a_reason(self, spoil):
        process = self.trial.begin("run", "trial", "--ui", "quiet", "--format", "md", "--out",
                                   str(self.trial.out))
        self.assertTrue(wait_until(lambda: len(self.trial.cells()) >= 2))
        spoil()
        _, err = process.communicate(timeout=60)
        self.assertNotIn("Traceback", err)
        self.assertRegex(err, "^bench: ")
        self.assertEqual(process.returncode, 1, err)
        self.assertTrue(wait_until(lambda: not self.trial.servers()))

    def test_a_folder_that_vanishes_ends_a_run_with_a_reason(self):
        self.check_ends_with_a_reason(
            lambda: self.trial.out.rename(self.trial.folder / "elsewhere"))

    def test_a_journal_that_was_removed_is_not_written_on(self):
        self.check_ends_with_a_reason((self.trial.out / "journal.jsonl").unlink)

    def test_sigterm_ends_with_143(self):
        self.assertEqual(self.break_off(signal.SIGTERM), 143)
        self.check_resumes()


@unittest.skipUnless(shutil.which("ab"), "ab is not installed")
class AttachTest(unittest.TestCase):
    def test_a_server_that_the_user_started_is_measured_and_left_alone(self):
        with Trial() as trial, subprocess.Popen([sys.executable, SERVER, "ok", "0"],
                                                stdout=subprocess.PIPE, text=True) as server:
            try:
                port = server.stdout.readline().split()[1]
                trial.entrant("it")
                trial.profile(["it"])
                status, out, err = trial.run(
                    "--attach", f"mine=http://127.0.0.1:{port}/,{server.pid}")
                self.assertEqual(status, 0, out + err)
                mine = [cell for cell in trial.cells() if cell["entrant"] == "mine"]
                self.assertEqual(mine[0]["requests"]["ok"], 60)
                self.assertIsNotNone(mine[0]["cpu"]["server_cores"])
                self.assertIsNone(server.poll())
            finally:
                server.terminate()
                server.communicate(timeout=10)

    def test_a_name_that_is_taken_or_no_file_name_and_an_unknown_host_are_refused(self):
        with Trial() as trial:
            trial.entrant("it")
            trial.profile(["it"])
            for text, reason in (("it=http://127.0.0.1:1/", "already"),
                                 ("../x=http://127.0.0.1:1/", "file name"),
                                 ("x=http://no-such-host.invalid/", "no-such-host")):
                status, _, err = trial.run("--attach", text)
                self.assertEqual(status, 2, err)
                self.assertIn(reason, err)
                self.assertNotIn("Traceback", err)
                self.assertFalse(trial.out.exists())

    def test_the_client_is_sent_to_the_attached_address_and_not_to_the_profiles(self):
        try:
            own = socket.create_server(("::1", 0), family=socket.AF_INET6)
        except OSError as error:
            self.skipTest(f"no IPv6: {error}")
        with own:
            port = str(own.getsockname()[1])
        for host, argv in (("::1", "{url}"), ("127.0.0.2", "{origin}/")):
            with Trial() as trial, subprocess.Popen(
                    [sys.executable, SERVER, "ok", port, "--host", host],
                    stdout=subprocess.PIPE, text=True) as server:
                server.stdout.readline()
                trial.entrant("it")
                trial.profile(["it"], ["ab", "-q", "-n", "60", "-c", "3", argv])
                name = f"[{host}]" if ":" in host else host
                _, out, err = trial.run("--attach", f"mine=http://{name}:{port}/")
                server.terminate()
                mine = [cell for cell in trial.cells() if cell["entrant"] == "mine"]
                self.assertEqual(mine[0]["requests"]["ok"], 60, out + err)

    def test_only_loopback_addresses_are_measured(self):
        with Trial() as trial:
            trial.entrant("it")
            trial.profile(["it"])
            status, _, err = trial.run("--attach", "them=http://192.0.2.1/")
            self.assertEqual(status, 2)
            self.assertIn("loopback", err)


@unittest.skipUnless(shutil.which("ab"), "ab is not installed")
class NamespacesTest(unittest.TestCase):
    def test_a_list_of_settings_is_applied_in_namespaces_and_the_machine_stays_as_it_is(self):
        key = pathlib.Path("/proc/sys/net/ipv4/tcp_fin_timeout")
        before = key.read_text()
        with Trial() as trial:
            trial.entrant("it")
            trial.profile(["it"])
            status, out, err = trial.run("--sysctl", "published")
            if status == 6:
                self.skipTest(err)
            self.assertEqual(status, 0, out + err)
            self.assertEqual(trial.only_cell()["requests"]["ok"], 60)
            self.assertIn("//10.77.0.1:", " ".join(trial.only_cell()["argv"]))
            self.assertIn("net.ipv4.tcp_fin_timeout = 5", (trial.out / "report.md").read_text())
        self.assertEqual(key.read_text(), before)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""tune-lab itself: its verbs, its exit statuses, and an experiment that fails, dies or hangs."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import unittest.mock

from hellotune.lab import catalogue, cli, sockets, tap
from hellotune.lab.experiment import Experiment, Lab
from hellotune.lab.namespaces import Skip
from lab_runner import CHECKOUT, SKIPPED_STATUS, tune_lab


class CommandLine(unittest.TestCase):
    def test_list_shows_every_experiment_with_its_claim(self):
        process = tune_lab("list")
        self.assertEqual(process.returncode, 0)
        lines = process.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], list(catalogue.experiments()))
        for line, one in zip(lines, catalogue.experiments().values()):
            self.assertTrue(one.claim and line.endswith(one.claim))

    def test_explain_says_what_an_experiment_does(self):
        process = tune_lab("explain", "synqueue")
        self.assertEqual((process.returncode, process.stderr), (0, ""))
        self.assertIn("tcp_max_syn_backlog", process.stdout)

    def test_an_unknown_experiment_is_bad_usage(self):
        for verb in ("run", "explain"):
            process = tune_lab(verb, "no-such-thing")
            self.assertEqual((process.returncode, process.stdout), (2, ""))
            self.assertIn("no-such-thing", process.stderr)

    def test_no_verb_is_bad_usage(self):
        self.assertEqual(tune_lab().returncode, 2)

    def test_it_leaves_nothing_in_the_checkout(self):
        copy = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copytree(CHECKOUT / "scripts", copy / "scripts",
                        ignore=shutil.ignore_patterns("__pycache__"))
        environment = {name: value for name, value in os.environ.items()
                       if name != "PYTHONDONTWRITEBYTECODE"}
        self.assertEqual(tune_lab("list", checkout=copy, env=environment).returncode, 0)
        self.assertEqual(list(copy.rglob("__pycache__")), [])

    def test_a_closed_output_does_not_matter(self):
        script = CHECKOUT / "scripts/tune-lab"
        done = subprocess.run(["/bin/sh", "-c", f"'{script}' run hello-close >&-"], text=True,
                              env={**os.environ, "HELLO_BIN": "/no/such/binary"},
                              stderr=subprocess.PIPE, timeout=100)
        self.assertEqual((done.returncode, done.stderr), (SKIPPED_STATUS, ""))

    def test_all_skipped_has_a_status_of_its_own_and_a_reason(self):
        process = tune_lab("run", "--json", "hello-close",
                           env={**os.environ, "HELLO_BIN": "/no/such/binary"})
        self.assertEqual(process.returncode, SKIPPED_STATUS, process.stdout)
        result, = json.loads(process.stdout)
        self.assertEqual(result["outcome"], "skipped")
        self.assertTrue(result["reason"])


class Outcomes(unittest.TestCase):
    """In a child without namespaces: what becomes of an experiment's end."""

    def outcome(self, function):
        with unittest.mock.patch.multiple(cli.namespaces, leave=lambda: None,
                                          pair=lambda: (None, None)):
            return cli.in_child(Experiment("try", function, quick=True))

    def test_checks_that_hold(self):
        def good(lab):
            """A claim."""
            lab.check("one", 1, 1)
            lab.check("two", "more than 1", 2, True)
        result = self.outcome(good)
        self.assertEqual((result["outcome"], result["claim"]), ("held", "A claim."))

    def test_a_check_that_does_not_hold(self):
        def bad(lab):
            """A claim."""
            lab.check("one", 1, 2)
            lab.check("two", 2, 2)
        self.assertEqual(self.outcome(bad)["outcome"], "failed")

    def test_no_check_at_all_is_a_failure(self):
        def empty(_):
            """A claim."""
        self.assertEqual(self.outcome(empty)["outcome"], "failed")

    def test_an_exception_is_shown(self):
        def broken(_):
            """A claim."""
            raise KeyError("what it was")
        result = self.outcome(broken)
        self.assertEqual(result["outcome"], "failed")
        self.assertIn("what it was", result["reason"])

    def test_a_skip_says_why(self):
        def unable(_):
            """A claim."""
            raise Skip("no luck")
        result = self.outcome(unable)
        self.assertEqual((result["outcome"], result["reason"]), ("skipped", "no luck"))

    def test_a_death_is_a_failure(self):
        def dead(_):
            """A claim."""
            os._exit(3)
        self.assertEqual(self.outcome(dead)["outcome"], "failed")

    def test_one_that_hangs_is_ended(self):
        def hanging(_):
            """A claim."""
            time.sleep(60)
        with unittest.mock.patch.object(cli, "DEADLINE_SECONDS", 1):
            result = self.outcome(hanging)
        self.assertEqual(result["outcome"], "failed")
        self.assertIn("not done", result["reason"])

    def test_a_key_that_the_kernel_lacks_skips(self):
        host = unittest.mock.Mock()
        host.has.return_value = False
        with self.assertRaisesRegex(Skip, "net.x.y"):
            Lab(host, None).set(host, "net.x.y", 1)
        host.set.assert_not_called()


class Segments(unittest.TestCase):
    def test_a_segment_is_read_back_as_it_was_written(self):
        packet = bytearray(tap.segment(("10.0.0.1", 1000), ("10.0.0.2", 80), tap.SYN, 7, 0))
        packet[2:4] = len(packet).to_bytes(2, "big")  # The kernel's part.
        parsed = tap.parse(bytes(12) + b"\x08\x00" + bytes(packet))
        self.assertEqual(parsed, tap.Segment(("10.0.0.1", 1000), ("10.0.0.2", 80), 7, tap.SYN,
                                             header_bytes=20, data_bytes=0))

    def test_the_checksum_makes_the_sum_nought(self):
        data = b"\x12\x34\xff\xff\x00\x01"
        whole = data + tap.checksum(data).to_bytes(2, "big")
        self.assertEqual(tap.checksum(whole), 0)

    def test_a_frame_that_is_not_tcp_is_passed_over(self):
        self.assertIsNone(tap.parse(bytes(12) + b"\x08\x06" + bytes(40)))


class Waiting(unittest.TestCase):
    def test_what_is_queued_is_heard_also_after_the_deadline(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with ours, theirs:
            ours.setblocking(False)
            heard = tap.Tap.__new__(tap.Tap)
            heard.socket = ours
            packet = tap.segment(("10.0.0.1", 1), ("10.0.0.2", 2), tap.SYN, 1, 0)
            theirs.send(bytes(12) + b"\x08\x00" + packet)
            self.assertEqual(len(heard.hear(lambda _: True, 2, 0)), 1)

    def test_wait_until_gives_up(self):
        self.assertFalse(sockets.wait_until(lambda: False, 0.05))
        self.assertTrue(sockets.wait_until(lambda: True, 0))


if __name__ == "__main__":
    unittest.main()

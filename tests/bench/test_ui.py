# SPDX-License-Identifier: MIT
"""The displays of a run: what they show, how seldom, and that none of them can end a run."""

import contextlib
import dataclasses
import io
import json
import os
import pty
import re
import select
import sys
import termios
import threading
import unittest
from unittest import mock

import made_up_run
from hellobench import model, ui
from hellobench.errors import UsageError

try:
    import rich
except ImportError:
    rich = None

needs_rich = unittest.skipUnless(rich, "python3-rich is not installed")


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def a_plan(**more):
    return made_up_run.make_plan(
        ["alpha", "beta", made_up_run.entrant("gin", installed=False)], **more)


def run_all(display, plan, clock, **cell):
    """A whole run of 10 s cells on `display`."""
    display.start(plan)
    for planned in plan.cells:
        display.cell_started(planned)
        clock.now += 10
        display.tick({"segments_per_s": 40000.0, "server_cores": 0.98})
        display.cell_done(made_up_run.measured(planned, **cell))
    display.stop()


def shown(kind, **cell):
    out, clock = io.StringIO(), Clock()
    display = ui.make(kind, out, clock)
    run_all(display, a_plan(), clock, **cell)
    if display.lost:
        raise display.lost
    return out.getvalue()


class Plain(unittest.TestCase):
    def test_each_cell_has_a_line_with_its_result_and_the_time_left(self):
        lines = shown("plain", rps=38123.4, verdict="SERVER_BOUND",
                      cpu=model.Cpu(server_us_per_req=9.12),
                      latency=model.Latency(p99=4100.0)).splitlines()
        self.assertEqual(lines[0],
                         "made-up: 6 cells of 2 entrants; 1 not installed, see the report")
        self.assertEqual(len(lines), 7)
        self.assertRegex(lines[1], r"^\[1/6, 50 s left\] block 1  (alpha|beta ) +main +38,123 req/s"
                                   r"  9.1 us/req  p99 4.10 ms  server-bound$")
        self.assertTrue(lines[6].startswith("[6/6] block 3"))

    def test_a_cell_without_a_number_says_why(self):
        text = shown("plain", problems=[("NOISY", "steal"), ("SERVER_DIED", "ended by signal 11")])
        self.assertIn("- req/s  SERVER_DIED: ended by signal 11\n", text)

    def test_marks_stand_beside_the_number(self):
        self.assertIn("client-bound NOISY", shown("plain", verdict="CLIENT_BOUND",
                                                  problems=[("NOISY", "steal 9 %")]))

    def test_a_fixed_rate_step_shows_its_cost(self):
        self.assertIn(" 12.3 us/req\n", shown("plain", offered_rps=1000.0,
                                              cpu=model.Cpu(server_us_per_req=12.3)))

    def test_a_start_without_load_shows_its_time(self):
        self.assertIn(" 3.5 ms\n", shown("plain", rps=None, start_ms=3.5))

    def test_what_a_server_wrote_cannot_steer_the_terminal(self):
        text = shown("plain", problems=[("START_FAILED", "\x1b[2Jgone\r\n\x07\u202e")])
        self.assertIn("START_FAILED:  [2Jgone", text)
        self.assertFalse(set(text) & set("\x1b\r\x07\u202e"))

    def test_a_terminal_that_knows_only_ascii_gets_ascii(self):
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding="ascii")
        display = ui.make("plain", out)
        display.message("5 \u00b5s")
        self.assertIsNone(display.lost)
        self.assertEqual(raw.getvalue(), b"5 ?s\n")


class TimeLeft(unittest.TestCase):
    def test_each_step_is_judged_by_its_own_cells(self):
        steps = [made_up_run.Step("short"), made_up_run.Step("long")]
        plan = made_up_run.make_plan(["alpha"], made_up_run.Profile(steps=steps))
        progress = ui.Progress(plan, plan.cells, 0)
        self.assertIsNone(progress.seconds_left())
        progress.cell_done(made_up_run.measured(plan.cells[0]), 1)
        progress.cell_done(made_up_run.measured(plan.cells[1]), 101)
        self.assertEqual(progress.seconds_left(), 2 * 1 + 2 * 100)

    def test_a_continued_run_counts_what_is_left(self):
        plan = a_plan()
        out, clock = io.StringIO(), Clock()
        display = ui.make("plain", out, clock)
        display.start(plan, plan.cells[4:])
        clock.now += 7
        display.cell_done(made_up_run.measured(plan.cells[4]))
        self.assertIn("[1/2, 7 s left]", out.getvalue())

    def test_durations_read_well(self):
        self.assertEqual([ui.duration(seconds) for seconds in (0.2, 89, 90, 3600, 5400, 7500)],
                         ["0 s", "89 s", "2 min", "60 min", "1 h 30 min", "2 h 05 min"])


class Json(unittest.TestCase):
    def test_every_line_is_an_event(self):
        events = [json.loads(line) for line in shown("json").splitlines()]
        self.assertEqual([event["event"] for event in events],
                         ["start"] + ["cell_started", "tick", "cell_done"] * 6 + ["stop"])
        self.assertEqual(events[3]["cell"]["rps"], 1000.0)
        self.assertEqual((events[3]["done"], events[3]["seconds_left"]), (1, 50.0))

    def test_what_json_cannot_say_is_null(self):
        out = io.StringIO()
        display = ui.make("json", out)
        display.start(a_plan())
        display.tick({"segments_per_s": float("nan")})
        self.assertIsNone(json.loads(out.getvalue().splitlines()[1])["segments_per_s"])


class Choice(unittest.TestCase):
    def test_quiet_shows_nothing(self):
        self.assertEqual(shown("quiet"), "")

    def test_auto_is_plain_where_there_is_no_terminal(self):
        self.assertIs(type(ui.make("auto", io.StringIO())), ui.Plain)

    @needs_rich
    def test_auto_is_live_on_a_terminal_but_not_on_a_dumb_one(self):
        with terminal() as (_, out):
            for term, kind in (("xterm", ui.Live), ("dumb", ui.Plain)):
                with mock.patch.dict(os.environ, TERM=term):
                    self.assertIs(type(ui.make("auto", out)), kind)

    def test_without_rich_auto_is_plain_and_live_names_the_cure(self):
        with mock.patch.dict(sys.modules, rich=None), mock.patch.dict(os.environ, TERM="xterm"), \
                terminal() as (_, out):
            self.assertIs(type(ui.make("auto", out)), ui.Plain)
            with self.assertRaisesRegex(UsageError, "apt install python3-rich"):
                ui.make("live", out)

    def test_an_unknown_kind_is_refused(self):
        with self.assertRaisesRegex(UsageError, "there are: auto, live"):
            ui.make("loud", io.StringIO())


@needs_rich
class Live(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        stack.enter_context(mock.patch.dict(os.environ, TERM="xterm", COLUMNS="100"))
        self.master, self.out = stack.enter_context(terminal())
        self.display = ui.make("live", self.out, self.clock)
        self.plan = a_plan()

    def seen(self):
        """What has come to the terminal since the last call."""
        data = b""
        while select.select([self.master], [], [], 0.05)[0]:
            data += self.master.read(65536)
        return data.decode()

    def words(self):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen())

    def test_a_run_shows_a_row_per_entrant_the_time_left_and_who_is_not_installed(self):
        run_all(self.display, self.plan, self.clock, rps=38123.4, verdict="SERVER_BOUND")
        self.assertIsNone(self.display.lost)
        last = self.words()[-1500:]
        self.assertRegex(last, r"A made-up profile  6/6")
        self.assertRegex(last, r"Alpha +main +38,123 req/s +38,123 +0.0 % +server-bound")
        self.assertRegex(last, r"Gin +not installed: there is no go")

    def test_the_current_cell_shows_its_ticks(self):
        self.display.start(self.plan)
        self.display.cell_started(self.plan.cells[0])
        for rate in (10000.0, 20000.0, 40000.0):
            self.clock.now += 1
            self.seen()
            self.display.tick({"segments_per_s": rate, "server_cores": 0.98, "unknown": 1})
        self.assertRegex(self.words(), "(alpha|beta)  main  \u2583\u2585\u2588  server 0.98 cores  "
                                       "40,000 segments/s")

    def test_it_is_drawn_at_most_twice_a_second_and_never_unasked(self):
        threads = threading.active_count()
        self.display.start(self.plan)
        self.display.cell_started(self.plan.cells[0])
        self.seen()
        draws = 0
        for _ in range(100):
            self.clock.now += 0.05
            self.display.tick({"segments_per_s": 1.0})
            draws += bool(self.seen_at_once())
        self.assertGreater(draws, 5)
        self.assertLessEqual(draws, 10)
        self.clock.now += 100
        self.assertEqual(self.seen_at_once(), b"")
        self.assertEqual(threading.active_count(), threads)

    def seen_at_once(self):
        if not select.select([self.master], [], [], 0)[0]:
            return b""
        return self.master.read(65536)

    def test_a_terminal_that_takes_no_more_is_not_waited_for(self):
        self.display.start(self.plan)
        self.seen()
        termios.tcflow(self.out.fileno(), termios.TCOOFF)  # As by Ctrl-S.
        for planned in self.plan.cells:
            self.clock.now += 1
            self.display.cell_started(planned)
            self.clock.now += 1
            self.display.cell_done(made_up_run.measured(planned))
        termios.tcflow(self.out.fileno(), termios.TCOON)
        self.assertIsNone(self.display.lost)
        self.display.stop()
        self.assertIn("6/6", self.words())

    def test_a_message_stands_above_the_view(self):
        self.display.start(self.plan)
        self.display.message("sockets settle")
        self.assertIn("sockets settle", self.words())

    def test_a_closed_terminal_does_not_end_the_run(self):
        self.display.start(self.plan)
        self.master.close()
        for planned in self.plan.cells:
            self.clock.now += 1
            self.display.cell_started(planned)
            self.display.cell_done(made_up_run.measured(planned))
        self.display.stop()
        self.assertIsInstance(self.display.lost, OSError)
        print("results: here", file=self.out, flush=True)

    def test_an_entrant_with_steps_of_its_own_is_summed_up_by_the_last_one(self):
        self.display.start(self.plan)
        for step, rate in (("low", 10.0), ("high", 500.0), ("high", 600.0)):
            self.clock.now += 1
            self.display.cell_done(made_up_run.cell(step=step, rps=rate))
        self.assertRegex(self.words(), r"Alpha +high +600 req/s +550 +18.2 %")


class LostOutput(unittest.TestCase):
    def test_a_reader_that_went_away_does_not_end_the_run(self):
        for kind in ("plain", "json", "live") if rich else ("plain", "json"):
            reader, writer = os.pipe()
            with open(writer, "w", encoding="utf-8") as out:
                os.close(reader)
                clock = Clock()
                display = ui.make(kind, out, clock)
                run_all(display, a_plan(), clock)
                self.assertIsInstance(display.lost, BrokenPipeError, kind)
                print("results: here", file=out, flush=True)

    def test_a_closed_stream_does_not_end_the_run(self):
        out, clock = io.StringIO(), Clock()
        display = ui.make("plain", out, clock)
        out.close()
        run_all(display, a_plan(), clock)
        self.assertIsInstance(display.lost, ValueError)

    def test_a_fault_of_the_display_does_not_end_the_run(self):
        display = ui.make("plain", io.StringIO())
        display.start(dataclasses.replace(a_plan(), profile={}))
        self.assertIsInstance(display.lost, KeyError)

    def test_an_interruption_is_not_swallowed(self):
        class Interrupted(io.StringIO):
            def write(self, _):
                raise stop

        for stop in (KeyboardInterrupt(), SystemExit(143)):
            with self.assertRaises(type(stop)):
                ui.make("plain", Interrupted()).message("x")


class Words(unittest.TestCase):
    def test_a_sparkline_starts_at_zero(self):
        self.assertEqual(ui.sparkline([0, 50, 100, 99]), "\u2581\u2585\u2588\u2588")
        self.assertEqual(ui.sparkline([0, 0]), "\u2581\u2581")
        self.assertEqual(ui.sparkline([-1, 8], ascii_only=True), "_#")
        self.assertEqual(ui.sparkline([]), "")


@contextlib.contextmanager
def terminal():
    """(what it shows, text stream to it) of a new terminal of 100 columns."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, 100))
    with open(slave, "w", encoding="utf-8") as out, open(master, "rb", buffering=0) as screen:
        yield screen, out


if __name__ == "__main__":
    unittest.main()

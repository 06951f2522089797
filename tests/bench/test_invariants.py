# SPDX-License-Identifier: MIT
"""Truth tables of what must hold of a run before it may have a number."""

import unittest

import captures
from hellobench import invariants
from hellobench.model import Latency, Parsed, Requests


def run(tool="wrk", done=100000, errors=None, **fields):
    """A whole, good run of 10 s with 100 connections; fields change it."""
    requests = Requests(done=done)
    requests.errors.update(errors or {})
    fields = {"duration_s": 10.0, "rps": done / 10.0, "total_bytes": done * 112, **fields}
    return Parsed(tool=tool, complete=True, requests=requests, **fields)


def check(parsed, **arguments):
    defaults = {"asked": None, "concurrency": 100, "expected_body": b"Hello World!",
                "response_bytes": 112, "rc": 0}
    ok, problems = invariants.check(parsed, **{**defaults, **arguments})
    return ok, [problem.code for problem in problems]


class Captures(unittest.TestCase):
    def test_every_capture_has_its_count_of_good_answers_and_its_problems(self):
        for name, capture in captures.CAPTURES.items():
            with self.subTest(capture=name):
                ok, problems = captures.check(name)
                self.assertEqual(ok, capture["expect"]["ok"])
                self.assertEqual(sorted({p.code for p in problems}), capture["expect"]["problems"])

    def test_no_capture_of_a_failure_has_a_rate(self):
        good = ("ok", "ka", "time", "noka", "z", "q", "plain", "close", "lua", "report", "dur",
                "pipe", "rps", "n", "170", "json", "rate", "tls", "variable")
        for name in captures.CAPTURES:
            parsed = captures.parse(name)
            ok, problems = captures.check(name, parsed)
            rate = invariants.rate(parsed, ok, problems)
            with self.subTest(capture=name):
                if name == "zrk_interrupted_json" or name.split("_")[-1] not in good:
                    # hey's Go sent again what was reset: nothing but the connections shows it.
                    self.assertTrue(rate is None or name == "hey_rst")
                else:
                    self.assertAlmostEqual(rate, ok / parsed.duration_s)

    def test_resets_that_hey_hides_show_in_the_count_of_connections(self):
        ok, problems = captures.check("hey_rst", keepalive=True, passive_opens=5 + 4)
        self.assertEqual([p.code for p in problems], ["KEEPALIVE_MISMATCH"])


class Sizes(unittest.TestCase):
    def test_a_good_run_has_no_problem_and_all_answers_are_ok(self):
        self.assertEqual(check(run()), (100000, []))

    def test_one_byte_more_or_less_in_each_answer_is_a_wrong_size(self):
        for size in (111, 113, 5, 1000):
            self.assertEqual(check(run(total_bytes=100000 * size)), (None, ["WRONG_SIZE"]), size)

    def test_parts_of_answers_at_the_end_of_a_timed_run_are_no_wrong_size(self):
        self.assertEqual(check(run(total_bytes=100000 * 112 + 100 * 112)), (100000, []))

    def test_answers_that_are_missing_bytes_are_a_wrong_size(self):
        self.assertEqual(check(run(total_bytes=100000 * 112 - 60000)), (None, ["WRONG_SIZE"]))

    def test_without_a_size_there_is_no_count(self):
        self.assertEqual(check(run(), response_bytes=None), (None, ["SIZE_UNKNOWN"]))
        self.assertEqual(check(run(tool="hey", statuses={"200": 100000}, total_bytes=None)),
                         (None, ["SIZE_UNKNOWN"]))

    def test_contents_of_ab_must_have_the_very_length(self):
        def ab(body_bytes, document_bytes, asked):
            parsed = run(tool="ab", done=1000, body_bytes=body_bytes, total_bytes=99999,
                         document_bytes=document_bytes)
            return check(parsed, asked=asked)
        self.assertEqual(ab(12000, 12, 1000), (1000, []))
        self.assertEqual(ab(12001, 12, 1000), (None, ["WRONG_SIZE"]))
        self.assertEqual(ab(11999, 12, 1000), (None, ["WRONG_SIZE"]))
        self.assertEqual(ab(13000, 13, 1000), (None, ["WRONG_SIZE"]))
        self.assertEqual(ab(12000, 13, 1000), (None, ["WRONG_SIZE"]))
        # ab -t also counts the bytes of answers that came after its time was up.
        self.assertEqual(ab(12048, 12, None), (1000, []))
        self.assertEqual(ab(12048 + 1200, 12, None), (None, ["WRONG_SIZE"]))

    def test_half_of_the_contents_short_and_half_long_shows_as_length_errors(self):
        parsed = run(tool="ab", done=1000, body_bytes=12000, document_bytes=12,
                     errors={"length": 500})
        self.assertEqual(check(parsed, asked=1000), (None, ["WRONG_SIZE"]))


class Answers(unittest.TestCase):
    def test_any_other_status_is_named_and_not_counted(self):
        for statuses in ({"200": 99999, "503": 1}, {"2xx": 99999, "3xx": 1}, {"200": 99999,
                                                                               "204": 1}):
            ok, codes = check(run(tool="h2load", statuses=statuses))
            self.assertEqual((ok, codes), (99999, ["WRONG_STATUS"]))

    def test_a_server_that_answers_503_has_no_good_answer(self):
        self.assertEqual(check(run(errors={"status": 100000})), (0, ["WRONG_STATUS"]))

    def test_errors_count_from_the_allowed_share_on(self):
        parsed = run(errors={"read": 10})
        self.assertEqual(check(parsed)[1], ["ERRORS"])
        self.assertEqual(check(parsed, max_error_rate=0.0001)[1], [])
        self.assertEqual(check(parsed, max_error_rate=0.00009)[1], ["ERRORS"])

    def test_fewer_requests_than_asked_are_incomplete(self):
        self.assertEqual(check(run(), asked=100000)[1], [])
        self.assertEqual(check(run(), asked=100001)[1], ["INCOMPLETE"])

    def test_no_answer_and_no_error_is_a_hang_and_with_errors_no_response(self):
        silent = {"done": 0, "total_bytes": 0}
        self.assertEqual(check(run(**silent)), (None, ["HUNG"]))
        self.assertEqual(check(run(**silent, errors={"read": 5})), (0, ["ERRORS", "NO_RESPONSE"]))
        self.assertEqual(check(run(**silent, errors={"connect": 5})), (0, ["ERRORS"]))

    def test_ab_without_a_byte_from_the_server_had_no_response(self):
        parsed = run(tool="ab", total_bytes=0, body_bytes=0, document_bytes=0)
        ok, codes = check(parsed, asked=100000)
        self.assertIsNone(ok)
        self.assertIn("NO_RESPONSE", codes)


class Tool(unittest.TestCase):
    def test_an_exit_status_that_is_not_zero_takes_the_count_away(self):
        for rc in (1, 22, 124, -9, -15):
            self.assertEqual(check(run(), rc=rc), (None, ["TOOL_FAILED"]), rc)
        self.assertEqual(check(run(), rc=None), (100000, []))

    def test_output_that_is_not_whole_has_no_count_whatever_it_says(self):
        parsed = run()
        parsed.complete = False
        self.assertIsNone(check(parsed)[0])

    def test_a_rate_that_differs_by_more_than_a_percent_is_marked(self):
        for share, expected in ((1.009, []), (0.991, []), (1.011, ["RATE_DIFFERS"]),
                                (0.989, ["RATE_DIFFERS"])):
            self.assertEqual(check(run(rps=10000 * share)), (100000, expected), share)

    def test_a_time_printed_with_few_places_may_differ_by_its_last_place(self):
        parsed = run(tool="ab", done=100, duration_s=0.012, rps=8182.64, body_bytes=1200,
                     document_bytes=12, extra={"duration_step_s": 0.001})
        self.assertEqual(check(parsed, min_seconds=0, asked=100)[1], [])

    def test_an_offered_rate_must_be_reached(self):
        self.assertEqual(check(run(), offered_rps=10200)[1], [])
        self.assertEqual(check(run(), offered_rps=10205)[1], ["RATE_MISSED"])


class Times(unittest.TestCase):
    def little(self, mean, tool="h2load", **arguments):
        latency = Latency(mean=mean, resolution=1.0)
        parsed = run(tool=tool, latency=latency, statuses={"200": 100000})
        return check(parsed, **arguments)

    def test_latency_times_rate_is_the_concurrency(self):
        for mean, expected in ((10000, []), (7500, []), (7400, ["LITTLES_LAW"]), (13000, []),
                               (13100, ["LITTLES_LAW"])):
            self.assertEqual(self.little(mean), (100000, expected), mean)

    def test_wrks_own_samples_and_its_waiting_loop_are_allowed_for(self):
        for mean, expected in ((30000, []), (5000, []), (2500, ["LITTLES_LAW"])):
            self.assertEqual(self.little(mean, "wrk"), (100000, expected), mean)

    def test_wrk_with_connections_that_hang_has_no_number(self):
        self.assertEqual(self.little(1500, "wrk"), (None, ["HUNG"]))

    def test_littles_law_is_asked_of_closed_loops_without_pipelining_only(self):
        self.assertEqual(self.little(100, offered_rps=10000)[1], [])
        self.assertEqual(self.little(100, pipeline=16)[1], [])

    def test_a_pause_of_more_than_a_second_is_a_hang(self):
        self.assertEqual(check(run(), longest_pause_s=1.0), (100000, []))
        self.assertEqual(check(run(), longest_pause_s=1.1), (None, ["HUNG"]))

    def test_answers_as_slow_as_the_tools_limit_distort(self):
        for slowest, expected in ((19.7e6, []), (19.9e6, ["TIMEOUT_DISTORTED"])):
            parsed = run(latency=Latency(max=slowest))
            self.assertEqual(check(parsed, tool_timeout_s=20)[1], expected)
        self.assertIn("TIMEOUT_DISTORTED", check(run(errors={"timeout": 1}))[1])

    def test_short_runs_are_marked(self):
        for seconds, expected in ((2.0, []), (1.9, ["TOO_SHORT"])):
            parsed = run(duration_s=seconds, rps=100000 / seconds)
            self.assertEqual(check(parsed), (100000, expected))
            self.assertEqual(check(parsed, min_seconds=0), (100000, []))


class Stalled(unittest.TestCase):
    def test_connections_that_wait_longer_than_any_answer_took_have_no_number(self):
        fast = Latency(mean=10_000.0, max=20_000.0)
        for tool in ("wrk", "h2load"):
            parsed = run(tool, latency=fast, body_bytes=1_200_000)
            self.assertIn("HUNG", check(parsed, silences=[[0] * 100, [0] * 99 + [1500]])[1])
            self.assertNotIn("HUNG", check(parsed, silences=[[0] * 99 + [900]])[1])

    def test_slow_answers_idle_strangers_and_hey_are_no_hang(self):
        ages = [0] * 80 + [3000] * 20
        slow = run(latency=Latency(mean=10_000.0, max=2_500_000.0))
        self.assertNotIn("HUNG", check(slow, silences=[ages])[1])
        fast = run(latency=Latency(mean=10_000.0, max=20_000.0))
        self.assertNotIn("HUNG", check(fast, silences=[ages + [0] * 20])[1])
        self.assertNotIn("HUNG", check(run("hey", statuses={"200": 100000}, body_bytes=1_200_000,
                                           latency=fast.latency), silences=[ages])[1])


class Connections(unittest.TestCase):
    def test_connections_are_kept_if_the_plan_says_so(self):
        for opened, expected in ((100, []), (602, []), (603, ["KEEPALIVE_MISMATCH"])):
            self.assertEqual(check(run(), keepalive=True, passive_opens=opened)[1], expected)

    def test_connections_are_closed_if_the_plan_says_so(self):
        for opened, expected in ((100000, []), (98000, []), (97000, ["KEEPALIVE_MISMATCH"]),
                                 (100, ["KEEPALIVE_MISMATCH"])):
            self.assertEqual(check(run(), keepalive=False, passive_opens=opened)[1], expected)

    def test_abs_own_count_of_kept_connections_is_believed(self):
        for kept, keepalive, expected in ((1000, True, []), (995, True, []), (None, False, []),
                                          (994, True, ["KEEPALIVE_MISMATCH"]), (0, False, []),
                                          (0, True, ["KEEPALIVE_MISMATCH"]),
                                          (5, False, ["KEEPALIVE_MISMATCH"])):
            parsed = run(tool="ab", done=1000, body_bytes=12000, document_bytes=12,
                         kept_alive=kept)
            self.assertEqual(check(parsed, asked=1000, keepalive=keepalive)[1], expected)

    def test_fewer_open_connections_than_asked_for_are_named(self):
        for peak, expected in ((95, []), (94, ["FEWER_CONNECTIONS"])):
            self.assertEqual(check(run(), keepalive=True, established_peak=peak)[1], expected)
        # Connections of one request each are too short-lived for a peak to be seen.
        self.assertEqual(check(run(), keepalive=False, established_peak=3)[1], [])


class Rate(unittest.TestCase):
    def test_only_a_run_without_a_fatal_problem_has_a_rate(self):
        parsed = run()
        for arguments, expected in (({}, 10000.0), ({"min_seconds": 60}, 10000.0),
                                    ({"rc": 1}, None), ({"asked": 100001}, None),
                                    ({"longest_pause_s": 9}, None)):
            ok, problems = invariants.check(
                parsed, **{"asked": None, "concurrency": 100, "expected_body": b"Hello World!",
                           "response_bytes": 112, "rc": 0, **arguments})
            self.assertEqual(invariants.rate(parsed, ok, problems), expected, arguments)


if __name__ == "__main__":
    unittest.main()

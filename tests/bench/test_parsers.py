# SPDX-License-Identifier: MIT
"""What each captured output gives, whole, cut at every byte, and spoilt."""

import unittest

import captures
from hellobench import parsers
from hellobench.model import Parsed, Requests

# Figures of a result that a cut output must not have got wrong.
_FIGURES = ("duration_s", "rps", "done", "errors", "statuses", "body_bytes")


def figures(parsed):
    return {"complete": parsed.complete, "duration_s": parsed.duration_s, "rps": parsed.rps,
            "done": parsed.requests.done, "body_bytes": parsed.body_bytes,
            "errors": {kind: n for kind, n in parsed.requests.errors.items() if n},
            "statuses": parsed.statuses, "total_bytes": parsed.total_bytes,
            "kept_alive": parsed.kept_alive, "mean": parsed.latency.mean,
            "p50": parsed.latency.p50, "p99": parsed.latency.p99, "max": parsed.latency.max}


def codes(parsed):
    return [problem.code for problem in parsed.problems]


class Captures(unittest.TestCase):
    def test_every_capture_gives_its_figures(self):
        for name, capture in captures.CAPTURES.items():
            with self.subTest(capture=name):
                expected = dict(capture["expect"])
                expected.pop("ok"), expected.pop("problems")
                self.assertEqual(figures(captures.parse(name)), expected)

    def test_output_without_a_whole_result_is_bad_output(self):
        for name in captures.CAPTURES:
            with self.subTest(capture=name):
                parsed = captures.parse(name)
                self.assertEqual("BAD_OUTPUT" in codes(parsed), not parsed.complete)

    def test_every_prefix_of_every_capture_is_bad_output_or_has_the_right_figures(self):
        for name, capture in captures.CAPTURES.items():
            whole, expected = captures.stdout(name), capture["expect"]
            files = captures.side_files(name)
            for length in range(len(whole)):
                parsed = parsers.parse(capture["tool"], whole[:length], side_files=files)
                self.assertEqual(parsed.complete, "BAD_OUTPUT" not in codes(parsed), (name, length))
                if not parsed.complete:
                    continue
                seen = figures(parsed)
                for figure in _FIGURES:
                    self.assert_same(seen[figure], expected[figure], (name, length, figure))

    def test_a_result_that_lost_its_last_line_is_not_whole(self):
        for name in ("ab_ok", "wrk_ok", "wrk2_rate", "h2load_ok", "h2load_170",
                     "bombardier_text"):
            with self.subTest(capture=name):
                lines = captures.stdout(name).splitlines(keepends=True)
                parsed = parsers.parse(captures.CAPTURES[name]["tool"], b"".join(lines[:-1]))
                self.assertEqual(codes(parsed), ["BAD_OUTPUT"])

    def assert_same(self, seen, expected, where):
        # wrk's text, cut before the JSON line, is whole and less exact.
        if isinstance(expected, float) and where[0].startswith("wrk_"):
            self.assertAlmostEqual(seen, expected, delta=0.005 * expected + 1e-9, msg=where)
        else:
            self.assertEqual(seen, expected, where)

    def test_every_prefix_of_every_side_file_is_bad_output(self):
        for name in ("ab_ka", "h2load_pipe"):
            capture = captures.CAPTURES[name]
            (kind, content), = captures.side_files(name).items()
            # Of the long log, every place of its end and of its beginning.
            places = [*range(1, min(len(content), 1200)), *range(len(content) - 60, len(content))]
            for length in places:
                parsed = parsers.parse(capture["tool"], captures.stdout(name), b"", 0,
                                       {kind: content[:length]})
                at_line_end = content[:length].endswith(b"\n")
                if kind == "log" and at_line_end:
                    # Shorter than the count of requests: its statuses are not believed.
                    self.assertEqual(parsed.statuses, {"2xx": 1000}, (name, length))
                else:
                    self.assertIn("BAD_OUTPUT", codes(parsed), (name, length))

    def test_line_ends_of_windows_change_nothing(self):
        for name, capture in captures.CAPTURES.items():
            with self.subTest(capture=name):
                crlf = captures.stdout(name).replace(b"\n", b"\r\n")
                plain = parsers.parse(capture["tool"], captures.stdout(name), b"", capture["rc"])
                parsed = parsers.parse(capture["tool"], crlf, b"", capture["rc"])
                self.assertEqual(figures(parsed), figures(plain))

    def test_garbage_of_any_kind_is_bad_output_for_every_tool(self):
        megabyte = bytes(range(256)) * 4096
        for tool in parsers.TOOLS:
            for garbage in (b"", b"\0" * 1000, megabyte, b"{", b"{}", b"[]", b"null", b"\xff\xfe",
                            b"JSON {}\n", b"[" * 100000, b'{"summary":[]}', b'{"result":1}',
                            b'{"measurements":{"requests":null}}', b"9" * 1000000, b"\n" * 100000,
                            b" " * 1000000, b"a" * 1000000):
                with self.subTest(tool=tool, garbage=garbage[:20]):
                    parsed = parsers.parse(tool, garbage, garbage)
                    self.assertFalse(parsed.complete)
                    self.assertIn("BAD_OUTPUT", codes(parsed))

    def test_a_nul_byte_in_the_counts_is_never_read_over(self):
        spoilt = captures.stdout("ab_ok").replace(
            b"requests:      1000", b"requests:      10\x0000")
        self.assertFalse(parsers.parse("ab", spoilt).complete)

    def test_another_tools_output_is_bad_output(self):
        for tool in ("ab", "wrk", "h2load", "zrk", "gcannon", "autocannon"):
            self.assertIn("BAD_OUTPUT", codes(parsers.parse(tool, captures.stdout("hey_ok"))))


class Tools(unittest.TestCase):
    def test_ab_counts_one_broken_request_up_to_three_times_and_we_count_it_once(self):
        parsed = captures.parse("ab_rst_r")
        self.assertEqual(parsed.extra["failed_by_tool"], 12)
        self.assertEqual(sum(parsed.requests.errors.values()), 4)

    def test_abs_csv_has_the_decimals_that_its_screen_lacks(self):
        latency = captures.parse("ab_ka").latency
        self.assertEqual((latency.resolution, latency.min, latency.max), (1.0, 59.0, 2549.0))
        self.assertAlmostEqual(latency.mean, 460, delta=15)  # c x time / n: 0.460 ms

    def test_abs_own_words_name_what_made_it_give_up(self):
        for name, words in (("ab_rst", "Connection reset by peer"), ("ab_refused", "refused"),
                            ("ab_hang", "timeout specified has expired"),
                            ("ab_cgtn", "concurrency level greater"), ("ab_badurl", "invalid URL")):
            with self.subTest(capture=name):
                problem = captures.parse(name).problems[0]
                self.assertEqual(problem.code, "TOOL_FAILED")
                self.assertIn(words, problem.text)

    def test_heys_figures_of_a_run_without_success_are_none(self):
        latency = captures.parse("hey_hang").latency
        self.assertEqual((latency.min, latency.mean, latency.max, latency.p50), (None,) * 4)

    def test_heys_percentiles_that_it_could_not_compute_are_none(self):
        latency = captures.parse("hey_chunk").latency
        self.assertEqual((latency.p95, latency.p99), (2100.0, None))

    def test_heys_csv_is_whole_only_if_hey_ended_well(self):
        for rc, complete in ((0, True), (None, False), (1, False)):
            with self.subTest(rc=rc):
                table = captures.stdout("hey_csv")
                self.assertEqual(parsers.parse("hey", table, rc=rc).complete, complete)

    def test_hey_output_that_lost_its_blank_lines_counts_if_the_rate_gives_the_count(self):
        pasted = captures.stdout("hey_ok").strip()
        self.assertTrue(parsers.parse("hey", pasted).complete)
        fewer = pasted.replace(b"[200]\t990", b"[200]\t989")
        self.assertFalse(parsers.parse("hey", fewer).complete)

    def test_wrks_histogram_shows_the_share_of_samples_that_it_made_up(self):
        parsed = captures.parse("wrk_report")
        samples = sum(count for _, count in parsed.latency.histogram)
        self.assertGreaterEqual(samples, parsed.requests.done)
        self.assertAlmostEqual(parsed.latency.synthetic_share,
                               1 - parsed.requests.done / samples)

    def test_wrk_without_a_sample_has_no_latency(self):
        for name in ("wrk_lua0", "wrk_hang"):
            latency = captures.parse(name).latency
            self.assertEqual((latency.min, latency.mean, latency.max), (None,) * 3, name)

    def test_h2loads_log_gives_percentiles_and_the_very_statuses(self):
        parsed = captures.parse("h2load_pipe")
        self.assertEqual(parsed.statuses, {"200": 1000})
        self.assertEqual(sum(count for _, count in parsed.latency.histogram), 1000)

    def test_h2loads_time_without_its_warm_up_is_the_time_of_its_rate(self):
        parsed = captures.parse("h2load_dur")
        self.assertEqual((parsed.duration_s, parsed.requests.done), (1.0, 29471))

    def test_h2loads_json_is_read_in_whatever_unit_of_time_it_is(self):
        text = captures.stdout("h2load_170_json")
        milliseconds = text.replace(b'"duration":0.002', b'"duration":2.0')
        self.assertAlmostEqual(parsers.parse("h2load", milliseconds).duration_s, 0.002)
        absurd = text.replace(b'"duration":0.002', b'"duration":7.0')
        self.assertIn("BAD_OUTPUT", codes(parsers.parse("h2load", absurd)))

    def test_ohas_requests_cut_off_by_the_deadline_are_no_errors(self):
        self.assertEqual(sum(captures.parse("oha_json").requests.errors.values()), 0)


class ExpectedRequests(unittest.TestCase):
    def test_the_command_line_says_how_many_requests_to_expect(self):
        for line, expected in (
                ("ab -c 500 -n 500000 http://h/", 500000), ("ab -n10 -c1 http://h/", 10),
                ("ab http://h/", 1), ("ab -t 1 http://h/", None), ("ab -t1 -n 99 http://h/", None),
                ("hey -n 200000 -c 300 http://h", 199800), ("hey -n 1000 -c 30 http://h", 990),
                ("hey http://h", 200), ("hey -n=100 -c=7 http://h", 98),
                ("hey -c 0 http://h", None),
                ("hey -z 5s -c 5 http://h", None), ("wrk -t1 -c10 -d1s http://h", None),
                ("h2load --h1 -n 1000 -c 10 http://h", 1000), ("h2load --requests=7 http://h", 7),
                ("h2load --h1 -D 2 http://h", None), ("h2load --duration=2 http://h", None),
                ("taskset -c 1 /usr/bin/ab -n 5 http://h/", 5), ("ls -n 5", None), ("", None),
                ("ab -n x http://h/", None), ("ab -n", 1)):
            with self.subTest(line=line):
                self.assertEqual(parsers.expected_requests(line.split()), expected)


class Sharpening(unittest.TestCase):
    def sharpened(self, printed, rps, step=0.001):
        parsed = Parsed(tool="ab", duration_s=printed, rps=rps, requests=Requests(done=10),
                        extra={"duration_step_s": step})
        parsers.sharpen(parsed)
        return parsed.duration_s

    def test_a_time_of_few_places_gets_those_that_the_rate_has(self):
        self.assertAlmostEqual(self.sharpened(0.001, 6738.54), 0.001484, 6)
        self.assertAlmostEqual(self.sharpened(0.001, 18000.0), 0.000556, 6)

    def test_a_rate_that_contradicts_the_time_changes_nothing(self):
        self.assertEqual(self.sharpened(0.001, 6000.0), 0.001)
        self.assertEqual(self.sharpened(0.001, 1e9), 0.001)

    def test_without_a_rate_or_a_step_the_time_stays_as_printed(self):
        self.assertEqual(self.sharpened(0.001, None), 0.001)
        self.assertEqual(self.sharpened(0.001, 6738.54, step=None), 0.001)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""report.md, results.json and results.csv, from results that nobody measured (synthetic.py)."""

import csv
import json
import pathlib
import re
import tempfile
import unittest

import schema_check
import synthetic
from hellobench import journal, model, report
from hellobench.errors import UsageError

SCHEMA = json.loads((pathlib.Path(report.__file__).parent / "results.schema.json")
                    .read_text("utf-8"))
HOSTILE = "<b>x</b>|`rm`](evil) *_[=\x1b[2J\n# top"


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def write(self, shape="runs", formats=("md", "json", "csv"), **options):
        synthetic.write(self.folder, shape, **options)
        report.write(self.folder, formats)
        return (self.folder / "report.md").read_text("utf-8") if "md" in formats else ""

    def results(self):
        return json.loads((self.folder / "results.json").read_text("utf-8"))


def section(markdown, title):
    return markdown.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def row(markdown, start):
    return next(line for line in markdown.splitlines() if line.startswith(start))


def fields(line):
    return [field.strip() for field in re.split(r"(?<!\\)\|", line)[1:-1]]


class Markdown(Folder):
    def test_the_article_of_repeats_has_its_row_above_ours(self):
        table = section(self.write(), "The article's table")
        lines = table.splitlines()
        at = lines.index(row(table, "| **Fiber** | article"))
        self.assertEqual(fields(lines[at])[2:], ["46,989", "47,128", "46,717", "46,209", "45,760",
                                                 "errors now and then"])
        self.assertEqual(fields(lines[at + 1])[:2], ["", "here"])
        self.assertEqual(len(fields(lines[at + 1])), 8)

    def test_a_run_with_an_error_shows_its_code_and_no_number(self):
        line = row(section(self.write(), "The article's table"), "| **Express** | here")
        self.assertEqual(fields(line)[4], "ERRORS")
        self.assertEqual(fields(line)[-1], "41 read")

    def test_the_article_of_resources_has_rate_cpu_and_memory_side_by_side(self):
        line = row(section(self.write("resources"), "The article's table"), "| **Go** |")
        self.assertEqual(fields(line)[1::2], ["35,509", "50.7 %", "232 MB"])
        self.assertEqual(fields(line)[4:7:2], ["96.0 %", "240 MB"])

    def test_the_ladder_has_a_row_for_each_command_and_a_pair_for_each_server(self):
        table = section(self.write("ladder"), "The article's table")
        line = fields(row(table, "| **ab -n5000 -c200** |"))
        self.assertEqual(line[1], "2,300 r/s, 86.4 ms/r")
        rate, time = re.match(r"([\d,]+) r/s, ([\d.]+) ms/r", line[2]).groups()
        self.assertAlmostEqual(float(rate.replace(",", "")) * float(time) / 1000, 200, delta=1)

    def test_the_article_of_one_rate_relates_all_to_its_best_that_was_measured(self):
        table = section(self.write("rps"), "The article's table")
        self.assertEqual(fields(row(table, "| **Node.js** |"))[3:], ["100 %", "100 %"])
        self.assertEqual(fields(row(table, "| **nginx + PHP 7** |"))[3], "67.6 %")

    def test_a_profile_of_ours_has_no_article(self):
        self.assertNotIn("article", self.write("ours").lower())

    def test_what_differs_from_the_article_is_said(self):
        said = section(self.write(), "The article's table")
        self.assertIn("What differs. The article: A machine with 4 processors. Here: Some "
                      "Processor 3.0 GHz with 2 processors", said)

    def test_what_the_client_limited_is_a_lower_bound_and_its_ratios_upper_ones(self):
        said = section(self.write(), "Results")
        bound = fields(row(said, "| 1 | **hello-uring** |"))
        self.assertRegex(bound[3], "^\u2265 9\\d,\\d{3} \\[")
        other = fields(row(said, "| 2 | **hello-uring (epoll)** |"))
        self.assertRegex(other[4], "^\u2264 0.9")
        self.assertEqual(other[5], "slower")

    def test_servers_that_cannot_be_told_apart_share_a_place(self):
        said = section(self.write(), "Results")
        places = [fields(row(said, f"| 3 | **{name}** |"))[0] for name in
                  ("ntex", "nginx return 200", "hyper")]
        self.assertEqual(places, ["3"] * 3)
        self.assertNotIn("\n| 4 |", said)

    def test_too_few_repeats_give_no_interval(self):
        line = fields(row(section(self.write(blocks=3), "Results"), "| 10 | **ASP.NET Core** |"))
        self.assertNotIn("[", line[4])
        self.assertEqual(line[5], "too few runs to tell")

    def test_without_a_twin_two_percent_are_the_margin_and_the_noise_is_not_known(self):
        said = self.write()
        self.assertIn("A difference under 2.00 % counts as none; the same server was not measured "
                      "twice", said)
        self.assertEqual(self.results()["margins"], {"main": 0.02})

    def test_what_the_baseline_differs_from_its_twin_by_counts_as_no_difference(self):
        said = self.write(twin=0.9)
        floor = self.results()["margins"]["main"]
        self.assertGreater(floor, 0.07)
        self.assertLess(floor, 0.14)
        margins = {each["metric"]: each["margin"] for each in self.results()["comparisons"]
                   if each["a"] == "twin"}
        self.assertEqual(margins["rps"], floor)
        self.assertGreater(margins["server_us_per_req"], 0.07)
        self.assertNotEqual(margins["server_us_per_req"], floor)
        self.assertRegex(said, r"what the baseline differs from itself by, measured as two "
                         r"entrants: (9\.\d|1\d\.\d) %")
        self.assertEqual(fields(row(section(said, "Results"), "| 1 | **hello-uring (epoll)**"))[5],
                         "can't be told")

    def test_a_server_that_is_not_installed_keeps_its_row_with_reason_and_command(self):
        said = self.write()
        self.assertIn("| \u2013 | PHP Swoole | PHP | not installed: php's extension swoole is not "
                      "there |", section(said, "Results"))
        self.assertIn("`scripts/bench install swoole`", section(said, "Not installed here"))

    def test_a_server_that_failed_has_the_code_in_plain_words(self):
        said = self.write()
        self.assertIn("| \u2013 | Iris | Go | no valid run: NOT_READY (the server gave no good "
                      "answer in the time allowed)", section(said, "Results"))
        self.assertIn("no good answer in 20 s", section(said, "Problems"))

    def test_the_lead_says_machine_command_and_what_is_missing(self):
        lead = self.write().partition("\n## ")[0]
        for words in ("24 servers", "`hey -n 200000 -c 300 http://localhost:8080`", "5 times each",
                      "2 processors, Linux 6.18.44", "baseline is hello-uring",
                      "6 runs had a fault", "1 server could not be installed"):
            self.assertIn(words, lead)

    def test_latency_is_called_closed_loop_unless_the_rate_was_fixed(self):
        self.assertIn("| p50 (closed loop) | p99 (closed loop) |", self.write())
        self.assertIn("| p50 (fixed rate) | p99 (fixed rate) |", self.write("rate"))

    def test_at_a_fixed_rate_the_cpu_time_per_request_is_ranked(self):
        said = section(self.write("rate"), "Results")
        self.assertIn("| server CPU time per request: median", said)
        self.assertIn("| dearer |", row(said, "| 2 | **hello-uring (epoll)** |"))

    def test_without_load_the_start_is_ranked(self):
        self.assertIn("| start to first answer: median", self.write("startup"))

    def test_the_command_that_repeats_the_run_is_given(self):
        self.assertRegex(section(self.write(), "Do it again"),
                         r"scripts/bench run article-runs --blocks 5 --seed 42 --topology pinned "
                         r"--baseline hello-uring --entrants hello-uring,hello-epoll,.*,flask\n")

    def test_each_of_greggs_questions_has_an_answer_with_figures(self):
        answers = section(self.write(), "Questions to ask of any benchmark")
        for question in ("Why not double?", "Did it break a limit?", "Did it error?",
                         "Does it reproduce?", "Does it matter?", "Did it even happen?"):
            self.assertIn(f"- {question} ", answers)
        self.assertIn("6 runs of 120", answers)

    def test_every_table_has_as_many_fields_in_each_row(self):
        for shape in synthetic.SHAPES:
            for table in re.findall(r"(?:^\|.*\n)+", self.write(shape), re.MULTILINE):
                widths = {len(fields(line)) for line in table.splitlines()}
                self.assertEqual(len(widths), 1, table[:300])

    def test_a_hostile_title_stays_text(self):
        said = self.write(rename={"go": HOSTILE, "swoole": HOSTILE})
        self.assertNotIn("<b>", said)
        self.assertNotIn("\x1b", said)
        self.assertNotIn("](evil)", said)
        self.assertNotIn("\n# top", said)
        self.assertIn(r"&lt;b>x&lt;/b>\|", said)

    def test_a_run_that_was_broken_off_says_how_much_is_missing(self):
        self.write()
        path = self.folder / journal.FILE
        path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:50]) + b'{"type":"cell","c')
        report.write(self.folder, ("md",))
        said = (self.folder / "report.md").read_text("utf-8")
        self.assertIn("70 runs of 120 are missing: it was broken off", said)

    def test_without_a_single_run_there_is_a_report_all_the_same(self):
        self.write()
        for name in (journal.FILE, "env.json", "verify.json"):
            (self.folder / name).unlink()
        report.write(self.folder, ("md", "json", "csv"))
        said = (self.folder / "report.md").read_text("utf-8")
        self.assertIn("no server has a figure", said)
        self.assertIn("not run: the benchmark was broken off before", said)

    def test_the_same_folder_gives_the_same_files(self):
        first = self.write()
        report.write(self.folder, ("md",))
        self.assertEqual(first, (self.folder / "report.md").read_text("utf-8"))


class Json(Folder):
    def test_every_shape_fits_the_schema(self):
        for shape in synthetic.SHAPES:
            self.write(shape, ("json",))
            self.assertEqual(schema_check.errors(self.results(), SCHEMA), [])

    def test_the_schema_refuses_an_unknown_problem_and_a_text_for_a_number(self):
        self.write(formats=("json",))
        data = self.results()
        data["cells"][0]["rps"] = "92,000"
        data["cells"][1]["problems"] = [{"code": "BAD_LUCK", "text": ""}]
        self.assertEqual(len(schema_check.errors(data, SCHEMA)), 2)

    def test_no_invalid_cell_has_a_rate(self):
        self.write(formats=("json",))
        invalid = [cell for cell in self.results()["cells"] if not cell["valid"]]
        self.assertEqual([cell["rps"] for cell in invalid], [None] * 6)

    def test_comparisons_are_with_the_baseline_and_carry_their_interval(self):
        self.write(formats=("json",))
        found = {(one["a"], one["metric"]): one for one in self.results()["comparisons"]}
        self.assertNotIn(("hello-uring", "rps"), found)
        go = found["go", "rps"]
        self.assertLess(go["low"], go["ratio"])
        self.assertLess(go["ratio"], go["high"])
        self.assertEqual((go["b"], go["decision"], go["n"]), ("hello-uring", "slower", 5))

    def test_a_figure_that_is_no_number_is_null(self):
        self.write(formats=("json",))
        path = self.folder / journal.FILE
        lines = path.read_text("utf-8").splitlines(True)
        lines[0] = lines[0].replace('"psi_cpu_pct": 3.0', '"psi_cpu_pct": NaN')
        path.write_text("".join(lines), "utf-8")
        report.write(self.folder, ("json",))
        self.assertIsNone(self.results()["cells"][0]["noise"]["psi_cpu_pct"])


class Csv(Folder):
    def rows(self, **options):
        self.write(formats=("csv",), **options)
        with open(self.folder / "results.csv", encoding="utf-8", newline="") as data:
            return list(csv.DictReader(data))

    def test_it_has_a_row_for_each_cell_and_flat_names(self):
        rows = self.rows()
        self.assertEqual(len(rows), 120)
        self.assertEqual(rows[0]["cpu.method"], "cgroup2")
        self.assertEqual(rows[0]["statuses"].split(":")[0], "200")

    def test_a_fault_is_a_code_and_its_rate_is_empty(self):
        bad = next(one for one in self.rows() if (one["entrant"], one["block"]) == ("express", "2"))
        self.assertEqual((bad["problems"], bad["rps"], bad["valid"]), ("ERRORS", "", "False"))

    def test_a_text_that_a_spreadsheet_would_run_is_quoted(self):
        synthetic.write(self.folder)
        path = self.folder / journal.FILE
        path.write_text(path.read_text("utf-8").replace('"1.2.3"', '"=cmd()"'), "utf-8")
        report.write(self.folder, ("csv",))
        self.assertNotIn(",=cmd()", (self.folder / "results.csv").read_text("utf-8"))


class Formats(Folder):
    def test_an_unknown_format_is_refused_with_the_known_ones(self):
        synthetic.write(self.folder)
        with self.assertRaisesRegex(UsageError, "pdf; there are md, csv, json, svg, png, html"):
            report.write(self.folder, ("pdf",))

    def test_a_folder_without_a_plan_is_refused(self):
        with self.assertRaisesRegex(UsageError, "no plan.json"):
            report.write(self.folder)

    def test_every_problem_has_words_for_readers(self):
        self.assertTrue(all(words for _, words in model.PROBLEMS.values()))


if __name__ == "__main__":
    unittest.main()

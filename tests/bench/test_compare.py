# SPDX-License-Identifier: MIT
"""Two results folders: what counts as worse, and what can't be told."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import made_up_run
from hellobench import compare, model, plan
from hellobench.errors import UsageError
from hellobench.journal import Journal

STEADY = (1000, 1001, 1002, 1003, 1004)


class Compared(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def folder(self, name, rates=STEADY, cells=None, profile=None, env=None, **more):
        """A results folder where alpha's cells have the rates `rates`."""
        folder = self.root / name
        folder.mkdir()
        plan.save(made_up_run.make_plan(["alpha"], profile, **more), folder)
        if env is not None:
            (folder / "env.json").write_text(json.dumps(env))
        with Journal(folder / "journal.jsonl") as journal:
            for cell in cells if cells is not None else self.cells(rates):
                journal.append(cell)
        return folder

    @staticmethod
    def cells(rates, **more):
        return [made_up_run.cell(block=block, rps=rate, cpu=model.Cpu(server_us_per_req=1e4 / rate),
                                 **more) for block, rate in enumerate(rates)]

    def rows(self, base, new, metrics=("rps",)):
        found = compare.compare(base, new, metrics)
        return found["rows"], found["exit_status"]

    def test_a_rate_that_fell_beyond_the_margin_is_a_regression(self):
        (row,), status = self.rows(self.folder("a"), self.folder("b", [v * 0.9 for v in STEADY]))
        self.assertEqual((row["decision"], status), ("slower", 3))
        self.assertAlmostEqual(row["ratio"], 0.9)

    def test_a_cost_that_rose_is_a_regression(self):
        (row,), status = self.rows(self.folder("a"), self.folder("b", [v * 0.9 for v in STEADY]),
                                   ["cpu.server_us_per_req"])
        self.assertEqual((row["decision"], status), ("slower", 3))
        self.assertGreater(row["ratio"], 1)

    def test_a_change_within_the_margin_is_none(self):
        (row,), status = self.rows(self.folder("a"), self.folder("b", [v * 0.99 for v in STEADY]))
        self.assertEqual((row["decision"], status), ("equivalent", 0))

    def test_an_improvement_is_no_regression(self):
        (row,), status = self.rows(self.folder("a"), self.folder("b", [v * 1.2 for v in STEADY]))
        self.assertEqual((row["decision"], status), ("faster", 0))

    def test_three_cells_a_side_are_too_few_to_tell(self):
        base, new = self.folder("a", STEADY[:3]), self.folder("b", [1, 2, 3])
        (row,), status = self.rows(base, new)
        self.assertEqual((row["decision"], status), ("inconclusive", 0))
        self.assertIn("too few cells", compare.text(compare.compare(base, new)))

    def test_blocks_that_only_one_run_has_count_too(self):
        (row,), _ = self.rows(self.folder("a"), self.folder("b", STEADY * 2))
        self.assertEqual((row["base"]["n"], row["new"]["n"]), (5, 10))

    def test_an_entrant_that_lost_its_numbers_is_named_with_the_problem(self):
        base = self.folder("a")
        new = self.folder("b", cells=self.cells(STEADY, problems=[("SERVER_DIED", "signal 11")]))
        (row,), status = self.rows(base, new)
        self.assertEqual((row["lost"], row["invalid"]["new"], status),
                         (True, {"SERVER_DIED": 5}, 4))
        self.assertIn("NO NUMBER any more: SERVER_DIED", compare.text(compare.compare(base, new)))

    def test_invalid_cells_are_counted_beside_the_valid_ones(self):
        cells = self.cells(STEADY) + [made_up_run.cell(block=9, problems=[("HUNG", "2 s")])]
        found = compare.compare(self.folder("a"), self.folder("b", cells=cells))
        self.assertEqual(found["rows"][0]["new"]["n"], 5)
        self.assertIn("new: 1 without number", compare.text(found))

    def test_a_rate_that_the_client_limited_is_marked(self):
        new = self.folder("b", cells=self.cells(STEADY, verdict="CLIENT_BOUND"))
        self.assertIn("the client was the limit",
                      compare.text(compare.compare(self.folder("a"), new)))

    def test_what_else_differs_is_listed(self):
        base = self.folder("a", env={"kernel": "6.1", "sysctl": {"net.core.somaxconn": 128}})
        new = self.folder("b", env={"kernel": "6.18", "sysctl": {"net.core.somaxconn": 4096}},
                          quick=True)
        self.assertEqual(compare.compare(base, new)["differences"],
                         ["quick was False, is True", "kernel was 6.1, is 6.18",
                          "sysctl: net.core.somaxconn was 128, is 4096"])

    def test_the_caution_about_runs_apart_is_always_there(self):
        found = compare.compare(self.folder("a"), self.folder("b"))
        self.assertIn("not measured in turns", compare.text(found))

    def test_another_profile_is_refused(self):
        new = self.folder("b", profile=made_up_run.Profile(id="other"))
        with self.assertRaisesRegex(UsageError, "of one profile compare"):
            compare.compare(self.folder("a"), new)

    def test_an_unknown_metric_is_refused_with_the_known_ones(self):
        with self.assertRaisesRegex(UsageError, "latency.p99"):
            compare.compare("a", "b", ["speed"])

    def test_nothing_in_common_is_refused(self):
        with self.assertRaisesRegex(UsageError, "in common"):
            compare.compare(self.folder("a"), self.folder("b", cells=[]), ["start_ms"])

    def test_every_metric_is_a_figure_of_a_cell(self):
        for metric in compare.METRICS:
            self.assertIsNone(compare.figure(model.Cell("a", "p", "main", 0, 0), metric))

    def test_the_json_goes_to_standard_output_and_the_status_is_returned(self):
        base, new = self.folder("a"), self.folder("b", [v * 0.5 for v in STEADY])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(compare.main(base, new, ["rps"], 0.02, True), 3)
        self.assertEqual(json.loads(out.getvalue())["rows"][0]["decision"], "slower")


if __name__ == "__main__":
    unittest.main()

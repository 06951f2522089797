# SPDX-License-Identifier: MIT
"""The plan: its order, its file, and what may be continued."""

import collections
import json
import os
import pathlib
import tempfile
import types
import unittest
from unittest import mock

import made_up_run
from hellobench import plan
from hellobench.errors import UsageError

STEPS = [made_up_run.Step("low"), made_up_run.Step("high")]


class Order(unittest.TestCase):
    def test_each_block_has_every_entrant_with_every_step_once(self):
        made = made_up_run.make_plan(profile=made_up_run.Profile(steps=STEPS, blocks=4))
        for block in range(4):
            cells = [cell for cell in made.cells if cell.block == block]
            self.assertEqual(sorted((cell.entrant, cell.step) for cell in cells),
                             sorted((name, step) for name in ("alpha", "beta", "gamma")
                                    for step in ("low", "high")))
            self.assertEqual([cell.order for cell in cells], list(range(6)))

    def test_the_seed_fixes_the_order(self):
        profile = made_up_run.Profile(blocks=20)
        first, again, other = (made_up_run.make_plan(profile=profile, seed=seed).cells
                               for seed in (7, 7, 8))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_more_blocks_leave_the_first_ones_as_they_were(self):
        few = made_up_run.make_plan(profile=made_up_run.Profile(blocks=3)).cells
        many = made_up_run.make_plan(profile=made_up_run.Profile(blocks=9)).cells
        self.assertEqual(few, many[:len(few)])

    def test_every_entrant_is_about_as_often_the_first(self):
        made = made_up_run.make_plan(profile=made_up_run.Profile(blocks=300))
        firsts = collections.Counter(cell.entrant for cell in made.cells if cell.order == 0)
        # 100 each are expected; the bounds are 5 standard deviations away.
        self.assertTrue(all(59 < count < 141 for count in firsts.values()), firsts)

    def test_the_steps_of_a_block_share_a_server_and_keep_their_order(self):
        made = made_up_run.make_plan(profile=made_up_run.Profile(steps=STEPS))
        self.assertEqual([(cell.step, cell.start) for cell in made.cells],
                         [("low", True), ("high", False)] * 9)

    def test_the_same_entrant_in_two_blocks_in_a_row_gets_a_new_server(self):
        made = made_up_run.make_plan(["alone"])
        self.assertEqual([cell.start for cell in made.cells], [True] * 3)

    def test_a_server_that_is_kept_running_does_its_repeats_in_a_row(self):
        made = made_up_run.make_plan(profile=made_up_run.Profile(restart=False, steps=STEPS))
        visits = [made.cells[index:index + 6] for index in range(0, 18, 6)]
        for visit in visits:
            self.assertEqual(len({cell.entrant for cell in visit}), 1)
            self.assertEqual([(cell.block, cell.step) for cell in visit],
                             [(block, step) for block in range(3) for step in ("low", "high")])
            self.assertEqual([cell.start for cell in visit], [True] + [False] * 5)

    def test_an_entrant_that_is_not_installed_has_its_reason_and_no_cell(self):
        made = made_up_run.make_plan(["alpha", made_up_run.entrant("gin", installed=False)])
        self.assertEqual({cell.entrant for cell in made.cells}, {"alpha"})
        self.assertEqual(made.entrants[1]["reason"], "there is no go")
        self.assertEqual(made.entrants[1]["cure"], "apt install golang-go")

    def test_a_server_that_the_user_started_is_planned_by_its_name(self):
        made = made_up_run.make_plan([types.SimpleNamespace(id="mine", host="::1", port=80)])
        self.assertEqual([cell.entrant for cell in made.cells], ["mine"] * 3)
        self.assertEqual((made.entrants[0]["title"], made.entrants[0]["language"]), ("mine", None))

    def test_an_entrant_elsewhere_in_the_list_changes_only_where_it_is(self):
        gone = made_up_run.make_plan(["alpha", "beta", made_up_run.entrant("x", installed=False)])
        self.assertEqual(gone.cells, made_up_run.make_plan(["alpha", "beta"]).cells)


class Remaining(unittest.TestCase):
    def test_nothing_measured_leaves_the_plan(self):
        made = made_up_run.make_plan(profile=made_up_run.Profile(steps=STEPS, restart=False))
        self.assertEqual(plan.remaining(made, []), made.cells)

    def test_measured_cells_are_left_out_valid_or_not(self):
        made = made_up_run.make_plan()
        cells = [made_up_run.measured(made.cells[0]),
                 made_up_run.measured(made.cells[1], problems=[("SERVER_DIED", "it died")])]
        self.assertEqual(plan.remaining(made, cells), made.cells[2:])

    def test_an_interrupted_cell_is_measured_again(self):
        made = made_up_run.make_plan()
        cut = made_up_run.measured(made.cells[0], problems=[("INTERRUPTED", "stopped")])
        self.assertEqual(plan.remaining(made, [cut]), made.cells)

    def test_the_first_cell_left_starts_a_server_in_the_midst_of_repeats(self):
        made = made_up_run.make_plan(profile=made_up_run.Profile(steps=STEPS, restart=False))
        left = plan.remaining(made, [made_up_run.measured(cell) for cell in made.cells[:3]])
        self.assertFalse(made.cells[3].start)
        self.assertTrue(left[0].start)
        self.assertEqual(left[1:], made.cells[4:])


class File(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_plan_comes_back_as_it_was_saved(self):
        made = made_up_run.make_plan(server_cpus=(0,), client_cpus=(1,), quick=True,
                                     git={"commit": "ab12", "dirty": False})
        plan.save(made, self.folder)
        self.assertEqual(plan.load(self.folder), made)

    def test_the_file_says_what_it_is(self):
        plan.save(made_up_run.make_plan(), self.folder)
        data = json.loads((self.folder / "plan.json").read_text())
        self.assertEqual(data["schema"], 1)
        self.assertTrue(data["tool"].startswith("hellobench "))
        self.assertEqual(list(data["cells"][0]), ["block", "order", "entrant", "step", "start"])

    def test_a_plan_that_could_not_be_replaced_is_still_the_old_one(self):
        old = made_up_run.make_plan()
        plan.save(old, self.folder)
        with mock.patch.object(os, "replace", side_effect=OSError), self.assertRaises(OSError):
            plan.save(made_up_run.make_plan(seed=2), self.folder)
        self.assertEqual(plan.load(self.folder), old)

    def test_a_folder_without_a_plan_is_named(self):
        with self.assertRaisesRegex(UsageError, "holds no results"):
            plan.load(self.folder)

    def test_a_damaged_plan_is_a_usage_error_at_any_length(self):
        plan.save(made_up_run.make_plan(["alpha"]), self.folder)
        whole = (self.folder / "plan.json").read_bytes()
        for size in range(len(whole) - 2):
            (self.folder / "plan.json").write_bytes(whole[:size])
            with self.assertRaises(UsageError):
                plan.load(self.folder)
        for text in ("[]", "{}", '{"schema": 2}', '{"schema": 1, "tool": "x", "cells": [3]}'):
            (self.folder / "plan.json").write_text(text)
            with self.assertRaises(UsageError):
                plan.load(self.folder)


class Resume(unittest.TestCase):
    def setUp(self):
        self.git = {"commit": "a" * 40, "dirty": False}
        self.plan = made_up_run.make_plan(["alpha", made_up_run.entrant("gin", installed=False)],
                                          git=self.git, binary_sha256="b" * 64)

    def check(self, **changed):
        now = {"git": self.git, "binary_sha256": "b" * 64, "versions": {"alpha": "1.0"}}
        return plan.check_resume(self.plan, **(now | changed))

    def test_the_same_state_may_go_on(self):
        self.assertEqual(self.check(), [])

    def test_what_changed_is_refused_with_the_cure(self):
        for changed, words in (({"git": {"commit": "c" * 40}}, "git commit was aaaaaaaaaaaa, now"),
                               ({"binary_sha256": "c" * 64}, "hello-uring binary was"),
                               ({"binary_sha256": None}, "now it is absent"),
                               ({"versions": {"alpha": "2.0"}}, "alpha was 1.0, now it is 2.0"),
                               ({"versions": {}}, "alpha was 1.0, now it is absent")):
            with self.assertRaisesRegex(UsageError, f"{words}.*--force"):
                self.check(**changed)

    def test_force_goes_on_and_says_what_changed(self):
        self.assertEqual(len(self.check(force=True, binary_sha256="c" * 64)), 1)


class Checkout(unittest.TestCase):
    def test_a_folder_that_is_no_checkout_has_no_commit(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(plan.git_state(folder), {"commit": None, "dirty": None})

    def test_the_checksum_is_that_of_the_content(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "binary"
            self.assertIsNone(plan.sha256(path))
            path.write_bytes(b"abc")
            self.assertTrue(plan.sha256(path).startswith("ba7816bf8f01cfea"))



if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""Profiles: what is committed loads, and what can't be run is refused with the reason."""

import pathlib
import tempfile
import unittest

from hellobench import parsers, profile
from hellobench.errors import UsageError

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "scripts/profiles"
LEAST = {"schema": 1, "title": "t", "about": "a", "kind": "ours", "entrants": ["x"],
         "steps": [{"id": "main", "argv": ["ab", "-n100", "-c10", "{url}"], "concurrency": 10}]}


def refusal(**changes):
    try:
        profile.from_data("p", LEAST | changes, quick=False)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


class BrokenFileTest(unittest.TestCase):
    def test_what_is_missing_or_of_another_kind_is_refused_and_the_file_named(self):
        whole = (FOLDER / "smoke.toml").read_text("utf-8")
        for old, new in (('id = "ab"\n', ""), ("blocks = 2", "quick = 5"),
                         ('argv = ["ab", "-c", "10", "-n", "500", "{url}"]', "argv = [1, 2]")):
            with self.subTest(new=new), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "p.toml"
                path.write_text(whole.replace(old, new, 1), "utf-8")
                with self.assertRaisesRegex(UsageError, "p.toml"):
                    profile.load(path)


class ProfileTest(unittest.TestCase):
    def test_every_committed_profile_loads_in_both_sizes(self):
        for quick in (False, True):
            with self.subTest(quick=quick):
                loaded = profile.load_all(FOLDER, quick)
                self.assertEqual(set(loaded), {
                    "article-swoole", "article-frameworks", "article-ladder", "article-wrk",
                    "peak", "close", "pipelined", "rate", "idle", "startup", "smoke"})

    def test_every_entrant_of_a_profile_exists(self):
        there = {path.parent.name for path in FOLDER.parent.glob("entrants/*/entrant.toml")}
        for loaded in profile.load_all(FOLDER).values():
            named = set(loaded.entrants)
            if loaded.published:
                named |= {row["entrant"] for row in loaded.published.rows}
            self.assertLessEqual(named, there, loaded.id)

    def test_the_commands_of_the_articles_are_theirs_word_for_word(self):
        frameworks = profile.load(FOLDER / "article-frameworks.toml")
        words = profile.words(frameworks.host, frameworks.port, "raw", 1)
        self.assertEqual(" ".join(profile.client_argv(frameworks.steps[0], words)),
                         "hey -n 200000 -c 300 http://localhost:8080")
        ladder = profile.load(FOLDER / "article-ladder.toml")
        self.assertEqual([" ".join(step.argv) for step in ladder.steps], [
            "ab -n10 -c1 {url}", "ab -n100 -c1 {url}", "ab -n100 -c10 {url}",
            "ab -n1000 -c20 {url}", "ab -n5000 -c200 {url}"])
        swoole = profile.load(FOLDER / "article-swoole.toml")
        self.assertEqual(" ".join(swoole.steps[0].argv), "ab -c 500 -n 500000 {url}")
        self.assertEqual(swoole.body, "Welcome to hello world benchmark.")

    def test_the_quick_size_changes_the_size_alone(self):
        for name in (path.stem for path in FOLDER.glob("*.toml")):
            full = profile.load(FOLDER / f"{name}.toml")
            quick = profile.load(FOLDER / f"{name}.toml", quick=True)
            with self.subTest(name):
                self.assertEqual([step.id for step in quick.steps],
                                 [step.id for step in full.steps])
                self.assertEqual([step.concurrency for step in quick.steps],
                                 [step.concurrency for step in full.steps])
                self.assertEqual((quick.body, quick.keepalive, quick.entrants),
                                 (full.body, full.keepalive, full.entrants))

    def test_a_profile_survives_being_written_into_a_plan(self):
        for loaded in profile.load_all(FOLDER).values():
            self.assertEqual(profile.from_json(profile.to_json(loaded)), loaded)

    def test_additions_to_a_command_come_right_after_the_tool(self):
        step = profile.Step("s", ["ab", "-n1", "{url}"], added=["-e", "{step_dir}/ab.csv"])
        self.assertEqual(profile.client_argv(step, {"url": "http://h/", "step_dir": "raw"}),
                         ["ab", "-e", "raw/ab.csv", "-n1", "http://h/"])

    def test_more_connections_than_requests_are_refused_before_the_start(self):
        steps = [{"id": "s", "argv": ["ab", "-n5", "-c10", "{url}"], "concurrency": 10}]
        self.assertIn("less than its concurrency", refusal(steps=steps))

    def test_a_command_that_names_an_address_is_refused_for_the_server_may_be_elsewhere(self):
        steps = [{"id": "s", "argv": ["wrk", "http://localhost:8080/"]}]
        self.assertIn("{url} or {origin}", refusal(steps=steps))

    def test_wrong_words_are_refused_with_those_that_would_do(self):
        self.assertIn("article, ours", refusal(kind="mine"))
        self.assertIn("shared, pinned", refusal(topology="alone"))
        self.assertIn("client, all", refusal(settle="some"))
        self.assertIn("unexpected keyword", refusal(colour="red"))

    def test_a_profile_without_steps_or_blocks_is_refused(self):
        self.assertIn("at least one", refusal(steps=[]))
        self.assertIn("at least one", refusal(blocks=0))

    def test_a_quick_step_that_does_not_exist_is_named(self):
        self.assertIn("nowhere", refusal(quick={"steps": {"nowhere": {}}}))

    def test_a_file_that_is_no_toml_is_an_error_that_names_it(self):
        with self.assertRaisesRegex(UsageError, "absent.toml"):
            profile.load(FOLDER / "absent.toml")

    def test_hey_is_known_to_send_less_than_it_is_asked_for(self):
        argv = profile.load(FOLDER / "article-frameworks.toml").steps[0].argv
        self.assertEqual(parsers.expected_requests(argv), 199_800)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""entrant.toml: what is refused and how, what is missing and how that is said, what is started."""

import os
import pathlib
import signal
import tempfile
import unittest
import unittest.mock

from hellobench import entrant
from hellobench.errors import UsageError

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = """
schema = 1
title = "T"
language = "Python"
kind = "server"
variant = "tuned"
about = "A test."
articles = []
access_log = false
workers = "one process"
single_threaded = true
"""
RUN = """
[[run]]
argv = ["sh", "{run}/{port}", "{not a word} {} {x: 1}"]
env = { BODY = "{body}", CPUS = "{cpus}", CORES = "{cores}", AT = "{address}" }
"""
INSTALL = """
[install]
steps = [["touch", "made"]]
artefact = "{build}/made"
"""


class EntrantCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.folder = self.root / "scripts/entrants/test"
        self.folder.mkdir(parents=True)
        entrant.command_output.cache_clear()

    def load(self, text):
        (self.folder / "entrant.toml").write_text(text)
        return entrant.load(self.folder / "entrant.toml", self.root)

    def refused(self, text, *parts):
        with self.assertRaises(UsageError) as caught:
            self.load(text)
        for part in ("entrant.toml", *parts):
            self.assertIn(part, str(caught.exception))


class Refused(EntrantCase):
    def test_a_file_that_is_no_toml_is_refused_with_its_line(self):
        self.refused(GOOD + "[[run]\n", "line 12")

    def test_an_unknown_key_is_named_with_the_known_ones(self):
        self.refused("colour = 1\n" + GOOD + RUN, "colour: unknown key", "title")

    def test_an_unknown_key_of_a_table_is_named_with_its_table(self):
        self.refused(GOOD + RUN + "argz = 1\n", "run[0].argz: unknown key", "argv")

    def test_a_missing_key_is_named_with_what_to_add(self):
        self.refused(GOOD.replace('title = "T"', "") + RUN, 'title: is missing; add title = "text"')

    def test_a_value_of_the_wrong_type_is_named_with_the_right_one(self):
        self.refused(GOOD.replace("false", '"no"') + RUN, "access_log: must be true or false")

    def test_a_kind_that_does_not_exist_is_named_with_those_that_do(self):
        self.refused(GOOD.replace('"server"', '"toy"') + RUN, "kind: is 'toy'", "framework")

    def test_a_schema_of_another_version_is_refused(self):
        self.refused(GOOD.replace("schema = 1", "schema = 2") + RUN, "schema: is 2")

    def test_an_unknown_word_in_braces_is_named_with_the_known_ones(self):
        self.refused(GOOD + RUN.replace("{port}", "{prot}"), "run[0].argv: unknown word {prot}",
                     "{port}")

    def test_a_word_of_a_run_is_refused_where_it_is_installed(self):
        self.refused(GOOD + RUN + INSTALL.replace("made", "{port}", 1),
                     "install.steps: unknown word {port}")

    def test_nothing_to_run_is_refused(self):
        self.refused(GOOD, "run: is missing")

    def test_a_signal_that_does_not_exist_is_refused(self):
        self.refused(GOOD + RUN + '[stop]\nsignal = "BOO"\n', "stop.signal: is 'BOO'", "TERM")

    def test_a_need_without_a_cure_is_refused(self):
        self.refused(GOOD + RUN + '[[needs]]\ncommand = "x"\n', "needs[0]: give apt")

    def test_a_need_of_two_things_is_refused(self):
        self.refused(GOOD + RUN + '[[needs]]\ncommand = "x"\nfile = "/x"\napt = "x"\n',
                     "needs[0]: give one of")

    def test_a_template_that_is_not_there_is_refused(self):
        self.refused(GOOD + RUN + '[[files]]\ntemplate = "a.in"\nto = "{run}/a"\n',
                     "files[0].template: there is no file a.in")

    def test_an_artefact_outside_of_the_build_folder_is_refused(self):
        self.refused(GOOD + RUN + INSTALL.replace("{build}/made", "made"), "install.artefact")

    def test_a_version_pattern_without_a_group_is_refused(self):
        self.refused(GOOD + RUN + '[version]\nargv = ["go"]\npattern = "x"\n', "version.pattern")


class Twin(EntrantCase):
    FILE = 'schema = 1\ntitle = "T again"\nabout = "Noise."\ntwin_of = "{}"\n'

    def twin(self, text):
        folder = self.folder.with_name("twin")
        folder.mkdir()
        (folder / "entrant.toml").write_text(text)
        return entrant.load(folder / "entrant.toml", self.root)

    def test_it_is_its_original_but_for_its_name(self):
        original = self.load(GOOD + RUN + INSTALL)
        twin = self.twin(self.FILE.format("test"))
        self.assertEqual((twin.id, twin.title, twin.twin_of), ("twin", "T again", "test"))
        self.assertEqual(twin.processes, original.processes)
        self.assertEqual(twin.build, original.build)

    def test_a_command_of_its_own_is_refused(self):
        self.load(GOOD + RUN)
        with self.assertRaisesRegex(UsageError, "run: unknown key"):
            self.twin(self.FILE.format("test") + RUN)

    def test_a_twin_of_a_twin_or_of_nothing_is_refused(self):
        with self.assertRaisesRegex(UsageError, "is a twin itself"):
            self.twin(self.FILE.format("twin"))
        with self.assertRaisesRegex(UsageError, "No such file"):
            self.load(self.FILE.format("nobody"))


class Missing(EntrantCase):
    def test_a_missing_command_is_the_reason_and_installing_it_the_cure(self):
        status = self.load(GOOD + RUN + '[[needs]]\ncommand = "no-such"\napt = "the-package"\n')
        status = status.status()
        self.assertFalse(status.installed)
        self.assertEqual(status.reason, "no-such is not in PATH (Debian's package the-package)")
        self.assertEqual(status.cure, "scripts/bench install test")

    def test_a_missing_file_has_the_cure_that_its_entrant_names(self):
        status = self.load(GOOD + RUN + '[[needs]]\npath = "{root}/b"\ncure = "make {root}"\n')
        status = status.status()
        self.assertEqual((status.reason, status.cure),
                         (f"{self.root}/b is missing", f"make {self.root}"))

    def test_the_first_need_that_is_missing_is_the_reason(self):
        needs = "".join(f'[[needs]]\nfile = "{name}"\napt = "p"\n' for name in ("/", "/no", "/na"))
        self.assertIn("/no is missing", self.load(GOOD + RUN + needs).status().reason)

    def test_a_command_that_is_too_old_is_named_with_the_version_that_it_has(self):
        need = ('[[needs]]\ncommand = "echo"\napt = "e"\ncure = "get a newer echo"\n'
                'least = "1.10"\nversion = ["echo", "go1.9.3"]\n')
        status = self.load(GOOD + RUN + need).status()
        self.assertEqual(status.reason, "echo is 1.9.3, not 1.10 or later")
        self.assertEqual(status.cure, "get a newer echo")

    def test_a_command_that_is_new_enough_is_no_reason(self):
        need = ('[[needs]]\ncommand = "echo"\napt = "e"\nleast = "1.9"\n'
                'version = ["echo", "go1.10"]\n')
        self.assertTrue(self.load(GOOD + RUN + need).status().installed)

    def test_what_has_not_been_built_yet_says_so(self):
        status = self.load(GOOD + RUN + INSTALL).status()
        self.assertEqual((status.reason, status.cure),
                         ("not installed yet", "scripts/bench install test"))

    def test_a_version_that_cannot_be_told_is_no_reason_not_to_measure(self):
        for ask in ('argv = ["no-such"]', 'argv = ["false"]', 'file = "{source}/none"'):
            found = self.load(GOOD + RUN + f'[version]\n{ask}\npattern = "(x)"\n').status()
            self.assertEqual((found.installed, found.version), (True, None))

    def test_the_version_is_what_the_pattern_finds_in_the_output(self):
        found = self.load(GOOD + RUN + '[version]\nargv = ["echo", "gin v1.2 x"]\n'
                          "pattern = 'gin (v\\S+)'\n")
        self.assertEqual(found.status().version, "v1.2")

    def test_a_version_of_several_groups_is_shown_with_commas(self):
        found = self.load(GOOD + RUN + '[version]\nargv = ["echo", "go1.26 gin\\tv1.2"]\n'
                          "pattern = '(go\\S+) (gin\\s\\S+)'\n")
        self.assertEqual(found.status().version, "go1.26, gin v1.2")

    def test_a_command_with_a_star_is_the_latest_of_those_that_match(self):
        for name in ("php-fpm8.4", "php-fpm8.10", "php-fpm7.0"):
            (self.root / name).touch(mode=0o755)
        with unittest.mock.patch.dict(os.environ, PATH=str(self.root)):
            self.assertEqual(entrant.find_command("php-fpm*"), f"{self.root}/php-fpm8.10")


class Launched(EntrantCase):
    def launch(self, text, host="127.0.0.1", body="Hello World!"):
        return self.load(text).launch(host, 8080, 2, [0, 3], body, self.root / "run")

    def test_words_are_replaced_and_other_braces_stay(self):
        spec = self.launch(GOOD + RUN).processes[0]
        self.assertTrue(os.path.isabs(spec.argv[0]))
        self.assertEqual(spec.argv[1:], [f"{self.root}/run/8080", "{not a word} {} {x: 1}"])
        self.assertEqual({key: spec.env[key] for key in ("BODY", "CPUS", "CORES", "AT")},
                         {"BODY": "Hello World!", "CPUS": "0,3", "CORES": "2",
                          "AT": "127.0.0.1:8080"})

    def test_all_addresses_are_a_star_before_the_port(self):
        self.assertEqual(self.launch(GOOD + RUN, host="::").processes[0].env["AT"], "*:8080")

    def test_a_configuration_file_is_written_with_its_words(self):
        (self.folder / "n.conf.in").write_text("http { listen {port}; root {run}; {other} }\n")
        self.launch(GOOD + RUN + '[[files]]\ntemplate = "n.conf.in"\nto = "{run}/etc/n.conf"\n')
        self.assertEqual((self.root / "run/etc/n.conf").read_text(),
                         f"http {{ listen 8080; root {self.root}/run; {{other}} }}\n")

    def test_nothing_of_the_shell_that_could_change_a_result_is_handed_on(self):
        with unittest.mock.patch.dict(os.environ, GOGC="off", NODE_OPTIONS="--x", LANG="C"):
            env = self.launch(GOOD + RUN).processes[0].env
        self.assertNotIn("GOGC", env)
        self.assertNotIn("NODE_OPTIONS", env)
        self.assertEqual(env["LANG"], "C")

    def test_a_body_that_a_configuration_file_would_misread_is_refused(self):
        for body in ('say "hi"', "cost $1", "a\\n", "line\n", "caf\u00e9", "", "{port}"):
            with self.assertRaises(UsageError):
                self.launch(GOOD + RUN, body=body)

    def test_limits_and_signal_have_defaults_and_can_be_given(self):
        launch = self.launch(GOOD + RUN)
        self.assertEqual((launch.ready, launch.stop_signal), (20.0, signal.SIGTERM))
        launch = self.launch(GOOD + RUN + '[ready]\nseconds = 5\n[stop]\nsignal = "QUIT"\n')
        self.assertEqual((launch.ready, launch.stop_signal), (5.0, signal.SIGQUIT))

    def test_what_was_installed_runs_in_its_build_folder(self):
        self.assertEqual(self.launch(GOOD + RUN).processes[0].cwd, f"{self.root}/run")
        self.assertEqual(self.launch(GOOD + RUN + INSTALL).processes[0].cwd,
                         f"{self.root}/build/entrants/test")


class Committed(unittest.TestCase):
    def test_every_entrant_of_the_checkout_loads(self):
        entrants = entrant.load_all(ROOT / "scripts/entrants")
        folders = {path.name for path in (ROOT / "scripts/entrants").iterdir() if path.is_dir()}
        self.assertEqual(set(entrants), folders)
        for each in entrants.values():
            each.status()

    def test_every_entrant_that_is_built_has_its_source_beside_it(self):
        for each in entrant.load_all(ROOT / "scripts/entrants").values():
            if each.install:
                self.assertTrue(entrant.source_files(each.source), each.id)

    def test_every_entrant_names_its_articles_by_their_ids(self):
        articles = {"article-swoole", "article-frameworks", "article-ladder", "article-wrk"}
        for each in entrant.load_all(ROOT / "scripts/entrants").values():
            self.assertLessEqual(set(each.articles), articles, each.id)

    def test_every_source_file_begins_with_its_licence(self):
        for each in entrant.load_all(ROOT / "scripts/entrants").values():
            for path in [each.source / "entrant.toml", *entrant.source_files(each.source)]:
                manifest = path.suffix in (".sum", ".lock", ".json", ".txt", ".csproj")
                if not manifest and path.name != "Cargo.toml":
                    self.assertIn("SPDX-License-Identifier: MIT", path.read_text()[:200], path)


if __name__ == "__main__":
    unittest.main()

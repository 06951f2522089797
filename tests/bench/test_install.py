# SPDX-License-Identifier: MIT
"""install: steps, their log, what a failure says, and that nothing is done twice."""

import io
import os
import stat
import unittest
import unittest.mock

from hellobench import install
from test_entrant import GOOD, RUN, EntrantCase

BUILT = """
[install]
steps = [["sh", "-c", "cat source.txt > made; echo done >> steps; echo said"]]
env = { WORD = "x" }
artefact = "{build}/made"
"""


class InstallCase(EntrantCase):
    def setUp(self):
        super().setUp()
        (self.folder / "source.txt").write_text("first\n")
        self.build = self.root / "build/entrants/test"

    def install(self, text, dry_run=False):
        out = io.StringIO()
        done = install.install(self.load(GOOD + RUN + text), dry_run, out)
        return done, out.getvalue()

    def steps_done(self):
        return (self.build / "steps").read_text().count("done")


class Built(InstallCase):
    def test_the_source_is_copied_and_the_steps_are_run_there(self):
        done, said = self.install(BUILT)
        self.assertTrue(done)
        self.assertEqual((self.build / "made").read_text(), "first\n")
        self.assertIn("test: running: sh -c", said)
        self.assertIn("test: installed", said)
        self.assertIn("said\n", (self.root / "build/entrants/test.log").read_text())
        self.assertFalse((self.folder / "made").exists())

    def test_nothing_is_done_twice(self):
        self.install(BUILT)
        done, _ = self.install(BUILT)
        self.assertTrue(done)
        self.assertEqual(self.steps_done(), 1)

    def test_a_changed_source_is_said_and_built_anew(self):
        self.install(BUILT)
        (self.folder / "source.txt").write_text("second\n")
        status = self.load(GOOD + RUN + BUILT).status()
        self.assertEqual(status.reason, "its source has changed since it was installed")
        self.assertTrue(self.install(BUILT)[0])
        self.assertEqual((self.build / "made").read_text(), "second\n")

    def test_a_dry_run_prints_the_commands_and_does_nothing(self):
        done, said = self.install(BUILT, dry_run=True)
        self.assertTrue(done)
        self.assertIn("cat source.txt > made", said)
        self.assertFalse(self.build.exists())


class Failing(InstallCase):
    def test_a_step_that_fails_is_told_with_its_last_lines_and_its_log(self):
        done, said = self.install('[install]\nsteps = [["sh", "-c", "echo the cause; exit 3"]]\n'
                                  'artefact = "{build}/made"\n')
        self.assertFalse(done)
        self.assertIn("ended with status 3:\n    the cause\n", said)
        self.assertIn("build/entrants/test.log", said)

    def test_the_cause_of_the_last_failure_is_shown_as_the_reason_until_it_is_cured(self):
        broken = BUILT.replace("cat ", "echo the cause; exit 3; cat ")
        self.install(broken)
        self.assertRegex(self.load(GOOD + RUN + broken).status().reason,
                         "^installing it failed: sh -c .* ended with status 3: the cause$")
        self.install(BUILT)
        self.assertTrue(self.load(GOOD + RUN + BUILT).status().installed)

    def test_a_failure_leaves_nothing_that_looks_installed(self):
        self.install(BUILT)
        (self.folder / "source.txt").write_text("second\n")
        failing = BUILT.replace("echo said", "exit 1")
        self.assertFalse(self.install(failing)[0])
        self.assertFalse(self.load(GOOD + RUN + failing).status().installed)

    def test_an_old_result_is_not_taken_for_a_new_one(self):
        self.install(BUILT)
        done, said = self.install('[install]\nsteps = [["true"]]\nartefact = "{build}/made"\n')
        self.assertFalse(done)
        self.assertIn("there is no", said)

    def test_a_result_of_steps_that_failed_later_does_not_count(self):
        steps = BUILT.replace("echo said", "test ! -e {root}/broken")
        self.assertTrue(self.install(steps)[0])
        (self.build / "made").unlink()
        (self.root / "broken").touch()
        self.assertFalse(self.install(steps)[0])
        self.assertTrue((self.build / "made").exists())
        self.assertIn("installing it failed", self.load(GOOD + RUN + steps).status().reason)

    def test_steps_without_a_result_are_told(self):
        done, said = self.install('[install]\nsteps = [["true"]]\nartefact = "{build}/made"\n')
        self.assertFalse(done)
        self.assertIn("there is no", said)

    def test_a_program_that_is_missing_is_told(self):
        done, said = self.install('[install]\nsteps = [["no-such"]]\nartefact = "{build}/made"\n')
        self.assertFalse(done)
        self.assertIn("no-such can't be started", said)

    def test_a_step_without_an_end_is_ended_with_all_that_it_started(self):
        with unittest.mock.patch.object(install, "STEP_LIMIT_S", 0.2):
            done, said = self.install('[install]\nsteps = [["sh", "-c", "sleep 60 & sleep 60"]]\n'
                                      'artefact = "{build}/made"\n')
        self.assertFalse(done)
        self.assertIn("status -9", said)


class Packages(InstallCase):
    """With stand-ins for apt-get, id and sudo: nothing is installed here."""

    NEED = '[[needs]]\ncommand = "wanted"\napt = "a-package"\n'

    def setUp(self):
        super().setUp()
        self.bin = self.root / "bin"
        self.bin.mkdir()
        path = f"{self.bin}:{os.environ['PATH']}"
        for patch in (unittest.mock.patch.dict(os.environ, PATH=path),
                      unittest.mock.patch("os.geteuid", lambda: 0)):
            patch.start()
            self.addCleanup(patch.stop)

    def stand_in(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def apt(self, script):
        calls = self.root / "calls"
        self.stand_in("apt-get", f'echo "apt-get $*" >> {calls}\n{script}')
        return calls

    def provides_wanted(self):
        return f"printf '#!/bin/sh\\n' > {self.bin}/wanted; chmod +x {self.bin}/wanted"

    def test_a_missing_package_is_installed_and_then_there(self):
        calls = self.apt(self.provides_wanted())
        self.assertTrue(self.install(self.NEED)[0])
        self.assertEqual(calls.read_text(),
                         "apt-get install --yes --no-install-recommends a-package\n")

    def test_a_package_that_is_there_is_not_asked_for(self):
        calls = self.apt("exit 1")
        self.stand_in("wanted", "true")
        self.assertTrue(self.install(self.NEED)[0])
        self.assertFalse(calls.exists())

    def test_an_old_package_list_is_renewed(self):
        calls = self.apt(f"[ $1 = update ] && {self.provides_wanted()}; [ -e {self.bin}/wanted ]")
        self.assertTrue(self.install(self.NEED)[0])
        self.assertEqual([line.split()[1] for line in calls.read_text().splitlines()],
                         ["install", "update", "install"])

    def test_a_package_that_does_not_bring_it_is_told(self):
        self.apt("true")
        done, said = self.install(self.NEED)
        self.assertFalse(done)
        self.assertIn("Debian's a-package is, but wanted is not in PATH", said)

    def test_a_need_that_no_package_meets_stops_before_any_package(self):
        calls = self.apt("true")
        done, said = self.install(self.NEED + '[[needs]]\nfile = "/no"\ncure = "make it"\n')
        self.assertFalse(done)
        self.assertIn("/no is missing; make it", said)
        self.assertFalse(calls.exists())

    def test_without_root_and_sudo_the_command_for_root_is_said(self):
        with (unittest.mock.patch("os.geteuid", lambda: 1000),
              unittest.mock.patch("shutil.which", lambda *_, **__: None)):
            done, said = self.install(self.NEED)
        self.assertFalse(done)
        self.assertIn("as root: apt-get install a-package", said)

    def test_without_root_sudo_is_used(self):
        calls = self.apt(self.provides_wanted())
        self.stand_in("sudo", f'echo sudo >> {self.root}/calls; exec "$@"')
        with unittest.mock.patch("os.geteuid", lambda: 1000):
            self.assertTrue(self.install(self.NEED)[0])
        self.assertEqual(calls.read_text().splitlines()[0], "sudo")


if __name__ == "__main__":
    unittest.main()

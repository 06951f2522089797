# SPDX-License-Identifier: MIT
"""The state file: where it is, what it holds, and whose file is believed."""

import os
import pathlib
import tempfile
import unittest

from fake_machine import machine
from hellotune.state import Change, Identity, State, StateError, Store, write_atomically

HERE = Identity("boot", 1, 2, "3")


class Text(unittest.TestCase):
    def test_what_is_written_is_what_is_read(self):
        state = State(["server", "/a b\tc.conf"], {
            "a.b": Change("32768\t60999\n", ["1 2"]), "a.c": Change("\n", ["x\\y", "\u00e9"])})
        self.assertEqual(State.parse(state.text(HERE), HERE), state)

    def test_it_is_a_table_that_can_be_read_by_hand(self):
        text = State([], {"net.core.somaxconn": Change("4096\n", ["65535"])}).text(HERE)
        self.assertIn("\nnet.core.somaxconn\t4096\\n\t65535\n", text)

    def test_of_another_boot_or_namespace_it_is_nothing(self):
        text = State(["server"]).text(HERE)
        for other in (Identity("other", 1, 2, "3"), Identity("boot", 9, 2, "3"),
                      Identity("boot", 1, 9, "3"), Identity("boot", 1, 2, "9")):
            self.assertIsNone(State.parse(text, other))

    def test_damage_is_an_error_and_never_an_empty_state(self):
        for damage in ("", "x", State().text(HERE) + "a.b\n", State().text(HERE) + "#profile\n"):
            with self.assertRaises(ValueError):
                State.parse(damage, HERE)


class Files(unittest.TestCase):
    def setUp(self):
        self.machine = self.enterContext(machine())
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "deep/er"

    def store(self):
        return Store(self.machine.root, {"TUNE_STATE_DIR": str(self.folder)})

    def save(self):
        with self.store().locked() as folder:
            self.store().save(State(["server"]), folder)
        return self.folder / self.store().identity.name

    def test_the_folder_is_made_and_can_be_read_by_everybody(self):
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        path = self.save()
        self.assertEqual(path.stat().st_mode & 0o777, 0o644)
        self.assertEqual(path.parent.stat().st_mode & 0o777, 0o755)
        self.assertEqual(self.store().load().profiles, ["server"])

    def test_nothing_left_to_remember_removes_the_file(self):
        path = self.save()
        with self.store().locked() as folder:
            self.store().save(State(), folder)
        self.assertFalse(path.exists())

    def test_a_file_that_somebody_else_could_have_written_is_not_believed(self):
        path = self.save()
        path.chmod(0o666)
        with self.assertRaisesRegex(StateError, "somebody else"):
            self.store().load()
        path.chmod(0o644)
        path.parent.chmod(0o777)
        with self.assertRaisesRegex(StateError, "somebody else"):
            self.store().load()

    def test_a_link_in_its_place_is_not_followed(self):
        path = self.save()
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")
        with self.assertRaises(StateError):
            self.store().load()

    def test_a_folder_that_others_may_write_to_is_no_place_for_it(self):
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o777)
        with self.assertRaisesRegex(StateError, "TUNE_STATE_DIR=DIR"):
            with self.store().locked():
                pass

    def test_a_lock_that_can_not_be_opened_is_named_with_a_way_out(self):
        (self.folder / "lock").mkdir(parents=True)
        with self.assertRaisesRegex(StateError, "lock can't be opened.*TUNE_STATE_DIR=DIR"):
            with self.store().locked():
                pass

    def test_another_user_s_runtime_folder_is_passed_over(self):
        self.folder.mkdir(parents=True)
        self.folder.chmod(0)
        if os.geteuid() == 0:
            os.seteuid(65534)
            self.addCleanup(os.seteuid, 0)
        store = Store(pathlib.Path("/"), {"XDG_RUNTIME_DIR": str(self.folder)})
        self.assertNotIn(self.folder / "tune", store.folders)

    def test_without_proc_the_cause_is_named(self):
        (self.machine.keys / "kernel/random/boot_id").unlink()
        with self.assertRaisesRegex(StateError, "is /proc mounted"):
            self.store()

    def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(self):
        self.folder.mkdir(parents=True)
        path = self.folder / "file"
        write_atomically(path, "old\n", 0o644)
        real = os.rename
        self.addCleanup(setattr, os, "rename", real)

        def full(*_):
            raise OSError(28, "No space left on device")

        os.rename = full
        with self.assertRaises(OSError):
            write_atomically(path, "new\n", 0o644)
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["file"])
        self.assertEqual(path.read_text(), "old\n")


if __name__ == "__main__":
    unittest.main()

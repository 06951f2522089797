#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""unittest_junit.py FOLDER MODULE FILE: runs the unittests of a module and writes what became of
them into FILE as CTest does (JUnit XML), so that scripts/test counts and shows all tests alike.
"""

import io
import pathlib
import sys
import unittest
import xml.etree.ElementTree as ElementTree


class Result(unittest.TextTestResult):
    """Keeps an element for each test."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.suite = ElementTree.Element("testsuite")

    def _add(self, test, status, text="", skipped=None):
        case = ElementTree.SubElement(self.suite, "testcase", name=str(test), status=status)
        if skipped is not None:
            ElementTree.SubElement(case, "skipped", message=f"SKIP_{skipped}")
        ElementTree.SubElement(case, "system-out").text = "".join(
            character for character in text if character.isprintable() or character in "\n\t")

    def addSuccess(self, test):
        super().addSuccess(test)
        self._add(test, "run")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._add(test, "notrun", reason, skipped=reason)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._add(test, "fail", self.failures[-1][1])

    def addError(self, test, error):
        super().addError(test, error)
        self._add(test, "fail", self.errors[-1][1])

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self._add(subtest, "fail", (self.failures + self.errors)[-1][1])


def main(folder, module, file):
    sys.path.insert(0, folder)
    tests = unittest.defaultTestLoader.loadTestsFromName(module)
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(tests)
    tree = io.BytesIO()
    ElementTree.ElementTree(result.suite).write(tree, "utf-8", xml_declaration=True)
    pathlib.Path(file).write_bytes(tree.getvalue())
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

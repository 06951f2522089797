# SPDX-License-Identifier: MIT
"""What the lints share: the files of the checkout, and how a lint reports.

A lint is an executable file lint-*.py in this folder. It prints one line per finding, then one line
that says what it checked, and exits 1 if it found something or had nothing to check: a lint that
checks nothing looks exactly like one that found nothing.
"""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP = (".h", ".cpp")


def files(*folders, suffixes=()):
    """Paths, relative to ROOT, of all files that are tracked or would be: not the ignored ones."""
    git = require("git", "git")
    listing = subprocess.run(
        [git, "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files", "-z", "--cached",
         "--others", "--exclude-standard", "--", *folders],
        check=True, capture_output=True).stdout.decode("utf-8", "surrogateescape")
    paths = sorted({pathlib.PurePosixPath(name) for name in listing.split("\0") if name})
    return [path for path in paths
            if (not suffixes or path.suffix in suffixes) and (ROOT / path).is_file()
            and not (ROOT / path).is_symlink()]


def data(path):
    return (ROOT / path).read_bytes()


def text(path):
    return data(path).decode("utf-8", "replace")


def is_binary(content):
    return b"\0" in content


def interpreter(path):
    """The program named by the file's first line: "bash", "python3", or "" if it names none."""
    with (ROOT / path).open("rb") as file:
        first = file.readline(200).decode("ascii", "replace").split()
    if not first or not first[0].startswith("#!"):
        return ""
    program = first[1] if first[0].endswith("/env") and len(first) > 1 else first[0]
    return program.rsplit("/", 1)[-1].removeprefix("#!")


def require(tool, package):
    """The tool's path; a missing tool fails the lint, for it would check nothing."""
    path = shutil.which(tool)
    if path is None:
        sys.exit(f"{tool} is missing: install the package {package}, or run scripts/setup "
                 "--test --dev")
    return path


def report(findings, checked, count):
    """Ends the lint. `checked` is a sentence part that contains `count`, what it looked at."""
    for finding in findings:
        print(finding)
    if count == 0:
        findings = [*findings, ""]
        print("there was nothing to check")
    print(f"checked {checked}")
    sys.exit(1 if findings else 0)

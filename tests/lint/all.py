#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every lint-*.py beside it and prints a line for each. Exit status 1 if any fails."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_SECONDS = 300


def main():
    lints = sorted(HERE.glob("lint-*.py"))
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        passed = [show(*result) for result in pool.map(run, lints)]
    if not passed:
        sys.exit(f"no lint-*.py in {HERE}")
    sys.exit(0 if all(passed) else 1)


def run(lint):
    """(lint, whether it passed, its lines, seconds)"""
    started = time.monotonic()
    try:
        process = subprocess.run([str(lint)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, timeout=TIMEOUT_SECONDS)
        status, output = process.returncode, process.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        status, output = 1, f"not done after {TIMEOUT_SECONDS} s"
    except OSError as error:  # Not executable, say.
        status, output = 1, str(error)
    lines = output.rstrip().splitlines()
    if status == 0 and not (lines and lines[-1].startswith("checked ")):
        status, lines = 1, [*lines, "it did not say what it checked"]
    return lint, status == 0, lines, time.monotonic() - started


def show(lint, passed, lines, seconds):
    *findings, last = lines or ["no output"]
    print(f"{'ok' if passed else 'FAILED':8}{lint.stem:16}{last} ({seconds:.1f} s)")
    for finding in findings:
        print(f"        {finding}")
    return passed


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The C++ code is formatted as .clang-format says. To fix: clang-format -i FILE."""

import re
import subprocess

import checkout

# Versions agree but for details. These are the ones the code was tried with: what another one would
# like differently is shown, but is no failure.
KNOWN_VERSIONS = range(14, 20)


def main():
    tool = checkout.require("clang-format", "clang-format")
    version_text = subprocess.run([tool, "--version"], check=True, capture_output=True,
                                  text=True).stdout
    version = int(re.search(r"version (\d+)", version_text)[1])
    paths = checkout.files("server", "tests", suffixes=checkout.CPP)
    findings = [line for path in paths for line in problems(tool, path)]
    checked = f"{len(paths)} files with clang-format {version}"
    if findings and version not in KNOWN_VERSIONS:
        print("\n".join(findings))
        checked += ", not a version that decides"
        findings = []
    checkout.report(findings, checked, len(paths))


def problems(tool, path):
    process = subprocess.run([tool, "--dry-run", "-Werror", "--style=file", str(path)],
                             cwd=checkout.ROOT, capture_output=True, text=True)
    if process.returncode == 0:
        return []
    lines = re.findall(r"^(?:.*/)?[^:]+:(\d+):\d+: error", process.stderr, re.MULTILINE)
    if not lines:
        return [f"{path}: {process.stderr.strip()}"]
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return [f"{path}:{lines[0]}: not as clang-format would write it{more}"]


if __name__ == "__main__":
    main()

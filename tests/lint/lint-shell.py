#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shell scripts: clean for shellcheck, strict mode, executable."""

import os
import subprocess

import checkout


def main():
    tool = checkout.require("shellcheck", "shellcheck")
    findings = []
    scripts = [path for path in checkout.files() if checkout.interpreter(path) in ("bash", "sh")]
    for path in scripts:
        if not os.access(checkout.ROOT / path, os.X_OK):
            findings.append(f"{path}: not executable")
        is_strict = "\nset -euo pipefail\n" in checkout.text(path)
        if checkout.interpreter(path) == "bash" and not is_strict:
            findings.append(f"{path}: no set -euo pipefail")
        process = subprocess.run([tool, "--format=gcc", "--external-sources", str(path)],
                                 cwd=checkout.ROOT, capture_output=True, text=True)
        if process.returncode != 0:
            findings += (process.stdout + process.stderr).splitlines()
    checkout.report(findings, f"{len(scripts)} shell scripts", len(scripts))


if __name__ == "__main__":
    main()

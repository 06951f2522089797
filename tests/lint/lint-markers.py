#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No notes to oneself (they belong in the tracker), no path of somebody's own machine."""

import re

import checkout

# Written so that they don't match themselves.
NOTE = re.compile(rb"\b(?:TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b")
OWN_PATH = re.compile(rb"(?<![\w.$}])/(?:work|root|home|Users)/\w")
NOTE_FOLDERS = ("server", "tests", "scripts", ".ci")


def main():
    findings, count = [], 0
    for path in checkout.files():
        content = checkout.data(path)
        if checkout.is_binary(content):
            continue
        count += 1
        for number, line in enumerate(content.split(b"\n"), 1):
            note = NOTE.search(line) if path.parts[0] in NOTE_FOLDERS else None
            for match in filter(None, (note, OWN_PATH.search(line))):
                findings.append(f"{path}:{number}: {match[0].decode()}")
    checkout.report(findings, f"{count} text files", count)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each server file begins with its licence and a comment that says what it is."""

import re

import checkout

LICENCE = "// SPDX-License-Identifier: MIT"
WORDS_MIN = 4


def main():
    paths = checkout.files("server", suffixes=checkout.CPP)
    findings = [f"{path}: {problem}" for path in paths for problem in problems(path)]
    checkout.report(findings, f"the beginnings of {len(paths)} files", len(paths))


def problems(path):
    lines = checkout.text(path).splitlines()
    if not lines or lines[0] != LICENCE:
        return [f"does not begin with {LICENCE}"]
    comment = []
    for line in lines[1:]:
        if not line.startswith("//"):
            break
        comment.append(line.removeprefix("//"))
    found = []
    if len(re.findall(r"\w+", " ".join(comment))) < WORDS_MIN:
        found.append("no comment after the licence that says what it is")
    code = [line for line in lines if line and not line.startswith("//")]
    if path.suffix == ".h" and (not code or code[0] != "#pragma once"):
        found.append("#pragma once is not the first line after the comment")
    return found


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The server stays small enough to be read. (The length of functions is clang-tidy's job.)"""

import checkout

# The goal is 2,800. A ratchet: it may be lowered, never raised (but once, for the epoll engine).
TOTAL_LINES_MAX = 5120
FILE_LINES_MAX = 400


def main():
    lines_of = {path: checkout.data(path).count(b"\n") for path in checkout.files("server")}
    total = sum(lines_of.values())
    findings = [f"{path}: {lines} lines, at most {FILE_LINES_MAX}"
                for path, lines in lines_of.items() if lines > FILE_LINES_MAX]
    if total > TOTAL_LINES_MAX:
        findings.append(f"server/: {total} lines, at most {TOTAL_LINES_MAX}")
    checkout.report(findings,
                    f"{total} of at most {TOTAL_LINES_MAX} lines in {len(lines_of)} files",
                    len(lines_of))


if __name__ == "__main__":
    main()

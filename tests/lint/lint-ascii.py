#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plain text: ASCII, no tab in code, no trailing blanks, a newline at the end, 100 columns."""

import fnmatch

import checkout

COLUMNS_MAX = 100
# Prose may use any character; captured bytes are what they are.
ANY_CHARACTER = ["*.md", "tests/*/fixtures/*", "tests/fuzz/corpus/*", "scripts/results/*"]
ANY_BLANKS = ["tests/cases/*.md", "tests/*/fixtures/*", "tests/fuzz/corpus/*",
              "scripts/results/*", "*.patch"]
CODE_SUFFIXES = {".h", ".cpp", ".py", ".cmake", ".json", ".toml", ".yml", ".yaml", ".conf", ".sh"}
CODE_NAMES = {"CMakeLists.txt", "Dockerfile", ".clang-format", ".clang-tidy"}


def main():
    findings, count = [], 0
    for path in checkout.files():
        content = checkout.data(path)
        if content and not checkout.is_binary(content):
            count += 1
            findings += problems(path, content)
    checkout.report(findings, f"{count} text files", count)


def problems(path, content):
    found = []
    in_code, in_columns = is_code(path), has_limited_columns(path)
    any_character, any_blanks = matches(path, ANY_CHARACTER), matches(path, ANY_BLANKS)
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
        where = f"{path}:{number}"
        if not any_character and not line.isascii():
            found.append(f"{where}: not ASCII")
        if in_code and b"\t" in line:
            found.append(f"{where}: tab")
        if not any_blanks and line != line.rstrip():
            found.append(f"{where}: trailing blank or CR")
        if in_columns and len(line) > COLUMNS_MAX:
            found.append(f"{where}: {len(line)} columns, at most {COLUMNS_MAX}")
    if not any_blanks and not content.endswith(b"\n"):
        found.append(f"{path}: no newline at the end")
    return found


def matches(path, patterns):
    return any(fnmatch.fnmatch(str(path), pattern) for pattern in patterns)


def is_code(path):
    return (path.suffix in CODE_SUFFIXES or path.name in CODE_NAMES
            or checkout.interpreter(path) in ("bash", "sh", "python3"))


def has_limited_columns(path):
    if path.suffix in checkout.CPP:
        return path.parts[0] in ("server", "tests")
    return path.suffix == ".py" or checkout.interpreter(path) in ("bash", "sh", "python3")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""The captured outputs under fixtures/, with what was asked and what each of them has to give.

Most were printed by the real tools against misbehaving servers; those of versions and tools that
no Debian 12 has (trunk's ab, h2load 1.70, wrk2, oha, bombardier, gcannon, zrk) are made by hand
after their documented forms.
"""

import json
import pathlib

from hellobench import invariants, parsers

FOLDER = pathlib.Path(__file__).parent / "fixtures"
BODY = b"Hello World!"
CAPTURES = {capture["name"]: capture
            for capture in json.loads((FOLDER / "captures.json").read_text())}


def stdout(name):
    return (FOLDER / CAPTURES[name]["file"]).read_bytes()


def stderr(name):
    path = FOLDER / f"{name}.err"
    return path.read_bytes() if path.exists() else b""


def side_files(name):
    return {kind: (FOLDER / file).read_bytes()
            for kind, file in CAPTURES[name]["side_files"].items()}


def parse(name):
    capture = CAPTURES[name]
    return parsers.parse(capture["tool"], stdout(name), stderr(name), capture["rc"],
                         side_files(name))


def check(name, parsed=None, **changes):
    """What the invariants say of a capture, asked for as its command line did."""
    capture = CAPTURES[name]
    arguments = {"asked": parsers.expected_requests(capture["argv"]),
                 "concurrency": capture["concurrency"], "expected_body": BODY, "min_seconds": 0,
                 "rc": capture["rc"], **capture["context"], **changes}
    return invariants.check(parsed or parse(name), **arguments)

# SPDX-License-Identifier: MIT
"""Profiles: sysctl/NN-NAME.conf by their names, or any file of that form by its path.

Invariant: all files are read and understood before anything is done with one of them. Where two
ask for the same key the later one wins, as in sysctl.d(5).
"""

import os
import pathlib
import re

from hellotune import sysctl_files

DEFAULT = "server"
CHECKED = "verify"
SHOWN = ("server", "client", "verify")  # not the published list: it is there to be compared with


class UnknownProfile(Exception):
    pass


def folder():
    own = pathlib.Path(__file__).resolve().parents[2] / "sysctl"
    return pathlib.Path(os.environ.get("TUNE_SYSCTL_DIR") or own)


def known():
    found = {}
    for path in sorted(folder().glob("[0-9][0-9]-*.conf")):
        found[re.sub(r"^[0-9]+-|\.conf$", "", path.name)] = path
    return found


def is_path(name):
    return "/" in name or name.endswith(".conf")


def full_names(names):
    """Files by their whole paths, so that a later verify finds them from another folder."""
    return [os.path.abspath(name) if is_path(name) else name for name in names]


def load(name):
    """All settings of one profile. Raises UnknownProfile, ParseError."""
    path = pathlib.Path(name) if is_path(name) else known().get(name)
    if path is None:
        there = " ".join(known()) or f"none in {folder()}"
        raise UnknownProfile(f"no profile {name!r}; there are: {there}; or name a file")
    try:
        if path.exists() and not path.is_file():
            raise UnknownProfile(f"{path}: no ordinary file, that verify can read again")
        return sysctl_files.load(path)
    except OSError as error:
        raise UnknownProfile(f"{path}: {error.strerror}") from error


def load_all(names):
    """What the profiles ask for together: one setting per key."""
    wanted = {}
    for name in names:
        for setting in load(name):
            if not setting.explain_only:
                wanted.pop(setting.key, None)
                wanted[setting.key] = setting
    return list(wanted.values())

# SPDX-License-Identifier: MIT
"""What show, diff and verify say: a Row per key, wanted against current, and what holds at boot.

Invariant: a key that can't be read differs, unless its profile says that it is optional; nothing is
passed over in silence.
"""

import dataclasses
import os
import resource

from hellotune import persist
from hellotune.containers import io_uring_status
from hellotune.kernel_keys import Access, satisfied
from hellotune.persist import Owner

OK, DIFFERS, MISSING, SKIPPED = "ok", "differs", "missing", "skipped"


@dataclasses.dataclass
class Row:
    key: str
    wanted: str
    compare: str
    current: str  # None where it can't be read
    status: str
    reason: str
    verify_only: bool
    scope: str
    source: str
    boot: str = ""  # the line that decides at boot

    @property
    def good(self):
        return self.status in (OK, SKIPPED)


def rows(settings, tree, place):
    return [row(setting, tree, place) for setting in settings]


def row(setting, tree, place):
    current = tree.read(setting.key)
    status, reason = OK, ""
    if current is None:
        access = tree.access(setting.key)
        reason = (place.refusal(access, setting.key)
                  if access in (Access.ABSENT, Access.NOT_A_KEY) else "can't be read")
        status = SKIPPED if setting.optional else MISSING
    elif not satisfied(setting, current):
        status = DIFFERS
        if place.changes_machine(setting.key):
            reason = "the machine's, not this namespace's"
    scope = setting.fields.get("scope", "netns" if setting.key.startswith("net.") else "global")
    return Row(setting.key, setting.value, setting.compare, current, status, reason,
               setting.verify_only, scope, f"{setting.path}:{setting.line}")


def add_boot(found, root):
    """Which of the machine's files has the last word on each key."""
    lines = persist.boot_lines(root)
    for one in found:
        line = persist.winner(lines, one.key)
        if line:
            one.boot = f"{line.path}:{line.number}: {line.value}"
    return found


def boot_conflicts(settings, root, own):
    """What another file makes of the keys that our file at boot sets otherwise."""
    if own.owner() not in (Owner.OURS, Owner.EDITED):
        return []
    kept = {line.pattern for line in persist.lines_of(own.path)}
    lines = persist.boot_lines(root)
    found = []
    for setting in settings:
        line = persist.winner(lines, setting.key)
        if setting.key in kept and line and not satisfied(setting, line.value):
            found.append(f"{setting.key}: at boot {line.path}:{line.number} makes it"
                         f" {line.value or '(empty)'}, after {own.path}; change it there")
    return found


def environment(tree, place, store, own):
    """What else decides, as (name, text)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    identity = store.identity
    holder = store.holder()
    return {
        "kernel": os.uname().release,
        "network namespace": f"{identity.inode}, {'' if place.initial_netns else 'not '}the initial"
                             " one",
        "container": place.container or "none seen",
        "rights": f"uid {place.uid}, CAP_NET_ADMIN {'yes' if place.net_admin else 'no'}",
        "open files": f"soft {soft}, hard {hard}, fs.nr_open {tree.read('fs.nr_open') or '?'}",
        "io_uring": f"{io_uring_status()}, kernel.io_uring_disabled"
                    f" {tree.read('kernel.io_uring_disabled') or '(no such key)'}",
        "applied": " ".join(store.load().profiles) or "nothing",
        "state": str(holder / identity.name) if holder else "none",
        "file for boot": f"{own.path}: {own.owner().value}",
    }

# SPDX-License-Identifier: MIT
"""A run in two network namespaces of its own, with one of the lists of sysctl/ applied in them.

The harness and the servers are in one, the client is in the other, a veth pair joins them. Both
vanish with the harness; nothing of the machine's own settings is touched. Keys that belong to the
whole machine can't be set there: they are named as left out.
"""

import contextlib

from hellobench.errors import Unfit, UsageError
from hellotune import profiles, sysctl_files
from hellotune.lab import namespaces

# What is set on the server and on the client. The article used the same list on both.
LISTS = {"default": ((), ()),
         "recommended": (("server",), ("client",)),
         "published": (("published",), ("published",))}


class Pair:
    """Two hosts. `applied` and `left_out` say what became of each setting, for the reports."""

    def __init__(self, name):
        """Moves this process into the server's namespace; it must have one thread only."""
        try:
            namespaces.leave()
            self.server, self.client = namespaces.pair()
        except namespaces.Skip as reason:
            raise Unfit(f"--sysctl needs network namespaces: {reason}") from reason
        self.list, self.applied, self.left_out = name, [], []
        for host, names in zip((self.server, self.client), LISTS[name]):
            for each in names:
                self._apply(host, each)

    def _apply(self, host, name):
        try:
            settings = profiles.load(name)
        except (profiles.UnknownProfile, sysctl_files.ParseError) as error:
            raise UsageError(str(error)) from error
        for setting in settings:
            if setting.verify_only or setting.explain_only:
                continue
            line = f"{host.name}: {setting.key} = {setting.value}"
            if not setting.key.startswith("net.") or not host.has(setting.key):
                self.left_out.append(f"{line} (the whole machine's)")
                continue
            with self._told(line):
                host.set(setting.key, setting.value)
                self.applied.append(line)

    @contextlib.contextmanager
    def _told(self, line):
        try:
            yield
        except OSError as error:
            self.left_out.append(f"{line} ({error.strerror})")

    def described(self):
        """For plan.json."""
        return {"list": self.list, "applied": self.applied, "left_out": self.left_out}

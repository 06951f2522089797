# SPDX-License-Identifier: MIT
"""How to get into namespaces of one's own here: as any user, or as root where that is refused.

In a chroot nobody may make a user namespace (user_namespaces(7)), but root needs none.
"""

import os
import shutil
import subprocess
import unittest

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def prefix(flags, user="anybody"):
    """The words before a command that give it namespaces; `flags`: "n" network, "m" mounts.

    `user`: "self", "nobody", or "anybody": nobody where that is possible. Raises SkipTest.
    """
    root = os.geteuid() == 0
    new_user = ["unshare", f"-Ur{flags}"]
    as_nobody, as_root = NOBODY * root + new_user, ["unshare", f"-{flags}"]
    ways = {"self": [new_user], "nobody": [as_nobody], "anybody": [as_nobody]}[user]
    if root and user != "nobody":
        ways = [*ways, as_root]
    for way in ways:
        if not all(map(shutil.which, {"unshare", way[0]})):
            raise unittest.SkipTest("unshare and setpriv (util-linux) are not here")
        probe = subprocess.run([*way, "true"], capture_output=True, text=True, check=False)
        if probe.returncode == 0:
            return way
    raise unittest.SkipTest(f"no namespaces here: {probe.stderr.strip()}")

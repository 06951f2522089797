# SPDX-License-Identifier: MIT
"""What belongs to a network namespace, what to the machine, and what to a process."""

import errno
import itertools
import os
import pathlib
import resource

from hellotune import profiles
from hellotune.kernel_keys import Access, KeyTree
from hellotune.lab import namespaces, sockets
from hellotune.lab.experiment import Moved, experiment
from hellotune.lab.time_wait import exchange

INHERITED = {"net.core.somaxconn": 65535, "net.ipv4.tcp_fin_timeout": 5,
             "net.ipv4.tcp_tw_reuse": 1, "net.ipv4.tcp_migrate_req": 1,
             "net.ipv4.ip_local_port_range": "10240 65535"}


@experiment("inherit", quick=True)
def inherit(lab):
    """A new namespace, as a container gets one, starts with the kernel's defaults, not the host's.

    Tuning the host does nothing for containers with a network of their own. The exception is a key
    that exists for it: tcp_child_ehash_entries sizes the tables of namespaces made afterwards.
    """
    before = namespaces.fresh("container")
    for key, value in INHERITED.items():
        lab.set(lab.server, key, value)
    with lab.server.inside():
        after = namespaces.fresh("container")
    lab.did("a namespace made before that, and one made after it from the tuned one")
    for key, value in INHERITED.items():
        lab.check(key, before.get(key), after.get(key))
        lab.check(f"{key}, tuned and not", "different", (lab.server.get(key), after.get(key)),
                  str(value) == lab.server.get(key) != after.get(key))
    children = "net.ipv4.tcp_child_ehash_entries"
    if not lab.server.has(children):
        lab.note(f"this kernel has no {children}")
        return
    lab.set(lab.server, children, 4096)
    with lab.server.inside():
        child = namespaces.fresh("container")
    lab.did("one more namespace")
    for key, expected in (("tcp_ehash_entries", 4096), ("tcp_max_tw_buckets", 2048),
                          ("tcp_max_syn_backlog", 128)):
        lab.check(key, str(expected), child.get(f"net.ipv4.{key}"))


@experiment("netns-keys")
def netns_keys(lab):
    """Keys of scope "netns" can be set in a namespace; those of scope "global" are missing there.

    Or they are there and can't be written. This checks the reference's own column.
    """
    tree = KeyTree()
    for setting in all_settings():
        if not setting.key.startswith("net."):
            continue
        with lab.server.inside():
            access = tree.access(setting.key)
        if setting.fields["scope"] == "global":
            lab.check(setting.key, "absent or read-only", access.value,
                      access in (Access.ABSENT, Access.READ_ONLY_KEY, Access.DENIED))
        elif access == Access.ABSENT and setting.optional:
            lab.note(f"{setting.key}: this kernel has none")
        else:
            lab.check(setting.key, Access.OK.value, access.value)


def all_settings():
    """Each key's first setting with a scope: the one that describes it."""
    described = {}
    for name in profiles.known():
        for setting in profiles.load(name):
            if "scope" in setting.fields:
                described.setdefault(setting.key, setting)
    return described.values()


@experiment("nofile")
def nofile(lab):
    """RLIMIT_NOFILE is the limit of open files that is met; TIME_WAIT counts as none.

    No counter shows it: the handshake ended well, and accept() fails with EMFILE. fs.nr_open bounds
    the limit, fs.file-max is far away.
    """
    sockets.raise_file_limit(400)
    with sockets.listener(lab.server, 100) as listener:
        before = len(open_files())
        results = exchange(lab, listener, 300, "server")
        lab.did("300 connections, the server closes first")
        lab.check("results", {"ok": 300}, results)
        lab.check("TIME_WAIT on the server", "more than 100", lab.server.count("TIME-WAIT"),
                  lab.server.count("TIME-WAIT") > 100)
        lab.check("open files, before and after", before, len(open_files()))

        clients, _ = sockets.connect_many(lab.client, lab.server.address, 50)
        moved = Moved(lab.server)
        taken = accept_with_limit(listener, 20)
        lab.did("50 clients at a server with room for 20 more files")
        lab.check("accepted, then", (20, "EMFILE"), taken)
        lab.check("ListenOverflows", 0, moved["TcpExtListenOverflows"])
        sockets.close_all(clients)

    most = int(pathlib.Path("/proc/sys/fs/nr_open").read_text())
    lab.did(f"a limit above fs.nr_open, {most}")
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + 1, most + 1))
        outcome = "taken"
    except (ValueError, OSError):  # Python reports EPERM as ValueError.
        outcome = errno.errorcode[errno.EPERM]
    lab.check("setrlimit()", "EPERM", outcome)


def open_files():
    """Their numbers, without the one that listdir() itself had open."""
    return [int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(
        f"/proc/self/fd/{name}")]


def accept_with_limit(listener, room):
    """(connections accepted, name of the error that ended it), with room for so many files."""
    accepted = []
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    listener.settimeout(2)
    # The limit is one of numbers: count the free ones from the lowest.
    free = itertools.filterfalse(set(open_files()).__contains__, itertools.count())
    limit = next(itertools.islice(free, room, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        while True:
            accepted.append(listener.accept()[0])
    except OSError as error:
        return len(accepted), sockets.error_name(error)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        sockets.close_all(accepted)

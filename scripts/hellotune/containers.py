# SPDX-License-Identifier: MIT
"""Place: where we are (network namespace, container, rights), and what follows for a key.

Each refusal says the cause and the cure, because a bare "permission denied" has four causes here:
no capability, a read-only /proc/sys, a key that only the initial network namespace has, and one
that would change the whole machine from within a container.
"""

import ctypes
import dataclasses
import errno
import os
import shlex

from hellotune.kernel_keys import Access

CAP_NET_ADMIN = 12  # linux/capability.h
IO_URING_SETUP = 425  # the same on all architectures but alpha
MARKS = {".dockerenv": "docker", "run/.containerenv": "podman", "run/systemd/container": "systemd"}


@dataclasses.dataclass(frozen=True)
class Place:
    initial_netns: bool
    container: str  # "" if we are in none, as far as can be seen
    uid: int
    net_admin: bool

    @classmethod
    def detect(cls, tree):
        # A key that exists once per machine exists in the initial network namespace only; unlike
        # a comparison with PID 1's namespace this needs no rights and works in any PID namespace.
        initial = tree.path("net.core.netdev_max_backlog").exists()
        marks = [name for mark, name in MARKS.items() if (tree.root / mark).exists()]
        return cls(initial, marks[0] if marks else "", os.geteuid(), has_capability(CAP_NET_ADMIN))

    def changes_machine(self, key):
        """Whether key is the whole machine's while we are in a part of it."""
        inside = bool(self.container) or not self.initial_netns
        return inside and not key.startswith("net.")

    def refusal(self, access, key):
        """Why key can't be written here, and what would help."""
        if access is Access.ABSENT:
            return self._absent(key)
        if access is Access.NOT_A_KEY:
            return "no key but a folder, or a link that leaves /proc/sys"
        if access is Access.READ_ONLY_KEY:
            return ("read-only here: " + ("nobody can write it" if self.initial_netns else
                    "this namespace takes the value of the initial one; set it there"))
        if access is Access.READ_ONLY_MOUNT:
            return "/proc/sys is mounted read-only, as in containers; set it from outside"
        if key.startswith("net."):
            return ("not permitted: needs CAP_NET_ADMIN in the user namespace that owns this"
                    " network namespace")
        return "not permitted: needs the machine's uid 0; a user namespace's root is not enough"

    def _absent(self, key):
        if key.startswith("net.") and not self.initial_netns:
            return ("not in this network namespace: the key exists once per machine, in the"
                    " initial one, or this kernel has none")
        return (f"Linux {os.uname().release} has no such key: it is too old or too new for it, or a"
                " module is not loaded")

    def refusal_of_global(self):
        where = f"this container ({self.container})" if self.container else "this namespace"
        return f"would change the whole machine from within {where}; --global allows it"

    def remedies(self, accesses, command, settings):
        """What to do about a whole plan that is not possible here, each line once."""
        lines = []
        if Access.DENIED in accesses and self.uid != 0:
            lines.append(f"as root: sudo {shlex.join(command)}")
            lines.append("as an ordinary user, in a namespace to try things in: unshare -Urn")
        if Access.DENIED in accesses and self.uid == 0:
            lines.append("this root lacks a capability: docker run --cap-add NET_ADMIN, or set the"
                         " keys from outside")
        if Access.READ_ONLY_MOUNT in accesses:
            lines.append("start the container with: docker run "
                         + " ".join(sysctl_options(settings)))
            lines.append("with --network host instead: run tune on the host, not in the container")
        return lines

    def notes(self):
        """How far a successful apply reaches."""
        if self.initial_netns and self.container:
            return ["this container is on the host's network: the host has these values now"]
        if self.initial_netns:
            return ["containers on a bridge network have namespaces of their own and will not see"
                    " this: scripts/tune docker-args"]
        return ["this holds in this network namespace only, as long as it lives"]


def has_capability(number):
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            masks = [line.split()[1] for line in file if line.startswith("CapEff:")]
    except OSError:
        return False
    return bool(masks) and bool(int(masks[0], 16) >> number & 1)


def io_uring_status():
    """What a server would meet: neither the key nor the kernel's version alone tells it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(ctypes.c_long(IO_URING_SETUP), ctypes.c_uint(0), ctypes.c_void_p(None))
    answers = {errno.ENOSYS: "this kernel has none, or seccomp hides it",
               errno.EPERM: "refused: kernel.io_uring_disabled, or seccomp (Docker 25 and later)"}
    return answers.get(ctypes.get_errno(), "allowed")


def sysctl_options(settings):
    return [f"--sysctl {shlex.quote(f'{s.key}={s.value}')}" for s in settings
            if s.key.startswith("net.") and not s.verify_only]


def docker_args(settings):
    """(options for docker run and podman run, remarks about what they can't do)"""
    options = sysctl_options(settings)
    options.append("--ulimit nofile=1048576:1048576")
    remarks = [f"{s.key} = {s.value}: the machine's, set it on the host" for s in settings
               if not s.key.startswith("net.") and not s.verify_only]
    if any(" " in s.value for s in settings):
        remarks.append("a value has blanks in it: eval \"docker run $(scripts/tune docker-args ...)"
                       " IMAGE\"")
    remarks.append("with --network host leave out every --sysctl net.*: the runtime refuses them,"
                   " and the host's values hold")
    remarks.append("io_uring: Docker 25 and later block it by seccomp; give a profile that allows"
                   " io_uring_setup, io_uring_enter and io_uring_register:"
                   " --security-opt seccomp=FILE. Without it hello-uring uses epoll")
    return options, remarks

# SPDX-License-Identifier: MIT
"""hello-uring itself: who closes, how long its queues are, and what real load does with a list."""

import contextlib
import os
import pathlib
import re
import select
import signal
import subprocess
import tempfile

from hellotune import profiles
from hellotune.lab import sockets
from hellotune.lab.experiment import Moved, experiment
from hellotune.lab.namespaces import Skip
from hellotune.lab.sockets import PORT

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
BUILDS = ("release", "dev")
READY_SECONDS = 10
THREADS = 2
REQUESTS = {"HTTP/1.0": b"GET / HTTP/1.0\r\n\r\n",
            "Connection: close": b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}
# What says that a connection was lost or came late. A SYN-ACK that is sent again is no such sign:
# TCP_DEFER_ACCEPT does so when a client's request takes a second, on a busy machine.
LOSSES = {"server": ["TcpExtListenOverflows", "TcpExtListenDrops", "TcpExtTCPReqQFullDrop",
                     "TcpExtTCPReqQFullDoCookies", "TcpExtTCPTimeWaitOverflow",
                     "TcpExtTCPBacklogDrop", "TcpExtTCPMigrateReqFailure"],
          "client": ["TcpExtTCPSynRetrans", "TcpAttemptFails", "TcpExtTCPTimeWaitOverflow",
                     "TcpExtTCPBacklogDrop"]}
RANGE = "net.ipv4.ip_local_port_range"


def binary():
    """Raises Skip."""
    named = os.environ.get("HELLO_BIN")
    built = [CHECKOUT / "build" / build / "hello-uring" for build in BUILDS]
    for path in [pathlib.Path(named)] if named else built:
        if os.access(path, os.X_OK):
            return str(path)
    raise Skip("no hello-uring: build it, or name one in HELLO_BIN")


@contextlib.contextmanager
def running(lab, *options):
    """hello-uring on the server: (process, a function that returns its log so far)."""
    command = [binary(), "--host", "0.0.0.0", "--port", str(PORT), "--threads", str(THREADS),
               *options]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log, lab.server.inside():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        try:
            if not select.select([process.stdout], [], [], READY_SECONDS)[0] \
                    or b"listening" not in process.stdout.readline():
                raise Skip("hello-uring doesn't start here: " + text_of(log).strip())
            yield process, lambda: text_of(log)
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
            process.kill()
            process.wait()
            process.stdout.close()


def text_of(log):
    log.seek(0)
    return log.read()


@experiment("hello-close")
def hello_close(lab):
    """hello-uring closes first after HTTP/1.0 and "Connection: close": clients keep their ports.

    1000 connections from a client with 200 ports, one after the other, without tcp_tw_reuse.
    """
    lab.set(lab.client, RANGE, "40000 40199")
    lab.set(lab.client, "net.ipv4.tcp_tw_reuse", 0)
    for name, request in REQUESTS.items():
        with running(lab):
            results = [fetch(lab, request) for _ in range(1000)]
            lab.did(f"1000 requests with {name}")
            lab.check("answers", 1000, results.count("200"))
            lab.check("other results", [], sorted(set(results) - {"200"}))
            server = lab.server.count("TIME-WAIT")
            lab.check("TIME_WAIT on the server", "1 to 200", server, 1 <= server <= 200)
            lab.check("TIME_WAIT on the client", 0, lab.client.count("TIME-WAIT"))


def fetch(lab, request):
    """The status, or the name of the error; reads to the end and closes after the server."""
    try:
        with sockets.connect(lab.client, lab.server.address) as client:
            client.sendall(request)
            answer = sockets.read_all(client)
    except OSError as error:
        return sockets.error_name(error)
    return answer if isinstance(answer, str) else answer[9:12].decode("latin-1")


@experiment("hello-backlog")
def hello_backlog(lab):
    """Each of hello-uring's threads has a listener whose queue is as long as somaxconn allows."""
    for limit in (65535, 512):
        lab.set(lab.server, "net.core.somaxconn", limit)
        with running(lab) as (_, log):
            # Another process's Send-Q is in no file of /proc.
            lines = lab.server.run("ss", "-Hltn").stdout.splitlines()
            lab.did(f"hello-uring --threads {THREADS}")
            lab.check("Send-Q of its listeners", [limit] * THREADS,
                      [int(line.split()[2]) for line in lines])
            warned = bool(re.search(r"warn.*backlog", log(), re.IGNORECASE))
            lab.check("warns about the backlog", limit < 1024, warned)


@experiment("defer-accept")
def defer_accept(lab):
    """TCP_DEFER_ACCEPT keeps a connection half-open, without a descriptor, until its request comes.

    To the client it is established. The server learns of it when there is something to read, so
    that accepting and reading happen together, and silent clients cost it nothing. What it costs:
    they look like a flood in the half-open queue.
    """
    for option, half_open in (("on", 50), ("off", 0)):
        with running(lab, "--defer-accept", option) as (process, _):
            before, moved = files_of(process), Moved(lab.server)
            clients, errors = sockets.connect_many(lab.client, lab.server.address, 50)
            accepted = 50 - half_open
            sockets.wait_until(lambda: files_of(process) - before >= accepted, 2)
            lab.did(f"50 clients that say nothing, --defer-accept {option}")
            lab.check("errors", {}, dict(errors))
            lab.check("established on the client", 50, lab.client.count("ESTAB"))
            lab.check("half-open on the server", half_open, lab.server.count("SYN-RECV"))
            lab.check("descriptors that they take there", accepted, files_of(process) - before)
            lab.check("TCPDeferAcceptDrop", half_open, moved["TcpExtTCPDeferAcceptDrop"])
            for client in clients:
                client.sendall(REQUESTS["HTTP/1.0"])
            answers = [sockets.read_all(client)[9:12] for client in clients]
            lab.did("now they ask")
            lab.check("answers", 50, answers.count(b"200"))
            sockets.close_all(clients)


def files_of(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


@experiment("published")
def published(lab):
    """The published list changes nothing that can be counted: ab -c 500 loses nothing without it.

    Only its keys of the namespace are set; the three of the machine are left alone.
    """
    sockets.raise_file_limit(1100)
    load(lab, "the kernel's defaults")
    for setting in profiles.load("published"):
        if setting.key.startswith("net.") and lab.server.has(setting.key):
            lab.set(lab.server, setting.key, setting.value)
            lab.set(lab.client, setting.key, setting.value)
    load(lab, "the published list")


def load(lab, list_name):
    with running(lab):
        moved = Moved(lab.server), Moved(lab.client)
        output = lab.client.run("ab", "-q", "-c", "500", "-n", "10000",
                                f"http://{lab.server.address}:{PORT}/").stdout
    lab.did(f"{list_name}: ab -c 500 -n 10000")
    lab.check("complete, failed", ("10000", "0"),
              tuple(re.search(rf"^{word} requests: +(\d+)", output, re.MULTILINE)[1]
                    for word in ("Complete", "Failed")))
    for counters in moved:
        name = counters.host.name
        lab.check(f"counters of loss that moved on the {name}", {}, counters.losses(LOSSES[name]))
    lab.note(f"TIME_WAIT on the server {lab.server.count('TIME-WAIT')}, on the client"
             f" {lab.client.count('TIME-WAIT')}")

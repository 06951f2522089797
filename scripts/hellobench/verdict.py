# SPDX-License-Identifier: MIT
"""What a run was limited by: the question to ask before its rate is called the server's.

A pure function of what was measured. The rate of a run that was bound by its client is a lower
limit of the server's; that of one bound by the machine says less than CPU time per request does.
"""

MEANINGS = {
    "ERRORS": "the client met errors",
    "SERVER_BOUND": "the server had no more processor time: this is its rate",
    "CLIENT_BOUND": "the load generator had no more processor time: the server can do more",
    "MACHINE_BOUND": "server and client share all processors: compare CPU time per request",
    "RATE_LIMITED": "the load generator offered no more, as planned",
    "UNSATURATED": "nobody was out of processor time: latency, a lock or accepting limits it",
    "UNKNOWN": "the processor time of the server or of the client is not known",
}
SERVER_BUSY = 0.9  # of the processors that it was given
SERVER_HAS_ROOM = 0.8  # below this a busy client is the reason
THREAD_BUSY = 0.95  # of one processor, where one thread does all the work
CLIENT_BUSY = 0.9  # of the processors that it can use
MACHINE_IDLE = 0.05


def word(code):
    """A verdict as readers see it: "server-bound"."""
    return code.replace("_", "-").lower()


def verdict(cpu, *, server_cpus, client_threads, shared, single_threaded, fixed_rate, errors,
            idle_share):
    """A key of MEANINGS. `cpu` is a model.Cpu; `server_cpus` and `client_threads` are counts of
    processors that each side can use, `shared` whether any is in both, `idle_share` the
    machine's, 0..1 or None. A fixed rate is the limit only where nothing else was."""
    server = share(cpu.server_cores, server_cpus)
    client = share(cpu.client_cores, client_threads)
    if errors > 0:
        return "ERRORS"
    if server is not None and server >= SERVER_BUSY:
        return "SERVER_BOUND"
    if single_threaded and cpu.max_thread is not None and cpu.max_thread >= THREAD_BUSY:
        return "SERVER_BOUND"
    if None not in (server, client) and client >= CLIENT_BUSY and server < SERVER_HAS_ROOM:
        return "CLIENT_BOUND"
    if shared and idle_share is not None and idle_share < MACHINE_IDLE:
        return "MACHINE_BOUND"
    if fixed_rate:
        return "RATE_LIMITED"
    return "UNKNOWN" if None in (server, client) else "UNSATURATED"


def share(cores, allotted):
    return None if cores is None or not allotted else cores / allotted

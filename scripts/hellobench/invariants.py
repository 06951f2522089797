# SPDX-License-Identifier: MIT
"""What must hold of a run before it may have a number.

Every load generator is silent about some failure: ab calls a connection that was closed without
an answer complete, hey counts errors as requests, wrk does not mention connections that hang,
h2load lets a client that met a reset stop. So the count of good answers is ours: status 200 and
the right size, by statuses and bytes. Where that can't be told the count is None, and a run with
any fatal problem has no rate: `rate` is the one place where a number comes from.
"""

import dataclasses

from hellobench.model import Problem

# Tools whose total_bytes are the very bytes on the wire: heads and contents of HTTP/1.1 answers.
_WIRE_TOOLS = ("wrk", "wrk2", "h2load", "autocannon", "bombardier", "gcannon", "zrk")
_RATE_MARGIN = 0.01
_LITTLE = (0.75, 1.3)
# wrk's mean is inflated by samples of its own making, and a wrk that is the bottleneck itself lets
# each connection idle between an answer and the next request: against a fast server 0.51 was
# measured with kept connections and 0.36 with a new one for each request. A share below the last
# figure is left only by connections that wait for answers that never come.
_LITTLE_WRK = (0.3, float("inf"))
_HUNG_SHARE = 0.2
_CONNECTIONS_SHARE = 0.95
_OFFERED_SHARE = 0.98
# These run for a time and keep all their connections busy to its end; hey's workers end one by one.
_BUSY_TO_THE_END = ("wrk", "wrk2", "h2load")
_PAUSE_S = 1.0
# Connections beyond those asked for that a keep-alive run may open. Servers may close after, say,
# a thousand answers; wrk looks whether the server is there first; hey dials whenever all of its
# connections are busy, even if one is free before the new one is there (374 for 300 were seen).
_RECONNECT_SHARE = 0.005
_SPARE = {"hey": lambda wanted: wanted / 2}


@dataclasses.dataclass(frozen=True)
class _Run:
    """The arguments of check, together."""

    parsed: object
    asked: int | None
    concurrency: int
    expected_body: bytes
    response_bytes: int | None
    keepalive: bool | None
    max_error_rate: float
    min_seconds: float
    passive_opens: int | None
    established_peak: int | None
    longest_pause_s: float | None
    tool_timeout_s: float | None
    rc: int | None
    offered_rps: float | None
    pipeline: int
    silences: list[list[int]]

    @property
    def errors(self):
        return self.parsed.requests.errors

    @property
    def broken(self):
        """Requests that got no answer. ab's length and other errors did get one."""
        return sum(count for kind, count in self.errors.items()
                   if kind not in ("status", "length"))

    @property
    def wrong_status(self):
        named = sum(count for status, count in self.parsed.statuses.items()
                    if status not in ("200", "2xx"))
        return max(named, self.errors["status"])

    @property
    def answered(self):
        """Answers of any status."""
        if self.parsed.statuses:
            return sum(self.parsed.statuses.values())
        done = self.parsed.requests.done
        if self.parsed.tool == "ab":
            # A done request of ab may be a broken one; wrk counts none of those as done.
            return max(0, done - self.broken)
        return 0 if self.parsed.tool == "hey" else done

    def tolerated(self, count):
        return count <= self.max_error_rate * max(1, self.parsed.requests.done)


def check(parsed, *, asked, concurrency, expected_body, response_bytes=None, keepalive=None,
          max_error_rate=0.0, min_seconds=2.0, passive_opens=None, established_peak=None,
          longest_pause_s=None, tool_timeout_s=None, rc=None, offered_rps=None, pipeline=1,
          silences=()):
    """Returns (ok_count or None, problems), the parser's problems among them.

    response_bytes: of one right answer as this tool gets it, head included (see verify).
    passive_opens: connections that the server's machine accepted during the run, a count.
    keepalive: what the plan wants; None: not to be checked. rc None: not known.
    silences: see network.silences; a list for each moment of the run at which it was asked.
    """
    run = _Run(parsed, asked, concurrency, expected_body, response_bytes, keepalive,
               max_error_rate, min_seconds, passive_opens, established_peak, longest_pause_s,
               tool_timeout_s, rc, offered_rps, pipeline, list(silences))
    problems = list(parsed.problems)
    problems += _tool_failure(run)
    problems += _not_all_done(run)
    if parsed.complete:
        problems += _errors(run)
        problems += _no_answers(run)
        problems += _connections(run)
        problems += _stalled(run)
        problems += _times(run)
        problems += _rates(run)
        problems += _sizes(run)
    problems = list(dict.fromkeys(problems))
    return _ok_count(run, {problem.code for problem in problems}), problems


def rate(parsed, ok, problems):
    """Good answers per second, or None: no run with a fatal problem has a number."""
    if ok is None or not parsed.duration_s or any(problem.fatal for problem in problems):
        return None
    return ok / parsed.duration_s


def _ok_count(run, codes):
    unknown = {"BAD_OUTPUT", "TOOL_FAILED", "INTERRUPTED", "HUNG", "WRONG_SIZE", "SIZE_UNKNOWN"}
    if codes & unknown or not run.parsed.complete:
        return None
    return max(0, run.answered - run.wrong_status)


def _tool_failure(run):
    if run.rc is None or run.rc == 0:
        return
    if run.rc < 0:
        yield Problem("TOOL_FAILED", f"{run.parsed.tool} was ended by signal {-run.rc}")
    elif not any(problem.code == "TOOL_FAILED" for problem in run.parsed.problems):
        yield Problem("TOOL_FAILED", f"{run.parsed.tool} ended with status {run.rc}")


def _not_all_done(run):
    asked, done = run.asked, run.parsed.requests.done
    if asked is not None and done < asked:
        yield Problem("INCOMPLETE", f"{done} of {asked} requests were done")


def _errors(run):
    if run.broken and not run.tolerated(run.broken):
        kinds = ", ".join(f"{kind} {count}" for kind, count in run.errors.items()
                          if count and kind not in ("status", "length"))
        yield Problem("ERRORS", f"{kinds}; {run.parsed.requests.done} requests done")
    if run.errors["timeout"]:
        yield Problem("TIMEOUT_DISTORTED", f"{run.errors['timeout']} requests timed out")
    wrong = run.wrong_status
    if wrong and not run.tolerated(wrong):
        named = {status: count for status, count in run.parsed.statuses.items()
                 if status not in ("200", "2xx")}
        text = ", ".join(f"{status}: {count}" for status, count in named.items())
        yield Problem("WRONG_STATUS", f"{wrong} answers not 200" + (f" ({text})" if text else ""))


def _no_answers(run):
    silent = run.parsed.tool == "ab" and run.parsed.total_bytes == 0
    if (run.answered > 0 and not silent) or run.wrong_status:
        return
    if run.errors["timeout"] or (run.errors["connect"] and not run.errors["read"]):
        return  # named already
    if run.broken or silent:
        yield Problem("NO_RESPONSE", "not one answer was whole")
    else:
        seconds = run.parsed.duration_s or 0
        yield Problem("HUNG", f"not one request was answered in {seconds:g} s")


def _connections(run):
    done, wanted = run.parsed.requests.done, run.concurrency
    if run.keepalive is None:
        return
    kept = run.parsed.kept_alive
    if run.keepalive and kept is not None and kept < (1 - _RECONNECT_SHARE) * done:
        yield Problem("KEEPALIVE_MISMATCH", f"{kept} of {done} requests on kept connections")
    if not run.keepalive and kept:
        yield Problem("KEEPALIVE_MISMATCH", f"{kept} requests on kept connections, 0 planned")
    opened = run.passive_opens
    if opened is not None and run.keepalive:
        spare = _SPARE.get(run.parsed.tool, lambda _: 2)(wanted)
        most = wanted + spare + _RECONNECT_SHARE * done
        if opened > most:
            yield Problem("KEEPALIVE_MISMATCH",
                          f"{opened} connections for {done} requests, {wanted} planned")
    if opened is not None and not run.keepalive and opened < _OFFERED_SHARE * run.answered:
        yield Problem("KEEPALIVE_MISMATCH",
                      f"{opened} connections for {done} requests, one for each planned")
    peak = run.established_peak
    if run.keepalive and peak is not None and peak < _CONNECTIONS_SHARE * wanted:
        yield Problem("FEWER_CONNECTIONS", f"at most {peak} of {wanted} connections were open")


def _stalled(run):
    """A client of a closed loop whose connection has sent nothing for longer than any answer took
    waits for one that does not come. None of the tools here counts it."""
    slowest = run.parsed.latency.max
    if run.asked is not None or run.parsed.tool not in _BUSY_TO_THE_END or slowest is None:
        return
    limit_ms = 1000 * _PAUSE_S + slowest / 1000
    if run.offered_rps:
        limit_ms += 1000 * run.concurrency / run.offered_rps
    # Others may have connections to the port as well, idle ones.
    stalled = max((sum(age > limit_ms for age in ages) - max(0, len(ages) - run.concurrency)
                   for ages in run.silences), default=0)
    if stalled > 0:
        yield Problem("HUNG", f"{stalled} of {run.concurrency} connections waited more than "
                      f"{limit_ms / 1000:.1f} s for an answer, longer than any answer took")


def _times(run):
    parsed, pause, limit = run.parsed, run.longest_pause_s, run.tool_timeout_s
    if pause is not None and pause > _PAUSE_S:
        yield Problem("HUNG", f"no request was answered for {pause:.1f} s")
    slowest = parsed.latency.max
    if limit and slowest is not None and slowest >= 0.99 * limit * 1e6:
        yield Problem("TIMEOUT_DISTORTED",
                      f"the slowest answer took {slowest / 1e6:.1f} s, the limit is {limit:g} s")
    if parsed.duration_s is None or parsed.duration_s < run.min_seconds:
        yield Problem("TOO_SHORT", f"{parsed.duration_s or 0:g} s; less than {run.min_seconds:g}")


def _rates(run):
    parsed = run.parsed
    if not parsed.duration_s:
        return
    own = parsed.requests.done / parsed.duration_s
    # The tool knew its time better than it printed it.
    blur = parsed.extra.get("duration_step_s", 0.0) / 2 / parsed.duration_s
    if parsed.rps is not None and abs(own - parsed.rps) > (_RATE_MARGIN + blur) * own:
        yield Problem("RATE_DIFFERS", f"{parsed.rps:.1f} by the tool, {own:.1f} by count and time")
    if run.offered_rps is not None:
        if own < _OFFERED_SHARE * run.offered_rps:
            yield Problem("RATE_MISSED", f"{own:.1f} of {run.offered_rps:g} requests/s")
        return
    yield from _littles_law(run, own)


def _littles_law(run, own):
    latency = run.parsed.latency
    if (latency.mean is None or not own or run.pipeline != 1
            or not latency.kind.startswith("closed-loop")):
        return
    # The mean is known to half a step of the tool's figures.
    half_step = (latency.resolution or 0) / 2
    low, high = ((latency.mean + side) * own / 1e6 / run.concurrency
                 for side in (-half_step, half_step))
    text = f"{latency.mean:g} us x {own:.0f}/s is {(low + high) / 2 * run.concurrency:.2f}, "
    text += f"not {run.concurrency}"
    is_wrk = run.parsed.tool == "wrk"
    least, most = _LITTLE_WRK if is_wrk else _LITTLE
    if is_wrk and high < _HUNG_SHARE:
        yield Problem("HUNG", "connections waited for answers that never came: " + text)
    elif high < least or low > most:
        yield Problem("LITTLES_LAW", text)


def _sizes(run):
    if run.errors["length"]:
        yield Problem("WRONG_SIZE", f"{run.errors['length']} answers of another length")
        return
    if run.answered == 0 or run.wrong_status:
        return  # of an error's page the right size isn't known; the wrong status is named
    seen = list(_content_size(run)) + list(_wire_size(run))
    if not seen:
        yield Problem("SIZE_UNKNOWN",
                      f"{run.parsed.tool} printed no sizes that could be compared")
    yield from (problem for problem in seen if problem is not None)


def _content_size(run):
    """Yields None for a size that is right, a problem for one that isn't, nothing if unknown."""
    parsed, length = run.parsed, len(run.expected_body)
    if parsed.body_bytes is None:
        return
    if parsed.document_bytes not in (None, length):
        yield Problem("WRONG_SIZE", f"a content of {parsed.document_bytes} bytes, not {length}")
    elif not 0 <= parsed.body_bytes - run.answered * length <= _unfinished(run) * length:
        yield Problem("WRONG_SIZE", f"{parsed.body_bytes} bytes of content in {run.answered} "
                      f"answers, not {length} in each")
    else:
        yield None


def _unfinished(run):
    """Answers that came for requests that a timed run no longer counted."""
    return run.concurrency * run.pipeline if run.asked is None and run.parsed.tool != "hey" else 0


def _wire_size(run):
    parsed, size = run.parsed, run.response_bytes
    if parsed.tool not in _WIRE_TOOLS or parsed.total_bytes is None or not size:
        return
    surplus = parsed.total_bytes - run.answered * size
    # Half a byte per answer finds a content that is one byte off in each. At the end of a timed
    # run, and where a connection broke, there may be parts of answers that count for no request.
    blur = 0.5 * run.answered + parsed.extra.get("bytes_step", 0) / 2
    parts = min((run.concurrency * run.pipeline + run.broken) * size,
                max(0.02 * run.answered * size, run.broken * size))
    if -blur <= surplus <= blur + parts:
        yield None
    else:
        yield Problem("WRONG_SIZE", f"{parsed.total_bytes / run.answered:.1f} bytes per answer, "
                      f"not {size}")

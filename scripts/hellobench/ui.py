# SPDX-License-Identifier: MIT
"""What a run shows while it lasts: live on a terminal, a line per cell, JSON events, or nothing.

No failure of the output ends a run: after the first one nothing more is shown. The live view is
drawn at most twice a second, and only when something is told to it, so that it takes no time from
the measurement. Of a tick it shows `segments_per_s`, `server_cores`, `client_cores`, `seconds`.
"""

import collections
import contextlib
import dataclasses
import json
import os
import select
import statistics
import threading
import time

from hellobench import journal, model, verdict
from hellobench.errors import UsageError

KINDS = ("auto", "live", "plain", "json", "quiet")
REDRAW_SECONDS = 0.5
LEVELS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
ASCII_LEVELS = "_.:-=+*#"
SPARKS = 30


def make(kind, out, clock=time.monotonic):
    """The Ui of that kind, writing to the text stream `out`. Raises UsageError."""
    if kind not in KINDS:
        raise UsageError(f"no display {kind!r}; there are: {', '.join(KINDS)}")
    live = kind == "live" or (kind == "auto" and _is_terminal(out))
    if live:
        try:
            import rich  # pylint: disable=unused-import
        except ImportError as error:
            if kind == "live":
                raise UsageError("the live display needs python3-rich: apt install python3-rich, "
                                 "or use --ui plain") from error
            live = False
    if kind == "auto":
        kind = "live" if live else "plain"
    return {"live": Live, "plain": Plain, "json": Json, "quiet": Ui}[kind](out, clock)


def _is_terminal(out):
    try:
        return out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:
        return False


class Progress:
    """How far the run is, and how long the rest will take, judged by the cells that are done."""

    def __init__(self, plan, cells, now):
        self.total = len(cells)
        self.done = 0
        self._left = collections.Counter(cell.step for cell in cells)
        self._seconds = collections.defaultdict(list)
        self._since = now

    def cell_done(self, cell, now):
        self.done += 1
        self._left[cell.step] -= 1
        self._seconds[cell.step].append(now - self._since)
        self._since = now

    def seconds_left(self):
        """None before the first cell is done."""
        if not self.done:
            return None
        overall = statistics.fmean(sum(self._seconds.values(), []))
        return sum(count * (statistics.fmean(self._seconds[step]) if self._seconds[step]
                            else overall) for step, count in self._left.items())

    def text(self):
        left = self.seconds_left()
        return f"{self.done}/{self.total}" + (f", {duration(left)} left" if left else "")


class Ui:
    """Shows nothing; the others overwrite _show_*(). Calls may come from any thread."""

    def __init__(self, out, clock):
        self._out, self._clock = out, clock
        self._lock = threading.RLock()
        self._running = False
        self.lost = None  # the error after which nothing more is shown
        self.plan = self.progress = self.current = None

    def start(self, plan, cells=None):
        """`cells`: those of the plan that will be measured, if not all."""
        self.plan = plan
        self.progress = Progress(plan, plan.cells if cells is None else cells, self._clock())
        self._running = True
        self._guarded(self._show_start)

    def cell_started(self, planned):
        self.current = planned
        self._guarded(self._show_cell_started, planned)

    def tick(self, values):
        if self._running:
            self._guarded(self._show_tick, values)

    def cell_done(self, cell):
        if self.progress:
            self.progress.cell_done(cell, self._clock())
        self.current = None
        self._guarded(self._show_cell_done, cell)

    def message(self, text):
        self._guarded(self._show_message, text)

    def stop(self):
        self._running = False
        self._guarded(self._show_stop)

    def _guarded(self, show, *arguments):
        with self._lock:
            if self.lost is not None:
                return
            try:
                show(*arguments)
            except Exception as error:  # Also one of ours: the numbers matter, the display doesn't.
                self._give_up(error)

    def _give_up(self, error):
        self.lost = error
        if isinstance(error, OSError):
            # What others print later, and Python's flush at the end, must not fail either.
            with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nothing:
                os.dup2(nothing.fileno(), self._out.fileno())

    def _writable(self):
        """Whether a write would not wait, as for a terminal stopped by Ctrl-S."""
        try:
            return bool(select.select([], [self._out], [], 0)[1])
        except (OSError, ValueError, TypeError):
            return True  # No descriptor to ask; the write itself will tell.

    def _write(self, text):
        encoding = getattr(self._out, "encoding", None) or "utf-8"
        self._out.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        self._out.flush()

    def _show_start(self):
        pass

    def _show_cell_started(self, planned):
        pass

    def _show_tick(self, values):
        pass

    def _show_cell_done(self, cell):
        pass

    def _show_message(self, text):
        pass

    def _show_stop(self):
        pass


class Plain(Ui):
    """A line per cell."""

    def _show_start(self):
        entries = self.plan.entrants
        absent = sum(not entry["installed"] for entry in entries)
        self._write(printable(
            f"{self.plan.profile['id']}: {self.progress.total} cells of "
            f"{len(entries) - absent} entrants"
            + (f"; {absent} not installed, see the report" if absent else "")))

    def _show_cell_done(self, cell):
        names = max((len(entry["id"]) for entry in self.plan.entrants), default=0)
        steps = max(len(step["id"]) for step in self.plan.profile["steps"])
        self._write(printable(f"[{self.progress.text()}] block {cell.block + 1}  "
                              f"{cell.entrant:{names}}  {cell.step:{steps}}  {outcome(cell)}"))

    def _show_message(self, text):
        self._write(printable(text))


class Json(Ui):
    """An event per line."""

    def _event(self, event, **values):
        self._write(json.dumps({"event": event} | journal.finite(values), allow_nan=False))

    def _show_start(self):
        self._event("start", profile=self.plan.profile["id"], blocks=self.plan.blocks,
                    cells=self.progress.total,
                    entrants=[entry["id"] for entry in self.plan.entrants])

    def _show_cell_started(self, planned):
        self._event("cell_started", block=planned.block, entrant=planned.entrant,
                    step=planned.step, order=planned.order)

    def _show_tick(self, values):
        if self._writable():
            self._event("tick", **values)

    def _show_cell_done(self, cell):
        data = model.to_json(cell)
        del data["latency"]["histogram"]  # Long, and in the journal.
        self._event("cell_done", done=self.progress.done, cells=self.progress.total,
                    seconds_left=self.progress.seconds_left(), cell=data)

    def _show_message(self, text):
        self._event("message", text=text)

    def _show_stop(self):
        self._event("stop", done=self.progress.done if self.progress else 0)


class Live(Ui):
    """A view of the whole run that is drawn again and again."""

    def __init__(self, out, clock):
        super().__init__(out, clock)
        from rich.console import Console
        self._console = Console(file=out, highlight=False, markup=False, emoji=False)
        self._console.on_broken_pipe = _broken_pipe
        self._live = None
        self._drawn = None
        self._cells = collections.defaultdict(list)  # by entrant
        self._rates = collections.deque(maxlen=SPARKS)
        self._tick = {}

    def _show_start(self):
        from rich.live import Live as RichLive
        self._live = RichLive(console=self._console, auto_refresh=False, redirect_stdout=False,
                              redirect_stderr=False, get_renderable=self._view)
        self._live.start()
        self._draw()

    def _show_cell_started(self, planned):
        self._rates.clear()
        self._tick = {}
        self._draw()

    def _show_tick(self, values):
        self._tick = values
        if values.get("segments_per_s") is not None:
            self._rates.append(values["segments_per_s"])
        self._draw()

    def _show_cell_done(self, cell):
        # Without the histogram: hundreds of them would show in the machine's memory in use.
        light = dataclasses.replace(cell.latency, histogram=None)
        self._cells[cell.entrant].append(dataclasses.replace(cell, latency=light))
        self._draw()

    def _show_message(self, text):
        self._console.print(printable(text))

    def _show_stop(self):
        if self._live is not None:
            self._live.stop()  # Draws the view for the last time, whole.

    def _draw(self):
        now = self._clock()
        if self._drawn is not None and now - self._drawn < REDRAW_SECONDS or not self._writable():
            return
        self._drawn = now
        self._live.refresh()

    def _view(self):
        from rich.console import Group
        return Group(self._header(), self._current(), self._table())

    def _header(self):
        from rich.text import Text
        title = Text(printable(self.plan.profile["title"]), "bold")
        block = f"  block {self.current.block + 1} of {self.plan.blocks}" if self.current else ""
        return title.append(f"{block}  {self.progress.text()}", "not bold")

    def _current(self):
        from rich.text import Text
        if self.current is None:
            return Text()
        line = Text(f"{self.current.entrant}  {self.current.step}", "cyan")
        line.append("  " + sparkline(self._rates, not self._console.encoding.startswith("utf")))
        for name, words in (("seconds", "{:.0f} s"), ("server_cores", "server {:.2f} cores"),
                            ("client_cores", "client {:.2f}"),
                            ("segments_per_s", "{:,.0f} segments/s")):
            if self._tick.get(name) is not None:
                line.append("  " + words.format(self._tick[name]))
        return line

    def _table(self):
        from rich import box
        from rich.table import Table
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
        table.add_column("entrant", no_wrap=True)
        table.add_column("step", no_wrap=True)
        for name in ("last", "median", "spread"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("", overflow="ellipsis", no_wrap=True, ratio=1)  # What room is left.
        for entry in self.plan.entrants:
            table.add_row(*self._row(entry))
        return table

    def _row(self, entry):
        from rich.text import Text
        name = printable(entry["title"])
        if not entry["installed"]:
            reason = printable(f"not installed: {entry['reason']}")
            return [Text(word, "dim") for word in (name, "", "", "", "", reason)]
        cells = self._cells[entry["id"]]
        if not cells:
            return [Text(word) for word in (name, "", "", "", "", "")]
        last = cells[-1]
        values = [figure(cell)[0] for cell in cells if cell.step == last.step and cell.valid]
        values = [value for value in values if value is not None]
        median = spread = ""
        if values:
            middle = statistics.median(values)
            median = number(middle)
            spread = f"{(max(values) - min(values)) / middle * 100:.1f} %" if middle else ""
        invalid = sum(not cell.valid for cell in cells)
        note = Text(f"{invalid} without number  " if invalid else "", "red")
        note.append(printable(remarks(last)), "" if last.valid else "red")
        value, unit = figure(last)
        return [Text(name), Text(last.step), Text(f"{number(value)} {unit}"), Text(median),
                Text(spread), note]


def _broken_pipe():
    """In the place of rich's own answer since 13.8, which is to end the program."""
    raise BrokenPipeError


def figure(cell):
    """(value, unit) of what a cell measured, as far as one figure can say."""
    if cell.offered_rps is not None:
        return cell.cpu.server_us_per_req if cell.valid else None, "us/req"
    if cell.rps is None and cell.tool is None and cell.start_ms is not None:
        return cell.start_ms if cell.valid else None, "ms"
    return cell.rps, "req/s"


def outcome(cell):
    """The result of a cell in a line."""
    value, unit = figure(cell)
    parts = [f"{number(value):>9} {unit}"]
    if cell.valid:
        if cell.cpu.server_us_per_req is not None and unit != "us/req":
            parts.append(f"{cell.cpu.server_us_per_req:.1f} us/req")
        if cell.latency.p99 is not None:
            parts.append(f"p99 {cell.latency.p99 / 1000:.2f} ms")
    return "  ".join(part for part in [*parts, remarks(cell)] if part)


def remarks(cell):
    """A valid cell's verdict and marks; of another the first reason why it has no number."""
    fatal = [problem for problem in cell.problems if problem.fatal]
    if fatal:
        return f"{fatal[0].code}: {fatal[0].text}"
    marks = [verdict.word(cell.verdict)] if cell.verdict else []
    return " ".join(marks + [problem.code for problem in cell.problems])


def sparkline(values, ascii_only=False):
    """Zero is the lowest level, so that a small change looks small."""
    levels = ASCII_LEVELS if ascii_only else LEVELS
    top = max(values, default=0) or 1
    return "".join(levels[min(int(max(value, 0) / top * len(levels)), len(levels) - 1)]
                   for value in values)


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def printable(text):
    """`text` on one line, without what would steer a terminal: it may come from a server."""
    return "".join(char if char.isprintable() else " " for char in text)

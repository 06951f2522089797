# SPDX-License-Identifier: MIT
"""Plots with a row per server: every run as a dot, the ratio to the baseline, CPU per request.

Scales begin at zero, but for ratios far apart, whose scale is logarithmic and says so. Figures are
printed beside the marks; a server without a figure has the reason there as text, and no mark.
"""

from matplotlib.ticker import NullLocator

from hellobench.report import style, text
from hellobench.report.ours import DECISIONS
from hellobench.report.results import METRICS, codes, primary

WIDTH = 8.6
ROW = 0.245  # inches
HEAD, FOOT = 0.74, 0.52
SIDE_GAP = 0.16
FAR_APART = 4  # ratios that differ by more than this are read on a logarithmic scale
CUT_FROM, CUT_AT = 2.5, 1.2  # times the bar that nine of ten don't surpass


def rows_figure(lines, title, about, side_width, baseline):
    """(figure, axes) with a named row for each line, the first on top."""
    height = HEAD + FOOT + ROW * len(lines)
    figure = style.new_figure(WIDTH, height)
    names = [style.short(line.entrant["title"]) for line in lines]
    left = 0.3 + style.LETTER * max(map(len, names))
    axes = figure.add_axes((left / WIDTH, FOOT / height, (WIDTH - left - side_width) / WIDTH,
                            ROW * len(lines) / height))
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_yticks(range(len(lines)), names)
    for label, line in zip(axes.get_yticklabels(), lines):
        label.set_color(style.INK if line.valid else style.MUTED)
        if line.id == baseline:
            label.set(color=style.ACCENT, weight="bold")
    axes.grid(axis="x")
    for row, line in enumerate(lines):  # leads the eye from the name to the mark
        if line.valid:
            axes.axhline(row, color=style.BAND, linewidth=0.8, zorder=0.5)
    style.heading(figure, title, about)
    return figure, axes


def beside(axes, row, words, inches=SIDE_GAP, **look):
    """Text so far right of the axes."""
    width = axes.figure.get_figwidth() * axes.get_position().width
    axes.text(1 + inches / width, row, words, transform=axes.get_yaxis_transform(), va="center",
              **({"color": style.INK} | look))


def reason(axes, row, line):
    """Instead of marks."""
    words = line.state
    if line.state == "failed":
        words = "no valid run: " + ", ".join(codes(line.cells, fatal=True))
    axes.text(0.008, row, style.short(words, 60), transform=axes.get_yaxis_transform(),
              va="center", color=style.MUTED, style="italic")


def dots(results, step):
    """Every run of every server; None without a single figure."""
    metric = primary(step)
    lines = [line for _, line in results.ranked(step)]
    if not any(line.values(metric) for line in lines):
        return None
    show = METRICS[metric].show
    note = "; hollow: the client was the limit, so at least this" if any(
        line.client_bound for line in lines) and metric == "rps" else ""
    figure, axes = rows_figure(lines, name_of(METRICS[metric].title, step),
                               f"dot: a run; bar: their median{note}", 1.85, results.baseline)
    factor, unit = axis_unit(metric, max(max(line.values(metric).values(), default=0)
                                         for line in lines))
    for row, line in enumerate(lines):
        values = [value * factor for value in line.values(metric).values()]
        if not values:
            reason(axes, row, line)
            continue
        bound = metric == "rps" and line.client_bound
        dot_row(axes, row, values, line.median(metric) * factor, bound,
                style.ACCENT if line.id == results.baseline else style.INK)
        beside(axes, row, (text.AT_LEAST if bound else "") + show(line.median(metric)), 0.9,
               ha="right", weight="bold" if line.id == results.baseline else "normal")
        if line.invalid:
            beside(axes, row, f"{len(line.invalid)} invalid", 1.0, color=style.MUTED,
                   style="italic")
    axes.set_xlim(0)
    axes.xaxis.set_major_formatter(lambda value, _: text.integer(value) if value >= 10 or not value
                                   else f"{value:g}")
    axes.set_xlabel(METRICS[metric].title + unit)
    return figure


def axis_unit(metric, largest):
    """(factor, what is said): times in the unit of the largest."""
    if metric == "rps":
        return 1, ""
    if metric == "start_ms":
        return 1, ", ms"
    return (1e-3, ", ms") if largest >= 1e4 else (1, f", {text.MICRO}")


def name_of(title, step):
    title = title[0].upper() + title[1:]
    return title if step["id"] in ("main", "start") else f"{title}, {step['id']}"


def dot_row(axes, row, values, middle, hollow, colour):
    axes.plot((min(values), max(values)), (row, row), color=style.PALE, linewidth=1.2, zorder=1)
    axes.plot(values, [row] * len(values), "o", markersize=4.6, alpha=0.75, zorder=2,
              markerfacecolor=style.PAPER if hollow else colour, markeredgecolor=colour,
              markeredgewidth=0.9 if hollow else 0)
    axes.plot((middle, middle), (row - 0.32, row + 0.32), color=colour, linewidth=2.2, zorder=3,
              solid_capstyle="butt")


def ratios(results, step):
    """Each server's ratio to the baseline with its interval; None without two to compare."""
    metric = primary(step)
    base = results.baseline_line(step)
    compared = [(line, results.compare(line, metric)) for _, line in results.ranked(step)]
    compared = [(line, found) for line, found in compared if found and found.ratio]
    if not compared or not base:
        return None
    lines = [line for line, _ in compared]
    figure, axes = rows_figure(
        lines, f"{name_of(METRICS[metric].title, step)}: ratio to {base.entrant['title']}",
        "median of the ratios in each block, and its interval; the band is what counts as equal",
        2.15, results.baseline)
    ends = [end for _, found in compared for end in (found.ratio, found.low, found.high) if end]
    margin = results.margin(step, metric)
    axes.axvspan(1 - margin, 1 + margin, color=style.BAND, linewidth=0)
    axes.axvline(1, color=style.ACCENT, linewidth=1.2)
    for row, (line, found) in enumerate(compared):
        ratio_row(axes, row, found)
        sign = ""
        if metric == "rps":
            sign = text.AT_LEAST * line.client_bound + text.AT_MOST * base.client_bound
        beside(axes, row, ratio_text(found, sign))
    ratio_scale(axes, min(ends), max(ends))
    return figure


def ratio_row(axes, row, found):
    told = found.decision in ("faster", "slower")
    assert found.decision in DECISIONS
    if found.low is not None:
        axes.plot((found.low, found.high), (row, row), color=style.INK, linewidth=1.6,
                  solid_capstyle="butt", zorder=2)
    axes.plot([found.ratio], [row], "s", markersize=4.2, color=style.INK, zorder=3,
              markerfacecolor=style.INK if told else style.PAPER, markeredgewidth=1)


def ratio_text(found, sign):
    shown = f"{sign}{text.number(found.ratio)}{text.TIMES}"
    if sign.count(" ") > 1 or found.low is None:
        return shown if found.low is None else "can't be told"
    return f"{shown} [{text.number(found.low)}{text.DASH}{text.number(found.high)}]"


def ratio_scale(axes, low, high):
    low, high = min(low, 1), max(high, 1)
    if high / low <= FAR_APART:
        axes.set_xlim(0, high * 1.06)
        axes.set_xlabel("ratio")
        return
    axes.set_xscale("log")
    axes.set_xlim(low / 1.15, high * 1.15)
    ticks = style.log_ticks(low / 1.15, high * 1.15)
    axes.set_xticks(ticks, [f"{tick:g}{text.TIMES}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("ratio, logarithmic scale")


def cpu(results, step):
    """Server's and client's CPU time per request as a stack; None if it wasn't measured."""
    lines = [line for _, line in results.ranked(step)
             if line.median("server_us_per_req") is not None]
    if not lines:
        return None
    parts = [(line.median("server_us_per_req"), line.median("client_us_per_req") or 0)
             for line in lines]
    limit = cut(sum(pair) for pair in parts)
    figure, axes = rows_figure(lines, name_of("CPU time per request", step),
                               "left part: the server; right part: the load generator", 1.85,
                               results.baseline)
    for row, (line, (server, client)) in enumerate(zip(lines, parts)):
        colour = style.ACCENT if line.id == results.baseline else style.INK
        bar(axes, row, 0, min(server, limit), colour, f"server-{row}")
        if server < limit:
            bar(axes, row, server, min(client, limit - server), style.PALE, f"client-{row}")
        if server + client > limit:
            axes.text(limit * 0.965, row, "//", va="center", ha="center", color=style.PAPER,
                      weight="bold")
        beside(axes, row, f"{text.duration(server)} + {text.duration(client)}")
    axes.set_xlim(0, limit)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(f"{text.MICRO} per request")
    return figure


def cut(totals):
    """Where bars end: the largest, unless a few would leave no room for all others."""
    totals = sorted(totals)
    usual = totals[(9 * (len(totals) - 1)) // 10]
    return totals[-1] if totals[-1] <= CUT_FROM * usual else CUT_AT * usual


def bar(axes, row, start, width, colour, gid):
    made, = axes.barh(row, width, left=start, height=0.62, color=colour, linewidth=0)
    made.set_gid(gid)

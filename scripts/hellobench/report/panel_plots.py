# SPDX-License-Identifier: MIT
"""Plots with a panel per server, so that 25 curves can be told apart without colours.

Each panel shows its server, the baseline as a thin line and the range of all others in grey, on the
same two scales.
"""

import math

from matplotlib.ticker import NullLocator

from hellobench.report import style, text
from hellobench.report.results import codes, primary

COLUMNS = 5
MIN_WIDTH = 8.6
PANEL_WIDTH, PANEL_HEIGHT = 1.72, 1.28
HEAD, FOOT, LEFT, GAP_X, GAP_Y = 0.86, 0.46, 0.72, 0.16, 0.36
PERCENTILES = (("p50", 50), ("p75", 75), ("p90", 90), ("p95", 95), ("p99", 99), ("p99_9", 99.9))
SHOWN = (50, 90, 99, 99.9)


def latency(results, step):
    """Latency at each percentile on an axis of nines; None without latencies."""
    lines = [line for _, line in results.ranked(step)]
    curves = {line.id: curve for line in lines if (curve := percentiles(line))}
    if not curves:
        return None
    loop = "at the offered rate" if step.get("offered_rps") else "closed loop"
    title = "Latency" + ("" if step["id"] == "main" else f", {step['id']}")
    places = {percent: nines(percent) for _, percent in PERCENTILES}
    points = {name: [(places[percent], value) for percent, value in curve.items()]
              for name, curve in curves.items()}
    labels = [(places[percent], f"{percent:g}") for percent in SHOWN]
    ends = {name: f"p99 {text.duration(curve[99])}" for name, curve in curves.items()
            if 99 in curve}
    return panels(results, lines, points, title,
                  f"time within which so many percent of the requests were answered, {loop}",
                  labels, ends, lambda value, _: plain(text.duration(value)))


def plain(shown):
    """10.0 ms as 10 ms: powers of ten need no decimals."""
    return shown.replace(".00 ", " ").replace(".0 ", " ")


def nines(percent):
    """0.3 for 50 %, 1 for 90 %, 2 for 99 %, ..."""
    return -math.log10(1 - percent / 100)


def percentiles(line):
    """{percent: us}. Of all runs together if each kept its histogram, else the median of runs."""
    histograms = [cell.latency.histogram for cell in line.valid]
    if histograms and all(histograms):
        return merged(histograms)
    out = {}
    for name, percent in PERCENTILES:
        values = sorted(value for cell in line.valid
                        if (value := getattr(cell.latency, name)) is not None and value > 0)
        if values:
            out[percent] = values[len(values) // 2]
    return out


def merged(histograms):
    counts = {}
    for histogram in histograms:
        for value, count in histogram:
            counts[value] = counts.get(value, 0) + count
    total = sum(counts.values())
    out, seen = {}, 0
    wanted = [percent for _, percent in PERCENTILES]
    for value in sorted(counts):
        seen += counts[value]
        while wanted and seen >= total * wanted[0] / 100:
            out[wanted.pop(0)] = value
    return {percent: value for percent, value in out.items() if value > 0}


def ladder(results):
    """Requests per second on each step; None without two steps that can be compared."""
    steps = [step for step in results.steps
             if any(line.values("rps") for line in results.lines(step))]
    # Rates of different tools, or rates that were asked for, make no line.
    if len(steps) < 2 or len({primary(step) for step in steps}
                             | {step["argv"][0] for step in steps}) > 2:
        return None
    lines = [line for _, line in results.ranked(steps[-1])]
    points, ends = {}, {}
    for line in lines:
        known = [(place, results.line(line.entrant, step).median("rps"))
                 for place, step in enumerate(steps)]
        points[line.id] = [(place, rate) for place, rate in known if rate]
        if points[line.id]:
            sign = text.AT_LEAST if line.client_bound else ""
            ends[line.id] = f"{sign}{text.number(points[line.id][-1][1])} r/s"
    labels = [(place, step["id"].replace("-", "\n")) for place, step in enumerate(steps)]
    return panels(results, lines, {name: known for name, known in points.items() if known},
                  "Requests per second on each step", "median of the runs, logarithmic scale",
                  labels, ends,
                  lambda value, _: text.integer(value))


def panels(results, lines, points, title, about, labels, ends, show):
    """A figure of panels on common scales. `labels`: (place, text) of the x axis."""
    columns = min(COLUMNS, len(lines))
    rows = -(-len(lines) // columns)
    across = max(PANEL_WIDTH, (MIN_WIDTH - LEFT) / columns - GAP_X)
    width = LEFT + columns * (across + GAP_X)
    height = HEAD + rows * (PANEL_HEIGHT + GAP_Y) - GAP_Y + FOOT
    figure = style.new_figure(width, height)
    style.heading(figure, title, about + "; thin line: the baseline, grey: all servers")
    band = spread(points)
    values = [value for curve in points.values() for _, value in curve]
    for index, line in enumerate(lines):
        row, column = divmod(index, columns)
        axes = figure.add_axes((
            (LEFT + column * (across + GAP_X)) / width,
            1 - (HEAD + row * (PANEL_HEIGHT + GAP_Y) + PANEL_HEIGHT) / height,
            across / width, PANEL_HEIGHT / height))
        scales(axes, labels, values, show)
        axes.tick_params(labelleft=column == 0, labelbottom=index + columns >= len(lines))
        panel(axes, line, points, band, results.baseline, ends)
    return figure


def scales(axes, labels, values, show):
    axes.set_yscale("log")
    decades = math.log10(max(values) / min(values))
    # Below the lowest curve there is room for a panel's figure.
    low = min(values) / 10 ** (0.08 + 0.2 * decades)
    high = max(values) * 10 ** (0.05 + 0.07 * decades)
    axes.set_ylim(low, high)
    axes.set_yticks(style.log_ticks(low, high))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlim(labels[0][0] - 0.15, labels[-1][0] + 0.15)
    axes.set_xticks([place for place, _ in labels], [words for _, words in labels])
    axes.yaxis.set_major_formatter(show)
    axes.tick_params(axis="y", which="both", length=0, colors=style.MUTED,
                     labelsize=style.SIZE - 1.5)
    axes.grid(axis="y")


def spread(points):
    """[(place, lowest, highest)] of all curves."""
    by_place = {}
    for curve in points.values():
        for place, value in curve:
            by_place.setdefault(place, []).append(value)
    return [(place, min(values), max(values)) for place, values in sorted(by_place.items())]


def panel(axes, line, points, band, baseline, ends):
    own = line.id == baseline
    axes.set_title(style.short(line.entrant["title"], 22), loc="left", size=style.SIZE, pad=4,
                   color=style.ACCENT if own else style.INK if line.id in points else style.MUTED,
                   weight="bold" if own else "normal")
    axes.fill_between([place for place, _, _ in band], [low for _, low, _ in band],
                      [high for _, _, high in band], color=style.BAND, linewidth=0)
    if line.id not in points:
        found = codes(line.cells, fatal=True)
        axes.text(0.5, 0.5, "\n".join(found) if found else line.state, transform=axes.transAxes,
                  ha="center", va="center", color=style.MUTED, style="italic")
        return
    if baseline in points and not own:
        axes.plot(*zip(*points[baseline]), color=style.ACCENT, linewidth=0.9)
    axes.plot(*zip(*points[line.id]), color=style.ACCENT if own else style.INK, linewidth=2,
              marker="o", markersize=2.6)
    axes.text(0.97, 0.04, ends.get(line.id, ""), transform=axes.transAxes, ha="right",
              size=style.SIZE - 1.5, color=style.MUTED)

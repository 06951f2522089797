# SPDX-License-Identifier: MIT
"""results.json (see results.schema.json beside this file) and results.csv, a row per cell.

Both hold what the journal holds, but for the latency histograms, which stay there alone.
"""

import csv
import dataclasses
import io
import json

from hellobench import model, stats
from hellobench.report.results import METRICS, primary

COMPARED = ("rps", "server_us_per_req", "system_us_per_req", "start_ms")


def results_json(results):
    data = {"schema": model.SCHEMA, **{name: results.plan.get(name) for name in (
        "tool", "created", "git", "binary_sha256", "quick", "seed", "blocks", "topology",
        "server_cpus", "client_cpus", "baseline")}}
    data |= {"margins": {step["id"]: results.margin(step, primary(step)) for step in results.steps},
             "env": results.env, "profile": results.profile, "entrants": results.entrants,
             "missing": results.missing,
             "cells": [cell_data(cell) for cell in results.cells],
             "summary": summaries(results), "comparisons": comparisons(results),
             "ranks": ranks(results)}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def cell_data(cell):
    data = model.to_json(cell)
    del data["latency"]["histogram"]
    return data


def summaries(results):
    return [{"entrant": line.id, "step": step["id"], "metric": metric} | line.summary(metric)
            for step in results.steps for line in results.lines(step) for metric in METRICS
            if line.summary(metric)]


def comparisons(results):
    out = []
    for step in results.steps:
        for metric in COMPARED:
            found = {line.id: compared for line in results.lines(step)
                     if (compared := results.compare(line, metric)) is not None}
            adjusted = stats.holm({name: one.p for name, one in found.items() if one.p is not None})
            out += [{"a": name, "b": results.baseline, "step": step["id"], "metric": metric,
                     "p_holm": adjusted.get(name)} | dataclasses.asdict(one)
                    for name, one in found.items()]
    return out


def ranks(results):
    return [{"step": step["id"], "metric": primary(step), "rank": rank, "entrant": line.id,
             "state": line.state, "client_bound": line.client_bound}
            for step in results.steps for rank, line in results.ranked(step)]


def results_csv(results):
    rows = [flat(cell_data(cell)) for cell in results.cells]
    names = list(flat(cell_data(model.Cell("", "", "", 0, 0))))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def flat(data, path=""):
    """{"cpu.server_cores": ...}; lists and maps of unknown keys become texts."""
    out = {}
    for key, value in data.items():
        if key == "problems":
            out["problems"] = " ".join(problem["code"] for problem in value)
        elif key == "statuses":
            out["statuses"] = " ".join(f"{status}:{count}" for status, count in value.items())
        elif isinstance(value, dict):
            out |= flat(value, f"{path}{key}.")
        elif isinstance(value, list):
            out[path + key] = " ".join(map(str, value))
        else:
            out[path + key] = value
    return {name: formula_free(value) for name, value in out.items()}


def formula_free(value):
    """A text that a spreadsheet would run as a formula gets a quote in front."""
    return "'" + value if isinstance(value, str) and value[:1] in "=+-@" and value else value

# SPDX-License-Identifier: MIT
"""What there is: entrants, profiles and tools; and what a run would do, command by command."""

import json
import shlex

from hellobench import doctor
from hellobench import profile as profiles


def show(what, as_json, entrants, all_profiles):
    """Prints the lists called `what`, or all of them."""
    lists = {"entrants": entrant_rows(entrants), "profiles": profile_rows(all_profiles),
             "tools": tool_rows()}
    wanted = {name: rows for name, rows in lists.items() if what in (None, name)}
    if as_json:
        print(json.dumps(wanted, indent=1))
        return
    for name, rows in wanted.items():
        print(f"{name}:")
        for row in rows:
            print_row(row)


def print_row(row):
    """The first two values in a line, the others with their names in lines of their own."""
    (_, key), (_, text), *others = row.items()
    print(f"  {key:20}{text}")
    for name, value in others:
        for line in str(value).splitlines() if value is not None else ():
            print(f"  {'':20}    {name}: {line}")


def entrant_rows(entrants):
    rows = []
    for each in entrants.values():
        status = each.status()
        rows.append({"id": each.id, "title": f"{each.title} ({each.language})",
                     "version": status.version if status.installed else None,
                     "not installed": None if status.installed else status.reason,
                     "what helps": None if status.installed else status.cure})
    return rows


def profile_rows(all_profiles):
    return [{"id": each.id, "title": each.title, "repeats": each.blocks,
             "command": "\n".join(" ".join(step.argv) or "none" for step in each.steps)}
            for each in all_profiles.values()]


def tool_rows():
    return [{"tool": tool, "version": version or "not installed",
             "what helps": None if version else f"apt-get install {doctor.TOOLS[tool][2]}"}
            for tool, version in doctor.Machine.tool_versions().items()]


def show_commands(plan, profile, entrants):
    """Prints every command line of a run, the server's and the client's."""
    cells = len(plan.cells)
    print(f"# {profile.id}: {cells} cells in {plan.blocks} blocks; server on processors "
          f"{plan.server_cpus}, client on {plan.client_cpus}")
    port = profile.port or "PORT"
    words = profiles.words(profile.host, port, "RAW", len(plan.client_cpus))
    for entry, entrant in zip(plan.entrants, entrants):
        if not entry["installed"]:
            print(f"# {entry['id']}: not installed: {entry['reason']}; {entry['cure']}")
        elif hasattr(entrant, "launch"):
            for process in entrant.processes:
                argv = entrant.fill(process.argv, host="127.0.0.1", port=str(port), run="RUN",
                                    cores=str(len(plan.server_cpus)), body=profile.body,
                                    cpus=",".join(map(str, plan.server_cpus)))
                print(f"{entry['id']}: {shlex.join(argv)}")
    for step in profile.steps:
        if step.argv:
            print(f"client {step.id}: {' '.join(profiles.client_argv(step, words))}")

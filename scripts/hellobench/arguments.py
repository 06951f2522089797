# SPDX-License-Identifier: MIT
"""The command line of scripts/bench: verbs, options, and help that teaches."""

import argparse
import pathlib

from hellobench import VERSION
from hellobench.report import FORMATS

EPILOG = """\
examples:
  scripts/bench doctor                             what on this machine would spoil a measurement?
  scripts/bench list                               entrants, profiles and tools, and what is missing
  scripts/bench install go-gin express             let package managers fetch and build entrants
  scripts/bench run smoke                          does everything work here? (a minute)
  scripts/bench run article-frameworks --quick     an article's benchmark, sized for 2 processors
  scripts/bench run peak --entrants hello-uring,go-nethttp,nginx-return
  scripts/bench run peak --attach mine=http://127.0.0.1:9000/,4711
  scripts/bench resume build/bench/peak-...        go on where a run was broken off
  scripts/bench report build/bench/peak-...        write its reports again
  scripts/bench compare OLD NEW                    is NEW slower than OLD?
  ab -n 1000 -c 10 URL | scripts/bench parse --tool ab -

exit status:
  0  done                                 5  an entrant failed `verify`
  1  an error of the harness              6  the machine is unfit (doctor --strict)
  2  bad usage, profile or entrant file   7  an entrant is not installed
  3  `compare` found a regression         129, 130, 143  broken off; `resume` goes on
  4  done, but some cells are invalid

No command needs root. `install` uses sudo for apt packages where you are not root, and says so.
"""


def parse(argv):
    return make_parser().parse_args(argv)


def make_parser():
    parser = argparse.ArgumentParser(
        prog="scripts/bench", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Benchmarks of hello-world HTTP servers, with numbers that can be checked.")
    parser.add_argument("--version", action="version", version=f"hellobench {VERSION}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    add_looking(verbs)
    add_measuring(verbs)
    add_reading(verbs)
    return parser


def verb(verbs, name, text, more=""):
    return verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}. {more}")


def add_looking(verbs):
    parser = verb(verbs, "list", "show entrants, profiles and tools",
                  "For an entrant that is not installed: the reason and the command that helps.")
    parser.add_argument("what", nargs="?", choices=("entrants", "profiles", "tools"))
    parser.add_argument("--json", action="store_true")

    parser = verb(verbs, "doctor", "examine the machine",
                  "Each line has a value, a verdict and, where it helps, what to do.")
    parser.add_argument("--strict", action="store_true", help="exit 6 if anything is unfit")
    parser.add_argument("--json", action="store_true")

    parser = verb(verbs, "install", "install entrants by their package managers",
                  "Builds go into build/entrants/; apt packages need root or sudo.")
    parser.add_argument("entrants", nargs="+", metavar="ENTRANT", help="or: all")
    parser.add_argument("--dry-run", action="store_true", help="only print the commands")

    parser = verb(verbs, "verify", "start entrants and check how they answer",
                  "Wrong status, body or framing disqualifies; the rest is told as traits.")
    parser.add_argument("entrants", nargs="+", metavar="ENTRANT", help="or: installed")
    parser.add_argument("--profile", default="peak", help="whose body to expect; default: peak")
    parser.add_argument("--json", action="store_true")


def add_measuring(verbs):
    parser = verb(verbs, "run", "measure a profile",
                  "Writes plan, journal, raw output and reports into a new folder.")
    parser.add_argument("profile", help="see `list profiles`")
    parser.add_argument("--quick", action="store_true", help="the size for 2 processors")
    parser.add_argument("--entrants", metavar="A,B", help="default: those of the profile")
    parser.add_argument("--attach", action="append", default=[], metavar="NAME=URL[,PID]",
                        help="also a server that you started on a loopback address; with its "
                             "process its CPU and memory are measured too")
    parser.add_argument("--baseline", metavar="ENTRANT", help="default: the first entrant")
    parser.add_argument("--blocks", type=positive, help="repeats; default: the profile's")
    parser.add_argument("--topology", choices=("shared", "pinned"),
                        help="server and client on the same processors, or each on its own")
    parser.add_argument("--server-cpus", type=cpu_list, metavar="LIST", help="such as 0 or 0-3")
    parser.add_argument("--client-cpus", type=cpu_list, metavar="LIST")
    parser.add_argument("--sysctl", choices=("default", "recommended", "published"),
                        help="in two network namespaces of the run's own, with that list of "
                             "kernel settings (see sysctl/); needs no root")
    parser.add_argument("--port", type=port, help="default: the profile's, or a free one")
    parser.add_argument("--seed", type=int, default=1, help="of the random order; default: 1")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        help="default: build/bench/PROFILE-TIME")
    parser.add_argument("--dry-run", action="store_true",
                        help="print every command line, measure nothing")
    add_output(parser)

    parser = verb(verbs, "resume", "go on with a run that was broken off",
                  "What is in its journal is not measured again.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--force", action="store_true",
                        help="even if the server or the harness has changed since")
    add_output(parser)


def add_output(parser):
    parser.add_argument("--format", default=",".join(FORMATS), metavar="LIST", type=formats,
                        help="reports to write; default: %(default)s")
    parser.add_argument("--ui", choices=("auto", "live", "plain", "json", "quiet"), default="auto",
                        help="auto: live on a terminal, else plain")


def add_reading(verbs):
    parser = verb(verbs, "parse", "read the output of a load generator",
                  "Prints it as JSON, with the problems it shows. Also output of others.")
    parser.add_argument("--tool", required=True, help="ab, hey, wrk, h2load, oha, ...")
    parser.add_argument("file", help="-: standard input")
    parser.add_argument("--stderr", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--status", type=int, help="the tool's exit status, if known")

    parser = verb(verbs, "report", "write the reports of a results folder",
                  "From its plan and journal alone; nothing is measured.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--format", default=",".join(FORMATS), metavar="LIST", type=formats,
                        help="default: %(default)s")

    parser = verb(verbs, "compare", "compare two results folders",
                  "Exit status 3 if the new one is worse beyond the margin.")
    parser.add_argument("base", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--metric", default="rps,cpu.server_us_per_req", metavar="LIST")
    parser.add_argument("--margin", default="2%", type=share)
    parser.add_argument("--json", action="store_true")


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def port(text):
    value = positive(text)
    if value > 65535:
        raise argparse.ArgumentTypeError("must be at most 65535")
    return value


def formats(text):
    """"md,csv" as ("md", "csv")"""
    unknown = set(text.split(",")) - set(FORMATS)
    if unknown:
        raise argparse.ArgumentTypeError(f"no {', '.join(sorted(unknown))}; there are "
                                         f"{', '.join(FORMATS)}")
    return tuple(text.split(","))


def share(text):
    """"2%" or "0.02" as 0.02"""
    value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError("a share from 0 % to below 100 %, such as 2%")
    return value


def cpu_list(text):
    """"0,2-3" as [0, 2, 3]"""
    cpus = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    if not cpus:
        raise argparse.ArgumentTypeError("no processor named")
    return sorted(cpus)

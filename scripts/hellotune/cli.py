# SPDX-License-Identifier: MIT
"""The command line of scripts/tune: one function per verb, each returning the exit status."""

import argparse
import dataclasses
import json
import os
import sys

from hellotune import compare, containers, explain, profiles, streams, transaction, watch
from hellotune.compare import OK, SKIPPED
from hellotune.kernel_keys import KeyTree, WriteError, satisfied
from hellotune.persist import BootFile, Owner, PersistError
from hellotune.state import Busy, StateError, Store
from hellotune.sysctl_files import ParseError
from hellotune.transaction import Outcome

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_IMPOSSIBLE, EXIT_BUSY, EXIT_LOSS = range(6)
COLOURS = {"good": "32", "bad": "31", "quiet": "2"}
GOOD = (Outcome.ALREADY, Outcome.WRITTEN, Outcome.RESTORED, Outcome.WRITE)
BAD = (Outcome.FAILED, Outcome.IMPOSSIBLE, Outcome.KEPT)

EPILOG = """\
exit status: 0 done, or as wanted; 1 a value differs, the change failed and was taken back, or what
we say can't be written (what is done stays done); 2 bad usage, or a bad file; 3 not possible here:
nothing was changed (with --keep-going: only what could be); 4 another tune is at work; 5 watch
--strict: a loss counter moved. Else watch's is the command's: 128 + N for signal N, 127 not found.

environment: TUNE_SYSCTL_DIR where the profiles are (default: sysctl/); TUNE_STATE_DIR where apply
keeps what revert needs (default: /run/tune for root, else $XDG_RUNTIME_DIR/tune); TUNE_ROOT a
folder in the place of / (for tests); NO_COLOR.

Only apply and revert change anything: keys below /proc/sys, their state file and, with --persist,
/etc/sysctl.d/60-hello-uring.conf; never /etc/sysctl.conf."""


class Session:
    """What every verb needs to know about where it is."""

    def __init__(self):
        self.tree = KeyTree.from_environment()
        self.place = containers.Place.detect(self.tree)

    def store(self):
        return Store(self.tree.root, os.environ)

    def boot_file(self, store):
        return BootFile(self.tree.root, store.identity)


def main(arguments=None):
    streams.make_usable()
    options = parser().parse_args(arguments)
    try:
        status = options.verb(options, Session())
        sys.stdout.flush()
        return status
    except (ParseError, profiles.UnknownProfile, explain.NotExplained) as error:
        return complain(error, EXIT_USAGE)
    except Busy as error:
        return complain(error, EXIT_BUSY)
    except (StateError, PersistError) as error:
        return complain(error, EXIT_IMPOSSIBLE)
    except BrokenPipeError:
        # Who read our output has gone; what was to be done is done. Python must not try again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except OSError as error:
        return complain(error, EXIT_FAILED)


def parser():
    top = argparse.ArgumentParser(
        prog="tune", description="Kernel settings for a server and its load generator: what is,"
        " what should be, and the way there and back.", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = top.add_subparsers(required=True, metavar="VERB")

    def add(name, verb, text, names=None):
        one = verbs.add_parser(name, help=text, description=text)
        one.set_defaults(verb=verb)
        if names:
            one.add_argument("profiles", nargs="*", metavar="PROFILE", help=names)
        return one

    choice = "server, client, verify, published, or a file"
    applied = f"{choice}; default: what was applied, and verify"
    show = add("show", do_show, "each key: now, wanted, at boot", f"{choice}; default: all but the"
               " published list")
    diff = add("diff", do_diff, "the keys that are not as wanted", applied)
    verify = add("verify", do_verify, "check all keys, and what holds at boot", applied)
    for one in (show, diff, verify):
        one.add_argument("--json", action="store_true", help="for programs")
    apply = add("apply", do_apply, "set all keys, or none", f"{choice}; default: server")
    apply.add_argument("--dry-run", action="store_true", help="say what would be done")
    apply.add_argument("--keep-going", action="store_true", help="set what can be set")
    apply.add_argument("--persist", action="store_true", help="also at boot")
    apply.add_argument("--global", dest="allow_global", action="store_true",
                       help="in a container or namespace, also keys of the whole machine")
    revert = add("revert", do_revert, "give all keys back the values from before apply")
    revert.add_argument("--force", action="store_true",
                        help="also those that somebody else has changed since")
    about = add("explain", do_explain, "what a key does, from the reference and live")
    about.add_argument("key", nargs="?", metavar="KEY[=VALUE]")
    about.add_argument("--all", action="store_true", help="all keys of the reference")
    add("docker-args", do_docker_args, "options for docker run and podman run",
        f"{choice}; default: server")
    watching = add("watch", do_watch, "run a command; which counters moved, and what that means")
    watching.add_argument("--strict", action="store_true", help="exit 5 if a loss counter moved")
    watching.add_argument("--all", action="store_true", help="also counters without a meaning")
    watching.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    return top


def complain(text, status):
    tell(f"tune: {text}")
    return status


def tell(text):
    sys.stdout.flush()  # in the order in which it was said, also when both go into one file
    print(text, file=sys.stderr)


def paint(text, colour):
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"\033[{COLOURS[colour]}m{text}\033[0m"


def checked_settings(options, store):
    """The profiles named, or what was applied, and the lines that are only checked."""
    names = options.profiles or [*store.load().profiles, profiles.CHECKED]
    return profiles.load_all(names)


def do_show(options, session):
    store = session.store()
    settings = profiles.load_all(options.profiles or profiles.SHOWN)
    found = compare.rows(settings, session.tree, session.place)
    compare.add_boot(found, session.tree.root)
    around = compare.environment(session.tree, session.place, store, session.boot_file(store))
    if options.json:
        print_json({"environment": around, "keys": as_dicts(found)})
        return EXIT_OK
    for name, text in around.items():
        print(f"{name:<18} {text}")
    print()
    for row in found:
        print_row(row)
        print(f"{'':10}{row.scope}; at boot: {row.boot or 'no file sets it'}")
    return EXIT_OK


def do_diff(options, session):
    store = session.store()
    settings = checked_settings(options, store)
    found = [row for row in compare.rows(settings, session.tree, session.place) if not row.good]
    if options.json:
        print_json({"keys": as_dicts(found), "same": not found})
        return EXIT_FAILED if found else EXIT_OK
    for row in found:
        print(paint(f"- {row.key} = {shown(row.current)}", "bad"))
        print(paint(f"+ {row.key} {sign(row)} {row.wanted}", "good")
              + (f"   # {row.reason}" if row.reason else ""))
    if not options.profiles and not store.load().profiles:
        tell("nothing was applied here; what apply would change: tune diff server")
    return EXIT_FAILED if found else EXIT_OK


def do_verify(options, session):
    store = session.store()
    settings = checked_settings(options, store)
    found = compare.rows(settings, session.tree, session.place)
    conflicts = compare.boot_conflicts(settings, session.tree.root, session.boot_file(store))
    bad = sum(not row.good for row in found) + len(conflicts)
    if options.json:
        print_json({"keys": as_dicts(found), "boot": conflicts, "ok": not bad})
        return EXIT_FAILED if bad else EXIT_OK
    for row in found:
        print_row(row)
    for text in conflicts:
        print(paint(f"{'AT BOOT':<10}", "bad") + text)
    print(f"{len(found)} keys checked, {bad} not as wanted" if bad else
          f"{len(found)} keys checked, all as wanted")
    return EXIT_FAILED if bad else EXIT_OK


def print_row(row):
    label = {OK: "ok", SKIPPED: "skipped"}.get(row.status, row.status.upper())
    colour = {OK: "good", SKIPPED: "quiet"}.get(row.status, "bad")
    text = f"{row.key} = {shown(row.current)}"
    if row.status != OK:
        text += f"   wanted {sign(row)} {row.wanted}" + (f"; {row.reason}" if row.reason else "")
    print(paint(f"{label:<10}", colour) + text)


def shown(current):
    return "?" if current is None else current or "(empty)"


def sign(row):
    return {"min": ">=", "merge": "+="}.get(row.compare, "=")


def as_dicts(found):
    return [dataclasses.asdict(row) for row in found]


def print_json(value):
    print(json.dumps(value, indent=2))


def do_apply(options, session):
    names = profiles.full_names(options.profiles or [profiles.DEFAULT])
    settings = profiles.load_all(names)
    store = session.store()  # first: without /proc every key would look absent

    def planned():
        return transaction.plan(settings, session.tree, session.place, options.allow_global)

    steps = planned()
    if not steps:
        print("nothing to set: these lines are only checked (tune verify)")
        return EXIT_OK
    if impossible(steps) and not options.keep_going:
        print_steps(steps)
        return refuse(session, settings, steps)
    own = session.boot_file(store)
    if options.persist:
        own.check_writable()
    if options.dry_run:
        print_steps(steps)
        if options.persist:
            print(f"{Outcome.WRITE.value:<17}{own.path}")
        return EXIT_IMPOSSIBLE if impossible(steps) else EXIT_OK
    try:
        with store.locked() as folder:
            steps = planned()  # again: before we had the lock somebody else may have written
            return carry_out(options, session, store, folder, steps, names)
    except StateError:
        if options.persist or any(step.outcome is Outcome.WRITE for step in steps):
            raise
        print_steps(steps)  # nothing to write, so nothing to remember either
        return EXIT_OK


def carry_out(options, session, store, folder, steps, names):
    own = session.boot_file(store)
    run = transaction.Apply(session.tree, store, folder, steps, options.keep_going)

    def finish(state):
        if options.persist:
            own.write(values_in_force(state, session.tree))

    try:
        run.run(names, finish)
    except (WriteError, transaction.Interrupted, OSError) as error:
        print_steps(steps)
        return complain(f"{error}; all keys of this run have their values from before, unless a"
                        " line above says otherwise", EXIT_FAILED)
    print_steps(steps)
    if any(step.outcome is Outcome.WRITTEN for step in steps):
        for note in session.place.notes():
            tell(f"note: {note}")
    if options.persist:
        tell_about_boot(session, store, own)
    if any(step.outcome is Outcome.FAILED for step in steps):
        return EXIT_FAILED
    return EXIT_IMPOSSIBLE if impossible(steps) else EXIT_OK


def values_in_force(state, tree):
    """What all applied profiles ask for and the kernel has."""
    wanted = [s for s in profiles.load_all(state.profiles) if not s.verify_only]
    return {s.key: tree.read(s.key) for s in wanted if satisfied(s, tree.read(s.key))}


def tell_about_boot(session, store, own):
    tell(f"note: {own.path} sets them at boot")
    if not session.place.initial_netns or session.place.container:
        tell("note: boot files set the keys of the initial namespace they are read in, not of this"
             " one")
    wanted = profiles.load_all(store.load().profiles)
    for text in compare.boot_conflicts(wanted, session.tree.root, own):
        tell(f"warning: {text}")


def impossible(steps):
    return any(step.outcome is Outcome.IMPOSSIBLE for step in steps)


def refuse(session, settings, steps):
    accesses = {step.access for step in steps if step.outcome is Outcome.IMPOSSIBLE}
    command = [os.path.abspath(sys.argv[0]), *sys.argv[1:]]
    for line in session.place.remedies(accesses, command, settings):
        tell(f"  {line}")
    if any(step.outcome in (Outcome.WRITE, Outcome.ALREADY) for step in steps):
        tell("  only what can be set: --keep-going")
    return complain("not possible here; nothing was changed", EXIT_IMPOSSIBLE)


def print_steps(steps):
    for step in steps:
        colour = "good" if step.outcome in GOOD else "bad" if step.outcome in BAD else "quiet"
        print(paint(f"{step.outcome.value:<17}", colour) + f"{step.key}: {step.reason}")


def do_revert(options, session):
    store = session.store()
    own = session.boot_file(store)
    state = store.load()
    leftovers = [path for path in store.leftovers() + own.leftovers()
                 if os.access(path.parent, os.W_OK, effective_ids=True)]
    file_to_go = own.owner() in (Owner.OURS, Owner.EDITED)
    if not (state.changes or state.profiles or leftovers or file_to_go):
        print("nothing was applied in this network namespace since boot")
        if store.others():
            tell(f"note: {store.others()[0].parent} has states of other boots or network"
                 " namespaces; they are left alone")
        return EXIT_OK
    steps = transaction.plan_revert(state, session.tree, options.force)
    if impossible(steps):
        print_steps(steps)
        return refuse(session, [], steps)
    if file_to_go and not os.access(own.path.parent, os.W_OK, effective_ids=True):
        return complain(f"{own.path} can't be removed but by root; nothing was changed",
                        EXIT_IMPOSSIBLE)
    with store.locked() as folder:
        steps = transaction.plan_revert(store.load(), session.tree, options.force)
        transaction.revert(steps, session.tree, store, folder)
        cleared, said = clear_boot_file(own, options.force)
        for path in leftovers:
            path.unlink(missing_ok=True)
    print_steps(steps)
    print(said, end="")
    return EXIT_OK if cleared and not any(step.outcome in BAD for step in steps) else EXIT_FAILED


def clear_boot_file(own, force):
    """(whether nothing of ours is left for the next boot, what to say)"""
    if own.removable(force):
        own.remove()
        return True, f"{'removed':<17}{own.path}\n"
    if own.owner() is Owner.EDITED:
        return False, (f"{'kept':<17}{own.path}: somebody else changed it; --force removes it\n")
    return True, ""


def do_explain(options, session):
    if bool(options.key) == options.all:
        return complain("explain KEY, or explain --all", EXIT_USAGE)
    lines = (explain.explain_all(session.tree) if options.all
             else explain.explain(options.key, session.tree))
    print("\n".join(lines))
    return EXIT_OK


def do_docker_args(options, session):
    settings = profiles.load_all(options.profiles or [profiles.DEFAULT])
    arguments, remarks = containers.docker_args(settings)
    print("\n".join(arguments))
    for remark in remarks:
        tell(f"# {remark}")
    return EXIT_OK


def do_watch(options, session):
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        return complain("watch needs a command: tune watch -- COMMAND", EXIT_USAGE)
    try:
        rules = watch.load_table()
    except (OSError, ValueError) as error:
        return complain(error, EXIT_USAGE)
    before = watch.Snapshot.take()
    if not before.values:
        return complain("no counters in /proc/net; is /proc mounted?", EXIT_IMPOSSIBLE)
    status = watch.run(command)
    moved = watch.Snapshot.take() - before
    movements = watch.explain(moved, rules)
    for movement in movements:
        label = "LOSS" if movement.is_loss else "note"
        key = "" if movement.key == "-" else f" [{movement.key}]"
        tell(f"{label} {movement.counter} +{movement.delta}{key}: {movement.meaning}")
    if options.all:
        for name in sorted(set(moved) - {movement.counter for movement in movements}):
            tell(f"     {name} {moved[name]:+}")
    lost = sum(movement.is_loss for movement in movements)
    tell(f"tune: {lost} loss counters moved" if lost else "tune: no loss counter moved")
    return EXIT_LOSS if options.strict and lost else status

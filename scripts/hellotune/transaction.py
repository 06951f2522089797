# SPDX-License-Identifier: MIT
"""Transaction: all keys of a plan, or none of them; and the way back.

Invariants:
  - nothing is written before every key was looked at and the state is on the disk;
  - whatever goes wrong (a value refused, a signal, a full disk), the keys of this run get back the
    values they had, in reverse order, and the state is the one before this run;
  - killed at any point, revert finds for each key the value before the first apply;
  - revert never overwrites a value that is neither ours nor the one before.
"""

import contextlib
import dataclasses
import enum
import re
import signal

from hellotune.kernel_keys import Access, WriteError, same, satisfied, target
from hellotune.state import Change, State
from hellotune.sysctl_files import NUMBER, normalise

# The range of ports must lie above the privileged ones, at any moment: see rank().
PORT_START = "net.ipv4.ip_unprivileged_port_start"
# Writing one of these changes keys that were not asked for, and their values would be lost:
# net/ipv4/devinet.c, net/ipv6/addrconf.c, mm/page-writeback.c, mm/util.c.
COUPLED = re.compile(
    r"net\.ipv4\.(ip_forward|conf\.all\.forwarding)|net\.ipv6\.conf\.all\.(forwarding|disable_ipv6"
    r"|addr_gen_mode|ignore_routes_with_linkdown)|vm\.dirty_(background_)?(bytes|ratio)"
    r"|vm\.overcommit_(kbytes|ratio)")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    pass


class Outcome(enum.Enum):
    ALREADY = "already"
    WRITE = "would be written"
    WRITTEN = "written"
    SKIPPED = "skipped"
    IMPOSSIBLE = "not possible"
    FAILED = "failed"
    ROLLED_BACK = "rolled back"
    RESTORED = "restored"
    KEPT = "kept"


@dataclasses.dataclass
class Step:
    """One key on its way. reason is for people; access for the remedies."""

    key: str
    wanted: str
    outcome: Outcome
    reason: str = ""
    raw: str = ""  # the key's text before this run
    text: str = ""  # what this run writes
    access: Access = Access.OK


class DeferredSignals:
    """Signals wait until we ask: between two writes, never in the middle of the way back."""

    def __init__(self):
        self.caught = None

    def __enter__(self):
        # Those that nohup, or a shell for its background jobs, has us ignore stay ignored.
        self.before = {number: signal.signal(number, self._note) for number in SIGNALS
                       if signal.getsignal(number) is not signal.SIG_IGN}
        return self

    def __exit__(self, *_):
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _note(self, number, _):
        self.caught = number

    def check(self):
        if self.caught is not None:
            raise Interrupted(f"interrupted by {signal.Signals(self.caught).name}")


def plan(settings, tree, place, allow_global):
    """A step per key, in the order of the writes."""
    to_write = [setting for setting in settings if not setting.verify_only]
    return sorted((plan_one(setting, tree, place, allow_global) for setting in to_write), key=rank)


def rank(step):
    """The privileged ports are lowered before the range follows, and raised after it."""
    now, then = normalise(step.raw), normalise(step.text)
    if step.key != PORT_START or not (NUMBER.fullmatch(now) and NUMBER.fullmatch(then)):
        return 0
    return 1 if int(then) > int(now) else -1


def plan_one(setting, tree, place, allow_global):
    access = tree.access(setting.key)
    raw = tree.read_raw(setting.key)
    step = Step(setting.key, setting.value, Outcome.WRITE, raw=raw or "", access=access)
    if raw is not None and satisfied(setting, normalise(raw)):
        step.outcome = Outcome.ALREADY
        step.reason = f"is {normalise(raw)}"
        return step
    if access is not Access.OK:
        step.reason = place.refusal(access, setting.key)
    elif place.changes_machine(setting.key) and not allow_global:
        step.reason = place.refusal_of_global()
    elif COUPLED.fullmatch(setting.key):
        step.reason = "changes other keys too, which revert could not restore; set it by hand"
    elif raw is None:
        step.reason = "can't be read, so it could not be restored"
    if step.reason:
        step.outcome = Outcome.SKIPPED if setting.optional else Outcome.IMPOSSIBLE
        return step
    step.text = target(setting, normalise(raw))
    step.reason = f"{normalise(raw) or '(empty)'} -> {step.text}"
    return step


class Apply:
    """One run of apply, under the store's lock, in its folder."""

    def __init__(self, tree, store, folder, steps, keep_going):
        self.tree, self.store, self.folder = tree, store, folder
        self.steps, self.keep_going = steps, keep_going
        self.before = store.load()
        self.touched = []  # steps whose key may have another value now

    def run(self, profiles, finish):
        """Writes all steps, then calls finish(state), which may still fail."""
        writes = [step for step in self.steps if step.outcome is Outcome.WRITE]
        state = self._announce(profiles, writes)
        with DeferredSignals() as signals:
            try:
                if state != self.before:
                    self.store.save(state, self.folder)
                for step in writes:
                    signals.check()
                    self._write(step, state)
                signals.check()
                self._settle(state)
                finish(state)
            except BaseException:
                self._roll_back()
                raise

    def _announce(self, profiles, writes):
        """The state that is true at every point of this run."""
        state = self.before.copy()
        state.profiles = [name for name in state.profiles if name not in profiles] + profiles
        for step in writes:
            change = state.changes.setdefault(step.key, Change(step.raw, []))
            if step.text not in change.ours:
                change.ours.append(step.text)
        return state

    def _write(self, step, state):
        self.touched.append(step)
        try:
            self.tree.write(step.key, step.text)
            step.outcome = Outcome.WRITTEN
        except WriteError as error:
            step.outcome, step.reason = Outcome.FAILED, str(error)
            if not self.keep_going:
                raise
            self._restore(step)
            self.touched.remove(step)
            self._forget(step.key, state)

    def _restore(self, step):
        if self.tree.access(step.key) is Access.ABSENT:
            return  # it has gone meanwhile, and its value with it
        if self.tree.read_raw(step.key) != step.raw:
            self.tree.write(step.key, step.raw)

    def _forget(self, key, state):
        """With --keep-going a refused key is as if it had not been asked for."""
        earlier = self.before.changes.get(key)
        if earlier is None:
            del state.changes[key]
        else:
            state.changes[key] = earlier

    def _settle(self, state):
        """Of two values of ours the one that is in the key now remains."""
        for step in self.touched:
            state.changes[step.key].ours = [step.text]
        if state != self.before:
            self.store.save(state, self.folder)

    def _roll_back(self):
        stuck = False
        for step in reversed(self.touched):
            try:
                self._restore(step)
                if step.outcome is Outcome.WRITTEN:
                    gone = self.tree.access(step.key) is Access.ABSENT
                    step.outcome = Outcome.ROLLED_BACK
                    step.reason = "has gone" if gone else f"is {normalise(step.raw)}"
            except WriteError as error:
                stuck = True
                step.outcome = Outcome.FAILED
                step.reason += f"; and to restore it failed: {error}; try revert"
        if not stuck:
            with contextlib.suppress(OSError):  # the announced state serves revert as well
                self.store.save(self.before, self.folder)


def plan_revert(state, tree, force):
    """A step per key of the state, in the order of the way back."""
    return sorted((plan_revert_one(key, change, tree, force)
                   for key, change in reversed(state.changes.items())), key=rank)


def plan_revert_one(key, change, tree, force):
    original = normalise(change.original)
    step = Step(key, original, Outcome.WRITE, text=change.original, access=tree.access(key))
    now = tree.read(key)
    step.raw = now or ""
    if now is None:
        step.outcome = Outcome.SKIPPED if force else Outcome.KEPT
        step.reason = "can't be read any more; --force forgets it"
    elif same(now, original):
        step.outcome, step.reason = Outcome.ALREADY, f"is {original or '(empty)'}"
    elif force or any(same(now, normalise(text)) for text in change.ours):
        step.reason = f"{now or '(empty)'} -> {original or '(empty)'}"
        step.outcome = Outcome.WRITE if step.access is Access.OK else Outcome.IMPOSSIBLE
    else:
        ours = " or ".join(normalise(text) for text in change.ours)
        step.outcome = Outcome.KEPT
        step.reason = (f"somebody else changed it: it was {original or '(empty)'}, tune wrote"
                       f" {ours}, now it is {now or '(empty)'}; --force restores it")
    return step


def revert(steps, tree, store, folder):
    """Carries the plan out; what could not be restored stays in the state."""
    state = store.load()
    with DeferredSignals():
        for step in steps:
            if step.outcome is Outcome.WRITE:
                restore(step, tree)
        left = [step.key for step in steps if step.outcome in (Outcome.KEPT, Outcome.FAILED)]
        changes = {key: change for key, change in state.changes.items() if key in left}
        store.save(State([], changes), folder)


def restore(step, tree):
    try:
        tree.write(step.key, step.text)
        step.outcome = Outcome.RESTORED
    except WriteError as error:
        step.outcome, step.reason = Outcome.FAILED, str(error)

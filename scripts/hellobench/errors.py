# SPDX-License-Identifier: MIT
"""Errors that a user can cause or cure: the text says what was wrong and what to do about it."""


class HarnessError(Exception):
    exit_status = 1


class UsageError(HarnessError):
    """A wrong option, profile or entrant file."""

    exit_status = 2


class Unfit(HarnessError):
    """The machine can't do what was asked for."""

    exit_status = 6


class NotInstalled(HarnessError):
    exit_status = 7

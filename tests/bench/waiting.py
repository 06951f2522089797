# SPDX-License-Identifier: MIT
"""Tests wait for conditions with a deadline, never for a time."""

import time


def wait_until(condition, seconds=30):
    """The condition's value once it is true. Raises AssertionError if that takes too long."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {seconds} s")
        time.sleep(0.01)
    return value

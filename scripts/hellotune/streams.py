# SPDX-License-Identifier: MIT
"""Standard output and error, made such that printing goes wrong only where somebody has gone."""

import io
import sys


def make_usable():
    """Nothing may stop half way for a closed stream, or a letter that it can't print."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

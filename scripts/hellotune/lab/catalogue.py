# SPDX-License-Identifier: MIT
"""All experiments, in the order in which a reader should meet them."""

from hellotune.lab import experiment
from hellotune.lab import queues, handshakes, time_wait, ports, segments, scopes, hello


def experiments():
    """id -> Experiment; importing the families above has registered them."""
    return experiment.ALL

# SPDX-License-Identifier: MIT
"""`python3 -m hellobench`: what scripts/bench runs."""

import sys

from hellobench import cli

sys.exit(cli.main(sys.argv[1:]))

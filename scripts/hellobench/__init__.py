# SPDX-License-Identifier: MIT
"""hellobench: benchmarks of hello-world HTTP servers whose numbers can be checked.

What runs where: `cli` reads the command line, `runner` measures the cells of a `plan`, `journal`
keeps each of them, `report` writes what they say. `model` holds the words all of them share.
"""

VERSION = "0.1"

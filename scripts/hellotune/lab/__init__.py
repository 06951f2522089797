# SPDX-License-Identifier: MIT
"""hellotune.lab: the reference's claims as experiments, in network namespaces of their own."""

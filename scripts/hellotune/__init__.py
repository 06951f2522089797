# SPDX-License-Identifier: MIT
"""hellotune: what scripts/tune and scripts/tune-lab are made of.

Standard library only. Nothing in here writes below /proc/sys but kernel_keys.KeyTree.write().
"""

# SPDX-License-Identifier: MIT
"""hellotune: what scripts/tune and scripts/tune-lab are made of.

Standard library only. tune changes keys only by kernel_keys.KeyTree.write(), under the rules of
transaction; tune-lab only in namespaces that it makes and that die with it.
"""

# SPDX-License-Identifier: MIT
"""What the tests of tune-lab share: they start the script itself, and say why they skip."""

import json
import pathlib
import subprocess
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED_STATUS = 77
TIMEOUT_SECONDS = 100


def tune_lab(*arguments, checkout=CHECKOUT, **options):
    return subprocess.run([sys.executable, str(checkout / "scripts" / "tune-lab"), *arguments],
                          capture_output=True, text=True, timeout=TIMEOUT_SECONDS, **options)


def expect_to_hold(case, *names, **options):
    """Runs the experiments; skips the test if all of them were skipped."""
    process = tune_lab("run", "--json", *names, **options)
    case.assertIn(process.returncode, (0, 1, SKIPPED_STATUS), process.stderr)
    results = json.loads(process.stdout)
    for result in results:
        wrong = [line for line in result["lines"] if line.get("holds") is False]
        case.assertNotEqual(result["outcome"], "failed", (result["reason"], wrong))
    if process.returncode == SKIPPED_STATUS:
        case.skipTest("; ".join({result["reason"] for result in results}))
    case.assertEqual(process.returncode, 0)
    return results

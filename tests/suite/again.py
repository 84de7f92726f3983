"""`python -m tests.suite.again CODES`: runs the few tests that have failed once more, alone. CODES: of the runs before.

Many tests wait for real servers on two busy cores, and now and then one of them waits in vain. One that passes alone is
named as unsteady, with its first failure above, and fails no build: somebody looks into it. More than a few, and what
fails alone too, do fail it. A run that pytest itself broke off is told with its cause and made once more from the
beginning: nobody knows what it would have found.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.suite.reports import CAUSE

MOST = 15
"""Of some twelve thousand. One server that dies takes the tests of its file with it, so four were too few."""
MOST_CHARACTERS = 8_000
"""Of the cause."""
FAILED = 1
"""pytest's code for tests that failed; larger ones are of a run that broke off."""
INTERRUPTED = 2
"""pytest's code for a run that was ended from outside: by a person, or with a cause by tests/suite/hangs.py."""
BROKE = 3
"""pytest's code for an error of its own: of a plugin, or of a signal that struck outside a test."""
SECOND_RUN = "LONGHAUL_SECOND_RUN"
"""Set for a run that replaces one that broke off, so that it is the last."""


def failed_tests(cache: Path) -> list[str]:
    """Their ids, as pytest has written them down."""
    try:
        return sorted(json.loads((cache / "v/cache/lastfailed").read_text()))
    except (OSError, ValueError):
        return []


def broke_off(cache: Path) -> str:
    """Why pytest broke off, as tests.suite.reports has written it down; told once."""
    try:
        cause = (cache / CAUSE).read_text()
        (cache / CAUSE).unlink()
    except OSError:
        return ""
    return cause[-MOST_CHARACTERS:]


def verdict(codes: list[int], failed: list[str], cause: str = "") -> str:
    """`passed`, `failed`, `again` for the failed tests, or `whole` for all of them. `cause`: why pytest broke off."""
    if not any(codes):
        return "passed"
    broke = max(codes) == BROKE or (max(codes) == INTERRUPTED and cause)
    if broke and SECOND_RUN not in os.environ:
        return "whole"
    return "again" if max(codes) == FAILED and 0 < len(failed) <= MOST else "failed"


def main(codes: list[int], root: Path) -> int:
    failed = failed_tests(root / ".pytest_cache")
    if cause := broke_off(root / ".pytest_cache"):
        print(f"\npytest broke off:\n{cause}", flush=True)
    match verdict(codes, failed, cause):
        case "passed":
            return 0
        case "failed":
            return max(codes)
        case "whole":
            return subprocess.run(
                ["make", "test"], cwd=root, env=os.environ | {SECOND_RUN: "1"}, check=False
            ).returncode
    print(f"\nonce more, alone: {', '.join(failed)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "pytest", "-m", "not chaos", *failed], cwd=root, check=False)
    if done.returncode == 0:
        print(f"unsteady, to be looked into: {', '.join(failed)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main([int(code) for code in sys.argv[1:]], Path(__file__).parents[2]))

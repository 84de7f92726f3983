"""`python -m tests.suite.again CODES`: runs the few tests that have failed once more, alone. CODES: of the runs before.

Many tests wait for real servers on two busy cores, and now and then one of them waits in vain. One that passes alone is
named as unsteady, with its first failure above, and fails no build: somebody looks into it. More than a few, a run that
broke off, and what fails alone too, do fail it.
"""

import json
import subprocess
import sys
from pathlib import Path

MOST = 15
"""Of some twelve thousand. One server that dies takes the tests of its file with it, so four were too few."""
FAILED = 1
"""pytest's code for tests that failed; larger ones are of a run that broke off."""


def failed_tests(cache: Path) -> list[str]:
    """Their ids, as pytest has written them down."""
    try:
        return sorted(json.loads((cache / "v/cache/lastfailed").read_text()))
    except (OSError, ValueError):
        return []


def verdict(codes: list[int], failed: list[str]) -> str:
    """`passed`, `failed`, or `again`."""
    if not any(codes):
        return "passed"
    return "again" if max(codes) == FAILED and 0 < len(failed) <= MOST else "failed"


def main(codes: list[int], root: Path) -> int:
    failed = failed_tests(root / ".pytest_cache")
    if (found := verdict(codes, failed)) != "again":
        return 0 if found == "passed" else max(codes)
    print(f"\nonce more, alone: {', '.join(failed)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "pytest", "-m", "not chaos", *failed], cwd=root, check=False)
    if done.returncode == 0:
        print(f"unsteady, to be looked into: {', '.join(failed)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main([int(code) for code in sys.argv[1:]], Path(__file__).parents[2]))

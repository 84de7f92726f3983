"""What a worker's process asks of Python itself."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
ASK = """
import gc
import weakref

from longhaul.starter.worker_host.own_process import collect_rarely


class Circle:
    def __init__(self):
        self.itself = self


collect_rarely()
frozen, (often, *_) = gc.get_freeze_count(), gc.get_threshold()
first = weakref.ref(Circle())
for _ in range(20_000):
    Circle()
print(frozen > 1_000, often > 700, first() is None)
"""


def test_what_was_made_at_the_start_is_passed_over_and_garbage_is_still_found() -> None:
    asked = subprocess.run([sys.executable, "-c", ASK], cwd=REPOSITORY, capture_output=True, text=True, check=True)

    assert asked.stdout == "True True True\n"

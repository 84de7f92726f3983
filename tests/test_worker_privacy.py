"""The worker's memory holds the keys: nothing that an agent runs may read it through /proc."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
ASK = (
    "import ctypes; from starter.own_process import keep_to_itself; keep_to_itself(); "
    "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and prctl are Linux's")
def test_a_worker_is_closed_to_other_processes_of_its_user() -> None:
    asked = subprocess.run([sys.executable, "-c", ASK], cwd=REPOSITORY, capture_output=True, text=True, check=True)

    assert asked.stdout == "0\n"

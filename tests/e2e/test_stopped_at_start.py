"""Ctrl-C while a command or a worker still loads its libraries: it ends, and shows nobody where in them it was."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.processes import ROOT
from tests.e2e.warm_cli import BYTECODE
from tests.limits import SURE_SECONDS

STALLS = """
import pathlib, sys, time


class Stalls:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            pathlib.Path({started!r}).touch()
            time.sleep(600)


sys.meta_path.insert(0, Stalls())
"""
CONSOLE_SCRIPT = "from longhaul.starter.cli.entry_point import main; main()"


@pytest.mark.parametrize(
    ("command", "module", "status"),
    [
        (("-c", CONSOLE_SCRIPT), "typer", 130),
        (("-m", "longhaul.worker"), "longhaul.starter.settings", -signal.SIGINT),
    ],
    ids=["a command", "a worker"],
)
def test_ctrl_c_while_it_loads_shows_no_traceback(
    tmp_path: Path, command: tuple[str, ...], module: str, status: int
) -> None:
    started = tmp_path / "started"
    (tmp_path / "sitecustomize.py").write_text(STALLS.format(module=module, started=str(started)))
    environment = {**os.environ, **BYTECODE, "PYTHONPATH": f"{tmp_path}:{ROOT}"}

    with subprocess.Popen(
        [sys.executable, *command], env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        until = time.monotonic() + SURE_SECONDS
        while not started.exists():
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=SURE_SECONDS)

    assert (process.returncode, said) == (status, "")

"""A chat within tmux, as its own screen shows it: begun and left at a shell, whose hint is pasted to come back."""

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.conftest import CLI, Cli
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

HINT = re.compile(r"^to come back: (longhaul chat .*)$", re.MULTILINE)
END = "■"
KEY = re.compile(r"[CM]-\w|Enter")


class Tmux:
    """A tmux server of its own with one shell, on whose PATH `longhaul` stands."""

    def __init__(self, program: str, cli: Cli, folder: Path, columns: int) -> None:
        self._tmux = [program, "-L", f"longhaul-{uuid4().hex[:8]}", "-f", os.devnull]
        command = folder / "longhaul"
        command.write_text(f'#!/bin/sh\nexec {shlex.join(CLI)} "$@"\n')
        command.chmod(0o755)
        self._there = cli.environment | {"PATH": f"{folder}:{os.environ['PATH']}", "PS1": "$ "}
        self._there.pop("TERM")  # tmux names itself
        size = ["-x", str(columns), "-y", "30", "-c", str(cli.folder)]
        self("new-session", "-d", *size, "env", "-u", "TMUX_PANE", "bash", "--norc", "--noprofile")

    def __call__(self, *arguments: str) -> str:
        return subprocess.run(
            [*self._tmux, *arguments], env=self._there, capture_output=True, text=True, check=True, timeout=SURE_SECONDS
        ).stdout

    @property
    def shown(self) -> str:
        """With what has scrolled away, and an end mark; lines that tmux broke are whole."""
        lines = self("capture-pane", "-p", "-J", "-S", "-").splitlines()
        return "\n".join(line.rstrip() for line in lines).rstrip() + END

    def steps(self, *steps: tuple[str, str]) -> None:
        """Of each: words that are typed, or a key by tmux's name, and what has to stand there then."""
        for keys, text in steps:
            self("send-keys", *([keys] if KEY.fullmatch(keys) else ["-l", keys]))
            self.until(text)

    def until(self, text: str) -> None:
        deadline = time.monotonic() + SURE_SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} was not shown:\n{self.shown}"
            time.sleep(0.1)

    def pasted(self, text: str) -> None:
        self("set-buffer", text)
        self("paste-buffer", "-p")

    def end(self) -> None:
        self("kill-server")


@pytest.fixture(params=[38, 100])
def tmux(request: pytest.FixtureRequest, cli: Cli, tmp_path: Path) -> Iterator[Tmux]:
    program = shutil.which("tmux")
    if program is None:
        pytest.skip("tmux is not on PATH")
    started = Tmux(program, cli, tmp_path, request.param)
    yield started
    started.end()


def test_a_chat_is_left_and_its_hint_as_it_stands_comes_back(cli: Cli, tmux: Tmux) -> None:
    model = cli.script({"text": "The **lamp** is lit."}, {"text": "Ahoy."}, {"text": "Ahoy."})
    name = f"pier {uuid4().hex[:6]}"

    tmux.pasted(shlex.join(["longhaul", "chat", "--model", model, "--session", name]))
    tmux.steps(
        ("Enter", "Ctrl-D leaves"),
        ("light it", "> light it"),
        ("Enter", "The lamp is lit."),
        ("look", "> look"),
        ("C-j", "> look"),
        ("out", "\nout"),
        ("Enter", "Ahoy."),
        ("C-r", "i-search"),
        ("light", "> light it\n"),
        ("Enter", f"> light it{END}"),
        ("C-c", f"\n>{END}"),
        ("/undo", "/undo"),
        ("Enter", "the last messages:"),
        ("C-d", f"\n${END}"),
    )
    *_, hint = HINT.findall(tmux.shown)  # /undo says how to come back to what it has left
    tmux("clear-history")
    tmux.steps(("clear", "clear"), ("Enter", f"${END}"))
    tmux.pasted(hint)
    tmux.steps(("Enter", "Ctrl-D leaves"), ("hail", "> hail"), ("Enter", "> hail\nAhoy."), ("C-d", f"\n${END}"))
    assert "**" not in tmux.shown, "what is shown again is laid out as it was"

    said = cli("show", shlex.split(hint)[3], "--json").document["transcript"]
    assert [row["content"][0]["text"].strip() for row in said if row["role"] == "user"] == ["light it", "hail"]

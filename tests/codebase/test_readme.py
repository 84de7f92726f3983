"""What README.md tells people to type works: every command and every snippet is run."""

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES, TASK_QUEUE
from tests.e2e.processes import WorkerSettings, worker
from tests.e2e.terminal import Program, at_a_terminal
from tests.limits import SURE_SECONDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODEL = "anthropic:claude-sonnet-4-5"
"""The one thing that the tests replace in what they run, by a scripted model."""
CLI = [sys.executable, "-P", "-m", "longhaul.starter.cli.main"]
LONGHAUL, TEMPORAL = ".venv/bin/longhaul", "temporal"


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands(program: str) -> list[list[str]]:
    """The README's shell lines that start that program, as words."""
    lines = [shlex.split(line, comments=True) for block in fenced("sh") for line in block.splitlines()]
    return [words for words in lines if words[:1] == [program]]


@dataclass(frozen=True)
class Desk:
    """Where a user would sit: a folder with the agent files, a server and a worker."""

    folder: Path
    environment: dict[str, str]
    address: str

    def script(self, *replies: dict[str, Any]) -> str:
        file = self.folder / "script.jsonl"
        file.write_text("\n".join(json.dumps(reply) for reply in replies))
        return f"scripted:{file}"

    async def run(self, *words: str, typed: str = "") -> tuple[int, str]:
        """Exit code and both outputs."""
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=self.folder,
            env=self.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate(typed.encode())
        return process.returncode or 0, said.decode()

    async def longhaul(self, words: Sequence[str]) -> tuple[int, str]:
        return await self.run(*CLI, *words[1:])

    async def decides(self, words: Sequence[str]) -> tuple[int, str]:
        """At a terminal, where it is shown and asked."""
        program, answers = Program(self.environment, self.folder), [("[q] later:", "y")]
        seen = await asyncio.to_thread(at_a_terminal, program, *CLI, *words[1:], answers=answers)
        return seen.code, seen.text


@pytest.fixture
async def desk(temporal_cli: Path, tmp_path: Path) -> AsyncIterator[Desk]:
    """With a server of its own: the README's sessions have names that other tests may use too."""
    folder = tmp_path / "here"
    for name in ("agents", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "greeting.txt").write_text("hello world\n")
    settings = DevServerSettings(
        temporal=temporal_cli, directory=tmp_path / "server", search_attributes=SEARCH_ATTRIBUTES
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "LONGHAUL_"))}
    async with DevServer(settings) as server:
        environment = kept | {
            "TEMPORAL_ADDRESS": server.address,
            "LONGHAUL_DATA_DIR": str(tmp_path / "data"),
            "XDG_DATA_HOME": str(tmp_path / "of-the-user"),
            "PYTHONPATH": str(ROOT),
        }
        crew = WorkerSettings(address=server.address, task_queue=TASK_QUEUE, directory=tmp_path / "worker", tools="")
        async with worker(crew):
            yield Desk(folder, environment, server.address)


def wants_to_edit(call_id: str, old: str, new: str) -> dict[str, Any]:
    arguments = {"file_path": "greeting.txt", "old_string": old, "new_string": new}
    return {"text": "I will.", "tool_calls": [{"id": call_id, "name": "Edit", "input": arguments}]}


def test_every_command_of_the_readme_is_of_a_kind_that_is_run_here() -> None:
    programs = {line.split()[0] for block in fenced("sh") for line in block.splitlines() if line.strip()}
    languages = set(re.findall(r"^```(\w+)$", README, re.MULTILINE))

    assert programs == {"make", LONGHAUL, TEMPORAL}
    assert languages == {"sh", "python", "text"}
    assert [words[1] for words in commands(LONGHAUL)] == ["dev", *ANSWERS]


@pytest.mark.parametrize(
    ("target", "does"),
    [
        ("demo", "dev_server.checkout .venv requirements.lock"),
        ("demo", "-m longhaul.starter.demo"),
        ("test", "dev_server.checkout .venv requirements-dev.lock"),
        ("test", "-m pytest"),
        ("setup", "dev_server.checkout .venv requirements-dev.lock"),
    ],
)
def test_make_has_the_targets_that_the_readme_names(target: str, does: str, tmp_path: Path) -> None:
    assert ["make", target] in commands("make")

    # In a copy without an environment, so that all steps are shown.
    for name in ("Makefile", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    planned = subprocess.run(["make", "-n", target], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert planned.returncode == 0, planned.stderr
    assert does in planned.stdout


def test_no_other_make_target_is_named() -> None:
    assert {words[1] for words in commands("make")} == {"demo", "test", "setup"}


def test_the_command_is_installed_where_the_readme_says() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    assert scripts == {"longhaul": "longhaul.starter.cli.entry_point:main"}


ANSWERS = {
    "trust": (0, "trusted until it changes"),
    "run": (3, "longhaul approve hello toolu_2"),
    "inbox": (0, "toolu_2  Write hello.txt"),
    "approve": (0, "approved Write toolu_2"),
    "show": (0, "seen"),
}
"""Exit code, and something that is shown, of each command in the README's order."""


@pytest.mark.proves("F2")
@pytest.mark.server
async def test_the_commands_do_what_the_readme_says(desk: Desk, temporal_cli: Path) -> None:
    greeting = desk.folder / "hello.txt"

    for words in commands(LONGHAUL):
        if words[1] == "dev":
            continue
        code, shown = await (desk.decides(words) if words[1] == "approve" else desk.longhaul(words))
        assert (code, ANSWERS[words[1]][1] in shown) == (ANSWERS[words[1]][0], True), shown
    await until_it_reads(greeting, "Hello from a durable agent.\n")

    (again,) = [words for words in commands(LONGHAUL) if words[1] == "run"]
    code, shown = await desk.longhaul(again)
    assert (code, "toolu_3" in shown) == (3, True), shown
    ((_, *typed),) = commands(TEMPORAL)
    code, shown = await desk.run(str(temporal_cli), *typed, "--address", desk.address)

    assert code == 0, shown
    await until_it_reads(greeting, "Goodbye from a durable agent.\n")


async def until_it_reads(file: Path, text: str) -> None:
    def wait() -> str:
        deadline = time.monotonic() + SURE_SECONDS
        while (found := file.read_text()) != text and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    assert await asyncio.to_thread(wait) == text


@pytest.mark.server
async def test_dev_serves_until_ctrl_c(temporal_cli: Path, tmp_path: Path) -> None:
    assert [LONGHAUL, "dev"] in commands(LONGHAUL)

    # The README's own ports may be taken on this machine.
    process = await asyncio.create_subprocess_exec(
        *[*CLI, "dev", "--port", "0", "--ui-port", "0", "--data-dir", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "LONGHAUL_TEMPORAL_CLI": str(temporal_cli)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(SURE_SECONDS):
        shown = b""
        while b"polling" not in shown:
            line = await process.stdout.readline()
            assert line, shown
            shown += line
        process.send_signal(signal.SIGINT)

        assert await process.wait() == 0
    assert b"Web UI    http://127.0.0.1:" in shown


@pytest.mark.proves("A1", "F1")
@pytest.mark.server
@pytest.mark.parametrize(("answer", "allowed"), [("y\n", True), ("n\n", False)])
async def test_the_python_client_does_what_the_readme_says(
    desk: Desk, answer: str, allowed: bool, tmp_path: Path
) -> None:
    (program,) = fenced("python")
    assert program.count(MODEL) == 1
    look = {"name": "Bash", "input": {"command": "touch seen"}}
    model = desk.script({"text": "I look.", "tool_calls": [look]}, {"text": "Nothing has changed."})

    code, shown = await desk.run(sys.executable, "-c", program.replace(MODEL, model), typed=answer)

    # The SDK's threads abort the interpreter's exit now and then, after all is done.
    assert code in (0, -signal.SIGABRT), shown
    assert "touch seen" in shown
    assert "Nothing has changed." in shown
    assert await asyncio.to_thread(lambda: any(tmp_path.rglob("seen"))) is allowed


@pytest.mark.proves("F1")
@pytest.mark.server
async def test_the_example_follows_decides_and_can_be_started_again(desk: Desk) -> None:
    remove = {"name": "Bash", "input": {"command": "rm greeting.txt"}}
    model = desk.script(
        wants_to_edit("toolu_1", "world", "moon"),
        {"text": "And away with it.", "tool_calls": [remove]},
        {"text": "I may not.", "expect": {"last_contains": "only edits, please"}},
    )
    example = [sys.executable, str(ROOT / "examples" / "follow.py"), model, "Greet the moon"]

    code, shown = await desk.run(*example)
    again_code, shown_again = await desk.run(*example)

    assert (code, again_code) == (0, 0), shown + shown_again
    assert "I may not." in shown
    assert "+hello moon" in shown
    assert events_in(shown_again) == events_in(shown)
    assert (desk.folder / "greeting.txt").read_text() == "hello moon\n"


def events_in(shown: str) -> list[str]:
    """The recorded ones: what is live depends on when one looks, and has no number."""
    return [line for line in shown.splitlines() if re.match(r" +[1-9]\d* [A-Z_]+", line)]

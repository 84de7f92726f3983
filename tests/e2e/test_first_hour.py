"""The pages for the first hour, done as they say: their files are written, and their commands typed in their order."""

import asyncio
import os
import re
import shlex
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from longhaul.starter.dev_server.processes import bound_to_parent
from tests.e2e.terminal import Program, at_a_terminal
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
FIRST = (ROOT / "docs" / "first-agent.md").read_text(encoding="utf-8")
TESTING = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
SHOWS = {
    "trust": (0, "trusted until it changes"),
    "run": (3, "longhaul approve lamps"),
    "inbox": (0, "order"),
    "approve": (0, "approved order"),
    "show": (0, "Two lamps are ordered"),
}
"""Exit code and something that is shown, of each command of the page."""


def write_files(page: str, folder: Path) -> None:
    """Those that the page shows under a name."""
    for name, text in re.findall(r'(?ms)^```\w+ title="([^"]+)"\n(.*?)^```$', page):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def typed(page: str) -> list[list[str]]:
    lines = [line for block in re.findall(r"(?ms)^```sh\n(.*?)^```$", page) for line in block.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.fixture
def environment(temporal_cli: Path, tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "LONGHAUL_"))}
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "longhaul").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m longhaul.starter.cli.main "$@"\n')
    (programs / "longhaul").chmod(0o755)
    return kept | {
        "PATH": f"{programs}:{kept['PATH']}",
        "PYTHONPATH": str(ROOT),
        "LONGHAUL_TEMPORAL_CLI": str(temporal_cli),
        "LONGHAUL_DATA_DIR": str(tmp_path / "data"),
        "XDG_DATA_HOME": str(tmp_path / "of-the-user"),
    }


async def run(words: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *words, cwd=folder, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


@asynccontextmanager
async def developing(words: list[str], folder: Path, environment: dict[str, str]) -> AsyncIterator[str]:
    """The page's `NAME=VALUE … longhaul dev`, on ports that are free; the address of its server."""
    named = dict(word.split("=", 1) for word in words if "=" in word)
    assert words[len(named) :] == ["longhaul", "dev"]
    process: Process = await asyncio.create_subprocess_exec(
        *bound_to_parent(["longhaul", "dev", "--port", "0", "--ui-port", "0", "--data-dir", str(folder / "data")]),
        cwd=folder,
        env=environment | named,
        stdout=PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(SURE_SECONDS):
            first = await process.stdout.readline()
            while b"polling" not in await process.stdout.readline():
                assert process.returncode is None
        yield first.split()[-1].decode()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def test_the_first_agent_does_what_its_page_says(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    write_files(FIRST, folder)
    (dev,) = (words for words in typed(FIRST) if words[-1] == "dev")
    commands = [
        words for words in typed(FIRST) if words[0] == "longhaul" and "anthropic:claude-sonnet-4-5" not in words
    ]

    assert [words[1] for words in commands] == list(SHOWS)
    async with developing(dev, folder, environment) as address:
        for words in commands:
            there = environment | {"TEMPORAL_ADDRESS": address}
            if words[1] == "approve":
                answers = [("[q] later:", "y")]
                seen = await asyncio.to_thread(at_a_terminal, Program(there, folder), *words, answers=answers)
                code, shown = seen.code, seen.text
            else:
                code, shown = await run(words, folder, there)
            assert (code, SHOWS[words[1]][1] in shown) == (SHOWS[words[1]][0], True), shown


async def test_the_tests_of_the_page_about_testing_pass(
    environment: dict[str, str], time_server: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    write_files(FIRST, folder)
    write_files(TESTING, folder)
    (folder / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture(scope='session')\ndef longhaul_time_server_path() -> str:\n"
        f"    return {str(time_server)!r}\n"
    )
    ((_, *pytest_alone),) = typed(TESTING)

    # Without a plugin for asyncio, and with one.
    for others in (["-p", "no:asyncio"], []):
        code, shown = await run([sys.executable, *pytest_alone, *others, "-p", "no:randomly"], folder, environment)

        assert (code, "4 passed" in shown) == (0, True), shown
    first = re.search(r"(?ms)^from longhaul.testing.*?(?=^async def)(.*?)^```$", TESTING)
    assert first is not None
    assert len(first[0].splitlines()) <= 15


async def test_the_plugin_loads_nothing_of_ours_where_nobody_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n\n\ndef test_of_somebody_else() -> None:\n"
        "    heavy = ('longhaul', 'temporalio', 'pydantic')\n"
        "    ours = sorted(name for name in sys.modules if name.split('.')[0] in heavy)\n"
        "    assert ours == ['longhaul', 'longhaul.pytest_plugin']\n"
    )

    code, shown = await run([sys.executable, "-m", "pytest", "-p", "no:randomly"], tmp_path, {**os.environ})

    assert (code, "1 passed" in shown) == (0, True), shown

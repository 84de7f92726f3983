"""The pages about agents, done as they say: their files are written, and their commands typed in their order."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES, TASK_QUEUE
from tests.e2e.conftest import Cli
from tests.e2e.processes import WorkerSettings, environment, worker
from tests.e2e.test_first_hour import typed, write_files
from tests.e2e.warm_cli import WarmCli

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
MODEL = "anthropic:claude-sonnet-4-5"
OWN, ELSEWHERE = "~/.config/longhaul/longhaul.toml", "/srv/notes"
"""With the model the only things that the test replaces in what a page says."""
VERDICT = {"severity": "low", "lines": [7]}
TASKS = [{"name": "Agent", "input": {"agent": name, "task": "Look"}} for name in ("scout", "fixer")]


def says(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"text": text, "tool_calls": [*calls]}


SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "agents/structured-output": [says("", {"name": "generate_response", "input": VERDICT})],
    "agents/schedules": [
        says("", {"name": "wait_for", "input": {"event": "deployed", "timeout": "2d"}}),
        says("It is out."),
    ],
    "agents/subagents": [says("I split it.", *TASKS), says("It is fixed.")],
    "people/state": [says("", {"name": "plan_exit", "input": {"plan": "1. Look"}}), says("It is split.")],
}
"""What the model says in each session of the page; of those that name one."""
SHOWS: dict[str, list[tuple[str, int, str]]] = {
    "agents/structured-output": [("run", 0, '"structured_output": {"severity": "low", "lines": [7]}')],
    "agents/schedules": [
        ("schedule add morning", 0, "'0 7 * * 1-5' in Europe/Berlin"),
        ("schedule add tide", 0, "each run uses session 'harbour'"),
        ("schedule list", 0, "tide, next in"),
        ("schedule show morning", 0, "asks coder"),
        ("schedule trigger morning", 0, "asked"),
        ("schedule pause morning", 0, "morning is paused"),
        ("schedule resume morning", 0, "morning is resumed"),
        ("schedule remove morning", 0, "morning is removed"),
        ("schedule apply caretaker", 0, "level: added"),
        ("run", 3, "deployed"),
        ("notify nightly deployed", 0, ""),
    ],
    "agents/subagents": [("run", 0, "It is fixed."), ("show mend", 0, "sub-agent scout: success")],
    "agents/memory": [
        ("memory list", 0, ""),
        ("memory delete 12 15", 1, "no memories of the user 'ana'"),
        ("memory delete --all", 0, "deleted: 0"),
        ("knowledge add handbook", 0, "added: 3"),
        ("knowledge add handbook ../pilot/docs --as pilot", 0, "added: 1"),
        ("knowledge list", 0, "pilot/tides.md"),
        ("knowledge search handbook", 0, "High water is at six"),
        ("knowledge delete handbook", 0, "deleted: 1"),
    ],
    "agents/mcp": [
        ("mcp list", 0, "mcp__notes__read  once, ask"),
        ("mcp list --agent reader", 0, "mcp__notes__read  once, ask"),
        ("mcp list", 0, "mcp__notes__read  once, ask"),
        ("mcp list --agent reader --json", 0, '"answers": true'),
    ],
    "people/state": [("run", 3, "a plan, to be approved"), ("approve split", 0, "approved plan_exit")],
}
"""How each command of a page begins, in its order, its exit code, and something that is shown."""


@pytest.fixture
async def desk(temporal_cli: Path, tmp_path: Path, warm_cli: WarmCli) -> AsyncIterator[Cli]:
    """In a folder of its own, with a server of its own: the pages' sessions and schedules have names that other tests
    use too."""
    server = DevServerSettings(
        temporal=temporal_cli, directory=tmp_path / "server", search_attributes=SEARCH_ATTRIBUTES
    )
    async with DevServer(server) as running:
        crew = WorkerSettings(address=running.address, task_queue=TASK_QUEUE, directory=tmp_path / "data", tools="")
        further = {
            "XDG_CONFIG_HOME": str(tmp_path / ".config"),
            "LONGHAUL_TRUST": "1",
            "LONGHAUL_MODEL": f"scripted:{tmp_path}/shop/script.jsonl",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        for shop in ("shop", "pilot"):
            (tmp_path / shop / "docs").mkdir(parents=True)
        async with worker(crew):
            yield Cli(environment(crew) | further, tmp_path / "shop", warm_cli)


def lay_out(folder: Path, text: str) -> None:
    """What the pages take to be there, and the files that this one shows."""
    shutil.copytree(ROOT / "agents", folder / "agents", dirs_exist_ok=True)
    for name, said in {
        "docs/tides.md": "High water is at six.",
        "docs/old.md": "Ebb.",
        "../pilot/docs/tides.md": "Slack.",
        "CONTRIBUTING.md": "Do.",
    }.items():
        (folder / name).write_text(said)
    write_files(text.replace(f'"{OWN}"', '"../.config/longhaul/longhaul.toml"').replace(ELSEWHERE, str(folder)), folder)


async def test_the_pages_about_agents_do_what_they_say(desk: Cli) -> None:
    for page, shows in SHOWS.items():
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        lay_out(desk.folder, text)
        model = desk.script(*SCRIPTS.get(page, ()))
        lines = [words[1:] for words in typed(text) if words[0] == "longhaul" and "S" not in words]

        assert len(lines) == len(shows), (page, lines)
        for words, (begins, code, shown) in zip(lines, shows, strict=True):
            assert " ".join(words).startswith(begins)
            answer = await asyncio.to_thread(desk, *(model if word == MODEL else word for word in words))
            assert (answer.code, shown in answer.out + answer.err) == (code, True), (page, begins, answer)


async def test_the_page_about_deleting_leaves_nothing_of_the_user(desk: Cli) -> None:
    lay_out(desk.folder, "")
    start = ("--user", "ana", "--agent", "coder", "--model", desk.script(says("It is calm.")))
    for words in (
        ("run", "Is it calm?", "--session", "nightly", *start),
        ("hub", "start", "review", "nightly", "--user", "ana"),
        ("rules", "add", "--allow", "Bash(make:*)", "--user", "ana"),
    ):
        answer = await asyncio.to_thread(desk, *words)
        assert answer.code == 0, (words, answer)
    (rule,) = json.loads((await asyncio.to_thread(desk, "rules", "list", "--user", "ana", "--json")).out)

    lines = [line[1:] for line in typed((ROOT / "docs/operating/deleting.md").read_text(encoding="utf-8"))]
    for line in lines:
        answer = await asyncio.to_thread(desk, *(rule["id"] if word == "RULE" else word for word in line))
        assert answer.code == 0, (line, answer)

    (exported,) = (desk.folder / "ana-export").iterdir()
    assert "It is calm." in exported.read_text(encoding="utf-8")
    left = [await asyncio.to_thread(desk, *line) for line in lines if line[1] in ("export", "list")]
    assert [answer.out.splitlines()[-1] for answer in left] == [
        "0 exported, 0 failed",
        "there are no memories of the user 'ana'",
        "no rules",
        "no hubs",
    ]

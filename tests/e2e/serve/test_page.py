"""What docs/people/http.md tells people to type works: every line is run, in its order."""

import asyncio
import json
import re
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import CLI
from tests.e2e.serving import Reader, serving

pytestmark = pytest.mark.server

PAGE = (Path(__file__).parents[3] / "docs" / "people" / "http.md").read_text(encoding="utf-8")
LINES = [
    line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]
EDIT = {"file_path": "greeting.txt", "old_string": "world", "new_string": "moon"}
SCRIPT = (
    {"text": "I will.", "tool_calls": [{"id": "edit-7", "name": "Edit", "input": EDIT}]},
    {"text": "Done."},
)


async def typed(line: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What the line says in a shell; it has to end well."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", line, cwd=folder, env=dict(environment), stdout=PIPE, stderr=STDOUT
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, (line, said.decode())
    return said.decode()


async def test_each_line_of_the_page_works(tmp_path: Path, worker: int, cli_environment: dict[str, str]) -> None:
    assert worker
    (tmp_path / "greeting.txt").write_text("hello world\n")
    (tmp_path / "agents").mkdir()
    (tmp_path / "lamp.jsonl").write_text("\n".join(json.dumps(reply) for reply in SCRIPT))
    (tmp_path / "agents" / "lamp.toml").write_text(
        f'model = "scripted:{tmp_path}/lamp.jsonl"\n[workspace]\nroot = "{tmp_path}"\n'
    )
    environment = cli_environment | {"LONGHAUL_SERVE_TOKENS": str(tmp_path / "tokens"), "LONGHAUL_TRUST": "1"}
    program = "longhaul serve token"
    (making,) = [line for line in LINES if line.startswith(program)]
    said = await typed(making.replace("longhaul", " ".join(CLI), 1), tmp_path, environment)

    async with serving(tmp_path, environment) as server:
        environment |= {"TOKEN": said.split()[0], "URL": server.url, "DIGEST": "", "REPLY": "", "NO_PROXY": "*"}
        answers = [await answer(line, tmp_path, environment) for line in LINES if line.startswith("curl")]

    asked, pending, decided, events, result, transcript, sessions = answers
    assert asked["status"] == "waiting"
    assert [call["call_id"] for call in pending["calls"]] == ["edit-7"]
    assert decided["decision"] == "allow"
    assert events.recorded == list(range(5, 5 + len(events.recorded)))
    assert events.frames[-1].data["why"] == "finished"
    assert result["status"] == "finished"
    assert transcript["messages"][0]["content"][0]["text"] == "Greet the moon"
    assert "sessions" in sessions
    assert (tmp_path / "greeting.txt").read_text() == "hello moon\n"


async def answer(line: str, folder: Path, environment: dict[str, str]) -> Any:
    """What a line answers; what the next ones need of it goes into the environment."""
    said = await typed(line, folder, environment)
    if "/events" in line:
        reader = Reader()
        for frame in said.split("\n\n"):
            await reader.take(frame)
        return reader
    found = json.loads(said)
    environment["REPLY"] = found.get("reply_id", environment["REPLY"])
    for call in found.get("calls", ()):
        environment["DIGEST"] = call["digest"]
    return found

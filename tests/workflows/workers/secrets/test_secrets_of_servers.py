"""A secret in a header of an MCP server reaches that server, and nobody else, whatever the server says again of it."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from tests.activities.mcp.serving import PATHS, answers
from tests.activities.models.wire import Answer, Wire, chat_calls, chat_says
from tests.e2e.processes import ROOT
from tests.servers.local import free_port
from tests.workflows.all_views import views
from tests.workflows.conftest import CHAT, Stage
from tests.workflows.incarnation.test_flat_history import payload_texts
from tests.workflows.operations import results

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

KEY = "tide-token-9c41f2"
TOOLS = ("result", "fail", "refuse", "log")


@asynccontextmanager
async def parrot(transport: str, heard: Path) -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.activities.mcp.parrot", transport, str(port), str(heard)),
        cwd=ROOT,
        env=dict(os.environ),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await answers(port)
        yield f"http://127.0.0.1:{port}{PATHS[transport]}"
    finally:
        process.kill()
        await process.wait()


@pytest.mark.proves("X19")
@pytest.mark.parametrize("is_stateful", [False, True])
@pytest.mark.parametrize("transport", list(PATHS))
async def test_a_secret_in_a_header_is_the_servers_alone(
    transport: str,
    is_stateful: bool,
    unserved: Stage,
    wire: Wire,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="longhaul")
    file, heard = tmp_path / "secrets.toml", tmp_path / "heard"
    file.write_text(f'TIDE_TOKEN = "{KEY}"\n')
    file.chmod(0o600)
    wire.answers = [
        *(Answer(chat_calls(f"c-{name}", f"mcp__harbour__{name}", {})) for name in TOOLS),
        Answer(chat_says("All said.")),
    ]
    async with parrot(transport, heard) as url:
        config = {"url": url, "headers": {"Authorization": "Bearer [secret TIDE_TOKEN]"}}
        offered = {"harbour": {"mcp_config": config, "is_stateful": is_stateful}}
        unserved.settings = unserved.settings.model_copy(update={"secrets_file": file, "mcp": offered})
        session = unserved.session(
            model=CHAT,
            model_config={"base_url": f"{wire.url}/v1"},
            tools=(),
            mcps=[{"name": "harbour"}],
            permission={"rules": [{"tool_name": "mcp__harbour"}]},
        )
        async with unserved.another_worker():
            done = await session.reply("Say it again.")
            kept = await views(unserved, session, done.id)
            kept |= {f"history {n}": text for n, text in enumerate(await payload_texts(unserved.handle(session)))}
            kept["state"] = (await session.state()).model_dump_json()

    sent = heard.read_text("utf-8").splitlines()
    assert len(sent) > len(TOOLS)
    assert set(sent) == {f"Bearer {KEY}"}, "each request has it"
    mark = "Bearer [secret TIDE_TOKEN]"
    (ok, result), (failed, failure), (refused, refusal), (logged, _) = results(done)
    success, error = ToolResultState.SUCCESS, ToolResultState.ERROR
    assert (ok, failed, refused, logged) == (success, error, error, success)
    assert (mark in result, f"no room for {mark}" in failure, f"not with {mark}" in refusal) == (True, True, True)
    described = [tool["function"]["description"] for tool in wire.bodies[0]["tools"]]
    assert described == [f"It acts for {mark}."] * len(TOOLS)
    assert mark in caplog.text, "what the server has logged"
    kept |= files_below(unserved.settings.data_dir) | {"log": caplog.text}
    kept |= {f"request {n}": f"{wire.heads[n]}{json.dumps(body)}" for n, body in enumerate(wire.bodies)}
    assert [name for name, text in kept.items() if KEY in text] == []


def files_below(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return {str(path): path.read_bytes().decode("utf-8", "replace") for path in files}

"""The example executor as a process of its own: killed between doing and handing in, it does nothing twice."""

import asyncio
import json
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import Cli
from tests.workflows.operations import results, until

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
HOLDS = """
import os, pathlib, sys, time
sys.path.insert(0, {root!r})
sys.argv = ["executor.py", {journal!r}]
import asyncio
from examples import executor

def price_of(key, article):
    with open({ledger!r}, "a") as ledger:
        ledger.write(article + "\\n")
    return {{"article": article, "price": 4.5}}

executor.DOES["price_of"] = price_of
executor.PAUSE_SECONDS = 0.1
hand_in = executor.Session.external_result
async def held(*given, **more):
    while pathlib.Path({gate!r}).exists():
        pathlib.Path({gate!r}).write_text("held")
        await asyncio.sleep(0.02)
    await hand_in(*given, **more)
executor.Session.external_result = held
pathlib.Path({journal!r}).mkdir(exist_ok=True)
asyncio.run(executor.main(pathlib.Path({journal!r}), "ana"))
"""
"""The example with a ledger in the place of a shop, and a gate in front of handing in."""


@asynccontextmanager
async def executor(cli: Cli, gate: Path) -> AsyncIterator[Process]:
    places = {"journal": str(cli.folder / "journal"), "ledger": str(cli.folder / "ledger.txt")}
    code = HOLDS.format(root=str(ROOT), gate=str(gate), **places)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=cli.environment, cwd=cli.folder)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_an_executor_that_is_killed_does_nothing_twice(cli: Cli, app: Longhaul) -> None:
    asks: list[dict[str, Any]] = [
        {"id": f"p-{article}", "name": "price_of", "input": {"article": article}} for article in ("ring", "lamp")
    ]
    model = cli.script({"tool_calls": asks[:1]}, {"tool_calls": asks[1:]}, {"text": "Both known."})
    spec = AgentSpec.model_validate({"model": model, "tools": ["price_of"], "permission": {"mode": "bypass"}})
    session = app.session("shop", user="ana", agent=spec)
    waiting = await session.reply("What do they cost?")
    gate = cli.folder / "gate"
    gate.touch()

    async def is_held() -> bool:
        return gate.read_text() == "held"

    async with executor(cli, gate) as first:
        await until(is_held)
        first.kill()
        await first.wait()
    gate.unlink()
    async with executor(cli, gate):

        async def is_over() -> bool:
            return (await session.result(waiting.id)).status == "finished"

        await until(is_over)
    done = await session.wait(waiting.id)

    assert done.get_text_content() == "Both known."
    assert [state for state, _ in results(done)] == [ToolResultState.SUCCESS] * 2
    assert [json.loads(text)["article"] for _, text in results(done)] == ["ring", "lamp"]
    assert (cli.folder / "ledger.txt").read_text() == "ring\nlamp\n"

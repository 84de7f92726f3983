"""Whatever a model is asked for, the middlewares stand around it, and what it answers is masked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from longhaul.activities.models.model import ModelRequest
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.starter.client.session import Session
from longhaul.starter.client.session_requests import CompressionFailed
from tests.activities.mcp.serving import small
from tests.workflows.approvals.test_analyzers import ALLOWED, judge
from tests.workflows.conftest import TOOLS, Stage
from tests.workflows.context.test_summary_outages import FIELDS, WRITTEN
from tests.workflows.operations import calls

pytestmark = pytest.mark.server

SHORTER = ContextConfig(trigger_ratio=0.2, reserve_ratio=0.01)
LOW = '{"risk": "low", "reason": "A friend."}'


@asynccontextmanager
async def witnessed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, stops: str = "", **spec: Any
) -> AsyncIterator[Session]:
    """A session on a worker whose middleware writes down each model call: it sends once, and reads a lot."""
    monkeypatch.setenv("WITNESS", str(stage.folder / "witness"))
    monkeypatch.setenv("WITNESS_STOPS", stops)
    stage.settings.tools = f"{TOOLS},tests.workflows.middlewares"
    stage.settings.middlewares = "tests.workflows.middlewares:Witness"
    lines: list[dict[str, Any]] = [calls("send", to="Ana")]
    if spec:
        lines.append(calls("mcp__harbour__sound", words="How deep?"))
    lines += [calls("fetch", page=number, chars=2_000) for number in range(6)]
    session = stage.session(
        *lines,
        {"text": "Read."},
        {"for": "summary", **WRITTEN},
        tools=["send", "fetch"],
        user="ana",
        permission={
            "rules": [*ALLOWED, {"tool_name": "mcp__harbour"}],
            "analyzers": ["model"],
            "analyzer_model": judge(stage.folder, *[LOW] * 9),
        },
        model_config={"context_length": 8_000, "max_retries": 1},
        **spec,
    )
    async with stage.another_worker():
        yield session


def seen(stage: Stage) -> set[str]:
    return set(Path(stage.folder / "witness").read_text().splitlines())


@pytest.mark.proves("F6")
async def test_a_middleware_is_around_every_kind_of_model_call(
    unserved: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": {"mcp_config": small()}}})
    guess = unserved.script({"text": "Deep."})
    mcps = [{"name": "harbour", "sampling": {"model": guess}}]
    async with witnessed(unserved, monkeypatch, mcps=mcps) as session:
        done = await session.reply("Write to Ana and read six pages")
        await session.compress_context(SHORTER)

    assert (done.error, done.get_text_content()) == (None, "Read.")
    purposes = get_args(get_type_hints(ModelRequest)["purpose"])
    assert seen(unserved) == {f"{purpose} for lamp of ana" for purpose in purposes}


async def test_a_middleware_that_stops_a_summary_is_named(unserved: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async with witnessed(unserved, monkeypatch, stops="summary") as session:
        await session.reply("Write to Ana and read six pages")

        with pytest.raises(CompressionFailed, match="middleware 'witness' stopped this: not today"):
            await session.compress_context(SHORTER)


async def test_a_call_whose_judgement_is_stopped_asks(unserved: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async with witnessed(unserved, monkeypatch, stops="judgement") as session:
        await session.reply("Write to Ana and read six pages")
        (call,) = await session.pending()

    assert call.tool == "send"
    assert "the analyzer 'model' could not tell" in call.reason


async def test_what_a_summary_quotes_of_a_secret_is_masked(unserved: Stage) -> None:
    file = unserved.folder / "secrets.toml"
    file.write_text('GATE_KEY = "gate-9c41f2aa77"\n')
    file.chmod(0o600)
    unserved.settings = unserved.settings.model_copy(update={"secrets_file": file})
    quoted = {"tool_calls": [{"name": "write_summary", "input": dict.fromkeys(FIELDS, "opens with gate-9c41f2aa77")}]}
    lines = [calls("fetch", page=number, chars=2_000) for number in range(6)]
    config = {"context_length": 8_000}
    session = unserved.session(
        *lines, {"text": "Read."}, {"for": "summary", **quoted}, tools=["fetch"], model_config=config
    )
    async with unserved.another_worker():
        await session.reply("Read six pages")
        await session.compress_context(SHORTER)
        state = (await session.state()).model_dump_json()

    assert "opens with [secret GATE_KEY]" in state
    assert "gate-9c41f2aa77" not in state

"""Fifty calls of each API with thoughts, calls at once, closing calls and a compression, a model that is away, an
interrupt and other rules of the folder: none is refused, and each begins as the last of its model did, that for the
summary too."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from longhaul.activities.models.apis.vendors import VENDORS
from longhaul.activities.models.profiles import KeyPlace
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.agent_spec import ContextConfig, ReActConfig
from longhaul.starter.client.session import Session
from tests.activities.models.loops import is_mark
from tests.activities.models.sample_requests import KEYS
from tests.activities.models.strict import AWAY, Call, Strict
from tests.workflows.conftest import Stage
from tests.workflows.context.hosted import HOSTED, named
from tests.workflows.context.test_poison import BOUND, CLAUDE, DEEPSEEK, GEMINI, GPT

pytestmark = [pytest.mark.server, pytest.mark.chaos, pytest.mark.timeout(300)]

REPLIES, ROUNDS, AT_ONCE = 5, 10, 3
LOW = ContextConfig(trigger_ratio=0.01, reserve_ratio=0.005)
REUSED = 0.97
THROUGH_AI = ("ai:deepseek:deepseek-v4-pro", "ai:google:gemini-3-pro", "ai:openrouter:openai/gpt-5.1", *HOSTED)
KEY_OF = {f"ai:{vendor}": about.key_env for vendor, about in VENDORS.items()}


@pytest.fixture
async def served(unserved: Stage) -> AsyncIterator[Stage]:
    """With a worker that has a key for each provider."""
    keys = {**KEYS, **{name: f"sk-of-{name.lower()}" for name in KEY_OF.values()}}
    unserved.providers = Providers(keys, unserved.places)
    await unserved.providers.warm()  # on a busy machine an SDK's import outlasts the heartbeats of an attempt
    async with unserved.another_worker():
        yield unserved


def session_of(stage: Stage, strict: Strict, model: str) -> Session:
    stage.places += [KeyPlace(name, strict.url) for name in KEY_OF.values()]
    spare = {"provider": "openai-chat", "model": "gpt-4o", "base_url": strict.url, "api_key_env": "OPENAI_API_KEY"}
    thinks = {"reasoning_effort": "low"} if model.startswith("ai:") else {"thinking_budget_tokens": 2_048}
    config = {"context_length": 200_000, "fallback_model": "spare", **thinks}
    own = named(stage, model, strict.url, **config)
    return stage.session(
        **{**own, "models": {"spare": spare, **own.get("models", {})}},
        tools=("fetch",),
        agent_context={"repo_skills": True},
        react_config=ReActConfig(max_iters=ROUNDS),
    )


def turn(reply: int, round_: int) -> list[Call]:
    return [(f"toolu_{reply}_{round_}_{at}", "fetch", {"page": round_, "chars": 40 + at}) for at in range(AT_ONCE)]


@pytest.mark.proves("F6")
@pytest.mark.parametrize("model", [CLAUDE, BOUND, GPT, DEEPSEEK, GEMINI, *THROUGH_AI])
async def test_no_request_is_refused_and_each_begins_as_the_last(served: Stage, strict: Strict, model: str) -> None:
    rules = served.workspace / "AGENTS.md"
    rules.write_text("Say little.")
    session = session_of(served, strict, model)
    parts: list[list[dict[str, Any]]] = []
    for reply in range(REPLIES):
        strict.says = [turn(reply, round_) for round_ in range(ROUNDS)]
        begins = len(strict.bodies)
        match reply:
            case 1:
                strict.says.insert(4, "away")
                rules.write_text("Say much.")
            case 2:
                strict.says.insert(7, "half")
        asked = await session.submit(f"Read chapter {reply}. " + "It is long. " * 200)
        if reply == 2:
            await asyncio.wait_for(strict.fell_silent.wait(), 60)
            await session.interrupt()
        done = await session.wait(asked)
        ends = FinishedReason.INTERRUPTED if reply == 2 else FinishedReason.EXCEED_MAX_ITERS
        assert (done.error, done.finished_reason) == (None, ends)
        if reply == 2:
            strict.says = []
            assert await session.compress_context(LOW)
        parts.append(strict.bodies[begins:])

    assert strict.refusals == [AWAY]
    assert sum(len(part) for part in parts) >= REPLIES * ROUNDS - 3
    assert [len({name_of(body) for body in part}) for part in parts] == [1, 2, 1, 1, 1]
    assert "Say much." in json.dumps(parts[1][0])
    assert is_marked(parts[2][0]) == is_marked(parts[2][-1])  # the summary's, which reads the cache
    before_the_compression = [body for part in parts[:3] for body in part]
    for bodies in (*parts, before_the_compression):
        assert reused([body for body in bodies if name_of(body) == name_of(parts[0][0])]) >= REUSED


def is_marked(body: dict[str, Any]) -> bool:
    return "cache_control" in json.dumps(body)


def name_of(body: dict[str, Any]) -> str:
    return str(body["model"])


def reused(bodies: list[dict[str, Any]]) -> float:
    """How much of what was sent before is the beginning of what is sent next."""
    sent = [told(body) for body in bodies]
    common = sum(_common(before, after) for before, after in pairwise(sent))
    return common / sum(len(before) for before in sent[:-1])


def told(body: dict[str, Any]) -> str:
    growing = body.get("messages") or body.get("contents") or body["input"]
    before = [body.get("system") or body.get("systemInstruction") or body.get("instructions"), body.get("tools")]
    return json.dumps(before) + json.dumps(plain(growing))[:-1]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if name != "cache_control"}
    return [plain(part) for part in value if not is_mark(part)] if isinstance(value, list) else value


def _common(before: str, after: str) -> int:
    return next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before))

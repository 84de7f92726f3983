"""Fifty calls with thoughts, closing calls and a compression: none is refused, and each begins as the last did."""

import json
from itertools import pairwise
from typing import Any

import pytest

from longhaul.agent.values.settings import ContextConfig, ReActConfig
from tests.activities.models.strict import Strict
from tests.workflows.conftest import Stage
from tests.workflows.context.test_poison import BOUND, CLAUDE, DEEPSEEK, GEMINI, GPT

pytestmark = [pytest.mark.server, pytest.mark.chaos, pytest.mark.timeout(300)]

REPLIES, CALLS = 5, 10
LOW = ContextConfig(trigger_ratio=0.01, reserve_ratio=0.005)
REUSED = 0.95


@pytest.mark.parametrize("model", [CLAUDE, BOUND, GPT, DEEPSEEK, GEMINI])
async def test_no_request_is_refused_and_each_begins_as_the_last(stage: Stage, strict: Strict, model: str) -> None:
    config = {"base_url": strict.url, "context_length": 200_000, "thinking_budget_tokens": 2_048}
    session = stage.session(
        model=model, tools=("fetch",), model_config=config, react_config=ReActConfig(max_iters=CALLS)
    )
    parts: list[list[dict[str, Any]]] = []
    for reply in range(REPLIES):
        strict.says = [(f"toolu_{reply}_{call}", "fetch", {"page": call}) for call in range(CALLS)]
        begins = len(strict.bodies)
        done = await session.reply(f"Read chapter {reply}. " + "It is long. " * 200)
        assert done.error is None
        parts.append(strict.bodies[begins:])
        if reply == REPLIES // 2:
            assert await session.compress_context(LOW)

    assert [words for words in strict.refusals if "forced tool use" not in words] == []
    assert sum(len(part) for part in parts) >= REPLIES * CALLS
    for part in parts:
        assert reused(part) >= REUSED
    assert reused([*parts[0], *parts[1]]) >= REUSED


def reused(bodies: list[dict[str, Any]]) -> float:
    """How much of what was sent before is the beginning of what is sent next."""
    sent = [told(body) for body in bodies]
    common = sum(_common(before, after) for before, after in pairwise(sent))
    return common / sum(len(before) for before in sent[:-1])


def told(body: dict[str, Any]) -> str:
    growing = body.get("messages") or body["input"]
    return json.dumps([body.get("system"), body.get("tools")]) + json.dumps(plain(growing))[:-1]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if name != "cache_control"}
    return [plain(part) for part in value] if isinstance(value, list) else value


def _common(before: str, after: str) -> int:
    return next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before))

"""Which key reaches which server: the agent's model, its fallback and its judge, each at its own address."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

import pytest

from longhaul.activities.models.profiles import read_key_places
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.spec.agent_spec import AgentSpec
from tests.activities.models.sample_requests import KEYS
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says, gpt_calls, response_says
from tests.limits import SURE_SECONDS, usual
from tests.workflows.conftest import Stage
from tests.workflows.workers.models.test_models import refusing

pytestmark = pytest.mark.server

CLAUDE, GPT, CHAT, QWEN = "anthropic:claude-haiku-4-5", "openai:gpt-4.1", "openai-chat:llama", "qwen:qwen-plus"
SAYS = {CLAUDE: claude_says("Aye."), GPT: response_says("Aye."), CHAT: chat_says("Aye."), QWEN: chat_says("Aye.")}
KEY = {CLAUDE: "sk-ant-lilac", GPT: "sk-proj-heather", CHAT: "sk-proj-heather", QWEN: "sk-dash-fern"}
VARIABLE = {
    CLAUDE: "ANTHROPIC_BASE_URL",
    GPT: "OPENAI_BASE_URL",
    CHAT: "OPENAI_BASE_URL",
    QWEN: "DASHSCOPE_BASE_URL",
}
OTHERS = [(first, second) for first in SAYS for second in SAYS if first != second]


def keys_in(head: str) -> set[str]:
    return {key for key in ("sk-team-moss", *KEYS.values()) if key in head}


async def worked(stage: Stage, environ: dict[str, str], listed: str) -> AsyncExitStack:
    """A worker with these variables and this list of the operator's."""
    stage.providers = Providers({**KEYS, "TEAM_KEY": "sk-team-moss", **environ}, read_key_places(listed))
    await stage.rest.enter_async_context(stage.another_worker())
    return stage.rest


@pytest.mark.parametrize(("model", "fallback"), OTHERS)
async def test_a_fallback_of_another_provider_has_its_own_address_and_key(
    unserved: Stage, wire: Wire, other_wire: Wire, model: str, fallback: str
) -> None:
    wire.answers, other_wire.answers = [refusing(401)], [Answer(SAYS[fallback])]
    await worked(unserved, {VARIABLE[fallback]: other_wire.url}, f"TEAM_KEY={wire.url}")
    config = {"base_url": wire.url, "api_key_env": "TEAM_KEY", "fallback_model": fallback}

    done = await unserved.session(model=model, tools=["fetch"], model_config=config).reply("Fair wind?")

    assert (done.error, done.get_text_content()) == (None, "Aye.")
    assert [keys_in(head) for head in wire.heads] == [{"sk-team-moss"}]
    assert [keys_in(head) for head in other_wire.heads] == [{KEY[fallback]}]


async def test_a_fallback_of_the_same_provider_is_at_the_same_address(unserved: Stage, wire: Wire) -> None:
    wire.answers = [refusing(401), Answer(SAYS[CLAUDE])]
    await worked(unserved, {}, f"TEAM_KEY={wire.url}")
    config = {"base_url": wire.url, "api_key_env": "TEAM_KEY", "fallback_model": "anthropic:claude-sonnet-5"}

    done = await unserved.session(model=CLAUDE, tools=["fetch"], model_config=config).reply("Fair wind?")

    assert done.error is None
    assert [keys_in(head) for head in wire.heads] == [{"sk-team-moss"}] * 2


async def test_a_scripted_model_falls_back_to_a_provider_with_that_ones_key(unserved: Stage, wire: Wire) -> None:
    wire.answers = [Answer(SAYS[CLAUDE])]
    await worked(unserved, {"ANTHROPIC_BASE_URL": wire.url}, "")
    broken = unserved.script({"faults": [{"kind": "auth"}], "text": "never"})

    done = await unserved.session(model=broken, tools=["fetch"], model_config={"fallback_model": CLAUDE}).reply("Hi")

    assert (done.error, done.get_text_content()) == (None, "Aye.")
    assert [keys_in(head) for head in wire.heads] == [{"sk-ant-lilac"}]


async def test_a_provider_falls_back_to_a_script_that_is_sent_nothing(unserved: Stage, wire: Wire) -> None:
    wire.answers = [refusing(401)]
    await worked(unserved, {}, f"TEAM_KEY={wire.url}")
    config = {"base_url": wire.url, "api_key_env": "TEAM_KEY", "fallback_model": unserved.script({"text": "Aye."})}

    done = await unserved.session(model=CLAUDE, tools=["fetch"], model_config=config).reply("Hi")

    assert (done.error, done.get_text_content()) == (None, "Aye.")


@pytest.mark.parametrize(("model", "judge"), [(CHAT, CLAUDE), (CHAT, QWEN)])
async def test_a_judge_of_another_provider_has_its_own_address_and_key(
    unserved: Stage, wire: Wire, other_wire: Wire, model: str, judge: str
) -> None:
    wire.answers = [Answer(gpt_calls("c1", '{"page": 7}')), Answer(SAYS[model])]
    other_wire.answers = [Answer(SAYS[judge])] * 3
    await worked(unserved, {VARIABLE[judge]: other_wire.url}, f"TEAM_KEY={wire.url}")
    spec = unserved.session(
        model=model,
        tools=["fetch"],
        model_config={"base_url": wire.url, "api_key_env": "TEAM_KEY"},
        permission={"mode": "bypass", "analyzers": ["model"], "analyzer_model": judge},
    )

    await spec.submit("Read page 7")
    async with asyncio.timeout(SURE_SECONDS):
        while not other_wire.heads:  # noqa: ASYNC110  the judge writes them
            await asyncio.sleep(0.05)

    assert [keys_in(head) for head in wire.heads] == [{"sk-team-moss"}]
    assert {frozenset(keys_in(head)) for head in other_wire.heads} == {frozenset({KEY[judge]})}


@pytest.mark.alone
@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({}, "does not send OPENAI_API_KEY to"),
        ({"api_key_env": "LONGHAUL_APPROVAL_KEY"}, "does not send LONGHAUL_APPROVAL_KEY to"),
        ({"api_key_env": "PATH"}, "does not send PATH to"),
        ({"fallback_model": "openai-chat:other", "api_key_env": "TEAM_KEY"}, "does not send TEAM_KEY to"),
    ],
)
async def test_a_pair_that_the_operator_did_not_list_is_refused_at_the_first_reply_within_two_seconds(
    unserved: Stage, wire: Wire, config: dict[str, Any], sentence: str
) -> None:
    await worked(unserved, {"LONGHAUL_APPROVAL_KEY": "a1:signs"}, "TEAM_KEY=https://models.example")
    spec = AgentSpec.model_validate(
        {"name": "lamp", "model": CHAT, "tools": ("fetch",), "model_config": {"base_url": wire.url, **config}}
    )
    session = unserved.app.session(f"{unserved.name}-pairs", agent=spec)

    began = time.monotonic()
    done = await session.reply("Fair wind?")

    assert time.monotonic() - began < usual(2)
    assert done.error is not None
    assert sentence in done.error.message
    assert "may list" in done.error.message
    assert not wire.heads

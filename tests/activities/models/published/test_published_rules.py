"""What is sent of any record, with any settings, is refused by none of the rules that providers publish."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.context.repairs import Repairing
from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.profiles import KeyPlace, read_profiles
from longhaul.activities.models.providers import Providers
from longhaul.activities.models.requests.thinking_origin import Beginnings, chain_of, fitting, origin_of, with_origin
from longhaul.agent.values.conversation.messages import AssistantMsg, Msg, ToolResultBlock
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.profiles import fields_of
from tests.activities.models import published_converse, published_google
from tests.activities.models.published import published_chat, published_messages, published_responses
from tests.activities.models.published.published import (
    ANTHROPIC,
    AZURE,
    CHAT,
    CONVERSE,
    DEEPSEEK,
    GEMINI,
    GOOGLE,
    KIMI,
    OF_CHAT,
    OF_RESPONSES,
    OPEN,
    RESPONSES,
    SERVERS,
    XAI,
    Body,
    Published,
    Rule,
    Sent,
    changed,
    refused_by,
)
from tests.activities.models.published.published_cases import OFFERS, RECORDS, Offer
from tests.activities.models.published.published_page import RULES, table
from tests.activities.models.sample_requests import WEATHER


@dataclass(frozen=True)
class Kind:
    """How a model of a server is called, at the provider's own host, which a proxy of the test's stands for."""

    server: str
    model: str
    provider: str
    host: str
    family: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """For the records: what has it think, where that has to be asked for."""
    place: dict[str, str] = field(default_factory=dict)
    """Of a cloud, for the profile."""


_AWS, _ON_AWS = "bedrock-runtime.us-east-1.amazonaws.com", {"region": "us-east-1"}
_VERTEX, _ON_VERTEX = "us-east5-aiplatform.googleapis.com", {"region": "us-east5", "project": "ours"}


KINDS = (
    Kind(ANTHROPIC, "claude-haiku-4-5", "anthropic", "api.anthropic.com", settings={"thinking_budget_tokens": 2048}),
    Kind(ANTHROPIC, "claude-opus-4-8", "anthropic", "api.anthropic.com"),
    Kind(ANTHROPIC, "claude-opus-5-5", "anthropic", "api.anthropic.com"),
    Kind(ANTHROPIC, "claude-sonnet-4-6", "anthropic", "api.anthropic.com"),
    Kind(ANTHROPIC, "claude-sonnet-5-5", "anthropic", "api.anthropic.com"),
    Kind(ANTHROPIC, "claude-opus-6-1", "anthropic", "api.anthropic.com"),
    Kind(RESPONSES, "gpt-5.1", "openai", "api.openai.com/v1"),
    Kind(RESPONSES, "gpt-6.1-terra", "openai", "api.openai.com/v1"),
    Kind(RESPONSES, "gpt-6.9-sol", "openai", "api.openai.com/v1"),
    Kind(RESPONSES, "gpt-4.1", "openai", "api.openai.com/v1"),
    Kind(AZURE, "gpt-5.1", "openai", "team.openai.azure.com/openai/v1", family="gpt-5.1"),
    Kind(XAI, "grok-4.7", "xai", "api.x.ai/v1"),
    Kind(XAI, "grok-4.3", "xai", "api.x.ai/v1"),
    Kind(XAI, "grok-build-0.1", "xai", "api.x.ai/v1"),
    Kind(CHAT, "gpt-5.1", "openai-chat", "api.openai.com/v1"),
    Kind(CHAT, "gpt-5.4", "openai-chat", "api.openai.com/v1"),
    Kind(CHAT, "gpt-5.6-terra", "openai-chat", "api.openai.com/v1"),
    Kind(DEEPSEEK, "deepseek-v4-pro", "openai-chat", "api.deepseek.com"),
    Kind(KIMI, "kimi-k2.6", "openai-chat", "api.moonshot.ai/v1"),
    Kind(KIMI, "kimi-k5", "openai-chat", "api.moonshot.ai/v1"),
    Kind(GEMINI, "gemini-3-pro", "openai-chat", "generativelanguage.googleapis.com/v1beta/openai"),
    Kind(OPEN, "qwen3", "openai-chat", "vllm.example/v1"),
    Kind(GOOGLE, "gemini-3-pro", "ai:google", "generativelanguage.googleapis.com"),
    Kind(GOOGLE, "gemini-3.5-flash", "ai:google", "generativelanguage.googleapis.com"),
    Kind(GOOGLE, "gemini-2.5-pro", "ai:google", "generativelanguage.googleapis.com"),
    Kind(GOOGLE, "gemini-3-pro", "ai:google-vertex", _VERTEX, place=_ON_VERTEX),
    Kind(CONVERSE, "us.amazon.nova-pro-v1:0", "ai:bedrock", _AWS, place=_ON_AWS),
    Kind(CONVERSE, "us.meta.llama4-maverick-17b-instruct-v1:0", "ai:bedrock", _AWS, place=_ON_AWS),
    Kind(CONVERSE, "mistral.mistral-large-3-675b-instruct", "ai:bedrock", _AWS, place=_ON_AWS),
    Kind(CONVERSE, "openai.gpt-oss-120b-1:0", "ai:bedrock", _AWS, place=_ON_AWS),
    Kind(CONVERSE, "us.anthropic.claude-opus-4-8", "ai:bedrock", _AWS, place=_ON_AWS),
)
NAMES = [f"{kind.server}, {kind.model}{', Vertex' if kind.host == _VERTEX else ''}" for kind in KINDS]


@dataclass
class Asking:
    """A session of one model, as far as its requests go."""

    kind: Kind
    server: Published
    providers: Providers
    refused: list[str] = field(default_factory=list)

    async def ask(self, record: Sequence[Msg], offer: Offer) -> list[Msg]:
        """The record with the answer, and a result for each of its calls."""
        name = f"{self.kind.provider}:{self.kind.model}"
        about = {"system": "Be brief.", "tools": [WEATHER], **offer.request}
        config = ModelConfig(**offer.config)
        origin = origin_of(name, config.model_copy(update={"base_url": f"http://{self.kind.host}"}))
        request = ModelRequest(name, messages=list(record), config=config, **about)
        beginnings = Beginnings(request, chain_of(record))
        repairing = Repairing(name, takes_no_images=False)
        await repairing.look_into(record)
        fit = fitting(request, origin, beginnings)
        reply = await repairing.asked(fit, lambda asked: self.providers.call("it", asked, lambda _: None), origin)
        said = AssistantMsg("longhaul", with_origin(reply.content, origin, beginnings.before(len(record))))
        results = [ToolResultBlock(id=call.id, name=call.name, output="Rain.") for call in said.get_tool_calls()]
        return [*record, said, *(AssistantMsg("longhaul", [result]) for result in results)]


@asynccontextmanager
async def asking(kind: Kind, rules: Sequence[Rule], **profile: Any) -> AsyncIterator[Asking]:
    server = Published(rules=rules)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = "http://{}:{}".format(*listening.sockets[0].getsockname())
    yield_to = Asking(kind, server, providers_of(kind, profile))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HTTP_PROXY", server.url)
        environment.setenv("NO_PROXY", "")
        async with listening:
            yield yield_to
            await yield_to.providers.close()


def providers_of(kind: Kind, profile: dict[str, Any]) -> Providers:
    table = {
        "provider": kind.provider,
        "model": kind.model,
        "base_url": f"http://{kind.host}",
        "api_key_env": "TEAM_KEY",
        **({"family": kind.family} if kind.family else {}),
        **kind.place,
        **profile,
    }
    places = [KeyPlace("TEAM_KEY", f"http://{kind.host}")]
    return Providers({"TEAM_KEY": "sk-team-moss"}, places, read_profiles({"it": table}))


def rules_of(server: str) -> list[Rule]:
    return [rule for rule in RULES if server in rule.servers]


async def tried(it: Asking, record: Sequence[Msg], offer: Offer) -> str:
    """What was refused of two requests in a row, of which the second has the answer to the first; empty if nothing."""
    it.server.says[:] = [(f"toolu_{len(it.server.bodies)}", "weather", {"city": "Oslo"})]
    it.server.broken.clear()
    try:
        await it.ask(await it.ask(record, offer), offer)
    except Exception as error:  # noqa: BLE001  whatever fails, the case is named
        return f"{type(error).__name__}: {error}"
    allowed = {rule.name for rule in it.server.rules if rule.asked_again}
    return ", ".join(name for name in it.server.broken if name not in allowed)


@pytest.mark.proves("F6")
@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
async def test_no_record_is_refused(kind: Kind) -> None:
    failed: dict[str, str] = {}
    async with asking(kind, rules_of(kind.server)) as it:
        for name, record in RECORDS.items():
            failed |= {name: why} if (why := await tried(it, record, Offer(kind.settings))) else {}

    assert failed == {}


@pytest.mark.proves("F6")
@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
async def test_no_setting_is_refused(kind: Kind) -> None:
    failed: dict[str, str] = {}
    for about in {json.dumps(offer.profile): offer.profile for offer in OFFERS.values()}.values():
        said = {key: value for key, value in about.items() if key in fields_of(kind.provider)}
        async with asking(kind, rules_of(kind.server), **said) as it:
            for name, offer in OFFERS.items():
                if offer.profile == about and (why := await tried(it, RECORDS["a call and its result"], offer)):
                    failed[name] = why

    assert failed == {}


def bases() -> list[tuple[str, Body, dict[str, str]]]:
    """A request for each server that all of its rules allow, and what the server has signed of it."""
    of_chat = [(server, published_chat.base_of(server), {"signed-1": "", "signed-2": ""}) for server in OF_CHAT]
    of_responses = [(server, published_responses.BODY, published_responses.SIGNED) for server in OF_RESPONSES]
    return [
        (ANTHROPIC, published_messages.BODY, published_messages.SIGNED),
        *of_responses,
        (XAI, {**published_responses.BODY, "model": "grok-4.7"}, published_responses.SIGNED),
        *of_chat,
        (GOOGLE, published_google.BODY, published_google.SIGNED),
        (CONVERSE, published_converse.BODY, published_converse.SIGNED),
    ]


@pytest.mark.proves("F6")
@pytest.mark.parametrize(("server", "body", "signed"), bases(), ids=SERVERS)
def test_each_rule_refuses_what_breaks_it_and_nothing_else(server: str, body: Body, signed: dict[str, str]) -> None:
    rules = rules_of(server)

    assert refused_by(rules, Sent(body, signed=signed)) == []
    broken = {rule.name: rule.breaks(Sent(changed(body, rule.broken), signed=signed)) for rule in rules}
    assert [name for name, refused in broken.items() if not refused] == []


def test_the_page_has_a_row_for_each_rule() -> None:
    """`python -m tests.activities.models.published.published_page` prints them."""
    page = (Path(__file__).parents[4] / "docs" / "making" / "request_rules.md").read_text(encoding="utf-8")

    assert table() in page
    assert len({rule.name for rule in RULES}) >= 60
    assert len({rule.name for rule in RULES if "2026-10-21" in rule.name}) == 3
    assert {server for rule in RULES for server in rule.servers} == set(SERVERS)

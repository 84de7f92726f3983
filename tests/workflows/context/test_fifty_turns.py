"""Fifty turns of each API at the providers' own hosts, behind a strict server that keeps the published rules: thoughts,
calls at once, a plan that changes, a model that is away and its fallback, other rules of the folder, an interrupt and a
compression. No request is refused, and what was sent before begins what is sent next.

A proxy of the test's stands for the hosts, so that each adapter sends what it sends to them alone.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, get_args

import pytest

from longhaul.activities.models.apis.vendors import VENDORS, Sdk
from longhaul.activities.models.profiles import KeyPlace, read_profiles
from longhaul.activities.models.providers import PROVIDERS, Providers
from longhaul.activities.models.requests import model_rules
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.plans import PLAN_TOOLS
from longhaul.agent.values.spec.agent_spec import ContextConfig, ReActConfig
from longhaul.agent.values.tool_groups import RESET, ToolGroup
from longhaul.starter.client.session import Session
from tests.activities.models.loops import is_mark
from tests.activities.models.published.published import (
    ANTHROPIC,
    CHAT,
    RESPONSES,
    SERVERS,
    Body,
    Published,
    functions,
    late_in,
)
from tests.activities.models.published.published_page import RULES
from tests.activities.models.published.test_published_rules import KINDS, Kind, rules_of
from tests.activities.models.published.test_published_rules_of_vendors import KINDS as OF_VENDORS
from tests.activities.models.strict import AWAY, Call
from tests.workflows.conftest import Stage

pytestmark = [pytest.mark.server, pytest.mark.chaos, pytest.mark.timeout(300)]

REPLIES, ROUNDS, AT_ONCE, INTERRUPTED = 5, 10, 3, 2
LOW = ContextConfig(trigger_ratio=0.01, reserve_ratio=0.005)
REUSED = 0.97
LATE = "purge_one"
"""A tool of a group that is switched on, off and on again."""
SPARE = Kind(CHAT, "gpt-4o", "openai-chat", "api.openai.com/v1")
SPARE_OF_CHAT = Kind(ANTHROPIC, "claude-sonnet-4-6", "anthropic", "api.anthropic.com")

NAMES = (
    *("claude-haiku-4-5", "claude-opus-5-5", "gpt-5.1", "gpt-6.1-terra", "grok-4.7", "deepseek-v4-pro", "kimi-k2.6"),
    *("qwen3", "gemini-3-pro", "us.amazon.nova-pro-v1:0", "us.anthropic.claude-opus-4-8"),
)
OF_SDKS = [OF_VENDORS[vendor] for vendor in ("openrouter", "cohere", "groq", "mistral")]
LOOPS = [*(kind for kind in KINDS if kind.model in NAMES and kind.provider != "ai:google-vertex"), *OF_SDKS]


@dataclass
class Hosts(Published):
    """All hosts of a loop: the model's own, and that of its fallback."""

    servers: dict[str, str] = field(default_factory=dict)
    """By model."""

    def _calls(self, body: Body) -> list[Call]:
        """A tool that came late is called where it stands, or else through `call_tool`."""
        calls = super()._calls(body)
        if any(name == LATE for _, name, _ in calls) and not is_offered(body):
            assert "Call them by call_tool, each with arguments" in json.dumps(body)
            return [(id_, "call_tool", {"tool": name, "arguments": given}) for id_, name, given in calls]
        return calls

    def _answer(self, path: str, body: Body) -> bytes:
        self.rules = rules_of(self.servers[body["model"]])
        return super()._answer(path, body)


def profile_of(kind: Kind) -> dict[str, Any]:
    family = {"family": kind.family} if kind.family else {}
    address = {"base_url": f"http://{kind.host}", "api_key_env": "TEAM_KEY"}
    return {"provider": kind.provider, "model": kind.model, **address, **family, **kind.place}


@asynccontextmanager
async def served(stage: Stage, kind: Kind) -> AsyncIterator[Hosts]:
    """A worker that reaches both models through a proxy, which answers for their hosts."""
    spare = SPARE_OF_CHAT if kind.server == CHAT else SPARE
    hosts = Hosts(servers={kind.model: kind.server, spare.model: spare.server})
    listening = await asyncio.start_server(hosts.serve, "127.0.0.1", 0, limit=1 << 24)
    hosts.url = "http://{}:{}".format(*listening.sockets[0].getsockname())
    places = [KeyPlace("TEAM_KEY", f"http://{each.host}") for each in (kind, spare)]
    profiles = read_profiles({"it": profile_of(kind), "spare": profile_of(spare)})
    stage.providers = Providers({"TEAM_KEY": "sk-team-moss"}, places, profiles)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HTTP_PROXY", hosts.url)
        environment.setenv("NO_PROXY", "")
        async with listening:
            await stage.providers.warm()  # on a busy machine an SDK's import outlasts the heartbeats of an attempt
            async with stage.another_worker():
                yield hosts


def session_of(stage: Stage, kind: Kind) -> Session:
    thinks = {"reasoning_effort": "low"} if kind.provider.startswith("ai:") else {"thinking_budget_tokens": 2_048}
    return stage.session(
        model="it",
        model_config={"context_length": 200_000, "fallback_model": "spare", **thinks},
        tools=("fetch", *PLAN_TOOLS),
        tool_groups={"cellar": ToolGroup(tools=[LATE], description="What lies below.")},
        agent_context={"repo_skills": True},
        react_config=ReActConfig(max_iters=ROUNDS),
    )


def turn(reply: int, round_: int) -> list[Call]:
    return [(f"toolu_{reply}_{round_}_{at}", "fetch", {"page": round_, "chars": 40 + at}) for at in range(AT_ONCE)]


def subtask(name: str) -> dict[str, str]:
    return {"name": name, "description": "by hand", "expected_outcome": f"a {name}"}


PLAN: Call = (
    "toolu_plan",
    "create_plan",
    {"name": "Boat", "description": "Of oak", "expected_outcome": "It swims", "subtasks": [subtask("keel")]},
)
CHANGED_PLAN: Call = (
    "toolu_other",
    "revise_current_plan",
    {"subtask_idx": 1, "action": "add", "subtask": subtask("hull")},
)


def chosen(reply: int, *groups: str) -> Call:
    return (f"toolu_groups_{reply}", RESET, {"to_activate": list(groups)})


def says_of(reply: int) -> list[Any]:
    says: list[Any] = [turn(reply, round_) for round_ in range(ROUNDS)]
    match reply:
        case 0:
            says[3] = PLAN
        case 1:
            says[7], says[8] = chosen(reply, "cellar"), (f"toolu_late_{reply}", LATE, {"folder": "cellar"})
            says.insert(4, "away")
        case 2:
            says[3] = chosen(reply)
            says.insert(7, "half")
        case 3:
            says[5] = CHANGED_PLAN
        case 4:
            says[6], says[7] = chosen(reply, "cellar"), (f"toolu_late_{reply}", LATE, {"folder": "cellar"})
    return says


def name_of(kind: Kind) -> str:
    return f"{kind.provider} {kind.server}, {kind.model}"


async def looped(session: Session, hosts: Hosts, write_rules: Callable[[str], object]) -> list[list[Body]]:
    """The requests of each reply."""
    parts: list[list[Body]] = []
    for reply in range(REPLIES):
        hosts.says, begins = says_of(reply), len(hosts.bodies)
        write_rules("Say much." if reply else "Say little.")
        asked = await session.submit(f"Read chapter {reply}. " + "It is long. " * 200)
        if reply == INTERRUPTED:
            await asyncio.wait_for(hosts.fell_silent.wait(), 60)
            await session.interrupt()
        done = await session.wait(asked)
        ends = FinishedReason.INTERRUPTED if reply == INTERRUPTED else FinishedReason.EXCEED_MAX_ITERS
        assert (done.error, done.finished_reason) == (None, ends)
        if reply == INTERRUPTED:
            hosts.says = []
            assert await session.compress_context(LOW)
        parts.append(hosts.bodies[begins:])
    return parts


@pytest.mark.proves("F6")
@pytest.mark.parametrize("kind", LOOPS, ids=map(name_of, LOOPS))
async def test_no_request_is_refused_and_each_begins_as_the_last(unserved: Stage, kind: Kind) -> None:
    async with served(unserved, kind) as hosts:
        parts = await looped(session_of(unserved, kind), hosts, (unserved.workspace / "AGENTS.md").write_text)

    bodies = [body for part in parts for body in part]
    own = [body for body in bodies if body["model"] == kind.model]
    assert (hosts.broken, hosts.refusals) == ([], [AWAY])
    assert len(bodies) >= REPLIES * ROUNDS
    assert [len({body["model"] for body in part}) for part in parts] == [1, 2, 1, 1, 1]
    assert "Say much." in json.dumps(parts[1][0])
    assert is_marked(parts[INTERRUPTED][0]) == is_marked(parts[INTERRUPTED][-1])  # the summary's, which reads the cache
    assert "a hull" in json.dumps(own[-1])
    assert json.dumps(own[-1]).count("purged cellar alone") == 1
    native = kind.server in (ANTHROPIC, RESPONSES) and model_rules.rules_of(kind.model).late_tools
    assert any(late_in(body) for body in own) is native
    kept = share_that_stays(own)
    print(f"\n{name_of(kind)}: {len(bodies)} requests, {kept:.2%} of the bytes that come again stay at the beginning")
    assert kept >= REUSED


def is_marked(body: Body) -> bool:
    return "cache_control" in json.dumps(body) or "cachePoint" in json.dumps(body)


def is_offered(body: Body) -> bool:
    declared = [about for tool in body.get("tools", ()) for about in tool.get("functionDeclarations", ())]
    return LATE in {about["name"] for about in (*(declared or functions(body)), *late_in(body))}


def share_that_stays(bodies: Sequence[Body]) -> float:
    """Of the bytes that a request repeats from the one before, those that stand where they stood: the beginning that
    both have. A compression takes messages away, and moves those that it keeps."""
    again = at_the_beginning = 0
    for before, after in pairwise(map(items_of, bodies)):
        same = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)
        same = min(len(before), len(after)) if same is None else same
        known = set(before)
        again += sum(len(item) for item in after if item in known)
        at_the_beginning += sum(map(len, after[:same]))
    return at_the_beginning / again


def items_of(body: Body) -> list[str]:
    """What a model reads, in the order in which it reads it, without marks for a cache."""
    frame = [body.get("tools"), body.get("system") or body.get("systemInstruction") or body.get("instructions")]
    growing = body.get("messages") or body.get("contents") or body["input"]
    return [json.dumps(plain(item)) for item in (*frame, *growing)]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if name != "cache_control"}
    return [plain(part) for part in value if not is_mark(part)] if isinstance(value, list) else value


def test_each_kind_of_server_has_rules_and_a_loop() -> None:
    assert len({rule.name for rule in RULES}) >= 60
    assert {server for rule in RULES for server in rule.servers} == set(SERVERS)
    assert {kind.server for kind in LOOPS} >= set(SERVERS)
    assert len(SERVERS) >= 9


def test_each_way_to_call_a_model_has_a_loop() -> None:
    """A new API of ours, or a new SDK of a vendor's, needs one too."""
    apis = {about.api for name, about in PROVIDERS.items() if about.api not in ("script", "ai")}
    ways = {PROVIDERS[kind.provider].api for kind in LOOPS if kind.provider in PROVIDERS}
    sdks = {VENDORS[kind.provider.partition(":")[2]].sdk for kind in LOOPS if kind.provider.startswith("ai:")}
    assert ways >= apis
    assert sdks == set(get_args(Sdk))

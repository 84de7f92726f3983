"""Questions of real MCP servers to people: recorded as they are asked, answered later, by other connections."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import mcp_types as types
import pytest
from temporalio.testing import ActivityEnvironment

from longhaul.activities.mcp.server_requests import asked_for
from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.tool import NeedsInput, ToolError, ToolOutput
from longhaul.agent.values.conversation.messages import ServerAsked, in_words
from tests.activities.mcp.serving import SECRETS, servers, serving, small, stdio, tools_of, used
from tests.activities.tools.calls import called, place_at
from tests.e2e.processes import ROOT
from tests.servers.local import free_port


@pytest.fixture(scope="module")
async def address() -> AsyncIterator[dict[str, Any]]:
    port = free_port()
    async with serving("streamable-http", port):
        yield {"url": f"http://127.0.0.1:{port}/mcp"}


OLDER = small()
"""It asks while a call runs, as versions of the protocol before 2026-07-28 do."""


async def call(config: dict[str, Any], name: str, asked: ServerAsked | None = None, **table: Any) -> str | ServerAsked:
    """With connections of its own, as after a worker was replaced."""
    async with used(servers(config, **table)) as mcp:
        return await through(mcp, name, asked)


async def through(mcp: McpServers, name: str, asked: ServerAsked | None = None) -> str | ServerAsked:
    tool = (await tools_of(mcp)).get(f"mcp__harbour__{name}")
    assert tool is not None

    async def run() -> ToolOutput:
        return await tool.run(replace(called({}, place_at(ROOT), await tool.examine({}, place_at(ROOT))), asked=asked))

    try:
        output = await ActivityEnvironment().run(run)
    except NeedsInput as question:
        return question.asked
    assert isinstance(output.output, str)
    return output.output


def with_answers(asked: str | ServerAsked, **answers: Mapping[str, Any]) -> ServerAsked:
    assert isinstance(asked, ServerAsked)
    keyed = answers or {key: {"action": "accept", "content": {"name": "north"}} for key in asked.questions}
    return asked.model_copy(update={"waits": False, "answers": {**asked.answers, **keyed}})


async def test_a_question_ends_the_call_and_its_answer_goes_on_with_it(address: dict[str, Any]) -> None:
    first = await call(address, "hire")
    crew = {"action": "accept", "content": {"hands": 3, "watch": "starboard", "sings": True}}
    second = await call(address, "hire", with_answers(first, crew=crew))
    done = await call(address, "hire", with_answers(second, sign={"action": "accept"}))

    assert isinstance(first, ServerAsked)
    assert isinstance(second, ServerAsked)
    assert first.questions["crew"].fields["properties"] == {
        "hands": {"type": "integer", "minimum": 1, "maximum": 9, "title": "Hands"},
        "watch": {"type": "string", "default": "port", "enum": ["port", "starboard"], "title": "Watch"},
        "sings": {"type": "boolean", "default": False, "title": "Sings"},
    }
    assert "hands: integer, minimum 1, maximum 9, Hands" in in_words(first)
    assert (second.round, second.questions["sign"].url) == (2, "https://harbour.example/sign?crew=9")
    assert "'harbour' asks: Sign. (It wants you to open https://harbour.example/sign?crew=9" in in_words(second)
    assert str(done).endswith("signed: accept")
    assert '"hands": 3' in str(done)


@pytest.mark.proves("X19")
@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_who_asks_through_the_library_is_answered_too(over: str, address: dict[str, Any]) -> None:
    config = stdio() if over == "stdio" else address
    asked = await call(config, "moor")

    assert await call(config, "moor", with_answers(asked)) == "moored at north"


@pytest.mark.proves("X19")
async def test_a_server_of_an_older_version_is_asked_again_where_its_call_may_run_twice() -> None:
    asked = await call(OLDER, "moor", effects={"moor": "idempotent"})
    moored = await call(OLDER, "moor", with_answers(asked), effects={"moor": "idempotent"})

    assert isinstance(asked, ServerAsked)
    assert [one.message for one in asked.questions.values()] == ["Which berth?"]
    assert asked.from_start
    assert moored == "moored at north"


@pytest.mark.parametrize("is_stateful", [False, True])
async def test_a_call_that_runs_once_is_told_that_an_older_server_has_asked(
    is_stateful: bool,
) -> None:
    async with used(servers(OLDER, is_stateful=is_stateful)) as mcp:
        told = await through(mcp, "moor")

    assert "'harbour' asked a person while this call ran: Which berth?" in str(told)


async def test_nobody_asks_a_model_for_a_server(address: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match=r"'harbour' did not go on.*it wants that a model is asked.*\(sampling\)"):
        await call(address, "guess")


def asked_of(schema: dict[str, Any] | None = None, *, state: str = "", url: str = "") -> types.InputRequiredResult:
    params: Any = {"message": "Which?", **({"mode": "url", "url": url} if url else {"requestedSchema": schema or {}})}
    request = {"method": "elicitation/create", "params": params}
    return types.InputRequiredResult.model_validate({"inputRequests": {"q": request}, "requestState": state})


def form(**field: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"berth": field}}


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (asked_of(form(type="object")), "a field 'berth' that is no text, number, yes or no, or list of choices"),
        (asked_of(form(type="string", minLength="many")), "the schema of its question is none"),
        (asked_of(form(type="string", enum=["x" * 20_000])), "and the most is 16,000"),
        (asked_of(form(type="string", enum=["tide-token-moss"])), "its question holds a secret of the workers"),
        (asked_of(form(type="number", default=float("inf"))), "its question is no plain JSON"),
        (asked_of(form(type="string"), state="tide-token-moss"), "what it wants back .* holds a secret of the workers"),
        (asked_of(form(type="string"), state="x" * 100_001), "has 100,001 characters"),
        (asked_of(url="file:///etc/passwd"), "'file:///etc/passwd', which is no http address"),
    ],
)
def test_a_question_that_nobody_can_be_asked_ends_the_call(result: types.InputRequiredResult, why: str) -> None:
    with pytest.raises(ToolError, match=f"the MCP server 'harbour' did not go on with this call: .*{why}"):
        asked_for(result, "harbour", None, SECRETS.masker)


def test_a_server_asks_for_one_call_no_more_often_than_the_bound() -> None:
    before = ServerAsked(server="harbour", questions={}, round=20)

    with pytest.raises(ToolError, match="has asked 20 times for this one call"):
        asked_for(asked_of(form(type="string")), "harbour", before, SECRETS.masker)


def test_words_of_a_question_are_masked_and_obey_nobody() -> None:
    field = {"type": "array", "items": {"anyOf": [{"const": "n", "title": "North"}]}, "title": "tide-token-moss\x1b[2J"}
    asked = asked_for(asked_of(form(**field)), "harbour", None, SECRETS.masker)

    assert asked.questions["q"].fields["properties"]["berth"] == {
        "type": "array",
        "items": {"enum": ["n"]},
        "title": "[secret TIDE_TOKEN]\\x1b[2J",
    }

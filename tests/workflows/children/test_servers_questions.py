"""What the MCP server of a sub-agent asks a person stands in the root's inbox with its path, and is answered there."""

from collections.abc import Awaitable, Callable

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.cli.session_lookup import place_of
from longhaul.starter.client.session import Session
from longhaul.starter.client.tree import WaitingBelow
from tests.activities.mcp.serving import serving
from tests.servers.local import free_port
from tests.workflows.children.test_background import given, said
from tests.workflows.children.trees import SUMMED_UP, agent, child_of, lead, tasks
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]

PATH = "lamp › scout › mcp__harbour__hire"
HIRED = {"text": "Hired.", "expect": {"last_contains": "signed: accept"}}


async def question(session: Session, words: str) -> WaitingBelow:
    """The one that waits below, once it is the one with these words."""
    found = list[WaitingBelow]()

    async def asks() -> bool:
        found[:] = await session.tree.pending() if await session.has_started() else []
        return len(found) == 1 and words in found[0].call.reason

    await until(asks)
    return found[0]


def in_inbox(stage: Stage, session_id: str, path: str) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        cards = [(card.session_id, call.path) for card, call in (await stage.app.inbox()).calls]
        return (session_id, path) in cards

    return found


def ended(session: Session) -> Callable[[], Awaitable[bool]]:
    async def told() -> bool:
        return (await said(session))[-1:] == ["Summed up."]

    return told


@pytest.mark.proves("X14")
@pytest.mark.parametrize("way", ["foreground", "background"])
async def test_what_a_sub_agents_server_asks_is_answered_at_the_root_by_whichever_worker_is_there(
    unserved: Stage, way: str
) -> None:
    stage, port = unserved, free_port()
    harbour = {"mcp_config": {"url": f"http://127.0.0.1:{port}/mcp"}}
    stage.settings = stage.settings.model_copy(update={"mcp": {"harbour": harbour}})
    allowed = {"rules": [{"tool_name": "mcp__harbour"}]}
    hires = agent(stage, calls("mcp__harbour__hire"), HIRED, tools=[], mcps=[{"name": "harbour"}], permission=allowed)
    turns = {"foreground": (tasks("t1 scout"), SUMMED_UP), "background": (given("t1"), {"text": "I wait."}, SUMMED_UP)}
    session = lead(stage, {"scout": hires}, *turns[way])
    async with serving("streamable-http", port):
        async with stage.another_worker():
            await session.submit("Hire a crew")
            whom = await question(session, "Whom?")
            below = child_of(stage, session)
            await until(in_inbox(stage, below.id, PATH))
        async with stage.another_worker():
            place = await place_of(session, whom.call.call_id, "outside")
            await place.external_result(whom.call, {"action": "accept", "content": {"hands": 4}}, by="ana")
            sign = await question(session, "sign?crew=9")
        async with stage.another_worker():
            await sign.session.external_result(sign.call, "accept")
            await until(ended(session))
            assert await session.tree.pending() == []
            hired = [message async for message in below.transcript()]
            scheduled = await stage.scheduled(below)

    assert whom.call.path == sign.call.path == PATH
    assert [call_id for _, call_id in whom.above] == ["t1"]
    assert place.id == below.id == f"{session.id}.t1"
    outcomes = [found for message in hired for found in results(message)]
    assert [(state, text.endswith("signed: accept"), '"hands": 4' in text) for state, text in outcomes] == [
        (ToolResultState.SUCCESS, True, True)
    ]
    assert scheduled.count("mcp__harbour__hire") == 3

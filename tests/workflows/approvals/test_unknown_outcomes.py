"""Calls whose outcome is unknown, on the real server: looked into by their tool, or settled by a person."""

from collections import Counter
from typing import Any

import pytest

from longhaul.activities.contract import EntriesPage
from longhaul.agent.values.conversation.messages import HintBlock, Msg, ToolResultState
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = pytest.mark.server

FREE: dict[str, Any] = {"permission": {"mode": "bypass"}, "tools": ["post", "engrave", "fetch", "send"]}


@pytest.mark.proves("X2")
async def test_a_tool_looks_and_the_model_hears_what_it_saw(stage: Stage) -> None:
    written, blank = stage.workspace / "written.txt", stage.workspace / "blank.txt"
    session = stage.session(
        calls("post", text="Dear Ana", book=str(written)),
        calls("post", text="", book=str(blank)),
        {"text": "Understood."},
        **FREE,
    )

    done = await session.reply("Post both")

    assert (done.error, done.get_text_content()) == (None, "Understood.")
    assert [state for state, _ in results(done)] == [ToolResultState.UNKNOWN] * 2
    assert all("may have done part of its work" in text for _, text in results(done))
    assert [hint.partition(", whose")[2] for hint in await hints(session)] == [
        " outcome was unknown, is resolved: it did happen. post has looked: the book says 'Dear Ana'",
        " outcome was unknown, is resolved: it did not happen, and nothing of it was done. post has looked.",
    ]
    assert ((await session.status()).unknown_outcomes, await session.pending()) == (0, [])
    with pytest.raises(Refused, match="call 'call_0_0' is resolved: it happened, on the word of the tool's probe"):
        await session.resolve("call_0_0", happened=False)


async def test_a_reply_of_an_agent_that_asks_waits_for_a_persons_word(stage: Stage) -> None:
    session = stage.session(calls("engrave", text="Ana"), {"text": "I see."}, on_unknown_outcome="ask", **FREE)

    seen = [event async for event in session.reply_stream("Engrave it")]
    waiting = await session.wait(seen[-1].reply_id)
    (call,) = await session.pending()
    await until(lambda: listed(stage, session))
    await session.resolve(call, happened=True, output="ANA", by="bo", reason="I have the ring here")
    done = await session.wait(waiting.id)

    assert (seen[-1].type, seen[-1].state) == ("TOOL_RESULT_END", ToolResultState.UNKNOWN)
    assert (waiting.finished_reason, waiting.metadata) == (None, {"waiting_for": ["call_0_0"]})
    assert (call.waits_for, call.tool) == ("resolution", "engrave")
    assert done.get_text_content() == "I see."
    assert results(done) == results(waiting)
    (hint,) = await hints(session)
    assert hint.endswith("it did happen. On the word of bo: I have the ring here\nIts output:\nANA")


async def test_a_call_of_unknown_outcome_stands_in_the_inbox_when_its_session_has_gone_on(stage: Stage) -> None:
    session = stage.session(calls("engrave", text="Ana"), {"text": "I go on."}, **FREE)

    done = await session.reply("Engrave it")
    await until(lambda: listed(stage, session))
    await session.resolve("call_0_0", happened=False, by="bo")

    async def forgotten() -> bool:
        return not await listed(stage, session)

    await until(forgotten)
    assert (done.get_text_content(), (await session.status()).status) == ("I go on.", "idle")


async def listed(stage: Stage, session: Session) -> bool:
    """Whether the inbox shows the call."""
    found = await stage.app.inbox()
    return session.id in [card.session_id for card, call in found.calls if call.waits_for == "resolution"]


async def test_a_call_that_may_run_once_costs_what_one_costs_that_only_reads(stage: Stage) -> None:
    activities: list[Counter[str]] = []
    entries: list[list[str]] = []
    for line in (calls("fetch", page=1), calls("send", to="Ana")):
        session = stage.session(*[line] * 5, {"text": "Done."}, **FREE)
        await session.reply("Do it five times")
        activities.append(await activity_types(stage, session))
        page = await stage.handle(session).query("entries", result_type=EntriesPage)
        entries.append([entry.kind for entry in page.entries if entry.kind != "checkpointed"])

    assert activities[1].pop("send") == activities[0].pop("fetch") == 5
    assert activities[0] == activities[1]
    assert entries[0] == entries[1]


async def activity_types(stage: Stage, session: Session) -> Counter[str]:
    """How often each was scheduled; checkpoints are made when there is time for them."""
    return Counter(name for name in await stage.scheduled(session) if name != "longhaul.checkpoint")


async def hints(session: Session) -> list[str]:
    messages: list[Msg] = [each async for each in session.context()]
    return [str(block.hint) for message in messages for block in message.content if isinstance(block, HintBlock)]

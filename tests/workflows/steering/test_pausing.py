"""A paused session on the server: what it does not do, what it answers, who sees it, and what its pause survives."""

from typing import Any

import pytest

from longhaul.activities.contract import CALL_MODEL
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, push_over, until

pytestmark = pytest.mark.server


async def paused(session: Session) -> tuple[str, int, int]:
    """How it stands, how many model calls it has made, how many requests wait."""
    status = await session.status()
    return status.status, status.model_calls, status.queued


async def details(stage: Stage, session: Session) -> str:
    return str(await stage.handle(session).query("__temporal_workflow_metadata"))


async def comes_to(session: Session, expected: Any) -> None:
    async def stands() -> bool:
        status = await session.status()
        return not status.stepping and await paused(session) == expected

    await until(stands)


async def told(session: Session) -> list[str]:
    """Names of the events that the seed has no type for."""
    last = (await session.events()).last
    names: list[str] = []
    async for event in session.follow(live=False):
        names += [event.name] if event.type == "CUSTOM" else []
        if event.seq == last:
            break
    return names


@pytest.mark.proves("D1")
async def test_a_pause_holds_through_other_workers_and_continue_as_new_and_steps_lead_through_it(  # noqa: PLR0915  one story
    unserved: Stage,
) -> None:
    stage = unserved
    session = stage.session({"text": "Hello."}, calls("send", to="Ana"), {"text": "Written."}, {"text": "Later."})
    async with stage.another_worker():
        await session.reply("Hello")
        assert await session.pause(why="the mill is closed", by="ana") is True
        assert await session.pause(by="ben") is False
        reply = await session.submit("Write to Ana")
        later = await session.submit("And then?")
        await push_over(stage, session)
        assert await paused(session) == ("paused", 1, 2)
        assert (await session.status()).paused_by == "ana"
        assert "paused since" in await details(stage, session)

        async def listed() -> bool:
            found = await stage.app.inbox()
            return session.id in [card.session_id for card, _ in found.paused]

        await until(listed)
    async with stage.another_worker():
        assert await session.step(by="ana") is True
        await comes_to(session, ("paused", 2, 1))
        (call,) = await session.pending()
        assert session.id in [card.session_id for card, _ in (await stage.app.inbox()).calls]
        with pytest.raises(Refused, match="there is no step to take: the reply waits for answers to"):
            await session.step()
        assert (await session.wait(reply)).metadata["waiting_for"] == [call.call_id]
        await session.confirm(call, allow=True)
        assert await paused(session) == ("paused", 2, 1)
        await session.step()

        async def has_its_result() -> bool:
            return not (await session.status()).stepping

        await until(has_its_result)
        assert (await session.result(reply)).status == "working"
    async with stage.another_worker():
        assert await paused(session) == ("paused", 2, 1)
        await session.resume(by="ben")
        assert (await session.wait(reply)).get_text_content() == "Written."
        assert (await session.wait(later)).get_text_content() == "Later."
        with pytest.raises(Refused, match="neither quarantined nor paused"):
            await session.resume()
        assert (await session.status()).status == "idle"
        assert await told(session) == ["paused", "step_asked", "step_asked", "resumed"]


@pytest.mark.alone
async def test_what_runs_while_a_signal_pauses_its_session_is_let_finish(stage: Stage) -> None:
    slow = {"text": "I look.", "delay_ms": 2_000, "tool_calls": [{"name": "fetch", "input": {"page": 1}}]}
    session = stage.session(slow, {"text": "Seen."})
    reply = await session.submit("Look")

    async def thinking() -> bool:
        underway = (await stage.handle(session).describe()).raw_description.pending_activities
        return CALL_MODEL in [one.activity_type.name for one in underway]

    await until(thinking)
    await stage.handle(session).signal("pause", {"by": "ana"})
    await comes_to(session, ("paused", 1, 0))
    await session.observe("It rains")
    interrupted = await session.interrupt("Never mind")
    assert interrupted == reply
    done = await session.wait(reply)
    assert (done.finished_reason, [result.get_text() for result in done.get_tool_results()]) == (
        "interrupted",
        ["Cancelled before start: this call did not run."],
    )
    assert await paused(session) == ("paused", 1, 1)
    await stage.handle(session).signal("resume")

    async def idle() -> bool:
        return (await session.status()).status == "idle"

    await until(idle)
    assert (await session.status()).model_calls == 2


async def test_a_session_begins_paused_where_it_is_set_up_before_its_first_request(stage: Stage) -> None:
    session = stage.session({"text": "One."})

    await session.configure(max_iters=9)
    await session.pause(by="ana")
    reply = await session.submit("First")
    before = await session.status()
    await session.step(by="ana")
    message = await session.wait(reply)

    assert (before.status, before.model_calls) == ("paused", 0)
    assert message.get_text_content() == "One."

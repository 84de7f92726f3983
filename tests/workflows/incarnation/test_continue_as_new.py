"""A session goes on in a fresh history: nothing is lost, nothing is said twice, and nobody outside notices."""

import json

import pytest

from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.listener import listening, says
from tests.workflows.operations import ASKS, approve_and_finish, calls, push_over, until
from tests.workflows.tools import page_text

pytestmark = pytest.mark.server


async def run_ids(stage: Stage, session: Session) -> list[str]:
    """The runs of a session, newest first."""
    query = f"WorkflowId = '{session.workflow_id}'"
    return [row.run_id async for row in stage.client.list_workflows(query)]


async def all_events(session: Session) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    while (page := await session.events(len(events) + 1)).events:
        events += page.events
    return events


async def whole_transcript(session: Session) -> list[Msg]:
    return [message async for message in session.transcript()]


@pytest.mark.proves("X1")
@pytest.mark.parametrize("steps", [400, pytest.param(1_000, marks=pytest.mark.chaos)])
async def test_many_steps_reach_the_model_whole_and_in_order(stage: Stage, steps: int) -> None:
    """The script walks, and then a model that keeps what it heard is asked."""
    chars = 500
    pages = [calls("fetch", page=number, chars=chars) for number in range(steps)]
    async with listening(lambda _: says("I remember.")) as model:
        agent = {**model.config, "model": stage.script(*pages, {"text": "Read."})}
        agent["model_config"] = {**agent["model_config"], "context_length": 100_000_000}
        session = stage.session(tools=["fetch"], react_config={"max_iters": steps + 1}, **agent)

        done = await session.reply("Read all pages")
        await session.configure(model="openai-chat:listener")
        asked = await session.reply("What did you read?")

    assert (done.error, done.get_text_content(), len(done.content)) == (None, "Read.", 2 * steps + 1)
    assert (asked.error, asked.get_text_content()) == (None, "I remember.")
    expected = ["Read all pages"]
    for number in range(steps):
        expected += [json.dumps({"page": number, "chars": chars}), page_text(number, chars)]
    assert model.texts() == [*expected, "Read.", "What did you read?"]
    assert len(await run_ids(stage, session)) >= steps // 200
    assert (await session.status()).model_calls == steps + 2


async def test_queries_answer_the_same_before_and_after(stage: Stage) -> None:
    session = stage.session(calls("fetch", page=4), {"text": "Four."}, {"text": "Hm."})
    done = await session.reply("Page 4", request_id="r-four")
    before = await all_events(session)
    transcript, state = await whole_transcript(session), await session.state()

    await push_over(stage, session)

    assert await all_events(session) == before
    assert [event.seq for event in before] == list(range(1, len(before) + 1))
    assert await whole_transcript(session) == transcript
    assert await session.state() == state
    assert (await session.result(done.id)).message == done


async def test_events_are_numbered_on_without_a_gap(stage: Stage) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."})
    await session.reply("First")
    before = await all_events(session)
    await push_over(stage, session)

    await session.reply("Second")
    after = await all_events(session)

    assert after[: len(before)] == before
    assert [event.seq for event in after] == list(range(1, len(after) + 1))
    assert [event.type for event in after].count("REPLY_END") == 2
    assert [event.delta for event in after if event.type == "TEXT_BLOCK_DELTA"] == ["One.", "Two."]


async def test_a_request_id_is_remembered(stage: Stage) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."})
    first = await session.reply("Hello", request_id="r-amber")
    await push_over(stage, session)

    again = await session.reply("Hello", request_id="r-amber")
    with pytest.raises(Refused, match="was used before for another message"):
        await session.submit("Good-bye", request_id="r-amber")

    assert again == first
    assert (await session.status()).model_calls == 1


async def test_a_parked_session_is_approved_afterwards(stage: Stage) -> None:
    session = stage.session(*ASKS)
    waiting = await session.reply("Write to Ana")
    (before,) = await session.pending()

    await push_over(stage, session)

    assert await session.pending() == [before]
    status = await session.status()
    assert (status.status, status.refused >= 21) == ("waiting", True)
    assert await approve_and_finish(session, waiting.id) == "Written."


async def test_the_list_of_sessions_shows_it_as_before(stage: Stage) -> None:
    session = stage.session(*ASKS, name=f"lamp-{stage.name[-6:]}", user="ana")
    await session.reply("Write to Ana")
    (before,) = [card for card in await stage.app.sessions(user="ana") if card.agent == session.spec.name]
    await push_over(stage, session)

    async def listed_again() -> bool:
        return bool([card for card in await stage.app.sessions(user="ana") if card.agent == session.spec.name])

    await until(listed_again)
    (after,) = [card for card in await stage.app.sessions(user="ana") if card.agent == session.spec.name]
    told = (after.session_id, after.user_id, after.status, after.waiting_since)
    assert told == (before.session_id, "ana", "waiting", before.waiting_since)

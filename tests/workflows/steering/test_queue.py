"""Requests: each one is answered once, in the order of arrival, whatever its id looks like."""

import asyncio
import random

import pytest

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock
from longhaul.agent.values.permission import PermissionMode
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.activities.models.sample_requests import PIXEL
from tests.workflows.conftest import Stage
from tests.workflows.operations import ASKS, calls

pytestmark = pytest.mark.server

EACH = 10
"""Messages of each of two clients."""


def texts(count: int) -> list[dict[str, str]]:
    return [{"text": f"answer {number}"} for number in range(count)]


@pytest.mark.proves("S10")
async def test_a_request_sent_twice_is_one_turn(stage: Stage) -> None:
    session = stage.session(*texts(3))

    first, second = await asyncio.gather(
        session.reply("Hello", request_id="r-amber"), session.reply("Hello", request_id="r-amber")
    )
    third = await session.reply("Hello", request_id="r-amber")

    assert first == second == third
    assert first.get_text_content() == "answer 0"
    assert ((await session.status()).model_calls, (await session.status()).messages) == (1, 2)


@pytest.mark.proves("S10")
async def test_an_id_that_was_used_for_another_message_is_refused(stage: Stage) -> None:
    session = stage.session(*texts(3))
    await session.reply("Hello", request_id="r-amber")

    with pytest.raises(Refused, match="request_id 'r-amber' was used before for another message"):
        await session.submit("Good-bye", request_id="r-amber")

    assert (await session.status()).model_calls == 1


@pytest.mark.proves("E1")
async def test_two_clients_are_answered_in_the_order_in_which_they_came(stage: Stage) -> None:
    """At random moments, some of them sent twice."""
    chance = random.Random(5)  # noqa: S311  no secret
    session = stage.session(*texts(2 * EACH + 1))
    other = stage.app.session(session.id, agent=session.spec)
    await session.submit("first of all", request_id="r-zero")

    async def ask_all(client: Session, name: str) -> list[str]:
        replies = []
        for number in range(EACH):
            request_id = f"r-{name}{number}"
            replies.append(await client.submit(f"{name}{number}", request_id=request_id))
            if chance.random() < 0.2:
                assert await client.submit(f"{name}{number}", request_id=request_id) == replies[-1]
            await asyncio.sleep(chance.uniform(0, 0.03))
        return replies

    by_a, by_b = await asyncio.gather(ask_all(session, "a"), ask_all(other, "b"))
    answers = [(await session.wait(reply)).get_text_content() for reply in [*by_a, *by_b]]
    said = [message.get_text_content() async for message in session.transcript()]

    asked, answered = said[2::2], said[3::2]
    assert [ask for ask in asked if ask[0] == "a"] == [f"a{n}" for n in range(EACH)]
    assert [ask for ask in asked if ask[0] == "b"] == [f"b{n}" for n in range(EACH)]
    assert len(asked) == 2 * EACH
    assert answered == [f"answer {n}" for n in range(1, 2 * EACH + 1)]
    assert len({*by_a, *by_b}) == 2 * EACH
    heard = dict(zip(asked, answered, strict=True))
    assert answers == [heard[f"{name}{n}"] for name in "ab" for n in range(EACH)]


@pytest.mark.proves("A3")
async def test_what_is_observed_while_a_call_waits_comes_after_its_result(stage: Stage) -> None:
    heard = {"expect": {"last_contains": "The kettle boils"}, "text": "I heard."}
    session = stage.session(calls("send", to="Ana"), heard)
    waiting = await session.reply("Write to Ana")

    await session.observe("The kettle boils")
    await session.confirm("call_0_0", allow=True)
    done = await session.wait(waiting.id)

    assert done.error is None
    kinds = [message.content[0].type for message in [each async for each in session.transcript()]]
    assert kinds == ["text", "tool_call", "tool_result", "text", "text"]


@pytest.mark.proves("A3")
async def test_what_is_observed_in_idleness_is_read_with_the_next_request(stage: Stage) -> None:
    session = stage.session({"text": "I know.", "expect": {"messages": 2}})

    await session.observe("The kettle boils")
    done = await session.reply("What is new?")

    assert (done.error, done.get_text_content()) == (None, "I know.")


@pytest.mark.proves("E7")
async def test_an_interrupt_with_a_message_goes_before_the_queue(stage: Stage) -> None:
    session = stage.session(*ASKS[:1], {"text": "Stopped."}, {"text": "Later."})
    waiting = await session.reply("Write to Ana")
    queued = await session.submit("And then?")

    interrupted = await session.interrupt("No, stop!")
    stopped, later = await session.wait(waiting.id), await session.wait(queued)

    assert interrupted == waiting.id
    assert stopped.finished_reason == "interrupted"
    assert stopped.get_tool_results()[0].get_text() == "Cancelled before start: this call did not run."
    said = [message.get_text_content() async for message in session.transcript() if message.get_text_content()]
    assert said == ["Write to Ana", "I write to Ana.", "No, stop!", "Stopped.", "And then?", "Later."]
    assert later.get_text_content() == "Later."


async def test_there_is_nothing_to_interrupt_in_idleness(stage: Stage) -> None:
    session = stage.session(*texts(1))
    await session.reply("Hello")

    with pytest.raises(Refused, match="nothing to interrupt"):
        await session.interrupt()


async def test_another_mode_holds_for_the_next_call(stage: Stage) -> None:
    write = calls("Write", file_path="note.txt", content="rain")
    session = stage.session(write, {"text": "Not written."}, write, {"text": "Written."}, tools=["Write"])
    waiting = await session.reply("Write")
    await session.confirm("call_0_0", allow=False)
    await session.wait(waiting.id)

    await session.configure(mode=PermissionMode.ACCEPT_EDITS.value, by="ana")
    done = await session.reply("Write")

    assert done.get_text_content() == "Written."
    assert (stage.workspace / "note.txt").read_text() == "rain"
    assert (await session.status()).mode == "accept_edits"


async def test_other_limits_and_another_model_hold_from_the_next_step(stage: Stage) -> None:
    session = stage.session(*[calls("fetch", page=n) for n in range(9)], tools=["fetch"])
    await session.configure(max_iters=2)

    limited = await session.reply("Read on")
    await session.configure(max_iters=9, model=stage.script({}, {}, {}, {"text": "I am another one."}))
    other = await session.reply("And now?")

    assert (limited.finished_reason, len(limited.get_tool_results())) == ("exceed_max_iters", 2)
    assert other.content == (TextBlock(text="I am another one."),)


async def test_a_dozen_requests_at_once_are_all_taken(stage: Stage) -> None:
    """A stock server lets ten updates of a session be under way, ours any number; the client sends a few at a time."""
    session = stage.session(*texts(12))

    replies = await asyncio.gather(*[session.reply(f"Question {number}") for number in range(12)])

    assert len({reply.get_text_content() for reply in replies}) == 12


@pytest.mark.proves("A3")
@pytest.mark.parametrize("way", ["observe", "reply"])
async def test_of_another_agents_message_the_text_and_data_are_taken(stage: Stage, way: str) -> None:
    other = stage.session({**ASKS[0], "thinking": "Ana, then."}, ASKS[1], permission={"mode": "bypass"})
    session = stage.session({"text": "I heard."})
    message = await other.reply("Write to Ana")
    picture = DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"))
    message = message.model_copy(update={"content": (*message.content, picture)})

    if way == "observe":
        await session.observe(message)
    await session.reply(message if way == "reply" else "And?")

    heard = await anext(aiter(session.transcript()))
    assert {block.type for block in message.content} >= {"thinking", "tool_call", "tool_result"}
    assert (heard.role, heard.name) == ("assistant", "lamp")
    assert heard.content == (TextBlock(text="I write to Ana."), TextBlock(text="Written."), picture)

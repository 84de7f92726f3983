"""Words in the midst of a reply, on the server: joined, in its place, dropped; never lost, and never heard twice."""

import asyncio
import random

import pytest

from longhaul.agent.values.conversation.messages import problem
from longhaul.starter.client.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server


@pytest.mark.proves("X7")
async def test_words_join_the_reply_that_waits_or_take_its_place_and_requests_are_dropped(stage: Stage) -> None:
    heard = {"expect": {"last_contains": "Kindly"}, "text": "Written, kindly."}
    session = stage.session(
        calls("send", to="Ana"), heard, calls("send", to="Ben"), {"text": "Stopped."}, {"text": "Z"}
    )
    waiting = await session.reply("Write to Ana")
    queued = await session.submit("Write to Ben")
    dropped = await session.submit("Write to Cleo", request_id="r-cleo")

    joined = await session.submit("Kindly", when="now", request_id="r-kindly")
    assert await session.submit("Kindly", when="now", request_id="r-kindly") == joined
    waits = [(each.request_id, each.when, each.joins) for each in (await session.status()).requests]
    assert (waits[0], waits[2]) == (("r-kindly", "now", True), ("r-cleo", "queue", False))
    assert (await session.result(joined)).status == "queued"
    assert [call.call_id for call in await session.pending()] == waiting.metadata["waiting_for"]
    assert await session.interrupt(request_id="r-cleo") == dropped
    assert (await session.wait(dropped)).finished_reason == "interrupted"
    with pytest.raises(Refused, match="'r-cleo' neither waits nor is being answered"):
        await session.interrupt(request_id="r-cleo")
    await session.confirm(waiting.metadata["waiting_for"][0], allow=True)
    done = await session.wait(joined)
    assert (done.id, done.get_text_content()) == (waiting.id, "Written, kindly.")

    second = await session.wait(queued)
    assert second.metadata["waiting_for"]
    instead = await session.submit("No, stop", when="interrupt")
    assert (await session.wait(queued)).finished_reason == "interrupted"
    assert (await session.wait(instead)).get_text_content() == "Stopped."
    texts = [message.get_text_content() async for message in session.transcript() if message.get_text_content()]
    assert texts == ["Write to Ana", "Kindly", "Written, kindly.", "Write to Ben", "No, stop", "Stopped."]
    assert problem([message async for message in session.context()]) == ""


@pytest.mark.proves("X7")
@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(20))
async def test_in_any_order_each_message_is_heard_once(stage: Stage, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  no secret
    lines = [calls("send", to="Ana") if chance.random() < 0.5 else {"text": "Fine.", "delay_ms": 30} for _ in range(60)]
    session = stage.session(*lines)
    replies = [await session.submit("first")]

    async def disturb(number: int) -> None:
        await asyncio.sleep(chance.random())
        word = chance.choice(["queue", "now", "now", "interrupt", "stop", "confirm"])
        try:
            if word == "stop":
                await session.interrupt()
            elif word == "confirm":
                for call in await session.pending():
                    await session.confirm(call, allow=chance.random() < 0.5)
            else:
                replies.append(await session.submit(f"message {number}", when=word))  # type: ignore[arg-type]
        except Refused:
            pass

    await asyncio.gather(*(disturb(number) for number in range(12)))
    while (status := await session.status()).status != "idle":
        for call in await session.pending():
            try:
                await session.confirm(call, allow=False)
            except Refused:
                continue
        await asyncio.sleep(0.05)
    assert status.queued == 0
    assert all([(await session.wait(reply)).finished_reason for reply in replies])
    context = [message async for message in session.context()]
    asked = [message.get_text_content() for message in context if message.role == "user"]
    assert sorted(asked) == sorted(set(asked))
    assert len(asked) == len(replies)
    assert problem(context) == ""

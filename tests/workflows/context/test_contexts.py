"""Which worker a step runs on makes no difference: what one has not seen it asks the session for."""

from typing import Any

import pytest

from tests.workflows.conftest import Stage
from tests.workflows.listener import asks_for, listening, says
from tests.workflows.operations import next_call
from tests.workflows.tools import page_text

pytestmark = pytest.mark.server


async def test_workers_beside_each_other_give_the_model_every_message_in_order(stage: Stage) -> None:
    steps = 30

    def answer(number: int) -> dict[str, Any]:
        return asks_for("fetch", f"c{number}", page=number) if number < steps else says("Read.")

    async with listening(answer) as model, stage.another_worker(), stage.another_worker():
        session = stage.session(tools=["fetch"], **model.config)
        done = await session.reply("Read")

    assert (done.error, done.get_text_content()) == (None, "Read.")
    assert model.texts()[2::2] == [page_text(number, 40) for number in range(steps)]


async def test_a_worker_that_comes_in_the_middle_gives_the_model_every_message_in_order(unserved: Stage) -> None:
    """Each operation is sent by another worker, which starts when the one before has gone."""
    people = ["Ana", "Bo", "Cy", "Dot"]

    def answer(number: int) -> dict[str, Any]:
        turn = {"role": "assistant", "content": f"Letter {number}"}
        return {**turn, **asks_for("send", f"c{number}", to=people[number])} if number < 4 else says("All written.")

    async with listening(answer) as model:
        session = unserved.session(tools=["send"], **model.config)
        async with unserved.another_worker():
            waiting = await session.reply("Write to all")
            (call,) = await session.pending()
        for _ in people[:3]:
            async with unserved.another_worker():
                await session.confirm(call, allow=True)
                call = await next_call(session, call)
        async with unserved.another_worker():
            await session.confirm(call, allow=True)
            done = await session.wait(waiting.id)

    assert (done.error, done.get_text_content().splitlines()[-1]) == (None, "All written.")
    assert model.texts()[2::2] == [f"sent '' to {name}" for name in people]


async def test_long_arguments_are_found_by_a_worker_that_has_not_seen_them(unserved: Stage) -> None:
    """They are not sent twice: the activity has only the place where they stand."""
    operation = "Dear Ana, " + "it rains, " * 1_000
    session = unserved.session(
        {"tool_calls": [{"name": "send", "input": {"to": "Ana", "text": operation}}]}, {"text": "Written."}
    )
    async with unserved.another_worker():
        waiting = await session.reply("Write to Ana")

    async with unserved.another_worker():
        await session.confirm("call_0_0", allow=True)
        done = await session.wait(waiting.id)

    assert done.get_tool_results()[0].get_text() == f"sent {operation!r} to Ana"

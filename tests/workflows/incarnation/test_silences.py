"""A session that does not answer says why: its blobs are away, or nobody polls for it. Both fix themselves, and
neither is taken for a session that somebody has to bring back."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from longhaul.starter.client.reading.queries import BlobsUnreachable, NoWorker, Unexplained
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.operations import until
from tests.workflows.roomy import Moody, Roomy, worker_with

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("impatient")]

MEGABYTE = 1_000_000
ASKED: dict[str, Callable[[Session], Awaitable[object]]] = {
    "status": Session.status,
    "state": Session.state,
    "events": Session.events,
    "submit": lambda session: session.submit("Are you there?", request_id="r-there"),
    "interrupt": Session.interrupt,
}


async def said(session: Session) -> dict[str, Exception]:
    """What each way of asking comes to."""
    answers = await asyncio.gather(*(ask(session) for ask in ASKED.values()), return_exceptions=True)
    return {name: answer for name, answer in zip(ASKED, answers, strict=True) if isinstance(answer, Exception)}


async def answers(session: Session) -> bool:
    try:
        await session.status()
    except (BlobsUnreachable, Unexplained):
        return False
    return True


@pytest.mark.proves("S17")
async def test_a_session_whose_blobs_are_away_names_the_store_and_goes_on_by_itself(unserved: Stage) -> None:
    """Of one it is noticed at a query, of another at a task; side by side, for the server waits 20 s for an update."""
    roomy = await Roomy.over(unserved)
    async with roomy.another_worker():
        asked, working = [await roomy.opened({"text": "One."}, {"text": "Two."}, {"text": "Three."}) for _ in range(2)]
        await asyncio.gather(asked.reply("fog " * MEGABYTE), working.reply("fog " * MEGABYTE))
    blobs = Moody(roomy.blobs, away=True)
    async with worker_with(blobs, roomy):
        await roomy.handle(working).signal("observe", {"messages": "Somebody has written."})
        await asyncio.sleep(1)
        silences = await asyncio.gather(said(asked), said(working))
        refused = [await refused_rescue(asked), await refused_rescue(working)]
        blobs.away = False
        done = await asyncio.gather(goes_on(asked), goes_on(working))

    for told in silences:
        assert [name for name in ASKED if name not in told] == []
        for name, silence in told.items():
            assert isinstance(silence, BlobsUnreachable | Unexplained), (name, silence)
            if isinstance(silence, BlobsUnreachable):
                assert "can't be reached: a moody place is not in the mood; it continues by itself" in str(silence), (
                    name
                )
    assert "longhaul rescue" not in "".join(refused)
    assert {*done} <= {"Two.", "Three."}


async def refused_rescue(session: Session) -> str:
    """The sentence."""
    with pytest.raises(Refused, match=r"nothing to rescue.*(a moody place|does not say what fails)") as rescue:
        await session.rescue()
    return str(rescue.value)


async def goes_on(session: Session) -> str:
    """What it says to the next message, as soon as it answers again."""
    await until(lambda: answers(session))
    return (await session.reply("Back again")).get_text_content()


async def test_a_session_for_which_nobody_polls_says_so_and_is_not_rescued(unserved: Stage) -> None:
    async with unserved.another_worker():
        session = unserved.session({"text": "One."}, {"text": "Two."})
        await session.reply("Count")

    with pytest.raises(NoWorker, match=f"no worker polls the task queue '{unserved.name}'") as silence:
        await session.status()
    with pytest.raises(Refused, match="nothing to rescue: no worker polls"):
        await session.rescue()
    async with unserved.another_worker():
        done = await session.reply("Go on")

    assert "longhaul rescue" not in str(silence.value)
    assert "fail" not in str(silence.value)
    assert done.get_text_content() == "Two."


@pytest.mark.chaos  # a minute: worker processes may be on their way
async def test_a_question_behind_a_task_that_nobody_takes_has_an_end_too(unserved: Stage) -> None:
    async with unserved.another_worker():
        session = unserved.session({"text": "One."}, {"text": "Two."})
        await session.reply("Count")
    await unserved.handle(session).signal(
        "observe", {"messages": [{"name": "ana", "role": "user", "content": "Rain."}]}
    )

    with pytest.raises(NoWorker, match=f"no worker polls the task queue '{unserved.name}'"):
        await session.status()
    async with unserved.another_worker():
        done = await session.reply("Go on")

    assert done.get_text_content() == "Two."

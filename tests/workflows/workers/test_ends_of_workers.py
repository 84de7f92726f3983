"""A tool that takes its worker down, or blocks its event loop for ever: `once` calls are not started again
elsewhere."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from tests.workflows.conftest import Stage
from tests.workflows.ending_tools import FORMS
from tests.workflows.operations import results, until

pytestmark = pytest.mark.server

ON_THE_LOOP = ("ends_async", "ends_class", "ends_async_generator")


async def test_a_once_call_whose_worker_is_gone_is_not_started_again(unserved: Stage) -> None:
    """Both ways side by side, for each takes the half minute in which such a call has to give a sign of life."""
    await asyncio.gather(ends(unserved, "os._exit", FORMS), ends(unserved, "blocks", ON_THE_LOOP))


async def ends(unserved: Stage, how: str, forms: tuple[str, ...]) -> None:
    """On a queue of its own."""
    name = f"{unserved.name}-{how}"
    own = unserved.settings.model_copy(update={"tools": "tests.workflows.ending_tools", "task_queue": name})
    stage, book = replace(unserved, settings=own, name=name), unserved.folder / f"book of {how}"
    calls = [{"name": form, "input": {"how": how, "book": str(book)}} for form in forms]
    session = stage.session(
        {"tool_calls": calls}, {"text": "I see."}, {"text": "And on."}, tools=forms, permission={"mode": "bypass"}
    )

    async def started() -> bool:
        return book.exists()

    async with stage.worker_process():
        reply = await session.submit("End")
        await until(started)
        async with stage.worker_process():
            done = await session.wait(reply)
            after = await session.reply("Go on")
    await stage.end_sessions()

    ran = Counter(book.read_text().splitlines())
    assert ran.total() >= 1
    assert set(ran.values()) == {1}
    assert [state for state, _ in results(done)] == [ToolResultState.UNKNOWN] * len(forms)
    assert (done.get_text_content(), after.get_text_content()) == ("I see.", "And on.")

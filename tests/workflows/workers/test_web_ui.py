"""What a session shows of itself in Temporal's Web UI is really set on the server."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle
from temporalio.common import TypedSearchAttributes

from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.workflows.contract import COST, DEADLINE, STATUS, TOKENS, TOOLS, WAITS, Waits
from tests.workflows.conftest import Stage
from tests.workflows.operations import approve_and_finish, calls, until

pytestmark = pytest.mark.server


@pytest.mark.proves("F3")
async def test_timeline_page_index_and_memo_say_what_happens(stage: Stage) -> None:
    script = (calls("fetch", page=7), calls("send", to="Ana"), {"text": "Delivered."})
    session = stage.session(*script, user="olga", permission={"deadline": {"expire_after": "2d"}})
    waiting = await session.reply("Tell Ana")
    handle = stage.handle(session)
    (call,) = await session.pending()
    page = str(await handle.query("__temporal_workflow_metadata"))
    parked = await handle.describe()

    assert "**waiting** for 1 approval · agent `lamp` · 2 model calls" in page
    assert f"longhaul approve {session.id} {call.call_id} --user olga --agent lamp" in page
    assert "then it is denied" in page
    assert await parked.static_summary() == f"lamp: {session.id}"
    memo = dict(await parked.memo())
    waits = Waits.model_validate_json(memo.pop(WAITS))
    assert memo == {"agent": "lamp", "user": "olga", "session": session.id, "title": "Tell Ana"}
    assert (list(waits.calls), waits.left_out, waits.quarantine) == (await session.pending(), 0, "")
    assert about(parked.typed_search_attributes) == ("waiting", ["send"], True)

    await approve_and_finish(session, waiting.id)

    assert about((await handle.describe()).typed_search_attributes) == ("idle", None, False)
    assert "**idle**" in str(await handle.query("__temporal_workflow_metadata"))
    said = await summaries(handle)
    assert "look for an earlier incarnation, tools and workspace" in said
    assert [line[:8] for line in said if line.startswith("call ")] == ["call 1: ", "call 2: ", "call 3: "]
    assert "page: 7" in said
    assert "Ana" in said
    assert "deadline of a call that waits" in said
    assert "look whether it has been idle for too long" in said


@pytest.mark.proves("X15")
async def test_a_row_says_how_a_session_began_and_what_it_has_used(unserved: Stage) -> None:
    prices = unserved.folder / "prices.toml"
    prices.write_text(f'["{unserved.folder}"]\ninput = 2\noutput = 10\nas_of = 2026-11-01\nsource = "an operation"\n')
    stage = replace(unserved, settings=unserved.settings.model_copy(update={"prices": prices}))
    said = [{"text": text, "usage": {"input_tokens": 700, "output_tokens": 300}} for text in ("Lit.", "Out.")]
    session = stage.session(*said, budget={"max_cost": 1.0})
    async with stage.another_worker():
        await session.reply([UserMsg("ana", "Light\n the  lamp"), UserMsg("ana", "at dusk")])
        await session.reply("And put it out")
        copy = await session.stored.fork(f"{session.id}-copy")

        async def told() -> list[tuple[str, int, float]]:
            cards = await stage.app.sessions()
            rows = {card.session_id: (card.title, card.tokens, card.dollars) for card in cards}
            return [rows.get(one.id, ("", 0, 0.0)) for one in (session, copy)]

        async def is_told() -> bool:
            return (await told())[0][1] == 2_000

        await until(is_told)
        assert await told() == [("Light the lamp", 2_000, 0.0088), ("", 0, 0.0)]
        described = (await stage.handle(session).describe()).typed_search_attributes
        events = [event async for event in stage.handle(session).fetch_history_events()]
    assert (described.get(TOKENS), described.get(COST)) == (2_000, 0.0088)
    # Two for each reply: what it has used rides with what is told anyway.
    kinds = [event.event_type for event in events]
    assert kinds.count(EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES) == 3


@pytest.mark.proves("F3")
async def test_the_page_names_the_call_that_runs_while_it_runs(stage: Stage) -> None:
    marks = stage.folder / "marks.txt"
    slow = calls("dawdle", path=str(marks))
    session = stage.session(slow, {"text": "Done."}, tools=["dawdle"], permission={"mode": "bypass"})
    reply = await session.submit("Take your time")

    async def page() -> str:
        return str(await stage.handle(session).query("__temporal_workflow_metadata"))

    async def runs() -> bool:
        return marks.exists() and ": `dawdle` `" in await page()

    await until(runs)
    running = await page()
    marks.with_suffix(".enough").touch()
    done = await session.wait(reply)

    assert "**working** · agent `lamp` · 1 model call" in running
    assert re.search(r"running since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: `dawdle` `", running)
    assert done.get_text_content() == "Done."
    assert "running" not in await page()


def about(shown: TypedSearchAttributes) -> tuple[object, object, bool]:
    """Status, the tools that wait, and whether there is a deadline."""
    return shown.get(STATUS), shown.get(TOOLS), shown.get(DEADLINE) is not None


async def summaries(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Of activities and timers, in the order of the timeline."""
    history = await handle.fetch_history()
    return [
        json.loads(event.user_metadata.summary.data)
        for event in history.events
        if event.user_metadata.HasField("summary")
        and event.event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED
    ]

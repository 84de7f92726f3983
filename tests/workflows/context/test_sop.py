"""The checklist that AgentScope's SOP ends with, in its order, as one day of two agents that work in one room."""

import asyncio
from typing import Any

import pytest

from longhaul.starter.client.feed import FeedItem
from longhaul.starter.client.session import Session
from longhaul.stores.memories.memories import MemoryOwner, NewMemory
from longhaul.stores.memories.sqlite_memories import SqliteMemories
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import TOOLS, Stage
from tests.workflows.hubs.rooms import heard
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server

HERE = "tests.workflows.middlewares"
HOUR = {"type": "object", "properties": {"hour": {"type": "integer"}}, "required": ["hour"]}
TWO_PAGES = {"tool_calls": [{"name": "fetch", "input": {"page": page}} for page in (1, 2)], "thinking": "Two pages."}


async def the_loop(ana: Session) -> None:
    """Hints before it, two tools side by side, an answer in a form, and what is written down behind it."""
    told = [event async for event in ana.reply_stream("When is high tide?", structured_model=HOUR)]

    steps = [event.name if event.type == "CUSTOM" else event.type for event in told]
    named = ("REPLY_START", "HINT_BLOCK", "MODEL_CALL_START", "TOOL_RESULT_END", "memory_recorded", "REPLY_END")
    assert [step for step in steps if step in named] == [
        *("REPLY_START", "HINT_BLOCK"),
        *("MODEL_CALL_START", "TOOL_RESULT_END", "TOOL_RESULT_END"),
        *("MODEL_CALL_START", "TOOL_RESULT_END", "memory_recorded", "REPLY_END"),
    ]
    message = await ana.wait(told[-1].reply_id)
    assert (message.metadata, message.finished_reason) == ({"hour": 6}, "completed")


async def the_interrupt(ana: Session) -> None:
    """The call that waits is not run, and the workers' hook has the last word."""
    waiting = await ana.reply("Write to Cleo")
    await ana.interrupt("Cleo is away")
    stopped = await ana.wait(waiting.id)

    ((state, _),) = [(result.state.value, result.id) for result in stopped.get_tool_results()]
    assert (state, stopped.finished_reason) == ("interrupted", "interrupted")
    assert stopped.get_text_content() == "Parted over send for lamp, because: Cleo is away"
    assert (await ana.reply("And now?")).get_text_content() == "All is well."


async def the_queue(stage: Stage, ana: Session, ben: Session) -> None:
    """What both say, think and find comes through one queue, each in its order, piece by piece."""
    items = list[FeedItem]()

    async def read() -> None:
        async with stage.app.feed([ana, ben]) as feed:
            reading.set()
            async for item in feed:
                items.append(item)
                if sum(each.event.type == "REPLY_END" for each in items) == 2:
                    return

    reading = asyncio.Event()
    task = asyncio.create_task(read())
    await reading.wait()
    await asyncio.sleep(0.5)
    await asyncio.gather(ana.reply("What else?"), ben.reply("And you?"))
    await asyncio.wait_for(task, SURE_SECONDS)

    kinds = {(item.session.id, item.event.type) for item in items}
    wanted = ("THINKING_BLOCK_DELTA", "TOOL_RESULT_TEXT_DELTA", "TOOL_RESULT_DATA_DELTA", "TEXT_BLOCK_DELTA")
    sung = [item.event.model_dump()["media_type"] for item in items if item.event.type == "TOOL_RESULT_DATA_DELTA"]
    assert sung == ["audio/wav"]
    assert [kind for kind in wanted if (ben.id, kind) not in kinds] == []
    assert [item.number for item in items] == sorted(item.number for item in items)


async def the_room(stage: Stage, ana: Session, ben: Session) -> None:
    """An answer is told to the other one by itself, and an announcement by hand to both."""
    async with stage.app.hub(f"sop-{stage.name}", {"ana": ana, "ben": ben}, user="ana") as hub:
        await hub.agents(ana)[0].reply("Say something")
        await hub.broadcast("The harbour closes.")

    async def told() -> bool:
        by_hand = (await heard(ana))[-1] == "user: The harbour closes."
        return by_hand and (await heard(ben))[-2:] == ["ana: The tide turns.", "user: The harbour closes."]

    await until(told)


@pytest.mark.proves("C1")
@pytest.mark.timeout(120)
async def test_the_checklist_of_the_sop_is_gone_through_in_its_order(unserved: Stage) -> None:
    unserved.settings.tools = f"{TOOLS},{HERE}"
    unserved.settings.middlewares = f"{HERE}:Parting"
    memories = SqliteMemories(unserved.settings.data_dir / "memory.db")
    await memories.record(MemoryOwner("ana", "lamp"), [NewMemory("k", "High tide is what Ana asks for.", "s")])
    static: dict[str, Any] = {"long_term_memory_mode": "static_control"}
    ana = unserved.session(
        *(TWO_PAGES, calls("generate_response", hour=6)),
        calls("send", to="Cleo"),
        {"text": "Then not.", "expect": {"last_contains": "Cleo is away"}},
        {"text": "All is well."},
        {"text": "Nothing else."},
        {"text": "The tide turns."},
        user="ana",
        **static,
    )
    ben = unserved.session(
        *(TWO_PAGES, calls("sing", song="foghorn"), {"text": "Two pages.", "chunk_chars": 4}),
        user="ana",
        tools=["fetch", "sing"],
    )
    async with unserved.another_worker():
        await the_loop(ana)
        await the_interrupt(ana)
        await the_queue(unserved, ana, ben)
        await the_room(unserved, ana, ben)

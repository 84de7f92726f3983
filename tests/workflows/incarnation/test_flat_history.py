"""A history grows with the messages, not with the square of the steps: each message crosses it once."""

import base64
import json
from typing import Any

import pytest
from temporalio.client import WorkflowHandle

from longhaul.starter.client.session import Session
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls
from tests.workflows.tools import marker, page_text

pytestmark = pytest.mark.server

STEPS = 100
CHARS = 5_000
BYTES_A_STEP = 900
"""What a step may cost beside its messages: 12 events with ids, times, digests and the call's arguments. Names of this
machine and of its folders don't count: pytest-xdist alone makes a folder's name 10 bytes longer, 600 times."""


@pytest.mark.proves("X1")
async def test_a_hundred_steps_cost_their_messages_and_little_more(stage: Stage) -> None:
    lines = [calls("fetch", page=number, chars=CHARS) for number in range(STEPS)]
    last = {"text": "Read.", "expect": {"messages": 2 * STEPS + 1, "last_contains": page_text(STEPS - 1, CHARS)}}
    session = stage.session(
        *lines,
        last,
        tools=["fetch"],
        react_config={"max_iters": STEPS + 1},
        model_config={"context_length": 10_000_000},
    )

    done = await session.reply("Read a hundred pages")

    assert (done.error, done.get_text_content()) == (None, "Read.")
    info = (await stage.handle(session).describe()).raw_description.workflow_execution_info
    own = await own_bytes(session)
    bodies = await payload_texts(stage.handle(session))
    named = weight(str(stage.folder), bodies) + await identity_bytes(stage.handle(session))
    assert info.history_length <= 12.5 * STEPS + 30
    assert info.history_size_bytes - named <= 1.25 * (own + BYTES_A_STEP * STEPS)
    crossings = {number: sum(text.count(marker(number)) for text in bodies) for number in range(STEPS)}
    assert crossings == dict.fromkeys(range(STEPS), 1)


async def own_bytes(session: Session) -> int:
    """What the messages weigh as JSON."""
    return sum(len(message.model_dump_json().encode()) for message in [each async for each in session.transcript()])


async def identity_bytes(handle: WorkflowHandle[Any, Any]) -> int:
    """What the name of the one worker weighs, which has the host's in it."""
    history = await handle.fetch_history()
    (worker,) = {event.workflow_task_completed_event_attributes.identity for event in history.events} - {""}
    return weight(worker, [history.to_json()])


def weight(name: str, texts: list[str]) -> int:
    return len(name.encode()) * sum(text.count(name) for text in texts)


async def payload_texts(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Every payload of the history, decoded."""
    return list(_data_in(json.loads((await handle.fetch_history()).to_json())))


def _data_in(value: Any) -> Any:
    match value:
        case {"metadata": _, "data": str(data)}:
            yield base64.b64decode(data).decode("utf-8", "replace")
        case dict():
            for inner in value.values():
                yield from _data_in(inner)
        case list():
            for inner in value:
                yield from _data_in(inner)

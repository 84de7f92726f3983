"""What stands in the seed's vocabulary beside text and calls, as a live session tells it."""

import pytest

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock, URLSource
from longhaul.agent.views.event_types import (
    AgentEvent,
    HintBlockEvent,
    ModelCallEndEvent,
    ReplyEndEvent,
    ReplyStartEvent,
    ToolResultDataDeltaEvent,
)
from longhaul.agent.views.transcript import ReplyReducer
from tests.activities.models.sample_requests import PIXEL
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server

PICTURE = DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"), name="door.png")
SOUND = DataBlock(source=URLSource(url="https://pier.example/bell.wav", media_type="audio/wav"))


@pytest.mark.proves("A2", "C1")
@pytest.mark.parametrize("live", [True, False])
async def test_hints_and_data_are_told_and_fold_into_what_is_recorded(stage: Stage, live: bool) -> None:
    session = stage.session(calls("courier", parcel="box"), {"text": "It came."}, inject_runtime_state=True)
    events = [event async for event in session.reply_stream("Send the box", live=live)]
    (waiting,) = await session.pending()
    parts = [TextBlock(text="at the door").model_dump(), PICTURE.model_dump(), SOUND.model_dump()]
    await session.external_result(waiting.call_id, parts)

    final = await session.wait(waiting.reply_id)
    told = [event for event in (await session.events(1)).events if event.reply_id == waiting.reply_id]

    started, *_, ended = told
    assert isinstance(started, ReplyStartEvent)
    assert (started.session_id, started.name, started.role) == (session.id, "lamp", "assistant")
    assert isinstance(ended, ReplyEndEvent)
    assert ended.session_id == session.id
    (hint,) = [event for event in told if isinstance(event, HintBlockEvent)]
    assert hint.source == "runtime_state"
    assert hint in events, "told by the stream too"
    data = [event for event in told if isinstance(event, ToolResultDataDeltaEvent)]
    assert [event.data_block() for event in data] == [PICTURE, SOUND]
    assert {event.finished_reason for event in told if isinstance(event, ModelCallEndEvent)} == {"completed"}
    assert folded(told).message() == final
    assert [block.hint for block in folded(told).hints] == [hint.hint]
    assert len({event.outside()["id"] for event in events}) == len(events)
    assert [event.id for event in told] == [str(event.seq) for event in told]


def folded(events: list[AgentEvent]) -> ReplyReducer:
    reducer = ReplyReducer()
    for event in events:
        reducer.take(event)
    return reducer

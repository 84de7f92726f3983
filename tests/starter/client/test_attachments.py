"""An attachment that no model could be shown is refused before it is sent, wherever an operation may hold one."""

from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import DataBlock, HintBlock, TextBlock, URLSource, UserMsg
from longhaul.starter.client.updates import check_attachments
from longhaul.starter.client.wire import Refused, as_messages
from tests.activities.context.test_attachments import BROKEN, SOUND, block, png

TORN = block(png()[:-4], "image/png", "sea.png")
WHY = "('sea.png', image/png): it is not a valid PNG: its end is missing; send the whole file as base64: "


def message(*blocks: Any) -> list[Any]:
    return as_messages(UserMsg("user", list(blocks)))


OPERATION_ROWS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a request": ("submit", {"messages": message(TextBlock(text="Look"), TORN)}, "messages[0].content[1]"),
    "what is observed": ("observe", {"messages": [*message(TextBlock(text="a")), *message(TORN)]}, "messages[1]"),
    "one message alone": ("submit", {"messages": message(TORN)[0]}, "messages.content[0]"),
    "a message beside an interrupt": ("interrupt", {"message": message(TORN)}, "message[0].content[0]"),
    "a hint": (
        "submit",
        {"messages": message(TextBlock(text="Look"), HintBlock(hint=(TextBlock(text="so"), TORN)))},
        "messages[0].content[1].hint[1]",
    ),
    "a result": ("external_result", {"results": [{"id": "a", "output": [TORN]}]}, "results[0].output[0]"),
    "a result as JSON": (
        "external_result",
        {"results": [{"id": "a", "output": "fine"}, {"id": "b", "output": [TORN.model_dump(mode="json")]}]},
        "results[1].output[0]",
    ),
    "the seed's own event": (
        "external_execution_result",
        {"execution_results": [{"id": "a", "output": [{"type": "text", "text": "x"}, TORN.model_dump(mode="json")]}]},
        "execution_results[0].output[1]",
    ),
}


@pytest.mark.parametrize("kind", OPERATION_ROWS)
async def test_it_is_refused_at_its_place_with_what_to_do(kind: str) -> None:
    name, body, place = OPERATION_ROWS[kind]

    with pytest.raises(Refused) as refusal:
        await check_attachments(name, body)

    assert str(refusal.value).startswith(f"{name}: {place}")
    assert WHY in str(refusal.value)
    assert "3932 kB and 8000 pixels a side" in str(refusal.value)


@pytest.mark.parametrize("kind", BROKEN)
async def test_whatever_a_worker_would_leave_out_is_refused(kind: str) -> None:
    broken, why = BROKEN[kind]
    # A lone surrogate could not be sent either.
    body = {"messages": [{"role": "user", "content": [broken.model_dump()]}]}

    with pytest.raises(Refused) as refusal:
        await check_attachments("submit", body)

    assert why in str(refusal.value)
    assert len(str(refusal.value)) < 900


@pytest.mark.parametrize("kind", SOUND)
async def test_what_a_worker_would_send_on_is_taken(kind: str) -> None:
    await check_attachments("submit", {"messages": message(TextBlock(text="Look"), SOUND[kind])})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": "Hello"},
        {"messages": None},
        {"messages": [{"content": "Hello"}, 7, None, "x"]},
        {"messages": [{"content": [{"type": "data", "source": "no source"}]}]},
        {"messages": [{"content": [{"type": "data", "source": {"type": "base64"}}]}]},
        {"results": [{"output": {"type": "data", "source": {"type": "base64", "data": "%", "media_type": "x/y"}}}]},
        {"results": [{"output": [[{"type": "data"}]]}]},
        {"state": {"context": [{"content": [TORN.model_dump(mode="json")]}]}},
        {"decisions": [{"input": {"content": [TORN.model_dump(mode="json")]}}]},
    ],
)
async def test_what_is_no_attachment_is_left_to_the_session(body: dict[str, Any]) -> None:
    """And so is a state: what was recorded once can be put back as it is."""
    await check_attachments("any", body)


async def test_what_an_address_leads_to_is_not_looked_at() -> None:
    there = DataBlock(source=URLSource(url="https://gone.example/sea.png", media_type="image/png"))

    await check_attachments("submit", {"messages": message(there)})

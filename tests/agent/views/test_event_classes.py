"""Each type of event has a class of its own, however the event was made."""

from typing import get_args

import pytest

from longhaul.agent.views import event_types as told
from longhaul.agent.views.event_types import (
    CLASSES,
    AgentEvent,
    EventType,
    RequireUserConfirmEvent,
    TextBlockDeltaEvent,
)
from longhaul.workflows.contract import EventPage


@pytest.mark.proves("A2")
def test_every_type_has_one_class() -> None:
    assert set(CLASSES) == set(get_args(EventType))
    assert len(set(CLASSES.values())) == len(CLASSES)
    assert all(getattr(told, each.__name__) is each for each in CLASSES.values())


@pytest.mark.parametrize("kind", get_args(EventType))
def test_an_event_is_of_its_class_however_it_was_made(kind: EventType) -> None:
    made = AgentEvent(type=kind, seq=4)
    page = EventPage(events=(made,), last=4)
    other: EventType = "TEXT_BLOCK_END" if kind != "TEXT_BLOCK_END" else "REPLY_END"

    assert type(made) is CLASSES[kind]
    assert made == AgentEvent.model_validate_json(made.model_dump_json()) == made.model_copy()
    assert type(EventPage.model_validate_json(page.model_dump_json()).events[0]) is CLASSES[kind]
    assert type(made.model_copy(update={"type": other})) is CLASSES[other]


def test_the_seeds_check_holds() -> None:
    events = (AgentEvent(type="TEXT_BLOCK_DELTA", delta="x"), AgentEvent(type="REQUIRE_USER_CONFIRM"))

    assert [isinstance(event, RequireUserConfirmEvent) for event in events] == [False, True]
    assert isinstance(events[0], TextBlockDeltaEvent)

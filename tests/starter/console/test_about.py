"""Amounts and steps as the console words them."""

from dataclasses import astuple
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlencode

from longhaul.agent.values.amount import ModelSpent
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.views.trajectory import TrajectoryEvent
from longhaul.starter.console.about import amounts, step_of
from longhaul.starter.console.visit import Visit
from longhaul.workflows.contract import Status


def status(**values: Any) -> Status:
    return Status(session_id="s", user_id=None, agent="lamp", model="m", status="idle", **values)


def test_amounts_of_several_models_are_added_up() -> None:
    large = ModelSpent(
        calls=2, usage=Usage(input_tokens=1000, output_tokens=20, cache_input_tokens=600), nanos=1_500_000
    )
    small = ModelSpent(calls=1, usage=Usage(input_tokens=30, output_tokens=4, reasoning_tokens=3))
    told = amounts(status(by_model={"large": large, "<b>\u202e": small}, input_tokens=1030, output_tokens=24))

    assert [astuple(one) for one in told] == [
        ("<b>⟨U+202E⟩", "1", "30", "-", "4", "3", "-"),
        ("large", "2", "1,000", "600", "20", "-", "$0.0015"),
        ("together", "3", "1,030", "600", "24", "3", "$0.0015"),
    ]


def test_a_condensation_leads_to_what_left_the_context() -> None:
    visit = cast(
        Visit, SimpleNamespace(here=lambda page="", **query: f"{page}?{urlencode(query)}", may=lambda scope: True)
    )
    event = TrajectoryEvent(
        kind="condensation",
        seq=9,
        at="",
        source="environment",
        text="A <b>summary</b>\u202e\n\n\tof two",
        forgotten=(4, 5),
        by="summary",
    )
    step = step_of(visit, event)

    assert (step.what, step.link) == ("made the context shorter by 2 messages: summary", "?from=4")
    assert step.copy == "change?entry=9"
    assert step.text == "A <b>summary</b>⟨U+202E⟩ of two"

"""Drops from an answer what its session was told before: that a model's API could not express part of a request."""

from typing import TypeVar

from longhaul.agent.entries.all_entries import ModelSaid
from longhaul.agent.entries.calls import CallsExamined
from longhaul.agent.entries.context import ContextCompressed
from longhaul.agent.record import Record

Told = TypeVar("Told", ModelSaid, ContextCompressed, CallsExamined)


def with_new_adjustments(said: Told, record: Record) -> Told:
    """The entry without what the session was told before of the same model."""
    if not said.adjusted:
        return said
    told = record.context.adjusted
    new = tuple(each for each in dict.fromkeys(said.adjusted) if (said.model, each) not in told)
    return said if new == said.adjusted else said.model_copy(update={"adjusted": new})

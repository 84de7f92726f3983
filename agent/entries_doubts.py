"""Entries about calls whose outcome was unknown: what a look found, and what a person says."""

from typing import Literal

from agent.doubts import Finding
from agent.entry import Entry
from agent.values import sparse


class DoubtProbed(Entry):
    """The tool has looked whether its call happened."""

    kind: Literal["probed"] = "probed"
    call_id: str
    finding: Finding
    detail: str = sparse("")
    """What it saw; of `unknown`, why it could not tell."""


class DoubtSettled(Entry):
    """A person knows whether the call happened."""

    kind: Literal["settled"] = "settled"
    call_id: str
    happened: bool
    output: str = sparse("")
    """What the call answered, if anybody knows."""
    by: str = sparse("")
    reason: str = sparse("")

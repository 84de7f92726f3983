"""Entries about calls whose outcome was unknown: what a look found, and what a person says."""

from typing import Literal

from longhaul.agent.entries.entry import Entry, Written
from longhaul.agent.plain.values import OpenValue, sparse

Finding = Literal["happened", "did_not", "unknown"]

SOURCE = "settlement"
"""Of the hint by which the model hears of it."""
SHOWN_CHARS = 2_000
"""Of the arguments, once nobody has to look with them any more."""
KEPT_DOUBTS = 100


class Doubt(OpenValue):
    """A call whose result says that its outcome is unknown."""

    call_id: str
    tool: str
    reply_id: str
    input: str
    """The arguments that ran, as JSON; cut when no probe needs them."""
    why: str
    """What the model was told."""
    at: int
    """Milliseconds since 1970."""
    cwd: str = sparse("")
    runs_on: bool = sparse(False)
    """It may still run: that it has not happened yet says nothing."""
    due: bool = sparse(False)
    """The tool can look whether it happened, and has not been asked yet."""
    finding: Finding | None = sparse(None)
    """What the tool's own look came to."""
    happened: bool | None = sparse(None)
    """None = still open."""
    by: str = sparse("")
    """Who settled it: a person, or the tool's probe."""

    @property
    def open(self) -> bool:
        return self.happened is None


def cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text)} characters)"


def settled_text(doubt: Doubt, said: str, output: str) -> str:
    """What the model reads of a settled doubt. `said`: on whose word, as the end of a sentence."""
    word = "it did happen" if doubt.happened else "it did not happen, and nothing of it was done"
    text = f"The call {doubt.tool} ({doubt.call_id}), whose outcome was unknown, is settled: {word}. {said}"
    return f"{text}\nIts output:\n{output}" if output else text


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
    output: Written = sparse("")
    """What the call answered, if anybody knows."""
    by: str = sparse("")
    reason: Written = sparse("")


DoubtEntry = DoubtProbed | DoubtSettled

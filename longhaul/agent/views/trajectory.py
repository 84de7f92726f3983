"""A session in OpenHands' words: messages, actions, observations, condensations and what was asked of them.

A view for readers, made from the recorded entries alone. Nothing is decided by it, and nothing is lost in it but what
those words don't name: findings, verdicts, checkpoints.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from longhaul.agent import entries as e
from longhaul.agent.journal import Journal
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import (
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
)

Kind = Literal[
    "message", "action", "observation", "rejection", "condensation_request", "condensation", "interrupt", "error"
]
Source = Literal["user", "agent", "environment"]


class TrajectoryEvent(OpenValue):
    """One event of a trajectory. `seq` is the number of its entry; several events may have the same number."""

    kind: Kind
    seq: int
    at: str
    source: Source
    message: int | None = sparse(None)
    """Number of its message, as `recall` and the transcript count."""
    text: str = sparse("")
    """What was said. For an action, the thought before it; for an observation, its output; for a condensation, the new
    summary."""
    thinking: str = sparse("")
    call_id: str = sparse("")
    tool: str = sparse("")
    input: str = sparse("")
    """For an action: the arguments as the model wrote them; JSON unless the model made a mistake."""
    state: str = sparse("")
    """For an observation: `success`, `error`, `denied`, `interrupted` or `unknown`."""
    forgotten: tuple[int, ...] = sparse(())
    """For a condensation: numbers of the messages that the model no longer reads, or reads masked."""
    by: str = sparse("")


def trajectory(entries: Iterable[e.AnyEntry]) -> Iterator[TrajectoryEvent]:
    """The events of a session's entries, the first entry first. Raises ValueError when they do not begin there."""
    reducer = Trajectory()
    for entry in entries:
        yield from reducer.take(entry)


Numbering = Callable[[e.AnyEntry], list[tuple[int, Msg]]]
"""Gives the messages that an entry brought, with their numbers."""


class Trajectory:
    """Builds a trajectory from entries, one by one. Start with the session's first entry."""

    def __init__(self, numbering: Numbering | None = None) -> None:
        """`numbering`: for entries that start later. Then a condensation does not say which messages it dropped."""
        self._journal: Journal | None = None
        self._numbering = numbering

    def take(self, entry: e.AnyEntry) -> list[TrajectoryEvent]:
        """The events of this entry, in order."""
        if self._numbering is not None:
            return _events_of(entry, (), self._numbering(entry))
        if self._journal is None:
            self._journal = Journal.of([entry])
            return []
        journal = self._journal
        first = journal.messages_total
        forgotten = _forgotten(journal, entry) if isinstance(entry, e.ContextCompressed) else ()
        journal.take(entry)
        brought = list(enumerate(journal.context.transcript, start=first))
        journal.log.clear()
        journal.context.transcript_base, journal.context.transcript = journal.messages_total, []
        return _events_of(entry, forgotten, brought)


def _events_of(entry: e.AnyEntry, forgotten: tuple[int, ...], brought: list[tuple[int, Msg]]) -> list[TrajectoryEvent]:
    said = [event for number, message in brought for event in _of_message(entry, number, message)]
    return [*_of_entry(entry, forgotten), *said]


def _forgotten(journal: Journal, entry: e.ContextCompressed) -> tuple[int, ...]:
    stay = {*entry.pinned, *range(entry.keep_from, len(journal.context.marks))} - {*entry.masked}
    return tuple(mark.number for at, mark in enumerate(journal.context.marks) if at not in stay)


def _of_entry(entry: e.AnyEntry, forgotten: tuple[int, ...]) -> Iterator[TrajectoryEvent]:
    match entry:
        case e.CompressAsked():
            yield _event(entry, "condensation_request", "user", text=entry.instructions, by=entry.by)
        case e.ModelFailed() if entry.error.type == "context_overflow":
            yield _event(entry, "condensation_request", "environment", text=entry.error.message)
        case e.ContextCompressed():
            summary = entry.summary or ""
            yield _event(entry, "condensation", "environment", text=summary, forgotten=forgotten, by=entry.condenser)
        case e.ModelFailed() | e.NotCompressed():
            yield _event(entry, "error", "environment", text=entry.error.message)
        case e.ReplyFinished() if entry.error is not None:
            yield _event(entry, "error", "environment", text=entry.error.message)
        case e.InterruptAsked():
            yield _event(entry, "interrupt", "user")
        case _:
            pass


def _of_message(entry: e.AnyEntry, number: int, message: Msg) -> Iterator[TrajectoryEvent]:
    source: Source = "agent" if message.role == "assistant" else "user" if message.role == "user" else "environment"
    said = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
    thought = "\n".join(block.thinking for block in message.content if isinstance(block, ThinkingBlock))
    calls = [block for block in message.content if isinstance(block, ToolCallBlock)]
    if not calls and (said or thought):
        yield _event(entry, "message", source, message=number, text=said, thinking=thought)
    for place, call in enumerate(calls):
        before = {} if place else {"text": said, "thinking": thought}
        named = {"call_id": call.id, "tool": call.name, "input": call.input}
        yield _event(entry, "action", "agent", message=number, **named, **before)
    for block in message.content:
        if isinstance(block, ToolResultBlock):
            yield _observation(entry, number, block)
        elif isinstance(block, HintBlock):
            hint = (
                block.hint
                if isinstance(block.hint, str)
                else "\n".join(part.text for part in block.hint if isinstance(part, TextBlock))
            )
            yield _event(entry, "message", "environment", message=number, text=hint, by=block.source or "")


def _observation(entry: e.AnyEntry, number: int, result: ToolResultBlock) -> TrajectoryEvent:
    by_person = isinstance(entry, e.HumanDecided) and result.state is ToolResultState.DENIED
    return _event(
        entry,
        "rejection" if by_person else "observation",
        "user" if by_person else "environment",
        message=number,
        text=result.get_text(),
        call_id=result.id,
        tool=result.name,
        state=result.state.value,
        by=entry.approver if isinstance(entry, e.HumanDecided) else "",
    )


def _event(entry: e.AnyEntry, kind: Kind, source: Source, **more: object) -> TrajectoryEvent:
    return TrajectoryEvent.model_validate(
        {"kind": kind, "seq": entry.seq, "at": iso(entry.at), "source": source, **more}
    )

"""Lines of a worker's log for whoever operates it, also where nothing is switched on: refusals, approvals, unknown
outcomes and failed replies.

They are written when a checkpoint has recorded the entries, and so once for each, however often a workflow replays; a
checkpoint that is made again writes them again. A line holds names and classes of errors only: reasons, arguments and
messages may quote anything, and are in `longhaul show`.
"""

import logging
from collections.abc import Sequence

from longhaul.agent.entries import (
    AnyEntry,
    CallsJudged,
    DeadlineReached,
    DecisionGiven,
    HumanDecided,
    OperationRefused,
    ReplyFinished,
)
from longhaul.agent.plain.ids import names_in
from longhaul.agent.plain.text import visible
from longhaul.agent.reducer.session_state import SessionState

LOGGER = "longhaul.operator"
MOST_NAME_CHARS = 200
"""Of an approver, a tool or a call: they come from outside."""
SOMEBODY = "somebody"
"""Approved without giving a name."""

log = logging.getLogger(LOGGER)


def report(workflow_id: str, entries: Sequence[AnyEntry], session: SessionState) -> None:
    """Write the lines of entries that a checkpoint has recorded. The session state is the session's behind them."""
    if not entries or not log.isEnabledFor(logging.INFO):
        return
    name = names_in(workflow_id).session or workflow_id
    for entry in entries:
        for level, words, *names in _lines(entry, session.calls.names):
            log.log(level, "session %s: " + words, _name(name), *map(_name, names))  # noqa: G003  both are ours
    times = {entry.at for entry in entries}
    for unknown_outcome in session.unknown_outcomes.values():
        if unknown_outcome.at in times and unknown_outcome.open:
            log.warning(
                "session %s: the outcome of the call %s of %s is unknown",
                *map(_name, (name, unknown_outcome.call_id, unknown_outcome.tool)),
            )


Line = tuple[int, str, *tuple[str, ...]]
"""Level, words, and the names that are filled into them."""


def _lines(entry: AnyEntry, tools: dict[str, str]) -> list[Line]:
    match entry:
        case OperationRefused():
            return [(logging.WARNING, "refused the operation %s", entry.name)]
        case HumanDecided():
            return [_decided(one, entry.approver or SOMEBODY, tools) for one in entry.decisions]
        case CallsJudged():
            denied = [one.call_id for one in entry.rulings if one.behavior == "deny"]
            return [(logging.WARNING, "permission denied the call %s of %s", *_call(one, tools)) for one in denied]
        case DeadlineReached():
            late = [one.call_id for one in entry.due if one.closes and one.waits_for == "person"]
            words = "nobody decided in time on the call %s of %s"
            return [(logging.WARNING, words, *_call(one, tools)) for one in late]
        case ReplyFinished() if entry.error is not None:
            return [(logging.WARNING, "the reply %s failed: %s", entry.reply_id, entry.error.type)]
        case _:
            return []


def _decided(one: DecisionGiven, by: str, tools: dict[str, str]) -> Line:
    if one.allow:
        return (logging.INFO, "%s approved the call %s of %s", by, *_call(one.call_id, tools))
    return (logging.WARNING, "%s denied the call %s of %s", by, *_call(one.call_id, tools))


def _call(call_id: str, tools: dict[str, str]) -> tuple[str, str]:
    return call_id, tools.get(call_id, "?")


def _name(text: str) -> str:
    """Harmless, and on one line."""
    return " ".join(visible(text[:MOST_NAME_CHARS]).split())

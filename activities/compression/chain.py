"""The condensers of an agent, asked in order: the first that has an answer which makes room is taken."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from temporalio.exceptions import ApplicationError

from longhaul.activities.compression.condensers import masked
from longhaul.activities.compression.view import Condensation, Condenser, View
from longhaul.activities.models.failures.retry_errors import failed_for_good
from longhaul.activities.process.cancelled_here import is_cancelled_here
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.values.conversation.messages import Msg

log = logging.getLogger(__name__)


async def run_chain(view: View, names: Sequence[str], condensers: Mapping[str, Condenser]) -> tuple[str, Condensation]:
    """The name and the answer of the first that can. One that fails for good is passed over.

    Raises ApplicationError: retryable as it comes, else ModelFailed with what went wrong first.
    """
    failures: list[ApplicationError] = []
    for name in names:
        try:
            made = await _asked(view, name, condensers)
        except ApplicationError as error:
            if not error.non_retryable:
                raise
            log.warning("condenser %s: %s", name, error.message)
            failures.append(error)
        else:
            if made is not None:
                return name, made
    if failures:
        raise failures[0]
    raise failed_for_good(
        "context_overflow",
        f"Nothing made enough room in the context: {', '.join(names)} found nothing more to leave out.",
    )


async def _asked(view: View, name: str, condensers: Mapping[str, Condenser]) -> Condensation | None:
    condenser = condensers.get(name)
    if condenser is None:
        hint = did_you_mean(name, condensers, "it has")
        raise failed_for_good("setup", f"No condenser is named {name!r} on this worker; {hint}")
    try:
        made = await condenser.condense(view)
    except ApplicationError:
        raise
    except BaseException as error:  # A condenser may be anybody's; the next one in the chain may still do.
        if is_cancelled_here(error):
            raise
        log.exception("condenser %s failed", name)
        raise failed_for_good("internal", f"The condenser {name!r} failed ({type(error).__name__}).") from None
    if made is None:
        return None
    if complaint := _wrong_indexes(view, made) or _parted(view, made):
        raise failed_for_good("internal", f"The condenser {name!r} {complaint}.")
    # In a thread: counting takes longer than heartbeats can wait.
    freed = await asyncio.to_thread(_freed_tokens, view, made)
    if freed <= 0:
        log.warning("condenser %s made no room", name)
    return made if freed > 0 else None


def _wrong_indexes(view: View, made: Condensation) -> str:
    """What is wrong with a condensation of somebody's own; the record would not take it."""
    if not 0 <= made.keep_from <= len(view.messages):
        return f"keeps from {made.keep_from} on, of {len(view.messages)} messages"
    if list(made.pinned) != sorted({index for index in made.pinned if 0 <= index < made.keep_from}):
        return f"pins {made.pinned}: they have to be in order, each once, and before {made.keep_from}"
    if not set(made.masked) <= {*made.pinned, *range(made.keep_from, len(view.messages))}:
        return "masks messages that it does not keep"
    return ""


def _parted(view: View, made: Condensation) -> str:
    """A call that lost its result, or a result its call; the cut that was given has neither."""
    if (made.keep_from, made.pinned) == (view.keep_from, view.pinned):
        return ""
    kept = set(made.pinned) | set(range(made.keep_from, len(view.messages)))
    for calls, results in _pairs(view.messages):
        if len({place in kept for place in (*calls, *results)}) > 1:
            return f"parts the call in message {calls[0]} from its result"
    return ""


def _pairs(messages: Sequence[Msg]) -> list[tuple[list[int], list[int]]]:
    """For each call with a result, where both stand."""
    calls: dict[str, list[int]] = {}
    results: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        for call in message.get_tool_calls():
            calls.setdefault(call.id, []).append(index)
        for result in message.get_tool_results():
            results.setdefault(result.id, []).append(index)
    return [(places, results[call_id]) for call_id, places in calls.items() if call_id in results]


def _freed_tokens(view: View, made: Condensation) -> int:
    gone = [view.messages[index] for index in range(made.keep_from) if index not in set(made.pinned)]
    hidden = [view.messages[index] for index in made.masked]
    freed = view.tokens(gone) + view.tokens(hidden) - view.tokens([masked(message) for message in hidden])
    if made.summary is not None:
        freed += view.tokens((), view.old_summary) - view.tokens((), made.summary)
    return freed

"""Digests of what an approval covers, part by part, so that a late decision can say what has changed.

It also keeps what people wrote beside their messages, such as the reason for a decision. A secret may stand in
it, which workers alone know: the next model call takes the words along, and its answer brings them back masked.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar, get_args

from longhaul.agent import entries as e
from longhaul.agent.entries import WRITTEN
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.values import digest_of
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.session_state import ExternalEvents, SessionState
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule

_HINT_CHARS = 6
"""Enough to tell which part differs; that none does is told by the whole digest."""
_CHANGES = (
    "it would run with other arguments",
    "it would touch something else",
    "the file has changed",
    "the tool is another one now (its description, schema or flags)",
    "other rules hold now",
)
"""What to say of each part that differs, in the order of `material`'s parts."""


def material(
    call: OpenCall, tool: ToolDescriptor, context: PermissionContext, suggested: Sequence[PermissionRule]
) -> str:
    """Names all that a person is shown of a call, but not when they were asked."""
    analysis = call.analysis
    parts = [
        digest_of([call.block.id, call.block.name, call.input]),
        digest_of(_plain(analysis, "cwd", "paths", "commands", "safety", "not_understood", "read_only")),
        digest_of([analysis.before, analysis.after]),
        digest_of([tool.name, tool.digest]),
        digest_of([terms(tool, context), [rule.model_dump(mode="json") for rule in suggested]]),
    ]
    return ".".join([digest_of(parts), *(part[:_HINT_CHARS] for part in parts)])


def asked_digest(what: str, at: int) -> str:
    """The digest that a decision carries: of `material`, asked about at this time in milliseconds."""
    whole, *hints = what.split(".")
    when = digest_of([whole, at])
    return ".".join([when, *hints, when[:_HINT_CHARS]])


def what_changed(before: str, now: str) -> str:
    """Why a digest is not the one that counts now, as a sentence without its full stop; empty when it can't be told."""
    old, new = before.split(".")[1:], now.split(".")[1:]
    if len(old) != len(new) or len(new) != len(_CHANGES) + 1:
        return ""
    differ = [words for words, was, is_now in zip(_CHANGES, old[:-1], new[:-1], strict=True) if was != is_now]
    return ", and ".join(differ) or "it was asked about again"


def terms(tool: ToolDescriptor, context: PermissionContext) -> str:
    """Names what an approval rests on beside the call: the tool as it is, and the rules that could stop it.

    Allow rules do not count: with one more of them a call is no less approved.
    """
    strict = [rule.model_dump(mode="json") for rule in context.rules if rule.behavior is not Behavior.ALLOW]
    return digest_of([tool.digest, strict])


def essence(analysis: CallAnalysis) -> tuple[object, ...]:
    """What a call would touch and do, as far as an approval is for it."""
    return (
        analysis.cwd,
        analysis.paths,
        analysis.commands,
        analysis.before,
        analysis.after,
        analysis.safety,
        analysis.not_understood,
    )


def _plain(analysis: CallAnalysis, *names: str) -> object:
    return analysis.model_dump(mode="json", include=set(names))


def seen_digest(call: OpenCall, session: SessionState) -> str:
    """Names what a person is shown of a call that waits, and when it was asked. An answer says which one it is for."""
    tool = session.provided.tools.get(call.block.name)
    if tool is None:
        return digest_of([call.block.name, call.input, call.analysis.model_dump(mode="json")])
    return asked_digest(material(call, tool, session.permission, call.suggested_rules), call.asked_at)


Shown = TypeVar("Shown", bound=e.Entry)

MOST_CHARS = 200_000
"""Taken along with one call, the newest first."""
FIELDS: dict[type[e.Entry], tuple[str, ...]] = {
    kind: names
    for kind in get_args(get_args(e.AnyEntry)[0])
    if (names := tuple(name for name, field in kind.model_fields.items() if WRITTEN in field.metadata))
}
"""Of each entry with words of a person; of a decision on calls each has its own."""


def unseen(session: SessionState) -> dict[str, str]:
    """By place, what no worker has seen yet. From the model call before the last one on: what was written while that
    one ran came too late for it, and what has been seen before holds nothing to mask."""
    found: dict[str, str] = {}
    room, calls = MOST_CHARS, 0
    for entry in reversed(session.log):
        calls += isinstance(entry, e.ModelSaid)
        words = _words(entry)
        room -= sum(map(len, words.values()))
        if calls > 1 or room < 0:
            break
        found |= words
    return found


def take_shown(session: SessionState, shown: Mapping[str, str]) -> None:
    """Put these in the place of what was written, wherever it is held."""
    if not shown:
        return
    came = {words: shown[place] for entry in session.log for place, words in _words(entry).items() if place in shown}
    session.log = [_with(entry, shown) for entry in session.log]
    session.refused.newest = [_with_fields(entry, shown) for entry in session.refused.newest]
    if session.external_events is not None:
        kept = [_with_fields(entry, shown) for entry in session.external_events.kept]
        session.external_events = ExternalEvents(kept, session.external_events.handled)
    if session.pause is not None and session.pause.why in came:
        session.pause = session.pause.model_copy(update={"why": came[session.pause.why]})
    state = session.state
    state.decisions = tuple(
        made.model_copy(update={"reason": came[made.reason]}) if made.reason in came else made
        for made in state.decisions
    )
    for call in session.open_calls.values():
        call.reason = came.get(call.reason, call.reason)
    rules = tuple(
        rule.model_copy(update={"reason": came[rule.reason]}) if rule.reason in came else rule
        for rule in state.permission_context.rules
    )
    if rules != state.permission_context.rules:
        state.permission_context = state.permission_context.model_copy(update={"rules": rules})


def _words(entry: e.AnyEntry) -> dict[str, str]:
    if isinstance(entry, e.HumanDecided):
        return {f"{entry.seq}.{at}": made.reason for at, made in enumerate(entry.decisions) if made.reason}
    return {f"{entry.seq}.{field}": words for field in FIELDS.get(type(entry), ()) if (words := getattr(entry, field))}


def _with(entry: e.AnyEntry, shown: Mapping[str, str]) -> e.AnyEntry:
    if isinstance(entry, e.HumanDecided):
        decisions = tuple(
            made.model_copy(update={"reason": shown.get(f"{entry.seq}.{at}", made.reason)})
            for at, made in enumerate(entry.decisions)
        )
        return entry.model_copy(update={"decisions": decisions})
    return _with_fields(entry, shown)


def _with_fields(entry: Shown, shown: Mapping[str, str]) -> Shown:
    came = {
        field: shown[f"{entry.seq}.{field}"] for field in FIELDS.get(type(entry), ()) if f"{entry.seq}.{field}" in shown
    }
    return entry.model_copy(update=came) if came else entry

"""Names what a person decides on by a digest: part by part, so that a late decision can be told what has changed."""

from collections.abc import Sequence

from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.permission.facts import CallFacts
from longhaul.agent.plain.canonical import digest_of
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
    facts = call.facts
    parts = [
        digest_of([call.block.id, call.block.name, call.input]),
        digest_of(_plain(facts, "cwd", "paths", "commands", "safety", "not_understood", "read_only")),
        digest_of([facts.before, facts.after]),
        digest_of([tool.name, tool.digest]),
        digest_of([terms(tool, context), [rule.model_dump(mode="json") for rule in suggested]]),
    ]
    return ".".join([digest_of(parts), *(part[:_HINT_CHARS] for part in parts)])


def asked(what: str, at: int) -> str:
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


def essence(facts: CallFacts) -> tuple[object, ...]:
    """What a call would touch and do, as far as an approval is for it."""
    return (facts.cwd, facts.paths, facts.commands, facts.before, facts.after, facts.safety, facts.not_understood)


def _plain(facts: CallFacts, *names: str) -> object:
    return facts.model_dump(mode="json", include=set(names))


def seen_digest(call: OpenCall, ledger: Ledger) -> str:
    """Names what a person is shown of a call that waits, and when it was asked. An answer says which one it is for."""
    tool = ledger.provided.tools.get(call.block.name)
    if tool is None:
        return digest_of([call.block.name, call.input, call.facts.model_dump(mode="json")])
    return asked(material(call, tool, ledger.permission, call.suggested_rules), call.asked_at)

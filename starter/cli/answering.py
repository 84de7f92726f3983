"""Commands that answer or steer a session: approve, deny, result, settle, interrupt, say, observe."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from agent.entries_requests import When
from agent.permission.rules import PermissionRule
from agent.preview import argument_parts
from starter import render
from starter.cli.finding import Name, connected, find_session
from starter.cli.leaving import Misuse
from starter.cli.opening import whoami
from starter.cli.ruling import end_of
from starter.cli.screen import Screen
from starter.render import rule_name
from starter.session import Session
from starter.visible import one_line
from workflows.contract import PendingCall


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be decided about one call or all that wait."""

    allow: bool
    reason: str = ""
    input: str | None = None
    accept_rules: bool = False
    rules: tuple[str, ...] = ()
    """By the names under which they are shown: `Bash(git add:*)`."""
    approver: str | None = None
    seen: str = ""
    """How the digest begins of what was looked at; for one call."""
    until: str | None = None
    """When the accepted rules end."""
    why: str = ""
    """Why they are accepted."""


async def decide(screen: Screen, name: Name, call_ids: Sequence[str], decision: Decision) -> int:
    """Allow or deny the calls, one by one; without ids all that wait for a person."""
    async with connected() as app:
        session = await find_session(app, name)
        waiting = {call.call_id: call for call in await session.pending() if call.waits_for == "person"}
        chosen = list(call_ids) or list(waiting)
        if not chosen:
            raise Misuse(f"session {session.id!r} waits for no person; see `longhaul show {session.id}`")
        for flag, given in (("--edit", decision.input), ("--seen", decision.seen or None)):
            if given is not None and len(chosen) != 1:
                raise Misuse(f"{flag} is for one call, and {len(chosen)} were chosen: {', '.join(chosen)}; name it")
        decided: list[str] = []
        approvals: dict[str, str] = {}
        for call_id in chosen:
            if call_id in waiting:
                _check_seen(session, waiting[call_id], decision.seen)
                if not screen.as_json:
                    screen.remark(render.pending_call(waiting[call_id]))
            still_open = await _confirm(session, call_id, waiting.get(call_id), decision)
            decided.append(call_id)
            approvals |= {call_id: still_open} if still_open else {}
            tool = waiting[call_id].tool if call_id in waiting else "call"
            more = f" ({still_open}; somebody else has to approve it too)" if still_open else ""
            screen.show(Text(one_line(f"{'approved' if decision.allow else 'denied'} {tool} {call_id}{more}")))
        word = "allow" if decision.allow else "deny"
        answer: dict[str, Any] = {"session": session.id, "decision": word, "decided": decided}
        screen.document({**answer, "approvals": approvals} if approvals else answer)
    return 0


async def _confirm(session: Session, call_id: str, call: PendingCall | None, decision: Decision) -> str:
    """How many approvals there are, as `1 of 2`, where the call needs more."""
    approver = whoami() if decision.approver is None else decision.approver
    rules: bool | list[PermissionRule] = decision.accept_rules
    if decision.rules and call is not None:
        rules = [_suggested(call, rule) for rule in decision.rules]
    elif rules and call is not None:
        rules = list(call.suggested_rules)
    if isinstance(rules, list):
        ends = "" if decision.until is None else end_of(decision.until)
        rules = [rule.model_copy(update={"expires_at": ends, "reason": decision.why}) for rule in rules]
    return await session.confirm(
        call or call_id,
        allow=decision.allow,
        reason=decision.reason,
        input=decision.input,
        rules=rules,
        approver=approver,
    )


def _check_seen(session: Session, call: PendingCall, seen: str) -> None:
    if not call.digest.startswith(seen):
        raise Misuse(
            f"{call.call_id!r} is not as it was when it was looked at (--seen {seen!r}, and now it is "
            f"{render.short_digest(call)!r}); look again: longhaul approve {session.id} {call.call_id} --show"
        )


async def show_whole(screen: Screen, name: Name, call_ids: Sequence[str]) -> int:
    """All of the calls that wait for a person, nothing left out, and the commands that answer; decides nothing."""
    async with connected() as app:
        session = await find_session(app, name)
        calls = [call for call in await session.pending() if call.waits_for == "person"]
    chosen = [call for call in calls if not call_ids or call.call_id in call_ids]
    if not chosen:
        raise Misuse(f"session {session.id!r} waits for no person; see `longhaul show {session.id}`")
    for call in chosen:
        screen.show(render.pending_call(call, whole=True), render.how_to_answer(session.id, call, name.flags()))
    whole = [{"call_id": call.call_id, "arguments": argument_parts(call.input, whole=True)} for call in chosen]
    screen.document({"session": session.id, "pending": chosen, "whole": whole})
    return 0


def _suggested(call: PendingCall, name: str) -> PermissionRule:
    for rule in call.suggested_rules:
        if rule_name(rule) == name:
            return rule
    offered = ", ".join(rule_name(rule) for rule in call.suggested_rules) or "none"
    raise Misuse(f"--rule: {name!r} was not suggested for call {call.call_id!r}; suggested: {offered}")


async def hand_in(
    screen: Screen, name: Name, call_id: str, read: Callable[[], str], *, failed: bool, partial: bool
) -> int:
    """The result of an external tool, as `read` returns it."""
    output = read()
    async with connected() as app:
        session = await find_session(app, name)
        await session.external_result(call_id, output, failed=failed, partial=partial, by=whoami())
    what = "a piece of the result" if partial else "the result"
    screen.show(Text(one_line(f"handed in {what} of {call_id}")))
    screen.document({"session": session.id, "received": [call_id]})
    return 0


@dataclass(frozen=True, slots=True)
class Word:
    """What a person knows of a call in doubt."""

    happened: bool
    output: str = ""
    reason: str = ""
    by: str | None = None


async def settle(screen: Screen, name: Name, call_id: str, word: Word) -> int:
    """Say whether a call happened."""
    by = whoami() if word.by is None else word.by
    async with connected() as app:
        session = await find_session(app, name)
        await session.settle(call_id, happened=word.happened, output=word.output, by=by, reason=word.reason)
    screen.show(Text(one_line(f"settled {call_id}: it {'happened' if word.happened else 'did not happen'}")))
    screen.document({"session": session.id, "settled": call_id, "happened": word.happened})
    return 0


def result_text(output: str | None, file: str | None) -> str:
    """From `--output`, or from the file that `--file` names (`-`: stdin). Raises Misuse."""
    if (output is None) == (file is None):
        raise Misuse("give the result as --output TEXT or as --file F, one of the two")
    if file is None:
        return output or ""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise Misuse(f"--file: {file!r} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Misuse(f"--file: {file!r} is not UTF-8 text: {error}") from error


async def interrupt(screen: Screen, name: Name, message: str | None, request_id: str | None) -> int:
    """End the reply that is being made, or drop a request."""
    async with connected() as app:
        session = await find_session(app, name)
        reply_id = await session.interrupt(message, request_id=request_id)
    screen.show(Text(f"interrupted reply {reply_id}"))
    screen.document({"session": session.id, "interrupted": reply_id})
    return 0


@dataclass(frozen=True, slots=True)
class Said:
    text: str
    now: bool = False
    interrupt: bool = False
    request_id: str | None = None


async def say(screen: Screen, name: Name, said: Said) -> int:
    """Send a request to a session that is there."""
    if not said.text.strip():
        raise Misuse("the text is empty; say what the agent should do")
    if said.now and said.interrupt:
        raise Misuse("--now goes on with the reply being made, and --interrupt ends it; give one of the two")
    when: When = "now" if said.now else "interrupt" if said.interrupt else "queue"
    async with connected() as app:
        session = await find_session(app, name)
        reply_id = await session.submit(said.text, request_id=said.request_id, when=when)
    screen.show(Text(f"reply {reply_id}"))
    screen.document({"session": session.id, "reply_id": reply_id, "when": when})
    return 0


async def observe(screen: Screen, name: Name, text: str) -> int:
    """Add to the context without asking for a reply."""
    if not text.strip():
        raise Misuse("the text is empty; say what the agent shall know")
    async with connected() as app:
        session = await find_session(app, name)
        await session.observe(text)
    screen.show(Text(one_line(f"{session.id} has observed it")))
    answer: dict[str, Any] = {"session": session.id, "observed": 1}
    screen.document(answer)
    return 0

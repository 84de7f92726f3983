"""Commands that answer or steer a session: approve, deny, result, settle, interrupt, say, observe."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from longhaul.agent.entries.requests import When
from longhaul.agent.permission.preview import argument_parts
from longhaul.agent.values.permission import PermissionRule
from longhaul.starter import render
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.finding import Name, flags_of, opened
from longhaul.starter.cli.opening import decider, whoami
from longhaul.starter.cli.terminal.approving import Allow, Deny, Leave, answered, ask_about
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.work.rules import end_of
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import decision_on
from longhaul.starter.render import rule_name
from longhaul.starter.visible import one_line
from longhaul.workflows.contract import PendingCall


@dataclass(frozen=True, slots=True)
class DecisionFlags:
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

    @property
    def is_bare(self) -> bool:
        """Whether nothing is said of what is allowed."""
        return self.allow and not (self.input or self.accept_rules or self.rules or self.seen)


async def decide(screen: Screen, name: Name, call_ids: Sequence[str], decision: DecisionFlags) -> int:
    """Allow or deny the calls, in one letter that counts as a whole; without ids all that wait for a person."""
    async with opened(name) as session:
        waiting = {call.call_id: call for call in await session.pending() if call.waits_for == "person"}
        chosen = list(call_ids) or list(waiting)
        if not chosen:
            raise Misuse(f"session {session.id!r} waits for no person; see `longhaul show {session.id}`")
        if decision.is_bare and not call_ids and screen.answers:
            return await _ask_about_each(screen, session, list(waiting.values()), decider(decision.approver))
        for flag, given in (("--edit", decision.input), ("--seen", decision.seen or None)):
            if given is not None and len(chosen) != 1:
                raise Misuse(f"{flag} is for one call, and {len(chosen)} were chosen: {', '.join(chosen)}; name it")
        for call in [waiting[call_id] for call_id in chosen if call_id in waiting]:
            _check_seen(session, call, decision.seen)
            if not screen.as_json:
                screen.remark(render.pending_call(call))
        approver = decider(decision.approver)
        decisions = [_decision_on(call_id, waiting.get(call_id), decision) for call_id in chosen]
        approvals = await session.decide([waiting.get(call_id, call_id) for call_id in chosen], decisions, approver)
        for call_id in chosen:
            tool = waiting[call_id].tool if call_id in waiting else "call"
            screen.show(_decided(tool, call_id, approvals.get(call_id, ""), allow=decision.allow))
        word = "allow" if decision.allow else "deny"
        answer: dict[str, Any] = {"session": session.id, "decision": word, "decided": chosen}
        screen.document({**answer, "approvals": approvals} if approvals else answer)
    return 0


async def _ask_about_each(screen: Screen, session: Session, calls: list[PendingCall], approver: str) -> int:
    """Nobody has said what they looked at: so each call is shown, and a key decides. Sent as one letter."""
    answers = list[tuple[PendingCall, Allow | Deny]]()
    for place, call in enumerate(calls, 1):
        number = f"{place} of {len(calls)}: " if len(calls) > 1 else ""
        answer = await ask_about(screen, call, number)
        if not isinstance(answer, Leave):
            answers.append((call, answer))
    if not answers:
        screen.show(Text("nothing was decided"))
        return Exit.PARKED
    decisions = [answered(call, answer) for call, answer in answers]
    approvals = await session.decide([call for call, _ in answers], decisions, approver)
    for call, answer in answers:
        count = approvals.get(call.call_id, "")
        screen.show(_decided(call.tool, call.call_id, count, allow=isinstance(answer, Allow)))
    return Exit.DONE


def _decided(tool: str, call_id: str, approvals: str, *, allow: bool) -> Text:
    more = f" ({approvals}; somebody else has to approve it too)" if approvals else ""
    return Text(one_line(f"{'approved' if allow else 'denied'} {tool} {call_id}{more}"))


def _decision_on(call_id: str, call: PendingCall | None, decision: DecisionFlags) -> dict[str, Any]:
    """In the body of `confirm`."""
    rules: bool | list[PermissionRule] = decision.accept_rules
    if decision.rules and call is not None:
        rules = [_suggested(call, rule) for rule in decision.rules]
    elif rules and call is not None:
        rules = list(call.suggested_rules)
    if isinstance(rules, list):
        ends = "" if decision.until is None else end_of(decision.until)
        rules = [rule.model_copy(update={"expires_at": ends, "reason": decision.why}) for rule in rules]
    word = "allow" if decision.allow else "deny"
    return decision_on(call or call_id, word, decision.reason, decision.input, rules)


def _check_seen(session: Session, call: PendingCall, seen: str) -> None:
    if not call.digest.startswith(seen):
        raise Misuse(
            f"{call.call_id!r} is not as it was when it was looked at (--seen {seen!r}, and now it is "
            f"{render.short_digest(call)!r}); look again: longhaul approve {session.id} {call.call_id} --show"
        )


async def show_whole(screen: Screen, name: Name, call_ids: Sequence[str]) -> int:
    """All of the calls that wait for a person, nothing left out, and the commands that answer; decides nothing."""
    async with opened(name) as session:
        calls = [call for call in await session.pending() if call.waits_for == "person"]
    chosen = [call for call in calls if not call_ids or call.call_id in call_ids]
    if not chosen:
        raise Misuse(f"session {session.id!r} waits for no person; see `longhaul show {session.id}`")
    for call in chosen:
        screen.show(render.pending_call(call, whole=True), render.how_to_answer(session.id, call, flags_of(session)))
    whole = [{"call_id": call.call_id, "arguments": argument_parts(call.input, whole=True)} for call in chosen]
    screen.document({"session": session.id, "pending": chosen, "whole": whole})
    return 0


def _suggested(call: PendingCall, name: str) -> PermissionRule:
    for rule in call.suggested_rules:
        if rule_name(rule) == name:
            return rule
    offered = ", ".join(rule_name(rule) for rule in call.suggested_rules) or "none"
    raise Misuse(f"--rule: {name!r} was not suggested for call {call.call_id!r}; suggested: {offered}")


@dataclass(frozen=True, slots=True)
class SteeringFlags:
    """The result of an external tool, or where it stands."""

    call_id: str
    output: str | None
    file: str | None
    failed: bool
    partial: bool


async def hand_in(screen: Screen, name: Name, given: SteeringFlags) -> int:
    """The result of an external tool."""
    output = result_text(given.output, given.file)
    async with opened(name) as session:
        await session.external_result(given.call_id, output, failed=given.failed, partial=given.partial, by=whoami())
    what = "a piece of the result" if given.partial else "the result"
    screen.show(Text(one_line(f"handed in {what} of {given.call_id}")))
    screen.document({"session": session.id, "received": [given.call_id]})
    return 0


@dataclass(frozen=True, slots=True)
class DoubtWord:
    """What a person knows of a call in doubt."""

    happened: bool
    output: str = ""
    reason: str = ""
    by: str | None = None


async def settle(screen: Screen, name: Name, call_id: str, word: DoubtWord) -> int:
    """Say whether a call happened."""
    by = decider(word.by)
    async with opened(name) as session:
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
    async with opened(name) as session:
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
    async with opened(name) as session:
        reply_id = await session.submit(said.text, request_id=said.request_id, when=when)
    screen.show(Text(f"reply {reply_id}"))
    screen.document({"session": session.id, "reply_id": reply_id, "when": when})
    return 0


async def observe(screen: Screen, name: Name, text: str) -> int:
    """Add to the context without asking for a reply."""
    if not text.strip():
        raise Misuse("the text is empty; say what the agent shall know")
    async with opened(name) as session:
        await session.observe(text)
    screen.show(Text(one_line(f"{session.id} has observed it")))
    answer: dict[str, Any] = {"session": session.id, "observed": 1}
    screen.document(answer)
    return 0

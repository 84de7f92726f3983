"""The commands that answer and steer sessions: approve, deny, result, resolve, interrupt, stop, say, observe,
notify."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from longhaul.agent.entries import When
from longhaul.agent.permission.preview import argument_parts
from longhaul.agent.values.permission import PermissionRule
from longhaul.starter import render, render_pending
from longhaul.starter.cli import options
from longhaul.starter.cli.commands.rules import end_of
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.session_lookup import (
    Name,
    by_session,
    connected,
    find_known,
    find_session,
    flags_of,
    opened,
    place_of,
    waiting_in,
)
from longhaul.starter.cli.session_start import decider, whoami
from longhaul.starter.cli.terminal.dialogs import (
    Allow,
    Deny,
    Leave,
    answered,
    answers_to,
    ask_about,
    edited_by_hand,
    own_editor,
)
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import decision_on
from longhaul.starter.connection.pollers import time_at
from longhaul.starter.visible import one_line
from longhaul.workflows.contract import PendingCall

commands = options.SubjectCommands()


@dataclass(frozen=True, slots=True)
class DecisionFlags:
    """About one call, or all that wait."""

    allow: bool
    every: bool = False
    """All that wait are meant."""
    reason: str = ""
    input: str | None = None
    by_editor: bool = False
    """The arguments are to be changed in the person's editor; for one call."""
    accept_rules: bool = False
    rules: Sequence[str] = ()
    """By the names under which they are shown: `Bash(git add:*)`."""
    approver: str | None = None
    seen: str | None = None
    """How the digest begins of what was looked at; for one call."""
    until: str | None = None
    """When the accepted rules end."""
    why: str = ""
    """Why they are accepted."""

    @property
    def has_looked(self) -> bool:
        """Whether the person has said which calls are meant, or is shown them in an editor: what waits may have changed
        since they looked."""
        return self.every or self.by_editor or self.seen is not None

    @property
    def is_bare(self) -> bool:
        """Whether nothing is said of what is allowed."""
        return (
            self.allow and not (self.input or self.by_editor or self.accept_rules or self.rules) and self.seen is None
        )


@commands.command()
async def approve(
    screen: Screen,
    name: Name,
    calls: options.Calls = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="All waiting calls: needed without a terminal, unless you name the calls.")
    ] = False,
    edit: Annotated[str | None, typer.Option(help="Other arguments, as a JSON object; for one call.")] = None,
    editor: Annotated[
        bool,
        typer.Option(
            "--editor", help="Change the arguments in $EDITOR first, or field by field if it is not set; for one call."
        ),
    ] = False,
    accept_rules: Annotated[bool, typer.Option("--accept-rules", help="Accept all suggested rules too.")] = False,
    rule: Annotated[list[str] | None, typer.Option(help="A suggested rule to accept, as shown.")] = None,
    seen: Annotated[str | None, typer.Option(help="Start of the digest of what you saw, as shown.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Show everything that waits, and decide nothing.")] = False,
    until: Annotated[
        str | None, typer.Option(help="When the accepted rules end: a date, a time, or a duration such as 8h, 30d.")
    ] = None,
    why: Annotated[str, typer.Option(help="Why the rules are accepted; it is recorded.")] = "",
    approver: options.As = None,
) -> int:
    if show:
        return await _show_whole(screen, name, calls or ())
    decision = DecisionFlags(
        allow=True,
        every=every,
        input=edit,
        by_editor=editor,
        accept_rules=accept_rules,
        rules=rule or (),
        approver=approver,
        seen=seen,
        until=until,
        why=why,
    )
    return await _decide(screen, name, calls or (), decision)


@commands.command()
async def deny(
    screen: Screen,
    name: Name,
    calls: options.Calls = None,
    *,
    reason: Annotated[str, typer.Option(help="The model reads it.")] = "",
    approver: options.As = None,
) -> int:
    return await _decide(screen, name, calls or (), DecisionFlags(allow=False, reason=reason, approver=approver))


async def _decide(screen: Screen, name: Name, call_ids: Sequence[str], decision: DecisionFlags) -> int:
    """Allow or deny the calls, in one operation that counts as a whole; without ids all that wait for a person. Those
    of its sub-agents are answered in their sessions, in an operation for each."""
    async with connected() as app:
        root = await find_session(app, name)
        if decision.until is not None:
            decision = replace(decision, until=end_of(decision.until, await time_at(app.client)))
        waiting = await waiting_in(root, call_ids, "person")
        chosen = list(call_ids) or [each.call.call_id for each in waiting]
        if not chosen:
            raise Misuse(f"session {root.id!r} waits for no person; see `longhaul show {root.id}`")
        for flag, given in (
            ("--edit", decision.input),
            ("--editor", decision.by_editor or None),
            ("--seen", decision.seen),
        ):
            if given is not None and len(chosen) != 1:
                raise Misuse(f"{flag} is for one call, and {len(chosen)} were chosen: {', '.join(chosen)}; name it")
        if decision.every and call_ids:
            raise Misuse("--all is for all calls that wait; leave the ids out, or --all")
        if decision.allow and not (screen.answers or call_ids or decision.has_looked):
            verb = "call waits" if len(chosen) == 1 else "calls wait"
            raise Misuse(
                f"{len(chosen)} {verb}, and there is no terminal to ask about each: {', '.join(chosen)}; name the "
                "calls, or use --all. Nothing was approved"
            )
        codes = list[int]()
        for session, calls in by_session(root, waiting, call_ids):
            shown = [call for call in calls.values() if call is not None]
            if decision.is_bare and not call_ids and not decision.every and screen.answers:
                codes.append(await _ask_about_each(screen, session, shown, decider(decision.approver)))
            else:
                codes.append(await _decide_there(screen, session, calls, decision))
    return max(codes)


async def _decide_there(
    screen: Screen, session: Session, calls: Mapping[str, PendingCall | None], decision: DecisionFlags
) -> int:
    """`calls`: those that are decided on, by id; None for one that does not wait: its session says why not."""
    for call in calls.values():
        if call is not None:
            if decision.seen is not None:
                _check_seen(session, call, decision.seen)
            if decision.by_editor:
                decision = replace(decision, input=await _from_editor(screen, session, call))
            if not screen.as_json:
                screen.remark(render_pending.pending_call(call, width=screen.width))
    approver = decider(decision.approver)
    decisions = [_decision_on(call_id, call, decision) for call_id, call in calls.items()]
    approvals = await session.decide([call or call_id for call_id, call in calls.items()], decisions, approver)
    for call_id, call in calls.items():
        tool = call.tool if call is not None else "call"
        screen.show(_decided(tool, call_id, approvals.get(call_id, ""), allow=decision.allow))
    word = "allow" if decision.allow else "deny"
    answer: dict[str, Any] = {"session": session.id, "decision": word, "decided": list(calls)}
    screen.document({**answer, "approvals": approvals} if approvals else answer)
    return 0


async def _from_editor(screen: Screen, session: Session, call: PendingCall) -> str:
    if not (own_editor() or screen.answers):
        raise Misuse("--editor: neither VISUAL nor EDITOR is set; set one, or give the arguments with --edit")
    edited = await edited_by_hand(screen, call, session)
    if edited is None:
        raise Misuse(f"--editor: {call.call_id!r} waits as it was; nothing is decided")
    return edited


async def _ask_about_each(screen: Screen, session: Session, calls: list[PendingCall], approver: str) -> int:
    """Nobody has said what they looked at: so each call is shown, and a key decides. Sent as one operation."""
    answers = list[tuple[PendingCall, Allow | Deny]]()
    for place, call in enumerate(calls, 1):
        number = f"{place} of {len(calls)}: " if len(calls) > 1 else ""
        answer = await ask_about(screen, call, session, number)
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
    more = f" ({approvals}; another person must approve it too)" if approvals else ""
    return Text(one_line(f"{'approved' if allow else 'denied'} {tool} {call_id}{more}"))


def _decision_on(call_id: str, call: PendingCall | None, decision: DecisionFlags) -> dict[str, Any]:
    """In the body of `confirm`."""
    rules: bool | list[PermissionRule] = decision.accept_rules
    if decision.rules and call is not None:
        rules = [_suggested(call, rule) for rule in decision.rules]
    elif rules and call is not None:
        rules = list(call.suggested_rules)
    if isinstance(rules, list):
        terms = {"expires_at": decision.until or "", "reason": decision.why}
        rules = [rule.model_copy(update=terms) for rule in rules]
    word = "allow" if decision.allow else "deny"
    return decision_on(call or call_id, word, decision.reason, decision.input, rules)


def _check_seen(session: Session, call: PendingCall, seen: str) -> None:
    if not seen or not call.digest.startswith(seen):
        raise Misuse(
            f"{call.call_id!r} has changed since you saw it (--seen {seen!r}, and now it is "
            f"{render_pending.short_digest(call)!r}); look again: longhaul approve {session.id} {call.call_id} --show"
        )


async def _show_whole(screen: Screen, name: Name, call_ids: Sequence[str]) -> int:
    """All of the calls that wait for a person, nothing left out, and the commands that answer; decides nothing."""
    async with opened(name) as session:
        waiting = await waiting_in(session, call_ids, "person")
    if not waiting:
        raise Misuse(f"session {session.id!r} waits for no person; see `longhaul show {session.id}`")
    for each in waiting:
        answer = render_pending.how_to_answer(each.session.id, each.call, flags_of(each.session))
        screen.show(render_pending.pending_call(each.call, whole=True), answer)
    chosen = [each.call for each in waiting]
    whole = [{"call_id": call.call_id, "arguments": argument_parts(call.input, whole=True)} for call in chosen]
    screen.document({"session": session.id, "pending": chosen, "whole": whole})
    return 0


def _suggested(call: PendingCall, name: str) -> PermissionRule:
    for rule in call.suggested_rules:
        if rule.spelt() == name:
            return rule
    offered = ", ".join(rule.spelt() for rule in call.suggested_rules) or "none"
    raise Misuse(f"--rule: {name!r} was not suggested for call {call.call_id!r}; suggested: {offered}")


@commands.command()
async def result(
    screen: Screen,
    name: Name,
    call: Annotated[str, typer.Argument(metavar="CALL", help="The id of the call that waits.")],
    *,
    output: Annotated[str | None, typer.Option(help="The result as text.")] = None,
    file: Annotated[str | None, typer.Option(help="A file with the result; `-` is stdin.")] = None,
    error: Annotated[bool, typer.Option("--error", help="The call failed; this text says why.")] = False,
    partial: Annotated[bool, typer.Option("--partial", help="A part of the text; more follows.")] = False,
) -> int:
    asks = output is None and file is None and screen.answers  # whoever sits there
    given: Any = None if asks else result_text(output, file)
    async with opened(name) as root:
        session = await place_of(root, call, "outside")
        if asks:
            asked = next((each.asked for each in await session.pending() if each.call_id == call), None)
            is_form = asked is not None and not (error or partial)
            given = answers_to(screen, asked) if asked is not None and is_form else result_text(output, file)
        await session.external_result(call, given, failed=error, partial=partial, by=whoami())
    what = "a part of the result" if partial else "the result"
    screen.show(Text(one_line(f"handed in {what} of {call}")))
    screen.document({"session": session.id, "received": [call]})
    return 0


@commands.command()
async def resolve(
    screen: Screen,
    name: Name,
    call: Annotated[str, typer.Argument(metavar="CALL", help="The id of the call whose outcome is unknown.")],
    *,
    happened: Annotated[bool, typer.Option("--happened/--did-not", help="Whether it ran.", show_default=False)],
    output: Annotated[str, typer.Option(help="Its result; the model reads it.")] = "",
    reason: Annotated[str, typer.Option(help="How you know; the model reads it.")] = "",
    approver: options.As = None,
) -> int:
    async with opened(name) as root:
        session = await place_of(root, call, "resolution")
        await session.resolve(call, happened=happened, output=output, by=decider(approver), reason=reason)
    screen.show(Text(one_line(f"resolved {call}: it {'happened' if happened else 'did not happen'}")))
    screen.document({"session": session.id, "resolved": call, "happened": happened})
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


@commands.command()
async def interrupt(
    screen: Screen,
    name: Name,
    *,
    message: Annotated[str | None, typer.Option(help="Becomes the next request.")] = None,
    request: Annotated[str | None, typer.Option(help="Only the request with this id; a queued one is dropped.")] = None,
) -> int:
    async with opened(name) as session:
        reply_id = await session.interrupt(message, request_id=request)
    screen.show(Text(f"interrupted reply {reply_id}"))
    screen.document({"session": session.id, "interrupted": reply_id})
    return 0


@commands.command()
async def stop(
    screen: Screen,
    name: Name,
    call: Annotated[
        str | None, typer.Argument(metavar="[CALL]", help="Id of the call that started it; default: all.")
    ] = None,
    *,
    approver: options.As = None,
) -> int:
    """The agent learns of it at its next reply. Exit 0 all has ended, 3 some has not reported its end yet.
    Example: longhaul stop nightly toolu_01
    """
    async with connected() as app:
        session = await find_known(app, name)
        ends = await session.stop_background(call, by=decider(approver))
    screen.show(*render.stopped_lines(ends))
    screen.document({"session": session.id, "ends": ends})
    return 0 if all(ends.values()) else Exit.PARKED


@commands.command()
async def say(
    screen: Screen,
    name: Name,
    text: Annotated[str, typer.Argument(help="A request.")],
    *,
    now: Annotated[bool, typer.Option("--now", help="The current reply reads it at its next step.")] = False,
    interrupt: Annotated[
        bool, typer.Option("--interrupt", help="End the current reply; this request is next.")
    ] = False,
    request_id: Annotated[str | None, typer.Option(help="The same id sent again gives the same reply.")] = None,
) -> int:
    """Example: longhaul say nightly --now "Leave the old branch alone." """
    if not text.strip():
        raise Misuse("the text is empty; say what the agent should do")
    if now and interrupt:
        raise Misuse("--now continues the current reply, and --interrupt ends it; give one of the two")
    when: When = "now" if now else "interrupt" if interrupt else "queue"
    async with opened(name) as session:
        reply_id = await session.submit(text, request_id=request_id, when=when)
    screen.show(Text(f"reply {reply_id}"))
    screen.document({"session": session.id, "reply_id": reply_id, "when": when})
    return 0


@commands.command()
async def observe(
    screen: Screen, name: Name, text: Annotated[str, typer.Argument(help="What the agent should know.")]
) -> int:
    if not text.strip():
        raise Misuse("the text is empty; say what the agent should know")
    async with opened(name) as session:
        await session.observe(text)
    screen.show(Text(one_line(f"{session.id} has observed it")))
    screen.document({"session": session.id, "observed": 1})
    return 0


@commands.command()
async def notify(
    screen: Screen,
    name: Name,
    event: Annotated[str, typer.Argument(help="What the agent waits for; `wake` ends a sleep.")],
    *,
    payload: Annotated[str, typer.Option(help="Text that the agent reads with it, as data from outside.")] = "",
    request_id: Annotated[str | None, typer.Option(help="The same id sent again counts once.")] = None,
) -> int:
    """Example: longhaul notify nightly deployed --payload "build 81 is out" """
    async with opened(name) as session:
        woken = await session.notify(event, payload, request_id=request_id, by=whoami())
    kept = "does not wait for it now; it gets the event when it does, once for each request id"
    screen.show(Text(one_line(f"{session.id} {'has woken up' if woken else kept}")))
    screen.document({"session": session.id, "event": event, "woken": woken})
    return 0

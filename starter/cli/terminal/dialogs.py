"""Asks the person at the terminal: what to do with one call, and what an MCP server wants to know, field by field."""

import asyncio
import json
import os
import shlex
import subprocess
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rich.text import Text
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from longhaul.agent.operations.result_operations import ACTIONS
from longhaul.agent.plain.errors import Damaged, Unavailable
from longhaul.agent.plain.json_schemas import unusable, wrong_places
from longhaul.agent.plain.text import parsed
from longhaul.agent.values.conversation.messages import WARNING, ServerAsked, ServerQuestion
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.views.would_pass import WouldPass
from longhaul.starter import render, render_pending
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.terminal.key_presses import ask, ask_key, await_key, read
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.session import Session
from longhaul.starter.client.structured_input import fields_of, fill_in
from longhaul.starter.client.wire import decision_on
from longhaul.starter.visible import one_line, visible
from longhaul.workflows.contract import PendingCall


def typed_fields(screen: Screen, schema: dict[str, Any], kept: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`kept`: the value before, of which an empty line keeps a field. Raises EOFError where the person leaves."""

    def field(question: str) -> str:
        return read(screen.in_rows(question))

    return fill_in(schema, field, lambda said: screen.show_folded(Text(said, "red")), kept)


LONG_LINES = 12
"""Of what is to be decided on: above that, what it is about is said once more beside the question."""


@dataclass(frozen=True, slots=True)
class Allow:
    rules: tuple[PermissionRule, ...] = ()
    """Of those that were suggested."""
    input: str | None = None
    """Other arguments, as a JSON object."""


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


@dataclass(frozen=True, slots=True)
class Leave:
    """No decision: it goes on waiting."""


def answered(call: PendingCall, answer: Allow | Deny) -> dict[str, Any]:
    """As one decision in the body of `confirm`."""
    match answer:
        case Allow(rules=rules, input=edited):
            return decision_on(call, "allow", "", edited, rules)
        case Deny(reason):
            return decision_on(call, "deny", reason, None, ())


async def ask_about(
    screen: Screen, call: PendingCall, session: Session, number: str = "", gone: asyncio.Event | None = None
) -> Allow | Deny | Leave:
    """Show a call and return what the person decides. `number`: in a list. Raises QuestionGone when `gone` is set
    first, and KeyboardInterrupt on Ctrl-C where nobody handles the signal."""
    gone = gone or asyncio.Event()
    screen.ring(one_line(f"{session.id} waits for you: {call.tool}"))
    shown = render_pending.pending_call(call, width=screen.width)
    found = await _would_pass(session, call)
    asks = Text(f"\n{number}may it do this?", style="bold yellow")
    screen.show_folded(asks, shown, *render_pending.would_pass(found))
    if render_pending.plan_of(call) is None and shown.plain.count("\n") > LONG_LINES:
        again = render.call_line(visible(call.tool), visible(call.input))
        again.truncate(max(screen.width - 1, 1), overflow="ellipsis")
        screen.show(again)
    question, keys = _question(call, screen.width)
    while True:
        match await await_key(question, keys, gone):
            case "y":
                return Allow()
            case "a":
                if rules := _chosen(screen, call.suggested_rules):
                    return Allow(rules=rules)
            case "e":
                if (edited := await edited_by_hand(screen, call, session)) is not None:
                    return Allow(input=edited)
            case "n":
                return Deny(ask("reason (may be empty): ") or "")
            case "s":
                screen.show_folded(render_pending.pending_call(call, whole=True))
            case _:
                return Leave()


async def _would_pass(session: Session, call: PendingCall) -> list[WouldPass]:
    """Nothing where it can't be had: the person is asked all the same."""
    try:
        return await session.rules.would_pass(call) if call.suggested_rules else []
    except (WorkflowQueryFailedError, RPCError, Unavailable, Damaged):
        return []


def _question(call: PendingCall, width: int) -> tuple[str, str]:
    """In rows that part no answer, and the keys that answer it."""
    answers = {"y": "[y]es", "n": "[n]o", "e": "[e]dit", "a": "[a]llow by rule", "s": "[s]how all", "q": "[q] later"}
    if not call.suggested_rules:
        del answers["a"]
    if not render_pending.is_cut(call):
        del answers["s"]
    whole = ", ".join(answer.replace(" ", "\0") for answer in answers.values())
    rows = textwrap.wrap(whole, max(width - len(":"), 1))
    return "\n".join(rows).replace("\0", " ") + ": ", "".join(answers)


def _chosen(screen: Screen, rules: Sequence[PermissionRule]) -> tuple[PermissionRule, ...]:
    """The only one, or what the person picks; nothing to think again."""
    if len(rules) == 1:
        return tuple(rules)
    offered = rules[:9]
    for number, rule in enumerate(offered, start=1):
        screen.show(Text(f"  {number} {one_line(visible(rule.spelt()))}"))
    picked = ask_key("which rule? a number, [a]ll, [q] none: ", "".join(str(n + 1) for n in range(len(offered))) + "aq")
    if picked == "a":
        return tuple(rules)
    return (rules[int(picked) - 1],) if picked and picked.isdigit() else ()


async def edited_by_hand(screen: Screen, call: PendingCall, session: Session) -> str | None:
    """Other arguments from the person's editor, or typed field by field where none is set; asked for until they fit the
    tool's schema. None when the person leaves it."""
    schema = next((tool.input_schema for tool in await session.tools() if tool.name == call.tool), {})
    editor, text = own_editor(), call.input
    while True:
        try:
            text = _from_editor(editor, text) if editor else _typed(screen, text, schema)
        except EOFError:
            return None
        if not (wrong := why_unfit(call.tool, text, schema)):
            return json.dumps(json.loads(text), ensure_ascii=False)
        screen.show_folded(Text(one_line(wrong), style="red"))
        if ask_key("[e]dit it again, [q] leave it: ", "eq") != "e":
            return None


def _typed(screen: Screen, arguments: str, schema: dict[str, Any]) -> str:
    """Field by field; all of it as JSON where there are no fields to be asked for. Raises EOFError."""
    before = parsed(arguments)
    if before is None or not any(fields_of(schema)):
        return read("new arguments (a JSON object): ")
    return json.dumps(typed_fields(screen, schema, before))


def own_editor() -> str:
    """The command of the person's editor; empty where none is set."""
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""


def why_unfit(tool: str, text: str, schema: dict[str, Any]) -> str:
    """Why a text can't be the tool's arguments; empty for one that can. The session checks it too, and the worker what
    the schema says beyond."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"that is not JSON: {error}"
    if not isinstance(given, dict):
        return "the arguments must be a JSON object"
    if unusable(schema, other_words=True):
        return ""
    wrong = wrong_places(cast(object, given), schema)
    return f"it does not fit {tool!r}: {'; '.join(wrong)}" if wrong else ""


def _from_editor(editor: str, arguments: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arguments.json"
        file.write_text(_indented(arguments), encoding="utf-8")
        subprocess.run([*shlex.split(editor), str(file)], check=False)
        return file.read_text(encoding="utf-8")


def _indented(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), indent=2)
    except ValueError:
        return arguments


_CHOICE = "accept, decline or cancel? "


def answers_to(screen: Screen, asked: ServerAsked) -> dict[str, Any]:
    """By the questions' keys, as they are handed in. Raises Misuse where the person leaves; nothing is answered."""
    return {key: _answer(screen, asked.server, question) for key, question in asked.questions.items()}


def _answer(screen: Screen, server: str, question: ServerQuestion) -> dict[str, Any]:
    screen.show_folded(
        Text(f"The MCP server {server!r} asks: {visible(question.message)}", style="bold yellow"), Text(WARNING)
    )
    if question.url:
        screen.show(Text(f"It asks you to open this yourself, and then to accept: {visible(question.url)}"))
    action = _action(screen)
    if action != "accept" or question.url:
        return {"action": action}
    try:
        return {"action": action, "content": typed_fields(screen, question.fields)}
    except EOFError:
        raise _left() from None


def _action(screen: Screen) -> str:
    while (said := ask(_CHOICE)) is not None:
        if found := [action for action in ACTIONS if said and action.startswith(said.lower())]:
            return found[0]
        screen.show_folded(Text(f"{visible(said)[:60]!r} is none of {', '.join(ACTIONS)}"))
    raise _left()


def _left() -> Misuse:
    return Misuse("nothing was answered, and the question still waits; give the answer with --output JSON, or decline")

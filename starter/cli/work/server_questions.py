"""Answers what an MCP server asks at the terminal: each question with its server's name, a form field by field."""

from typing import Any

from rich.text import Text

from longhaul.agent.letters.result_operations import ACTIONS
from longhaul.agent.values.conversation.messages import WARNING, ServerAsked, ServerQuestion
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.terminal.key_presses import ask
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.terminal.typed_fields import typed_fields
from longhaul.starter.visible import visible

_CHOICE = "accept, decline or cancel? "


def answers_to(screen: Screen, asked: ServerAsked) -> dict[str, Any]:
    """By the questions' keys, as they are handed in. Raises Misuse where the person leaves; nothing is answered."""
    return {key: _answer(screen, asked.server, question) for key, question in asked.questions.items()}


def _answer(screen: Screen, server: str, question: ServerQuestion) -> dict[str, Any]:
    screen.show_folded(
        Text(f"The MCP server {server!r} asks: {visible(question.message)}", style="bold yellow"), Text(WARNING)
    )
    if question.url:
        screen.show(Text(f"It wants you to open this yourself, and then to accept: {visible(question.url)}"))
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
    return Misuse("nothing was answered; the question still waits. Give the answer as --output JSON, or decline it")

"""`longhaul chat`: a conversation, line by line."""

import asyncio
import os
import sys
import uuid

from rich.text import Text

from starter.cli.conversation import Conversation, Outcome, interrupting, newest_event
from starter.cli.finding import connected
from starter.cli.keys import read_line
from starter.cli.leaving import Exit
from starter.cli.opening import Wishes, open_session, whoami
from starter.cli.screen import Screen
from starter.visible import one_line

HISTORY = "chat_history"
"""What was typed, in the data directory."""


async def chat(wishes: Wishes, screen: Screen) -> int:
    """Until /quit or the end of input. Returns the exit code."""
    async with connected() as app:
        session = await open_session(app, wishes)
        if screen.renders and screen.answers:
            from starter.cli.talk import Talk  # noqa: PLC0415  nobody else waits for what it is made with

            return await Talk(session, whoami(), app.settings.data_dir / HISTORY).run()
        screen.remark(Text(f"session {one_line(session.id)}; /quit or Ctrl-D leaves, Ctrl-C interrupts", style="dim"))
        conversation = Conversation(session, screen, whoami())
        async with interrupting(conversation):
            outcome = await conversation.catch_up()
        while (line := _next_line()) is not None:
            if line:
                outcome = await _turn(conversation, line)
            if outcome is not None and outcome.status == "waiting" and not screen.answers:
                break  # Nobody here can answer, so what is said next would only queue up.
        return _code(outcome, screen)


def _code(outcome: Outcome | None, screen: Screen) -> int:
    return Exit.DONE if outcome is None or screen.answers else outcome.code


async def _turn(conversation: Conversation, line: str) -> Outcome | None:
    try:
        async with interrupting(conversation):
            start = await newest_event(conversation.session) + 1
            return await conversation.ask(line, uuid.uuid4().hex, start)
    except asyncio.CancelledError:
        # The second Ctrl-C, or an interrupted reply that took too long: back to the prompt, not out of the chat.
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        return None


def _next_line() -> str | None:
    """The next thing to say; None to leave."""
    try:
        line = read_line("> ") if os.isatty(0) else sys.stdin.readline() or None
    except KeyboardInterrupt:
        print()
        return ""
    return None if line is None or line.strip() == "/quit" else line.strip()

"""`longhaul run`: one reply."""

import asyncio
import sys
import uuid
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from agent.transcript import final_text
from starter.cli.conversation import Conversation, Outcome, interrupting, newest_event
from starter.cli.finding import connected
from starter.cli.leaving import Misuse
from starter.cli.opening import Wishes, open_session, whoami
from starter.cli.screen import Screen
from starter.visible import one_line


@dataclass(frozen=True, slots=True)
class Request:
    prompt: str
    """`-`: read it from stdin."""
    request_id: str | None
    detach: bool


async def run(wishes: Wishes, request: Request, screen: Screen) -> int:
    """Ask, and see the reply through. Returns the exit code."""
    prompt = _prompt(request.prompt)
    async with connected(lambda sentence: screen.remark(Text(f"longhaul: {one_line(sentence)}", "yellow"))) as app:
        session = await open_session(app, wishes)
        screen.remark(Text(f"session {one_line(session.id)}", style="dim"))
        conversation = Conversation(session, screen, whoami())
        async with interrupting(conversation):
            code = await _ask(conversation, screen, prompt, request)
        await screen.sounds.done()
        return code


async def _ask(conversation: Conversation, screen: Screen, prompt: str, request: Request) -> int:
    session = conversation.session
    request_id = request.request_id or uuid.uuid4().hex
    if request.detach:
        reply_id = await session.submit(prompt, request_id=request_id)
        screen.show(Text(f"request {one_line(request_id)}\nreply {reply_id}"))
        screen.document({"session": session.id, "request_id": request_id, "reply_id": reply_id})
        return 0
    # A request that was sent before is shown from its beginning, wherever that lies.
    start = 1 if request.request_id else await newest_event(session) + 1
    try:
        outcome = await conversation.ask(prompt, request_id, start)
    except asyncio.CancelledError:
        outcome = Outcome("working", None)
    screen.document(
        {"session": session.id, "request_id": request_id, "reply_id": conversation.reply_id, **report(outcome)}
    )
    return outcome.code


def report(outcome: Outcome) -> dict[str, Any]:
    """The outcome as JSON."""
    message = outcome.message
    reason = message.finished_reason if message else None
    return {
        "status": outcome.status,
        "finished_reason": reason.value if reason else None,
        "text": final_text(message.model_copy(update={"error": None})) if message else "",
        "error": message.error.model_dump(mode="json") if message and message.error else None,
        "pending": [call.model_dump(mode="json") for call in outcome.pending],
        "usage": message.usage.model_dump(mode="json") if message and message.usage else None,
    }


def _prompt(given: str) -> str:
    prompt = sys.stdin.read() if given == "-" else given
    if not prompt.strip():
        raise Misuse("the prompt is empty; say what the agent should do")
    return prompt

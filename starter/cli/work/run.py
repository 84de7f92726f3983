"""`longhaul run`: one reply."""

import asyncio
import json
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rich.text import Text

from longhaul.agent.plain.json_schemas import why_unusable
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.views.transcript import final_text
from longhaul.starter.cli.exit_codes import Misuse, Outcome
from longhaul.starter.cli.session_lookup import connected
from longhaul.starter.cli.session_start import Wishes, open_session, whoami
from longhaul.starter.cli.terminal.conversation import Conversation, interrupting, newest_event, with_pictures
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.visible import one_line


@dataclass(frozen=True, slots=True)
class Request:
    prompt: str
    """`-`: read it from stdin."""
    request_id: str | None
    detach: bool
    schema: str | None = None
    """A file with the JSON schema that the answer has to fit."""


async def run(wishes: Wishes, request: Request, screen: Screen) -> int:
    """Ask, and see the reply through. Returns the exit code."""
    prompt, schema = _prompt(request.prompt), _schema(request.schema)
    async with connected(lambda sentence: screen.remark(Text(f"longhaul: {one_line(sentence)}", "yellow"))) as app:
        screen.notices = app.settings.notices
        session = await open_session(app, wishes)
        screen.remark(Text(f"session {one_line(session.id)}", style="dim"))
        conversation = Conversation(session, screen, whoami())
        async with interrupting(conversation):
            code = await _ask(conversation, screen, prompt, request, schema)
        await screen.sounds.done()
        return code


async def _ask(
    conversation: Conversation, screen: Screen, prompt: str | Msg, request: Request, schema: dict[str, Any] | None
) -> int:
    session = conversation.session
    request_id = request.request_id or uuid.uuid4().hex
    if request.detach:
        reply_id = await session.submit(prompt, request_id=request_id, structured_model=schema)
        screen.show(Text(f"request {one_line(request_id)}\nreply {reply_id}"))
        screen.document({"session": session.id, "request_id": request_id, "reply_id": reply_id})
        return 0
    # A request that was sent before is shown from its beginning, wherever that lies.
    start = 1 if request.request_id else await newest_event(session) + 1
    try:
        outcome = await conversation.ask(prompt, request_id, start, schema)
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
        "structured_output": message.structured_output if message else None,
        "error": message.error.model_dump(mode="json") if message and message.error else None,
        "pending": [call.model_dump(mode="json") for call in outcome.pending],
        "usage": message.usage.model_dump(mode="json") if message and message.usage else None,
    }


def _schema(file: str | None) -> dict[str, Any] | None:
    """Raises Misuse for a file that can't be read, or a schema that no session would take."""
    if file is None:
        return None
    try:
        schema: Any = json.loads(Path(file).read_bytes())
    except OSError as error:
        raise Misuse(f"--schema {file!r} can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Misuse(f"--schema {file!r} is no JSON: {error}") from None
    if why := why_unusable(schema):
        raise Misuse(f"--schema {file!r}: {why}")
    return cast(dict[str, Any], schema)


def _prompt(given: str) -> str | Msg:
    """With the files that it names as `@drawing.png`; in a text from stdin, which others may have written, none is
    looked for."""
    prompt = sys.stdin.read() if given == "-" else given
    if not prompt.strip():
        raise Misuse("the prompt is empty; say what the agent should do")
    return prompt if given == "-" else with_pictures(prompt)

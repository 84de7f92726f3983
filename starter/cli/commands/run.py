"""`longhaul run`: one reply."""

import asyncio
import json
import sys
import uuid
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.text import Text

from longhaul.agent.plain.json_schemas import why_unusable
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.views.transcript import final_text
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Misuse, Outcome
from longhaul.starter.cli.session_lookup import connected
from longhaul.starter.cli.session_start import Wishes, open_session, whoami
from longhaul.starter.cli.terminal.conversation import Conversation, interrupting, newest_event, with_pictures
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.visible import one_line

commands = options.SubjectCommands()


@commands.command()
async def run(
    prompt: Annotated[str, typer.Argument(help="What to ask; `-` reads it from stdin.")],
    *,
    agent: options.Agent = None,
    model: options.Model = None,
    called: options.Set = None,
    session: options.Session = None,
    user: options.User = None,
    workspace: options.Workspace = None,
    mode: options.Mode = None,
    request_id: Annotated[str | None, typer.Option(help="The same id sent again gives the same reply.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for the reply.")] = False,
    max_iters: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Maximum steps of a reply in this session.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option(metavar="FILE", help="A JSON schema: the answer is a value that fits it.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="Maximum cost of this session, in dollars.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Maximum tokens that this session may read and write.")] = None,
    priority: options.Priority = None,
    play: options.Play = False,
    as_json: options.AsJson = False,
) -> int:
    ways = (workspace, mode, max_iters, max_cost, max_tokens, priority, tuple(called or ()))
    wishes = Wishes(agent, model, session, user, *ways)
    screen = Screen(as_json=as_json, play=play)
    question, fits = _prompt(prompt), _schema(schema)
    async with connected(lambda sentence: screen.remark(Text(f"longhaul: {one_line(sentence)}", "yellow"))) as app:
        screen.notifications = app.settings.notifications
        opened = await open_session(app, wishes)
        screen.remark(Text(f"session {one_line(opened.id)}", style="dim"))
        conversation = Conversation(opened, screen, whoami())
        async with interrupting(conversation):
            code = await _ask(conversation, screen, question, request_id, fits, detach=detach)
        await screen.sounds.done()
        return code


async def _ask(
    conversation: Conversation,
    screen: Screen,
    prompt: str | Msg,
    given_id: str | None,
    schema: dict[str, Any] | None,
    *,
    detach: bool,
) -> int:
    session, request_id = conversation.session, given_id or uuid.uuid4().hex
    if detach:
        reply_id = await session.submit(prompt, request_id=request_id, structured_model=schema)
        screen.show(Text(f"request {one_line(request_id)}\nreply {reply_id}"))
        screen.document({"session": session.id, "request_id": request_id, "reply_id": reply_id})
        return 0
    # A request that was sent before is shown from its beginning, wherever that lies.
    start = 1 if given_id else await newest_event(session) + 1
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

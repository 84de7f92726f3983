"""Commands that answer or steer a session: result, settle, interrupt, stop, say, observe, notify."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from longhaul.agent.entries import When
from longhaul.starter import render_background
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.session_lookup import Name, connected, find_known, opened
from longhaul.starter.cli.session_start import decider, whoami
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.work.server_questions import answers_to
from longhaul.starter.cli.work.tree import place_of
from longhaul.starter.client.session import Session
from longhaul.starter.visible import one_line


@dataclass(frozen=True, slots=True)
class SteeringFlags:
    """The result of an external tool, or where it stands."""

    call_id: str
    output: str | None
    file: str | None
    failed: bool
    partial: bool


async def hand_in(screen: Screen, name: Name, given: SteeringFlags) -> int:
    """The result of an external tool, or the answer to a server; without either, whoever sits there is asked."""
    asks = given.output is None and given.file is None and screen.answers
    output: Any = None if asks else result_text(given.output, given.file)
    async with opened(name) as root:
        session = await place_of(root, given.call_id, "outside")
        if asks:
            output = await _answered(screen, session, given)
        await session.external_result(given.call_id, output, failed=given.failed, partial=given.partial, by=whoami())
    what = "a piece of the result" if given.partial else "the result"
    screen.show(Text(one_line(f"handed in {what} of {given.call_id}")))
    screen.document({"session": session.id, "received": [given.call_id]})
    return 0


async def _answered(screen: Screen, session: Session, given: SteeringFlags) -> Any:
    """What a person answers to the server that asks. Raises Misuse where none does."""
    asked = next((call.asked for call in await session.pending() if call.call_id == given.call_id), None)
    if asked is None or given.failed or given.partial:
        return result_text(given.output, given.file)
    return answers_to(screen, asked)


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
    async with opened(name) as root:
        session = await place_of(root, call_id, "settlement")
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


async def stop(screen: Screen, name: Name, call_id: str | None, approver: str | None) -> int:
    """Stop what works in the background."""
    async with connected() as app:
        session = await find_known(app, name)
        ends = await session.stop_background(call_id, by=decider(approver))
    screen.show(*render_background.stopped(ends))
    screen.document({"session": session.id, "ends": ends})
    return 0 if all(ends.values()) else Exit.PARKED


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


@dataclass(frozen=True, slots=True)
class EventTold:
    name: str
    payload: str = ""
    request_id: str | None = None


async def notify(screen: Screen, name: Name, told: EventTold) -> int:
    """Tell of an event."""
    async with opened(name) as session:
        woken = await session.notify(told.name, told.payload, request_id=told.request_id, by=whoami())
    kept = "is not waiting for it just now; it is told when it does, once for each request id"
    what = "has woken up" if woken else kept
    screen.show(Text(one_line(f"{session.id} {what}")))
    screen.document({"session": session.id, "event": told.name, "woken": woken})
    return 0

"""Ends a command: with its exit code, and with one sentence on stderr for every foreseeable error.

Where a folder's files are not trusted yet, it asks first, as `longhaul trust` would be asked.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from pydantic import ValidationError
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError

from longhaul.agent.plain.errors import BadInput, BadSetup, LonghaulError, what_is_wrong
from longhaul.agent.values.conversation.messages import FinishedReason, Msg
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session_requests import CompressionFailed, CompressionPending
from longhaul.starter.client.wire import Refused
from longhaul.starter.folder_trust import FolderFiles, Untrusted
from longhaul.starter.visible import harmless, one_line
from longhaul.workflows.contract import PendingCall


def trust_if_told(error: Untrusted) -> bool:
    """Ask at a terminal, and remember a yes; without one, no. Raises OSError where it can't be remembered."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    import termios  # noqa: PLC0415  not on every platform

    found = error.found
    changed = " (it has changed since you trusted it)" if found.was_trusted else ""
    say(f"longhaul: {one_line(str(found.folder))} says how agents are set up here{changed}:")
    show(found)
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # what was typed or pasted before answers another question
    print("longhaul: trust it? You are asked again when it changes. [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        return False
    found.remember()
    return True


def show(found: FolderFiles) -> None:
    """All that it sets, on stderr."""
    for line in found.says():
        indented = "    " if line.startswith(" ") else "  "
        say(indented + one_line(line))


def say(line: str) -> None:
    print(line, file=sys.stderr)


class Exit(IntEnum):
    """What a script can rely on (documented for users in the command-line reference)."""

    DONE = 0
    TROUBLE = 1
    """The world: no server, no permission, a broken connection."""
    MISUSE = 2
    """The caller: a bad flag, an unknown or ambiguous session, an answer that the session refused."""
    PARKED = 3
    FAILED = 4
    REFUSED = 5
    """No model was willing, or allowed, to answer."""
    INCOMPLETE = 6
    """The model's last message is not whole, however often it was asked to go on."""
    INTERRUPTED = 130


_FAILED = (
    FinishedReason.ERROR,
    FinishedReason.EXCEED_MAX_ITERS,
    FinishedReason.STUCK,
    FinishedReason.REJECTED,
    FinishedReason.REFUSED,
    FinishedReason.INCOMPLETE,
    FinishedReason.UNSTRUCTURED,
    FinishedReason.OUT_OF_BUDGET,
)
_CODES: dict[FinishedReason | None, Exit] = {
    FinishedReason.REFUSED: Exit.REFUSED,
    FinishedReason.INCOMPLETE: Exit.INCOMPLETE,
}
"""Of replies that have failed; what is not listed is Exit.FAILED."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a reply has come when the command has no more to do."""

    status: Literal["finished", "waiting", "failed", "working", "paused"]
    """working: Ctrl-C has ended the command, and the reply was not done in time. paused: or held; until somebody lets
    the session go on, nothing comes."""
    message: Msg | None
    pending: tuple[PendingCall, ...] = ()

    @property
    def code(self) -> Exit:
        reason = self.message.finished_reason if self.message is not None else None
        if self.status in ("waiting", "paused"):
            return Exit.PARKED
        if self.status == "failed":
            return _CODES.get(reason, Exit.FAILED)
        if self.status == "working":
            return Exit.INTERRUPTED
        return Exit.INTERRUPTED if reason is FinishedReason.INTERRUPTED else Exit.DONE


def outcome_of(message: Msg) -> Outcome:
    """Of a reply that has ended."""
    return Outcome("failed" if message.finished_reason in _FAILED else "finished", message)


class Misuse(BadInput):
    """The command can't be meant so; the sentence says what to change."""


def perform(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a command to its exit code. Where it stops at a folder that nobody has trusted, ask once, and begin again."""
    try:
        return _perform(work)
    except Untrusted as error:
        try:
            agreed = trust_if_told(error)
        except KeyboardInterrupt:
            return Exit.INTERRUPTED
        except OSError as reason:
            return complain(f"what you trust can't be kept: {reason}", Exit.TROUBLE)
        if not agreed:
            return complain(str(error), Exit.MISUSE)
    try:
        return _perform(work)
    except Untrusted as error:
        return complain(str(error), Exit.MISUSE)


def _perform(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    try:
        return asyncio.run(work())
    except Untrusted:
        raise
    except CompressionPending as error:
        return complain(str(error), Exit.PARKED)
    except CompressionFailed as error:
        return complain(f"the context stays as it is: {error}", Exit.FAILED)
    except ValidationError as error:
        return complain(what_is_wrong(error), Exit.MISUSE)
    except (BadInput, BadSetup, NoSession, Refused) as error:
        return complain(str(error), Exit.MISUSE)
    except UnicodeDecodeError as error:
        return complain(f"what was read is not UTF-8 text: {error.reason} at byte {error.start}", Exit.MISUSE)
    except BrokenPipeError:
        raise
    except (LonghaulError, *_OF_THE_WORLD) as error:
        return complain(_sentence(error), Exit.TROUBLE)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return Exit.INTERRUPTED


_OF_THE_WORLD = (WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError, RPCError, OSError)


def _sentence(error: Exception) -> str:
    match error:
        case WorkflowUpdateFailedError():
            return f"the session failed: {error.cause}"
        case WorkflowUpdateRPCTimeoutOrCancelledError():
            return "the session did not answer in time; check that a worker is running"
        case RPCError():
            return f"the Temporal server answered: {error.message} ({error.status.name})"
        case _:
            return str(error)


def complain(sentence: str, code: Exit) -> Exit:
    """Say on stderr what is wrong; returns the exit code."""
    print(f"longhaul: {harmless(sentence)}", file=sys.stderr)
    return code

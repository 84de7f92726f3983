"""How a command ends: its exit code, and every foreseeable error as one sentence on stderr."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any

from pydantic import ValidationError
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError

from agent.bodies import what_is_wrong
from agent.forking import NoSuchStep
from starter.agents import BadAgent
from starter.asking import NoSession, Stuck
from starter.compacting import CompressionFailed, CompressionPending
from starter.connection import Unreachable
from starter.history import HistoryUnreadable
from starter.hooks import BadHooks
from starter.metrics import BadTelemetrySetting
from starter.naming import BadIdKey
from starter.provision.dev_server import DevServerFailed
from starter.provision.temporal_cli import TemporalCliMissing
from starter.state_paths import BadPath
from starter.visible import harmless
from starter.wire import Refused


class Exit(IntEnum):
    """What a script can rely on (documented for users in the command-line reference)."""

    DONE = 0
    TROUBLE = 1
    """The world: no server, no permission, a broken connection."""
    MISUSE = 2
    """The caller: a bad flag, an unknown or ambiguous session, an answer that the session refused."""
    PARKED = 3
    FAILED = 4
    INTERRUPTED = 130


class Misuse(Exception):
    """The command can't be meant so; the sentence says what to change."""


def perform(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a command to its exit code."""
    try:
        return asyncio.run(work())
    except (Misuse, NoSession, Refused, BadAgent, BadHooks, BadIdKey, BadPath, NoSuchStep) as error:
        return complain(str(error), Exit.MISUSE)
    except CompressionPending as error:
        return complain(str(error), Exit.PARKED)
    except CompressionFailed as error:
        return complain(f"the context stays as it is: {error}", Exit.FAILED)
    except ValidationError as error:
        return complain(what_is_wrong(error), Exit.MISUSE)
    except BrokenPipeError:
        raise
    except _OF_THE_WORLD as error:
        return complain(_sentence(error), Exit.TROUBLE)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return Exit.INTERRUPTED


_OF_THE_WORLD = (
    Unreachable,
    BadTelemetrySetting,
    Stuck,
    HistoryUnreadable,
    DevServerFailed,
    TemporalCliMissing,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    RPCError,
    OSError,
)


def _sentence(error: Exception) -> str:
    match error:
        case WorkflowUpdateFailedError():
            return f"the session failed to do it: {error.cause}"
        case WorkflowUpdateRPCTimeoutOrCancelledError():
            return "the session did not answer in time; see whether a worker is running"
        case RPCError():
            return f"the Temporal server answered: {error.message} ({error.status.name})"
        case _:
            return str(error)


def complain(sentence: str, code: Exit) -> Exit:
    """Say on stderr what is wrong; returns the exit code."""
    print(f"longhaul: {harmless(sentence)}", file=sys.stderr)
    return code

"""Tools that end in every way there is, in each form that a tool can have; each run leaves a line in the book."""

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import RetryState
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.process.threads import in_thread
from longhaul.activities.tool import Found, Tool, ToolCall, ToolOutput
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect


class PanicException(BaseException):
    """As extensions in Rust raise it."""


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class SpeechlessForGood(Exception):
    def __str__(self) -> str:
        raise PanicException("no words at all")


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = threading.Lock()


def recurse() -> NoReturn:
    recurse()


def fail_outright() -> NoReturn:
    pytest.fail("as a test does")


def an_activity_error() -> ActivityError:
    return ActivityError(
        "retry me",
        scheduled_event_id=1,
        started_event_id=2,
        identity="i",
        activity_type="t",
        activity_id="a",
        retry_state=RetryState.RETRY_STATE_IN_PROGRESS,  # type: ignore[arg-type]
    )


def a_circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


RAISED: dict[str, Callable[[], BaseException]] = {
    "Exception": lambda: Exception("plain"),
    "no words": Speechless,
    "no words at all": SpeechlessForGood,
    "unpicklable": Unpicklable,
    "MemoryError": lambda: MemoryError("all gone"),
    "TimeoutError": lambda: TimeoutError("nobody answers"),
    "StopIteration": lambda: StopIteration("no more"),
    "StopAsyncIteration": lambda: StopAsyncIteration("no more"),
    "ExceptionGroup": lambda: ExceptionGroup("two", [ValueError("a"), OSError("b")]),
    "BaseExceptionGroup": lambda: BaseExceptionGroup("two", [ValueError("a"), KeyboardInterrupt()]),
    "BaseException": lambda: PanicException("a panic in Rust"),
    "GeneratorExit": GeneratorExit,
    "SystemExit": lambda: SystemExit("leaves"),
    "KeyboardInterrupt": KeyboardInterrupt,
    "asyncio.CancelledError": lambda: asyncio.CancelledError("on its own"),
    "temporalio CancelledError": lambda: CancelledError("on its own"),
    "ApplicationError": lambda: ApplicationError("retry me", type="NotHere", non_retryable=False),
    "NotHere": lambda: not_here("retry me"),
    "ActivityError": an_activity_error,
    "lone surrogate": lambda: ValueError("\ud83d"),
    "long": lambda: ValueError("x" * 3_000_000),
}

DONE: dict[str, Callable[[], object]] = {
    "sys.exit": lambda: sys.exit("leaves"),
    "recursion": recurse,
    "pytest.fail": fail_outright,
    "completes elsewhere": activity.raise_complete_async,
}
"""What raises by itself."""

RETURNED: dict[str, Callable[[], object]] = {
    "None": lambda: None,
    "object": object,
    "class": lambda: object,
    "function": lambda: a_circle,
    "bytes": lambda: b"\xff",
    "set": lambda: {object()},
    "NaN": lambda: float("nan"),
    "circle": a_circle,
    "exception": KeyboardInterrupt,
    "lock": threading.Lock,
    "huge": lambda: "y" * 25_000_000,
    "lone surrogates": lambda: "\ud83d\ud83d",
    "odd output": lambda: ToolOutput({"no": object()}),  # type: ignore[arg-type]
    "odd metadata": lambda: ToolOutput("ran", metadata={"is": object()}),
}

HANGS = "never ends"
HOWS = (*(f"raises {how}" for how in RAISED), *DONE, *(f"returns {how}" for how in RETURNED), HANGS)


def note(book: str, line: str) -> None:
    with Path(book).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def end(how: str) -> object:
    """All ways but those that the forms have of their own."""
    verb, _, what = how.partition(" ")
    if verb == "raises":
        raise RAISED[what]()
    if verb == "returns":
        return RETURNED[what]()
    if how == "os._exit":
        os._exit(7)
    if how == "blocks":
        time.sleep(3_600)
    return DONE[how]()


@tool(effect=Effect.ONCE, concurrency_safe=True, timeout_seconds=2)
async def ends_async(how: str, book: str) -> object:
    """End."""
    note(book, f"ends_async {how}")
    if how == HANGS:
        await asyncio.sleep(3_600)
    return end(how)


@tool(effect=Effect.ONCE, concurrency_safe=True, timeout_seconds=2)
def ends_plain(how: str, book: str) -> object:
    """End."""
    note(book, f"ends_plain {how}")
    if how == HANGS:
        time.sleep(3_600)
    return end(how)


@tool(effect=Effect.ONCE, concurrency_safe=True, timeout_seconds=2)
def ends_generator(how: str, book: str) -> Iterator[object]:
    """End."""
    note(book, f"ends_generator {how}")
    yield "begun "
    if how == HANGS:
        time.sleep(3_600)
    yield end(how)


@tool(effect=Effect.ONCE, concurrency_safe=True, timeout_seconds=2)
async def ends_async_generator(how: str, book: str) -> AsyncIterator[object]:
    """End."""
    note(book, f"ends_async_generator {how}")
    yield "begun "
    if how == HANGS:
        await asyncio.sleep(3_600)
    yield end(how)


SCHEMA = ends_async.input_schema


class Ends(Tool):
    name = "ends_class"
    description = "End."
    input_schema = SCHEMA
    effect = Effect.ONCE
    concurrency_safe = True
    timeout_seconds = 2

    async def run(self, call: ToolCall) -> ToolOutput:
        how = call.arguments["how"]
        note(call.arguments["book"], f"ends_class {how}")
        if how == HANGS:
            await asyncio.sleep(3_600)
        return end(how)  # type: ignore[return-value]


ends_class = Ends()

FORMS = ("ends_async", "ends_plain", "ends_class", "ends_generator", "ends_async_generator")


def in_the_file(call: ToolCall) -> Found:
    """Whether the late file is there."""
    return Found("happened" if Path(call.arguments["path"]).exists() else "did_not")


def late(path: str, seconds: float) -> str:
    """Say that it has started, wait, at most until somebody says `go`, and write the file."""
    note(f"{path}.started", "started")
    last = time.monotonic() + seconds
    while time.monotonic() < last and not Path(f"{path}.go").exists():
        time.sleep(0.02)
    note(path, "late")
    return "written"


@tool(effect=Effect.ONCE)
async def write_aside(path: str, seconds: float) -> str:
    """Write the file late, from a thread of the event loop's."""
    return await asyncio.to_thread(late, path, seconds)


async def deaf(path: str, seconds: float) -> str:
    """The same in the event loop, and let no cancellation end it."""
    note(f"{path}.started", "started")
    last = time.monotonic() + seconds
    while time.monotonic() < last and not Path(f"{path}.go").exists():  # noqa: ASYNC240  a look
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.02)
    note(path, "late")
    return "written"


@tool(effect=Effect.READ, read_only=True)
async def look_at_disk(path: str, seconds: float) -> str:
    """The same at a disk that does not answer."""
    return await in_thread(lambda _: late(path, seconds))


write_deaf = tool(effect=Effect.ONCE, name="write_deaf", probe=in_the_file)(deaf)
put_deaf = tool(effect=Effect.IDEMPOTENT, name="put_deaf")(deaf)
look_deaf = tool(effect=Effect.READ, read_only=True, name="look_deaf")(deaf)
write_past = tool(effect=Effect.ONCE, name="write_past", timeout_seconds=0.3)(deaf)
put_past = tool(effect=Effect.IDEMPOTENT, name="put_past", timeout_seconds=0.3)(deaf)
look_past = tool(effect=Effect.READ, read_only=True, name="look_past", timeout_seconds=0.3)(deaf)
write_late = tool(effect=Effect.ONCE, name="write_late", probe=in_the_file)(late)
put_late = tool(effect=Effect.IDEMPOTENT, name="put_late")(late)
look_late = tool(effect=Effect.READ, read_only=True, name="look_late")(late)
write_briefly = tool(effect=Effect.ONCE, name="write_briefly", timeout_seconds=0.3)(late)
put_briefly = tool(effect=Effect.IDEMPOTENT, name="put_briefly", timeout_seconds=0.3)(late)
look_briefly = tool(effect=Effect.READ, read_only=True, name="look_briefly", timeout_seconds=0.3)(late)


@tool(effect=Effect.ONCE)
def write_lines(path: str) -> Iterator[str]:
    """Write a line again and again, and say so each time."""
    for number in range(1_000):
        note(path, f"line {number}")
        yield f"line {number}\n"
        time.sleep(0.05)


@tool(effect=Effect.READ, read_only=True)
def count_up(to: int) -> Iterator[object]:
    """Count."""
    yield from (f"{number} " for number in range(1, to + 1))
    yield {"counted": to}


@tool(effect=Effect.READ, read_only=True)
async def count_slowly(to: int) -> AsyncIterator[str]:
    """Count, and fail above three."""
    for number in range(1, to + 1):
        if number > 3:
            raise ValueError("more than three")
        yield f"{number} "
        await asyncio.sleep(0)


@tool(effect=Effect.READ, read_only=True, concurrency_safe=True)
async def glance(number: int) -> str:
    """Look for a moment."""
    return f"seen {number}"

"""Tools of kind `once` that stand at a gate before and behind their effect, and then end in a way that is asked for."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from longhaul.activities.tool import Tool, ToolCall, ToolOutput
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect
from tests.workflows.ending_tools import HANGS, end

POINTS = ("before", "behind")
"""Of the effect. A point is held while the file of this name stands in the folder."""
BOOK = "book"
LONGEST_SECONDS = 25.0
POLL_SECONDS = 0.05


def write(folder: str, line: str) -> None:
    """In one piece: what stands here was done, whoever was killed right after."""
    with (Path(folder) / BOOK).open("a", encoding="utf-8") as book:
        book.write(f"{line}\n")


def stand(folder: str, point: str) -> None:
    while (Path(folder) / point).exists():
        time.sleep(POLL_SECONDS)


async def wait(folder: str, point: str) -> None:
    while (Path(folder) / point).exists():  # noqa: ASYNC110  another process removes it
        await asyncio.sleep(POLL_SECONDS)


def act(form: str, how: str, folder: str) -> None:
    write(folder, f"begun {form} {how}")
    stand(folder, POINTS[0])
    write(folder, f"effect {form} {how}")
    stand(folder, POINTS[1])


async def act_on_loop(form: str, how: str, folder: str) -> None:
    write(folder, f"begun {form} {how}")
    await wait(folder, POINTS[0])
    write(folder, f"effect {form} {how}")
    await wait(folder, POINTS[1])


@tool(effect=Effect.ONCE, concurrency_safe=True, timeout_seconds=LONGEST_SECONDS)
async def gated_async(how: str, folder: str) -> object:
    """End."""
    await act_on_loop("gated_async", how, folder)
    if how == HANGS:
        await asyncio.sleep(3_600)
    return end(how)


@tool(effect=Effect.ONCE, concurrency_safe=True, timeout_seconds=LONGEST_SECONDS)
def gated_plain(how: str, folder: str) -> object:
    """End."""
    act("gated_plain", how, folder)
    if how == HANGS:
        time.sleep(3_600)
    return end(how)


@tool(effect=Effect.ONCE, concurrency_safe=True, timeout_seconds=LONGEST_SECONDS)
def gated_generator(how: str, folder: str) -> Iterator[object]:
    """End."""
    yield "begun "
    act("gated_generator", how, folder)
    if how == HANGS:
        time.sleep(3_600)
    yield end(how)


@tool(effect=Effect.ONCE, concurrency_safe=True, timeout_seconds=LONGEST_SECONDS)
async def gated_async_generator(how: str, folder: str) -> AsyncIterator[object]:
    """End."""
    yield "begun "
    await act_on_loop("gated_async_generator", how, folder)
    if how == HANGS:
        await asyncio.sleep(3_600)
    yield end(how)


class Gated(Tool):
    name = "gated_class"
    description = "End."
    input_schema = gated_async.input_schema
    effect = Effect.ONCE
    concurrency_safe = True
    timeout_seconds = LONGEST_SECONDS

    async def run(self, call: ToolCall) -> ToolOutput:
        how = call.arguments["how"]
        await act_on_loop(self.name, how, call.arguments["folder"])
        if how == HANGS:
            await asyncio.sleep(3_600)
        return end(how)  # type: ignore[return-value]


gated_class = Gated()

FORMS = ("gated_async", "gated_plain", "gated_class", "gated_generator", "gated_async_generator")

"""The tools of these tests, found by LONGHAUL_TOOLS=tests.workflows.tools."""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

from longhaul.activities.attempt.secrets import secret
from longhaul.activities.process.program_output import progress
from longhaul.activities.tool import Found, ToolCall, ToolOutput
from longhaul.activities.tools.function import tool
from longhaul.activities.tools.postprocessors import postprocessor
from longhaul.agent.values.conversation.messages import TextBlock
from longhaul.agent.values.conversation.tools import Effect


def marker(page: int) -> str:
    return f"<<page {page}>>"


def page_text(page: int, chars: int) -> str:
    """The page's marker, and filler of its own up to the number of characters."""
    filler = (chr(97 + (page * 31 + place * 7) % 26) for place in range(chars - len(marker(page))))
    return marker(page) + "".join(filler)


@tool(effect=Effect.READ, read_only=True, concurrency_safe=True)
async def fetch(page: int, chars: int = 40) -> str:
    """Return that page."""
    return page_text(page, chars)


@tool(effect=Effect.READ, read_only=True)
async def purge(folder: str = "everything") -> str:
    """Empty that folder."""
    return f"purged {folder}"


@tool(effect=Effect.READ, read_only=True)
async def purge_one(folder: str) -> str:
    """Empty that folder, and no other."""
    return f"purged {folder} alone"


@tool(effect=Effect.ONCE)
async def send(to: str, text: str = "") -> str:
    """Send a letter; permission asks for it."""
    return f"sent {text!r} to {to}"


@tool(effect=Effect.ONCE)
def open_gate(how: str) -> ToolOutput:
    """Use the key of the gate, and be careless with it."""
    key = secret("GATE_KEY")
    if how == "raise":
        raise RuntimeError(f"the gate took no {key}")
    return ToolOutput(f"opened with {key.upper()}", metadata={"key": [key]})


@postprocessor
def page_alone(tool: str, output: ToolOutput) -> str:
    """The marker of a page without its filler, and how long all of it was."""
    text = str(output.output)
    return f"{tool}: {text[: text.index('>>') + 2]} of {len(text)}"


@postprocessor
def length_alone(tool: str, output: ToolOutput) -> str:
    parts = () if isinstance(output.output, str) else output.output
    texts = [part.text for part in parts if isinstance(part, TextBlock)] if parts else [str(output.output)]
    return f"{tool}: {sum(map(len, texts))} characters"


@postprocessor
async def breaks(tool: str, output: ToolOutput) -> None:
    raise RuntimeError(f"no more of {tool}")


@tool(effect=Effect.READ, read_only=True)
def farewell(to: str) -> ToolOutput:
    """Say goodbye for the agent, and end its reply."""
    return ToolOutput("said", metadata={"response_msg": f"Goodbye, {to}."})


@tool(effect=Effect.ONCE)
async def dawdle(path: str) -> str:
    """Write down that it has started, and take until somebody says that it is enough."""
    return await _until_enough(path)


@tool(effect=Effect.READ, read_only=True, timeout_seconds=120)
async def look_deafly() -> str:
    """Look for a minute, whoever wants it to end."""
    enough = time.monotonic() + 60
    while time.monotonic() < enough:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.1)
    return "done"


@tool(effect=Effect.READ, read_only=True)
async def look_long(path: str) -> str:
    """The same of a look: it may be taken again."""
    return await _until_enough(path)


@tool(effect=Effect.READ, read_only=True, concurrency_safe=True)
async def look_along(path: str) -> str:
    """The same of a look beside other calls."""
    return await _until_enough(path)


async def _until_enough(path: str) -> str:
    with Path(path).open("a", encoding="utf-8") as file:  # noqa: ASYNC230  one line
        file.write("started\n")
    while not Path(path).with_suffix(".enough").exists():  # noqa: ASYNC110  a test makes that file
        await asyncio.sleep(0.05)
    return "done"


def in_the_book(call: ToolCall) -> Found:
    """Whether the letter stands in the book."""
    book = Path(call.arguments["book"])
    if not book.exists():
        return Found("did_not")
    return Found("happened", f"the book says {book.read_text()!r}")


@tool(effect=Effect.ONCE, timeout_seconds=0.2, probe=in_the_book)
async def post(text: str, book: str) -> None:
    """Post a letter, write it into the book if there is text, and never come back."""
    if text:
        Path(book).write_text(text)  # noqa: ASYNC240  one line
    await asyncio.sleep(60)


@tool(effect=Effect.ONCE, timeout_seconds=0.2)
async def engrave(text: str) -> None:
    """Begin to engrave, and never come back."""
    await asyncio.sleep(60)


@tool(is_external_tool=True, read_only=True)
def courier(parcel: str) -> str:
    """Have a parcel brought by somebody outside."""
    raise AssertionError(f"an external tool ran here: {parcel!r}")


@tool(
    is_external_tool=True,
    read_only=True,
    result_schema={"type": "object", "properties": {"grams": {"type": "number"}}, "required": ["grams"]},
)
def weigh(parcel: str) -> str:
    """Have a parcel weighed by somebody outside."""
    raise AssertionError(f"an external tool ran here: {parcel!r}")


@tool(effect=Effect.ONCE)
def oddly(how: str) -> ToolOutput:
    """Do something, and answer with what can't be recorded."""
    deep: dict[str, Any] = {}
    for _ in range(250):
        deep = {"in": deep}
    odd: dict[str, dict[str, Any]] = {
        "deep": {"output": "ran", "metadata": deep},
        "number": {"output": 7},
        "keys": {"output": "ran", "metadata": {3: "teapot"}},
        "folder": {"output": "ran", "cwd": Path("/tmp/\udc80")},
    }
    if how == "interrupted":
        raise KeyboardInterrupt
    return ToolOutput(**odd[how])


@tool(effect=Effect.READ, read_only=True)
def chatty() -> str:
    """Tell how it goes, from a thread."""
    for done in (1, 2):
        progress(f"{done} of 2\n")
        time.sleep(0.3)  # a reader on a busy machine is there before the record is
    return "done"

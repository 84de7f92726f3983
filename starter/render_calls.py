"""Renders the calls of a session as people read them afterwards: each with its arguments and all that it answered."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.text import Text

from longhaul.agent.values.conversation.messages import DataBlock, Msg, ToolCallBlock, ToolResultBlock, ToolResultState
from longhaul.starter import render
from longhaul.starter.visible import harmless, one_line

LISTS_TASKS = "todo_write"
FAILED_LINES = 15
"""Of what a call said that failed: its end, where the reason stands."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """One call that a model has made."""

    call_id: str
    tool: str
    input: str
    """JSON, as the model wrote it."""
    state: ToolResultState | None = None
    """None: it has no result yet."""
    output: str = ""
    data: tuple[str, ...] = ()
    """Names of what is no text in its result."""
    change: str = ""
    """The diff of what it changed."""


def calls_in(messages: Iterable[Msg]) -> list[MadeCall]:
    """In the order in which they were made."""
    made: dict[str, MadeCall] = {}
    for message in messages:
        for block in message.content:
            if isinstance(block, ToolCallBlock):
                made[block.id] = MadeCall(block.id, block.name, block.input)
            elif isinstance(block, ToolResultBlock):
                before = made.get(block.id)
                made[block.id] = _answered(block, before.input if before else "")
    return list(made.values())


def _answered(block: ToolResultBlock, arguments: str) -> MadeCall:
    parts = () if isinstance(block.output, str) else block.output
    names = tuple(part.name or part.source.media_type for part in parts if isinstance(part, DataBlock))
    change = block.metadata.get("diff")
    return MadeCall(
        block.id, block.name, arguments, block.state, block.get_text(), names, change if isinstance(change, str) else ""
    )


def in_full(call: MadeCall) -> Iterator[Text]:
    """The call, nothing shortened: how it ended, its arguments, what it answered and what it changed."""
    mark, style = render.mark_of(call.state)
    head = Text.assemble((f"{mark} ", style), (one_line(call.tool), "bold"), (f"  {one_line(call.call_id)}", "dim"))
    yield head
    yield render.arguments_in_full(call.input)
    if call.state is None:
        yield Text("  has no result yet", "yellow")
        return
    yield Text("  result", "cyan")
    yield render.behind_bar(harmless(call.output.rstrip("\n")) or "(no output)")
    for name in call.data:
        yield Text(f"  │ [{one_line(name)}]", "dim")
    if call.change:
        yield render.diff(call.change)


def end_of(output: str, most: int, shown: int = 1) -> tuple[list[Text], int]:
    """The last lines of a result of which the first `shown` ones that say something stand on the screen already, and
    how many there are in between."""
    rest = [line for line in output.splitlines() if line.strip()][shown:]
    return [Text(f"  │ {harmless(line)}", "dim") for line in rest[-most:]], max(len(rest) - most, 0)

"""Renders the calls of a session as people read them afterwards: each with its arguments and all that it answered."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.text import Text

from longhaul.agent.values.conversation.messages import DataBlock, Msg, ToolCallBlock, ToolResultBlock, ToolResultState
from longhaul.agent.values.conversation.tools import EFFECT_WORDS, ran_in
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
    ran: str = ""
    """Its effect class and how long it took, where a worker ran it."""


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
    diff = change if isinstance(change, str) else ""
    return MadeCall(block.id, block.name, arguments, block.state, block.get_text(), names, diff, how_it_ran(block))


def how_it_ran(result: ToolResultBlock) -> str:
    """`once, 2.4 s`; empty for one that no worker ran."""
    ran = ran_in(result)
    if ran is None:
        return ""
    effect = EFFECT_WORDS[ran.effect].partition(":")[0]
    return effect if ran.seconds is None else f"{effect}, {took(ran.seconds)}"


def took(seconds: float) -> str:
    """`under 0.1 s`, `0.3 s`, `42 s`, `2 min 5 s`, `1 h 2 min`."""
    if seconds < 0.1:
        return "under 0.1 s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def in_full(call: MadeCall) -> Iterator[Text]:
    """The call, nothing shortened: how it ended, its arguments, what it answered and what it changed."""
    mark, style = render.mark_of(call.state)
    head = Text.assemble((f"{mark} ", style), (one_line(call.tool), "bold"), (f"  {one_line(call.call_id)}", "dim"))
    if call.ran:
        head.append(f"  {call.ran}", "dim")
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

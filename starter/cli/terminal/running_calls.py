"""Calls that run, with the time that they take and the last lines of what they say."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from longhaul.starter import render
from longhaul.starter.visible import harmless

LAST_LINES = 4
LONGEST_LINE_CHARS = 1_000
"""Kept of a line: what has no end must not fill the memory."""
SHOWN_CALLS = 6
QUIET_SECONDS = 1
"""A call that was faster needs no word about its time."""
_TURNS = "|/-\\"


@dataclass(slots=True)
class _Call:
    line: Text
    since: float
    """Seconds since the epoch, by the session's clock."""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    open: str = ""

    def last_lines(self) -> list[str]:
        return [*self.lines, *([self.open] if self.open.strip() else [])][-LAST_LINES:]


class RunningCalls:
    """By call id, in the order of their beginning."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._calls: dict[str, _Call] = {}

    def started(self, call_id: str, tool: str, arguments: str, at: str) -> None:
        """`at` as in an event's `created_at`."""
        self._calls[call_id] = _Call(render.call_line(tool, arguments), moment(at) or self._now())

    def said(self, call_id: str, piece: str) -> None:
        """Output, as it comes; of a call that is not known to run it is passed over."""
        if (call := self._calls.get(call_id)) is None:
            return
        *lines, call.open = (call.open + piece).split("\n")
        call.open = call.open[-LONGEST_LINE_CHARS:]
        call.lines.extend(line[-LONGEST_LINE_CHARS:] for line in lines[-LAST_LINES:] if line.strip())

    def last_lines(self, call_id: str) -> list[str]:
        """Those of it that stand below."""
        call = self._calls.get(call_id)
        return call.last_lines() if call is not None else []

    def ended(self, call_id: str, at: str) -> str:
        """How long it took, as ` 12 s`; empty for one that took no time worth a word."""
        call = self._calls.pop(call_id, None)
        took = (moment(at) or self._now()) - call.since if call else 0
        return f" {seconds(took)}" if took >= QUIET_SECONDS else ""

    def clear(self) -> None:
        self._calls.clear()

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._drawn():
            line.truncate(options.max_width, overflow="ellipsis")
            yield line

    def _drawn(self) -> Iterator[Text]:
        turn = _TURNS[int(self._now() * 4) % len(_TURNS)]
        for call in list(self._calls.values())[:SHOWN_CALLS]:
            took = seconds(self._now() - call.since)
            yield Text.assemble((f"{turn} ", "yellow"), (f"{took:>5} ", "dim"), call.line)
            yield from (Text(f"  | {harmless(line)}", "dim") for line in call.last_lines())
        if (more := len(self._calls) - SHOWN_CALLS) > 0:
            yield Text(f"  and {more} more", "dim")


def moment(at: str) -> float | None:
    """An event's `created_at` in seconds since the epoch; None for what is no moment."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None


def seconds(took: float) -> str:
    """`7 s`, `2:05`, `1:02:05`."""
    whole = max(int(took), 0)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

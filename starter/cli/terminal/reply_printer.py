"""Prints what happens in one reply, as it happens; below it the calls that run, and how far the reply is."""

import shlex
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from longhaul.agent.values.conversation.messages import DataBlock, ToolResultState
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE
from longhaul.agent.values.subagents import AGENT, RUN_PROGRAM
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.session_views import CALL_ID
from longhaul.starter import render
from longhaul.starter.cli.session_lookup import flags_of
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.terminal.sounds import sounds_in
from longhaul.starter.cli.terminal.streamed_text import StreamedText, writer_for
from longhaul.starter.client.session import Session
from longhaul.starter.render import (
    FAILED_LINES,
    LISTS_TASKS,
    decided,
    end_of,
    line_of,
    stillness,
    stopped,
    waiting_calls_text,
)
from longhaul.starter.visible import harmless, one_line
from longhaul.workflows.contract import PendingCall

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


LONGEST_TASK_CHARS = 60


class ProgressLine:
    """Fed with the recorded events of one reply."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._since = now()
        self._steps = 0
        self._read = 0
        self._written = 0
        self._tasks = ""

    def take(self, event: AgentEvent) -> None:
        match event.type:
            case "REPLY_START":
                self._since = moment(event.created_at) or self._since
            case "MODEL_CALL_END":
                self._steps += 1
                self._read += event.input_tokens
                self._written += event.output_tokens
            case "CUSTOM" if event.name == "tasks_changed":
                self._tasks = _tasks(event.value["tasks"])
            case _:
                pass

    def ended(self, at: str) -> Text:
        """`2 steps, 1,204 tokens in, 96 out, 7 s`, when all is over."""
        steps = f"{self._steps} step{'' if self._steps == 1 else 's'}"
        took = seconds((moment(at) or self._now()) - self._since)
        return Text(f"{steps}, {self._read:,} tokens in, {self._written:,} out, {took}", "dim")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = [f"step {self._steps + 1}", seconds(self._now() - self._since)]
        if self._read or self._written:
            parts.append(f"{self._read:,} in {self._written:,} out")
        if self._tasks:
            parts.append(self._tasks)
        line = Text(" · ".join(parts) if options.encoding.startswith("utf") else ", ".join(parts), "dim")
        line.truncate(options.max_width, overflow="ellipsis")
        yield line


def _tasks(tasks: list[dict[str, str]]) -> str:
    done = sum(task.get("state") == "completed" for task in tasks)
    current = next((task for task in tasks if task.get("state") == "in_progress"), None)
    name = f" {one_line(current.get('subject', ''))[:LONGEST_TASK_CHARS]}" if current else ""
    total = sum(task.get("state") != "abandoned" for task in tasks)
    return f"tasks {done}/{total}{name}" if total else ""


_CHANGES = ("Edit", "Write")
"""Tools whose result carries the diff of what they changed."""


class ReplyPrinter:
    """Fed with the events of one reply in order; knows what runs and what waits."""

    def __init__(self, screen: Screen, session: Session, reply_id: str, *, looks_on: bool = False) -> None:
        """`looks_on`: nobody is asked or told to wait here, so that it is said who waits and who decides."""
        self._looks_on = looks_on
        self._screen = screen
        self._streamed = StreamedText(screen, writer_for(screen))
        self._runs = RunningCalls()
        self._progress = ProgressLine()
        self._session = session
        self._reply_id = reply_id
        self._calls: dict[str, tuple[str, str]] = {}
        self._edited: set[str] = set()
        self._output: dict[str, str] = {}
        self._data: dict[str, list[DataBlock]] = {}
        self.started = False
        self.ended = False
        self.running: set[str] = set()
        self.asked: set[str] = set()
        self.asleep: set[str] = set()
        """Calls that wait for a time or an event, and for nobody."""
        self.doubted = False
        """The outcome of a call is unknown: the reply may wait until somebody settles it."""
        self.decided: set[str] = set()
        """Decided on by us, and not heard of since."""
        self.known_changes: dict[str, str] = {}
        """By call: the diff that whoever allowed it has just read."""
        self._failure = ""
        """What was said last of a model that failed; the reply that ends with it need not say it again."""

    def know(self, calls: Iterable[PendingCall]) -> None:
        """What waits here, of whose beginning the events may not tell that are followed."""
        for call in calls:
            self._calls.setdefault(call.call_id, (call.tool, call.input))

    @property
    def delegates(self) -> bool:
        """Whether nothing runs but tasks of sub-agents."""
        starting = (AGENT, RUN_PROGRAM)
        return bool(self.running) and all(self._calls.get(call_id, ("",))[0] in starting for call_id in self.running)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """What was shown of an unfinished text inside stays on the screen afterwards."""
        try:
            yield
        finally:
            self._streamed.left()

    def joins(self, reply_id: str) -> None:
        """The request has become a part of another reply, which has started."""
        self._reply_id, self.started = reply_id, True

    async def take(self, event: AgentEvent) -> None:
        """Note and print one event."""
        if event.seq:
            self._progress.take(event)
        match event.type:
            case "REPLY_START":
                self.started = True
            case _ if not event.seq:
                self._live(event)
            case "TEXT_BLOCK_DELTA" | "THINKING_BLOCK_DELTA":
                self._streamed.recorded(event)
            case "MODEL_CALL_END":
                self._streamed.called()
            case "CUSTOM":
                self._happened(event)
            case "USER_INTERRUPT":
                self._screen.show(Text("interrupted", style="yellow"))
            case "REPLY_END":
                self._finished(event)
            case _:
                await self._take_of_a_call(event)

        self._stand_below()

    def _live(self, event: AgentEvent) -> None:
        if event.type == "TOOL_RESULT_TEXT_DELTA" and self._screen.renders:
            self._runs.said(event.tool_call_id, event.delta)
        else:
            self._streamed.live(event)

    def _stand_below(self) -> None:
        """Nothing where it waits: a person who is asked reads what was printed."""
        working = self.started and not self.ended and not self.asked
        self._screen.below.put("running", self._runs or None)
        self._screen.below.put("pace", self._progress if working else None)

    async def _take_of_a_call(self, event: AgentEvent) -> None:
        match event.type:
            case "TOOL_CALL_START":
                self._calls[event.tool_call_id] = (event.tool_call_name, "")
            case "TOOL_CALL_DELTA":
                tool, arguments = self._calls.get(event.tool_call_id, ("", ""))
                self._calls[event.tool_call_id] = (tool, arguments + event.delta)
            case "TOOL_RESULT_START":
                self._started(event)
            case "TOOL_RESULT_TEXT_DELTA":
                self._print_output(event)
            case "TOOL_RESULT_DATA_DELTA":
                self._data.setdefault(event.tool_call_id, []).append(event.data_block())
            case "TOOL_RESULT_END":
                await self._returned(event)
            case "REQUIRE_USER_CONFIRM" | "REQUIRE_EXTERNAL_EXECUTION":
                ids = {call.id for call in event.tool_calls}
                self.asked |= ids
                self.decided -= ids
                self._looked_on(event)
            case "USER_CONFIRM_RESULT":
                self._looked_on(event)
                self.asked -= {decision["call_id"] for decision in event.value["decisions"]}
            case _:
                pass  # Starts and ends say nothing that their contents do not; a type of a later server is no error.

    def _started(self, event: AgentEvent) -> None:
        call_id = event.tool_call_id
        self.running.add(call_id)
        self.asked.discard(call_id)
        self.decided.discard(call_id)
        self._output[call_id] = ""
        self._runs.started(call_id, *self._calls.get(call_id, (event.tool_call_name, "")), event.created_at)

    def _print_output(self, event: AgentEvent) -> None:
        before = self._output.get(event.tool_call_id, "")
        between = "\n" if before and event.block_id else ""  # parts of a result stand below each other
        self._output[event.tool_call_id] = f"{before}{between if event.delta else ''}{event.delta}"

    async def _returned(self, event: AgentEvent) -> None:
        call_id = event.tool_call_id
        for ids in (self.running, self.asked, self.asleep, self.decided):
            ids.discard(call_id)
        self.doubted = self.doubted or event.state is ToolResultState.UNKNOWN
        tool, arguments = self._calls.get(call_id, (event.tool_call_name, ""))
        output = self._output.pop(call_id, "")
        if call_id in self._edited and output.startswith("["):
            output = output.partition("\n")[2]  # a note for the model: here the line says what ran
        told, below = self._streamed.returned(call_id), self._runs.last_lines(call_id)
        took = self._runs.ended(call_id, event.created_at) if self._screen.renders else ""
        width = self._screen.width - len(took)
        sounds = sounds_in(self._data.pop(call_id, []))
        output = output or ", ".join(block.name or block.source.media_type for block in sounds)
        if tool == LISTS_TASKS and event.state is ToolResultState.SUCCESS:
            arguments = ""  # the list itself comes behind it
        answers = tool == GENERATE_RESPONSE and event.state is ToolResultState.SUCCESS
        answer, arguments = (arguments, "") if answers else ("", arguments)
        line = render.result_line(tool, arguments, event.state, output, width=width)
        self._screen.show(line.append(took, "dim"), *([render.answer(answer)] if answer else []))
        if event.state is ToolResultState.ERROR:
            self._show_end(call_id, output, FAILED_LINES, told)
        elif below and self._screen.renders:
            self._show_end(call_id, output, LAST_LINES, told)
            # The result of a call that was stopped does not have them, and they would be gone for good.
            lost = () if event.state is ToolResultState.SUCCESS else below
            self._screen.show(*(Text(f"  │ {harmless(line)}", "dim") for line in lost))
        if not self._screen.as_json:
            self._screen.show(*(self._screen.sounds.take(block) for block in sounds))
        if tool in _CHANGES and event.state is ToolResultState.SUCCESS and not self._screen.as_json:
            await self._show_change(call_id)

    def _show_end(self, call_id: str, output: str, most: int, told: int) -> None:
        """The last lines of what it said, and how to read those before."""
        end, before = end_of(output, most, max(told, 1))
        if before:
            self._screen.show(Text(f"  … {before} more line{'s' * (before > 1)}: {self._whole_by(call_id)}", "dim"))
        self._screen.show(*end)

    def _whole_by(self, call_id: str) -> str:
        """What shows all that the call has said. A key does so for the last call alone."""
        if self._screen.whole_by:
            is_last = call_id == next(reversed(self._calls), "")
            return self._screen.whole_by if is_last else one_line(f"/output {call_id}")
        return one_line(shlex.join(["longhaul", "show", self._session.id, call_id, *flags_of(self._session)]))

    async def _show_change(self, call_id: str) -> None:
        found = await self._session.result(self._reply_id)
        for result in found.message.get_tool_results() if found.message else ():
            if result.id != call_id or not isinstance(change := result.metadata.get("diff"), str):
                continue
            if change.strip() != self.known_changes.get(call_id, "").strip():
                self._screen.show(render.diff(change))

    def _happened(self, event: AgentEvent) -> None:
        if event.name == "arguments_edited" and event.tool_call_id in self._calls:
            self._calls[event.tool_call_id] = (self._calls[event.tool_call_id][0], event.value["input"])
            self._edited.add(event.tool_call_id)
        if event.name == "asleep":
            self.running.discard(event.tool_call_id)
            self.asleep.add(event.tool_call_id)
        if event.name == "budget_exhausted" and event.value["then"] == "ask":
            self.asked.add(CALL_ID)
        if event.name == "budget_changed":
            self.asked.discard(CALL_ID)
        if event.name in ("model_failed", "model_refused") and event.error is not None:
            self._failure = event.error.message
        if line := line_of(event) or (stillness(event) if self._looks_on else None):
            self._screen.show_folded(line)

    def _looked_on(self, event: AgentEvent) -> None:
        """What somebody who takes part is told in another way."""
        if not self._looks_on:
            return
        if event.type == "USER_CONFIRM_RESULT":
            self._screen.show(*decided(event, lambda call_id: self._calls.get(call_id, (call_id, ""))[0]))
        else:
            self._screen.show(*waiting_calls_text(event))

    def _finished(self, event: AgentEvent) -> None:
        self.ended = True
        self._runs.clear()
        if why := stopped(event):
            self._screen.show(Text(f"✗ stopped: {why}", style="red"))
        elif event.error is not None and event.error.message != self._failure:
            self._screen.show_folded(Text(one_line(f"✗ {event.error.type}: {event.error.message}"), style="red"))
        if self._screen.renders:
            self._screen.show(self._progress.ended(event.created_at))

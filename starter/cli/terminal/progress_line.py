"""Says on one line how far a reply is: step, tokens, tasks, time."""

import time
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.cli.terminal.running_calls import moment, seconds
from longhaul.starter.visible import one_line

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

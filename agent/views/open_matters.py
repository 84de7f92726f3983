"""Lists what a session has not finished, in lines that no summary of its past may lose."""

from longhaul.agent.letters.doubts import open_doubts
from longhaul.agent.record import Record

LINE_CHARS = 200
MOST_LINES = 20
"""They take room in each summary, and windows may be small."""


def unfinished(record: Record) -> tuple[str, ...]:
    """Calls whose outcome nobody knows, then tasks that are not done, the one that is being worked on first."""
    doubts = [f"{doubt.tool} ({doubt.call_id}): its outcome is unknown" for doubt in open_doubts(record)]
    tasks = [task for task in record.state.tasks_context.tasks if task.is_open]
    tasks.sort(key=lambda task: task.state != "in_progress")
    lines = [_one_line(line) for line in (*doubts, *(task.subject for task in tasks))]
    left_out = len(lines) - MOST_LINES
    return (*lines[:MOST_LINES], f"and {left_out} more that are open") if left_out > 0 else tuple(lines)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1]}…"

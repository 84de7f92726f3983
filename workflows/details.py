"""The page of a session in Temporal's Web UI."""

import re
import shlex
from collections.abc import Collection

from agent.index import status_word
from agent.preview import brief
from agent.record import Record
from agent.settling import open_doubts
from agent.state import OpenCall
from agent.steps import Compress, Step, Think
from agent.tasks import progress
from agent.times import iso
from agent.visible import visible
from agent.waiting import when
from workflows.views import waiting

_AFTER_EXPIRY = {"deny": "is denied", "park": "waits on as overdue"}
SHOWN_DOUBTS = 5
SHOWN_RUNNING = 8
"""The server takes 20 kB of such a page."""


def details(record: Record, running: Collection[str] = (), step: Step | None = None) -> str:
    """The session as a page for the Web UI, the important line first.

    Short lines close together: the frame on that page shows five, and scrolls. Markdown of bold text and code only.
    `running`: ids of the calls that are under way; `step`: what is being done, when that is something else.
    """
    calls = waiting(record)
    lines = [f"**{status_word(record)}**{_awaited(calls)} · agent {_code(record.spec.name)} · {_cost(record)}"]
    lines += _under_way(record, running, step)
    done, total, current = progress(record.state.tasks_context.tasks)
    if total:
        lines.append(f"tasks {done}/{total}{f': {_code(_cut(current, 160))}' if current else ''}")
    lines += _pause(record)
    for call in calls:
        whom = "a person" if call.waits_for == "person" else "an outside system"
        since = _minute(iso(call.asked_at))
        lines.append(f"for {whom} since {since}: {_code(call.block.name)} {_code(brief(call.input, 160))}")
        lines += _deadline(call)
        lines += [_code(command) for command in _answers(record, call)]
        if call.reason:
            lines.append(f"why: {_code(_cut(call.reason, 160))}")
    doubts = open_doubts(record)
    for doubt in doubts[:SHOWN_DOUBTS]:
        lines.append(f"nobody knows whether it ran: {_code(doubt.tool)} {_code(brief(doubt.input, 160))}")
        lines += [_code(_command(record, "settle", doubt.call_id, word)) for word in ("--happened", "--did-not")]
    if len(doubts) > SHOWN_DOUBTS:
        lines.append(f"and {len(doubts) - SHOWN_DOUBTS} more calls in doubt")
    if record.queue and calls:
        lines.append(f"queued behind it: {len(record.queue)}")
    last = next(reversed(record.finished.values()), None)
    if record.reply is None and last is not None and last.error is not None:
        lines.append(f"the last reply failed: {_code(_cut(last.error.message, 300))}")
    return "  \n".join(lines)


def _awaited(calls: list[OpenCall]) -> str:
    """How many answers it waits for, and whose."""
    people = sum(call.waits_for == "person" for call in calls)
    counts = ((people, "approval", ""), (len(calls) - people, "result", " from outside"))
    said = [f"{number} {what}{'s' if number > 1 else ''}{whence}" for number, what, whence in counts if number]
    return f" for {' and '.join(said)}" if said else ""


def _under_way(record: Record, running: Collection[str], step: Step | None) -> list[str]:
    match step:
        case Think(model):
            return [f"asking {_code(_cut(model, 120))}, call {record.model_calls + 1}"]
        case Compress():
            return ["making the context shorter"]
        case _:
            pass
    under_way = [record.calls[call_id] for call_id in running if call_id in record.calls]
    lines = [
        f"running{_since(call.judged_at)}: {_code(call.block.name)} {_code(brief(call.input, 160))}"
        for call in under_way[:SHOWN_RUNNING]
    ]
    more = len(under_way) - SHOWN_RUNNING
    return [*lines, f"and {more} more that run"] if more > 0 else lines


def _since(at_ms: int) -> str:
    """To the second; nothing for what an earlier release has not noted."""
    return f" since {iso(at_ms)[:19].replace('T', ' ')} UTC" if at_ms else ""


def _deadline(call: OpenCall) -> list[str]:
    """What becomes of a call that nobody answers, and who has it now."""
    known = when(call)
    said: list[str] = []
    if at := known.get("expired_at"):
        said.append(f"overdue since {_minute(at)}, it waits on")
    elif at := known.get("expires_at"):
        said.append(f"answer by {_minute(at)}, then it {_AFTER_EXPIRY[known['on_expiry']]}")
    if at := known.get("escalated_at"):
        said.append(f"handed up to {_code(_cut(known['escalate_to'], 80))} at {_minute(at)}")
    elif at := known.get("escalate_at"):
        said.append(f"goes to {_code(_cut(known['escalate_to'], 80))} at {_minute(at)}")
    return ["; ".join(said)] if said else []


def _minute(moment: str) -> str:
    return f"{moment[:16].replace('T', ' ')} UTC"


def _cost(record: Record) -> str:
    calls = f"{record.model_calls} model call{'' if record.model_calls == 1 else 's'}"
    return f"{calls} · {record.usage.input_tokens} tokens in, {record.usage.output_tokens} out"


def _pause(record: Record) -> list[str]:
    if record.pause is None:
        return []
    since = iso(record.pause.at)[:16].replace("T", " ")
    by = f" by {_code(_cut(record.pause.by, 80))}" if record.pause.by else ""
    why = f": {_code(_cut(record.pause.why, 160))}" if record.pause.why else ""
    return [f"paused since {since} UTC{by}{why}", *(_code(_command(record, name)) for name in ("resume", "step"))]


def _answers(record: Record, call: OpenCall) -> list[str]:
    """The commands that answer a call. With user and agent, so that they mean this session and no namesake."""
    call_id = call.block.id
    if call.waits_for == "outside":
        return [_command(record, "result", call_id, "--output", "TEXT")]
    return [_command(record, "approve", call_id), _command(record, "deny", call_id, "--reason", "TEXT")]


def _command(record: Record, name: str, *words: str) -> str:
    user = record.state.user_id
    named = [*(["--user", user] if user else []), "--agent", record.spec.name]
    return shlex.join(["longhaul", name, record.state.session_id, *words, *named])


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def _code(text: str) -> str:
    """One line as Markdown's code, so that text from outside is neither markup nor a link, nor hides anything."""
    line = " ".join(visible(text).split())
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""

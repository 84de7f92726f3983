"""Renders whole sessions as people read them: the list, the transcript, what it costs and what it waits for."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from rich.cells import cell_len
from rich.text import Text

from longhaul.agent.values.conversation.messages import (
    DataBlock,
    FinishedReason,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
)
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE
from longhaul.agent.values.prompt_cache import REASONS
from longhaul.agent.views.trajectory import TrajectoryEvent
from longhaul.starter import render, render_pending
from longhaul.starter.client.cards import SessionCard
from longhaul.starter.render import FAILED_LINES, LISTS_TASKS, end_of
from longhaul.starter.visible import one_line, visible
from longhaul.workflows.contract import PendingCall, Status

_COLOURS = {"waiting": "yellow", "working": "cyan", "idle": "green", "paused": "magenta"}


_NEVER_LEFT_OUT = 5
WholeBy = Callable[[str], str]
"""A command or a key."""


class Priced(Protocol):
    """A session as a list has it."""

    @property
    def tokens(self) -> int: ...
    @property
    def dollars(self) -> float: ...


def spent(row: Priced) -> str:
    """What it has cost, in money where that is known; `-` where its row does not say."""
    if row.dollars:
        return f"${row.dollars:.2f}" if row.dollars >= 0.01 else "below $0.01"
    return f"{row.tokens:,} tokens" if row.tokens else "-"


def status_line(status: Status) -> Text:
    """Who answers, how, where, and what it has cost so far; the folder comes last, for a narrow line loses its end."""
    dollars = status.budget.spent.get("cost", 0.0) if status.budget else 0.0
    cost = f"${dollars:.2f}" if dollars >= 0.01 else f"{status.input_tokens + status.output_tokens:,} tokens"
    home = str(Path.home())
    root = status.workspace_root
    folder = f"~{root.removeprefix(home)}" if root == home or root.startswith(f"{home}/") else root
    parts = (status.agent, status.model or status.custom_agent, status.mode, cost, folder)
    return Text(" · ".join(one_line(part) for part in parts if part), "dim", no_wrap=True, overflow="ellipsis")


def cards(rows: Sequence[SessionCard], *, width: int) -> Iterator[Text]:
    """A head, and one line a session, aligned, never cut; when it was started and what it cost stand there where there
    is room. Where the others have none, the head is empty, and each session has a second line."""
    table = [["SESSION", "USER", "AGENT", "STATUS", "SINCE", "STARTED", "COST"]]
    table += [
        [
            row.session_id,
            row.user_id or "-",
            row.agent,
            row.status,
            ago(row.waiting_since),
            ago(row.started_at),
            spent(row),
        ]
        for row in rows
    ]
    table = [[one_line(cell) for cell in line] for line in table]
    widths = [max(cell_len(line[column]) for line in table) for column in range(7)]
    while len(widths) > _NEVER_LEFT_OUT and sum(widths) + 2 * (len(widths) - 1) > width:
        widths.pop()
    if sum(widths) + 2 * (len(widths) - 1) > width:
        yield Text()
        yield from (_in_two_lines(line) for line in table[1:])
        return
    for number, line in enumerate(table):
        shown = Text(style="bold" if number == 0 else "")
        for column, (cell, cells) in enumerate(zip(line, widths, strict=False)):
            colour = _COLOURS.get(cell, "") if column == 3 and number else ""
            shown.append(cell, colour).append(" " * (cells - cell_len(cell) + 2))
        shown.rstrip()
        yield shown


def _in_two_lines(row: Sequence[str]) -> Text:
    name, user, agent, status, since = row[:_NEVER_LEFT_OUT]
    shown = Text.assemble((name, "bold"), "\n  ", (status, _COLOURS.get(status, "")))
    told = (since, agent, f"of {user}")
    return shown.append("".join(f", {each}" for each in told if each not in ("-", "of -")))


def titled(row: SessionCard, *, width: int) -> Text:
    """How its first request begins, on one line."""
    line = Text(f"  {one_line(visible(row.title))}", "dim")
    line.truncate(max(width, 16), overflow="ellipsis")
    return line


def ago(moment: str) -> str:
    """`3 min ago` for an ISO time; empty stays `-`."""
    return f"{_brief((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())} ago" if moment else "-"


def until(moment: str) -> str:
    """`in 3 h 20 min` for an ISO time that is to come, else `3 h ago`: who has two days left must not read one."""
    left = (datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds()
    if left <= 0:
        return ago(moment)
    further = next((left % size for _, size in _UNITS[:2] if left >= size), 0)
    return f"in {_brief(left)}" + (f" {_brief(further)}" if further >= _UNITS[2][1] else "")


_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def _brief(seconds: float) -> str:
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(max(seconds, 0))} s"


def head(status: Status) -> Text:
    """Who, where, how it stands and what it has cost."""
    user = f" of {one_line(status.user_id)}" if status.user_id else ""
    shown = Text.assemble((one_line(status.session_id), "bold"), f"{user}: ")
    shown.append(status.status, _COLOURS.get(status.status, ""))
    # What makes its replies: a model, or code, which may have a model to ask.
    kind = f", custom agent {one_line(status.custom_agent)}" if status.custom_agent else ""
    made_by = f"{kind}, model {one_line(status.model)}" if status.model or not kind else kind
    priority = f", priority {status.priority}" if status.priority is not None else ""
    shown.append(f"\nagent {one_line(status.agent)}{made_by}, mode {status.mode}{priority}")
    if status.workspace_root:
        shown.append(f"\nworkspace {one_line(status.workspace_root)}")
    shown.append(f"\n{cost(status)}")
    for line in (*caching(status), *keeping(status)):
        shown.append("\n").append_text(line)
    if status.queued:
        shown.append(f"\nqueued after it: {_counted(status.queued, 'request')}")
    if status.last_error is not None and not status.reply_id:
        shown.append(f"\nthe last reply failed: {one_line(status.last_error.message)}", "red")
    return shown


def cost(status: Status) -> str:
    """What it took so far."""
    about = "about " if status.tokens_estimated else ""
    calls = _counted(status.model_calls, "step" if status.custom_agent else "model call")
    return f"cost {about}{status.input_tokens:,} tokens in, {status.output_tokens:,} out, {calls}{lost(status)}"


def lost(status: Status) -> str:
    """What nobody was told the use of."""
    if not (calls := status.lost.calls):
        return ""
    usage = status.lost.usage
    tried = f"{_counted(calls, 'lost attempt')} (estimated)"
    return f"; in addition {tried}: {usage.input_tokens} in, {usage.output_tokens} out, perhaps billed"


def caching(status: Status) -> Iterator[Text]:
    """What the providers' prompt caches served of all that was sent, and what made the rest dear."""
    usages = [spent.usage for spent in status.by_model.values()]
    read = sum(usage.cache_input_tokens for usage in usages)
    if not read and not status.cache_missed:
        return
    written = sum(usage.cache_creation_input_tokens for usage in usages)
    share = 100 * read // max(status.input_tokens, 1)
    yield Text(f"prompt cache: {read:,} tokens read ({share} % of the input), {written:,} written")
    for reason, missed in sorted(status.cache_missed.items(), key=lambda each: -each[1].tokens):
        yield Text(f"  missed {missed.tokens:,} in {_counted(missed.calls, 'call')}: {REASONS[reason]}")


def keeping(status: Status) -> Iterator[Text]:
    """How full the context is, and what stands in the way of the session or of its being written down."""
    if status.context_length:
        share = 100 * status.context_tokens // status.context_length
        times = f", compressed {_counted(status.compressions, 'time')}" if status.compressions else ""
        yield Text(f"context {status.context_tokens:,} of {status.context_length:,} tokens ({share} %){times}")
    if status.compression_error:
        yield Text(f"the last compression failed: {one_line(status.compression_error)}", "yellow")
    adjusted = (f"{model}: {' '.join(sentences)}" for model, sentences in status.adjusted.items())
    for sentence in (*adjusted, *(f"instructions: {each}" for each in status.left_out)):
        yield Text(one_line(visible(sentence)), "yellow")
    if status.tasks_total:
        current = f": {one_line(status.current_task)}" if status.current_task else ""
        yield Text(f"tasks {status.tasks_done}/{status.tasks_total}{current}")
    yield from plans(status)
    if status.unknown_outcomes:
        yield Text(
            f"{_counted(status.unknown_outcomes, 'call')} has an unknown outcome: nobody knows whether it ran", "yellow"
        )
    if status.budget:
        yield from (Text(one_line(line)) for line in status.budget.lines())
    yield from standing_still(status)
    if status.note:
        yield Text(f"note: {one_line(status.note)}")
    if status.notify_error:
        yield Text(f"not everybody could be notified: {one_line(status.notify_error)}", "yellow")
    if status.checkpoint_error:
        yield Text(f"not stored since entry {status.saved_seq}: {one_line(status.checkpoint_error)}", "yellow")


def plans(status: Status) -> Iterator[Text]:
    """The plan that the agent follows, a line for each subtask, and what came of those before it."""
    if status.plan is not None:
        yield Text(f"plan {one_line(status.plan.name)}", "bold")
        for subtask in status.plan.subtasks:
            line = render.task_list([(subtask.state, subtask.name)])
            yield line.append(f": {one_line(subtask.outcome)}", "dim") if subtask.outcome else line
    for plan in status.plans_over:
        yield Text(f"plan {one_line(plan.name)} is over: {plan.state}; {one_line(plan.outcome)}", "dim")


def standing_still(status: Status) -> Iterator[Text]:
    """Who or what keeps the session from going on, and what lets it."""
    if status.quarantine:
        yield Text(f"quarantined: {one_line(status.quarantine)}", "red")
    if status.paused_since:
        yield Text(f"{one_line(paused(status))}, {ago(status.paused_since)}", "magenta")
    if status.quarantine or status.paused_since:
        flags = render.flags_for(status.user_id, status.agent)
        resume = shlex.join(["longhaul", "resume", status.session_id, *flags])
        yield Text(f"  to continue: {one_line(resume)}", "red" if status.quarantine else "magenta")
    if status.outage:
        yield Text(one_line(visible(status.outage.told(partial(render.when, seconds=True)))), "yellow")
    if status.host_unavailable:
        yield Text(f"parked: {one_line(status.host_unavailable)}", "yellow")
    elif status.lacking:
        yield Text(f"waits for a worker that can continue: {one_line(status.lacking)}", "yellow")
    if status.shutdown_interrupted:
        who = f"worker {one_line(status.left_by)}" if status.left_by else "its worker"
        yield Text(f"interrupted: {who} was shut down; it continues on another worker", "yellow")
    for asker in status.askers:
        ended = f" has not heard its end: {one_line(asker.error)}" if asker.error else " waits for its end"
        yield Text(f"asked by workflow {one_line(asker.workflow_id)}, which{ended}", "yellow" if asker.error else "")


def paused(status: Status) -> str:
    """By whom and why, and that a step is being taken, if it is."""
    by = f" by {status.paused_by}" if status.paused_by else ""
    why = f": {status.paused_why}" if status.paused_why else ""
    return f"paused{by}{why}{' (takes a step)' if status.stepping else ''}"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def transcript(
    messages: Iterable[Msg],
    *,
    width: int,
    whole_by: WholeBy | None = None,
    said: Callable[[str], Text] = render.model_text,
) -> Iterator[Text]:
    """Every message in order; each call with its result on one line, where the result came, and the end of what one
    said that failed. `whole_by`: what shows all of a call, by its id; `said`: how a model's text is shown."""
    calls: dict[str, ToolCallBlock] = {}
    for message in messages:
        for block in message.content:
            match block:
                case TextBlock():
                    yield render.user_said(block.text) if message.role == "user" else said(block.text)
                case ThinkingBlock():
                    yield render.thought(block.thinking)
                case HintBlock():
                    yield Text.assemble(("hint: ", "dim"), render.model_text(_hint_text(block)))
                case DataBlock():
                    yield Text(f"[{one_line(block.source.media_type)} {one_line(block.name or '')}]", style="dim")
                case ToolCallBlock():
                    calls[block.id] = block
                case ToolResultBlock():
                    called = calls.pop(block.id, None)
                    yield from _result(block, called.input if called else "", width, whole_by)
        yield from _how_it_ended(message)
    for call in calls.values():
        yield Text.assemble(("… ", "yellow"), render.call_line(call.name, call.input))


_SHOWN_WHOLE = {GENERATE_RESPONSE: render.answer, LISTS_TASKS: render.tasks_in}
"""Tools whose arguments are what people want to read."""


def _how_it_ended(message: Msg) -> Iterator[Text]:
    """Of one message of a model: that it is a refusal, or not whole."""
    if message.finished_reason is FinishedReason.REFUSED and message.error is not None:
        yield Text(f"✗ {one_line(message.error.message)}", style="red")
    elif message.finished_reason is FinishedReason.INCOMPLETE:
        yield Text("! the message broke off here", style="yellow")


def _result(block: ToolResultBlock, arguments: str, width: int, whole_by: WholeBy | None) -> Iterator[Text]:
    shows = _SHOWN_WHOLE.get(block.name) if block.state is ToolResultState.SUCCESS else None
    yield render.result_line(block.name, "" if shows else arguments, block.state, block.get_text(), width=width)
    if shows and (whole := shows(arguments)):
        yield whole
    if block.state is ToolResultState.ERROR:
        end, before = end_of(block.get_text(), FAILED_LINES)
        if before:
            how = f": {one_line(whole_by(block.id))}" if whole_by else ""
            yield Text(f"  … {_counted(before, 'more line')}{how}", "dim")
        yield from end
    if isinstance(change := block.metadata.get("diff"), str):
        yield render.diff(change)


def _hint_text(block: HintBlock) -> str:
    if isinstance(block.hint, str):
        return block.hint
    return "\n".join(part.text for part in block.hint if isinstance(part, TextBlock))


_WAITS = {
    "person": "waits for a person",
    "outside": "waits for an external system",
    "event": "asleep",
    "resolution": "nobody knows whether it ran",
    "budget": "waits for more budget",
}


def waiting(session_id: str, calls: Sequence[PendingCall], flags: Sequence[str] = ()) -> Iterator[Text]:
    """Each call that waits, for whom, and the exact command that answers it."""
    for call in calls:
        word = (
            _WAITS.get(call.waits_for, "waits for somebody")
            if call.asked is None
            else "an MCP server waits for an answer"
        )
        yield Text(f"{word}, {ago(call.asked_at)}:", style="yellow")
        yield render_pending.pending_call(call)
        yield render_pending.how_to_answer(session_id, call, flags)


def decisions(status: Status) -> Iterator[Text]:
    """What people decided on: who, when, why, and the beginning of the digest of what they had before them."""
    if status.decisions:
        yield Text("decided:", style="dim")
    for made in status.decisions:
        who = one_line(visible(made.approver)) or "somebody"
        word = {"allow": "allowed", "deny": "denied"}.get(made.decision, made.decision)
        line = Text(f"  {ago(made.at)}  {who} {word} {one_line(visible(f'{made.tool} {made.call_id}'))}")
        told = [made.counts, "with other arguments" if made.edited else "", *made.rules]
        told += [
            f"seen {made.digest[: render_pending.SHORT_DIGEST]}" if made.digest else "without a digest of what was seen"
        ]
        told += [f"signed with key {made.key}"] if made.key else []
        line.append(f" ({one_line(visible(', '.join(filter(None, told))))})", "dim")
        yield line.append(f": {one_line(visible(made.reason))}" if made.reason else "")


def refusals(status: Status) -> Iterator[Text]:
    """What was sent to the session and changed nothing."""
    if not status.refused:
        return
    yield Text(f"{_counted(status.refused, 'operation')} refused; the last:", style="yellow")
    for refusal in status.last_refusals:
        what, why = one_line(refusal.get("name", "")), one_line(refusal.get("reason", ""))
        yield Text(f"  {ago(refusal.get('at', ''))}  {what}: {why}")


def steps(events: Iterable[TrajectoryEvent], *, width: int) -> Iterator[Text]:
    """One line to each: its entry, what it is, whose, and how it begins."""
    for event in events:
        said = event.input if event.kind == "action" else event.text
        named = " ".join(filter(None, (event.tool, event.state, event.by)))
        columns = f"{event.seq:>6}  {event.kind:<20} {event.source:<11} "
        line = Text(columns if width >= 2 * len(columns) else f"{event.seq} {event.kind}, {event.source}: ", "dim")
        line.append(one_line(f"{named}: {said}" if named and said else named or said), "")
        line.truncate(max(width, 16), overflow="ellipsis")
        yield line

"""The page of a session in Temporal's Web UI.

Shows a session without being asked: a page in the Web UI, and its row in the server's index, memo included.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from longhaul.agent.decisions.deadline_steps import when
from longhaul.agent.decisions.subagent_start import at_work
from longhaul.agent.journal import Journal
from longhaul.agent.operations.request_operations import pause_fields
from longhaul.agent.operations.result_operations import unresolved_outcomes
from longhaul.agent.permission.preview import brief
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.text import visible
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.steps import Compress, Step, Think
from longhaul.agent.values.conversation.messages import Msg, example, title_of
from longhaul.agent.values.tasks import progress
from longhaul.agent.views.session_views import IndexRow, row_of, standing, status_word
from longhaul.workflows import views
from longhaul.workflows.contract import (
    COST,
    DEADLINE,
    RISK,
    STATUS,
    TEAM,
    TITLE,
    TOKENS,
    TOOLS,
    WAITING_SINCE,
    WAITS,
    PendingCall,
    Waits,
    outage,
)
from longhaul.workflows.views import waiting

_WHOM = {"person": "for a person", "outside": "for an external system", "event": "asleep"}
_AFTER_EXPIRY = {"deny": "is denied", "park": "still waits, overdue"}
SHOWN_UNKNOWN_OUTCOMES = 5
SHOWN_WAITING = 8
SHOWN_RUNNING = 8
"""The server takes 20 kB of such a page."""


def details(journal: Journal, running: Collection[str] = (), step: Step | None = None) -> str:
    """The session as a page for the Web UI, the important line first.

    Short lines close together: the frame on that page shows five, and scrolls. Markdown of bold text and code only.
    `running`: ids of the calls that are under way; `step`: what is being done, when that is something else.
    """
    calls = waiting(journal)
    lines = [f"**{status_word(journal)}**{_awaited(calls)} · agent {_code(journal.spec.name)} · {_cost(journal)}"]
    lines += _under_way(journal, running, step)
    lines += _tasks(journal)
    lines += _budget(journal)
    lines += _children(journal)
    lines += _pause(journal)
    lines += _lacking(journal)
    for call in calls[:SHOWN_WAITING]:
        whom = _whom(call)
        since = _minute(iso(call.asked_at))
        lines.append(f"{whom} since {since}: {_code(call.block.name)} {_code(brief(call.input, 160))}")
        lines += _deadline(call)
        lines += [_code(command) for command in _answers(journal, call)]
        if call.reason:
            lines.append(f"why: {_code(_cut(call.reason, 1_000 if call.asked else 160))}")
    if len(calls) > SHOWN_WAITING:
        lines.append(f"and {len(calls) - SHOWN_WAITING} more calls that wait")
    unknown_outcomes = unresolved_outcomes(journal)
    for unknown_outcome in unknown_outcomes[:SHOWN_UNKNOWN_OUTCOMES]:
        lines.append(
            f"nobody knows whether it ran: {_code(unknown_outcome.tool)} {_code(brief(unknown_outcome.input, 160))}"
        )
        lines += [
            _code(_command(journal, "resolve", unknown_outcome.call_id, word)) for word in ("--happened", "--did-not")
        ]
    if len(unknown_outcomes) > SHOWN_UNKNOWN_OUTCOMES:
        lines.append(f"and {len(unknown_outcomes) - SHOWN_UNKNOWN_OUTCOMES} more calls with an unknown outcome")
    if journal.requests.queue and calls:
        lines.append(f"queued after it: {len(journal.requests.queue)}")
    last = next(reversed(journal.requests.finished.values()), None)
    if journal.reply is None and last is not None and last.error is not None:
        lines.append(f"the last reply failed: {_code(_cut(last.error.message, 300))}")
    return "  \n".join(lines)


def _tasks(journal: Journal) -> list[str]:
    """The plan that it follows, and how far it is with that or with its list."""
    known = journal.state.tasks_context
    done, total, current = progress(known.tasks)
    plan = [f"plan {_code(_cut(known.current_plan.name, 160))}"] if known.current_plan else []
    tasks = [f"tasks {done}/{total}{f': {_code(_cut(current, 160))}' if current else ''}"] if total else []
    return plan + tasks


def _whom(call: OpenCall) -> str:
    if call.asked is not None and call.waits_for == "outside":
        return f"for an answer to {_code(call.asked.server)}"
    return _WHOM[call.waits_for] if call.waits_for else ""


def _awaited(calls: list[OpenCall]) -> str:
    """How many answers it waits for, and whose."""
    found = Counter(call.waits_for for call in calls)
    counts = (
        (found["person"], "approval", ""),
        (found["outside"], "result", " from outside"),
        (found["event"], "event", ""),
    )
    said = [f"{number} {what}{'s' if number > 1 else ''}{whence}" for number, what, whence in counts if number]
    return f" for {' and '.join(said)}" if said else ""


def _under_way(journal: Journal, running: Collection[str], step: Step | None) -> list[str]:
    match step:
        case Think(model):
            return [f"asking {_code(_cut(model, 120))}, call {journal.spent.model_calls + 1}"]
        case Compress():
            return ["compressing the context"]
        case _:
            pass
    under_way = [journal.open_calls[call_id] for call_id in running if call_id in journal.open_calls]
    lines = [
        f"running{_since(call.judged_at)}: {_code(call.block.name)} {_code(brief(call.input, 160))}"
        for call in under_way[:SHOWN_RUNNING]
    ]
    more = len(under_way) - SHOWN_RUNNING
    return [*lines, f"and {more} more that run"] if more > 0 else lines


def _children(journal: Journal) -> list[str]:
    """Whose sub-agent it is, and its own that are at work."""
    above = [f"sub-agent {_code(' › '.join((*journal.parent.path, journal.spec.name)))}"] if journal.parent else []
    busy = at_work(journal)
    lines = [
        f"sub-agent at work{_since(child.at)}: {_code(child.agent)} {_code(_cut(child.session_id, 160))}"
        for child in busy[:SHOWN_RUNNING]
    ]
    more = len(busy) - SHOWN_RUNNING
    return [*above, *lines, *([f"and {more} more sub-agents"] if more > 0 else [])]


def _since(at_ms: int) -> str:
    """To the second."""
    return f" since {iso(at_ms)[:19].replace('T', ' ')} UTC" if at_ms else ""


def _deadline(call: OpenCall) -> list[str]:
    """What becomes of a call that nobody answers, and who has it now."""
    known = when(call)
    if call.sleep is not None:
        return [f"until {_minute(known['wakes_at'])}, or the event {_code(known['event'])}"]
    said: list[str] = []
    if at := known.get("expired_at"):
        said.append(f"overdue since {_minute(at)}, it still waits")
    elif at := known.get("expires_at"):
        said.append(f"answer by {_minute(at)}, then it {_AFTER_EXPIRY[known['on_expiry']]}")
    if at := known.get("escalated_at"):
        said.append(f"escalated to {_code(_cut(known['escalate_to'], 80))} at {_minute(at)}")
    elif at := known.get("escalate_at"):
        said.append(f"goes to {_code(_cut(known['escalate_to'], 80))} at {_minute(at)}")
    return ["; ".join(said)] if said else []


def _minute(moment: str) -> str:
    return f"{moment[:16].replace('T', ' ')} UTC"


def _cost(journal: Journal) -> str:
    calls = f"{journal.spent.model_calls} model call{'' if journal.spent.model_calls == 1 else 's'}"
    usage = journal.spent.usage
    about = "about " if usage.estimated else ""
    lost = journal.spent.lost
    beside = f" · lost, estimated: {lost.usage.input_tokens} in, {lost.usage.output_tokens} out" if lost.calls else ""
    return f"{calls} · {about}{usage.input_tokens} tokens in, {usage.output_tokens} out{beside}"


def _budget(journal: Journal) -> list[str]:
    known = standing(journal)
    if known is None:
        return []
    asks = [f"waits for more budget: {_code(_cut(known.asks, 300))}"] if known.asks else []
    answers = [_command(journal, "budget", f"--raise-{lack}", "N") for lack in _lacks(journal)]
    answers += [_command(journal, "budget", word) for word in ("--stop", "--summarise")] if asks else []
    return [*known.lines(), *asks, *map(_code, answers)]


def _lacks(journal: Journal) -> list[str]:
    question = journal.account.question if journal.account else None
    return [lack.name for lack in question.lacks] if question else []


def _pause(journal: Journal) -> list[str]:
    if journal.pause is None:
        return []
    since = iso(journal.pause.at)[:16].replace("T", " ")
    by = f" by {_code(_cut(journal.pause.by, 80))}" if journal.pause.by else ""
    why = f": {_code(_cut(journal.pause.why, 160))}" if journal.pause.why else ""
    return [f"paused since {since} UTC{by}{why}", *(_code(_command(journal, name)) for name in ("resume", "step"))]


def _lacking(journal: Journal) -> list[str]:
    """What the step waits for that is to be taken: the model's provider, or a worker."""
    if away := outage(journal):
        return [_code(_cut(away.told(), 400))]
    lacking = journal.incarnation.lacking
    if lacking and lacking.host:
        return [f"parked: {_code(_cut(lacking.why, 300))}"]
    return [f"waits for a worker that can continue: {_code(_cut(lacking.why, 300))}"] if lacking else []


def _answers(journal: Journal, call: OpenCall) -> list[str]:
    """The commands that answer a call. With user and agent, so that they mean this session and no namesake."""
    call_id = call.block.id
    if call.sleep is not None:
        return [_command(journal, "notify", call.sleep.event)]
    if call.waits_for == "outside":
        answers = ["TEXT"] if call.asked is None else [_cut(example(call.asked), 300), "decline"]
        return [_command(journal, "result", call_id, "--output", answer) for answer in answers]
    return [_command(journal, "approve", call_id), _command(journal, "deny", call_id, "--reason", "TEXT")]


def _command(journal: Journal, name: str, *words: str) -> str:
    user = journal.state.user_id
    named = [*(["--user", user] if user else []), "--agent", journal.spec.name]
    return shlex.join(["longhaul", name, journal.state.session_id, *words, *named])


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def _code(text: str) -> str:
    """One line as Markdown's code, so that text from outside is neither markup nor a link, nor hides anything."""
    line = " ".join(visible(text).split())
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


MOST_CALLS = 16
LARGEST_CALL_BYTES = 8_000
LARGEST_BYTES = 24_000
"""Of all calls: whoever lists a thousand sessions reads them all at once."""


class Showing:
    """Tells the server how things stand. The index costs an event, so only when something has changed."""

    def __init__(self, journal: Journal, running: Collection[str]) -> None:
        """`running`: the calls that are under way, by id, as they are whenever something is shown."""
        self._journal = journal
        self._running = running
        # As it stands in the index: a run that was continued as new into need not say it again.
        known = workflow.info().typed_search_attributes
        deadline = known.get(DEADLINE)
        self._shown = IndexRow(
            status=known.get(STATUS) or "",
            tools=tuple(known.get(TOOLS) or ()),
            risk=known.get(RISK) or "",
            team=known.get(TEAM) or "",
            deadline=round(deadline.timestamp() * 1000) if deadline else 0,
            tokens=known.get(TOKENS) or 0,
            dollars=known.get(COST) or 0.0,
        )
        self._told: str | None = "" if WAITS not in workflow.info().raw_memo else None
        """None: what the run before has told, which need not be of our making, is told again."""
        self._step: Step | None = None
        """What is being done, where that is something else than calls."""
        _page_when_asked(lambda: details(journal, running, self._step))

    def begin(self, step: Step) -> None:
        """The page alone, which costs no event: the index changes where it always has, or replays would differ."""
        if isinstance(step, Think | Compress):
            self._step = step

    def begin_waiting(self) -> None:
        """The page alone, of a step that can't be taken yet."""
        self._step = None

    def show(self) -> None:
        self._step = None
        row = row_of(self._journal)
        if row != self._shown and self._journal.search_attributes:
            changes = list(_changes(self._shown, row))
            self._shown = row
            workflow.upsert_search_attributes(changes)  # pyright: ignore[reportUnknownMemberType]  the SDK's own type
        if (waiting := waits(self._journal)) != self._told:
            self._told = waiting
            workflow.upsert_memo({WAITS: waiting or None})

    def retitle(self, marked: Mapping[int, Msg]) -> None:
        """Before messages are recorded without the secrets that they came with: where the title is of one, lists must
        not show it either. `marked`: as in `ModelSaid`."""
        title, state = workflow.memo_value(TITLE, ""), self._journal.state
        for at, shown in marked.items():
            place = at - bool(state.summary)
            if title and 0 <= place < len(state.context) and title_of(state.context[place : place + 1]) == title:
                workflow.upsert_memo({TITLE: title_of((shown,))})
                return


def _page_when_asked(page: Callable[[], str]) -> None:
    """The SDK would have it written again for each step, and shows it to whoever looks at the Web UI, which is seldom.
    It has no public word for one that is made then."""
    runtime = cast(Any, workflow)._Runtime.current()  # noqa: SLF001
    runtime.workflow_get_current_details = page


def _changes(before: IndexRow, row: IndexRow) -> list[SearchAttributeUpdate[Any]]:
    changes: list[SearchAttributeUpdate[Any]] = []
    if row.status != before.status:
        waits = row.status in ("waiting", "paused")
        since = WAITING_SINCE.value_set(workflow.now()) if waits else WAITING_SINCE.value_unset()
        changes += [STATUS.value_set(row.status), since]
    if row.tools != before.tools:
        changes.append(_set_or_unset(TOOLS, row.tools))
    if row.risk != before.risk:
        changes.append(_set_or_unset(RISK, row.risk))
    if row.team != before.team:
        changes.append(_set_or_unset(TEAM, row.team))
    if row.deadline != before.deadline:
        moment = datetime.fromtimestamp(row.deadline / 1000, UTC) if row.deadline else None
        changes.append(_set_or_unset(DEADLINE, moment))
    if row.tokens != before.tokens:
        changes.append(_set_or_unset(TOKENS, row.tokens))
    if row.dollars != before.dollars:
        changes.append(_set_or_unset(COST, row.dollars))
    return changes


def _set_or_unset(key: SearchAttributeKey[Any], value: Any) -> SearchAttributeUpdate[Any]:
    return key.value_set(value) if value else key.value_unset()


def waits(journal: Journal) -> str:
    """`Waits` as JSON; empty where nobody is waited for."""
    calls = _with_room(views.pending(journal, MOST_CALLS))
    lacks_budget = journal.account is not None and journal.account.question is not None
    count = len(views.waiting(journal)) + len(unresolved_outcomes(journal)) + lacks_budget
    if not (calls or count or journal.pause or journal.incarnation.quarantine or journal.incarnation.host_unavailable):
        return ""
    found = Waits.model_validate(
        {
            **pause_fields(journal),
            "calls": calls,
            "left_out": count - len(calls),
            "quarantine": journal.incarnation.quarantine,
            "host_unavailable": journal.incarnation.host_unavailable,
        }
    )
    return "" if found == Waits() else found.model_dump_json()


def _with_room(calls: list[PendingCall]) -> tuple[PendingCall, ...]:
    taken, room = list[PendingCall](), LARGEST_BYTES
    for call in calls:
        length = len(call.model_dump_json().encode("utf-8", "replace"))
        if length <= min(LARGEST_CALL_BYTES, room):
            taken.append(call)
            room -= length
    return tuple(taken)

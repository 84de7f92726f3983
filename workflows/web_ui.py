"""Shows a session without being asked: a page in the Web UI, and its row in the server's index, memo included."""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from longhaul.agent.letters.request_operations import told
from longhaul.agent.letters.result_operations import open_doubts
from longhaul.agent.record import Record
from longhaul.agent.steps import Compress, Step, Think
from longhaul.agent.values.conversation.messages import Msg, title_of
from longhaul.agent.views.session_views import IndexRow, row_of
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
)
from longhaul.workflows.web_ui_page import details

MOST_CALLS = 16
LARGEST_CALL_BYTES = 8_000
LARGEST_BYTES = 24_000
"""Of all calls: whoever lists a thousand sessions reads them all at once."""


class Showing:
    """Tells the server how things stand. The index costs an event, so only when something has changed."""

    def __init__(self, record: Record, running: Collection[str]) -> None:
        """`running`: the calls that are under way, by id, as they are whenever something is shown."""
        self._record = record
        self._running = running
        self._shown = _row_before()
        self._told: str | None = "" if WAITS not in workflow.info().raw_memo else None
        """None: what the run before has told, which need not be of our making, is told anew."""
        self._step: Step | None = None
        """What is being done, where that is something else than calls."""
        _page_when_asked(lambda: details(record, running, self._step))

    def begin(self, step: Step) -> None:
        """The page alone, which costs no event: the index changes where it always has, or replays would differ."""
        if isinstance(step, Think | Compress):
            self._step = step

    def begin_waiting(self) -> None:
        """The page alone, of a step that can't be taken yet."""
        self._step = None

    def show(self) -> None:
        self._step = None
        row = row_of(self._record)
        if row != self._shown and self._record.search_attributes:
            changes = list(_changes(self._shown, row))
            self._shown = row
            workflow.upsert_search_attributes(changes)  # pyright: ignore[reportUnknownMemberType]  the SDK's own type
        if (waiting := waits(self._record)) != self._told:
            self._told = waiting
            workflow.upsert_memo({WAITS: waiting or None})

    def retitle(self, marked: Mapping[int, Msg]) -> None:
        """Before messages are recorded without the secrets that they came with: where the title is of one, lists must
        not show it either. `marked`: as in `ModelSaid`."""
        title, state = workflow.memo_value(TITLE, ""), self._record.state
        for at, shown in marked.items():
            place = at - bool(state.summary)
            if title and 0 <= place < len(state.context) and title_of(state.context[place : place + 1]) == title:
                workflow.upsert_memo({TITLE: title_of((shown,))})
                return


def _page_when_asked(page: Callable[[], str]) -> None:
    """The SDK would have it written anew for each step, and shows it to whoever looks at the Web UI, which is seldom.
    It has no public word for one that is made then."""
    runtime = cast(Any, workflow)._Runtime.current()  # noqa: SLF001
    runtime.workflow_get_current_details = page


def _row_before() -> IndexRow:
    """As it stands in the index: a run that was rolled over into need not say it again."""
    known = workflow.info().typed_search_attributes
    deadline = known.get(DEADLINE)
    return IndexRow(
        status=known.get(STATUS) or "",
        tools=tuple(known.get(TOOLS) or ()),
        risk=known.get(RISK) or "",
        team=known.get(TEAM) or "",
        deadline=round(deadline.timestamp() * 1000) if deadline else 0,
        tokens=known.get(TOKENS) or 0,
        dollars=known.get(COST) or 0.0,
    )


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


def waits(record: Record) -> str:
    """`Waits` as JSON; empty where nobody is waited for."""
    calls = _with_room(views.pending(record, MOST_CALLS))
    lacks_budget = record.account is not None and record.account.question is not None
    count = len(views.waiting(record)) + len(open_doubts(record)) + lacks_budget
    if not (calls or count or record.pause or record.life.hold or record.life.host_away):
        return ""
    found = Waits.model_validate(
        {
            **told(record),
            "calls": calls,
            "left_out": count - len(calls),
            "hold": record.life.hold,
            "host_away": record.life.host_away,
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

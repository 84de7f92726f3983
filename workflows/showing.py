"""What a session shows of itself without being asked: a page in the Web UI, and its row in the server's index."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from agent.index import Row, row_of
from agent.record import Record
from agent.steps import Compress, Step, Think
from workflows.contract import DEADLINE, RISK, STATUS, TEAM, TOOLS, WAITING_SINCE
from workflows.details import details


class Showing:
    """Tells the server how things stand. The index costs an event, so only when something has changed."""

    def __init__(self, record: Record, running: Collection[str]) -> None:
        """`running`: the calls that are under way, by id, as they are whenever something is shown."""
        self._record = record
        self._running = running
        self._shown = _row_before()

    def begin(self, step: Step) -> None:
        """The page alone, which costs no event: the index changes where it always has, or replays would differ."""
        if isinstance(step, Think | Compress):
            workflow.set_current_details(details(self._record, step=step))

    def show(self) -> None:
        workflow.set_current_details(details(self._record, self._running))
        row = row_of(self._record)
        if row == self._shown or not self._record.search_attributes:
            return
        changes = list(_changes(self._shown, row))
        self._shown = row
        workflow.upsert_search_attributes(changes)  # pyright: ignore[reportUnknownMemberType]  the SDK's own type


def _row_before() -> Row:
    """As it stands in the index: a run that was rolled over into need not say it again."""
    known = workflow.info().typed_search_attributes
    deadline = known.get(DEADLINE)
    return Row(
        status=known.get(STATUS) or "",
        tools=tuple(known.get(TOOLS) or ()),
        risk=known.get(RISK) or "",
        team=known.get(TEAM) or "",
        deadline=round(deadline.timestamp() * 1000) if deadline else 0,
    )


def _changes(before: Row, row: Row) -> list[SearchAttributeUpdate[Any]]:
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
    return changes


def _set_or_unset(key: SearchAttributeKey[Any], value: Any) -> SearchAttributeUpdate[Any]:
    return key.value_set(value) if value else key.value_unset()

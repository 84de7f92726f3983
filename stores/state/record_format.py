"""The format of a record in a store, and the checks before it is believed again.

A body is one JSON object in two parts: all that is small on the first line, segments, state and what is carried on the
second. So a listing reads one line of a file of megabytes.
"""

import json
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from longhaul.agent.fold.agent_state import AgentState
from longhaul.agent.life.migrations import CURRENT, NewerRecord, NoRecord, upgraded
from longhaul.stores.state.session_names import Slot
from longhaul.stores.state.store import DamagedRecord, NewerStored, SessionRecord, SessionRow, no_such_session

_LARGE = {"segments", "state", "carried"}


def stamped(record: SessionRecord) -> SessionRecord:
    """The record as it is written now."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return record.model_copy(update={"updated_at": now, "version": CURRENT})


def slot_of(record: SessionRecord) -> Slot:
    return Slot(record.user_id, record.agent_id, record.session_id)


def spelt(record: SessionRecord) -> str:
    """The body. Any text survives, half surrogate pairs too."""
    try:
        head = record.model_dump_json(exclude=_LARGE)
        tail = record.model_dump_json(include=_LARGE)
    except PydanticSerializationError:
        # Such text has no UTF-8, so it is written in ASCII escapes.
        head = json.dumps(record.model_dump(exclude=_LARGE))
        tail = json.dumps(record.model_dump(include=_LARGE))
    return f"{head[:-1]},\n{tail[1:]}\n"


def head_of(first_line: str) -> dict[str, Any]:
    """What the first line of a body says. Raises ValueError."""
    head = json.loads(first_line.rstrip().removesuffix(",") + "}")
    if not isinstance(head, dict):
        raise ValueError("it is no JSON object")
    return head


def read(body: str | bytes, slot: Slot, where: str) -> SessionRecord:
    """The record that a body holds, brought to the current version. Raises DamagedRecord, or NewerStored."""
    try:
        record = SessionRecord.model_validate(upgraded(json.loads(body)))
    except NewerRecord as error:
        raise NewerStored(f"{where}: {slot.name!r}: {error}") from error
    except ValidationError as error:
        raise DamagedRecord(where, slot.name, _first_wrong(error)) from error
    except NoRecord as error:
        raise DamagedRecord(where, slot.name, str(error)) from error
    except (ValueError, RecursionError) as error:
        # Without the text around the place: a state holds what nobody may read in a log.
        raise DamagedRecord(where, slot.name, f"it is no JSON ({_short(error)})") from error
    if slot_of(record) != slot:
        raise DamagedRecord(where, slot.name, f"it is the session {slot_of(record).name!r}")
    return record


def with_state(record: SessionRecord, state: AgentState) -> SessionRecord:
    """Raises KeyError for the mark of a deletion."""
    if record.deleted_at:
        raise no_such_session(record.user_id, record.agent_id, record.session_id)
    return record.model_copy(update={"state": state})


def row_of(record: SessionRecord) -> SessionRow:
    return SessionRow.model_validate(record.model_dump(include=set(SessionRow.model_fields)))


def newest_first(rows: list[SessionRow]) -> list[SessionRow]:
    return sorted(rows, key=lambda row: row.updated_at, reverse=True)


def _first_wrong(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _short(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return type(error).__name__

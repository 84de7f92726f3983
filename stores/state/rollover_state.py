"""Reads what a stored record has beside the state: all that it needs to go on, or answers with when it is gone."""

from typing import Any

from pydantic import ValidationError

from longhaul.agent.life.rollover_state import Carried
from longhaul.stores.state.store import DamagedRecord, SessionRecord


def carried_of(record: SessionRecord) -> Carried | None:
    """What a later life needs, with the record's own state; None when there is only that state, or not even that.

    Raises DamagedRecord.
    """
    told = extra(record, "carried")
    if told is None:
        return None
    try:
        state = record.state.model_dump(mode="json")
        keeping = {**told["ledger"]["keeping"], "segments": record.segments}
        ledger = {**told["ledger"], "state": state, "keeping": keeping}
        return Carried.model_validate({**told, "ledger": ledger})
    except (ValidationError, LookupError, TypeError) as error:
        raise DamagedRecord("the state store", record.session_id, f"carried: {_first_line(error)}") from error


def extra(record: SessionRecord, name: str) -> Any:
    """A field that only its writer knows; None when there is none."""
    return (record.model_extra or {}).get(name)


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__}"

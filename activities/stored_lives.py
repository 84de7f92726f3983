"""A life of a session as the state store keeps it: the state itself, which anybody may read and edit, and beside it all
else that a later life needs to go on."""

from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from activities.stores.store import DamagedRecord, SessionRecord
from agent.canonical import digest_of
from agent.carried import Carried
from agent.entries import Restored
from agent.state import AgentState
from agent.values import Guest, sparse


class Claim(Guest):
    """What the newest life of the session began with: it has said so here, and has written nothing yet."""

    source: Literal["nothing", "store", "history"]
    hold: str = sparse("")
    note: str = sparse("")


class Life(NamedTuple):
    """Whose record it is."""

    user_id: str | None
    agent: str
    session_id: str
    generation: int
    run_id: str
    """The run that writes it."""


def spelt(life: Life, carried: Carried, *, closed: bool = False, claim: Claim | None = None) -> SessionRecord:
    """The record of this life as far as it has come. Blocking: it writes out the whole state."""
    ledger = carried.ledger
    outside = {
        "carried": carried.model_dump(mode="json", exclude={"ledger": {"state", "segments"}}),
        "state_digest": _digest(ledger.state),
    }
    return _record(life, ledger.state, closed=closed, claim=claim, outside=outside).model_copy(
        update={"seq": ledger.seq, "segments": [segment.model_dump(mode="json") for segment in ledger.segments]}
    )


def spelt_empty(life: Life, claim: Claim) -> SessionRecord:
    """The record of a life that begins with nothing: that it has begun."""
    state = AgentState(session_id=life.session_id, user_id=life.user_id, agent=life.agent)
    return _record(life, state, closed=False, claim=claim, outside={})


def _record(
    life: Life, state: AgentState, *, closed: bool, claim: Claim | None, outside: dict[str, Any]
) -> SessionRecord:
    told: dict[str, Any] = {"claim": claim.model_dump(mode="json")} if claim else {}
    fields: dict[str, Any] = {
        "session_id": life.session_id,
        "user_id": life.user_id,
        "agent_id": life.agent,
        "generation": life.generation,
        "closed": closed,
        "run_id": life.run_id,
        "state": state,
    }
    return SessionRecord(**fields, **outside, **told)


def claim_of(record: SessionRecord) -> Claim | None:
    """None when a checkpoint has been written since, or when it was never claimed."""
    told = _extra(record, "claim")
    return None if told is None else Claim.model_validate(told)


def carried_of(record: SessionRecord) -> Carried | None:
    """What a later life needs, with the record's own state; None when there is only that state, or not even that.

    Raises DamagedRecord.
    """
    told = _extra(record, "carried")
    if told is None:
        return None
    try:
        state = record.state.model_dump(mode="json")
        ledger = {**told["ledger"], "state": state, "segments": record.segments}
        return Carried.model_validate({**told, "ledger": ledger})
    except (ValidationError, LookupError, TypeError) as error:
        raise DamagedRecord("the state store", record.session_id, f"carried: {_first_line(error)}") from error


def was_edited(record: SessionRecord) -> bool:
    """Whether somebody has put another state into the record since a session wrote it."""
    return bool(_extra(record, "state_digest") != _digest(record.state))


def claim_from(found: Restored) -> Claim:
    return Claim(source=found.source, hold=found.hold, note=found.note)


def _digest(state: AgentState) -> str:
    # Without defaults: a release that adds a field must not take every stored state for an edited one.
    return digest_of(state.model_dump(mode="json", exclude_defaults=True))


def _extra(record: SessionRecord, name: str) -> Any:
    return (record.model_extra or {}).get(name)


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__}"

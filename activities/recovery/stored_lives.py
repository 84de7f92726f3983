"""A life of a session as the state store keeps it: the state itself, which anybody may read and edit, and beside it all
else that a later life needs to go on."""

from typing import Any, Literal, NamedTuple

from longhaul.agent.fold.agent_state import AgentState
from longhaul.agent.life.rollover_state import Carried
from longhaul.agent.plain.values import OpenValue, digest_of, sparse
from longhaul.stores.state.store import SessionRecord, extra


class Claim(OpenValue):
    """What the newest life of the session began with: it has said so here, and has written nothing yet."""

    source: Literal["nothing", "store", "history"]
    hold: str = sparse("")
    note: str = sparse("")
    after_deletion: bool = sparse(False)
    """The session had been deleted: no run from before this one counts."""


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
        "carried": carried.model_dump(mode="json", exclude={"ledger": {"state": True, "keeping": {"segments"}}}),
        "state_digest": _digest(ledger.state),
    }
    return _record(life, ledger.state, closed=closed, claim=claim, outside=outside).model_copy(
        update={"seq": ledger.seq, "segments": [segment.model_dump(mode="json") for segment in ledger.keeping.segments]}
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
    told = extra(record, "claim")
    return None if told is None else Claim.model_validate(told)


def was_edited(record: SessionRecord) -> bool:
    """Whether somebody has put another state into the record since a session wrote it."""
    return bool(extra(record, "state_digest") != _digest(record.state))


def _digest(state: AgentState) -> str:
    # Without defaults: a release that adds a field must not take every stored state for an edited one.
    return digest_of(state.model_dump(mode="json", exclude_defaults=True))

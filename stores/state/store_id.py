"""The mark of a store: chosen by chance by the first worker that opens it, and kept in it beside the sessions. Equal
paths of two hosts are two stores, and one server has many addresses; the mark tells."""

import secrets

from longhaul.agent.fold.agent_state import AgentState
from longhaul.stores.state.store import CantReplace, SessionRecord, StateStore
from longhaul.stores.state.user_rules import NO_AGENT

NOBODY = ""
"""As a user; what is kept under no agent's name is no session's."""
MARK = "mark"
MARK_CHARS = 4
"""Of sixteen million marks: it stands in the identity of a worker, and so in many events of each history."""


def new_mark() -> str:
    """Of letters, digits, `-` and `_`."""
    return secrets.token_urlsafe(MARK_CHARS * 3 // 4)


async def mark_of(store: StateStore) -> str:
    """Empty where no worker has left one. Raises StoreError."""
    record = await store.get_session(NOBODY, NO_AGENT, MARK)
    return str((record.model_extra or {}).get(MARK, "")) if record else ""


async def marked(store: StateStore) -> str:
    """The same, left there when there is none. Raises StoreError."""
    mark = await mark_of(store)
    if mark:
        return mark
    record = SessionRecord.model_validate(
        {"session_id": MARK, "user_id": NOBODY, "agent_id": NO_AGENT, "state": _nothing(), MARK: new_mark()}
    )
    try:
        await store.replace_session(record, None)  # the first of several workers wins
    except CantReplace:
        await store.upsert_session(record)
    return await mark_of(store)


def _nothing() -> AgentState:
    return AgentState(session_id=MARK, user_id=NOBODY)

"""Records to store, told apart by their position."""

from pathlib import Path

from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.stores.state.store import SessionRecord


def record(  # noqa: PLR0913  one name for each thing that a test may vary
    seq: int = 1,
    *,
    incarnation: int = 1,
    user: str | None = "ana",
    agent: str = "reviewer",
    session: str = "s-1",
    closed: bool = False,
    text: str = "",
) -> SessionRecord:
    """The state's summary says which one it is: `3.17` is seq 17 of incarnation 3."""
    state = AgentState(session_id=session, user_id=user, agent=agent, summary=f"{incarnation}.{seq}")
    state.context = [UserMsg("ana", text)] if text else []
    return SessionRecord(
        session_id=session, user_id=user, agent_id=agent, incarnation=incarnation, seq=seq, closed=closed, state=state
    )


def files_of(start: str, root: Path, kind: str = "json") -> list[Path]:
    """The files of a file store whose names start so."""
    return sorted(root.rglob(f"{start}*.{kind}"))

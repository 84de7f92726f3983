"""One session as a row of the server's index, and the queries that find such rows."""

from dataclasses import dataclass

from temporalio.client import WorkflowExecution

from workflows.contract import (
    AGENT,
    DEADLINE,
    RISK,
    SESSION,
    STATUS,
    TEAM,
    TOOLS,
    USER,
    WAITING_SINCE,
    WORKFLOW,
)


@dataclass(frozen=True, slots=True)
class SessionCard:
    """One row of `Longhaul.sessions()`: what the server's index knows, without asking the session."""

    session_id: str
    user_id: str | None
    agent: str
    status: str
    """idle, working, waiting, paused; or closed."""
    waiting_since: str
    started_at: str
    workflow_id: str
    team: str = ""
    waiting_tools: tuple[str, ...] = ()
    risk: str = ""
    deadline: str = ""
    """ISO time at which the first call that waits expires."""


def query(
    *,
    session_id: str | None = None,
    user: str | None = None,
    status: str | None = None,
    team: str | None = None,
    tool: str | None = None,
) -> str:
    """The visibility query for open sessions. A condition that the server would misread is left out."""
    wanted = ((USER, user), (SESSION, session_id), (STATUS, status), (TEAM, team), (TOOLS, tool))
    narrowed = "".join(_narrowed(key.name, value) for key, value in wanted)
    return f"WorkflowType = '{WORKFLOW}' AND ExecutionStatus = 'Running'{narrowed}"


def in_doubt(query: str) -> str:
    """Of the sessions that a query finds, those that do not wait, and of which a call is in doubt."""
    return f"{query} AND {STATUS.name} != 'waiting' AND {TOOLS.name} IS NOT NULL"


def _narrowed(attribute: str, wanted: str | None) -> str:
    """The condition for one attribute, where the server can apply it.

    It compares another text than the one given for a double quote, a backslash and control characters, so that nothing
    or something else would be found: such a name is looked for among all rows.
    """
    if wanted is None or not wanted.isprintable() or '"' in wanted or "\\" in wanted:
        return ""
    escaped = wanted.replace("'", "\\'")
    return f" AND {attribute} = '{escaped}'"


async def card_of(row: WorkflowExecution) -> SessionCard:
    memo = await _memo(row)
    attributes = row.typed_search_attributes
    since, deadline = attributes.get(WAITING_SINCE), attributes.get(DEADLINE)
    return SessionCard(
        session_id=memo.get("session") or attributes.get(SESSION) or row.id,
        user_id=memo.get("user") if "user" in memo else attributes.get(USER),
        agent=memo.get("agent") or attributes.get(AGENT) or "",
        status=attributes.get(STATUS) or "unknown",
        waiting_since=since.isoformat() if since else "",
        started_at=row.start_time.isoformat(),
        workflow_id=row.id,
        team=attributes.get(TEAM) or "",
        waiting_tools=tuple(attributes.get(TOOLS) or ()),
        risk=attributes.get(RISK) or "",
        deadline=deadline.isoformat() if deadline else "",
    )


async def _memo(row: WorkflowExecution) -> dict[str, str | None]:
    """The texts of the memo. Anybody may start a workflow of our type: its memo must not hide all the others."""
    try:
        memo = await row.memo()
    except Exception:  # noqa: BLE001  each encoding fails in its own way
        return {}
    return {name: value for name, value in memo.items() if value is None or isinstance(value, str)}

"""One session as a row of the server's index, and the queries that find such rows."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus

from longhaul.agent.values.conversation.messages import TITLE_CHARS
from longhaul.stores.keys.keyring import DELETED as KEY_DELETED
from longhaul.workflows.contract import (
    AGENT,
    COST,
    DEADLINE,
    RISK,
    SESSION,
    STATUS,
    TEAM,
    TITLE,
    TOKENS,
    TOOLS,
    USER,
    WAITING_SINCE,
    WAITS,
    WORKFLOW,
    BlobGone,
    Waits,
)

CLOSED = "closed"
"""Status of a session that is not open."""
Users = str | Collection[str] | None
"""Whose sessions: of one user, of several, or of everybody."""
DELETED = "deleted"
"""And of one whose key was deleted while the server still lists it."""


@dataclass(frozen=True, slots=True)
class SessionCard:
    """One row of `Longhaul.sessions()`: what the server's index knows. The session itself is not asked."""

    session_id: str
    user_id: str | None
    agent: str
    status: str
    """`idle`, `working`, `waiting`, `paused`, `closed`; or `deleted` if the session's key is deleted and the server
    still has the row."""
    waiting_since: str
    started_at: str
    workflow_id: str
    team: str = ""
    waiting_tools: tuple[str, ...] = ()
    risk: str = ""
    deadline: str = ""
    """ISO time at which the first waiting call expires."""
    root_workflow_id: str = ""
    """For a sub-agent: workflow id of the session at the root of its tree."""
    parent_workflow_id: str = ""
    """And of the session that started it."""
    title: str = ""
    """The beginning of the request with which the session was started or opened again. Empty: there was no request."""
    tokens: int = 0
    """Tokens that the session's models have read and written. Updated when it starts a reply, waits, or becomes
    idle."""
    dollars: float = 0.0
    """What these tokens cost in US dollars, if the session has a budget in money, so that workers know the prices."""


def query(
    *,
    session_id: str | None = None,
    user: Users = None,
    status: str | None = None,
    team: str | None = None,
    tool: str | None = None,
    closed: bool = False,
) -> str:
    """The visibility query for open sessions; with `closed`, for those too that have closed, each by its last run. A
    condition that the server would misread is left out."""
    wanted = ((USER, user), (SESSION, session_id), (STATUS, status), (TEAM, team), (TOOLS, tool))
    narrowed = "".join(_narrowed(key.name, value) for key, value in wanted)
    runs = "ExecutionStatus != 'ContinuedAsNew'" if closed else "ExecutionStatus = 'Running'"
    return f"WorkflowType = '{WORKFLOW}' AND {runs}{narrowed}"


def is_of(user: Users, owner: str | None) -> bool:
    return user is None or owner == user or (not isinstance(user, str) and owner in user)


def nobodys() -> str:
    """The query for the sessions that are open and have no user."""
    return f"{query()} AND {USER.name} IS NULL"


def by_ids(workflow_ids: Iterable[str]) -> str:
    """The query for the sessions of these ids that are open. One that the server might misread is left out."""
    plain = sorted(filter(_is_plain, workflow_ids))
    wanted = ", ".join(f"'{one}'" for one in plain)
    return f"{query()} AND WorkflowId IN ({wanted})" if plain else ""


def open_below(workflow_id: str) -> str:
    """The query for the sub-agents that are open in the tree with this head; empty for an id that the server might
    misread."""
    return f"{query()} AND RootWorkflowId = '{workflow_id}'" if _is_plain(workflow_id) else ""


def children_of(workflow_id: str) -> str:
    """The query for the sub-agents that a session has started, open or closed, as far as the server has not forgotten
    them; empty for an id that the server might misread."""
    return f"WorkflowType = '{WORKFLOW}' AND ParentWorkflowId = '{workflow_id}'" if _is_plain(workflow_id) else ""


def outcome_unknown(query: str) -> str:
    """Of the sessions that a query finds, those that do not wait, and of which a call is of unknown outcome."""
    return f"{query} AND {STATUS.name} != 'waiting' AND {TOOLS.name} IS NOT NULL"


def asking(query: str) -> str:
    """Of the sessions that a query finds, those with a call that waits for somebody, or only sleeps."""
    return f"{query} AND {TOOLS.name} IS NOT NULL"


SLEEPS = ("sleep", "wait_for")
"""Tools whose calls wait for a time or an event: nobody has to answer them."""


def asks(card: SessionCard) -> bool:
    """Whether one of its calls waits for somebody."""
    return card.status != CLOSED and not {*SLEEPS} >= {*card.waiting_tools}


def leads_of_asking(cards: Iterable[SessionCard]) -> set[str]:
    """Workflow ids of the sessions below which a sub-agent waits for somebody: the one that started it, the root, and
    those between them that are among these cards."""
    known = {card.workflow_id: card for card in cards}
    found = set[str]()
    for card in filter(asks, known.values()):
        found.add(card.root_workflow_id)
        above = card.parent_workflow_id
        while above and above not in found:
            found.add(above)
            above = known[above].parent_workflow_id if above in known else ""
    return found - {""}


def _is_plain(workflow_id: str) -> bool:
    return workflow_id.isprintable() and not {"'", '"', "\\"} & {*workflow_id}


def _narrowed(attribute: str, wanted: Users) -> str:
    """The condition for one attribute, where the server can apply it.

    It compares another text than the one given for a double quote, a backslash and control characters, so that nothing
    or something else would be found: such a name is looked for among all rows.
    """
    names = [wanted] if isinstance(wanted, str) else sorted(wanted or ())
    if not names or any(not name.isprintable() or {'"', "\\"} & {*name} for name in names):
        return ""
    escaped = ", ".join("'" + name.replace("'", "\\'") + "'" for name in names)
    return f" AND {attribute} IN ({escaped})" if len(names) > 1 else f" AND {attribute} = {escaped}"


async def card_of(row: WorkflowExecution) -> SessionCard:
    return (await card_and_waits(row))[0]


async def card_and_waits(row: WorkflowExecution) -> tuple[SessionCard, Waits | None]:
    """The session, and what it waits for; None where the row does not say so, or can't be read here."""
    memo = await texts_of_memo(row)
    if memo is None:
        return replace(_card(row, {}), status=DELETED), None
    told = memo.get(WAITS)
    try:
        waits = Waits.model_validate_json(told) if told else None
    except ValidationError:
        waits = None  # somebody else's memo, or of a later release
    return _card(row, memo), waits


def _card(row: WorkflowExecution, memo: Mapping[str, str | None]) -> SessionCard:
    attributes = row.typed_search_attributes
    since, deadline = attributes.get(WAITING_SINCE), attributes.get(DEADLINE)
    return SessionCard(
        session_id=memo.get("session") or attributes.get(SESSION) or row.id,
        user_id=memo.get("user") if "user" in memo else attributes.get(USER),
        agent=memo.get("agent") or attributes.get(AGENT) or "",
        status=CLOSED
        if row.status not in (None, WorkflowExecutionStatus.RUNNING)
        else attributes.get(STATUS) or "unknown",
        waiting_since=since.isoformat() if since else "",
        started_at=row.start_time.isoformat(),
        workflow_id=row.id,
        team=attributes.get(TEAM) or "",
        waiting_tools=tuple(attributes.get(TOOLS) or ()),
        risk=attributes.get(RISK) or "",
        deadline=deadline.isoformat() if deadline else "",
        root_workflow_id=row.root_id if row.root_id not in (None, row.id) else "",
        parent_workflow_id=row.parent_id or "",
        title=(memo.get(TITLE) or "")[:TITLE_CHARS],
        tokens=attributes.get(TOKENS) or 0,
        dollars=attributes.get(COST) or 0.0,
    )


async def texts_of_memo(row: WorkflowExecution) -> dict[str, str | None] | None:
    """The texts of the memo; None where its key was deleted. Anybody may start a workflow of our type: its memo must
    not hide all the others."""
    try:
        memo = await row.memo()
    except BlobGone as error:
        return None if KEY_DELETED in str(error) else {}
    except Exception:  # noqa: BLE001  each encoding fails in its own way
        return {}
    return {name: value for name, value in memo.items() if value is None or isinstance(value, str)}

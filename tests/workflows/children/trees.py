"""Sessions with sub-agents: a lead whose first turn gives out tasks, and how such a tree is looked at."""

from typing import Any

from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.client.session import Session
from longhaul.workflows.contract import PendingCall
from tests.workflows.conftest import UNWATCHED, Line, Stage
from tests.workflows.operations import until

SUMMED_UP: Line = {"text": "Summed up."}


def tasks(*pairs: str) -> Line:
    """`tasks("t1 scout", "t2 scout")`: a turn that gives out two tasks, by call id and agent."""
    split = (pair.split(" ") for pair in pairs)
    made = [
        {"id": call_id, "name": "Agent", "input": {"agent": agent, "task": f"see to {call_id}"}}
        for call_id, agent in split
    ]
    return {"tool_calls": made}


def agent(stage: Stage, *lines: Line, **spec: Any) -> dict[str, Any]:
    """A sub-agent that says these lines."""
    return {"model": stage.script(*lines), "tools": ["fetch", "send"], "stuck": UNWATCHED.model_dump(), **spec}


def lead(stage: Stage, agents: dict[str, Any], *lines: Line, **spec: Any) -> Session:
    """A session that nobody has written to, whose first turn gives its one task, or says the first line."""
    given = lines or (tasks("t1 scout"), SUMMED_UP)
    return stage.session(*given, agents=agents, tools=(), **spec)


def child_of(stage: Stage, session: Session, call_id: str = "t1", name: str = "scout") -> Session:
    """The sub-agent's session of that call."""
    spec = session.spec.model_copy(update={"name": name})
    return stage.app.session(f"{session.id}.{call_id}", user=session.user, agent=spec)


async def asked(child: Session) -> PendingCall:
    """The call in it that waits for a person."""

    async def asks() -> bool:
        return await child.has_started() and bool(await child.pending())

    await until(asks)
    (call,) = await child.pending()
    return call


async def listed(stage: Stage, child: Session) -> PendingCall:
    """The same, as the server's index has it: the session is not asked, of which a worker may just have died."""
    found = list[PendingCall]()

    async def stands_there() -> bool:
        calls = (await stage.app.inbox()).calls
        found.extend(call for card, call in calls if card.session_id == child.id)
        return bool(found)

    await until(stands_there)
    return found[0]


async def outcomes(session: Session) -> list[tuple[str, str, str]]:
    """Each sub-agent: call, agent, how it ended. Those of one turn are started at once, in no order."""
    return sorted((child.call_id, child.agent, child.outcome) for child in (await session.status()).children)


async def ended(session: Session, reply_id: str) -> Msg:
    """The message of a reply that has ended, whatever its sub-agents asked meanwhile."""

    async def has_ended() -> bool:
        return (await session.result(reply_id)).status == "finished"

    await until(has_ended)
    return await session.wait(reply_id)


async def runs(stage: Stage, child: Session) -> int:
    """Of the sub-agent's workflow: 1 where it was started once."""
    await child.status()
    return len([row async for row in stage.client.list_workflows(f"WorkflowId = '{child.workflow_id}'")])

"""Operations as nobody should send them: payloads byte by byte, past every converter."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from longhaul.activities.contract import ENTRIES, EntriesPage
from longhaul.agent.decisions.call_rulings import LONGEST_RULES_CHARS
from longhaul.agent.entries import AnyEntry
from longhaul.agent.values.conversation.messages import Msg, ToolResultState
from longhaul.starter.client.session import Session
from longhaul.workflows.contract import REFUSED, PendingCall
from tests.limits import pause
from tests.workflows.conftest import Stage

ASKS = ({"text": "I write to Ana.", "tool_calls": [{"name": "send", "input": {"to": "Ana"}}]}, {"text": "Written."})
"""A model whose first turn has to wait for a person."""
WORDY = [{"tool_name": "Bash", "rule_content": key * (LONGEST_RULES_CHARS // 2), "behavior": "deny"} for key in "ab"]
"""More rules than are sent with a model call, so that what its answer calls for is read within the session's task."""


def raw(data: bytes, encoding: str = "json/plain", **metadata: bytes) -> RawValue:
    """One argument with exactly these bytes."""
    return RawValue(Payload(metadata={"encoding": encoding.encode(), **metadata}, data=data))


def json_text(text: str) -> RawValue:
    return raw(text.encode("utf-8", "surrogatepass"))


async def refused_signal(stage: Stage, session: Session, name: str, *arguments: Any) -> str:
    """Send it; the reason that the session, asked next, gives for having refused it."""
    before = (await session.status()).refused
    await stage.handle(session).signal(name, args=list(arguments))
    status = await session.status()
    assert status.refused == before + 1, f"{name} was not refused"
    assert status.last_refusals[-1]["name"] == name[:200]
    return status.last_refusals[-1]["reason"]


async def refused_update(stage: Stage, session: Session, name: str, *arguments: Any) -> str:
    """Send it; the sentence that the caller gets."""
    with pytest.raises(WorkflowUpdateFailedError) as failure:
        await stage.handle(session).execute_update(name, args=list(arguments))
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == REFUSED, cause
    return cause.message


async def approve_and_finish(session: Session, reply_id: str) -> str:
    """Approve the one call that waits; the text of the reply that comes of it."""
    (call,) = await session.pending()
    await session.confirm(call, allow=True)
    return (await session.wait(reply_id)).get_text_content()


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    """A line of a script: one call."""
    return {"tool_calls": [{"name": name, "input": arguments}]}


def results(message: Msg) -> list[tuple[ToolResultState, str]]:
    """What the calls of a reply came to."""
    return [(result.state, result.get_text()) for result in message.get_tool_results()]


async def recorded(stage: Stage, session: Session) -> tuple[AnyEntry, ...]:
    """The entries that a short session still holds."""
    page: EntriesPage = await stage.handle(session).query(ENTRIES, 1, result_type=EntriesPage)
    return page.entries


async def next_call(session: Session, answered: PendingCall) -> PendingCall:
    """The call that waits after this one was answered."""
    began = time.monotonic()
    while not (waiting := [call for call in await session.pending() if call != answered]):  # noqa: ASYNC110  as below
        await asyncio.sleep(pause(time.monotonic() - began))
    return waiting[0]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait, without end, for something to become true: the test's own time limit ends it."""
    began = time.monotonic()
    while not await holds():  # noqa: ASYNC110  what is waited for happens in another process
        await asyncio.sleep(pause(time.monotonic() - began))


class OnAServer(Protocol):
    @property
    def address(self) -> str: ...


async def push_over(stage: OnAServer, session: Session) -> None:
    """Send malformed input until the session has continued as new: four megabytes of it make the history long.

    A few at a time, and the next ones when these were read. The server ends a session's task when more than a hundred
    operations or two megabytes come meanwhile, and no session can continue as new while operations come without end.
    Ten times this is enough: a checkpoint of a large session takes seconds, and in these the history must not fill up.
    """
    keeps_nothing_in_blobs = await Client.connect(stage.address)
    handle = keeps_nothing_in_blobs.get_workflow_handle(session.workflow_id)
    first = (await handle.describe()).run_id

    rounds = iter(range(10))

    async def rolled() -> bool:
        if next(rounds, None) is not None:
            await asyncio.gather(*(handle.signal("nonsense", "x" * 200_000) for _ in range(7)))
        await session.status()
        return (await handle.describe()).run_id != first

    await until(rolled)

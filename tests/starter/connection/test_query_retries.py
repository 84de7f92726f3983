"""What is sent again, and what is not."""

import asyncio

import pytest
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.starter.connection import query_retries
from longhaul.starter.connection.query_retries import insist, send_again
from tests.limits import usual


class Operations:
    """Fails with each of these in turn, then is taken."""

    def __init__(self, *failures: BaseException) -> None:
        self._failures = list(failures)
        self.sent = 0

    async def send(self) -> str:
        self.sent += 1
        if self._failures:
            raise self._failures.pop(0)
        return "taken"


def failed(kind: str) -> WorkflowUpdateFailedError:
    return WorkflowUpdateFailedError(ApplicationError("why", type=kind))


def unanswered(status: RPCStatusCode) -> RPCError:
    return RPCError("why", status, b"")


def of_updates(cause: BaseException) -> WorkflowUpdateRPCTimeoutOrCancelledError:
    """As the SDK wraps what has kept an update's answer from coming."""
    error = WorkflowUpdateRPCTimeoutOrCancelledError()
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("failure", [failed("UnprocessedUpdate"), unanswered(RPCStatusCode.RESOURCE_EXHAUSTED)])
async def test_what_the_session_has_surely_not_seen_is_sent_again_also_when_it_must_not_be_doubled(
    failure: Exception,
) -> None:
    operations = Operations(failure, failure)

    assert await send_again(operations.send, repeatable=False) == "taken"
    assert operations.sent == 3


FOR_GOOD = {
    RPCStatusCode.INVALID_ARGUMENT,
    RPCStatusCode.NOT_FOUND,
    RPCStatusCode.ALREADY_EXISTS,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
    RPCStatusCode.OUT_OF_RANGE,
    RPCStatusCode.UNIMPLEMENTED,
    RPCStatusCode.DATA_LOSS,
    RPCStatusCode.OK,
}
"""Time does not fix these. All others may be a server that has just been killed, or a connection that broke."""
ITS_TASKS_FAIL = RPCStatusCode.FAILED_PRECONDITION
NOT_LET_IN = RPCStatusCode.RESOURCE_EXHAUSTED


PASSING = sorted(set(RPCStatusCode) - FOR_GOOD - {NOT_LET_IN, ITS_TASKS_FAIL})


@pytest.mark.parametrize("status", PASSING, ids=str)
async def test_what_it_may_have_seen_is_sent_again_only_where_that_does_no_harm(status: RPCStatusCode) -> None:
    harmless, harmful = Operations(unanswered(status)), Operations(unanswered(status))

    assert await send_again(harmless.send, repeatable=True) == "taken"
    with pytest.raises(RPCError):
        await send_again(harmful.send, repeatable=False)

    assert (harmless.sent, harmful.sent) == (2, 1)


@pytest.mark.parametrize("status", [RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED], ids=str)
async def test_an_update_that_nobody_answered_is_one_that_may_have_been_seen(status: RPCStatusCode) -> None:
    harmless, harmful = Operations(of_updates(unanswered(status))), Operations(of_updates(unanswered(status)))

    assert await send_again(harmless.send, repeatable=True) == "taken"
    with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError):
        await send_again(harmful.send, repeatable=False)

    assert (harmless.sent, harmful.sent) == (2, 1)


async def test_who_is_to_stop_sends_nothing_again() -> None:
    operations = Operations(of_updates(asyncio.CancelledError()))

    with pytest.raises(asyncio.CancelledError):
        await send_again(operations.send, repeatable=True)

    assert operations.sent == 1


@pytest.mark.parametrize("status", sorted(FOR_GOOD), ids=str)
async def test_what_time_does_not_fix_is_not_sent_again(status: RPCStatusCode) -> None:
    operations = Operations(unanswered(status))

    with pytest.raises(RPCError):
        await send_again(operations.send, repeatable=True)

    assert operations.sent == 1


async def test_a_refusal_is_an_answer() -> None:
    operations = Operations(failed("Refused"))

    with pytest.raises(WorkflowUpdateFailedError):
        await send_again(operations.send, repeatable=True)

    assert operations.sent == 1


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_retries, "STUCK_SECONDS", 0.1)
    monkeypatch.setattr(query_retries, "TRIES_SECONDS", 1.0)


REFUSED = unanswered(RPCStatusCode.FAILED_PRECONDITION)


@pytest.mark.usefixtures("hasty")
async def test_tasks_that_busy_workers_did_not_end_in_time_are_not_taken_for_failures() -> None:
    """The server refuses to ask a session after three of either."""
    began, looked = asyncio.get_running_loop().time(), list[RPCError]()

    async def ask() -> str:
        if asyncio.get_running_loop().time() - began < 0.5:
            raise REFUSED
        return "answered"

    async def no_failure(error: RPCError) -> bool:
        looked.append(error)
        return False

    assert await insist(ask, no_failure) == "answered"
    assert looked
    assert set(looked) == {REFUSED}


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("known", "seconds"), [(True, 0.1), (None, 0.1), (False, 1.0)])
async def test_a_session_that_refuses_is_given_up_at_once_where_it_is_known_why(
    known: bool | None, seconds: float
) -> None:
    began = asyncio.get_running_loop().time()
    operations = Operations(*[REFUSED] * 10_000)

    async def look(_: RPCError) -> bool:
        return bool(known)

    with pytest.raises(RPCError):
        await insist(operations.send, None if known is None else look)
    assert seconds <= asyncio.get_running_loop().time() - began < usual(seconds + 0.5)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("status", [RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.RESOURCE_EXHAUSTED], ids=str)
async def test_nobody_gives_up_on_a_session_that_only_waits_its_turn(status: RPCStatusCode) -> None:
    began = asyncio.get_running_loop().time()

    async def take() -> str:
        if asyncio.get_running_loop().time() - began < 2.0:
            raise unanswered(status)
        return "taken"

    async def no_failure(_: RPCError) -> bool:
        return False

    async def behind() -> bool:
        return True

    async def broken() -> bool:
        return False

    taken = await asyncio.gather(send_again(take, repeatable=False, is_behind=behind), insist(take, no_failure, behind))
    assert [*taken] == ["taken", "taken"]
    began = asyncio.get_running_loop().time()
    with pytest.raises(RPCError):
        await send_again(take, repeatable=False, is_behind=broken)

"""What is sent again, and what is not."""

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from starter.patience import send_again


class Letters:
    """Fails with each of these in turn, then is taken."""

    def __init__(self, *failures: Exception) -> None:
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


@pytest.mark.parametrize("failure", [failed("UnprocessedUpdate"), unanswered(RPCStatusCode.RESOURCE_EXHAUSTED)])
async def test_what_the_session_has_surely_not_seen_is_sent_again_also_when_it_must_not_be_doubled(
    failure: Exception,
) -> None:
    letters = Letters(failure, failure)

    assert await send_again(letters.send, repeatable=False) == "taken"
    assert letters.sent == 3


async def test_what_it_may_have_seen_is_sent_again_only_where_that_does_no_harm() -> None:
    lost, doubled = unanswered(RPCStatusCode.UNAVAILABLE), unanswered(RPCStatusCode.UNAVAILABLE)
    harmless, harmful = Letters(lost), Letters(doubled)

    assert await send_again(harmless.send, repeatable=True) == "taken"
    with pytest.raises(RPCError):
        await send_again(harmful.send, repeatable=False)

    assert (harmless.sent, harmful.sent) == (2, 1)


async def test_a_refusal_is_an_answer() -> None:
    letters = Letters(failed("Refused"))

    with pytest.raises(WorkflowUpdateFailedError):
        await send_again(letters.send, repeatable=True)

    assert letters.sent == 1

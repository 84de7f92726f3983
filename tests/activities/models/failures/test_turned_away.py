"""Which failures of a model call are certainly not billed: refusals of a provider, and calls that never reached one."""

import socket

import anthropic
import httpx
import openai
import pytest

from longhaul.activities.models.failures.failure_classification import is_turned_away
from longhaul.activities.models.failures.status_table import IncompleteStreamError, ProviderError, SetupError
from tests.activities.models.failures.test_failure_classification import REQUEST, claude_error, gpt_error

NOT_THERE = httpx.ConnectError("nobody listens")
LOOKED_UP = httpx.ConnectError("no such host")
LOOKED_UP.__cause__ = socket.gaierror("no such host")


def wrapped(cause: Exception) -> Exception:
    error = anthropic.APIConnectionError(request=REQUEST)
    error.__cause__ = cause
    return error


FREE: dict[str, Exception] = {
    **{f"Claude's {status}": claude_error(status) for status in (400, 401, 402, 403, 404, 413, 429, 500, 503, 529)},
    **{f"OpenAI's {status}": gpt_error(status) for status in (400, 401, 404, 429, 500, 502, 503)},
    "a fault of a script": ProviderError(529, "overloaded_error", "busy"),
    "nobody listens": wrapped(NOT_THERE),
    "no such host": wrapped(LOOKED_UP),
    "no connection in time": wrapped(httpx.ConnectTimeout("late")),
    "no key": SetupError("The environment variable is not set."),
}
IN_UNKNOWN_OUTCOME: dict[str, Exception] = {
    **{f"a gateway's {status}": gpt_error(status) for status in (408, 499, 504, 524)},
    "broken off": wrapped(httpx.ReadError("reset")),
    "no answer in time": wrapped(httpx.ReadTimeout("late")),
    "reset": ConnectionResetError(),
    "half a stream": IncompleteStreamError("cut"),
    "nothing is known": openai.APIConnectionError(request=REQUEST),
    "a defect": KeyError("x"),
    "out of time": TimeoutError(),
}


@pytest.mark.parametrize("error", FREE.values(), ids=FREE.keys())
def test_what_was_turned_away_is_free(error: Exception) -> None:
    assert is_turned_away(error)


@pytest.mark.parametrize("error", IN_UNKNOWN_OUTCOME.values(), ids=IN_UNKNOWN_OUTCOME.keys())
def test_what_may_have_been_answered_is_of_unknown_outcome(error: Exception) -> None:
    assert not is_turned_away(error)

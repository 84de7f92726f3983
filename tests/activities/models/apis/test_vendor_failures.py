"""What a failed call through pydantic-ai comes to, told by servers on real ports in their vendors' own forms."""

import asyncio
import contextlib
import json
from typing import Any

import pydantic_ai.exceptions
import pytest

from longhaul.activities.models.failures.failure_classification import (
    class_names,
    is_turned_away,
    judge,
    refusal_in,
)
from longhaul.activities.models.failures.status_table import BY_CATEGORY, BY_CLASS, IncompleteStreamError
from longhaul.activities.models.model import ModelReply
from tests.activities.models.apis.test_vendors import GOOGLES, asking
from tests.activities.models.converse_wire import converse_begins, converse_turn
from tests.activities.models.wire import (
    Answer,
    Wire,
    chat_chunk,
    chunks,
    cohere_events,
    cohere_piece,
    google_chunk,
)

WIRES = ("bedrock", "cohere", "deepseek", "google", "google-vertex", "groq", "mistral", "openrouter")
"""One vendor for each of the library's readers of errors."""
OF_AGENTS = {
    "RunCancelled",
    "RunTimedOut",
    "SuspendedResponseExpired",
    "UsageLimitExceeded",
    "ConcurrencyLimitExceeded",
}
"""Of the library's own loop, which does not run here."""
OTHER_THAN_CALLS = {"AgentRunError", "ModelConnectionError", "ModelTimeoutError", "ModelRequestTimeout"}


def error_body(vendor: str, status: int, message: str, code: str) -> bytes:
    if vendor == "bedrock":
        return json.dumps({"__type": code, "message": message}).encode()
    if vendor in GOOGLES:
        return json.dumps({"error": {"code": status, "message": message, "status": code}}).encode()
    if vendor == "cohere":
        return json.dumps({"id": "r1", "message": message}).encode()
    if vendor == "mistral":
        return json.dumps({"object": "error", "message": message, "type": code, "code": "1000"}).encode()
    return json.dumps({"error": {"message": message, "type": code, "code": code}}).encode()


FAILURES: list[tuple[int, str, str, str, str]] = [
    (400, "messages: roles must alternate", "invalid_request_error", "never", "invalid_request"),
    (401, "bad key", "authentication_error", "fall_back", "authentication"),
    (402, "no credit left", "billing_error", "fall_back", "rate_limit"),
    (403, "not this model", "permission_error", "fall_back", "permission"),
    (404, "no such model", "not_found_error", "fall_back", "invalid_request"),
    (400, "maximum context length is 128000 tokens", "context_length_exceeded", "compress", "context_overflow"),
    (429, "slow down", "rate_limit_error", "retry", "rate_limit"),
    (500, "it broke", "server_error", "retry", "upstream"),
    (503, "busy", "overloaded_error", "retry", "upstream"),
    (400, "Could not process image", "invalid_request_error", "repair", "invalid_request"),
]


@pytest.mark.parametrize("told", FAILURES)
@pytest.mark.parametrize("vendor", WIRES)
async def test_the_verdict_fits_the_failure(wire: Wire, vendor: str, told: tuple[int, str, str, str, str]) -> None:
    status, message, code, kind, error_type = told
    body = error_body(vendor, status, message, code)
    wire.answers = [Answer(body, status, {"content-type": "application/json"})] * 3
    error = await failure(wire, vendor)

    assert (judge(error).kind, judge(error).error_type) == (kind, error_type)
    if kind != "fall_back" or status != 401:
        assert message in judge(error).sentence
    assert len(wire.heads) == 1
    assert (refusal_in(error)[0] is not None) == (kind == "repair")


def begins_of(vendor: str, reason: str = "") -> bytes:
    """Some words, and how they ended."""
    if vendor == "bedrock":
        return converse_turn(None, "Fair wi", reason=reason) if reason else converse_begins("Fair wi")
    if vendor in GOOGLES:
        return chunks(google_chunk({"text": "Fair wi"}, reason=reason or None), done=False)
    if vendor == "cohere":
        return cohere_events(cohere_piece("content-delta", content={"text": "Fair wi"}), reason=reason)
    started = [chat_chunk({"role": "assistant", "content": "Fair wi"})]
    return chunks(*started, *([chat_chunk({}, reason)] if reason else []), done=bool(reason))


async def failure(wire: Wire, vendor: str, **more: Any) -> Exception:
    reply: ModelReply | None = None
    async with asking(wire, vendor) as it:
        try:
            reply = await it.call("Hi", **more)
        except Exception as error:  # noqa: BLE001  it is what the tests are about
            return error
    raise AssertionError(reply)


@pytest.mark.parametrize("vendor", WIRES)
async def test_a_pause_that_is_asked_for_is_heard(wire: Wire, vendor: str) -> None:
    headers = {"content-type": "application/json", "retry-after": "7"}
    wire.answers = [Answer(error_body(vendor, 429, "slow down", "rate_limit_error"), 429, headers)]

    action = judge(await failure(wire, vendor))

    assert (action.kind, action.delay_seconds) == ("retry_after", 7)


@pytest.mark.parametrize("vendor", WIRES)
async def test_a_stream_that_breaks_off_or_falls_silent_is_no_answer(wire: Wire, vendor: str) -> None:
    started = begins_of(vendor)
    as_there = vendor == "bedrock"
    wire.answers = [
        Answer(started, chunked=as_there),
        Answer(started, whole=False, chunked=as_there),
        Answer(started, whole=False, then_wait=True, chunked=as_there),
    ]

    ended, cut = await failure(wire, vendor), await failure(wire, vendor)
    silent = await failure(wire, vendor, config={"silence_seconds": 0.5})

    assert [judge(error).kind for error in (ended, cut, silent)] == ["retry"] * 3
    assert isinstance(silent, IncompleteStreamError)
    assert "fell silent: nothing has come of its answer for 0.5 s" in str(silent)


@pytest.mark.parametrize("vendor", WIRES)
async def test_an_answer_that_is_no_json_is_asked_for_again(wire: Wire, vendor: str) -> None:
    wire.answers = [Answer(b"data: {never ends\n\n")]

    assert judge(await failure(wire, vendor)).kind == "retry"


@pytest.mark.parametrize("vendor", WIRES)
async def test_a_server_that_nobody_has_is_asked_again(wire: Wire, vendor: str) -> None:
    wire.url = "http://127.0.0.1:9"

    error = await failure(wire, vendor)

    assert (judge(error).kind, judge(error).error_type) == ("retry", "connection")
    assert is_turned_away(error)


@pytest.mark.parametrize("vendor", WIRES)
async def test_a_limit_and_a_filter_are_told_as_reasons(wire: Wire, vendor: str) -> None:
    words = ("MAX_TOKENS", "SAFETY") if vendor in ("cohere", *GOOGLES) else ("length", "content_filter")
    words = ("max_tokens", "guardrail_intervened") if vendor == "bedrock" else words
    told = words if vendor not in ("cohere", "groq", "mistral") else words[:1]
    wire.answers = [Answer(begins_of(vendor, word)) for word in told]
    stops: list[str] = []
    async with asking(wire, vendor) as it:
        while wire.answers:
            stops.append((await it.call("Hi")).stop.value)

    assert stops == ["length", "filtered"][: len(stops)]


@pytest.mark.parametrize("vendor", WIRES)
async def test_cancelling_hangs_up(wire: Wire, vendor: str) -> None:
    wire.answers = [Answer(begins_of(vendor), whole=False, then_wait=True, chunked=vendor == "bedrock")]
    async with asking(wire, vendor) as it:
        task = asyncio.create_task(it.call("Hi"))
        async with asyncio.timeout(30):
            await it.began.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert task.cancelled()
            del task  # with the stream that it has left
            await wire.hung_up.wait()

    assert it.heard("text") == "Fair wi"


def test_every_failure_of_the_library_has_a_verdict() -> None:
    found = [kind for kind in vars(pydantic_ai.exceptions).values() if isinstance(kind, type)]
    of_calls = [kind for kind in found if issubclass(kind, pydantic_ai.exceptions.AgentRunError)]
    nearest = {
        kind.__name__: next(name for name in class_names(kind) if name in BY_CATEGORY or name in BY_CLASS)
        for kind in of_calls
    }

    assert len(of_calls) > 25
    assert {name for name, row in nearest.items() if row == "pydantic_ai.AgentRunError"} == OF_AGENTS | {
        "AgentRunError"
    }
    assert {name.partition(".")[2] for name in BY_CATEGORY} | OTHER_THAN_CALLS <= {*nearest}

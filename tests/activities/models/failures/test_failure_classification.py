"""Every failure that a call can end in has a verdict, and the one that it deserves."""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from anthropic._error_classes import ERROR_CLASSES, make_status_error

from longhaul.activities.models.failures.error_bodies import read_retry_after
from longhaul.activities.models.failures.failure_classification import class_names, judge
from longhaul.activities.models.failures.status_table import (
    BY_CLASS,
    IncompleteStreamError,
    ProviderError,
    ScriptError,
    SetupError,
)

REQUEST = httpx2.Request("POST", "https://provider.example/v1", headers={"x-api-key": "sk-ant-secretsecret"})


def answered(status: int, **headers: str) -> httpx2.Response:
    return httpx2.Response(
        status, headers={name.replace("_", "-"): value for name, value in headers.items()}, request=REQUEST
    )


def claude_error(status: int, kind: str = "", message: str = "", code: str = "", **headers: str) -> Exception:
    error = {"type": kind, "message": message, "details": {"error_code": code} if code else None}
    return make_status_error("raw", body={"type": "error", "error": error}, response=answered(status, **headers))


def gpt_error(status: int, code: str | None = None, message: str = "", **headers: str) -> Exception:
    classes = {400: openai.BadRequestError, 401: openai.AuthenticationError, 404: openai.NotFoundError}
    kind = classes.get(status, openai.RateLimitError if status == 429 else openai.APIStatusError)
    return kind("raw", response=answered(status, **headers), body={"code": code, "message": message, "type": "t"})


def exceptions_of(package: Any) -> Iterator[type[Exception]]:
    found = [
        value for value in list(vars(package).values()) if isinstance(value, type) and issubclass(value, Exception)
    ]
    for kind in found:
        yield kind
        yield from subclasses(kind)


def subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def test_every_exception_class_of_the_sdks_and_their_http_client_has_a_row() -> None:
    judged_by_status = {"anthropic.APIStatusError", "openai.APIStatusError", "httpx.HTTPStatusError"}
    judged_by_body = {"anthropic.APIError", "openai.APIError"}
    kinds = {kind for package in (anthropic, openai, httpx, httpx2) for kind in exceptions_of(package)}

    rowless = [kind for kind in kinds if not ({*BY_CLASS, *judged_by_status, *judged_by_body} & set(class_names(kind)))]

    assert len(kinds) > 150
    assert rowless == []


def test_only_known_classes_have_no_row_closer_than_the_root_of_their_sdk() -> None:
    """A class that a new SDK release adds beside the known ones has to be thought about: this fails until it is."""
    roots = ("anthropic.AnthropicError", "openai.OpenAIError")
    exported = [value for package in (anthropic, openai) for value in list(vars(package).values())]
    kinds = [kind for kind in exported if isinstance(kind, type) and issubclass(kind, Exception)]

    of_the_root = {
        kind.__name__
        for kind in kinds
        if not issubclass(kind, anthropic.APIStatusError | openai.APIStatusError)
        and kind not in (anthropic.APIError, openai.APIError)
        and next(name for name in class_names(kind) if name in BY_CLASS) in roots
    }

    assert of_the_root == {"AnthropicError", "OpenAIError", "_AmbiguousModuleClientUsageError"}


def test_every_error_code_of_anthropic_has_a_verdict_with_a_cause() -> None:
    kinds = set()
    for status, code in ERROR_CLASSES:
        action = judge(claude_error(status, message="words", code=code or ""))
        kinds.add(action.kind)
        assert action.error_type != "internal", (status, code)
    assert kinds == {"retry", "fall_back", "compress", "repair", "never"}


CLAUDE: list[tuple[Exception, str, str]] = [
    (claude_error(400, "invalid_request_error", "messages.0: bad"), "never", "invalid_request"),
    (claude_error(400, "invalid_request_error", "Could not process image"), "repair", "invalid_request"),
    (claude_error(401, "authentication_error", "invalid x-api-key"), "fall_back", "authentication"),
    (claude_error(403, "permission_error", "no"), "fall_back", "permission"),
    (claude_error(404, "not_found_error", "model: claude-9"), "fall_back", "invalid_request"),
    (claude_error(408, "timeout_error"), "retry", "connection"),
    (claude_error(413, "request_too_large", "Request exceeds the maximum size"), "compress", "context_overflow"),
    (claude_error(429, "rate_limit_error", "slow down"), "retry", "rate_limit"),
    (claude_error(429, "rate_limit_error", "spent", "enforced_spend_limit_reached"), "fall_back", "rate_limit"),
    (claude_error(400, "invalid_request_error", "held", "organization_on_hold"), "fall_back", "permission"),
    (claude_error(500, "api_error", "oh"), "retry", "upstream"),
    (claude_error(529, "overloaded_error", "Overloaded"), "retry", "upstream"),
    (claude_error(200, "overloaded_error", "Overloaded"), "retry", "upstream"),
    (claude_error(200, "rate_limit_error", "slow"), "retry", "rate_limit"),
    (claude_error(200, "invalid_request_error", "bad"), "never", "invalid_request"),
    (claude_error(200, "something_new", "?"), "retry", "upstream"),
    (
        claude_error(400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
        "compress",
        "context_overflow",
    ),
    (
        claude_error(
            400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"
        ),
        "compress",
        "context_overflow",
    ),
    (claude_error(400, "invalid_request_error", "Your credit balance is too low to access"), "fall_back", "rate_limit"),
    (claude_error(500, "api_error", "oh", x_should_retry="false"), "fall_back", "upstream"),
    (claude_error(400, "invalid_request_error", "odd", x_should_retry="true"), "retry", "invalid_request"),
]

GPT: list[tuple[Exception, str, str]] = [
    (gpt_error(400, "invalid_type", "bad"), "never", "invalid_request"),
    (gpt_error(400, "context_length_exceeded", "…"), "compress", "context_overflow"),
    (
        gpt_error(400, None, "This model's maximum context length is 8192 tokens. However"),
        "compress",
        "context_overflow",
    ),
    (
        gpt_error(400, None, "The decoder prompt (length 10127) is longer than the maximum model length"),
        "compress",
        "context_overflow",
    ),
    (gpt_error(400, None, "Your input exceeds the context window of this model."), "compress", "context_overflow"),
    (
        gpt_error(400, "invalid_parameter_error", "Range of input length should be [1, 129024]"),
        "compress",
        "context_overflow",
    ),
    (gpt_error(400, "exceed_context_size_error", "request (9000 tokens)"), "compress", "context_overflow"),
    (
        gpt_error(401, "invalid_api_key", "Incorrect API key provided: sk-proj-abcdef***wxyz"),
        "fall_back",
        "authentication",
    ),
    (gpt_error(404, "model_not_found", "no"), "fall_back", "invalid_request"),
    (gpt_error(400, "model_not_found", "no"), "fall_back", "invalid_request"),
    (gpt_error(422, None, "bad"), "never", "invalid_request"),
    (gpt_error(429, "rate_limit_exceeded", "slow"), "retry", "rate_limit"),
    (gpt_error(429, "insufficient_quota", "pay", retry_after="3"), "fall_back", "rate_limit"),
    (
        gpt_error(429, "rate_limit_exceeded", "Request too large for gpt-4o on tokens per min"),
        "compress",
        "context_overflow",
    ),
    (gpt_error(503, None, "busy"), "retry", "upstream"),
    (gpt_error(501, None, "no"), "fall_back", "upstream"),
    (openai.APIError("cut", REQUEST, body={"code": 503, "message": "engine died"}), "retry", "upstream"),
    (openai.APIError("cut", REQUEST, body=None), "retry", "upstream"),
    (openai.APIResponseValidationError(answered(200), None), "retry", "upstream"),
]

OTHERS: list[tuple[Exception, str, str]] = [
    (anthropic.APITimeoutError(REQUEST), "retry", "connection"),
    (openai.APIConnectionError(request=REQUEST), "retry", "connection"),
    (httpx2.RemoteProtocolError("peer closed"), "retry", "connection"),
    (httpx.ReadError("cut"), "retry", "connection"),
    (httpx2.UnsupportedProtocol("ftp"), "never", "setup"),
    (ssl.SSLCertVerificationError("self-signed"), "retry", "connection"),
    (TimeoutError(), "retry", "connection"),
    (ConnectionResetError(), "retry", "connection"),
    (anthropic.CredentialsError("no file"), "never", "setup"),
    (openai.OpenAIError("?"), "never", "internal"),
    (IncompleteStreamError("cut"), "retry", "connection"),
    (SetupError("set it"), "never", "setup"),
    (ScriptError("line 3"), "never", "invalid_request"),
    (ProviderError(529, "overloaded_error", "busy"), "retry", "upstream"),
    (KeyError("x"), "never", "internal"),
    (OSError(28, "No space left"), "never", "internal"),
]


@pytest.mark.parametrize(("error", "kind", "error_type"), [*CLAUDE, *GPT, *OTHERS])
def test_the_verdict_fits_the_failure(error: Exception, kind: str, error_type: str) -> None:
    action = judge(error)

    assert (action.kind, action.error_type) == (kind, error_type)
    assert action.delay_seconds is None


@pytest.mark.parametrize(
    "words",
    [
        # https://github.com/zed-industries/zed/issues/32946
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 158.",
        "Too many tools are defined.",
        "At most 512 function declarations are supported.",
    ],
)
def test_who_has_too_many_tools_is_told_what_to_do(words: str) -> None:
    action = judge(gpt_error(400, "array_above_max_length", words))

    assert (action.kind, action.error_type) == ("fall_back", "invalid_request")
    assert "more tools than this model's provider takes: name fewer (`enable_tools`" in action.sentence
    assert words in action.sentence


def test_a_bad_address_that_the_sdk_calls_a_connection_error_is_not_retried() -> None:
    error = openai.APIConnectionError(request=REQUEST)
    error.__cause__ = httpx2.UnsupportedProtocol("Request URL is missing a protocol")

    assert (judge(error).kind, judge(error).error_type) == ("never", "setup")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:30 GMT"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 09:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 22 Nov 2026 10:00:00 -0000"}, 3600.0),
        ({"retry-after": "86400"}, 3600.0),
        ({"retry-after": "inf"}, 3600.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_the_provider_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers, datetime(2026, 11, 21, 10, 0, tzinfo=UTC)) == seconds


def test_a_wait_is_honoured_where_another_attempt_makes_sense() -> None:
    limited = judge(claude_error(429, "rate_limit_error", "slow down", retry_after="12"))
    overloaded = judge(claude_error(529, "overloaded_error", "Overloaded", retry_after_ms="40"))
    refused = judge(claude_error(400, "invalid_request_error", "bad", retry_after="12"))

    assert (limited.kind, limited.delay_seconds) == ("retry_after", 12.0)
    assert (overloaded.kind, overloaded.delay_seconds) == ("retry_after", 0.04)
    assert (refused.kind, refused.delay_seconds) == ("never", None)


@pytest.mark.parametrize(
    "words",
    [
        "Incorrect API key provided: sk-proj-abcdef***wxyz",
        "got header Authorization: Bearer abc.def.ghi",
        "x-api-key='topsecretvalue' was refused",
        "proxy http://ana:hunter22@proxy.example refused",
        "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc is stale",
        "A" * 60 + " is bad",
    ],
)
def test_no_secret_reaches_the_sentence(words: str) -> None:
    sentence = judge(gpt_error(400, "bad", words)).sentence

    for secret in ("abcdef", "wxyz", "abc.def", "topsecret", "hunter22", "eyJ", "AAAA"):
        assert secret not in sentence
    assert sentence.startswith("The model's provider refused the request (HTTP 400): ")


def test_a_refused_key_is_not_quoted_and_endless_words_are_cut() -> None:
    refused = judge(gpt_error(401, "invalid_api_key", "Incorrect key provided: zebra"))
    endless = judge(gpt_error(400, "bad", "word\n" * 100_000))

    assert refused.sentence == "The model's provider did not accept the worker's key; check it (HTTP 401)."
    assert len(endless.sentence) < 500
    assert "\n" not in endless.sentence

"""How long a provider asks us to wait, in every form in which providers say it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import openai
import pytest

from longhaul.activities.models.failures.error_bodies import read_retry_after, said_in
from longhaul.activities.models.failures.failure_classification import judge

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
IN_40_SECONDS = "1795255240"
RESETS: dict[str, tuple[dict[str, str], float | None]] = {
    "OpenAI": ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 360.0),
    "OpenAI, milliseconds": ({"x-ratelimit-reset-tokens": "12ms", "x-ratelimit-remaining-tokens": "0"}, 0.012),
    "Groq": ({"x-ratelimit-reset-tokens": "2m59.56s"}, 179.56),
    "Azure": ({"x-ratelimit-reset-tokens": "9"}, 9.0),
    "Anthropic": ({"anthropic-ratelimit-tokens-reset": "2026-11-21T10:00:50Z"}, 50.0),
    "a moment in seconds": ({"x-ratelimit-reset": IN_40_SECONDS}, 40.0),
    "a moment in milliseconds": ({"x-ratelimit-reset": f"{IN_40_SECONDS}000"}, 40.0),
    "the one that is used up": (
        {
            "x-ratelimit-reset-requests": "8h0m0s",
            "x-ratelimit-remaining-requests": "700",
            "x-ratelimit-reset-tokens": "4s",
            "x-ratelimit-remaining-tokens": "0",
        },
        4.0,
    ),
    "both used up": (
        {
            "x-ratelimit-reset-requests": "1h30m",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-tokens": "4s",
            "x-ratelimit-remaining-tokens": "0",
        },
        3_600.0,
    ),
    "its own word before": ({"retry-after": "3", "x-ratelimit-reset-tokens": "50s"}, 3.0),
    "long past": ({"anthropic-ratelimit-requests-reset": "2026-11-20T10:00:00Z"}, 0.0),
    "malformed_input": ({"x-ratelimit-reset-tokens": "soon", "x-ratelimit-reset": ""}, None),
    "not a number": ({"x-ratelimit-reset-tokens": "nan"}, None),
    "another header": ({"x-ratelimit-limit-requests": "60", "x-reset": "5"}, None),
}


@pytest.mark.parametrize("form", RESETS)
def test_a_limit_that_says_when_it_is_full_again_is_waited_for(form: str) -> None:
    headers, seconds = RESETS[form]

    assert read_retry_after(headers, NOW, limited=True) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("hours", [-24, 0, 24])
def test_a_moment_is_meant_by_the_providers_clock(hours: int) -> None:
    headers = {"date": "Sat, 21 Nov 2026 10:00:00 GMT", "retry-after": "Sat, 21 Nov 2026 10:00:07 GMT"}

    assert read_retry_after(headers, NOW + timedelta(hours=hours)) == 7.0


def test_limits_that_come_with_another_failure_say_nothing() -> None:
    assert read_retry_after({"x-ratelimit-reset-tokens": "50s"}, NOW) is None


def google_says(delay: str | None) -> dict[str, Any]:
    quota = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "PerMinute"}]}
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo"} | ({"retryDelay": delay} if delay is not None else {})
    return {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED", "details": [quota, info]}}


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (google_says("39s"), 39.0),
        ([google_says("45.837906927s")], 45.837906927),
        (google_says("99999s"), 99_999.0),
        (google_says("0s"), 0.0),
        (google_says("soon"), None),
        (google_says("-3s"), None),
        (google_says(None), None),
        ({"error": {"message": "retryDelay 39s"}}, None),
        (None, None),
        ("malformed_input", None),
    ],
)
def test_google_says_it_in_the_body(body: object, seconds: float | None) -> None:
    assert said_in(body, "").retry_after_seconds == seconds


def limited(body: object, **headers: str) -> Exception:
    request = httpx2.Request("POST", "https://provider.example/v1")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return openai.RateLimitError("raw", response=httpx2.Response(429, headers=named, request=request), body=body)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (limited([google_says("39s")]), 39.0),
        (limited(google_says("39s")["error"]), 39.0),
        (limited(google_says("2s"), retry_after="7"), 7.0),
        (limited(google_says("39s"), retry_after_ms="300"), 39.0),
        (limited({}, x_ratelimit_reset_tokens="7.5s"), 7.5),
    ],
)
def test_the_longest_that_an_answer_asks_for_is_its_verdict(error: Exception, seconds: float) -> None:
    action = judge(error)

    assert (action.kind, action.error_type, action.delay_seconds) == ("retry_after", "rate_limit", seconds)

"""What real servers say of a failure, in each of their forms, through the real SDKs, gets the verdict that helps."""

import pytest

from longhaul.activities.models.failures.error_bodies import ServerWords, said_in
from longhaul.activities.models.failures.failure_classification import FailureAction, judge, refusal_in
from tests.activities.models.failures.server_words import (
    FILTERED,
    FILTERED_IMAGES,
    ONLY_SEEMS_SO,
    SPENT,
    TOO_OFTEN,
    ServerAnswer,
)
from tests.activities.models.failures.too_long_words import TOO_LONG
from tests.activities.models.sample_requests import Caller
from tests.activities.models.wire import Answer, Wire


async def failure(wire: Wire, by_wire: Caller, answer: ServerAnswer) -> Exception:
    wire.answers.append(Answer(answer.sent, answer.status, {"content-type": answer.content_type}))
    with pytest.raises(Exception) as caught:  # noqa: PT011  each SDK has classes of its own
        await by_wire.call(answer.model, "Hello")
    return caught.value


def short(action: FailureAction) -> tuple[str, str]:
    return action.kind, action.error_type


@pytest.mark.proves("B7")
@pytest.mark.parametrize("answer", TOO_LONG, ids=lambda answer: answer.server)
async def test_a_conversation_that_is_too_long_is_known_in_each_servers_words(
    wire: Wire, by_wire: Caller, answer: ServerAnswer
) -> None:
    assert short(judge(await failure(wire, by_wire, answer))) == ("compress", "context_overflow")


@pytest.mark.parametrize(("answer", "kind", "error_type"), ONLY_SEEMS_SO, ids=lambda part: getattr(part, "server", ""))
async def test_what_is_too_long_in_another_way_does_not_cost_a_compression(
    wire: Wire, by_wire: Caller, answer: ServerAnswer, kind: str, error_type: str
) -> None:
    assert short(judge(await failure(wire, by_wire, answer))) == (kind, error_type)


@pytest.mark.parametrize("answer", SPENT, ids=lambda answer: answer.server)
async def test_an_account_without_credit_is_not_waited_for(wire: Wire, by_wire: Caller, answer: ServerAnswer) -> None:
    action = judge(await failure(wire, by_wire, answer))

    assert short(action) == ("fall_back", "rate_limit")
    assert "quota or credit" in action.sentence


@pytest.mark.parametrize(("answer", "seconds"), TOO_OFTEN, ids=lambda part: getattr(part, "server", ""))
async def test_an_account_that_is_asked_too_often_is_waited_for(
    wire: Wire, by_wire: Caller, answer: ServerAnswer, seconds: float | None
) -> None:
    action = judge(await failure(wire, by_wire, answer))

    assert short(action) == ("retry" if seconds is None else "retry_after", "rate_limit")
    assert action.delay_seconds == seconds


@pytest.mark.parametrize("answer", FILTERED, ids=lambda answer: answer.server)
async def test_what_a_filter_refuses_goes_to_another_model(wire: Wire, by_wire: Caller, answer: ServerAnswer) -> None:
    error = await failure(wire, by_wire, answer)

    assert short(judge(error)) == ("fall_back", "filtered")
    assert refusal_in(error) == (None, "")


@pytest.mark.parametrize("answer", FILTERED_IMAGES, ids=lambda answer: answer.server)
async def test_an_image_that_a_filter_refuses_is_left_out(wire: Wire, by_wire: Caller, answer: ServerAnswer) -> None:
    error = await failure(wire, by_wire, answer)
    refusal, _ = refusal_in(error)

    assert short(judge(error)) == ("repair", "invalid_request")
    assert refusal is not None
    assert refusal.means == "attachments"


EVERY_ANSWER: list[ServerAnswer] = [
    *TOO_LONG,
    *(row[0] for row in ONLY_SEEMS_SO),
    *(row[0] for row in TOO_OFTEN),
    *SPENT,
    *FILTERED,
    *FILTERED_IMAGES,
]


@pytest.mark.parametrize(
    "answer", [pytest.param(each, id=f"{n} {each.server}") for n, each in enumerate(EVERY_ANSWER) if each.body]
)
async def test_a_person_reads_the_servers_own_words_whatever_form_they_have(
    wire: Wire, by_wire: Caller, answer: ServerAnswer
) -> None:
    sentence = judge(await failure(wire, by_wire, answer)).sentence

    assert f"(HTTP {answer.status}): " in sentence
    assert not any(mark in sentence for mark in ("Error code:", "<html", "{"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (None, "raw"),
        ("", ""),
        ("upstream connect error", "upstream connect error"),
        ({"detail": [{"loc": ["body", "messages", 1], "msg": "odd", "type": "missing"}]}, "body.messages.1: odd"),
        ([{"error": {"message": "one"}}, {"error": {"message": "two"}}], "one; two"),
        ({"error": {"message": 'it said: {"error": {"message": "no"}}'}}, "it said; no"),
        ({"error": {"message": "[1, 2] is odd"}}, "[1, 2] is odd"),
        ({"error": {"message": '{"error": '}}, '{"error":'),
        ({"error": {"message": ["a"], "code": True}}, ""),
        ({"error": None, "message": "m"}, "m"),
        (7, ""),
        (b"bytes", ""),
        ({"message": "[" * 100_000}, "[" * 20_000),
    ],
)
def test_the_words_are_found_in_a_body_of_any_form(body: object, expected: str) -> None:
    assert said_in(body, "raw").message == expected


def test_an_endless_or_endlessly_deep_body_is_read_in_part() -> None:
    deep: object = "at last"
    for _ in range(5_000):
        deep = {"error": deep}

    assert said_in(deep, "") == ServerWords()
    assert len(said_in([{"message": f"number {n}"} for n in range(100_000)], "").message) < 2_000

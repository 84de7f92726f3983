"""When a session is worth asking, by what its server says of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from longhaul.starter.client.reading.glance import FAILING_TRIES, GONE, TOLD_TIMES, Glance, Moves
from tests.limits import SURE_SECONDS

FOREVER = 1e9
STILL = Glance("run-1", is_open=True, length=40, tries=0, is_at_rest=False)
DECIDING = replace(STILL, length=42, tries=1)
STILL_DECIDING = replace(DECIDING, length=47)
DECIDED = replace(STILL, length=46)
RESTING = replace(DECIDED, length=52, is_at_rest=True)
FAILING = replace(DECIDING, tries=FAILING_TRIES)
ROLLED = replace(STILL, run_id="run-2", length=40)
CLOSED = replace(STILL, is_open=False)


async def asks(glances: Sequence[Glance | None], *, for_rest: bool = False, seconds: float = FOREVER) -> list[bool]:
    """After a question while it stood as in the first of them."""
    left = list(glances)

    async def look() -> Glance | None:
        return left.pop(0)

    moves = Moves(look, seconds, for_rest=for_rest)
    await moves.note()
    return [await moves.due() for _ in glances[1:]]


@pytest.mark.parametrize(
    ("glances", "anything", "rest"),
    [
        ((STILL, STILL, STILL), [False, False], [False, False]),
        ((STILL, DECIDED, DECIDED), [True, False], [False, False]),
        ((STILL, DECIDING, DECIDED), [False, True], [False, False]),
        ((STILL, DECIDING, STILL_DECIDING), [False, False], [False, False]),
        ((STILL, DECIDING, DECIDING), [False, False], [False, False]),
        ((STILL, RESTING, RESTING), [True, False], [True, False]),
        ((STILL, FAILING, FAILING, replace(FAILING, tries=4)), [True, False, True], [True, False, True]),
        ((STILL, ROLLED), [True], [False]),
        ((STILL, CLOSED, CLOSED), [True, False], [True, False]),
        ((STILL, GONE), [True], [True]),
        ((STILL, None, STILL), [False, False], [False, False]),
        ((None, STILL, RESTING), [True, True], [False, True]),
    ],
)
async def test_it_is_asked_when_something_new_was_recorded(
    glances: Sequence[Glance | None], anything: list[bool], rest: list[bool]
) -> None:
    assert await asks(glances) == anything
    assert await asks(glances, for_rest=True) == rest


@pytest.mark.parametrize(
    ("glances", "asked"),
    [
        ((STILL, STILL), [False]),
        ((STILL, DECIDED), [True]),
        ((STILL, DECIDING, STILL_DECIDING), [True, True]),
        ((DECIDING, DECIDING), [False]),
        ((STILL, None), [True]),
    ],
)
async def test_after_so_long_it_is_asked_unless_nothing_was_recorded_or_nobody_would_answer(
    glances: Sequence[Glance | None], asked: list[bool]
) -> None:
    assert await asks(glances, for_rest=True, seconds=0.0) == asked


async def test_while_a_stream_speaks_it_is_asked_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [STILL, DECIDED, RESTING, DECIDED, STILL]
    now, seconds = 0.0, 10.0

    async def look() -> Glance:
        return left.pop(0)

    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    moves = Moves(look, seconds, for_rest=True)
    await moves.note()
    now += 2 * seconds

    assert not await moves.due(told=True)
    assert await moves.due(told=True), "it has come to rest"
    now += 2 * seconds
    assert await moves.due()
    now += TOLD_TIMES * seconds
    assert await moves.due(told=True)


async def test_whoever_rests_looks_until_there_is_something_to_ask() -> None:
    left = [STILL, STILL, DECIDING, DECIDED]

    async def look() -> Glance:
        return left.pop(0)

    moves = Moves(look, FOREVER)
    await moves.note()
    await asyncio.wait_for(moves.rest(), SURE_SECONDS)

    assert left == []

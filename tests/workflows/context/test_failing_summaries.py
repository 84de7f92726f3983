"""A summary that can't be had, in each way: nothing changes, the session goes on or says why not, and never loops."""

import asyncio
from typing import Any

import pytest

from longhaul.starter.client.session import Session
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server

FIELDS = ("task_overview", "current_state", "important_discoveries", "next_steps", "context_to_preserve")
PAGES, CHARS = 16, 1_500
SMALL = {"context_length": 6_000, "max_output_tokens": 500}
MOST_TRIES = 12
"""The window is outgrown by less than its half, and a try follows on a failed one after a tenth of it."""
FAILS: dict[str, tuple[dict[str, Any], str]] = {
    "an error": ({"faults": [{"kind": "invalid_request"}]}, "invalid_request"),
    "an error each time": ({"faults": [{"kind": "server_error"}] * 9}, "server_error"),
    "a refusal": ({"text": "I would rather not."}, "I would rather not."),
    "the wrong form": (
        {"tool_calls": [{"name": "write_summary", "input": {**dict.fromkeys(FIELDS, "short"), "next_steps": 7}}]},
        "next_steps: 7 is not",
    ),
    "nothing": ({"text": ""}, "the reply was empty"),
}


def reading(stage: Stage, summary: dict[str, Any], *then: dict[str, Any]) -> Session:
    pages = [calls("fetch", page=number, chars=CHARS) for number in range(PAGES)]
    summaries = [{"for": "summary", **summary}] * MOST_TRIES
    config = {**SMALL, "max_retries": 1, "outage_wait_seconds": 0}
    return stage.session(*pages, *then, *summaries, tools=["fetch"], model_config=config)


async def reads_on(stage: Stage, way: str) -> None:
    summary, why = FAILS[way]
    session = reading(stage, summary, {"text": "All read."})

    done = await session.reply("Read every page")

    status = await session.status()
    assert (done.error, done.get_text_content()) == (None, "All read."), way
    assert (status.compressions, status.model_calls, status.messages) == (0, PAGES + 1, 2 * PAGES + 2), way
    assert 2 <= status.compression_tries < MOST_TRIES, way
    assert why in status.compression_error, status.compression_error
    said = [message async for message in session.transcript()]
    assert [message async for message in session.context()] == said, way


async def test_a_summary_that_fails_in_any_way_changes_nothing_and_the_session_goes_on(stage: Stage) -> None:
    await asyncio.gather(*(reads_on(stage, way) for way in FAILS))


async def test_where_the_provider_takes_no_more_a_summary_that_fails_ends_the_reply_with_a_sentence(
    stage: Stage,
) -> None:
    session = reading(stage, {"text": ""}, {"faults": [{"kind": "context_overflow"}], "text": "never said"})

    done = await session.reply("Read every page")

    status = await session.status()
    assert done.error is not None
    assert (done.finished_reason, done.error.type) == ("error", "context_overflow")
    assert (status.status, status.compressions, status.model_calls) == ("idle", 0, PAGES)
    assert 1 <= status.compression_tries < MOST_TRIES
    assert status.messages == 2 * PAGES + 1

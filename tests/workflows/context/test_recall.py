"""A model reads back, word for word, what its session said in an earlier incarnation."""

from collections.abc import Awaitable, Callable

import pytest
from temporalio.client import WorkflowExecutionStatus

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = pytest.mark.server

ORIGINAL = 'Köln\t"amber"  \\n 漢字\nsecond line  '


def saved(session: Session) -> Callable[[], Awaitable[bool]]:
    async def looked() -> bool:
        status = await session.status()
        return status.saved_seq >= status.seq

    return looked


def closed(stage: Stage, session: Session) -> Callable[[], Awaitable[bool]]:
    async def looked() -> bool:
        return (await stage.handle(session).describe()).status is WorkflowExecutionStatus.COMPLETED

    return looked


async def test_what_stands_in_segments_only_is_recalled_exactly(stage: Stage) -> None:
    lines = ({"text": ORIGINAL}, calls("recall", text="AMBER", to_message=1), {"text": "Read."})
    session = stage.session(*lines, tools=["recall"], idle_close_seconds=1)
    await session.reply("Which colour?")
    await until(closed(stage, session))
    reply = await session.reply("What did you say?")

    ((state, text),) = results(reply)
    assert (reply.get_text_content(), state) == ("Read.", ToolResultState.SUCCESS)
    assert text == f"1 of 4 messages, the newest first.\n--- message 1 · assistant · lamp\n{ORIGINAL}"


async def test_what_only_the_session_has_yet_is_recalled_too(stage: Stage) -> None:
    lines = ({"text": "Amber."}, calls("recall", from_message=0), {"text": "Read."})
    session = stage.session(*lines, tools=["recall"])
    await session.reply("Which colour?")

    reply = await session.reply("What did we say?")

    text = results(reply)[0][1]
    assert text.startswith("4 of 4 messages, the newest first.\n--- message 3 · assistant · lamp\n[call ")
    assert text.endswith("--- message 1 · assistant · lamp\nAmber.\n--- message 0 · user · user\nWhich colour?")


async def test_a_damaged_segment_is_told_to_the_model(stage: Stage) -> None:
    lines = ({"text": "Amber."}, {"text": "Still amber."}, calls("recall"), {"text": "Read."})
    session = stage.session(*lines, tools=["recall"], idle_close_seconds=1)
    await session.reply("Which colour?")
    await until(closed(stage, session))
    await session.reply("And now?")
    await until(saved(session))
    for segment in (await session.status()).segments:
        (path,) = stage.settings.data_dir.glob(f"blobs/**/{segment.key.rpartition('/')[2]}")
        path.write_bytes(b"malformed_input")

    reply = await session.reply("What did we say?")

    ((state, text),) = results(reply)
    assert (state, reply.get_text_content()) == (ToolResultState.ERROR, "Read.")
    assert "part of this session's record is damaged" in text

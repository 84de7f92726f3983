"""What an agent says when it is interrupted: by a hook on its workers, recorded, and never in the way of the end."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.views.event_types import AgentEvent
from longhaul.workflows.contract import PendingCall
from longhaul.workflows.session import AgentSession
from tests.workflows.conftest import TOOLS, Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server

HERE = "tests.workflows.middlewares"


async def until_ended(events: AsyncIterator[AgentEvent], but: str) -> AsyncIterator[AgentEvent]:
    """Those up to the end of another reply than this one."""
    async for event in events:
        yield event
        if event.type == "REPLY_END" and event.reply_id != but:
            return


@pytest.mark.proves("C3")
async def test_a_hook_says_the_last_words_and_the_next_model_call_reads_them(unserved: Stage) -> None:
    unserved.settings.tools = f"{TOOLS},{HERE}"
    unserved.settings.middlewares = f"{HERE}:Parting, ?{HERE}:DeafParting"
    heard = {"last_contains": "Rather Ben"}
    session = unserved.session(
        calls("send", to="Ana"),
        {"text": "Delivered Ben.", "expect": heard},
        calls("send", to="Cleo"),
        {"text": "Well again.", "expect": {"last_contains": "Go on"}},
        tools=["send"],
        react_config={"interruption_message": "I was stopped."},
    )
    async with unserved.another_worker():
        first = await session.reply("Tell Ana")
        waiting: list[PendingCall] = await session.pending()
        await session.interrupt("Rather Ben")
        stopped = await session.wait(first.id)
        async with aclosing(session.follow(live=False)) as told:
            _ = [event async for event in until_ended(told, first.id)]
        context = [message async for message in session.context()]
        await session.configure(middlewares=["deaf_parting"])
        second = await session.reply("Tell Cleo")
        await session.interrupt()
        deaf = await session.wait(second.id)
        events = (await session.events()).events
        again = await session.reply("Go on")
        replayer = Replayer(
            workflows=[AgentSession],
            build_id="replay",
            data_converter=unserved.client.data_converter,
            workflow_runner=UnsandboxedWorkflowRunner(),
        )
        await replayer.replay_workflow(await unserved.handle(session).fetch_history())

    assert [call.tool for call in waiting] == ["send"]
    assert (stopped.finished_reason, stopped.get_text_content()) == (
        FinishedReason.INTERRUPTED,
        "Parted over send for lamp, because: Rather Ben",
    )
    assert [message.get_text_content() for message in context if message.get_text_content()][:4] == [
        "Tell Ana",
        "Parted over send for lamp, because: Rather Ben",
        "Rather Ben",
        "Delivered Ben.",
    ]
    assert (deaf.finished_reason, deaf.get_text_content()) == (FinishedReason.INTERRUPTED, "I was stopped.")
    failures = [event.value for event in events if event.name == "handle_interrupt_failed"]
    assert failures == [{"reason": "The middleware 'deaf_parting' on the worker failed: RuntimeError."}]
    assert again.get_text_content() == "Well again."

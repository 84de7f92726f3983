"""An answer in a form, whose worker is killed at each place on the answer's way."""

import asyncio
from dataclasses import replace

import pytest

from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.client.session import Session
from tests.e2e.processes import worker
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls
from tests.workflows.steering.test_structured_output import TideTable, answers, results

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]


@pytest.mark.proves("C7")
@pytest.mark.parametrize(
    ("moment", "activity", "number"),
    [
        pytest.param("within", "longhaul.restore", 1, id="the form was described to nobody"),
        pytest.param("within", "longhaul.call_model", 1, id="a wrong answer was said to nobody"),
        pytest.param("asking", "longhaul.call_model", 2, id="it was given back in a task that never ended"),
        pytest.param("within", "longhaul.call_model", 2, id="the right answer was said to nobody"),
        pytest.param("asking", "send", 1, id="it was taken in a task that never ended"),
        pytest.param("asking", "longhaul.checkpoint", 1, id="its reply ended in a task that never ended"),
        pytest.param("within", "longhaul.checkpoint", 1, id="it was written down, and nobody heard of it"),
    ],
)
async def test_it_is_there_once_wherever_its_worker_is_killed(
    moment: str, activity: str, number: int, unserved: Stage
) -> None:
    session = unserved.session(
        answers(height=0, kind="neap"),
        {"tool_calls": [*answers(height=4, kind="neap")["tool_calls"], *calls("send", to="Ana")["tool_calls"]]},
        {"text": "It ends before these words."},
        tools=["send"],
        permission={"rules": [{"tool_name": "send"}]},
    )

    message = await killed_at(unserved, session, moment, activity, number)

    assert (message.error, message.metadata) == (None, {"height": 4, "kind": "neap"})
    said, scheduled = await results(session), await unserved.scheduled(session)
    assert [(name, state) for name, state, _ in said] == [
        ("generate_response", "error"),
        ("generate_response", "success"),
        ("send", "success"),
    ]
    assert scheduled.count("send") == 1


@pytest.mark.parametrize("moment", ["asking", "within"])
async def test_so_it_is_while_it_is_looked_at_once_more(moment: str, unserved: Stage) -> None:
    """Behind a call that moved the session."""
    (unserved.workspace / "loft").mkdir()
    move = {"name": "Bash", "input": {"command": "cd loft"}}
    session = unserved.session(
        {"tool_calls": [move, *answers(height=4, kind="neap")["tool_calls"]]},
        {"text": "It ends before these words."},
        tools=["Bash"],
    )

    message = await killed_at(unserved, session, moment, "longhaul.examine_calls", 1)

    assert (message.error, message.metadata) == (None, {"height": 4, "kind": "neap"})
    assert [(name, state) for name, state, _ in await results(session)] == [
        ("Bash", "success"),
        ("generate_response", "success"),
    ]


async def killed_at(stage: Stage, session: Session, moment: str, activity: str, number: int) -> Msg:
    """What the reply comes to, whose first worker dies there. Moments are those of `mortal_worker`."""
    settings = replace(stage.worker_settings, program=("tests.e2e.mortal_worker", moment, activity, str(number)))
    async with worker(settings) as mortal:
        replying = asyncio.create_task(session.reply("How high?", structured_model=TideTable))
        async with asyncio.timeout(SURE_SECONDS):
            assert await mortal.wait() == -9, "it has come to its moment"
    await stage.rest.enter_async_context(stage.another_worker())
    return await replying

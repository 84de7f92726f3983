"""The same from Temporal's own command line, as a person types it who has nothing else at hand."""

import pytest

from tests.workflows.conftest import Stage, TypeTemporal
from tests.workflows.operations import ASKS

pytestmark = pytest.mark.server

APPROVAL = '{"decisions": [{"call_id": "call_0_0", "decision": "allow"}], "approver": "bo"}'


@pytest.mark.proves("F2")
async def test_an_approval_is_typed_as_a_signal(stage: Stage, type_temporal: TypeTemporal) -> None:
    session = stage.session(*ASKS)
    waiting = await session.reply("Write to Ana")

    typed = await type_temporal(
        "workflow", "signal", "-w", session.workflow_id, "--name", "confirm", "--input", APPROVAL
    )

    assert typed.status == 0, typed.said
    assert (await session.wait(waiting.id)).get_text_content() == "Written."


async def test_an_approval_is_typed_as_an_update(stage: Stage, type_temporal: TypeTemporal) -> None:
    session = stage.session(*ASKS)
    waiting = await session.reply("Write to Ana")

    typed = await type_temporal(
        "workflow", "update", "execute", "-w", session.workflow_id, "--name", "confirm", "--input", APPROVAL
    )

    assert typed.status == 0, typed.said
    assert "call_0_0" in typed.said
    assert (await session.wait(waiting.id)).get_text_content() == "Written."


TYPED = {
    "no input": ((), "0 arguments came"),
    "not JSON": (("--input", "not json"), "argument 1 is not JSON"),
    "several inputs": (("--input", APPROVAL, "--input", "{}", "--input", "3"), "3 arguments came"),
    "a string": (("--input", '"allow"'), "takes one JSON object, not 'allow'"),
    "another encoding": (
        ("--input", APPROVAL, "--input-meta", "encoding=binary/plain"),
        "argument 1 is encoded as 'binary/plain'",
    ),
    "a call that is not there": (
        ("--input", APPROVAL.replace("call_0_0", "call_7_7")),
        "call 'call_7_7' does not wait for a decision ('call_7_7' is no call here); waiting: ['call_0_0']",
    ),
}


@pytest.mark.proves("F2")
@pytest.mark.parametrize("words", TYPED)
async def test_a_mistyped_signal_is_refused_and_can_be_typed_again(
    stage: Stage, type_temporal: TypeTemporal, words: str
) -> None:
    session = stage.session(*ASKS)
    waiting = await session.reply("Write to Ana")
    mistyped, reason = TYPED[words]

    typed = await type_temporal("workflow", "signal", "-w", session.workflow_id, "--name", "confirm", *mistyped)
    refusals = (await session.status()).last_refusals
    again = await type_temporal(
        "workflow", "signal", "-w", session.workflow_id, "--name", "confirm", "--input", APPROVAL
    )

    # What is not JSON never leaves the command line; the session then has nothing to refuse.
    assert typed.status != 0 or reason in refusals[-1]["reason"]
    assert again.status == 0
    assert (await session.wait(waiting.id)).get_text_content() == "Written."


async def test_a_mistyped_update_is_answered_with_the_reason(stage: Stage, type_temporal: TypeTemporal) -> None:
    session = stage.session(*ASKS)
    await session.reply("Write to Ana")

    typed = await type_temporal(
        "workflow", "update", "execute", "-w", session.workflow_id, "--name", "confirm", "--input", '{"approver": 4}'
    )

    assert typed.status != 0
    assert "confirm: decisions: Field required" in typed.said

"""A reply that is too long to record is kept whole among the session's blobs, and read back in pages."""

import pytest

from longhaul.activities.call_model import SHOWN_OF_LONG_CHARS
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.stores.offload.session_blobs import digits_in
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

WRITTEN = "".join(f"Line {number} of the almanac.\n" for number in range(190_000))


async def test_five_megabytes_are_kept_and_read_in_pages(stage: Stage) -> None:
    assert len(WRITTEN) > 5_000_000
    session = stage.session({"text": WRITTEN}, tools=["recall"], model_config={"context_length": 2_000_000})

    reply = await session.reply("Write an almanac")
    digits = digits_in(reply.get_text_content())
    asks = calls("recall", output=digits, offset=len(WRITTEN) - 40)
    await session.configure(model=stage.script({"text": ""}, asks, {"text": "It ends there."}))
    read = results(await session.reply("How does it end?"))

    assert reply.get_text_content()[:SHOWN_OF_LONG_CHARS] == WRITTEN[:SHOWN_OF_LONG_CHARS]
    assert f"it has {len(WRITTEN):,} characters" in reply.get_text_content()
    assert len(reply.get_text_content()) < SHOWN_OF_LONG_CHARS + 400
    assert read == [(ToolResultState.SUCCESS, WRITTEN[-40:])]
    assert await failure_of_replay(stage, session) is None

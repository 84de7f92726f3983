"""A broken attachment is refused at the operation, through the client and over HTTP; the session has not changed."""

from typing import Any

import httpx
import pytest

from longhaul.agent.operations.bodies import ExternalExecutionResultEvent
from longhaul.agent.values.conversation.messages import DataBlock, TextBlock, ToolResultBlock, UserMsg
from longhaul.starter.client.wire import Refused, plain
from longhaul.starter.serve.application import application
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.tokens import SCOPES, Caller
from tests.workflows.conftest import Stage
from tests.workflows.context.test_poison import image, png, spoilt
from tests.workflows.operations import calls

pytestmark = pytest.mark.server

SPOILT = image(spoilt(png()))
WHY = r"\('sea', image/png\): it is not a valid PNG: its part 'IDAT' is damaged; send the whole file"


@pytest.mark.proves("A8")
async def test_no_operation_of_the_client_takes_a_broken_attachment(stage: Stage) -> None:
    session = stage.session(calls("courier", parcel="a box"), {"text": "Seen."}, tools=["courier"])
    spoilt_words = UserMsg("user", [TextBlock(text="Look"), SPOILT])
    with pytest.raises(Refused, match=rf"submit: messages\[0\].content\[1\] {WHY}"):
        await session.reply(spoilt_words)
    assert not await session.has_started()

    await session.reply("Bring it")
    (call,) = await session.pending()
    before = (await session.status()).seq
    with pytest.raises(Refused, match=rf"observe: .*{WHY}"):
        await session.observe(spoilt_words)
    with pytest.raises(Refused, match=rf"interrupt: message\[0\].content\[1\] {WHY}"):
        await session.interrupt(spoilt_words)
    with pytest.raises(Refused, match=rf"external_result: results\[0\].output\[0\] {WHY}"):
        await session.external_result(call, [SPOILT])
    result = ToolResultBlock(id=call.call_id, name="courier", output=(SPOILT,), state="success")
    event = ExternalExecutionResultEvent(reply_id=call.reply_id, execution_results=(result,))
    with pytest.raises(Refused, match=rf"execution_results\[0\].output\[0\] {WHY}"):
        await session.reply(event)
    assert (await session.status()).seq == before

    await session.external_result(call, [image(png())])
    done = await session.wait(call.reply_id)

    assert (done.error, done.get_text_content()) == (None, "Seen.")
    kept = [part for part in done.get_tool_results()[0].output if isinstance(part, DataBlock)]
    assert kept == [image(png())]


@pytest.mark.proves("A8")
@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        (SPOILT, "its part 'IDAT' is damaged"),
        (image(b"Dear Ana"), "it is not image/png, but something else"),
        (image(png(9000, 1)), "it has 9000 x 1 pixels, and 8000 a side are taken"),
        (image("%%%%"), "it is not valid base64"),
    ],
    ids=["spoilt", "a text called .png", "too large", "no base64"],
)
async def test_a_request_over_http_is_refused_with_the_sentence(stage: Stage, block: DataBlock, sentence: str) -> None:
    session = stage.session({"text": "Seen."})
    await session.reply("Hello")
    before = (await session.status()).seq
    served = Served(stage.app, None, Caller(None, "", frozenset(SCOPES)), frozenset({"127.0.0.1"}))
    transport = httpx.ASGITransport(application(served))
    body: dict[str, Any] = {"messages": [plain(UserMsg("user", [TextBlock(text="Look"), block]))]}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        refused = await http.post(f"/v1/sessions/lamp/{session.id}/messages", json=body)

    assert 400 <= refused.status_code < 500
    assert "messages[0].content[1]" in refused.text
    assert sentence in refused.json()["detail"]
    assert (await session.status()).seq == before

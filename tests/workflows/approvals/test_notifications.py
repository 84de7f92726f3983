"""People are told of what waits in a live session: each event once, without holding anything up."""

import json
from typing import Any

import pytest

from longhaul.activities.notify.notifications import KEY
from tests.activities.middlewares.hook_server import Hook, hook_server
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server

TELL_ANA = calls("send", to="Ana")


def told(hook: Hook) -> list[dict[str, Any]]:
    """What was posted, each message once, in order."""
    bodies = [json.loads(body) for _, body in hook.posts]
    return list({body["key"]: body for body in bodies}.values())


@pytest.mark.proves("F4", "S11")
async def test_each_event_of_a_wait_is_told_once(unserved: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "violet-violet-violet")
    box = unserved.folder / "box"
    with hook_server([503, 500]) as hook:
        stage = unserved
        stage.settings = stage.settings.model_copy(update={"notify": [hook.url, f"maildir:{box}?to=ops@example.com"]})
        deadline = {"remind_after": 2.5, "escalate_after": 3, "escalate_to": "bo@example.com", "expire_after": 3.5}
        session = stage.session(TELL_ANA, {"text": "I could not."}, permission={"deadline": deadline}, user="ana")
        async with stage.another_worker():
            waiting = await session.reply("Tell Ana")
            await until(lambda: finished(session, waiting.id))

            async def all_told() -> bool:
                return [each["event"] for each in told(hook)] == ["waits", "reminded", "escalated", "expired"]

            await until(all_told)
            await session.status()

    first, _, third, last = told(hook)
    assert len(hook.posts) == 6, "two tries failed, and nothing came twice"
    assert (first["session"], first["user"], first["tool"], first["arguments"]) == (
        session.id,
        "ana",
        "send",
        "to: Ana",
    )
    assert first["answers"][0].startswith(f"longhaul approve {session.id} call_0_0")
    assert (third["escalated_to"], last["closed"]) == ("bo@example.com", True)
    assert "answers" not in last
    assert len(list((box / "new").iterdir())) == 4


async def finished(session: Any, reply: str) -> bool:
    return bool((await session.result(reply)).status == "finished")


async def test_who_can_not_be_told_holds_up_nothing_and_status_says_so(
    unserved: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "violet-violet-violet")
    with hook_server([404, 404]) as hook:
        stage = unserved
        stage.settings = stage.settings.model_copy(update={"notify": hook.url})
        session = stage.session(TELL_ANA, {"text": "Delivered."})
        async with stage.another_worker():
            waiting = await session.reply("Tell Ana")

            async def failing() -> bool:
                return (await session.status()).notify_error == "the webhook at 127.0.0.1 answered 404"

            await until(failing)
            assert (await session.status()).saved_seq > 0
            await session.confirm("call_0_0", allow=True)
            done = await session.wait(waiting.id)

            assert done.get_text_content() == "Delivered."
            assert (await session.status()).notify_error == ""
    assert len(hook.posts) == 1

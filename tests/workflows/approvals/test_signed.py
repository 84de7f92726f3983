"""Signed decisions on a real server: the client signs, a worker checks, and the key is nowhere else."""

import pytest
from pydantic import SecretStr

from longhaul.agent.values.permission import PermissionRule
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.operations import ASKS, refused_signal, refused_update, results

pytestmark = pytest.mark.server

SECRET = "harvest-moon-over-water"


@pytest.mark.proves("X3")
async def test_only_a_signed_decision_lets_the_call_run_and_no_history_holds_the_key(unserved: Stage) -> None:
    stage = unserved
    stage.settings = stage.settings.model_copy(update={"approval_key": SecretStr(f"ana:{SECRET}")})
    forger = stage.settings.model_copy(update={"approval_key": SecretStr("ana:another-moon-over-water")})
    async with stage.another_worker():
        session = stage.session(*ASKS, permission={"approvals": "signed"})
        waiting = await session.reply("Write to Ana")
        (call,) = await session.pending()
        raw = {"decisions": [{"call_id": call.call_id, "decision": "allow", "digest": call.digest}], "approver": "ana"}

        assert "has no signature" in await refused_signal(stage, session, "confirm", raw)
        other = Longhaul(stage.client, forger).session(session.id, agent=session.spec)
        with pytest.raises(Refused, match="the signature on 'call_0_0' is not of this decision"):
            await other.confirm(call, allow=True, approver="ana")
        assert [one.call_id for one in await session.pending()] == [call.call_id]
        await session.confirm(call, allow=True, approver="ana", reason="she waits for it")
        done = await session.wait(waiting.id)

        assert call.signed
        assert [text for _, text in results(done)] == ["sent '' to Ana"]
        (made,) = (await session.status()).decisions
        assert (made.approver, made.key, made.digest) == ("ana", "ana", call.digest)
        history = await stage.handle(session).fetch_history()
        assert SECRET not in history.to_json()


async def test_nothing_that_anybody_sends_or_stores_unsigned_lets_the_call_run(unserved: Stage) -> None:
    stage = unserved
    stage.settings = stage.settings.model_copy(update={"approval_key": SecretStr(f"ana:{SECRET}")})
    allow = {"tool_name": "send"}
    async with stage.another_worker():
        await stage.app.rules_of("eve").change([PermissionRule(tool_name="send")], by="eve")
        session = stage.session(*ASKS, user="eve", permission={"approvals": "signed"})
        waiting = await session.reply("Write to Ana")
        operations = {
            "confirm": {"decisions": [{"call_id": "call_0_0", "decision": "allow", "rules": [allow]}]},
            "configure": {"mode": "bypass"},
            "rules": {"add": [allow]},
        }
        for name, body in operations.items():
            for _ in range(2):
                assert "sign" in await refused_signal(stage, session, name, body)
            assert "sign" in await refused_update(stage, session, name, body)

        assert waiting.metadata == {"waiting_for": ["call_0_0"]}
        assert [one.call_id for one in await session.pending()] == ["call_0_0"]
        await session.interrupt()
        await session.wait(waiting.id)
        state = {"session_id": session.id, "tainted": "a page"}
        assert "decisions must be signed" in await refused_update(stage, session, "replace_state", {"state": state})
        assert (await session.status()).decisions == ()

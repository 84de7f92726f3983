"""What suggested rules would let pass, where no worker tells it."""

import httpx
import pytest
from temporalio.client import WorkflowQueryFailedError
from temporalio.workflow import _Definition  # pyright: ignore[reportPrivateUsage]  the SDK lists queries nowhere else

from longhaul.starter.cli.terminal.dialogs import Allow, ask_about
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.console.site import routes
from longhaul.starter.serve.application import application
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.tokens import SCOPES, Caller
from longhaul.workflows.session import AgentSession
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server


async def test_a_person_decides_without_what_rules_would_let_pass(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(_Definition.must_from_class(AgentSession).queries, "would_pass")
    monkeypatch.setattr("builtins.input", lambda _: "y")
    session = stage.session(calls("Bash", command="mkdir -p attic"), tools=["Bash"])
    await session.reply("Build")
    (call,) = await session.pending()
    served = Served(stage.app, None, Caller(None, "", frozenset(SCOPES)), frozenset({"127.0.0.1"}))
    transport = httpx.ASGITransport(application(served, routes(served)))

    answer = await ask_about(Screen(), call, session)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        page = await http.get(f"/console/s/lamp/{session.id}/call", params={"id": call.call_id})

    assert call.suggested_rules
    assert answer == Allow()
    assert "mkdir -p attic" in capsys.readouterr().out
    assert (page.status_code, "mkdir -p attic" in page.text, "would-pass" in page.text) == (200, True, False)
    with pytest.raises(WorkflowQueryFailedError):
        await session.rules.would_pass(call)

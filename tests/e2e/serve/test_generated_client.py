"""A client that others have generated from the service's own description asks, reads, decides and gets the answer."""

import importlib
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from longhaul.starter.dev_server.processes import run_within
from tests.conftest import found
from tests.e2e.serve.test_sessions import WANTS_TO_EDIT, agent
from tests.e2e.serving import TOKENS, Address, serving, tokens_file
from tests.limits import SURE_SECONDS
from tests.servers.openapi_generator import find_openapi_generator

pytestmark = pytest.mark.server


class Generated:
    """The modules of one client, loaded when they are asked for."""

    def __init__(self, package: str) -> None:
        self._package = package

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{self._package}.{name}")

    async def ask(self, operation: str, *path: str, **given: Any) -> Any:
        return await self.module(f"api.default.{operation}").asyncio(*path, **given)


@pytest.fixture
async def served(tmp_path: Path, worker: int, cli_environment: dict[str, str]) -> AsyncIterator[Address]:
    assert worker
    tokens = {"LONGHAUL_SERVE_TOKENS": str(tokens_file(tmp_path)), "LONGHAUL_TRUST": "1"}
    async with serving(tmp_path, cli_environment | tokens) as one:
        yield one


@pytest.fixture
def generated(served: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Generated]:
    generator = found("openapi generator", find_openapi_generator)
    document, package = tmp_path / "openapi.json", f"desk_{uuid4().hex[:8]}"
    document.write_text(httpx.get(f"{served.url}/openapi.json", trust_env=False, timeout=SURE_SECONDS).text)
    making = ["generate", "--meta", "none", "--path", str(document), "--output-path", str(tmp_path / package)]
    complaint = run_within(SURE_SECONDS, [str(generator), *making], {})
    assert not complaint, complaint
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Generated(package)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def types_in(told: str) -> list[str]:
    """Of the events of a stream."""
    lines = [line.partition("data: ")[2] for line in told.splitlines()]
    return [json.loads(line).get("type", "") for line in lines if line]


@pytest.mark.proves("F1")
async def test_a_generated_client_asks_reads_decides_and_gets_the_answer(
    served: Address, generated: Generated, tmp_path: Path
) -> None:
    (tmp_path / "greeting.txt").write_text("hello world\n")
    where = agent(tmp_path, WANTS_TO_EDIT, {"text": "Done."}).split("/")[-2:]
    client_module, models = generated.module("client"), generated.module("models")
    client = client_module.AuthenticatedClient(
        base_url=served.url, token=TOKENS["ana"], httpx_args={"trust_env": False}, timeout=httpx.Timeout(SURE_SECONDS)
    )
    async with client:
        body = models.Submit(messages="Greet the moon")
        asked = await generated.ask("message", *where, client=client, body=body, wait=30, idempotency_key="r-1")
        (waiting,) = (await generated.ask("pending", *where, client=client)).calls
        wrong = models.Decision(call_id=waiting.call_id, decision=models.DecisionDecision.ALLOW, digest="0" * 64)
        refused = await generated.ask("decide", *where, client=client, body=wrong)
        decision = models.Decision(
            call_id=waiting.call_id, decision=models.DecisionDecision.ALLOW, digest=waiting.digest
        )
        decided = await generated.ask("decide", *where, client=client, body=decision)
        after = await generated.ask("message", *where, client=client, body=body, wait=30, idempotency_key="r-1")
        told = await generated.ask("events", *where, client=client, until=asked.reply_id)
        result = await generated.ask("result", *where, asked.reply_id, client=client)
        rows = await generated.ask("sessions", client=client, session=where[1])

    assert (asked.status, waiting.tool, waiting.input_[:1]) == ("waiting", "Edit", "{")
    assert {"REPLY_START", "REQUIRE_USER_CONFIRM", "USER_CONFIRM_RESULT", "REPLY_END"} <= {*types_in(told)}
    assert (type(refused).__name__, refused.status) == ("ProblemBody", 409)
    assert type(decided).__name__ == "Decided"
    assert (after.reply_id, after.status, result.status) == (asked.reply_id, "finished", "finished")
    assert result.message.content[-1].text == "Done."
    assert [row.title for row in rows.sessions] == ["Greet the moon"]
    assert (tmp_path / "greeting.txt").read_text() == "hello moon\n"

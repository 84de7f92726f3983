"""The example of an application on Temporal: its page shows its files, and it survives kills. It has its own tests."""

import asyncio
import base64
import json
import os
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer

from examples.orders.test_orders import SAYS
from examples.orders.workers import CONVERTER
from examples.orders.workflows import OrderWorkflow
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.processes import bound_to_parent, tail
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.e2e.test_first_hour import typed
from tests.limits import SURE_SECONDS
from tests.servers.local import free_port

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
PAGE = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("application.md", "application-test.md"))
ORDERS = ROOT / "examples" / "orders"


def test_the_page_shows_the_files_of_the_example() -> None:
    shown = dict(re.findall(r'(?ms)^```python title="examples/orders/([^"]+)"\n(.*?)^```$', PAGE))

    assert shown == {name: (ORDERS / name).read_text(encoding="utf-8") for name in shown}
    assert {*shown} == {each.name for each in ORDERS.glob("*.py")} - {"__init__.py"}
    assert re.findall(r"(?m)^```python$", PAGE) == []


@dataclass(frozen=True)
class Shop:
    """A server, and what the page has people type."""

    folder: Path
    environment: dict[str, str]
    address: str

    def typed(self, *words: str) -> list[str]:
        """The page's one line that begins so."""
        (line,) = [line for line in typed(PAGE) if line[: len(words)] == [*words]]
        return line

    @asynccontextmanager
    async def running(self, *words: str) -> AsyncIterator[Process]:
        """A program of the page; killed at the end, as a crash would."""
        log = self.folder / f"{words[-1]}.log"
        with log.open("ab") as sink:
            process = await asyncio.create_subprocess_exec(
                *bound_to_parent([sys.executable, *words]), cwd=ROOT, env=self.environment, stdout=sink, stderr=sink
            )
        try:
            yield process
            assert process.returncode is None, tail(log)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def run(self, *words: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, cwd=ROOT, env=self.environment, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
        )
        said, _ = await process.communicate()
        return process.returncode or 0, said.decode()


@pytest.fixture
async def shop(temporal_cli: Path, tmp_path: Path) -> AsyncIterator[Shop]:
    """With a server of its own: the application's queues and orders have names that other tests use too."""
    settings = DevServerSettings(
        temporal=temporal_cli, directory=tmp_path / "server", search_attributes=SEARCH_ATTRIBUTES
    )
    script = tmp_path / "says.jsonl"
    script.write_text("".join(json.dumps(line) + "\n" for line in SAYS), encoding="utf-8")
    exports = dict(line[1].split("=", 1) for line in typed(PAGE) if line[0] == "export")
    models = json.loads(exports["LONGHAUL_MODELS"])
    models["team"] |= {"provider": "scripted", "model": str(script)}  # in place of the page's
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "LONGHAUL_"))}
    async with DevServer(settings) as server:
        environment = kept | {
            **exports,
            "ORDERS_KEY": base64.b64encode(os.urandom(32)).decode(),
            "LONGHAUL_MODELS": json.dumps(models),
            "LONGHAUL_DATA_DIR": str(tmp_path / "data"),
            "LONGHAUL_TEMPORAL_CLI": str(temporal_cli),
            "TEMPORAL_ADDRESS": server.address,
        }
        yield Shop(tmp_path, environment, server.address)


@asynccontextmanager
async def service(shop: Shop) -> AsyncIterator[httpx.AsyncClient]:
    port = str(free_port())
    async with (
        shop.running("-m", *shop.typed("uvicorn"), "--port", port) as process,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=SURE_SECONDS, trust_env=False) as web,
    ):
        while not await answers(web):
            assert process.returncode is None
            await asyncio.sleep(0.1)
        yield web


async def answers(web: httpx.AsyncClient) -> bool:
    try:
        return (await web.get("/openapi.json")).is_success
    except httpx.TransportError:
        return False


async def waiting(web: httpx.AsyncClient) -> dict[str, Any]:
    """The refund that waits."""
    while not (calls := (await web.get("/approvals")).json()):  # noqa: ASYNC110  as a page asks
        await asyncio.sleep(0.1)
    (call,) = calls
    assert isinstance(call, dict)
    return call


def payloads(history: WorkflowHistory) -> bytes:
    return b"".join(event.SerializeToString() for event in history.events)


@pytest.mark.proves("X22", "X23")
async def test_a_refund_is_paid_once_though_the_workers_are_killed_between_its_approvals(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = shop.typed("python", "-m", "examples.orders.workers")[1:]
    async with service(shop) as web:
        async with shop.running(*workers):
            complaint = {"text": "The lamp hums."}
            started = await web.post("/orders/17/complaint", json=complaint, headers={"X-User": "mia"})
            call = await waiting(web)
            approval = {"customer": "mia", "call_id": call["call_id"], "decision": "allow", "digest": call["digest"]}
            first = await web.post("/orders/17/approval", json=approval, headers={"X-User": "ana"})
        async with shop.running(*workers):
            moved = await web.put("/orders/17/address", params={"address": "2 Quay"})
            twice = await web.post("/orders/17/approval", json=approval, headers={"X-User": "ana"})
            code, listed = await shop.run("-P", "-m", "longhaul.starter.cli.main", *shop.typed("longhaul", "inbox")[1:])
            second = await web.post("/orders/17/approval", json=approval, headers={"X-User": "bo"})
            while (found := (await web.get("/orders/17")).json()["decision"]) is None:  # noqa: ASYNC110  the same
                await asyncio.sleep(0.1)
    client = await Client.connect(shop.address)
    ids = ("order-17", "longhaul/refunds/mia/17")
    order, session = [await client.get_workflow_handle(each).fetch_history() for each in ids]
    monkeypatch.setenv("ORDERS_KEY", shop.environment["ORDERS_KEY"])
    await Replayer(workflows=[OrderWorkflow], data_converter=CONVERTER).replay_workflow(order)
    paid = [
        event
        for event in session.events
        if event.activity_task_scheduled_event_attributes.activity_type.name == "issue_refund"
    ]

    assert (started.status_code, moved.status_code, code) == (202, 202, 0)
    assert (first.json(), twice.status_code, second.json()) == ({call["call_id"]: "1 of 2"}, 409, {}), twice.text
    assert "issue_refund" in listed
    assert found == {"refunded_cents": 2400, "answer": "You get your money back."}
    assert len(paid) == 1
    assert [word for word in (b"lamp", b"Quay", b"2400") if word in payloads(order) + payloads(session)] == []


def test_the_page_has_people_type_nothing_else() -> None:
    assert [" ".join(line).partition("=")[0] for line in typed(PAGE)] == [
        "export ORDERS_KEY",
        "export LONGHAUL_TOOLS",
        "export LONGHAUL_MODELS",
        "python -m examples.orders.workers",
        "uvicorn examples.orders.service:app",
        "export LONGHAUL_CODEC",
        "longhaul inbox",
        "python -m pytest examples/orders",
    ]

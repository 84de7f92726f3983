"""Every port that our processes open has a row in the threat model, and by none of them a stranger decides anything."""

import asyncio
import base64
import json
import os
import re
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from temporalio.api.workflowservice.v1 import ListBatchOperationsRequest
from temporalio.client import Client

from longhaul.starter.client.client import Longhaul
from longhaul.starter.dev_server.processes import bound_to_parent
from longhaul.starter.settings import Settings
from tests.e2e.serve.test_sessions import WANTS_TO_EDIT, agent
from tests.limits import SURE_SECONDS
from tests.servers.local import free_port

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root sees what processes that keep to themselves have open"),
]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operating" / "security.md").read_text(encoding="utf-8")
LISTENING = "0A"
KINDS = {
    "`longhaul dev`: RPC",
    "`longhaul dev`: Web UI",
    "`longhaul dev`: the Web UI behind it",
    "`longhaul dev`: HTTP API",
    "`longhaul dev`: metrics",
    "`longhaul dev`: inner services",
    "`longhaul worker`: metrics",
    "`longhaul serve`",
    "`longhaul codec serve`",
    "`longhaul console`",
}
BLIND = {
    "namespace": "default",
    "visibilityQuery": 'WorkflowType="AgentSession" AND ExecutionStatus="Running"',
    "jobId": "blind",
    "reason": "x",
    "signalOperation": {
        "signal": "confirm",
        "identity": "x",
        "input": {
            "payloads": [
                {
                    "metadata": {"encoding": base64.b64encode(b"json/plain").decode()},
                    "data": base64.b64encode(b'{"decisions": [{"call_id": "edit-7", "decision": "allow"}]}').decode(),
                }
            ]
        },
    },
}
PATHS = ("/api/v1/namespaces/default/batch-operations/blind", "/v1/sessions/lamp/s/decisions", "/mcp", "/console")


@dataclass(frozen=True)
class Port:
    """One that is listened on."""

    address: str
    number: int
    pid: int

    @property
    def command(self) -> list[str]:
        return Path(f"/proc/{self.pid}/cmdline").read_text().split("\0")

    def after(self, flag: str) -> str:
        command = self.command
        return command[command.index(flag) + 1] if flag in command else ""


def listening(family: int, table: str) -> Iterator[tuple[str, int, str]]:
    for line in Path("/proc/net", table).read_text().splitlines()[1:]:
        fields = line.split()
        address, port = fields[1].split(":")
        if fields[3] == LISTENING:
            raw = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
            yield socket.inet_ntop(family, raw), int(port, 16), fields[9]


def ports_of(pids: set[int]) -> set[Port]:
    sockets = [*listening(socket.AF_INET, "tcp"), *listening(socket.AF_INET6, "tcp6")]
    held = dict[str, int]()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            if (found := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink()))) is not None:
                held[found[1]] = pid
    return {Port(address, port, held[inode]) for address, port, inode in sockets if inode in held}


def with_children(roots: set[int]) -> set[int]:
    parents = {
        int(path.name): int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and path.joinpath("stat").exists()
    }
    found = set(roots)
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return found


async def answer_of(port: Port, request: str) -> str:
    """The first line; empty from what speaks no HTTP/1."""
    reader, writer = await asyncio.open_connection(port.address, port.number)
    writer.write(request.encode())
    try:
        async with asyncio.timeout(SURE_SECONDS):
            line = await reader.readline()
    except ConnectionError:
        return ""
    finally:
        writer.close()
    return line.decode("latin-1").strip() if line.startswith(b"HTTP/1") else ""


async def kind_of(port: Port) -> str:
    if "start-dev" not in port.command:
        one = next(word for word in ("longhaul.worker", "dev", "codec", "serve", "console") if word in port.command)
        named = {"longhaul.worker": "`longhaul worker`: metrics", "dev": "`longhaul dev`: Web UI"}
        named["codec"] = "`longhaul codec serve`"
        return named.get(one, f"`longhaul {one}`")
    flags = {"--port": "RPC", "--http-port": "HTTP API", "--ui-port": "the Web UI behind it"}
    named = {port.after(flag): kind for flag, kind in flags.items()}
    if (kind := named.get(str(port.number))) is not None:
        return f"`longhaul dev`: {kind}"
    is_http = await answer_of(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return f"`longhaul dev`: {'metrics' if is_http.endswith('200 OK') else 'inner services'}"


@dataclass
class Everything:
    """All that can be started, with a session that waits for a person."""

    address: str
    folder: Path
    pids: set[int]

    @property
    def ports(self) -> set[Port]:
        return ports_of(with_children(self.pids))


async def first_line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode()


@pytest.fixture
async def everything(temporal_cli: Path, tmp_path: Path) -> AsyncIterator[Everything]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "LONGHAUL_"))}
    metrics = f"127.0.0.1:{free_port()}"
    data = str(tmp_path / "data")
    environment = kept | {
        "LONGHAUL_TEMPORAL_CLI": str(temporal_cli),
        "LONGHAUL_DATA_DIR": data,
        "LONGHAUL_METRICS": metrics,
        "LONGHAUL_TRUST": "1",
        "XDG_DATA_HOME": str(tmp_path / "of-the-user"),
    }
    (tmp_path / "greeting.txt").write_text("hello world\n")
    path = agent(tmp_path, WANTS_TO_EDIT, {"text": "Done."})
    async with AsyncExitStack() as running, asyncio.timeout(SURE_SECONDS):
        dev = await running.enter_async_context(
            longhaul(tmp_path, environment, "dev", "--port", "0", "--ui-port", "0", "--data-dir", data)
        )
        environment["TEMPORAL_ADDRESS"] = (await first_line(dev)).split()[-1]
        while "polling" not in await first_line(dev):
            assert dev.returncode is None
        others = [
            await running.enter_async_context(longhaul(tmp_path, environment, *command, "--port", "0"))
            for command in (("serve",), ("codec", "serve"), ("console",))
        ]
        for other in others:
            assert (await first_line(other)).startswith("http://127.0.0.1:")
        run = [sys.executable, "-P", "-m", "longhaul.starter.cli.main", "run", "Greet", "--agent", "lamp"]
        asked = await asyncio.create_subprocess_exec(
            *run, "--session", path.rpartition("/")[2], cwd=tmp_path, env=environment, stdin=DEVNULL, stdout=DEVNULL
        )
        assert await asked.wait() == 3
        yield Everything(environment["TEMPORAL_ADDRESS"], tmp_path, {one.pid for one in (dev, *others)})


@asynccontextmanager
async def longhaul(folder: Path, environment: dict[str, str], *words: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *bound_to_parent([sys.executable, "-P", "-m", "longhaul.starter.cli.main", *words]),
        cwd=folder,
        env=environment,
        stdin=DEVNULL,
        stdout=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


def rows() -> list[str]:
    table = PAGE.partition("\n## What listens\n")[2].partition("\n## ")[0]
    return [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ") and "---" not in line]


async def test_each_port_has_a_row_and_a_stranger_decides_by_none(everything: Everything) -> None:
    found = {port: await kind_of(port) for port in everything.ports}
    answers = dict[tuple[str, str, str], str]()
    for port, kind in found.items():
        own = f"{port.address}:{port.number}"
        for host, origin in (("evil.test", "http://evil.test"), (own, "http://evil.test"), ("evil.test", "")):
            for path in PATHS:
                head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                head += f"Origin: {origin}\r\n" if origin else ""
                body = json.dumps(BLIND)
                request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}"
                answers[kind, f"{host} {origin}", path] = await answer_of(port, request)
    client = await Client.connect(everything.address)
    batches = await client.workflow_service.list_batch_operations(ListBatchOperationsRequest(namespace="default"))
    async with Longhaul.connect(everything.address, settings=Settings()) as app:
        waiting = [each.status async for each in app.client.list_workflows("LonghaulStatus = 'waiting'")]

    assert set(found.values()) == KINDS, found
    assert [port for port in found if not port.address.startswith("127.")] == []
    assert list(batches.operation_info) == []
    assert len(waiting) == 1
    assert (everything.folder / "greeting.txt").read_text() == "hello world\n"
    taken = {asked: answer for asked, answer in answers.items() if answer.split(" ")[1:2] not in (["400"], ["403"],
             ["404"], ["405"], ["421"], [])}  # fmt: skip
    assert {kind for kind, _, _ in taken} <= {"`longhaul dev`: metrics", "`longhaul worker`: metrics"}, taken


def test_the_page_has_each_of_them_and_each_port_of_the_composition() -> None:
    composition = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    published = {name for name, service in composition.items() if service.get("ports")}
    of_compose = {name for row in rows() if row.startswith("docker-compose") for name in re.findall(r"`(\w+)`", row)}

    assert {row for row in rows() if row.startswith("`longhaul")} == KINDS
    assert of_compose == published

"""The development server as users get it: real processes, real ports, a real kill."""

import asyncio
import contextlib
import fcntl
import json
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from queue import Queue

import httpx
import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from longhaul.starter.dev_server.dev_server import DevServer, DevServerFailed, DevServerSettings
from longhaul.starter.dev_server.processes import bound_to_parent, run_within
from longhaul.starter.dev_server.temporal_cli import TemporalCliMissing, cache_directory, find_temporal
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server


@pytest.fixture
def settings(temporal_cli: Path, tmp_path: Path) -> DevServerSettings:
    return DevServerSettings(
        temporal=temporal_cli, directory=tmp_path / "server", search_attributes={"Umbrella": "Keyword"}
    )


@pytest.fixture
def own_environment() -> Iterator[MutableMapping[str, str]]:
    """The environment, to be changed; put back afterwards."""
    before = dict(os.environ)
    yield os.environ
    os.environ.clear()
    os.environ.update(before)


async def test_a_started_server_answers_and_a_stopped_one_is_gone(settings: DevServerSettings) -> None:
    async with DevServer(settings) as server:
        client = await Client.connect(server.address)
        assert await client.service_client.check_health()
        pid = server.pid

    assert pid is not None
    assert server.pid is None
    assert is_gone(Path(f"/proc/{pid}/stat"), within_seconds=30)


async def test_a_database_that_has_an_attribute_with_another_type_is_refused(settings: DevServerSettings) -> None:
    async with DevServer(settings) as server:
        database = server.database
    numbered = replace(settings, search_attributes={"Umbrella": "Int"})

    with pytest.raises(DevServerFailed) as refused:
        await DevServer(numbered).start()

    assert "Umbrella is of type Keyword and has to be of type Int" in str(refused.value)
    assert str(database) in str(refused.value)
    assert "--data-dir" in str(refused.value)


@pytest.mark.proves("S7")
async def test_a_workflow_outlives_a_killed_server(settings: DevServerSettings) -> None:
    async with DevServer(settings) as server:
        client = await Client.connect(server.address)
        handle = await client.start_workflow("Parked", "rain", id="w-umbrella", task_queue="nobody-listens")
        await server.kill()
        address, killed = server.address, server.pid

        await server.start()
        described = await (await Client.connect(server.address)).get_workflow_handle(handle.id).describe()

    assert killed is None
    assert server.address == address
    assert described.status == WorkflowExecutionStatus.RUNNING
    assert described.run_id == handle.result_run_id


async def test_a_later_process_finds_the_database_of_the_one_before(settings: DevServerSettings) -> None:
    async with DevServer(settings) as server:
        client = await Client.connect(server.address)
        await client.start_workflow("Parked", id="w-teapot", task_queue="nobody-listens")

    async with DevServer(settings) as later:
        handle = (await Client.connect(later.address)).get_workflow_handle("w-teapot")
        described = await handle.describe()

    assert described.status == WorkflowExecutionStatus.RUNNING


async def test_a_server_whose_database_is_wedged_by_impatient_clients_serves_again(settings: DevServerSettings) -> None:
    async with DevServer(settings) as server:
        client, wedged = await Client.connect(server.address), server.pid
        for patch in range(50):
            await client.start_workflow("Parked", id=f"w-{patch}", task_queue="nobody-listens")

        async def hurry(number: int) -> None:
            chance = random.Random(number)  # noqa: S311  no secret
            while server.pid == wedged:
                handle = client.get_workflow_handle(f"w-{chance.randrange(50)}")
                with contextlib.suppress(RPCError):
                    await handle.signal("knock", rpc_timeout=timedelta(milliseconds=chance.randint(1, 30)))

        await asyncio.gather(*map(hurry, range(60)))
        described = await client.get_workflow_handle("w-7").describe()

    assert described.status == WorkflowExecutionStatus.RUNNING


async def test_a_second_server_on_one_database_is_refused_and_one_after_a_kill_is_not(
    settings: DevServerSettings,
) -> None:
    async with DevServer(settings) as first:
        with pytest.raises(DevServerFailed, match="another `longhaul dev` has its database in"):
            await DevServer(settings).start()
        await first.kill()
        async with DevServer(settings) as second:
            assert second.pid is not None


async def test_the_web_interface_answers_where_it_was_asked_for(temporal_cli: Path, tmp_path: Path) -> None:
    async with DevServer(DevServerSettings(temporal=temporal_cli, directory=tmp_path, ui_port=0)) as server:
        assert server.ui_port is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", server.ui_port)
        writer.write(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
        status_line = await reader.readline()
        writer.close()
        await writer.wait_closed()

    assert status_line.startswith(b"HTTP/1.0 200")
    assert server.ui_url == f"http://127.0.0.1:{server.ui_port}"


BATCH = "/api/v1/namespaces/default/batch-operations/blind"
BLIND = {
    "namespace": "default",
    "visibilityQuery": 'ExecutionStatus="Running"',
    "jobId": "blind",
    "reason": "x",
    "signalOperation": {"signal": "confirm", "identity": "x"},
}
OWN, STRANGE = {"Host": "localhost"}, {"Host": "evil.test"}
STRANGERS = {
    "a name that leads here": STRANGE,
    "its page's own": {**STRANGE, "Origin": "http://evil.test"},
    "another page": {**OWN, "Origin": "http://evil.test"},
    "a page of this machine": {**OWN, "Origin": "http://localhost:3000"},
    "a page without an address": {**OWN, "Origin": "null"},
    "a name that begins like ours": {"Host": "localhost.evil.test"},
    "a user before our name": {"Host": "localhost@evil.test"},
    "an address of the network": {"Host": "192.168.1.7:8233"},
    "none": {"Host": ""},
}


@pytest.fixture(scope="module")
async def with_ui(temporal_cli: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    directory = tmp_path_factory.mktemp("ui")
    async with DevServer(DevServerSettings(temporal=temporal_cli, directory=directory, ui_port=0)) as server:
        yield server


@pytest.mark.parametrize("headers", STRANGERS.values(), ids=STRANGERS)
async def test_the_web_interface_answers_no_strangers(headers: dict[str, str], with_ui: DevServer) -> None:
    async with httpx.AsyncClient(base_url=with_ui.ui_url or "", trust_env=False, timeout=SURE_SECONDS) as client:
        page = await client.get("/", headers=headers)
        posted = await client.post(BATCH, headers={**headers, "Content-Type": "text/plain"}, content=json.dumps(BLIND))

    assert (page.status_code, posted.status_code) == (403, 403)
    assert "set-cookie" not in page.headers


async def test_and_its_own_pages_still_act_by_it(with_ui: DevServer) -> None:
    client = await Client.connect(with_ui.address)
    parked = await client.start_workflow("Parked", id="w-lantern", task_queue="nobody-listens")
    async with httpx.AsyncClient(base_url=with_ui.ui_url or "", trust_env=False, timeout=SURE_SECONDS) as browser:
        page = await browser.get("/")
        script = await browser.get(page.text.split('href="/_app/', 1)[1].split('"', 1)[0].join(("/_app/", "")))
        async with asyncio.timeout(SURE_SECONDS):
            while (await browser.get("/api/v1/namespaces")).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.1)  # it looks for its server again after a pause
        headers = {"X-CSRF-Token": browser.cookies["_csrf"], "Origin": with_ui.ui_url or ""}
        told = await browser.post(
            f"/api/v1/namespaces/default/workflows/{parked.id}/signal/light", headers=headers, json={}
        )

    assert (page.status_code, script.status_code, told.status_code) == (200, 200, 200)
    last = [event.event_type async for event in parked.fetch_history_events()][-1]
    assert last == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED


SPLIT = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
SMUGGLED = {
    "a second request behind the first": b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
    "one that two lengths split": SPLIT,
    "two hosts": b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n\r\n",
    "a whole address": b"GET http://evil.test/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a folded line": b"GET / HTTP/1.1\r\nHost: localhost\r\n Host: evil.test\r\n\r\n",
    "a bare line end": b"GET / HTTP/1.1\r\nX: y\nHost: evil.test\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("bytes_sent", SMUGGLED.values(), ids=SMUGGLED)
async def test_no_request_reaches_it_hidden_in_another(bytes_sent: bytes, with_ui: DevServer) -> None:
    assert with_ui.ui_port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", with_ui.ui_port)
    writer.write(bytes_sent + b"GET /healthz HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    async with asyncio.timeout(SURE_SECONDS):
        answered = await reader.read()
    writer.close()

    assert answered.count(b"HTTP/1.1 ") == 1
    assert b'{"status":"OK"}' not in answered


async def test_its_http_interface_answers_nobody(with_ui: DevServer) -> None:
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{with_ui.http_port}", trust_env=False, timeout=SURE_SECONDS
    ) as client:
        for headers in (*STRANGERS.values(), {}, OWN, {"Host": f"127.0.0.1:{with_ui.http_port}"}):
            sent = {**headers, "Content-Type": "text/plain"}
            try:
                posted = await client.post(BATCH, headers=sent, content=json.dumps(BLIND))
            except httpx.ReadError:
                continue  # the server has hung up before it had read all of it
            assert posted.status_code in (400, 403), headers


async def test_a_command_that_leaves_its_http_interface_open_is_not_used(temporal_cli: Path, tmp_path: Path) -> None:
    """One of before the setting: it passes over what it does not know."""
    older = tmp_path / "temporal"
    older.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "kept = [one.replace('frontend.httpAllowedHosts', 'frontend.unknown') for one in sys.argv[1:]]\n"
        f"os.execv({str(temporal_cli)!r}, ['temporal', *kept])\n"
    )
    older.chmod(0o755)

    with pytest.raises(DevServerFailed, match=r"leaves its HTTP API open.*install a newer Temporal CLI"):
        await DevServer(DevServerSettings(temporal=older, directory=tmp_path / "server")).start()


async def test_a_taken_port_is_refused_before_a_stranger_answers_in_our_place(
    temporal_cli: Path, tmp_path: Path, settings: DevServerSettings
) -> None:
    async with DevServer(settings) as first:
        second = DevServer(DevServerSettings(temporal=temporal_cli, directory=tmp_path / "second", port=first.port))

        with pytest.raises(DevServerFailed, match=f"port {first.port} .* cannot be used"):
            await second.start()


async def test_a_server_that_ends_at_once_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    grumpy = tmp_path / "grumpy"
    grumpy.write_text("#!/bin/sh\necho no umbrella, no server >&2\nexit 7\n")
    grumpy.chmod(0o755)
    server = DevServer(DevServerSettings(temporal=grumpy, directory=tmp_path))

    with pytest.raises(DevServerFailed, match=r"exit status 7(.|\n)*no umbrella, no server"):
        await server.start()

    assert server.pid is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died")
def test_nothing_outlives_a_parent_that_is_killed() -> None:
    sleeper = bound_to_parent(["sleep", "60"])
    script = (
        "import os, subprocess, sys, time\n"
        "from longhaul.starter.dev_server.processes import bound_to_parent\n"
        "child = subprocess.Popen(bound_to_parent(['sleep', '60']), stdout=subprocess.DEVNULL)\n"
        "time.sleep(0.5)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = Path(f"/proc/{int(parent.stdout.readline())}/stat")
    assert "sleep" in child.read_text()

    parent.kill()
    parent.communicate()

    assert sleeper[-2:] == ["sleep", "60"]
    assert is_gone(child, within_seconds=30)


def is_gone(stat: Path, within_seconds: float) -> bool:
    """Whether the process ends; one that nobody has reaped yet counts as gone."""
    script = (
        f"for i in $(seq {int(within_seconds * 20)}); do "
        f"[ -e {stat} ] && ! grep -q ') Z ' {stat} || exit 0; sleep 0.05; done; exit 1"
    )
    return run_within(within_seconds + 5, ["sh", "-c", script], {}) == ""


def test_a_named_command_that_does_not_start_is_an_error_and_nothing_else_is_tried(
    own_environment: MutableMapping[str, str],
) -> None:
    own_environment["LONGHAUL_TEMPORAL_CLI"] = "/nowhere/temporal"
    said: list[str] = []

    with pytest.raises(TemporalCliMissing, match="LONGHAUL_TEMPORAL_CLI='/nowhere/temporal'"):
        find_temporal(said.append)

    assert said == []


def test_a_command_on_the_path_that_does_not_start_is_passed_over(
    temporal_cli: Path, tmp_path: Path, own_environment: MutableMapping[str, str]
) -> None:
    broken = tmp_path / "bin" / "temporal"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    cached = tmp_path / "cache" / "longhaul" / "bin" / "temporal"
    cached.parent.mkdir(parents=True)
    cached.symlink_to(temporal_cli)
    own_environment.pop("LONGHAUL_TEMPORAL_CLI", None)
    own_environment.update(PATH=f"{broken.parent}:{os.environ['PATH']}", XDG_CACHE_HOME=str(tmp_path / "cache"))
    said: list[str] = []

    found = find_temporal(said.append)

    assert found == cached == cache_directory() / "temporal"
    assert said == [f"{str(broken)!r} does not start, looking further"]


def test_what_another_process_fetches_is_waited_for_and_taken(
    temporal_cli: Path, tmp_path: Path, own_environment: MutableMapping[str, str]
) -> None:
    own_environment.pop("LONGHAUL_TEMPORAL_CLI", None)
    own_environment.update(PATH="", XDG_CACHE_HOME=str(tmp_path))
    cached, heard = cache_directory() / "temporal", Queue[str]()
    cached.parent.mkdir(parents=True)
    with ThreadPoolExecutor() as thread:
        with (cached.parent / "fetching.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = thread.submit(find_temporal, heard.put)
            said = heard.get(timeout=SURE_SECONDS)
            cached.symlink_to(temporal_cli)

        assert found.result(timeout=SURE_SECONDS) == cached
    assert said == "another process fetches Temporal's command line; waiting for it"
    assert heard.empty()


def test_a_command_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    complaint = run_within(1, ["sh", "-c", f"sleep 60 & echo $! > {pid_file}; wait"], {})

    assert complaint == "not done after 1 seconds"
    assert is_gone(Path(f"/proc/{pid_file.read_text().strip()}/stat"), within_seconds=30)

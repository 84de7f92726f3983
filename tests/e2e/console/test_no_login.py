"""`longhaul console`: no login, and nobody but this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.serve.test_sessions import agent
from tests.e2e.warm_process import WarmProcess
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server


@asynccontextmanager
async def console(folder: Path, environment: dict[str, str]) -> AsyncIterator[str]:
    """The address that `longhaul console` prints, in this folder."""
    with (folder / "console.log").open("ab") as log:
        process = await WarmProcess.command(
            ("console", "--port", "0"), environment | {"LONGHAUL_TRUST": "1"}, folder, log.fileno()
        )
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()


def key_of(start: httpx.Response) -> str:
    return start.text.partition('name="form_key" value="')[2].partition('"')[0]


async def test_it_listens_here_alone_and_answers_to_no_other_name(
    tmp_path: Path, worker: int, cli_environment: dict[str, str]
) -> None:
    """Neither names and origins of a served machine nor its tokens count for it."""
    assert worker
    agent(tmp_path, {"text": "Hello."})
    environment = cli_environment | {
        "LONGHAUL_SERVE_HOSTS": "sea.example",
        "LONGHAUL_SERVE_ORIGINS": "https://sea.example",
    }
    async with (
        console(tmp_path, environment) as url,
        httpx.AsyncClient(trust_env=False, timeout=SURE_SECONDS) as client,
    ):
        start = await client.get(f"{url}/start")
        elsewhere = [
            (await client.get(url, headers=headers)).status_code
            for headers in ({"Host": "sea.example"}, {"Host": "rebound.example"}, {"Origin": "https://sea.example"})
        ]
        form = {"agent": "lamp", "session": tmp_path.name, "text": "hi", "form_key": key_of(start)}
        own = {"Origin": url.removesuffix("/console")}
        forged = await client.post(f"{url}/start", data={**form, "form_key": "0" * 64}, headers=own)
        started = await client.post(f"{url}/start", data=form, headers=own)
        seen = await client.get(own["Origin"] + started.headers["location"])

    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/console")
    assert start.status_code == 200
    assert "Sign out" not in start.text
    assert elsewhere == [421, 421, 403]
    assert (forged.status_code, started.status_code, seen.status_code) == (403, 303, 200)


HOSTS = {
    "127.0.0.1:{port}": 200,
    "127.0.0.1": 200,
    "127.0.0.1:1": 200,
    "LOCALHOST:{port}": 200,
    "[::1]:{port}": 200,
    "127.0.0.1:{port}@evil.example": 421,
    "127.0.0.1@evil.example": 421,
    "evil.example@127.0.0.1:{port}": 421,
    "127.0.0.1:{port}:80": 421,
    "127.0.0.1:": 421,
    "127.0.0.1:0": 421,
    "127.0.0.1:65536": 421,
    "127.0.0.1:8e1": 421,
    "127.0.0.1.:{port}": 421,
    "localhost.:{port}": 421,
    "127.0.0.1.evil.example": 421,
    "127.0.0.1:{port}, evil.example": 421,
    "127.0.0.1/evil": 421,
    "127.1:{port}": 421,
    "0177.0.0.1:{port}": 421,
    "2130706433:{port}": 421,
    "0.0.0.0:{port}": 421,
    "[::1]evil.example": 421,
    "[::1]@evil.example": 421,
    "[::1]:{port}@evil.example": 421,
    "[0:0:0:0:0:0:0:1]:{port}": 421,
    "[::ffff:127.0.0.1]:{port}": 421,
    "[::1%25lo]:{port}": 421,
    "::1": 421,
    "evil.example/health?": 421,
    "evil.example#": 421,
    "": 421,
}
"""Of the header Host: what it says, and what is answered."""
ORIGINS = {
    "http://{host}": 200,
    "https://{host}": 200,
    "null": 403,
    "": 403,
    "{host}": 403,
    "://{host}": 403,
    "file://{host}": 403,
    "http://{host}/": 403,
    "http://evil.example@{host}": 403,
    "http://{host}@evil.example": 403,
    "http://{host}.evil.example": 403,
    "http://127.0.0.1:1": 403,
    "http://127.0.0.1": 403,
    "http://localhost:{port}": 403,
    "http://[::1]:{port}": 403,
    "http://{host} http://evil.example": 403,
    "http://{host}, null": 403,
}
"""Of the header Origin, beside a Host that is the console's own."""


async def status_of(port: int, *headers: str, path: str = "/console") -> int:
    """What is answered to these headers as they stand here."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = (f"GET {path} HTTP/1.1", *headers, "Connection: close")
    writer.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    try:
        async with asyncio.timeout(SURE_SECONDS):
            return int((await reader.readline()).split()[1])
    finally:
        writer.close()


async def test_what_is_not_exactly_its_name_and_its_page_is_let_in_nowhere(
    tmp_path: Path, worker: int, cli_environment: dict[str, str]
) -> None:
    assert worker
    async with console(tmp_path, cli_environment) as url:
        port = int(url.removesuffix("/console").rpartition(":")[2])
        own = f"127.0.0.1:{port}"
        by_host = {host: await status_of(port, f"Host: {host.format(port=port)}") for host in HOSTS}
        by_origin = {
            origin: await status_of(port, f"Host: {own}", f"Origin: {origin.format(host=own, port=port)}")
            for origin in ORIGINS
        }
        twice = [
            await status_of(port, f"Host: {own}", f"Origin: http://{own}", "Origin: http://evil.example"),
            await status_of(port, f"Host: {own}", "Origin: http://evil.example", f"Origin: http://{own}"),
            await status_of(port, f"Host: {own}", "Host: evil.example"),
            await status_of(port, "Host: evil.example", f"Host: {own}"),
            await status_of(port),
        ]
        elsewhere = await status_of(port, "Host: evil.example", path="http://127.0.0.1/console")

    assert by_host == HOSTS
    assert by_origin == ORIGINS
    assert twice == [400, 400, 400, 400, 400]
    assert elsewhere == 421


@pytest.mark.proves("X15")
async def test_a_session_begins_in_the_folder_that_is_named(
    tmp_path: Path, worker: int, cli_environment: dict[str, str]
) -> None:
    assert worker
    agent(tmp_path, {"text": "Hello."})
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    script = f"scripted:{tmp_path / 'lamp.jsonl'}"
    async with (
        console(tmp_path, cli_environment) as url,
        httpx.AsyncClient(trust_env=False, timeout=SURE_SECONDS) as me,
    ):
        own = {"Origin": url.removesuffix("/console")}
        start = await me.get(f"{url}/start")
        form = {"agent": "lamp", "text": "hi", "form_key": key_of(start), "model": script, "session": tmp_path.name}
        started = await me.post(f"{url}/start", data={**form, "workspace": str(folder)}, headers=own)
        there = own["Origin"] + started.headers["location"]
        async with asyncio.timeout(SURE_SECONDS):
            while str(folder) not in (await me.get(there)).text:  # noqa: ASYNC110  another process prepares the reply
                await asyncio.sleep(0.1)
        moved = await me.post(f"{url}/start", data={**form, "workspace": str(tmp_path)}, headers=own)
        relative = await me.post(f"{url}/start", data={**form, "session": "y", "workspace": "x"}, headers=own)
        unnamed = await me.post(f"{url}/start", data={**form, "session": ""}, headers=own)

    assert f'<option value="{tmp_path}">' in start.text
    assert (moved.status_code, relative.status_code, unnamed.status_code) == (409, 422, 422)
    assert "works in" in moved.text
    assert "send the absolute path" in relative.text

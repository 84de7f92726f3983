"""`longhaul console`: no login, and nobody but this machine."""

import asyncio
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from longhaul.starter.provision.processes import bound_to_parent
from tests.e2e.serve.test_sessions import agent
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server


@asynccontextmanager
async def console(folder: Path, environment: dict[str, str]) -> AsyncIterator[str]:
    """The address that `longhaul console` prints, in this folder."""
    command = [sys.executable, "-P", "-m", "longhaul.starter.cli.main", "console", "--port", "0"]
    with (folder / "console.log").open("ab") as log:
        process = await create_subprocess_exec(
            *bound_to_parent(command), env=environment | {"LONGHAUL_TRUST": "1"}, cwd=folder, stdout=PIPE, stderr=log
        )
    try:
        assert process.stdout is not None
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
        begun = await client.post(f"{url}/start", data=form, headers=own)
        seen = await client.get(own["Origin"] + begun.headers["location"])

    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/console")
    assert start.status_code == 200
    assert "Sign out" not in start.text
    assert elsewhere == [421, 421, 403]
    assert (forged.status_code, begun.status_code, seen.status_code) == (403, 303, 200)


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
        begun = await me.post(f"{url}/start", data={**form, "workspace": str(folder)}, headers=own)
        there = own["Origin"] + begun.headers["location"]
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

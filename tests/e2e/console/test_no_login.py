"""`longhaul console`: no login, and nobody but this machine."""

import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from pathlib import Path

import httpx
import pytest

from longhaul.starter.provision.processes import bound_to_parent
from tests.e2e.serve.test_sessions import agent
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server


async def test_it_listens_here_alone_and_answers_to_no_other_name(
    tmp_path: Path, worker: int, cli_environment: dict[str, str]
) -> None:
    """Neither names and origins of a served machine nor its tokens count for it."""
    assert worker
    agent(tmp_path, {"text": "Hello."})
    environment = cli_environment | {
        "LONGHAUL_TRUST": "1",
        "LONGHAUL_SERVE_HOSTS": "sea.example",
        "LONGHAUL_SERVE_ORIGINS": "https://sea.example",
    }
    command = [sys.executable, "-P", "-m", "longhaul.starter.cli.main", "console", "--port", "0"]
    with (tmp_path / "console.log").open("ab") as log:
        process = await create_subprocess_exec(
            *bound_to_parent(command), env=environment, cwd=tmp_path, stdout=PIPE, stderr=log
        )
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        async with httpx.AsyncClient(trust_env=False, timeout=SURE_SECONDS) as client:
            start = await client.get(f"{url}/start")
            key = start.text.partition('name="form_key" value="')[2].partition('"')[0]
            elsewhere = [
                (await client.get(url, headers=headers)).status_code
                for headers in (
                    {"Host": "sea.example"},
                    {"Host": "rebound.example"},
                    {"Origin": "https://sea.example"},
                )
            ]
            form = {"agent": "lamp", "session": tmp_path.name, "text": "hi", "form_key": key}
            own = {"Origin": url.removesuffix("/console")}
            forged = await client.post(f"{url}/start", data={**form, "form_key": "0" * 64}, headers=own)
            begun = await client.post(f"{url}/start", data=form, headers=own)
            seen = await client.get(own["Origin"] + begun.headers["location"])
    finally:
        process.kill()
        await process.wait()

    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/console")
    assert start.status_code == 200
    assert "Sign out" not in start.text
    assert elsewhere == [421, 421, 403]
    assert (forged.status_code, begun.status_code, seen.status_code) == (403, 303, 200)

"""Schemathesis against `longhaul serve`: what is made from the OpenAPI document is answered as the document says."""

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from tests.e2e.serve.test_sessions import EDIT, agent
from tests.e2e.serving import TOKENS, serving, tokens_file

pytestmark = [pytest.mark.server, pytest.mark.chaos, pytest.mark.timeout(400)]

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
WANTS_TO_EDIT = {"tool_calls": [{"id": "edit-7", "name": "Edit", "input": EDIT}]}
ENDLESS = ("events", "compact")
"""One is a stream, the other waits for the session that waits."""


async def test_no_request_made_from_the_document_is_answered_otherwise(
    tmp_path: Path, worker: int, cli_environment: dict[str, str]
) -> None:
    assert worker
    (tmp_path / "greeting.txt").write_text("hello world\n")
    name = agent(tmp_path, WANTS_TO_EDIT).rpartition("/")[2]
    # Most that is made up is about a session that nobody has started; these are about one that waits.
    (tmp_path / "schemathesis.toml").write_text(f'[parameters]\n"path.agent" = "lamp"\n"path.session" = "{name}"\n')
    settings = cli_environment | {"LONGHAUL_SERVE_TOKENS": str(tokens_file(tmp_path)), "LONGHAUL_TRUST": "1"}
    async with serving(tmp_path, settings) as server:
        async with server.client() as ana:
            path = f"/v1/sessions/lamp/{name}/messages"
            started = await ana.post(path, json={"messages": "Greet"}, params={"wait": 30})
        left_out = [word for each in ENDLESS for word in ("--exclude-operation-id", each)]
        # What a schema can't say (two fields that exclude each other, text in a path) may be refused all the same.
        checks = ["--exclude-checks", "positive_data_acceptance", "--request-timeout", "30", "--seed", "12"]
        # One worker: in several, Python 3.11's own parser fails now and then.
        asked = ["--max-examples", "15", "--phases", "fuzzing", "--workers", "1", "--no-color"]
        process = await asyncio.create_subprocess_exec(
            str(SCHEMATHESIS),
            "run",
            f"{server.url}/openapi.json",
            *("-H", f"Authorization: Bearer {TOKENS['ana']}"),
            *left_out,
            *checks,
            *asked,
            cwd=tmp_path,
            env=settings,
            stdout=PIPE,
            stderr=STDOUT,
        )
        said, _ = await process.communicate()

    assert started.json()["status"] == "waiting"
    assert process.returncode == 0, said.decode()[-4_000:]
    assert " passed" in said.decode()

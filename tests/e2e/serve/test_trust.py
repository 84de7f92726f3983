"""`longhaul serve` in a folder whose agents change behind its back."""

import json
from pathlib import Path

import pytest

from longhaul.starter import folder_trust
from tests.e2e.serving import serving, tokens_file

pytestmark = pytest.mark.server


async def test_agents_that_change_begin_nothing_until_they_are_trusted_again(
    tmp_path: Path, worker: int, cli_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worker
    own = {"XDG_DATA_HOME": str(tmp_path / "own")}
    monkeypatch.setenv("XDG_DATA_HOME", own["XDG_DATA_HOME"])
    (tmp_path / "agents").mkdir()
    (tmp_path / "lamp.jsonl").write_text(json.dumps({"text": "Lit."}))
    file = tmp_path / "agents" / "lamp.toml"
    file.write_text(f'model = "scripted:{tmp_path}/lamp.jsonl"\n')
    folder_trust.look(tmp_path).remember()
    environment = cli_environment | own | {"LONGHAUL_SERVE_TOKENS": str(tokens_file(tmp_path))}
    ask = {"messages": "Light"}

    async with serving(tmp_path, environment) as server, server.client() as client:
        before = await client.post("/v1/sessions/lamp/dawn/messages?wait=20", json=ask)
        with file.open("a") as more:
            more.write('[permission]\nmode = "bypass"\n')
        changed = await client.post("/v1/sessions/lamp/noon/messages", json=ask)
        read = await client.get("/v1/sessions/lamp/dawn/transcript")
        folder_trust.look(tmp_path).remember()
        again = await client.post("/v1/sessions/lamp/dusk/messages?wait=20", json=ask)

    assert [answer.status_code for answer in (before, changed, read, again)] == [200, 500, 200, 200]
    assert "have changed since they were trusted" in changed.json()["detail"]
    assert "`longhaul trust " in server.log.read_text()

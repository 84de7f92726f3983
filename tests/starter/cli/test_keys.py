"""`longhaul keys`, in this process: a new master key, and all keys wrapped with it."""

import json
from pathlib import Path

import pytest

from longhaul.starter.cli.commands import keys
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.connection.connect import keyring_of
from longhaul.starter.settings import Settings
from longhaul.stores.keys.keyring import BadKeysSetting, WrongMaster


async def made(capsys: pytest.CaptureFixture[str], name: str) -> str:
    assert await keys.new(name) == Exit.DONE
    return capsys.readouterr().out.strip()


async def test_all_keys_are_wrapped_with_the_newest_master_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LONGHAUL_DATA_DIR", str(tmp_path))
    old, new = await made(capsys, "2026"), await made(capsys, "2027")
    monkeypatch.setenv("LONGHAUL_MASTER_KEY", old)
    ring = keyring_of(Settings())
    assert ring is not None
    secret = await ring.encrypt("ana", b"amber", begins=True)
    monkeypatch.setenv("LONGHAUL_MASTER_KEY", f"{new},{old}")

    code = await keys.rewrap(Screen(as_json=True))

    assert (code, json.loads(capsys.readouterr().out)) == (Exit.DONE, {"rewrapped": 1, "keys": 1})
    monkeypatch.setenv("LONGHAUL_MASTER_KEY", new)
    ring = keyring_of(Settings())
    assert ring is not None
    assert await ring.decrypt("ana", *secret) == b"amber"


async def test_what_can_not_be_done_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LONGHAUL_DATA_DIR", str(tmp_path))
    with pytest.raises(BadKeysSetting, match="key 1 has no name"):
        await keys.new("a b")
    with pytest.raises(Misuse, match="LONGHAUL_MASTER_KEY is not set, so nothing is encrypted here"):
        await keys.rewrap(Screen())
    monkeypatch.setenv("LONGHAUL_MASTER_KEY", await made(capsys, "2026"))
    ring = keyring_of(Settings())
    assert ring is not None
    await ring.check()
    monkeypatch.setenv("LONGHAUL_MASTER_KEY", await made(capsys, "2027"))

    with pytest.raises(WrongMaster, match="the master key '2026' is needed"):
        await keys.rewrap(Screen())

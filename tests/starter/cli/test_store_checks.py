"""What the doctor says of the places where sessions are written down."""

import base64
import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from longhaul.starter.cli.doctor.local_checks import Check
from longhaul.starter.cli.doctor.server_checks import on_the_stores
from longhaul.starter.settings import Settings
from tests.servers.redis_server import find_redis, redis_server


async def checks(settings: Settings) -> dict[str, Check]:
    return {check.name: check async for check in on_the_stores(settings)}


async def test_files_that_can_be_written_are_fine(tmp_path: Path) -> None:
    found = await checks(Settings(data_dir=tmp_path, store=f"file://{tmp_path}/kept", blobs=str(tmp_path / "blobs")))

    assert {name: (check.ok, check.detail) for name, check in found.items()} == {
        "store": (True, "file answers"),
        "blobs": (True, str(tmp_path / "blobs")),
    }


async def test_folders_that_can_not_be_made_are_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    found = await checks(
        Settings(data_dir=tmp_path, store=f"file://{tmp_path}/taken", blobs=str(tmp_path / "taken" / "blobs"))
    )

    assert [check.ok for check in found.values()] == [False, False]
    assert all(f"{tmp_path}/taken" in check.detail for check in found.values())
    assert "LONGHAUL_STORE" in found["store"].fix
    assert "LONGHAUL_BLOBS" in found["blobs"].fix


async def test_what_is_no_setting_or_does_not_answer_is_a_sentence_without_its_password(tmp_path: Path) -> None:
    found = await checks(Settings(data_dir=tmp_path, store="stone://tablet", blobs="redis://ana:violet@127.0.0.1:1/0"))

    assert "nothing is known of stone://" in found["store"].detail
    assert not found["blobs"].ok
    assert "violet" not in str(found)


async def test_a_store_of_one_host_is_missed_where_several_work(tmp_path: Path) -> None:
    found = await checks(Settings(data_dir=tmp_path, shared=True))

    assert "keeps sessions on this host alone" in found["store"].detail


@pytest.mark.redis
async def test_a_redis_that_forgets_is_told_how_to_remember(redis_url: str, tmp_path: Path) -> None:
    lasting = ("--appendonly", "yes", "--maxmemory-policy", "noeviction")
    with redis_server(find_redis(print), tmp_path, *lasting) as kept_url:
        found = await checks(Settings(data_dir=tmp_path, store=redis_url, blobs=kept_url))

    assert found["store"].ok
    assert found["blobs"].ok
    assert not found["store keeps"].ok
    assert found["store keeps"].fix == "redis-cli CONFIG SET appendonly yes"
    assert found["blobs keep"].ok, found["blobs keep"]


async def test_the_keys_of_encrypted_sessions_are_looked_at(tmp_path: Path) -> None:
    right, wrong = (SecretStr(f"2026:{base64.b64encode(os.urandom(32)).decode()}") for _ in range(2))
    fine = await checks(Settings(data_dir=tmp_path, master_key=right))
    other = await checks(Settings(data_dir=tmp_path, master_key=wrong))
    without = await checks(Settings(data_dir=tmp_path))

    assert (fine["encryption"].ok, str(tmp_path / "keys.db") in fine["encryption"].detail) == (True, True)
    assert "the key named '2026' is another than the one" in other["encryption"].detail
    assert "sessions were encrypted here" in without["encryption"].detail
    assert (other["encryption"].ok, without["encryption"].ok) == (False, False)

"""What the doctor says of live streams, of who is told, and of analyzers."""

from pathlib import Path

import pytest

from longhaul.starter.cli.doctor.local_checks import Check
from longhaul.starter.cli.doctor.worker_checks import on_the_wiring
from longhaul.starter.settings import Settings


async def checks(settings: Settings) -> dict[str, Check]:
    return {check.name: check async for check in on_the_wiring(settings)}


async def test_streams_in_a_directory_are_written_read_and_left_clean(tmp_path: Path) -> None:
    found = await checks(Settings(data_dir=tmp_path))

    assert {name: check.ok for name, check in found.items()} == {"live streams": True}
    assert [path for path in (tmp_path / "streams").iterdir() if path.is_dir()] == []


async def test_a_place_that_can_not_be_written_comes_with_the_setting_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")

    in_a_file = (await checks(Settings(data_dir=tmp_path / "taken")))["live streams"]
    nowhere = (await checks(Settings(data_dir=tmp_path, redis_url="redis://ana:violet@127.0.0.1:1/0")))["live streams"]

    assert (in_a_file.ok, nowhere.ok) == (False, False)
    assert "LONGHAUL_DATA_DIR" in in_a_file.fix
    assert "LONGHAUL_REDIS_URL" in nowhere.fix
    assert "violet" not in str(nowhere)


@pytest.mark.redis
async def test_streams_in_redis_are_written_and_read(redis_url: str, tmp_path: Path) -> None:
    assert (await checks(Settings(data_dir=tmp_path, redis_url=redis_url)))["live streams"].detail.endswith("in Redis")


async def test_targets_and_analyzers_are_looked_at_where_they_are_set(tmp_path: Path) -> None:
    wrong = await checks(Settings(data_dir=tmp_path, notify="pigeon:north", analyzers="shop.nowhere:Guard"))
    right = await checks(Settings(data_dir=tmp_path, notify=f"maildir:{tmp_path}/post?to=ana@example.org"))

    assert (wrong["notify"].ok, wrong["analyzers"].ok, right["notify"].ok) == (False, False, True)
    assert "LONGHAUL_NOTIFY" in wrong["notify"].fix
    assert "shop.nowhere:Guard" in wrong["analyzers"].detail
    assert right["notify"].detail == "1 target"

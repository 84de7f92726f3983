"""Which build an installation is, and what is said of one that gets no work."""

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.own_build import BadBuild, Build, build_of, own_build_id, why_idle
from longhaul.starter.worker_host.replay import choose

IDLE = "this worker is build '0.1.0-4f1c2ab09d3e' of deployment 'crew' and gets no work"
BUILD = Build("crew", "0.1.0-4f1c2ab09d3e")
ROOT = Path(__file__).parents[3]
CHANGED = [
    "worker.py", "starter/links.py", "workflows/contract.py", "activities/tool.py", "stores/names.py",
    "agent/journal.py",
]  # fmt: skip
IDS = f"""
import json
from pathlib import Path
from longhaul.starter.worker_host.own_build import own_build_id

ids = [own_build_id()]
for name in {CHANGED}:
    with Path("longhaul", name).open("a") as file:
        file.write("# another line")
    own_build_id.cache_clear()
    ids.append(own_build_id())
print(json.dumps(ids))
"""


def test_workers_are_not_versioned_unless_a_deployment_is_named() -> None:
    assert build_of(Settings(build="blue")) is None


def test_a_build_that_nobody_named_is_the_release_and_a_digest_of_the_code() -> None:
    build = build_of(Settings(deployment="crew"))

    assert build == Build("crew", own_build_id())
    assert own_build_id().startswith("0.1.0-")
    assert len(own_build_id()) == len("0.1.0-") + 12


def test_other_code_in_any_room_is_another_build(tmp_path: Path) -> None:
    for room in ("longhaul", "activities", "starter", "workflows"):
        shutil.copytree(ROOT / room, tmp_path / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "worker.py", tmp_path)
    env = os.environ | {"PYTHONPATH": str(tmp_path)}

    ran = subprocess.run([sys.executable, "-c", IDS], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)

    assert len({*json.loads(ran.stdout)}) == 1 + len(CHANGED)


@pytest.mark.parametrize("name", ["crew.1", "crew:1", "crew 1", "-crew", "c" * 101, "crew\n"])
def test_a_deployment_that_the_server_would_misread_is_refused(name: str) -> None:
    with pytest.raises(BadBuild, match="LONGHAUL_DEPLOYMENT is"):
        build_of(Settings(deployment=name))


@pytest.mark.parametrize("build", ["a:b", "__reserved", "b" * 101, "two words"])
def test_a_build_that_the_server_would_misread_is_refused(build: str) -> None:
    with pytest.raises(BadBuild, match="LONGHAUL_BUILD is"):
        build_of(Settings(deployment="crew", build=build))


@pytest.mark.parametrize(
    ("current", "sentence"),
    [
        ("0.1.0-4f1c2ab09d3e", ""),
        (
            "",
            f"{IDLE}, for no build is the current one; run\n  longhaul rollout promote 0.1.0-4f1c2ab09d3e",
        ),
        (
            "0.0.9",
            f"{IDLE}, for build '0.0.9' is the current one; run\n  longhaul rollout promote 0.1.0-4f1c2ab09d3e",
        ),
    ],
)
def test_a_build_without_work_says_why_and_what_to_run(current: str, sentence: str) -> None:
    assert why_idle(BUILD, current) == sentence


def row(name: str, *, events: int, hours_ago: float) -> Any:
    start = datetime(2025, 11, 25, 12, tzinfo=UTC) - timedelta(hours=hours_ago)
    return SimpleNamespace(id=name, history_length=events, start_time=start)


@pytest.mark.proves("X9")
def test_the_longest_and_the_newest_sessions_are_replayed() -> None:
    rows = [
        row("old and short", events=10, hours_ago=90),
        row("old and long", events=9_000, hours_ago=80),
        row("new", events=20, hours_ago=1),
        row("newest and longest", events=9_500, hours_ago=0),
        row("middle", events=500, hours_ago=10),
    ]

    assert [each.id for each in choose(rows, 3)] == ["newest and longest", "new", "middle"]
    assert [each.id for each in choose(rows, 4)] == ["newest and longest", "old and long", "new", "middle"]
    assert len(choose(rows, 50)) == 5

"""Binding a workspace that somebody has prepared: no marker may hold the worker up or lead it elsewhere."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt.workspaces import MARKER, Workspaces
from longhaul.activities.contract import RecordedPlace
from longhaul.agent.values.spec.workspace import Workspace

SECRET = "marmalade"


def pipe(root: Path) -> None:
    (root / MARKER).parent.mkdir()
    os.mkfifo(root / MARKER)


def long_file(root: Path) -> None:
    (root / MARKER).parent.mkdir()
    (root / MARKER).write_text("x" * 1_000_000)


def link(root: Path) -> None:
    (root / MARKER).parent.mkdir()
    (root.parent / "secret").write_text(SECRET)
    (root / MARKER).symlink_to(root.parent / "secret")


def linked_folder(root: Path) -> None:
    (root.parent / "elsewhere").mkdir()
    (root / MARKER).parent.symlink_to(root.parent / "elsewhere")


@pytest.mark.proves("E12")
@pytest.mark.parametrize("prepare", [pipe, long_file, link, linked_folder])
def test_a_marker_that_somebody_prepared_is_refused(prepare: Callable[[Path], None], tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    prepare(root)

    with pytest.raises(ApplicationError) as refusal:
        Workspaces(tmp_path / "data").bind(Workspace(root=str(root)), "key")

    assert SECRET not in str(refusal.value)
    assert not list((tmp_path / "elsewhere").glob("*"))


def test_a_sessions_own_folder_is_its_workers_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        root, _ = Workspaces(tmp_path / "data").bind(None, "a session")
    finally:
        os.umask(before)

    assert root.is_relative_to(tmp_path / "data")
    assert root.stat().st_mode & 0o777 == 0o700


def test_a_second_worker_finds_the_marker_of_the_first(tmp_path: Path) -> None:
    first = Workspaces(tmp_path / "one").bind(Workspace(root=str(tmp_path)), "key")

    assert Workspaces(tmp_path / "two").bind(Workspace(root=str(tmp_path)), "key") == first


async def test_whoever_may_write_has_the_marker_looked_for_now(tmp_path: Path) -> None:
    workspaces, root = Workspaces(tmp_path / "data"), tmp_path / "workspace"
    root.mkdir()
    _, nonce = workspaces.bind(Workspace(root=str(root)), "key")
    recorded = RecordedPlace(root=str(root), nonce=nonce)
    await workspaces.find(recorded)
    root.rename(tmp_path / "away")

    with pytest.raises(ApplicationError, match="no marker"):
        await workspaces.find(recorded, may_write=True)
    (tmp_path / "away").rename(root)

    assert (await workspaces.find(recorded, may_write=True)).root == root

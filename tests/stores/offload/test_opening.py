"""Which offloader a setting means, whose it is, and what is said when there is none."""

from pathlib import Path

import pytest

from longhaul.stores.blobs.blob_directory import open_blobs
from longhaul.stores.blobs.blobs import session_prefix
from longhaul.stores.offload.local_workspace import LocalWorkspace
from longhaul.stores.offload.offloaders import Offloaders, OffloadSetupError, load_offloaders, open_offloader
from longhaul.stores.offload.redis_offloader import RedisOffloader
from longhaul.stores.offload.session_blobs import SessionBlobs
from tests.stores.offload.own_offloaders import SHARED, Shelf
from tests.stores.offload.samples import resolved, said

OWN = "tests.stores.offload.own_offloaders"
OURS = ("workspace", "blobs", "redis")


async def test_each_owner_has_a_folder_of_their_own(tmp_path: Path) -> None:
    offloaders = Offloaders(tmp_path)
    owners: list[tuple[str, str | None]] = [
        ("lamp", "ana"), ("lamp", "bo"), ("desk", "ana"), ("lamp", None), ("lamp", "anonymous"), ("lamp", "../ana"),
    ]  # fmt: skip

    opened = [await offloaders.get("workspace", *owner) for owner in owners]

    folders = [each.workdir for each in opened if isinstance(each, LocalWorkspace)]
    assert len(set(folders)) == len(owners)
    below = [folder.relative_to(resolved(tmp_path)).as_posix() for folder in folders]
    assert below[0] == "offload/lamp/ana"
    assert [name.count("/") for name in below] == [2] * len(owners)


@pytest.mark.parametrize("in_clear_text", [True, False])
async def test_where_nothing_may_lie_in_clear_text_ours_keep_all_among_the_blobs(
    tmp_path: Path, in_clear_text: bool
) -> None:
    blobs = SessionBlobs(open_blobs("", data_dir=tmp_path), None, session_prefix("default", "kettle"))
    own = load_offloaders(f"{OWN}:SHARED")
    offloaders = Offloaders(
        tmp_path, "redis://localhost:6379/0", own, of_session=lambda: blobs, in_clear_text=in_clear_text
    )

    got = {name: await offloaders.get(name, "lamp", None) for name in offloaders.names}

    assert [name for name, one in got.items() if one is blobs] == (["blobs"] if in_clear_text else [*OURS])
    assert (got["none"], got[f"{OWN}:SHARED"]) == (None, SHARED)


async def test_an_owner_gets_the_same_offloader_again(tmp_path: Path) -> None:
    offloaders = Offloaders(tmp_path)

    assert await offloaders.get("workspace", "lamp", None) is await offloaders.get("workspace", "lamp", None)


async def test_none_keeps_nothing(tmp_path: Path) -> None:
    assert await Offloaders(tmp_path).get("none", "lamp", "ana") is None


async def test_redis_needs_its_url(tmp_path: Path) -> None:
    assert isinstance(
        open_offloader("redis", "lamp/ana", data_dir=tmp_path, redis_url="redis://localhost:6379/0"), RedisOffloader
    )
    with pytest.raises(OffloadSetupError, match="LONGHAUL_REDIS_URL on the workers"):
        open_offloader("redis", "lamp/ana", data_dir=tmp_path)
    with pytest.raises(OffloadSetupError, match="LONGHAUL_REDIS_URL: 'gopher' is no kind of Redis"):
        open_offloader("redis", "lamp/ana", data_dir=tmp_path, redis_url="gopher://ana:marmalade@host")


async def test_an_owners_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offload" / "lamp").mkdir(parents=True)
    (tmp_path / "offload" / "lamp" / "ana").symlink_to("/etc")

    with pytest.raises(OffloadSetupError, match="leads elsewhere by a link"):
        open_offloader("workspace", "lamp/ana", data_dir=tmp_path)


@pytest.mark.proves("B5")
async def test_a_class_and_a_function_make_one_for_each_owner_and_an_object_is_for_all(tmp_path: Path) -> None:
    names = [f"{OWN}:Shelf", f"{OWN}:shelf_for", f"{OWN}:SHARED"]
    offloaders = Offloaders(tmp_path, own=load_offloaders(", ".join(names)))

    opened = [await offloaders.get(name, "lamp", "ana") for name in names]

    assert [each.owner for each in opened if isinstance(each, Shelf)] == ["lamp/ana", "made for lamp/ana", "everybody"]
    assert opened[2] is SHARED
    assert await SHARED.offload_context("kettle", [said(1)], batch="epoch-2") == "shelf:everybody/kettle/1"


@pytest.mark.parametrize("setting", ["os:system", f"{OWN}:Shelf", "s3", "", "workspace "])
async def test_only_what_the_operator_has_listed_is_ever_loaded(tmp_path: Path, setting: str) -> None:
    with pytest.raises(OffloadSetupError, match=r"this worker has no .*it has workspace, blobs, redis, none"):
        await Offloaders(tmp_path, own=load_offloaders(f"{OWN}:shelf_for")).get(setting, "lamp", "ana")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no.such.module:Shelf", "can't be loaded: ModuleNotFoundError"),
        (f"{OWN}:Nobody", "can't be loaded: AttributeError"),
        (OWN, "can't be loaded"),
        (f"{OWN}:NUMBER", "is no offloader: it needs offload_context and offload_tool_result"),
    ],
)
def test_what_can_not_be_loaded_is_said_when_the_worker_starts(name: str, reason: str) -> None:
    with pytest.raises(OffloadSetupError, match=reason):
        load_offloaders(name)


@pytest.mark.parametrize("name", ["nothing_for", "Blocking"])
async def test_what_is_made_must_be_an_offloader(tmp_path: Path, name: str) -> None:
    own = load_offloaders(f"{OWN}:{name}")

    with pytest.raises(OffloadSetupError, match="makes no offloader"):
        open_offloader(f"{OWN}:{name}", "lamp/ana", data_dir=tmp_path, own=own)

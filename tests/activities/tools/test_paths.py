"""Where a path leads, and what is dangerous about it."""

import os
from pathlib import Path

import pytest

from longhaul.activities.repository import Access
from longhaul.activities.shell.paths import path_use, resolve, resolve_file
from longhaul.activities.tool import Place, ToolError


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("x", "x"),
        ("././/././x", "x"),
        ("a/../x", "x"),
        ("../x", "../x"),
        ("%2e%2e/x", "%2e%2e/x"),
        ("$HOME/x", "$HOME/x"),
        ("file:///x", "file:/x"),
        ("new\nline", "new\nline"),
    ],
)
def test_a_path_is_relative_to_the_working_directory_and_nothing_is_expanded(
    place: Place, raw: str, expected: str
) -> None:
    assert resolve(raw, place) == Path(os.path.normpath(place.root / expected))


def test_links_are_followed_also_dangling_ones_and_chains(place: Place) -> None:
    (place.root / "one").symlink_to("two")
    (place.root / "two").symlink_to("/nowhere/at/all")

    assert resolve("one", place) == Path("/nowhere/at/all")
    assert resolve("one/below", place) == Path("/nowhere/at/all/below")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [("", "empty"), ("a\0b", "NUL"), ("n" * 5000, "too long"), ("~", "not expanded"), ("\udcff", "Unicode")],
)
def test_what_cannot_be_a_path_is_refused_in_a_short_sentence(place: Place, raw: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason) as caught:
        resolve(raw, place)

    assert len(str(caught.value)) < 400


def test_a_loop_of_links_is_refused(place: Place) -> None:
    (place.root / "a").symlink_to("b")
    (place.root / "b").symlink_to("a")

    for raw in ("a", "a/x"):
        with pytest.raises(ToolError):
            resolve(raw, place)


@pytest.mark.parametrize("raw", ["/proc/self/environ", "/proc/self/fd/0", "/dev/null", "/sys/power/state", "x/", "."])
def test_what_is_no_regular_file_is_refused_by_name(place: Place, raw: str) -> None:
    with pytest.raises(ToolError):
        resolve_file(raw, place)


@pytest.mark.parametrize(
    ("path", "inside"),
    [("/work/proj", True), ("/work/proj/a", True), ("/work/proj-evil/a", False), ("/work", False), ("/etc", False)],
)
def test_inside_means_below_the_root_and_not_beginning_like_it(path: str, inside: bool) -> None:
    assert path_use(Path(path), "read", Path("/work/proj")).inside is inside


WRITTEN = [
    ".git/hooks/pre-commit", ".git", "sub/.git/config", ".GIT/config", ".vscode/tasks.json", ".idea/x", ".envrc",
    ".env", ".env.local", ".ssh/authorized_keys", ".longhaul", ".longhaul/marker", "home/.bashrc", ".npmrc",
    ".gitmodules", ".gitconfig", ".pypirc", ".netrc",
]  # fmt: skip
SECRET = [
    ".env",
    ".env.production",
    "server.pem",
    ".netrc",
    ".ssh/id_ed25519",
    "keys/id_rsa",
    ".aws/credentials",
    ".ssh",
]
HARMLESS = ["src/app.py", ".env.example", "environment", "git/x", ".gitignore", "README.md"]


@pytest.mark.parametrize("path", WRITTEN)
def test_writing_configuration_that_runs_is_dangerous(path: str) -> None:
    assert path_use(Path("/r") / path, "write", Path("/r")).danger != ""


@pytest.mark.parametrize("path", SECRET)
def test_reading_secrets_is_dangerous(path: str) -> None:
    assert path_use(Path("/home/ana") / path, "read", Path("/r")).danger != ""


@pytest.mark.parametrize("path", ["/proc/1/environ", "/etc/shadow"])
def test_reading_secrets_of_the_system_is_dangerous(path: str) -> None:
    assert path_use(Path(path), "read", Path("/r")).danger != ""


@pytest.mark.parametrize("path", HARMLESS)
@pytest.mark.parametrize("access", ["read", "write"])
def test_ordinary_files_are_not_dangerous(path: str, access: Access) -> None:
    assert path_use(Path("/r") / path, access, Path("/r")).danger == ""


def test_a_workspace_in_a_folder_with_a_dangerous_name_is_ordinary_inside() -> None:
    assert path_use(Path("/home/.longhaul/ws/a.py"), "write", Path("/home/.longhaul/ws")).danger == ""

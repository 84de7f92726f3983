"""`find … | xargs PROGRAM`: proven while every name there is one word; what it reads is told as if it were named."""

from pathlib import Path

import pytest

from longhaul.activities.shell.walk import examine_command
from longhaul.agent.permission.call_analysis import CallAnalysis


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "proj"
    (root / "docs").mkdir(parents=True)
    for name in ("README.md", "docs/guide.md", "docs/größe.md", "x"):
        (root / name).write_text("marmalade\n")
    return root


def _analysis(line: str, root: Path) -> CallAnalysis:
    return examine_command(line, root, root)


@pytest.mark.parametrize(
    "line",
    [
        "find . -name '*.md' | xargs wc -l",
        "find . -name '*.md' | xargs wc -l | tail -1",
        "find docs -type f -print0 2>/dev/null | xargs -0 grep -n marmalade",
        "find docs README.md -maxdepth 1 | xargs -r -n 5 head -n 1",
        "cd docs && find . | xargs sed -n 1p",
        "find docs | timeout 5 xargs cat",
    ],
)
def test_names_below_a_folder_are_read_unasked(line: str, root: Path) -> None:
    analysis = _analysis(line, root)

    assert analysis.read_only
    assert all(fact.inside for fact in analysis.paths)


@pytest.mark.parametrize(
    "line",
    [
        "find . | xargs rm", "find . | xargs sh -c", "find . | xargs -I{} cat {}", "find . | xargs -P 4 wc",
        "find . | xargs -a x cat", "find . | xargs", "find . | xargs sed -i s/a/b/", "find . | xargs sort -o x",
        "find . | xargs -0 cat", "find . -print0 | xargs cat", "find . -printf '/etc/passwd' | xargs cat",
        "find . -ls | xargs cat", "find . -exec echo /etc/passwd ';' | xargs cat", "find . |& xargs cat",
        "find . 2>&1 | xargs cat", "find 'docs /etc/passwd' | xargs cat", "find $HOME | xargs cat",
        "find . | sed s,docs,/etc, | xargs cat", "echo /etc/passwd | xargs cat", "cat x | xargs cat",
        "touch 'docs/a b' && find . | xargs cat", "find . | xargs env cat", "find . | xargs find", "find . | xargs tee",
        "find . | xargs ./cat", "find . | xargs cat $(id)", "xargs cat < x", "find . | xargs awk 1",
        "find . | xargs --arg-file=x cat", "find . | xargs -n x cat", "X=1 find . | xargs cat; ls x*",
    ],
)  # fmt: skip
def test_anything_else_behind_a_pipe_is_not_proven(line: str, root: Path) -> None:
    assert not _analysis(line, root).read_only


@pytest.mark.parametrize("name", ["a /etc/passwd", "a\nb", "it's", 'a"b', "a\\b", "tab\tx", "sub dir/x", "nb\u00a0sp"])
def test_a_name_that_is_not_one_word_is_asked(name: str, root: Path) -> None:
    (root / "docs" / name).parent.mkdir(exist_ok=True, parents=True)
    (root / "docs" / name).write_text("")

    assert not _analysis("find docs -name '*.md' | xargs cat", root).read_only


@pytest.mark.parametrize(("filters", "told"), [("", True), ("-name '*.md'", False), ("-name '*.md' -o -true", True)])
def test_files_with_secrets_and_links_are_told_as_if_they_were_named(filters: str, told: bool, root: Path) -> None:
    (root / "docs/.env").write_text("TOKEN=1")
    (root / "docs/out").symlink_to("/etc/passwd")

    paths = {fact.path for fact in _analysis(f"find docs {filters} | xargs cat", root).paths}

    assert ({str(root / "docs/.env"), "/etc/passwd"} <= paths) is told


def test_a_link_to_a_folder_is_asked_for_some_programs_follow_it(root: Path) -> None:
    (root / "docs/away").symlink_to("/etc")

    assert not _analysis("find docs | xargs grep -r root", root).read_only


@pytest.mark.parametrize("line", ["find docs | xargs cat", "grep -R x docs"])
def test_the_last_of_many_links_may_lead_anywhere(line: str, root: Path) -> None:
    for number in range(40):
        (root / f"docs/link{number}").symlink_to("../x" if number else "/etc/passwd")

    analysis = _analysis(line, root)

    assert not analysis.read_only or "/etc/passwd" in {fact.path for fact in analysis.paths}

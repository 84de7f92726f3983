"""Lines that must never pass unasked: families of ways to make a harmless-looking command do something else."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from longhaul.activities.repository import TooLarge, tracked_in, tree_of
from longhaul.activities.shell.walk import examine_command
from longhaul.agent.permission.decision_table import decide_call, decide_planning
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from tests.activities.corpora.stage import Line, Stage, build, corpus, git
from tests.limits import usual

BASH = ToolDescriptor(name="Bash")
HUGE = [
    "ls;" * 60 + "touch gone",
    "ls && " * 51 + "ls",
    "echo " + "a" * 10_000,
    "ls " + "x " * 6_000,
    "(" * 400 + "ls" + ")" * 400,
    "echo " + "$(" * 300 + "ls" + ")" * 300,
    "nice " * 50 + "touch gone",
    "ls\n" * 3_000 + "touch gone",
    "timeout 1 " * 20 + "ls",
]
LINES = [*corpus("hostile.txt"), *(Line("size and nesting", text) for text in HUGE)]
OPEN_FAMILIES = {
    "separators and newlines", "separators in every disguise", "substitutions", "substitutions in every disguise",
    "wrappers", "aliases and functions", "redirections", "here-documents", "builtins that evaluate",
}  # fmt: skip
"""Where the command that is run stands in the line for a shell to read, not in the text of another language."""
GENEROUS = [
    PermissionContext(mode=mode, rules=(PermissionRule(tool_name="Bash"),))
    for mode in (PermissionMode.DEFAULT, PermissionMode.BYPASS)
]
ASKING = [mode for mode in PermissionMode if mode is not PermissionMode.BYPASS]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return build(tmp_path_factory.mktemp("hostile"))


def _behavior(text: str, stage: Stage, mode: PermissionMode, *rules: PermissionRule) -> Behavior:
    analysis = examine_command(text, stage.root, stage.root)
    raw = json.dumps({"command": text})
    return decide_call(BASH, raw, analysis, PermissionContext(mode=mode, rules=rules), str(stage.root)).behavior


@pytest.mark.parametrize("family", dict.fromkeys(line.family for line in LINES))
def test_a_hostile_line_never_passes_unasked(family: str, stage: Stage) -> None:
    """Nor while planning, whatever the mode beneath and the rules. What it is found to be is the same in each mode."""
    root, passing = str(stage.root), list[tuple[str, object]]()
    for line in (line for line in LINES if line.family == family):
        text = stage.text(line.text)
        analysis, raw = examine_command(text, stage.root, stage.root), json.dumps({"command": text})
        for mode in ASKING:
            decided = decide_call(BASH, raw, analysis, PermissionContext(mode=mode), root).behavior
            passing += [(text, mode)] if decided is Behavior.ALLOW else []
        for generous in GENEROUS:
            decided = decide_planning(BASH, raw, analysis, generous, root, f"{root}/plan.md").behavior
            passing += [(text, generous)] if decided is not Behavior.DENY else []

    assert passing == []


def test_where_everything_passes_a_deny_rule_still_holds(stage: Stage) -> None:
    """In bypass a line with `touch` in it is denied, or asked about where it can't be told what it runs."""
    deny = PermissionRule(tool_name="Bash", rule_content="touch:*", behavior=Behavior.DENY)
    lines = [line.text for line in LINES if line.family in OPEN_FAMILIES and "touch gone" in line.text]

    said = {text: _behavior(stage.text(text), stage, PermissionMode.BYPASS, deny) for text in lines}

    assert len(lines) >= 90
    assert [text for text, behavior in said.items() if behavior is Behavior.ALLOW] == []


def test_a_search_asks_only_where_it_comes_by_a_secret(stage: Stage) -> None:
    passing = [
        "grep -rn TODO src", "grep -rn TODO . --include=*.py",
        "grep -r TODO --exclude='.env*' --exclude='hard-*' --exclude-dir=keys .",
        "rg TODO src", "rg TODO -g '!keys' -g '!hard-*'", "rg -t py TODO", "git show HEAD -- src",
        "git log --oneline -5", "git diff -- src README.md", "git show HEAD:README.md", "git grep main -- src",
        "git branch -a", "git diff --stat", "grep -rn x node_modules",
    ]  # fmt: skip

    asked = [text for text in passing if _behavior(text, stage, PermissionMode.DEFAULT) is not Behavior.ALLOW]

    assert asked == []


def test_the_question_about_a_search_names_the_file(stage: Stage) -> None:
    analysis = examine_command("grep -rn TODO .", stage.root, stage.root)

    assert str(stage.root / ".env") in [fact.path for fact in analysis.paths if fact.danger]


def test_a_file_that_turns_up_with_a_secret_name_is_seen_by_the_next_look(tmp_path: Path) -> None:
    before = examine_command("grep -r x .", tmp_path, tmp_path).paths
    (tmp_path / ".env").write_text("TOKEN=1")

    after = examine_command("grep -r x .", tmp_path, tmp_path).paths

    assert [bool(fact.danger) for fact in before] == [False]
    assert [fact.path for fact in after if fact.danger] == [str(tmp_path / ".env")]


@pytest.mark.parametrize(
    ("name", "text", "asks"),
    [
        ("cert.pem", "-----BEGIN CERTIFICATE-----\n", False),
        ("cert.pem", "-----BEGIN RSA PRIVATE KEY-----\n", True),
        (".npmrc", "registry=https://npm.example.org/\n", False),
        (".npmrc", "//npm.example.org/:_authToken=abc\n", True),
        ("id_ed25519", "", True),
        (".git/config", '[remote "origin"]\n\turl = https://git.example.org/tea.git\n', False),
        (".git/config", '[remote "origin"]\n\turl = git@example.org:tea.git\n', False),
        (".git/config", '[remote "origin"]\n\turl = https://ana:gh0st@git.example.org/tea.git\n', True),
        (".git/config", '[remote "origin"]\n\turl = ssh://git@example.org/tea.git\n', False),
        (".git/config", '[remote "origin"]\n\turl = https://ghp_abc@example.org/tea.git\n', True),
        (".git/config", '[http]\n\textraHeader = "Authorization: basic abc"\n', True),
    ],
)
def test_a_file_that_is_often_harmless_counts_by_what_is_in_it(
    name: str, text: str, asks: bool, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)

    analysis = examine_command("grep -r x .", tmp_path, tmp_path)

    assert any(fact.danger for fact in analysis.paths) is asks


@pytest.mark.parametrize("line", ["git remote -v", "git remote get-url origin", "git -C deep remote --verbose"])
@pytest.mark.parametrize(("password", "asks"), [("", False), ("ana:gh0st@", True)])
def test_git_asks_before_it_prints_an_address_with_a_password(
    line: str, password: str, asks: bool, tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", f"https://{password}git.example.org/tea.git")

    analysis = examine_command(line, tmp_path, tmp_path)

    assert any(fact.danger for fact in analysis.paths) is asks
    assert not any(fact.danger for fact in examine_command("git remote", tmp_path, tmp_path).paths)


def test_more_files_than_can_be_looked_through_are_said_to_be_too_many(tmp_path: Path) -> None:
    for number in range(11):
        (tmp_path / f"file-{number}").touch()

    with pytest.raises(TooLarge):
        tree_of(str(tmp_path), with_links=False, most=10)


def as_pipe(file: Path) -> None:
    os.mkfifo(file)


def as_link(file: Path) -> None:
    file.symlink_to("/dev/zero")


def as_sparse(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(2**40)


def as_blanks(file: Path) -> None:
    file.write_bytes(b"\n" * 900_000)


def as_colons(file: Path) -> None:
    file.write_bytes(b'[remote "origin"]\n\turl = ssh://' + b":" * 90_000)


@pytest.mark.parametrize("made", [as_pipe, as_link, as_sparse, as_blanks, as_colons])
@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".git/config", ".git/index", ".git/HEAD", ".git/commondir"])
@pytest.mark.parametrize("line", ["rg tides", "git log", "git status"])
def test_what_an_archive_has_put_there_holds_up_nobody(
    line: str, name: str, made: Callable[[Path], None], tmp_path: Path
) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / "notes.txt").write_text("tides\n")
    (tmp_path / ".env").write_text("KEY=7\n")
    (tmp_path / name).unlink(missing_ok=True)
    made(tmp_path / name)
    began = time.monotonic()

    examine_command(line, tmp_path, tmp_path)

    assert time.monotonic() - began < usual(10)


def test_a_search_that_follows_links_into_folders_is_not_proven(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "inner")

    assert not examine_command("grep -R x .", tmp_path, tmp_path).read_only
    assert examine_command("grep -r x .", tmp_path, tmp_path).read_only


@pytest.mark.parametrize(
    "config",
    [
        "[diff]\n\texternal = ./evil",
        '[diff "x"]\n\ttextconv = ./evil',
        '[diff "a]b"] textconv=./evil',
        '[filter "x"]\r\n  CLEAN = ./evil',
        "[gpg]\n program = ./evil",
        "[Include] path = evil",
        '[remote "x"]\n\tuploadpack = ./evil',
    ],
)
def test_git_in_a_repository_whose_own_configuration_names_a_program_asks(config: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(f"[core]\n\tbare = false\n{config}\n")

    assert not examine_command("git diff", tmp_path, tmp_path).read_only


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_what_git_tracks_is_read_from_each_version_of_its_index(version: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for name in ("deep/er/.env", "deep/er/.environment", "deep/id_rsa", "z"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    git(tmp_path, "add", ".")
    git(tmp_path, "update-index", "--index-version", version)

    assert tracked_in(tmp_path / ".git" / "index").secrets == ("deep/er/.env", "deep/id_rsa")


@pytest.mark.parametrize(
    "damage", [b"", b"DIRC", b"DIRC\0\0\0\x02\0\0\0\x09", b"x" * 500, b"DIRC\0\0\0\x09" + b"\0" * 99]
)
def test_git_asks_when_its_index_can_not_be_read(damage: bytes, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "index").write_bytes(damage)

    assert not examine_command("git diff", tmp_path, tmp_path).read_only


@pytest.mark.parametrize("line", ["ls", "timeout 5 ls", "nice ls", "ls | cat"])
def test_a_program_of_the_workspace_is_not_taken_for_the_systems(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    before = examine_command(line, tmp_path, tmp_path).read_only
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ls").touch()

    assert before
    assert not examine_command(line, tmp_path, tmp_path).read_only


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert len(LINES) >= 900
    assert len({line.text for line in LINES}) == len(LINES)
    assert len({line.family for line in LINES}) >= 20

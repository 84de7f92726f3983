"""File patterns: what bash makes of them is known, or the line asks; held against a real bash."""

import os
import subprocess
from itertools import product
from pathlib import Path

import pytest

from longhaul.activities.shell.patterns import matching
from longhaul.activities.shell.walk import examine_command
from longhaul.activities.shell.words import Unreadable

NAMES = [
    b"e",
    b"p",
    b"-n",
    b"--",
    b"a b",
    b"a*b",
    b"B",
    b"b",
    b".hid",
    b"[x]",
    b"\xc3\xa9",
    b"\xff\xc3\xa9",
    b"z\\q",
    b"{",
]
PARTS = ["*", "?", "??", "e*", "*p", "a*", "-*", "[*", "**", "*.x", "?b", "z*", "{*"]


def _filled(folder: Path, names: list[bytes]) -> Path:
    for name in names:
        for below in (b"", b"d/"):
            path = Path(os.fsdecode(os.fsencode(folder) + b"/" + below + name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("touch gone\n")
    return folder.resolve()


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("odd", [b"", b"\xc3\xa9", b"\xff\xc3\xa9"])
def test_names_are_those_of_bash_or_nobody_can_tell(odd: bytes, locale: str, tmp_path: Path) -> None:
    root = _filled(tmp_path, [name for name in NAMES if name.isascii()] + ([odd] if odd else []))
    told = 0

    for parts in (
        [(part,) for part in PARTS] + list(product(["d", "*", "?", ""], PARTS)) + [("*", ""), ("d*", "..", "e*")]
    ):
        pattern = "/".join(parts)
        try:
            ours = matching(pattern, str(root))
        except Unreadable:
            continue
        told += 1
        line = ["bash", "--norc", "-c", f"printf '%s\\0' {pattern}"]
        printed = subprocess.run(line, cwd=root, env={"LC_ALL": locale}, capture_output=True, check=True).stdout
        theirs = [os.fsdecode(name) for name in printed.split(b"\0")[:-1]]
        assert sorted(ours or [pattern]) == sorted(theirs), pattern

    assert told >= (40 if not odd else 20 if odd == b"\xc3\xa9" else 1)


SCRIPTS = [
    "sed {}", "sed -n {}", "sed -e {} e", "jq {} e", "grep {} e", "grep -e {} e", "egrep {}", "rg {}", "awk {} e",
    "awk -F {} '{{print}}'", "awk -F, -F {} '{{print $1}}' e",
    "find . -name {}", "find . -newer {}", "sort -k {} e", "head -n {} e", "cut -d {} e", "date {}", "test -f {}",
    "test {}", "git log {}", "git {} log", "git -C {} status", "git diff -- {}", "timeout {} ls", "nice -n {} ls",
    "nice {}", "{}", "uniq {}", "cp {} d", "mv {}", "mkdir -m {} x", "touch -r {} x", "cat < {}", "cd {}",
]  # fmt: skip
"""Where something else than one of any number of paths stands."""


@pytest.mark.parametrize("line", SCRIPTS)
@pytest.mark.parametrize("pattern", ["*", "?", "e*", "./*", "d/*", "none*"])
def test_no_pattern_stands_where_a_script_a_value_or_a_program_does(line: str, pattern: str, tmp_path: Path) -> None:
    root = _filled(tmp_path, [b"e", b"p"])

    analysis = examine_command(line.format(pattern), root, root)

    assert not analysis.read_only
    assert analysis.not_understood or not any(command.edits_only for command in analysis.commands)


@pytest.mark.parametrize("name", ["-n", "--", "--compress-program=sh", "(x", "!", "+x", ",x", "=x", ":x"])
@pytest.mark.parametrize("line", ["sort *", "cat ?*", "find *", "ls src *", "echo *", "wc -l -- *"])
def test_a_pattern_that_meets_a_name_which_is_none_to_a_program_asks(line: str, name: str, tmp_path: Path) -> None:
    root = _filled(tmp_path, [b"e"])
    before = examine_command(line, root, root).read_only
    (root / name).touch()

    assert before
    assert not examine_command(line, root, root).read_only


@pytest.mark.parametrize(
    "joint", ["! cd B; ", "false || cd B; ", "cd B; ", "cd B || true; ", "ls && cd B; ", "cd B & "]
)
def test_a_line_is_proven_for_each_folder_that_it_may_run_in(joint: str, tmp_path: Path) -> None:
    """Together the folders make `sort -- --compress-program=sh …`, which is harmless; each alone may not be."""
    root = _filled(tmp_path, [b"plain"])
    (root / "--").touch()
    (root / "B").mkdir()
    for name in ("--compress-program=sh", "-S10b", "data"):
        (root / "B" / name).write_text("touch gone\n")

    assert not examine_command(f"{joint}sort *", root, root).read_only
    assert not examine_command(f"{joint}sort ?*", root, root).read_only


@pytest.mark.parametrize(
    "line", ["echo out/*", "echo */*", "ls out/*", "cat ??", "wc -l out/n*", "echo ../*", "echo /etc/*"]
)
def test_looking_for_names_elsewhere_is_a_read_of_that_folder(line: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "name").touch()
    root = _filled(tmp_path / "root", [b"e"])
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "\udcffé").symlink_to("/etc/passwd")

    analysis = examine_command(line, root, root)

    assert not analysis.read_only or any(not fact.inside for fact in analysis.paths)


def test_plain_patterns_are_proven(tmp_path: Path) -> None:
    root = _filled(tmp_path, [b"e.md", b"p.md"])
    lines = [
        "wc -l *.md",
        "ls *.md d/*.md",
        "ls -d */",
        "cat e*",
        "grep -n x *.md",
        "sort ./*",
        "sed -n 1p *.md",
        "rm d/*.md",
    ]

    analysis = [examine_command(line, root, root) for line in lines]

    assert [line for line, each in zip(lines, analysis, strict=True) if not each.read_only] == ["rm d/*.md"]
    assert analysis[-1].commands[0].edits_only

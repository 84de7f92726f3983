"""The positive list: what is written in it is all that is proven, and no word of it writes."""

import re
import subprocess
import tomllib
from itertools import product
from pathlib import Path

import pytest

from longhaul.activities.shell import programs
from longhaul.activities.shell.environment_variables import hardened, scrubbed
from longhaul.activities.shell.programs import EDITORS, GIT, PROGRAMS
from longhaul.activities.shell.walk import examine_command

OPERATION_ROWS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    for name in ("f", "x", "d1/a", "d2/a", "AGENTS.md"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("f\n")
    return root


def _proven(line: str, root: Path) -> bool:
    return examine_command(line, root, root).read_only


def test_each_entry_says_why_and_nothing_that_nobody_reads() -> None:
    listed = tomllib.loads(programs.LIST.read_text())

    assert len(PROGRAMS) + len(EDITORS) + len(GIT) > 90
    for table in ("programs", "editors", "git"):
        assert all(len(entry["why"].split()) > 1 for entry in listed[table].values())
    with pytest.raises(ValueError, match="needs `why`"):
        programs._program("ls", {"why": "x", "opions": "x"}, "paths")  # noqa: SLF001  the list's own reader
    with pytest.raises(ValueError, match="needs `why`"):
        programs._program("ls", {"short": "a"}, "paths")  # noqa: SLF001


@pytest.mark.parametrize("program", [name for name, known in PROGRAMS.items() if known.plain])
def test_of_a_program_with_a_reading_of_its_own_only_plain_words_are_proven(program: str, root: Path) -> None:
    bundles = [f"{program} -{one}{other} f x" for one, other in product(OPERATION_ROWS, OPERATION_ROWS)]
    late = [f"{program} f -{letter}{end}" for letter in OPERATION_ROWS for end in ("", "1", " x", " 1")]
    ends = [f"{program} {words}" for words in ("-- f x", "f -- x", "-- -o x", "-I=x f", "-I f --", "--noreport=x f")]

    assert [line for line in (*bundles, *late, *ends) if _proven(line, root)] == []
    assert _proven({"xxd": "xxd -l 64 f", "tree": "tree -a -L 2 -I x d1"}[program], root)


@pytest.mark.parametrize(
    "line", ["xxd -ps f x", "xxd f x", "xxd f -o1", "tree -Po x x", "tree -o x", "tree -R", "xxd -r f"]
)
def test_what_writes_is_not_proven(line: str, root: Path) -> None:
    assert not _proven(line, root)


@pytest.mark.parametrize("options", ["", "-u", "-r", "-N", "-rN", "--recursive", "--new-file", "-q", "--from-file=d1"])
@pytest.mark.parametrize(
    "operands", ["d1 d2", ". d1", "d1 .", "d1 f", "f d1", "./d1/ f", "- d1", "d1/. d2/..", "out f"]
)
def test_no_folder_is_compared_unasked(options: str, operands: str, root: Path) -> None:
    (root / "out").symlink_to("/etc")

    assert not _proven(f"diff {options} {operands}", root)
    assert _proven("diff -u f x", root)


@pytest.mark.parametrize(
    "line", ["find -L .", "find -H x", "find . -follow", "ls -RL", "ls -L", "ls -H", "ls --dereference x", "du -L",
             "du -D x", "tree -l", "rg -L x", "rg --follow x", "ps aux", "git describe --dirty", "ls -lLa", "du -aL ."],
)  # fmt: skip
def test_nothing_that_follows_links_below_or_tells_of_others_is_proven(line: str, root: Path) -> None:
    assert not _proven(line, root)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_getopt_would_take_for_an_abbreviation_or_another_option_is_not_proven(name: str, root: Path) -> None:
    known = PROGRAMS[name]
    words = [f"--{long[:-1]}" for long in known.flags.long if long[:-1] not in known.flags.long and len(long) > 3]
    words += [f"-{letter}" for letter in OPERATION_ROWS if letter not in known.flags.short and not letter.isdigit()]
    taken = {"printf", "true", "false", ":", "find", "sed", "type", "which", "exit", "sleep", "seq"}

    lines = [f"{name} {word} f" for word in words] if name not in taken else []

    assert [line for line in lines if _proven(line, root)] == []


def test_git_leaves_its_index_alone(root: Path) -> None:
    """Times that differ from those in the index make git write it again, unless it is told not to."""

    environment = hardened(scrubbed({"PATH": "/usr/bin:/bin", "HOME": str(root)}))
    for line in ("git init -q", "git add f", "touch -d yesterday f"):
        subprocess.run(line.split(), cwd=root, check=True, env=environment)
    index = (root / ".git" / "index").read_bytes()

    for line in ("git status", "git diff", "git diff --stat", "git diff --quiet", "git ls-files -m", "git grep f"):
        assert _proven(line, root)
        subprocess.run(line.split(), cwd=root, check=False, env=environment, capture_output=True)

    assert (root / ".git" / "index").read_bytes() == index
    assert re.match(b"DIRC", index)

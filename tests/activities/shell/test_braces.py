"""Lists in braces: read as bash reads them, or not at all."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from longhaul.activities.shell.walk import examine_command
from longhaul.activities.shell.words import Unreadable, braced, read_word

PIECES = ["a", "b.py", "src/", "1", "-", "--of=", "x=", "*", "..", ".", "{}", "'q'", '"', "\\", "$", "~", "[", "!"]


def _list(chance: random.Random, depth: int) -> str:
    members = [_plain(chance, depth + 1) for _ in range(chance.randint(2, 3))]
    return "{" + ",".join(members) + "}"


def _plain(chance: random.Random, depth: int = 0) -> str:
    """A word with lists that nest, some of whose members are empty."""
    parts = [
        _list(chance, depth) if depth < 3 and chance.random() < 0.4 else chance.choice(PIECES[:4])
        for _ in range(chance.randint(0 if depth else 1, 3))
    ]
    return "".join(parts)


def _any(chance: random.Random) -> str:
    """Braces, commas and all that may stand beside them, in any order."""
    return "a" + "".join(chance.choice([*"{{}},,", *PIECES]) for _ in range(chance.randint(2, 9)))


def _read(word: str) -> list[str] | None:
    try:
        return [read_word(raw).text for raw in braced(word)]
    except Unreadable:
        return None


def _by_bash(word: str, folder: Path) -> list[str] | None:
    """What bash hands to a program, in an empty folder; None when it refuses the line."""
    command = ["/bin/bash", "--noprofile", "--norc", "-c", f"printf '%s\\0' {word}"]
    done = subprocess.run(command, cwd=folder, env={"HOME": "/home/me"}, capture_output=True, text=True, check=False)
    return done.stdout.split("\0")[:-1] if done.returncode == 0 and not done.stderr else None


@pytest.mark.parametrize("make", [_plain, _any])
def test_a_word_becomes_what_bash_makes_of_it_or_is_not_understood(
    make: Callable[[random.Random], str], tmp_path: Path
) -> None:
    chance = random.Random(7)  # noqa: S311  no secret
    words = list(dict.fromkeys(make(chance) for _ in range(400)))[:250]
    read = {word: _read(word) for word in words}

    wrong = {
        word: (texts, by_bash)
        for word, texts in read.items()
        if texts is not None and "~" not in word and (by_bash := _by_bash(word, tmp_path)) != texts
    }

    assert len(words) == 250
    assert wrong == {}
    understood = sum(texts is not None and len(texts) > 1 for texts in read.values())
    assert make is _any or understood > 80


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ls src/{a,b}", ("ls", "src/a", "src/b")),
        ("cat x{,.bak}", ("cat", "x", "x.bak")),
        ("grep -rn x --include=*.{ts,tsx} src", ("grep", "-rn", "x", "--include=*.ts", "--include=*.tsx", "src")),
        ("head {a,b/{c,d}}.py", ("head", "a.py", "b/c.py", "b/d.py")),
    ],
)
def test_rules_and_the_proof_see_the_words_that_the_program_gets(
    line: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    analysis = examine_command(line, tmp_path, tmp_path)

    assert [command.words for command in analysis.commands] == [words]
    assert analysis.read_only


@pytest.mark.parametrize(
    "line",
    [
        "ls {1..9}", "ls {a}{b,c", "ls {,}", "X={a,b} ls", "ls > {a,b}", "{ls,-la}", "ls {a,'b'}", 'ls {a,"b c"}',
        "ls {a,\\,b}", "ls {a,$X}", "ls {a,~}", "ls " + "{a,b}" * 7, "ls " + "{a," * 60 + "b" + "}" * 60,
        "[ -f {a,b} ]",
    ],
)  # fmt: skip
def test_what_bash_might_read_otherwise_is_asked(line: str, tmp_path: Path) -> None:
    analysis = examine_command(line, tmp_path, tmp_path)

    assert analysis.not_understood
    assert not analysis.read_only


@pytest.mark.parametrize(
    ("line", "path"),
    [("cat {README.md,../x}", "../x"), ("cat {.,}./x", "../x"), ("ls {a,/etc}/{b,shadow}", "/etc/shadow")],
)
def test_each_of_the_words_is_a_path_of_its_own(line: str, path: str, tmp_path: Path) -> None:
    analysis = examine_command(line, tmp_path, tmp_path)

    assert str((tmp_path / path).resolve()) in {fact.path for fact in analysis.paths if not fact.inside}

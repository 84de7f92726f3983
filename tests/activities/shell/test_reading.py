"""What one line means to bash and what it means to the reading of it are the same, or the line asks."""

import subprocess
import unicodedata
from pathlib import Path

import pytest

from longhaul.activities.shell.walk import examine_command


@pytest.fixture(scope="module")
def digits() -> list[str]:
    """Of every script but the one that bash reads."""
    return [chr(point) for point in range(128, 0x110000) if unicodedata.category(chr(point)) in ("Nd", "No", "Nl")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = (tmp_path / "a" / "b" / "root").resolve()
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("main\n")
    (folder.parent / "outside").write_text("marmalade\n")
    # Outside of a repository `git diff` compares files anywhere, and asks.
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


@pytest.mark.parametrize("operator", [">&", "2>&", "1>&", "<&", "0<&"])
def test_only_the_digits_of_ascii_name_a_descriptor(operator: str, root: Path, digits: list[str]) -> None:
    read = [digit for digit in digits if examine_command(f"echo x {operator}{digit}", root, root).read_only]

    assert len(digits) > 1000
    assert read == []
    assert examine_command(f"true {operator}1", root, root).read_only


@pytest.mark.parametrize("descriptor", ["3", "9", "10", "255", "01", "1-", "-", "99999999999999999999"])
def test_a_descriptor_that_the_worker_reads_is_not_written_to_unasked(descriptor: str, root: Path) -> None:
    assert not examine_command(f"echo /etc >&{descriptor}", root, root).read_only


@pytest.mark.parametrize(
    "word",
    [
        "a=~/x",
        "a=b:~/x",
        "a:~/x",
        "a+=~/x",
        "a[1]=~/x",
        "--file=~/x",
        'a"="~/x',
        "'a='~/x",
        "a=''~/x",
        "a\\=~/x",
        "a,~/x",
    ],
)
@pytest.mark.parametrize("line", ["cat {}", "touch {}", "cp src/app.py {}", "echo hi > {}", "cd {}"])
def test_a_tilde_behind_anything_but_a_name_is_not_understood(word: str, line: str, root: Path) -> None:
    analysis = examine_command(line.format(word), root, root)

    assert analysis.not_understood
    assert not analysis.read_only


@pytest.mark.parametrize("line", ["git log HEAD~1", "git diff HEAD~3..HEAD^~2", "cat src/app.py~", "git show @~1"])
def test_a_tilde_behind_a_name_is_itself(line: str, root: Path) -> None:
    assert examine_command(line, root, root).read_only


@pytest.mark.parametrize(
    ("locale", "understood"),
    [("C.UTF-8", True), ("de_DE.utf8@euro", True), ("C", True), ("en_US.ISO-8859-1", False), ("ja_JP.SJIS", False)],
)
def test_letters_beyond_ascii_are_read_only_where_bash_reads_them_alike(
    locale: str, understood: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", locale)

    assert examine_command("cat à", root, root).read_only is understood
    assert examine_command("cat a", root, root).read_only


@pytest.mark.parametrize(
    "line", ["[ -f src ] && echo yes", "[ ! -d src ]", '[ -n "x y" ] || ls', "! [ -e src/app.py ]"]
)
def test_a_test_in_brackets_is_a_test(line: str, root: Path) -> None:
    assert examine_command(line, root, root).read_only


@pytest.mark.parametrize(
    "line",
    [
        *(
            "[ -v 'a[0]' ]",
            "[ -f x -a -f y ]",
            "[ a -eq 1 ]",
            "[[ -f x ]]",
            "[ -f * ]",
            "[ -f x] && ls",
            "[-f x ]",
            "[ ]",
        ),
        *("[ -f $X ]", "[ -f x ] > y", "[ -f ../outside ]", "[ -f /etc/shadow ]", "[ -R x ]", "[ -t 1 ", "[ -f x ] y"),
    ],
)
def test_other_brackets_ask(line: str, root: Path) -> None:
    analysis = examine_command(line, root, root)

    assert not analysis.read_only or any(not fact.inside for fact in analysis.paths)

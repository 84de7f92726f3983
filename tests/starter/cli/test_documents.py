"""Files that strangers may have written, as documents: PDF and HTML are read by a program that is ended in time."""

import io
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter

from longhaul.starter.cli.commands import knowledge
from longhaul.starter.cli.commands.knowledge import Document, NoDocument, read_document
from longhaul.starter.cli.exit_codes import Exit
from longhaul.starter.cli.terminal.screen import Screen


def pdf_of(*pages: bytes, kids: str = "", length: str = "") -> bytes:
    """Pages with these streams of drawing, deflated."""
    named = kids or " ".join(f"{5 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{named}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for at, page in enumerate(pages):
        stream = zlib.compress(page)
        head = f"<< /Length {length or len(stream)} /Filter /FlateDecode >>\nstream\n"
        objects.append(head.encode() + stream + b"\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaSandbox [0 0 300 300] /Contents {4 + 2 * at} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
    written = io.BytesIO(b"%PDF-1.4\n")
    written.seek(0, io.SEEK_END)
    places = list[int]()
    for number, each in enumerate(objects, start=1):
        places.append(written.tell())
        written.write(f"{number} 0 obj\n".encode() + each + b"\nendobj\n")
    table = written.tell()
    rows = "".join(f"{place:010} 00000 n \n" for place in places)
    written.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}".encode())
    written.write(f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n".encode())
    return written.getvalue()


def says(text: str) -> bytes:
    return f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode()


TIDES = pdf_of(says("High water is at six."), says("Low water is at noon."))


def with_password() -> bytes:
    writer, written = PdfWriter(PdfReader(io.BytesIO(TIDES))), io.BytesIO()
    writer.encrypt("mussel", algorithm="RC4-128")
    writer.write(written)
    return written.getvalue()


def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    for name in ("tides.pdf", "tides.scan", "TIDES.PDF"):
        (tmp_path / name).write_bytes(TIDES)

        assert read_document(tmp_path / name).passages == ["High water is at six.\n\nLow water is at noon."]


@pytest.mark.proves("C11")
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (with_password, "a PDF with a password"),
        (lambda: pdf_of(b""), "without text, as of pages that were scanned"),
        (lambda: b"%PDF-1.4\n" + b"\xff\0" * 500, "a PDF that can't be read"),
        (bytes, "a PDF that can't be read"),
        (lambda: pdf_of(says("Round."), kids="2 0 R 2 0 R"), "PDF"),
        (lambda: pdf_of(b"[" * 200_000), "PDF"),
        # Made by its test alone: it takes a second, and each process reads this list.
        (lambda: pdf_of(b" " * 400_000_000), "PDF"),
        (lambda: TIDES[:400], "PDF"),
    ],
    ids=["password", "scanned", "garbage", "empty", "circle", "nested", "bomb", "cut"],
)
def test_a_pdf_that_can_not_be_read_says_why(tmp_path: Path, content: Callable[[], bytes], why: str) -> None:
    (tmp_path / "odd.pdf").write_bytes(content())

    with pytest.raises(NoDocument, match=why):
        read_document(tmp_path / "odd.pdf")


@pytest.mark.parametrize("piece", ["<a ", "<!--", "<a b='"])
def test_a_page_that_keeps_its_reader_busy_is_left_out_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: str
) -> None:
    monkeypatch.setattr(knowledge, "PARSE_SECONDS", 1.0)
    (tmp_path / "odd.html").write_text(piece * 700_000)

    with pytest.raises(NoDocument, match=r"too much memory|it has no text"):
        read_document(tmp_path / "odd.html")


def test_what_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "LARGEST_PDF_BYTES", 2_000_000)
    (tmp_path / "large.pdf").write_bytes(TIDES + b"\0" * 2_000_000)

    with pytest.raises(NoDocument, match="more than 2 MB"):
        read_document(tmp_path / "large.pdf")


async def test_a_file_that_has_not_changed_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LONGHAUL_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "tides.pdf").write_bytes(TIDES)
    read = list[Path]()

    def noted(path: Path) -> Document:
        read.append(path)
        return read_document(path)

    monkeypatch.setattr(knowledge, "read_document", noted)

    async def added() -> Any:
        assert await knowledge.add(Screen(as_json=True), "harbour", [tmp_path / "tides.pdf"]) == Exit.DONE
        return json.loads(capsys.readouterr().out)

    first, again = await added(), await added()
    (tmp_path / "tides.pdf").write_bytes(pdf_of(says("High water is at seven.")))
    changed = await added()

    assert [(each["added"], each["unchanged"]) for each in (first, again, changed)] == [
        (["tides.pdf"], 0),
        ([], 1),
        (["tides.pdf"], 0),
    ]
    assert len(read) == 2


async def test_a_file_whose_name_is_no_text_is_left_out_and_the_others_are_put_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LONGHAUL_DATA_DIR", str(tmp_path / "data"))
    files = [tmp_path / os.fsdecode(name) for name in (b"a.txt", b"ebb\xff.txt", b"slack.txt")]
    for file in files:
        file.write_text("High water is at six.")

    ended = await knowledge.add(Screen(as_json=True), "harbour", files)

    told = json.loads(capsys.readouterr().out)
    assert ended == Exit.TROUBLE
    assert told["added"] == ["a.txt", "slack.txt"]
    assert told["left_out"] == {"ebb?.txt": "its name is no text in UTF-8; rename it"}

"""An attachment is looked into before a model is sent it: what is sound stays, what is not becomes words."""

import base64
import struct
import zlib

import pytest

from longhaul.activities.context.attachments import LONGEST_BASE64, looked_into
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock, URLSource
from tests.activities.models.sample_requests import PIXEL

HEAD = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x0b\x08\0\4\0\4\1\1\x11\0\xff\xd9"
GIF = b"GIF89a\4\0\4\0\0\0\0;"
WEBP = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\3\xc0\0\0"


def part(kind: bytes, body: bytes, crc: int | None = None) -> bytes:
    check = zlib.crc32(kind + body) if crc is None else crc
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)


def png(width: int = 4, height: int = 4, *more: bytes) -> bytes:
    return HEAD + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + b"".join(more) + END


END = part(b"IEND", b"")


def block(data: bytes | str, media_type: str, name: str | None = None) -> DataBlock:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    return DataBlock(source=Base64Source(data=text, media_type=media_type), name=name)


SOUND = {
    "a PNG": block(PIXEL, "image/png"),
    "a PNG with damage where nobody looks": block(png(4, 4, part(b"tEXt", b"by Ana", crc=7)), "image/png"),
    "a PNG with something behind its end": block(png() + b"tail", "image/png"),
    "a PNG as large as may be": block(png(8_000, 8_000), "image/png"),
    "a JPEG": block(JPEG, "image/jpeg"),
    "a GIF": block(GIF, "image/gif"),
    "a WebP": block(WEBP, "image/webp"),
    "a PDF": block(b"\n%PDF-1.7 ...", "application/pdf"),
    "a sound": block(b"ID3 la la", "audio/mpeg"),
    "a sound of a kind that is not known": block(b"la la", "audio/aac"),
    "any file": block(b"\0\1\2", "application/zip"),
    "a picture of a kind that no provider takes": block(b"BM..", "image/bmp"),
    "an address": DataBlock(source=URLSource(url="https://x.example/a.png", media_type="image/png")),
}
BROKEN = {
    "no base64": (block("a b%", "image/png"), "it is not valid base64"),
    "base64 with line breaks": (block(PIXEL[:40] + "\n" + PIXEL[40:], "image/png"), "it is not valid base64"),
    "base64 that is cut off": (block(PIXEL[:41], "image/png"), "it is not valid base64"),
    "letters of another alphabet": (block("äöü=", "text/plain"), "it is not valid base64"),
    "a lone surrogate": (block("\ud800", "image/png"), "it is not valid base64"),
    "nothing": (block("", "application/pdf"), "it is empty"),
    "HTML": (block(b"<html>", "image/jpeg"), "it is not image/jpeg, but something else (it begins with 3c 68 74 6d"),
    "a PDF as an image": (block(b"%PDF-1", "image/png"), "it is not image/png, but application/pdf"),
    "an image as a PDF": (block(PIXEL, "application/pdf"), "it is not application/pdf, but image/png"),
    "an image as a sound": (block(PIXEL, "audio/mpeg"), "it is not audio/mpeg, but image/png"),
    "a PNG with damage": (block(png(4, 4, part(b"IDAT", b"x", crc=7)), "image/png"), "its part 'IDAT' is damaged"),
    "a PNG without an end": (block(png()[:-12], "image/png"), "it is not a valid PNG: its end is missing"),
    "a PNG cut in a part": (block(png()[:20], "image/png"), "it is not a valid PNG: its end is missing"),
    "a part that is longer than all": (block(HEAD + b"\xff\xff\xff\xffIDAT" + b"x" * 9, "image/png"), "its end is"),
    "a PNG without a size": (block(HEAD + END, "image/png"), "it is not a valid PNG: its size can't be read"),
    "no pixels": (block(png(0, 4), "image/png"), "it has no pixels"),
    "too wide": (block(png(8_001, 4), "image/png"), "it has 8001 x 4 pixels, and 8000 a side are taken"),
    "a JPEG without a size": (block(b"\xff\xd8\xff\xd9", "image/jpeg"), "it is not a valid JPEG: its size can't be"),
    "a GIF cut short": (block(b"GIF89a\4", "image/gif"), "it is not a valid GIF: its size can't be read"),
    "too many bytes": (block(png(4, 4, part(b"tEXt", b"x" * LONGEST_BASE64)), "image/png"), "kB are taken"),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_is_sound_stays_as_it_came(name: str) -> None:
    assert looked_into(SOUND[name]) is SOUND[name]


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_becomes_words_that_say_why(name: str) -> None:
    broken, why = BROKEN[name]

    found = looked_into(broken)

    assert isinstance(found, TextBlock)
    assert why in found.text
    assert f"({broken.source.media_type}) left out: " in found.text


@pytest.mark.parametrize(
    ("declared", "data", "really"),
    [
        ("image/png", JPEG, "image/jpeg"),
        ("image/jpeg", WEBP, "image/webp"),
        ("image/jpg", JPEG, "image/jpeg"),
        ("audio/mpeg", b"RIFF1234WAVEfmt ", "audio/wav"),
    ],
)
def test_an_image_under_another_name_is_named_as_what_it_is(declared: str, data: bytes, really: str) -> None:
    found = looked_into(block(data, declared, "sea"))

    assert found == block(data, really, "sea")


def test_words_name_the_attachment_and_stay_short() -> None:
    found = looked_into(block("", "image/png; " + "x" * 900, "s" * 900))

    assert isinstance(found, TextBlock)
    assert found.text.startswith("[image 'sss")
    assert len(found.text) < 400

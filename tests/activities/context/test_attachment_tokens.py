"""What attachments cost: images by the pixels that their heads tell, the rest by constants."""

import base64
import struct

import pytest

from longhaul.activities.context.attachments import attachment_tokens, pixel_size
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock

GPT, CLAUDE = "openai:gpt-5.2", "anthropic:claude-opus-4-8"


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x06\0\0\0"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0"


def jpeg_frame(width: int, height: int) -> bytes:
    return b"\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width) + b"\x03" + b"\0" * 9


def jpeg(width: int, height: int) -> bytes:
    """With a thumbnail of 160 x 120 in its EXIF segment, as cameras write it."""
    exif = b"Exif\0\0\xff\xd8" + jpeg_frame(160, 120)
    segments = b"\xff\xe1" + struct.pack(">H", 2 + len(exif)) + exif + b"\xff\xc4" + struct.pack(">H", 4) + b"\0\0"
    return b"\xff\xd8" + segments + jpeg_frame(width, height)


def webp(kind: bytes, sizes: bytes) -> bytes:
    return b"RIFF\x24\0\0\0WEBPVP8" + kind + b"\x18\0\0\0" + sizes + b"\0" * 9


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def image(data: str) -> DataBlock:
    return DataBlock(source=Base64Source(data=data, media_type="image/png"))


@pytest.mark.parametrize(
    "data",
    [
        png(640, 480),
        gif(640, 480),
        jpeg(640, 480),
        webp(b" ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480)),
        webp(b"L", b"\x2f" + struct.pack("<I", 639 | 479 << 14)),
        webp(b"X", b"\0\0\0\0" + b"\x7f\x02\0" + b"\xdf\x01\0"),
    ],
    ids=["png", "gif", "jpeg", "webp", "webp lossless", "webp extended"],
)
def test_the_size_is_read_from_the_head(data: bytes) -> None:
    assert pixel_size(encoded(data)) == (640, 480)
    assert pixel_size(encoded(data + b"\0" * 100_000)) == (640, 480)


@pytest.mark.parametrize(
    "data",
    [
        "", "A", "!!!", "海", "\ud83d", encoded(b"plain words"), encoded(png(0, 480)), encoded(png(640, 480)[:20]),
        encoded(jpeg(640, 480)[:45]), encoded(b"\xff\xd8" + b"\xff\xe0\0\0" * 9_000), encoded(webp(b" ", b"")[:24]),
    ],
)  # fmt: skip
def test_what_is_no_image_costs_as_much_as_any_image(data: str) -> None:
    assert pixel_size(data) is None
    assert attachment_tokens(image(data), CLAUDE) == attachment_tokens(image(data), GPT) == 1_600


@pytest.mark.parametrize(
    ("width", "height", "claude", "gpt"),
    [
        (200, 200, 54, 255),
        (1_000, 1_000, 1_334, 765),
        (1_092, 1_092, 1_590, 765),
        (2_048, 4_096, 1_600, 1_105),
        (8_000, 100, 41, 765),
        (1, 1, 1, 255),
        (4_294_967_295, 1, 1, 765),
    ],
)
def test_an_image_costs_by_its_pixels_as_each_provider_says(width: int, height: int, claude: int, gpt: int) -> None:
    block = image(encoded(png(width, height)))

    assert attachment_tokens(block, CLAUDE) == claude
    assert attachment_tokens(block, GPT) == gpt


@pytest.mark.parametrize(("size_bytes", "tokens"), [(0, 2_000), (120_000, 6_000), (90_000_000, 200_000)])
def test_a_document_costs_by_its_size(size_bytes: int, tokens: int) -> None:
    document = Base64Source(data="A" * (size_bytes * 4 // 3), media_type="application/pdf")

    assert attachment_tokens(DataBlock(source=document), CLAUDE) == tokens


def test_what_no_model_can_be_shown_costs_a_sentence() -> None:
    sound = Base64Source(data="A" * 9_000_000, media_type="audio/wav")

    assert attachment_tokens(DataBlock(source=sound), GPT) == 40


@pytest.mark.parametrize(("size", "tokens"), [(4, 40), (960_000, 1_920)])
@pytest.mark.parametrize("model", ["ai:google:gemini-3-pro", "openai-chat:gpt-audio-1.5"])
def test_a_sound_that_is_heard_costs_by_its_size(model: str, size: int, tokens: int) -> None:
    sound = Base64Source(data="A" * (size * 4 // 3), media_type="audio/mpeg")

    assert attachment_tokens(DataBlock(source=sound), model) == tokens

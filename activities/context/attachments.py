"""Attachments before a model is sent them: whether they are whole, how many tokens they take, and which images a model
takes.

Looks into attachments before a model is sent them: one that is broken would be refused with every later request.

What is decoded here is the outside of a file (its kind, its size, its checksums), not its pixels.

Counts the tokens of an attachment: an image by its pixels, which its first bytes tell, anything else by a constant.

Sources: platform.claude.com, "Vision"; platform.openai.com, "Images and vision". Both change with every incarnation of
models, and the provider's report corrects what is wrong here.

Tells which images a model takes: none, or only smaller ones among many; of others their providers' refusal tells it.

Claude takes 8,000 pixels a side, and 2,000 where a request has more than 20 images; it refuses all of a request that
has a larger one ("Vision", platform.claude.com, as of 2026-11-23).
"""

import base64
import binascii
import math
import re
import struct
import zlib
from collections.abc import Mapping, Sequence

from longhaul.activities.models.requests.model_parameters import hears
from longhaul.agent.reducer.context_state import words_for
from longhaul.agent.values.conversation.messages import IMAGES, Base64Source, DataBlock, TextBlock

LEFT_OUT_TOKENS = 40
"""Of the sentence that stands for what no provider takes."""

UNKNOWN_IMAGE_TOKENS = 1_600
"""The most that an image costs with Claude's usual limits, and a little more than with OpenAI's tiles."""

PDF_PAGE_TOKENS = 2_000
PDF_PAGE_BYTES = 50_000
"""A guess: pages are not counted, and cost 1,500 to 3,000 tokens for their text alone."""
MOST_PDF_PAGES = 100

SOUND_BYTES_A_TOKEN = 500
"""A guess: of an MP3 at 128 kbit/s that Gemini hears, at 32 tokens a second; sounds of other kinds cost less."""

_HEAD_BYTES = 65_536
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of the segment that has the size; the three left out stand between them and mean something else."""


def attachment_tokens(block: DataBlock, model: str) -> int:
    """Tokens of `block` as `model`'s provider counts them, roughly; never raises, whatever the data is."""
    source = block.source
    if source.media_type in IMAGES:
        size = pixel_size(source.data) if isinstance(source, Base64Source) else None
        if size is None:
            return UNKNOWN_IMAGE_TOKENS
        return _tiles(*size) if model.startswith(("openai:", "openai-chat:", "azure:", "azure-chat:")) else _area(*size)
    if source.media_type == "application/pdf":
        size_bytes = len(source.data) * 3 // 4 if isinstance(source, Base64Source) else 0
        return min(1 + size_bytes // PDF_PAGE_BYTES, MOST_PDF_PAGES) * PDF_PAGE_TOKENS
    if source.media_type.startswith("audio/") and hears(model) and isinstance(source, Base64Source):
        return max(LEFT_OUT_TOKENS, len(source.data) * 3 // 4 // SOUND_BYTES_A_TOKEN)
    return LEFT_OUT_TOKENS


def pixel_size(base64_data: str) -> tuple[int, int] | None:
    """Width and height as the head of a PNG, GIF, WebP or JPEG file says; None when it does not."""
    try:
        head = base64.b64decode(base64_data[: _HEAD_BYTES // 3 * 4])
        width, height = size_in(head)
    except (ValueError, struct.error):
        return None
    return (width, height) if width > 0 and height > 0 else None


def size_in(head: bytes) -> tuple[int, int]:
    """Raises ValueError or struct.error for what is no such head, or a torn one."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        found = struct.unpack(">II", head[16:24])
    elif head.startswith((b"GIF87a", b"GIF89a")):
        found = struct.unpack("<HH", head[6:10])
    elif head.startswith(b"\xff\xd8"):
        found = _jpeg_size(head)
    elif head.startswith(b"RIFF") and head[8:15] == b"WEBPVP8":
        found = _webp_size(head)
    else:
        raise ValueError("no image that is known here")
    return found[0], found[1]


def _jpeg_size(head: bytes) -> tuple[int, int]:
    """From segment to segment: a search for the marker would find the thumbnail's first."""
    at = 2
    while head[at : at + 1] == b"\xff":
        marker, length = struct.unpack(">BH", head[at + 1 : at + 4])
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 + length
    raise ValueError("no size within the head")


def _webp_size(head: bytes) -> tuple[int, int]:
    kind = head[15:16]
    if kind == b"X":
        low = struct.unpack("<HBHB", head[24:30])
        return 1 + low[0] + (low[1] << 16), 1 + low[2] + (low[3] << 16)
    if kind == b"L":
        bits = struct.unpack("<I", head[21:25])[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", head[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _area(width: int, height: int) -> int:
    """Claude's rule: a token for 750 pixels, after scaling to 1,568 pixels at most on the longer side."""
    scale = min(1.0, 1568 / max(width, height))
    return min(math.ceil(width * scale * (height * scale) / 750), UNKNOWN_IMAGE_TOKENS)


def _tiles(width: int, height: int) -> int:
    """OpenAI's rule: 85, and 170 per tile of 512 pixels, after scaling to 2,048 and to 768 on the shorter side."""
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    return 85 + 170 * max(1, math.ceil(width * scale / 512)) * max(1, math.ceil(height * scale / 512))


MANY = 20
MOST_PIXELS_AMONG_MANY = 2_000


def too_large_among(images: Sequence[DataBlock], origin: str) -> list[tuple[DataBlock, str]]:
    """Those, each with the reason. `origin`: whose model is asked (`activities.models.requests.thinking_origin`)."""
    if len(images) <= MANY or "claude" not in origin.lower():
        return []
    sizes = [(block, pixel_size(block.source.data)) for block in images if isinstance(block.source, Base64Source)]
    return [
        (
            block,
            f"it has {size[0]} x {size[1]} pixels, and {MOST_PIXELS_AMONG_MANY} a side are taken among so many images",
        )
        for block, size in sizes
        if size is not None and max(size) > MOST_PIXELS_AMONG_MANY
    ]


_TEXT_ONLY = re.compile(
    r"(?:^|[:/])(?:"
    r"deepseek-(?:chat|reasoner|coder|r\d|v[34])(?!.*(?:vl|ocr))"  # api-docs.deepseek.com
    r"|gpt-3\.5|gpt-4(?:-0\d\d\d|-32k)?$|o1-(?:mini|preview)|o3-mini"  # developers.openai.com, "Models"
    r"|qwen\d?(?:\.\d)?-coder|qwq|codestral|claude-(?:2|instant)"
    r")",
    re.IGNORECASE,
)


def is_text_only(full_model_name: str) -> bool:
    return _TEXT_ONLY.search(full_model_name) is not None


LONGEST_BASE64 = 5 * 1024 * 1024
"""Of one image. Claude refuses more ("Vision", platform.claude.com), and so do most servers."""
MOST_PIXELS_A_SIDE = 8_000
"""The same source. OpenAI scales larger ones down, at no gain for anybody."""

_SAME = {"image/jpg": "image/jpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/mp3": "audio/mpeg"}
_PNG_HEAD = b"\x89PNG\r\n\x1a\n"


def looked_into(block: DataBlock) -> DataBlock | TextBlock:
    """The block itself when nothing is wrong with it; the same under its right type; or words that say what is."""
    try:
        return sound(block)
    except (ValueError, struct.error) as error:
        return TextBlock(text=words_for(block, str(error)))


def sound(block: DataBlock) -> DataBlock:
    """The block, under its right type. Raises ValueError or struct.error for one that no provider takes: it says why.
    What an address leads to is not looked at."""
    source = block.source
    if not isinstance(source, Base64Source):
        return block
    declared = source.media_type.partition(";")[0].strip().lower()
    if not source.data:
        raise ValueError("it is empty")
    try:
        # Without line breaks: MIME has them, and providers refuse them as well as other strange characters.
        data = base64.b64decode(source.data, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is not valid base64") from None
    kind = _as_it_is(data, _SAME.get(declared, declared))
    if kind in IMAGES:
        _check_image(kind, data, len(source.data))
    if kind in (source.media_type, declared):
        return block
    return block.model_copy(update={"source": source.model_copy(update={"media_type": kind})})


def _kind_of(data: bytes) -> str:
    """By its first bytes; empty for what is not known here."""
    for kind, starts in _STARTS.items():
        if data.startswith(starts):
            return kind
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "")
    return "application/pdf" if b"%PDF-" in data[:1024] else ""


def _as_it_is(data: bytes, declared: str) -> str:
    """Its kind. Of one image that calls itself another nothing is lost; a page of HTML that does is no image."""
    kind = _kind_of(data)
    if declared in IMAGES or declared == "application/pdf" or (kind and declared.startswith("audio/")):
        if kind.partition("/")[0] != declared.partition("/")[0]:
            found = kind or f"something else (it begins with {data[:8].hex(' ')})"
            raise ValueError(f"it is not {declared}, but {found}")
        return kind
    return declared


def _check_image(kind: str, data: bytes, base64_characters: int) -> None:
    if base64_characters > LONGEST_BASE64:
        raise ValueError(f"it has {len(data) // 1000} kB, and {LONGEST_BASE64 * 3 // 4000} kB are taken")
    if kind == "image/png":
        _check_parts(data)
    try:
        width, height = size_in(data)
    except (ValueError, struct.error):
        raise ValueError(f"it is not a valid {kind.partition('/')[2].upper()}: its size can't be read") from None
    if not (width > 0 and height > 0):
        raise ValueError("it has no pixels")
    if max(width, height) > MOST_PIXELS_A_SIDE:
        raise ValueError(f"it has {width} x {height} pixels, and {MOST_PIXELS_A_SIDE} a side are taken")


def _check_parts(data: bytes) -> None:
    """Of a PNG, whose parts have checksums. In those that may be missing every reader passes over damage."""
    at, last = len(_PNG_HEAD), b""
    while last != b"IEND":
        if len(data) < at + 12:
            raise ValueError("it is not a valid PNG: its end is missing")
        length, last = struct.unpack(">I4s", data[at : at + 8])
        end = at + 12 + length
        if len(data) < end:
            raise ValueError("it is not a valid PNG: its end is missing")
        damaged = zlib.crc32(data[at + 4 : end - 4]) != struct.unpack(">I", data[end - 4 : end])[0]
        if damaged and last[:1].isupper():
            raise ValueError(f"it is not a valid PNG: its part {last.decode('latin-1')!r} is damaged")
        at = end


_STARTS: Mapping[str, bytes | tuple[bytes, ...]] = {
    "image/png": _PNG_HEAD,
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": (b"GIF87a", b"GIF89a"),
    "audio/mpeg": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    "audio/ogg": b"OggS",
    "audio/flac": b"fLaC",
}

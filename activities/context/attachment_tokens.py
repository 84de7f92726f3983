"""Counts the tokens of an attachment: an image by its pixels, which its first bytes tell, anything else by a constant.

Sources: platform.claude.com, "Vision"; platform.openai.com, "Images and vision". Both change with every generation of
models, and the provider's report corrects what is wrong here.
"""

import base64
import math
import struct

from longhaul.activities.models.requests.openai_parts import hears
from longhaul.agent.values.conversation.messages import IMAGES, Base64Source, DataBlock

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

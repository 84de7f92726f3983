"""Which images are too large among many others, and for whom."""

import base64
import struct

import pytest

from longhaul.activities.context.attachments import too_large_among
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, URLSource


def image(width: int, height: int) -> DataBlock:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(9)
    return DataBlock(source=Base64Source(data=base64.b64encode(head).decode(), media_type="image/png"))


SMALL, WIDE, TALL, EXACT = image(10, 10), image(2_001, 10), image(10, 7_999), image(2_000, 2_000)
BY_ADDRESS = DataBlock(source=URLSource(url="https://harbour.example/sea.png", media_type="image/png"))
UNKNOWN = DataBlock(source=Base64Source(data="AAAA", media_type="image/webp"))


@pytest.mark.parametrize(
    "origin",
    [
        "anthropic:claude-opus-4-8",
        "anthropic:claude-haiku-4-5 https://gateway.example",
        "ai:openrouter:anthropic/claude-opus-4.8",
        "openai-chat:Claude-Sonnet-5 https://proxy.example",
    ],
)
def test_of_twenty_one_for_claude_those_of_more_than_two_thousand_pixels(origin: str) -> None:
    found = too_large_among([WIDE, BY_ADDRESS, UNKNOWN, EXACT, TALL, *[SMALL] * 16], origin)

    assert [block for block, _ in found] == [WIDE, TALL]
    assert [why for _, why in found] == [
        "it has 2001 x 10 pixels, and 2000 a side are taken among so many images",
        "it has 10 x 7999 pixels, and 2000 a side are taken among so many images",
    ]


@pytest.mark.parametrize(
    ("origin", "count"), [("anthropic:claude-opus-4-8", 20), ("openai:gpt-5.1", 40), ("openai-chat:qwen3-vl", 40)]
)
def test_none_of_twenty_and_none_for_others(origin: str, count: int) -> None:
    assert too_large_among([WIDE] * count, origin) == []

"""Tells which images a model takes: none, or only smaller ones among many; of others their providers' refusal tells it.

Claude takes 8,000 pixels a side, and 2,000 where a request has more than 20 images; it refuses all of a request that
has a larger one ("Vision", platform.claude.com, as of 2026-11-23).
"""

import re
from collections.abc import Sequence

from longhaul.activities.context.attachment_tokens import pixel_size
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock

MANY = 20
MOST_PIXELS_A_SIDE = 2_000


def too_large_among(images: Sequence[DataBlock], origin: str) -> list[tuple[DataBlock, str]]:
    """Those, each with the reason. `origin`: whose model is asked (`activities.models.requests.thinking_origin`)."""
    if len(images) <= MANY or "claude" not in origin.lower():
        return []
    sizes = [(block, pixel_size(block.source.data)) for block in images if isinstance(block.source, Base64Source)]
    return [
        (block, f"it has {size[0]} x {size[1]} pixels, and {MOST_PIXELS_A_SIDE} a side are taken among so many images")
        for block, size in sizes
        if size is not None and max(size) > MOST_PIXELS_A_SIDE
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

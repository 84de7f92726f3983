"""Recognises that a provider's content filter refused a request before any model read it."""

import re
from collections.abc import Sequence

CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "ResponsibleAIPolicyViolation",
        "invalid_prompt",
        "moderation_blocked",
        "data_inspection_failed",
        "DataInspectionFailed",
        "SensitiveContentDetected",
        "InputTextSensitiveContentDetected",
    }
)

_STATUSES = frozenset({400, 403, 422, 500})
_WORDS = re.compile(
    "|".join(
        (
            r"content management policy|content policy violation|blocked by (?:our )?content (?:filter|polic)",  # Azure
            r"content exists risk|considered high risk",  # DeepSeek, Kimi
            r"(?:input|prompt|request|content) was flagged|flagged (?:as potentially|for) violat",  # OpenRouter, OpenAI
            r"not allowed by our safety system|inappropriate content|new_sensitive",  # OpenAI, DashScope, MiniMax
            r"不安全或敏感内容|blocked by (?:a |the )?guardrail",  # GLM, Bedrock
        )
    ),
    re.IGNORECASE,
)
_OF_AN_IMAGE = re.compile(r"\bimages?\b|\bpictures?\b|图片", re.IGNORECASE)


def is_filtered(status: int, codes: Sequence[str], message: str) -> bool:
    """Whether the request was refused for what it says, so that another model's provider may take it."""
    return status in _STATUSES and (any(code in CODES for code in codes) or bool(_WORDS.search(message)))


def is_filtered_image(status: int, codes: Sequence[str], message: str) -> bool:
    """The same for what an image shows: without it the provider takes the rest."""
    return is_filtered(status, codes, message) and bool(_OF_AN_IMAGE.search(message))

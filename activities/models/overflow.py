"""How providers say that a conversation is too long: by code where they have one, else by their words."""

import re
from collections.abc import Sequence
from http import HTTPStatus

CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "exceed_context_size_error",
        "string_above_max_length",
        "request_too_large",
        "request_body_too_large_after_decoding",
    }
)

_WORDS = re.compile(
    r"prompt is too long|input is too long|prompt \(.{0,60}\) is (?:too long|longer than)"  # Anthropic, Bedrock, vLLM
    r"|exceeds? (?:the )?(?:model'?s )?(?:maximum )?context (?:limit|length|window)"  # Anthropic, OpenAI
    r"|exceeds? the (?:available )?context (?:size|window)|context[_ ]length[_ ]exceeded"  # llama.cpp, OpenAI
    r"|maximum context length|maximum model length|exceeds the maximum (?:length|number of tokens)"  # OpenAI, vLLM
    r"|range of input length should be",  # DashScope
    re.IGNORECASE,
)

_TOO_LARGE_FOR_THE_MINUTE = re.compile(r"request too large for|reduce (?:the length|your prompt)", re.IGNORECASE)
"""OpenAI's 429 for one request that is larger than a whole minute's tokens: waiting never helps."""


def says_too_long(status: int, codes: Sequence[str], message: str) -> bool:
    """Whether a failure of this status (codes most telling first) means that a shorter request may pass."""
    if any(code in CODES for code in codes):
        return True
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return bool(_TOO_LARGE_FOR_THE_MINUTE.search(message))
    return status in (400, 413, 422, 500) and bool(_WORDS.search(message))

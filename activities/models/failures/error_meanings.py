"""Recognises what a provider means by a failure: a conversation that is too long, a content filter, a quota that is
used up, or content of the request that it refuses.

Reads from a provider's refusal which content of the request it means, so that the next one can do without it.

Providers name it by a path into what was sent (`messages.3.content.1`, `input[3].content[0]`,
`messages.[4].content.[1]`), by its kind in words, or not at all. Sources stand with the rows of
tests/activities/models/failures/refusals.py.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

FILTER_CODES = frozenset(
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

_FILTER_STATUSES = frozenset({400, 403, 422, 500})
_FILTER_WORDS = re.compile(
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
    return status in _FILTER_STATUSES and (
        any(code in FILTER_CODES for code in codes) or bool(_FILTER_WORDS.search(message))
    )


def is_filtered_image(status: int, codes: Sequence[str], message: str) -> bool:
    """The same for what an image shows: without it the provider takes the rest."""
    return is_filtered(status, codes, message) and bool(_OF_AN_IMAGE.search(message))


OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "request_too_large",
        "request_body_too_large_after_decoding",
        "ContextWindowExceededError",
    }
)

_OVERFLOW_WORDS = re.compile(
    "|".join(
        (
            r"(?:prompt|input|request|conversation) (?:is )?too long",  # Anthropic, Bedrock, Vertex, Ollama
            r"(?:prompt|input) \(.{0,60}\) is (?:too long|longer than)",  # vLLM, SGLang, Together
            # OpenAI, Anthropic, llama.cpp, SGLang, LiteLLM, gateways
            r"exceed(s|ed)? (the |this )?(model('?s)? )?(available |maximum ){0,2}context (limit|length|window|size)",
            r"exceeded (?:max )?context length|exceeded model token limit|model max length exceeded",  # Ollama, Kimi
            r"context[_ ](?:length|window|size)(?: has been)?[_ ]exceed",  # OpenAI, MiniMax, llama.cpp
            r"maximum (?:context|prompt|model) length",  # OpenAI and who speaks like it, xAI, vLLM
            r"context length (?:is|of) only|configured context size",  # vLLM, LM Studio, ds4
            r"exceeds the maximum (?:length|number of tokens|allowed input length)",  # vLLM, Gemini, Poolside
            r"input token count is \d+ but|prompt token count of \d+ exceeds",  # Vertex, Copilot
            r"\b(?:input|total) tokens (?:of image and text )?exceed",  # Bedrock, Azure, Ark
            r"greater than the context length|larger than the max context size",  # LM Studio, llama.cpp
            r"(?:less|greater) than max_seq_len|should not exceed max_num_tokens",  # SiliconFlow, Tabby, TensorRT-LLM
            r"exceeded max_prompt_tokens|(?:exceeds|longer than) the max_model_len",  # SiliconFlow, vLLM
            r"prompt exceeds max length|prompt 超长",  # GLM
            "上下文(?:过长|长度?超|超出)|超[出过](?:模型)?(?:的)?最大(?:上下文|长度)",  # gateways in China
            r"ContextWindowExceededError|no models have context window",  # LiteLLM
            r"`?inputs`? (?:tokens \+ `?max_new_tokens`? must be|must have less than)",  # TGI, Together
            r"tokens in the prompt cannot exceed|size limit exceeded by \d+ tokens",  # Cohere
            r"cannot exceed the total tokens limit",  # watsonx
            r"reduce the length of (?:the|your) (?:messages|input|prompt)",  # Groq, Cerebras
            r"too many total text bytes|request payload size exceeds",  # Bedrock, Gemini: of the whole request
            r"too many input tokens",  # Bedrock
            r"range of input length should be",  # DashScope
        )
    ),
    re.IGNORECASE,
)

_LONG_STRING = re.compile(r"string too long.{0,60}maximum length \d{5,}", re.IGNORECASE)
"""OpenAI's. A short limit is that of a name, which no shorter conversation helps against."""

_TOO_LARGE_FOR_THE_MINUTE = re.compile(r"request too large for|reduce (?:the length|your prompt)", re.IGNORECASE)
"""OpenAI's 429 for one request that is larger than a whole minute's tokens: waiting never helps."""

_OVERFLOW_STATUSES = frozenset({400, 413, 422, 500})


def says_too_long(status: int, codes: Sequence[str], message: str) -> bool:
    """Whether a failure of this status (codes most telling first) means that a shorter request may pass."""
    if any(code in OVERFLOW_CODES for code in codes):
        return True
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return bool(_TOO_LARGE_FOR_THE_MINUTE.search(message))
    return status in _OVERFLOW_STATUSES and bool(_OVERFLOW_WORDS.search(message) or _LONG_STRING.search(message))


_QUOTA_STATUSES = frozenset({400, 401, 402, 403, 412, 429})

_SPENT = re.compile(
    "|".join(
        (
            r"credit balance is too low|reached your specified api usage limits",  # Anthropic
            r"exceeded (?:your )?current quota|check your plan and billing",  # OpenAI, Gemini, Kimi
            r"insufficient[_ ](?:account )?(?:balance|quota|credits?|funds)",  # Kimi, DeepSeek, MiniMax, OpenRouter
            r"balance is (?:insufficient|not enough|too low)|余额不足|欠费",  # SiliconFlow, GLM, Ark
            r"requires more credits|used all available credits|out of credits|no credits? (?:left|remaining)",
            r"(?:monthly|weekly|daily) (?:spending limit|included credits|usage limit)",  # xAI, Fireworks, Hugging Face
            r"per month request limit|usage limit (?:reached|exceeded)|reached (?:your|its|the) usage limit",
            r"account.{0,40}(?:overdue|in arrears)",  # Ark
            r"too many tokens per day",  # Bedrock
        )
    ),
    re.IGNORECASE,
)
_SOON = re.compile(r"per[ _-]?(?:minute|second)|(?:retry|try again) in \d", re.IGNORECASE)
"""Gemini has the same words for a minute's quota, which is a rate limit, …"""
_NOT_SOON = re.compile(r"per[ _-]?(?:day|month)|limit: 0\b", re.IGNORECASE)
"""… except where it allows none at all, or none today."""


def is_spent(status: int, codes: Sequence[str], message: str) -> bool:
    """Whether a failure of this status says that there is no credit or quota left to wait for."""
    words = " ".join((*codes, message))
    if status not in _QUOTA_STATUSES or not _SPENT.search(words):
        return False
    return bool(_NOT_SOON.search(words)) or not _SOON.search(words)


Means = Literal["thinking", "images at all", "attachments", "these"]

_PATH = re.compile(r"\b(?:messages|input)(?:\.?\[\d+\]|\.\d+)(?:\.?\[\d+\]|\.\w+)*")
_STEP = re.compile(r"\d+|[A-Za-z_]\w*")
_THINKING = re.compile(
    r"thinking`? block|redacted_thinking|(?:invalid|corrupt\w*).{0,12}signature|encrypted.content"
    r"|without its required 'reasoning'|item 'rs_|reasoning.{0,40}(?:not found|invalid|without)"
    r"|reasoning(?:_content|_details)?(?!\.(?:effort|summary))\W.{0,60}"
    r"(?:unsupported|not (?:supported|permitted|allowed)|unexpected|unknown)"
    r"|(?:unsupported|unexpected|unknown|unrecognized).{0,60}\Wreasoning(?:_content|_details)?(?!\.(?:effort|summary))\W",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"process image|valid image|invalid.{0,3}image|unsupported image|image (?:format|type|size)"
    r"|image_parse_error|valid pdf"
    r"|image.{0,40}(?:invalid|not valid|corrupt|decode|exceed|too (?:large|big|small)|dimension)|dimensions|pixels"
    r"|(?:decode|parse|fetch).{0,40}(?:image|file|pdf|document|url)|download(?:ing)?\b|base64|mime|media.?type"
    r"|(?:pdf|document|file|attachment|audio|video).{0,60}"
    r"(?:invalid|not valid|corrupt|password|encrypted|exceed|too (?:large|many)|unsupported|empty|could not|cannot)"
    r"|(?:not|n't) (?:currently )?support.{0,20}(?:document|pdf)"
    r"|(?:could not|cannot|can't|unable to|failed to) (?:process|read|open|load).{0,20}"
    r"(?:image|file|pdf|document|attachment)",
    re.IGNORECASE,
)
_NO_IMAGES = re.compile(
    r"(?:not|n't) (?:currently )?support.{0,30}(?:image|vision|multi-?modal)"
    r"|image.{0,30}(?:not supported|only supported by)|image_url.{0,40}(?:not|only) (?:supported|allowed)"
    r"|support image input|unknown variant `?image|at most 0 image|not a (?:vision|multi-?modal)|mmproj"
    r"|(?:vision|multi-?modal).{0,20}(?:disabled|unsupported|unavailable)|content must be a string",
    re.IGNORECASE,
)
_REFUSAL_STATUSES = frozenset({400, 404, 413, 415, 422, 500, 501})
"""llama.cpp says with 500 that it has no eyes, OpenRouter with 404."""
_SERVER_ERRORS = 500
OF_CONTENT = ("image", "encrypted", "base64", "pdf")
"""Codes with such a part name a content. Others have words in common with one: `settings_document_limit_exceeded`."""
_DATA_URL = re.compile(r"data:[^,]{0,200},")


@dataclass(frozen=True, slots=True)
class RefusedContent:
    means: Means
    contents: frozenset[str] = frozenset()
    """Base64 data or addresses of the attachments, where it says which."""
    path: str = ""
    """As the provider names the place; empty if it does not."""


def read_refusal(status: int, words: str, sent: bytes = b"") -> RefusedContent | None:
    """What is refused, or None when it is not the content, or nothing that could be left out.

    `words`: the message, with the field that the error names. `sent`: the request's body as JSON.
    """
    if status not in _REFUSAL_STATUSES or (status >= _SERVER_ERRORS and not _NO_IMAGES.search(words)):
        return None
    found = _PATH.search(words)
    path = found[0] if found else ""
    node = _led_to(path, sent) if path else None
    if _THINKING.search(words) or (
        isinstance(node, dict) and node.get("type") in ("thinking", "redacted_thinking", "reasoning")
    ):
        return RefusedContent("thinking", path=path)
    if _NO_IMAGES.search(words):
        return RefusedContent("images at all", path=path)
    if named := frozenset(_attachments_in(node)):
        return RefusedContent("these", named, path)
    return RefusedContent("attachments", path=path) if _BAD.search(words) else None


def _led_to(path: str, sent: bytes) -> Any:
    """The innermost block on the path; steps that only name a kind (`tool_result`, `image`) lead nowhere and are passed
    over."""
    try:
        value: Any = json.loads(sent)
    except ValueError:
        return None
    innermost: Any = None
    for step in _STEP.findall(path):
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value and isinstance(value[step], dict | list):
            value = value[step]
        if isinstance(value, dict) and ("type" in value or "role" in value):
            innermost = value
    return innermost


def _attachments_in(node: Any) -> Iterator[str]:
    """The data or the address of each, as the record knows it."""
    match node:
        case {"type": "base64", "data": str(data)}:
            yield data
        case {"type": "url", "url": str(url)} | {"type": "input_file", "file_url": str(url)}:
            yield url
        case (
            {"type": "input_image", "image_url": str(url)}
            | {"type": "image_url", "image_url": {"url": str(url)}}
            | {"file_data": str(url)}
        ):
            yield _DATA_URL.sub("", url, count=1) if url.startswith("data:") else url
        case dict():
            for value in node.values():
                yield from _attachments_in(value)
        case list():
            for value in node:
                yield from _attachments_in(value)
        case _:
            return

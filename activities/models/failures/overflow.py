"""Recognises that a provider found a conversation too long: by a code where there is one, else by its words."""

import re
from collections.abc import Sequence
from http import HTTPStatus

CODES = frozenset(
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

_WORDS = re.compile(
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

_STATUSES = frozenset({400, 413, 422, 500})


def says_too_long(status: int, codes: Sequence[str], message: str) -> bool:
    """Whether a failure of this status (codes most telling first) means that a shorter request may pass."""
    if any(code in CODES for code in codes):
        return True
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return bool(_TOO_LARGE_FOR_THE_MINUTE.search(message))
    return status in _STATUSES and bool(_WORDS.search(message) or _LONG_STRING.search(message))

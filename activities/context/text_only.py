"""Names the models that are known to take no images; of others their providers' refusal tells it."""

import re

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

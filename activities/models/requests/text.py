"""Text that can always be stored and sent: without the lone surrogates that JSON escapes can smuggle in."""

from typing import Any


def scrub(text: str) -> str:
    """`text` with surrogate pairs joined and each lone surrogate replaced by U+FFFD; all else is kept, also NUL."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def scrub_json(value: Any) -> Any:
    """`value` (JSON: dicts, lists, scalars) with every string and key scrubbed."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {scrub(str(key)): scrub_json(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [scrub_json(child) for child in value]
    return value

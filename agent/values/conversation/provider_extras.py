"""Keeps with a block what its provider wants back, and nobody else can read: signatures, phases."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator

EXTRAS_BYTES = 400_000
"""Of one block's as JSON: more than any provider is known to send, and less than a reply may have."""


def extras_bytes(extras: dict[str, Any]) -> int:
    """Raises ValueError for what is no JSON."""
    try:
        return len(json.dumps(extras, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"extras have to be JSON: {error}") from None


def _bounded(extras: dict[str, Any]) -> dict[str, Any]:
    if extras and (size := extras_bytes(extras)) > EXTRAS_BYTES:
        raise ValueError(f"extras of {size:,} bytes; a block may have {EXTRAS_BYTES:,}: leave them out")
    return extras


Extras = Annotated[dict[str, Any], AfterValidator(_bounded)]
"""By the provider's own names, with who it is from (`thinking_origin` in activities/): no other is sent it."""

REASONING_FIELD = "reasoning_field"
"""Of a thought by Chat Completions: the name under which its server tells it, and wants it back."""
UNSIGNED = frozenset({REASONING_FIELD, "made_by", "made_behind"})
"""Of a thought with these alone the text may be changed: nobody has signed it."""

CONTINUES = "continues"
"""Of a text with which a model goes on where its message before broke off: no line ends between the two."""

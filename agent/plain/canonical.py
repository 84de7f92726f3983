"""One spelling of a value, so that equal values have equal digests on every machine and in every release."""

import base64
import hashlib
from json import JSONEncoder
from typing import Any

_JSON = JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
"""Made once: several digests are taken in every step."""


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys, no spaces and ASCII escapes; lone surrogates survive, NaN raises ValueError."""
    return _JSON.encode(value).encode("ascii")


def digest_of(value: Any) -> str:
    """sha-256 of the canonical JSON, as `_short` spells it."""
    return _short(canonical_json(value))


def chain_digest(before: str, message: str) -> str:
    """Digest of a context that ends with `message`, given the digest of the context before it ("" = empty)."""
    return _short(f"{before}+{message}".encode("ascii"))


def _short(data: bytes) -> str:
    """All 256 bits in 43 characters: several digests cross the history with every step."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode("ascii").rstrip("=")

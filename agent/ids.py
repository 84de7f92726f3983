"""Ids that two machines find independently: workflow ids from names, reply ids from requests."""

import hashlib

MAX_BYTES = 255
"""Temporal's SQL stores keep ids in VARCHAR(255)."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@")


def workflow_id(agent: str, user: str | None, session: str) -> str:
    """Readable where the names are plain and short, hashed where they are long; never the same for two triples.

    Shape: `longhaul/<agent>/<user>/<session>`, each part escaped; an anonymous user (None) is `~`, an empty
    name is `=`. Long ids keep the start of the session's name and end in `#` and a sha-256.
    """
    parts = (_escape(agent), "~" if user is None else _escape(user), _escape(session))
    readable = "/".join(("longhaul", *parts))
    if len(readable) <= MAX_BYTES:
        return readable
    digest = hashlib.sha256(readable.encode("ascii")).hexdigest()
    return f"longhaul/#{_start_of(_escape(session))}#{digest}"


def _start_of(escaped: str) -> str:
    """The first characters, without half an escape at the end."""
    start = escaped[:120]
    return start[:-2] + start[-2:].partition("%")[0]


def _escape(name: str) -> str:
    """Percent-escape all but plain ASCII, so that `/`, `~`, `#` and `=` are ours alone."""
    if not name:
        return "="
    return "".join(char if char in _PLAIN else _escaped(char) for char in name)


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def reply_id(workflow: str, request: str) -> str:
    """32 hex characters; the same for the same request of the same session, wherever it is worked out."""
    return hashlib.sha256(f"{workflow}\0{request}".encode("utf-8", "surrogatepass")).hexdigest()[:32]

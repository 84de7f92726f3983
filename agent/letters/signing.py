"""Signed decisions: what a signature covers, how it is made, and how it is checked. Keys are given, never kept."""

import base64
import hashlib
import hmac
import re
from typing import NamedTuple

from longhaul.agent.letters.bodies import CallDecision, Confirm
from longhaul.agent.plain.canonical import canonical_json
from longhaul.agent.plain.errors import BadSetup

_VERSION = "longhaul decision 1"
LEAST_SECRET = 16
_KEY = re.compile(r"[A-Za-z0-9_.@-]{1,100}")
_SIGNATURE = re.compile(r"(?P<key>[A-Za-z0-9_.@-]{1,100}):(?P<at>[0-9]{1,15}):(?P<mac>[A-Za-z0-9_-]{43})")


class BadKey(BadSetup, ValueError):
    """A setting of keys can't be used; the sentence never holds a secret."""


class Key(NamedTuple):
    id: str
    secret: bytes


def keys_of(setting: str) -> tuple[Key, ...]:
    """The keys of `id:secret,id:secret`; the first one signs, all of them are accepted. Raises BadKey."""
    keys: list[Key] = []
    for number, part in enumerate(filter(None, (part.strip() for part in setting.split(","))), start=1):
        key_id, colon, secret = part.partition(":")
        if not colon or not _KEY.fullmatch(key_id):
            raise BadKey(f"key {number} is not spelt as id:secret, with an id of letters, digits and . _ @ -")
        if len(secret.encode("utf-8", "surrogateescape")) < LEAST_SECRET:
            raise BadKey(f"the secret of key {key_id!r} is too short; take at least {LEAST_SECRET} random characters")
        keys.append(Key(key_id, secret.encode("utf-8", "surrogateescape")))
    if len({key.id for key in keys}) != len(keys):
        raise BadKey("two keys have the same id; give each its own")
    return tuple(keys)


def signed(body: Confirm, key: Key, workflow_id: str, at_ms: int) -> Confirm:
    """The same decisions, each with a signature of its own."""
    decisions = tuple(
        one.model_copy(update={"signature": f"{key.id}:{at_ms}:{_mac(key, _covered(body, one, workflow_id, at_ms))}"})
        for one in body.decisions
    )
    return body.model_copy(update={"decisions": decisions})


def why_not(body: Confirm, keys: tuple[Key, ...], workflow_id: str) -> tuple[str, str]:
    """Why these signatures do not hold, as a sentence without its full stop (empty: they do), and the key's id."""
    known = {key.id: key for key in keys}
    used: set[str] = set()
    for one in body.decisions:
        found = _SIGNATURE.fullmatch(one.signature or "")
        if found is None:
            return f"the signature on {one.call_id!r} is not one of ours (key:milliseconds:code)", ""
        key = known.get(found["key"])
        if key is None:
            return f"the decision on {one.call_id!r} is signed with key {found['key']!r}, which this worker has not", ""
        if not hmac.compare_digest(_mac(key, _covered(body, one, workflow_id, int(found["at"]))), found["mac"]):
            return (
                f"the signature on {one.call_id!r} is not of this decision, in this session, on this question",
                "",
            )
        used.add(key.id)
    if len(used) > 1:
        return "these decisions are signed with different keys; send each person's by themselves", ""
    return "", next(iter(used), "")


def _covered(body: Confirm, one: CallDecision, workflow_id: str, at_ms: int) -> bytes:
    """All that is decided, where, by whom and when. The digest names the arguments, and the question itself."""
    decision = one.model_dump(mode="json", exclude={"signature"}, exclude_defaults=True)
    return canonical_json([_VERSION, workflow_id, body.reply_id, body.approver, at_ms, decision])


def _mac(key: Key, covered: bytes) -> str:
    code = hmac.new(key.secret, covered, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(code).decode("ascii").rstrip("=")

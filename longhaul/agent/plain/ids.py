"""Ids that two machines find independently: workflow ids from names, reply ids from requests.

Gives a reply its place in a trace: ids that follow from its own id, and the header by which work for it hears of
them.

The span of a reply is told when the reply has ended, and all that was done for it names it as its parent before. So its
ids are worked out, by whoever needs them, and a worker that dies takes none of them along.
"""

import hashlib
import hmac
import re
from typing import NamedTuple

from longhaul.agent.plain.values import OpenValue, sparse

MAX_BYTES = 255
"""Temporal's SQL stores keep ids in VARCHAR(255)."""
MAX_ID_CHARS = 1_000
"""Of a session's name, a call's or a request's, as operations take them."""
_OPAQUE = "longhaul/##"
_ODD = re.compile(r"[^A-Za-z0-9_.@-]")


FAIRNESS_KEY_BYTES = 64
"""The server refuses to start a workflow with a longer one."""
NAME_LIMIT_CHARS = 600
"""A search attribute holds 2 KiB, and a character may take three bytes of it."""


def check_name(what: str, name: str) -> None:
    """Raise ValueError for a session, user or agent name that could not be stored as it is."""
    if len(name) > NAME_LIMIT_CHARS:
        raise ValueError(f"{what}: a name of {len(name)} characters is too long; the most is {NAME_LIMIT_CHARS}")
    if any("\ud800" <= char <= "\udfff" for char in name) or "\0" in name:
        raise ValueError(f"{what}: {name!r} is not text that can be stored; leave out NUL and lone surrogates")


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


def opaque(key: str, *names: str | None) -> str:
    """Names as 40 hex characters, the same for the same ones, which say nothing to whoever lacks the key."""
    written = "/".join("~" if name is None else _escape(name) for name in names)
    return hmac.new(key.encode("utf-8", "surrogatepass"), written.encode("ascii"), hashlib.sha256).hexdigest()[:40]


def opaque_workflow_id(key: str, agent: str, user: str | None, session: str) -> str:
    """Of the same triple as `workflow_id`, and of no other; nothing of it can be read."""
    return f"{_OPAQUE}{opaque(key, agent, user, session)}"


def hub_workflow_id(user: str | None, hub: str) -> str:
    """`longhaul-hub/<user>/<hub>`, as `workflow_id` writes names; hashed where they are long."""
    readable = "/".join(("longhaul-hub", "~" if user is None else _escape(user), _escape(hub)))
    if len(readable) <= MAX_BYTES:
        return readable
    return f"longhaul-hub/#{hashlib.sha256(readable.encode('ascii')).hexdigest()}"


_TARGET_CALL = "longhaul-call/"
_PLAIN_ID = re.compile(r"(?!\d+$)[A-Za-z0-9_.-]{1,100}", re.ASCII)


def fairness_key(name: str) -> str:
    """A user or a team as Temporal's fairness key: the name itself, or a hash of one above the server's 64 bytes."""
    return name if len(name.encode()) <= FAIRNESS_KEY_BYTES else _hashed(name)


def target_activity_id(call_id: str) -> str:
    """The id of the user's activity that a call starts: the call's own id, where it is plain and short; a hash of any
    other. Never a number alone: the SDK numbers the session's own activities."""
    return call_id if _PLAIN_ID.fullmatch(call_id) else f"call-{_hashed(call_id)}"


def target_workflow_id(session_key: str, call_id: str) -> str:
    """The id of the user's workflow that a call starts: `longhaul-call/<session>/<call>`, hashed where that is long. It
    follows from the call, so that nothing starts a second workflow for it."""
    readable = f"{_TARGET_CALL}{session_key.removeprefix('longhaul/')}/{target_activity_id(call_id)}"
    return readable if len(readable) <= MAX_BYTES else f"{_TARGET_CALL}#{_hashed(readable)}"


def is_target_activity(activity_id: str | None) -> bool:
    """Whether an activity of a session runs the user's code. None: nobody chose an id, so it is the session's own."""
    return activity_id is not None and not activity_id.isdigit()


def is_target_workflow(workflow_id: str) -> bool:
    """The same of a workflow that a session started."""
    return workflow_id.startswith(_TARGET_CALL)


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def child_session(session: str, call_id: str) -> str:
    """The name of a sub-agent's session: one that could not be written in an operation ends in a sha-256."""
    named = f"{session}.{call_id}"
    if len(named) <= MAX_ID_CHARS:
        return named
    digest = hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{session[: MAX_ID_CHARS // 2]}.{digest}"


def opaque_child_id(parent: str, call_id: str) -> str:
    """The workflow id of a sub-agent of a session whose own is opaque: only the workflow knows it, and no key. Empty
    where the session's own id can be read."""
    if not parent.startswith(_OPAQUE):
        return ""
    return f"{_OPAQUE}{reply_id(parent, call_id)}"


class Names(NamedTuple):
    """What a workflow id is made of. `user`: None for an anonymous one."""

    agent: str
    user: str | None
    session: str


def names_in(workflow: str) -> Names:
    """The names in a workflow id. One that is hashed, or not ours, is all that is known of its session."""
    parts = workflow.split("/")
    if len(parts) != 4 or parts[0] != "longhaul":
        return Names("", None, workflow)
    agent, user, session = (_unescaped(part) for part in parts[1:])
    return Names(agent, None if parts[2] == "~" else user, session)


def _unescaped(part: str) -> str:
    if part == "=":
        return ""
    data = re.sub(rb"%([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), part.encode("utf-8", "replace"))
    return data.decode("utf-8", "replace")


def _start_of(escaped: str) -> str:
    """The first characters, without half an escape at the end."""
    start = escaped[:120]
    return start[:-2] + start[-2:].partition("%")[0]


def _escape(name: str) -> str:
    """Percent-escape all but plain ASCII, so that `/`, `~`, `#` and `=` are ours alone."""
    if not name:
        return "="
    return _ODD.sub(_escaped, name)


def _escaped(odd: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in odd[0].encode("utf-8", "surrogatepass"))


def reply_id(workflow: str, request: str) -> str:
    """32 hex characters; the same for the same request of the same session, wherever it is worked out."""
    return hashlib.sha256(f"{workflow}\0{request}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


HEADER = "longhaul-trace"
"""Name of the header, on requests and on activities."""
LONGEST_HEADER_BYTES = 200_000
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


class Started(OpenValue):
    """A reply that is asked for. `at`: when it began, in milliseconds since 1970; 0: not yet."""

    at: int = sparse(0)
    parent: str = sparse("")
    """The caller's span, as W3C traceparent; empty when there is none."""


class TraceHeader(OpenValue):
    """Of an activity: the reply that it works for. Of a checkpoint and of a continue-as-new: all that are not told
    yet."""

    reply: str = sparse("")
    parent: str = sparse("")
    started: dict[str, Started] = sparse({})


class SpanPlace(NamedTuple):
    """A span's place, as hex."""

    trace: str
    span: str
    sampled: bool | None
    """None: nobody has decided yet."""


def is_traceparent(text: str) -> bool:
    return place_of(text) is not None


def place_of(traceparent: str) -> SpanPlace | None:
    """None for what is none, also for ids of nothing but zeros."""
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None or not int(found[1], 16) or not int(found[2], 16):
        return None
    return SpanPlace(found[1], found[2], bool(int(found[3], 16) & 1))


def place_of_reply(reply_id: str, parent: str = "") -> SpanPlace:
    """Of the span `invoke_agent`: in its caller's trace, or in one of its own."""
    caller = place_of(parent)
    digest = hashlib.sha256(f"trace\0{reply_id}".encode("utf-8", "replace")).hexdigest()
    return SpanPlace(caller.trace if caller else digest[:32], digest[32:48], caller.sampled if caller else None)

"""The table of shapes in which servers stream: what an answer looks like by each API, and what it has to come to.

`chat` is read by both adapters that speak Chat Completions. An API that has no such shape says why.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.activities.models.wire import chunks, events

Pieces = list[dict[str, Any]]
APIS = ("chat", "ai", "messages", "responses")
ONE, TWO = {"folder": "/tmp/one"}, {"folder": "/tmp/two"}
A, B = {"file_path": "a.txt"}, {"file_path": "b.txt"}
A_TEXT, B_TEXT, ONE_TEXT, TWO_TEXT = map(json.dumps, (A, B, ONE, TWO))
TIDE = "High water is at six."


@dataclass(frozen=True)
class NotSo:
    """The API has no such shape."""

    why: str


@dataclass(frozen=True)
class Sent:
    """An answer's events, or its body."""

    pieces: tuple[bytes, ...]
    media_type: str = "text/event-stream"

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)


@dataclass(frozen=True)
class Shape:
    name: str
    chat: Sent | NotSo
    messages: Sent | NotSo
    responses: Sent | NotSo
    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Those that may run."""
    refused: tuple[tuple[str, str], ...] = ()
    """Those that may not, and a part of what the model is told."""
    fails: tuple[str, str] | None = None
    """The verdict, and a part of its sentence."""
    ai: Sent | NotSo | None = None
    """Where it is another one than `chat`."""
    differs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By API: what comes of it there instead."""

    def sent(self, api: str) -> Sent | NotSo:
        if api == "ai":
            return self.chat if self.ai is None else self.ai
        found: Sent | NotSo = getattr(self, api)
        return found

    def expected(self, api: str, what: str) -> Any:
        return self.differs.get(api, {}).get(what, getattr(self, what))


def sent(body: bytes, media_type: str = "text/event-stream") -> Sent:
    whole = body.split(b"\n\n")
    return Sent(tuple(piece + b"\n\n" for piece in whole[:-1]) + ((whole[-1],) if whole[-1] else ()), media_type)


# Chat Completions


def part(**fields: Any) -> dict[str, Any]:
    """A piece of a call: `index`, `id`, `name`, `arguments`, as far as they are given."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return {**fields, "function": function} if function else fields


def calling(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(parts)}


USAGE: dict[str, Any] = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def chat(*deltas: Any, finish: str | None = "tool_calls", done: bool = True, usage: Any = USAGE, **top: Any) -> Sent:
    about = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", **top}
    told: Pieces = [{**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if finish is not None:
        told.append({**about, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        told.append({**about, "choices": [], "usage": usage})
    return sent(chunks(*told, done=done))


def chat_body(message: dict[str, Any], finish: str = "tool_calls") -> Sent:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
    return Sent((json.dumps(body).encode(),), "application/json")


# Messages


def block(index: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def use(index: Any, call_id: Any, name: str, **more: Any) -> dict[str, Any]:
    return block(index, **{"type": "tool_use", "id": call_id, "name": name, "input": {}, **more})


def said(index: Any, kind: str, text: Any) -> dict[str, Any]:
    names = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, names[kind]: text}}


def json_of(index: Any, text: Any) -> dict[str, Any]:
    return said(index, "input_json_delta", text)


def stop(index: Any) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def messages(*told: dict[str, Any], reason: str | None = "tool_use", end: bool = True, usage: Any = None) -> Sent:
    counts = {"input_tokens": 10, "output_tokens": 1} if usage is None else usage
    about: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": counts}
    about["model"] = "m"
    ended: Pieces = [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}]
    last: Pieces = [{"type": "message_stop"}]
    started: Pieces = [{"type": "message_start", "message": about}]
    return sent(events(*started, *told, *(ended if reason else []), *(last if end else [])))


def messages_body(*content: dict[str, Any], reason: str | None) -> Sent:
    body = {"type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason}
    return Sent((json.dumps(body).encode(),), "application/json")


def spoken(text: str, index: Any = 0) -> Pieces:
    return [block(index, type="text", text=""), said(index, "text_delta", text), stop(index)]


def used(index: Any, call_id: Any, name: str, *pieces: Any) -> Pieces:
    return [use(index, call_id, name), *(json_of(index, piece) for piece in pieces), stop(index)]


# Responses


def item(call_id: Any, name: str | None, arguments: Any, **more: Any) -> dict[str, Any]:
    named = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name}
    return {**named, "arguments": arguments, **more}


def added(index: Any, of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": of}


def finished(index: Any, of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": of}


def delta(index: Any, item_id: Any, text: Any) -> dict[str, Any]:
    about = {"type": "response.function_call_arguments.delta", "output_index": index}
    return {**about, **({} if item_id is None else {"item_id": item_id}), "delta": text}


def all_of(index: Any, item_id: Any, text: Any) -> dict[str, Any]:
    about = {"type": "response.function_call_arguments.done", "output_index": index}
    return {**about, **({} if item_id is None else {"item_id": item_id}), "arguments": text}


def wrote(text: str, index: Any = 0) -> Pieces:
    about: dict[str, Any] = {"type": "response.output_text.delta", "output_index": index, "content_index": 0}
    about["item_id"] = "msg_1"
    return [added(index, message(None)), {**about, "delta": text}]


def message(text: str | None) -> dict[str, Any]:
    parts = [] if text is None else [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts}


def response(output: Pieces, **more: Any) -> dict[str, Any]:
    about = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return {**about, "output": output, "error": None, "incomplete_details": None, "usage": usage, **more}


def responses(*told: dict[str, Any], output: Pieces | None = None, end: bool = True, **more: Any) -> Sent:
    last = [{"type": "response.completed", "response": response(output or [], **more)}] if end else []
    return sent(events(*told, *last))


def streamed(index: Any, call_id: Any, name: str, *pieces: str, whole: str | None = None) -> Pieces:
    """A call as OpenAI streams it."""
    text = "".join(pieces) if whole is None else whole
    item_id = f"fc_{call_id}"
    return [
        added(index, item(call_id, name, "")),
        *(delta(index, item_id, piece) for piece in pieces),
        all_of(index, item_id, text),
        finished(index, item(call_id, name, text)),
    ]


NO_TAGS = NotSo("thoughts are blocks of their own")
ONE_LIST = NotSo("content is no field of a delta")
NO_PIECES = NotSo("a name comes whole, where the block starts")
NO_FINISH = NotSo("the API has no finish reason beside its last event")
CHAT_ALONE = NotSo("only Chat Completions has a field like it")
PAGE = (
    b"<!doctype html><html><head><title>Sign in</title></head><body><h1>Please sign in to the proxy</h1></body></html>"
)
BUSY = {"error": {"type": "overloaded_error", "message": "Too busy now", "code": "overloaded_error"}}
WRONG = {"error": {"code": "invalid_request_error", "message": "No such field: tides"}}
P_ONE = (("purge", ONE),)
BOTH = (("Read", A), ("Read", B))


def everywhere(made: Sent) -> tuple[Sent, Sent, Sent]:
    return made, made, made


def with_keepalives(made: Sent) -> Sent:
    return Sent((b": hello\n\n", *(each for piece in made.pieces for each in (piece, b": keep-alive\n\n"))))


def with_numbers(made: Sent) -> Sent:
    """With an event of only an id, and one of only a time to wait."""
    return Sent((b"retry: 3000\n\n", *(each for piece in made.pieces for each in (b"id: 7\n\n", piece))))


def with_ends(made: Sent, end: bytes) -> Sent:
    return Sent(tuple(piece.replace(b"\n", end) for piece in made.pieces))


CHAT_ONE = chat(calling(part(index=0, id="c_a", type="function", name="purge", arguments=ONE_TEXT)))
MESSAGES_ONE = messages(*used(0, "t_a", "purge", ONE_TEXT))
RESPONSES_ONE = responses(*streamed(0, "c_a", "purge", ONE_TEXT), output=[item("c_a", "purge", ONE_TEXT)])
UNKNOWN = b'event: tide\ndata: {"type": "tide", "level": 3}\n\n'


def changed(change: Callable[[Sent], Sent]) -> tuple[Sent, Sent, Sent]:
    return change(CHAT_ONE), change(MESSAGES_ONE), change(RESPONSES_ONE)


CHAT_TEXT = chat({"content": "High water "}, {"content": "is at six."}, finish="stop")
MESSAGES_TEXT = messages(*spoken(TIDE), reason="end_turn")
RESPONSES_TEXT = responses(*wrote(TIDE), output=[message(TIDE)])

THINKS = [block(0, type="thinking", thinking=""), said(0, "thinking_delta", "I read a.txt.")]
HALVES = ('{"folder": ', '"/tmp/one"}')

SHAPES: list[Shape] = [
    # What the providers themselves send
    Shape("plain text", CHAT_TEXT, MESSAGES_TEXT, RESPONSES_TEXT, text=TIDE),
    Shape("a call whole", CHAT_ONE, MESSAGES_ONE, RESPONSES_ONE, calls=P_ONE),
    Shape(
        "a call in pieces",
        chat(
            calling(part(index=0, id="c_a", name="purge", arguments="")),
            *(calling(part(index=0, arguments=half)) for half in HALVES),
        ),
        messages(*used(0, "t_a", "purge", "", *HALVES)),
        responses(*streamed(0, "c_a", "purge", *HALVES)),
        calls=P_ONE,
    ),
    Shape(
        "two calls",
        chat(
            calling(part(index=0, id="c_a", name="Read", arguments=A_TEXT)),
            calling(part(index=1, id="c_b", name="Read", arguments=B_TEXT)),
        ),
        messages(*used(0, "t_a", "Read", A_TEXT), *used(1, "t_b", "Read", B_TEXT)),
        responses(*streamed(0, "c_a", "Read", A_TEXT), *streamed(1, "c_b", "Read", B_TEXT)),
        calls=BOTH,
    ),
    Shape(
        "text and a call",
        chat({"content": TIDE}, calling(part(index=0, id="c_a", name="purge", arguments=ONE_TEXT))),
        messages(*spoken(TIDE), *used(1, "t_a", "purge", ONE_TEXT)),
        responses(*wrote(TIDE), *streamed(1, "c_a", "purge", ONE_TEXT)),
        text=TIDE,
        calls=P_ONE,
    ),
    Shape(
        "pieces of two calls by turns",
        chat(
            calling(part(index=0, id="c_a", name="Read", arguments='{"file_path": ')),
            calling(part(index=1, id="c_b", name="Read", arguments='{"file_path": ')),
            calling(part(index=0, arguments='"a.txt"}')),
            calling(part(index=1, arguments='"b.txt"}')),
        ),
        messages(
            *(use(0, "t_a", "Read"), use(1, "t_b", "Read")),
            *(json_of(0, '{"file_path": '), json_of(1, '{"file_path": ')),
            *(json_of(0, '"a.txt"}'), json_of(1, '"b.txt"}'), stop(0), stop(1)),
        ),
        responses(
            *(added(0, item("c_a", "Read", "")), added(1, item("c_b", "Read", ""))),
            *(delta(0, "fc_c_a", '{"file_path": '), delta(1, "fc_c_b", '{"file_path": ')),
            *(delta(0, "fc_c_a", '"a.txt"}'), delta(1, "fc_c_b", '"b.txt"}')),
        ),
        calls=BOTH,
    ),
    # Blocks that share an index, or have others
    Shape(
        "parallel calls under one index with other ids",
        chat(
            calling(part(index=0, id="c_a", name="Read", arguments=A_TEXT)),
            calling(part(index=0, id="c_b", name="Read", arguments=B_TEXT)),
        ),
        messages(*used(0, "t_a", "Read", A_TEXT), *used(0, "t_b", "Read", B_TEXT)),
        responses(*streamed(0, "c_a", "Read", A_TEXT), *streamed(0, "c_b", "Read", B_TEXT)),
        calls=BOTH,
    ),
    Shape(
        "the same in pieces",
        chat(
            calling(part(index=0, id="c_a", name="Read", arguments="")),
            *(calling(part(index=0, arguments='{"file_path": ')), calling(part(index=0, arguments='"a.txt"}'))),
            calling(part(index=0, id="c_b", name="Read", arguments="")),
            *(calling(part(index=0, arguments='{"file_path": ')), calling(part(index=0, arguments='"b.txt"}'))),
        ),
        messages(
            *used(0, "t_a", "Read", '{"file_path": ', '"a.txt"}'),
            *used(0, "t_b", "Read", '{"file_path": ', '"b.txt"}'),
        ),
        responses(
            *streamed(0, "c_a", "Read", '{"file_path": ', '"a.txt"}'),
            *streamed(0, "c_b", "Read", '{"file_path": ', '"b.txt"}'),
        ),
        calls=BOTH,
    ),
    Shape(
        "parallel calls under one index without ids",
        chat(
            calling(part(index=0, name="Read", arguments=A_TEXT)), calling(part(index=0, name="Read", arguments=B_TEXT))
        ),
        messages(*used(0, "", "Read", A_TEXT), *used(0, "", "Read", B_TEXT)),
        responses(
            *(added(0, item("", "Read", A_TEXT, id="")), finished(0, item("", "Read", A_TEXT, id=""))),
            *(added(0, item("", "Read", B_TEXT, id="")), finished(0, item("", "Read", B_TEXT, id=""))),
        ),
        calls=BOTH,
    ),
    Shape(
        "parallel calls without an index",
        chat(calling(part(id="c_a", name="Read", arguments=A_TEXT), part(id="c_b", name="Read", arguments=B_TEXT))),
        messages(*used(None, "t_a", "Read", A_TEXT), *used(None, "t_b", "Read", B_TEXT)),
        responses(*streamed(None, "c_a", "Read", A_TEXT), *streamed(None, "c_b", "Read", B_TEXT)),
        calls=BOTH,
    ),
    Shape(
        "calls without index and id",
        chat(calling(part(name="Read", arguments=A_TEXT), part(name="Read", arguments=B_TEXT))),
        messages(*used(None, None, "Read", A_TEXT), *used(None, None, "Read", B_TEXT)),
        NotSo("without ids and indexes the API has nothing that keeps items apart"),
        calls=BOTH,
    ),
    Shape(
        "a piece without an index and id goes on with the call",
        chat(calling(part(name="purge", arguments='{"folder": ')), calling(part(arguments='"/tmp/one"}'))),
        messages(*used(None, None, "purge", *HALVES)),
        responses(added(None, item("", "purge", "", id="")), *(delta(None, None, half) for half in HALVES)),
        calls=P_ONE,
    ),
    Shape(
        "two calls with one id and other indexes",
        chat(
            calling(part(index=0, id="c", name="Read", arguments=A_TEXT)),
            calling(part(index=1, id="c", name="Read", arguments=B_TEXT)),
        ),
        messages(*used(0, "t", "Read", A_TEXT), *used(1, "t", "Read", B_TEXT)),
        responses(*streamed(0, "c", "Read", A_TEXT), *streamed(1, "c", "Read", B_TEXT)),
        calls=BOTH,
        differs={
            "messages": {"calls": (), "refused": (("Read", "two versions"),)},
            "responses": {"calls": (), "refused": (("Read", "two versions"),)},
        },
    ),
    Shape(
        "the pieces of a call under new indexes with its id",
        chat(
            calling(part(index=0, id="c_a", name="purge", arguments='{"folder": ')),
            calling(part(index=1, id="c_a", arguments='"/tmp/one"}')),
        ),
        NotSo("a delta has no id"),
        responses(added(0, item("c_a", "purge", "")), delta(0, "fc_c_a", HALVES[0]), delta(1, "fc_c_a", HALVES[1])),
        calls=P_ONE,
    ),
    Shape(
        "the pieces of a call under new indexes without its id",
        chat(
            calling(part(index=0, id="c_a", name="purge", arguments="")),
            *(calling(part(index=1, arguments=HALVES[0])), calling(part(index=2, arguments=HALVES[1]))),
        ),
        messages(use(1, "t_a", "purge"), json_of(2, HALVES[0]), json_of(2, HALVES[1]), stop(2)),
        responses(added(0, item("c_a", "purge", "")), *(delta(1, "fc_other", half) for half in HALVES)),
        refused=(("purge", "belong to no call"),),
    ),
    Shape(
        "arguments under another index",
        chat(calling(part(index=1, id="c_a", name="purge", arguments="")), calling(part(index=2, arguments=ONE_TEXT))),
        messages(use(1, "t_a", "purge"), json_of(2, ONE_TEXT), stop(2)),
        responses(added(1, item("c_a", "purge", "")), delta(2, None, ONE_TEXT)),
        refused=(("purge", "belong to no call"),),
    ),
    Shape(
        "arguments under another index beside an empty object",
        chat(calling(part(index=0, id="c_a", name="now", arguments="{}")), calling(part(index=2, arguments=ONE_TEXT))),
        messages(use(0, "t_a", "now"), stop(0), json_of(2, ONE_TEXT)),
        responses(*streamed(0, "c_a", "now", whole="{}"), delta(2, "fc_x", ONE_TEXT)),
        refused=(("now", "belong to no call"),),
    ),
    Shape(
        "arguments under another id and the same index",
        chat(
            calling(part(index=0, id="c_a", name="purge", arguments="")),
            calling(part(index=0, id="c_b", arguments=ONE_TEXT)),
        ),
        NotSo("a delta has no id"),
        responses(added(0, item("c_a", "purge", "")), delta(0, "fc_b", ONE_TEXT)),
        refused=(("purge", "belong to no call"),),
    ),
    Shape(
        "arguments before any call",
        chat(calling(part(index=0, arguments=ONE_TEXT))),
        messages(json_of(0, ONE_TEXT)),
        responses(delta(0, "fc_a", ONE_TEXT)),
        refused=(("", "without the name"),),
    ),
    Shape(
        "a thought and a call under one index",
        chat({"reasoning_content": "I read a.txt."}, calling(part(index=0, id="c_a", name="Read", arguments=A_TEXT))),
        messages(*THINKS, *used(0, "t_a", "Read", A_TEXT)),
        responses(
            added(0, {"type": "reasoning", "id": "rs_1", "summary": []}),
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "I read a.txt."},
            *streamed(0, "c_a", "Read", A_TEXT),
        ),
        thought="I read a.txt.",
        calls=(("Read", A),),
    ),
    Shape(
        "a thought and a text under one index",
        chat({"reasoning": "I read a.txt."}, {"content": TIDE}, finish="stop"),
        messages(*THINKS, *spoken(TIDE), reason="end_turn"),
        responses(
            added(0, {"type": "reasoning", "id": "rs_1", "summary": []}),
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "I read a.txt."},
            *wrote(TIDE),
        ),
        thought="I read a.txt.",
        text=TIDE,
    ),
    Shape(
        "a thought in tags in front of a text",
        chat(
            *({"content": piece} for piece in ("\n<th", "ink>I read a.txt.</", "think>\n", "\n", TIDE)), finish="stop"
        ),
        NO_TAGS,
        NO_TAGS,
        thought="I read a.txt.",
        text=TIDE,
    ),
    Shape(
        "a thought in tags in front of a call",
        chat(
            {"content": "<think>I read"},
            {"content": " a.txt.</think>"},
            calling(part(index=0, id="c_a", name="Read", arguments=A_TEXT)),
        ),
        NO_TAGS,
        NO_TAGS,
        thought="I read a.txt.",
        calls=(("Read", A),),
    ),
    Shape(
        "tags in the words of a model that thinks elsewhere",
        chat({"reasoning": "I read a.txt."}, {"content": "<think> opens a thought."}, finish="stop"),
        NO_TAGS,
        NO_TAGS,
        thought="I read a.txt.",
        text="<think> opens a thought.",
    ),
    Shape(
        "words that begin as tags do",
        chat({"content": "<thi"}, {"content": "rd> is no tag."}, finish="stop"),
        NO_TAGS,
        NO_TAGS,
        text="<third> is no tag.",
    ),
    Shape(
        "a text and a call under one index",
        chat({"content": TIDE}, calling(part(index=0, id="c_a", name="Read", arguments=A_TEXT))),
        messages(block(0, type="text", text=""), said(0, "text_delta", TIDE), *used(0, "t_a", "Read", A_TEXT)),
        responses(*wrote(TIDE), *streamed(0, "c_a", "Read", A_TEXT)),
        text=TIDE,
        calls=(("Read", A),),
    ),
    Shape(
        "indexes as text and as fractions",
        chat(
            calling(part(index="0", id="c_a", name="purge", arguments=HALVES[0])),
            calling(part(index=0.0, arguments=HALVES[1])),
        ),
        messages(*used("0", "t_a", "purge", *HALVES)),
        responses(*streamed("0", "c_a", "purge", *HALVES)),
        calls=P_ONE,
    ),
    # Names
    Shape(
        "a name in pieces",
        chat(
            *(calling(part(index=0, id="c_a", name="pu")), calling(part(index=0, name="rge"))),
            calling(part(index=0, arguments=ONE_TEXT)),
        ),
        NO_PIECES,
        NO_PIECES,
        calls=P_ONE,
    ),
    Shape(
        "a name with each piece",
        chat(*(calling(part(index=0, id="c_a", name="purge", arguments=half)) for half in HALVES)),
        messages(use(0, "t_a", "purge"), json_of(0, HALVES[0]), use(0, "t_a", "purge"), json_of(0, HALVES[1]), stop(0)),
        responses(
            added(0, item("c_a", "purge", "")),
            delta(0, "fc_c_a", HALVES[0]),
            *(added(0, item("c_a", "purge", "")), delta(0, "fc_c_a", HALVES[1])),
        ),
        calls=P_ONE,
    ),
    Shape(
        "a name that grows with each piece",
        chat(
            *(calling(part(index=0, id="c_a", name=name)) for name in ("pu", "purg", "purge")),
            calling(part(index=0, arguments=ONE_TEXT)),
        ),
        NO_PIECES,
        NO_PIECES,
        calls=P_ONE,
    ),
    Shape(
        "a name that comes last",
        chat(calling(part(index=0, id="c_a", arguments=ONE_TEXT)), calling(part(index=0, id="c_a", name="purge"))),
        NO_PIECES,
        responses(added(0, item("c_a", None, "")), delta(0, "fc_c_a", ONE_TEXT), finished(0, item("c_a", "purge", ""))),
        calls=P_ONE,
    ),
    Shape(
        "a call without a name",
        chat(calling(part(index=0, id="c_a", arguments=ONE_TEXT))),
        messages(*used(0, "t_a", "", ONE_TEXT)),
        responses(*streamed(0, "c_a", "", ONE_TEXT)),
        refused=(("", "without the name"),),
    ),
    Shape(
        "another name at the end",
        NotSo("nothing tells a name again"),
        messages(use(0, "t_a", "purge"), json_of(0, ONE_TEXT), use(0, "t_a", "Read"), stop(0)),
        responses(*streamed(0, "c_a", "purge", ONE_TEXT), output=[item("c_a", "Read", ONE_TEXT)]),
        refused=(("purge", "names of two tools"),),
    ),
    # Ids
    Shape(
        "ids that are numbers",
        chat(calling(part(index=0, id=17, name="purge", arguments=ONE_TEXT)), id=5),
        messages(*used(0, 17, "purge", ONE_TEXT)),
        responses(
            added(0, item(17, "purge", "", id=3)), delta(0, 3, ONE_TEXT), finished(0, item(17, "purge", "", id=3))
        ),
        calls=P_ONE,
    ),
    Shape(
        "no ids",
        chat(
            calling(part(index=0, name="Read", arguments=A_TEXT)), calling(part(index=1, name="Read", arguments=B_TEXT))
        ),
        messages(*used(0, None, "Read", A_TEXT), *used(1, None, "Read", B_TEXT)),
        responses(
            *(added(0, item(None, "Read", "", id=None)), delta(0, None, A_TEXT)),
            *(added(1, item(None, "Read", "", id=None)), delta(1, None, B_TEXT)),
        ),
        calls=BOTH,
    ),
    Shape(
        "an id that comes late",
        chat(
            *(calling(part(index=0, name="purge", arguments=HALVES[0])), calling(part(index=0, arguments=HALVES[1]))),
            calling(part(index=0, id="c_a")),
        ),
        NotSo("an id comes where the block starts"),
        responses(
            added(0, item("", "purge", "", id="fc_1")),
            *(delta(0, "fc_1", ONE_TEXT), finished(0, item("c_a", "purge", ONE_TEXT, id="fc_1"))),
        ),
        calls=P_ONE,
    ),
    Shape(
        "one id for all items",
        NotSo("a call has one id"),
        NotSo("a call has one id"),
        responses(
            *(added(0, item("c_a", "Read", "", id="fc")), delta(0, "fc", A_TEXT)),
            *(added(1, item("c_b", "Read", "", id="fc")), delta(1, "fc", B_TEXT)),
        ),
        calls=BOTH,
    ),
    # Arguments
    Shape(
        "arguments as an object",
        chat(calling(part(index=0, id="c_a", name="purge", arguments=ONE))),
        messages(use(0, "t_a", "purge"), json_of(0, ONE), stop(0)),
        responses(added(0, item("c_a", "purge", "")), finished(0, item("c_a", "purge", ONE))),
        calls=P_ONE,
    ),
    Shape(
        "arguments where the call starts",
        NotSo("a call starts with its first piece"),
        messages(use(0, "t_a", "purge", input=ONE), stop(0)),
        responses(added(0, item("c_a", "purge", ONE_TEXT))),
        calls=P_ONE,
    ),
    Shape(
        "an empty object, then the arguments",
        chat(
            calling(part(index=0, id="c_a", name="purge", arguments="{}")),
            *(calling(part(index=0, arguments=half)) for half in HALVES),
        ),
        messages(*used(0, "t_a", "purge", *HALVES)),
        responses(added(0, item("c_a", "purge", "{}")), *(delta(0, "fc_c_a", half) for half in HALVES)),
        calls=P_ONE,
    ),
    Shape(
        "arguments twice",
        chat(*(calling(part(index=0, id="c_a", name="purge", arguments=ONE_TEXT)) for _ in range(2))),
        messages(use(0, "t_a", "purge", input=ONE), json_of(0, ONE_TEXT), json_of(0, ONE_TEXT), stop(0)),
        responses(*streamed(0, "c_a", "purge", ONE_TEXT, ONE_TEXT, whole=ONE_TEXT)),
        calls=P_ONE,
    ),
    Shape(
        "a whole call twice",
        chat(*(calling(part(index=0, name="purge", arguments=ONE_TEXT)) for _ in range(2))),
        messages(*used(0, "t_a", "purge", ONE_TEXT), *used(0, "t_a", "purge", ONE_TEXT)),
        responses(*streamed(0, "c_a", "purge", ONE_TEXT), *streamed(0, "c_a", "purge", ONE_TEXT)),
        calls=P_ONE,
    ),
    Shape(
        "two versions of the arguments",
        chat(
            calling(part(index=0, id="c_a", name="purge", arguments=ONE_TEXT)),
            calling(part(index=0, id="c_a", arguments=TWO_TEXT)),
        ),
        messages(use(0, "t_a", "purge", input=TWO), json_of(0, ONE_TEXT), stop(0)),
        responses(*streamed(0, "c_a", "purge", ONE_TEXT, whole=TWO_TEXT)),
        refused=(("purge", "two versions"),),
    ),
    Shape(
        "arguments in the finished call alone",
        NotSo("there is no final event of a call"),
        NotSo("there is no final event of a call"),
        responses(added(0, item("c_a", "purge", "")), finished(0, item("c_a", "purge", ONE_TEXT))),
        calls=P_ONE,
    ),
    Shape(
        "arguments in the event of their end alone",
        NotSo("there is no final event of a call"),
        NotSo("there is no final event of a call"),
        responses(added(0, item("c_a", "purge", "")), all_of(0, "fc_c_a", ONE_TEXT)),
        calls=P_ONE,
    ),
    Shape(
        "arguments in the last event alone",
        NotSo("the last event repeats nothing"),
        NotSo("the last event repeats nothing"),
        responses(added(0, item("c_a", "purge", "")), output=[item("c_a", "purge", ONE_TEXT)]),
        calls=P_ONE,
    ),
    Shape(
        "a call in the last event alone",
        NotSo("the last event repeats nothing"),
        NotSo("the last event repeats nothing"),
        responses(output=[item("c_a", "purge", ONE_TEXT)]),
        calls=P_ONE,
    ),
    Shape(
        "the last event with ids of its own",
        NotSo("the last event repeats nothing"),
        NotSo("the last event repeats nothing"),
        responses(*streamed(0, "c_a", "purge", ONE_TEXT), output=[item("c_z", "purge", ONE_TEXT)]),
        calls=P_ONE,
    ),
    Shape(
        "the last event contradicts the stream",
        NotSo("the last event repeats nothing"),
        NotSo("the last event repeats nothing"),
        responses(*streamed(0, "c_a", "purge", ONE_TEXT), output=[item("c_a", "purge", TWO_TEXT)]),
        refused=(("purge", "two versions"),),
    ),
    Shape(
        "the end of the arguments was not streamed",
        NotSo("there is no final event of a call"),
        NotSo("there is no final event of a call"),
        responses(*streamed(0, "c_a", "purge", HALVES[0], whole=ONE_TEXT)),
        calls=P_ONE,
    ),
    Shape(
        "missing arguments",
        chat(calling(part(index=0, id="c_a", name="purge"))),
        messages(block(0, type="tool_use", id="t_a", name="purge"), stop(0)),
        responses(added(0, {"type": "function_call", "id": "fc_a", "call_id": "c_a", "name": "purge"})),
        refused=(("purge", "did not arrive"),),
    ),
    Shape(
        "missing arguments of a tool that needs none",
        chat(calling(part(index=0, id="c_a", name="now"))),
        messages(block(0, type="tool_use", id="t_a", name="now"), stop(0)),
        responses(added(0, {"type": "function_call", "id": "fc_a", "call_id": "c_a", "name": "now"})),
        refused=(("now", "did not arrive"),),
    ),
    Shape(
        "empty arguments of a tool that needs none",
        chat(calling(part(index=0, id="c_a", name="now", arguments=""))),
        messages(use(0, "t_a", "now"), stop(0)),
        responses(*streamed(0, "c_a", "now")),
        calls=(("now", {}),),
    ),
    Shape(
        "empty arguments of a tool that needs some",
        chat(calling(part(index=0, id="c_a", name="purge", arguments=""))),
        messages(use(0, "t_a", "purge"), stop(0)),
        responses(*streamed(0, "c_a", "purge")),
        refused=(("purge", "did not arrive"),),
    ),
    Shape(
        "arguments that are null",
        chat(calling(part(index=0, id="c_a", name="purge", arguments=None))),
        messages(use(0, "t_a", "purge", input=None), stop(0)),
        responses(added(0, item("c_a", "purge", None)), finished(0, item("c_a", "purge", None))),
        refused=(("purge", "did not arrive"),),
    ),
    Shape(
        "an empty call that the stream never ends",
        NotSo("the end of the answer ends its calls"),
        messages(use(0, "t_a", "now")),
        responses(added(0, item("c_a", "now", ""))),
        refused=(("now", "did not arrive"),),
    ),
    Shape(
        "arguments that break off",
        chat(calling(part(index=0, id="c_a", name="purge", arguments='{"folder": "/tm'))),
        messages(*used(0, "t_a", "purge", '{"folder": "/tm')),
        responses(*streamed(0, "c_a", "purge", '{"folder": "/tm')),
        refused=(("purge", "not valid JSON"),),
    ),
    Shape(
        "arguments that are a list",
        chat(calling(part(index=0, id="c_a", name="purge", arguments='["/tmp/one"]'))),
        messages(*used(0, "t_a", "purge", '["/tmp/one"]')),
        responses(*streamed(0, "c_a", "purge", '["/tmp/one"]')),
        refused=(("purge", "an array"),),
    ),
    Shape(
        "arguments written twice over",
        chat(calling(part(index=0, id="c_a", name="purge", arguments=json.dumps(ONE_TEXT)))),
        messages(*used(0, "t_a", "purge", json.dumps(ONE_TEXT))),
        responses(*streamed(0, "c_a", "purge", json.dumps(ONE_TEXT))),
        calls=(("purge", {"folder": "/tmp/one"}),),
    ),
    # Content
    Shape(
        "content as a list of parts",
        chat(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "A greeting; "}]}]},
            {"content": [{"type": "thinking", "thinking": "I answer."}]},
            *({"content": [{"type": "text", "text": text}]} for text in ("High water ", "is at six.")),
            finish="stop",
        ),
        ONE_LIST,
        ONE_LIST,
        thought="A greeting; I answer.",
        text=TIDE,
    ),
    Shape(
        "tags of a thought in the text",
        chat({"content": "<think>"}, {"content": "Hm."}, {"content": "</think>"}, {"content": TIDE}, finish="stop"),
        NO_TAGS,
        NO_TAGS,
        text=TIDE,
        thought="Hm.",
    ),
    Shape(
        "a delta that is null",
        chat({"content": "High water "}, None, {"content": "is at six."}, finish="stop"),
        messages(
            block(0, type="text", text=""),
            {"type": "content_block_delta", "index": 0, "delta": None},
            *(said(0, "text_delta", TIDE), stop(0)),
            reason="end_turn",
        ),
        responses(*wrote(TIDE), {"type": "response.output_text.delta", "output_index": 0, "delta": None}),
        text=TIDE,
    ),
    Shape(
        "text in the last events alone",
        NotSo("the last event repeats nothing"),
        messages(block(0, type="text", text=TIDE), stop(0), reason="end_turn"),
        responses(output=[message(TIDE)]),
        text=TIDE,
    ),
    Shape(
        "a text block that never started",
        chat({"content": TIDE}, finish="stop"),
        messages(said(0, "text_delta", TIDE), reason="end_turn"),
        responses({"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": TIDE}),
        text=TIDE,
    ),
    # Ends
    Shape(
        "no reason to stop",
        chat({"content": TIDE}, finish=None),
        messages(*spoken(TIDE), reason=None),
        responses(*wrote(TIDE), status=None),
        text=TIDE,
    ),
    Shape(
        "no reason to stop behind a call",
        chat(calling(part(index=0, id="c_a", name="purge", arguments=ONE_TEXT)), finish=None),
        messages(*used(0, "t_a", "purge", ONE_TEXT), reason=None),
        responses(*streamed(0, "c_a", "purge", ONE_TEXT), status=None),
        calls=P_ONE,
    ),
    Shape(
        "no last event",
        chat({"content": TIDE}, finish="stop", done=False),
        messages(*spoken(TIDE), reason="end_turn", end=False),
        NO_FINISH,
        text=TIDE,
    ),
    Shape(
        "no end at all",
        chat({"content": TIDE}, finish=None, done=False, usage=None),
        messages(*spoken(TIDE), reason=None, end=False),
        responses(*wrote(TIDE), end=False),
        fails=("retry", "before the reply was complete"),
    ),
    Shape(
        "a server that stops for a failure of its own",
        chat({"content": TIDE}, finish="error"),
        messages(*spoken(TIDE), reason="error"),
        responses(*wrote(TIDE), status="failed"),
        fails=("retry", "server stopped"),
    ),
    # Counts
    Shape(
        "counts that are fractions",
        chat({"content": TIDE}, finish="stop", usage={"prompt_tokens": 10.0, "completion_tokens": 2.5}),
        messages(*spoken(TIDE), reason="end_turn", usage={"input_tokens": 10.5, "output_tokens": 1.0}),
        responses(*wrote(TIDE), usage={"input_tokens": 10.5, "output_tokens": 1.0}),
        text=TIDE,
    ),
    Shape(
        "no counts",
        chat({"content": TIDE}, finish="stop", usage=None),
        messages(*spoken(TIDE), reason="end_turn", usage={}),
        responses(*wrote(TIDE), usage=None),
        text=TIDE,
    ),
    Shape(
        "counts that are words",
        chat({"content": TIDE}, finish="stop", usage={"prompt_tokens": "many", "completion_tokens": None}),
        messages(*spoken(TIDE), reason="end_turn", usage={"input_tokens": "many"}),
        responses(*wrote(TIDE), usage={"input_tokens": "many"}),
        text=TIDE,
    ),
    # Between the events
    Shape("comments that keep it alive", *changed(with_keepalives), calls=P_ONE),
    Shape("events of an id or a time alone", *changed(with_numbers), calls=P_ONE),
    Shape("lines that end in CR and LF", *changed(lambda made: with_ends(made, b"\r\n")), calls=P_ONE),
    Shape("lines that end in CR", *changed(lambda made: with_ends(made, b"\r")), calls=P_ONE),
    Shape("a stream that calls itself JSON", *changed(lambda made: Sent(made.pieces, "application/json")), calls=P_ONE),
    Shape("a stream that calls itself text", *changed(lambda made: Sent(made.pieces, "text/plain")), calls=P_ONE),
    Shape("events that nobody knows", *changed(lambda made: Sent((UNKNOWN, *made.pieces))), calls=P_ONE),
    # No stream
    Shape(
        "a whole answer in JSON",
        chat_body(
            {
                "content": None,
                "tool_calls": [{"id": "c_a", "type": "function", **part(name="purge", arguments=ONE_TEXT)}],
            }
        ),
        messages_body({"type": "tool_use", "id": "t_a", "name": "purge", "input": ONE}, reason="tool_use"),
        Sent((json.dumps(response([item("c_a", "purge", ONE_TEXT)])).encode(),), "application/json"),
        calls=P_ONE,
    ),
    Shape(
        "words in JSON",
        chat_body({"content": TIDE}, "stop"),
        messages_body({"type": "text", "text": TIDE}, reason=None),
        Sent((json.dumps(response([message(TIDE)])).encode(),), "application/json"),
        text=TIDE,
    ),
    Shape(
        "an error in JSON that says what it is",
        *everywhere(Sent((json.dumps(WRONG).encode(),), "application/json")),
        fails=("never", "No such field: tides"),
    ),
    Shape(
        "an error in JSON of a busy server",
        *everywhere(Sent((json.dumps(BUSY).encode(),), "application/json")),
        fails=("retry", "Too busy now"),
    ),
    Shape(
        "an error in JSON of words alone",
        *everywhere(Sent((b'{"error": "Sign in first"}',), "application/json")),
        fails=("few_tries", "Sign in first"),
    ),
    Shape(
        "JSON that is no answer",
        *everywhere(Sent((b'{"status": "ok", "message": "The proxy is well"}',), "application/json")),
        fails=("few_tries", "The proxy is well"),
    ),
    Shape(
        "a page to sign in at",
        *everywhere(Sent((PAGE,), "text/html")),
        fails=("few_tries", "Please sign in to the proxy"),
    ),
    Shape(
        "a page that calls itself a stream",
        *everywhere(Sent((PAGE,))),
        fails=("few_tries", "Please sign in to the proxy"),
    ),
    Shape(
        "plain words", *everywhere(Sent((b"upstream is gone",), "text/plain")), fails=("few_tries", "upstream is gone")
    ),
    Shape("nothing", *everywhere(Sent((b"",))), fails=("retry", "before the reply was complete")),
    # Errors in a stream
    Shape(
        "some words and no end",
        chat({"content": "High"}, done=False, finish=None, usage=None),
        messages(*spoken("High")[:2], reason=None, end=False),
        responses(*wrote("High"), end=False),
        fails=("retry", "before the reply was complete"),
    ),
    Shape(
        "an error of a wrong request in the stream",
        sent(chat({"content": "High"}, done=False, finish=None, usage=None).body + chunks(WRONG)),
        sent(messages(*spoken("High")[:2], reason=None, end=False).body + events({"type": "error", **WRONG})),
        sent(responses(*wrote("High"), end=False).body + events({"type": "error", **WRONG["error"]})),
        fails=("never", "No such field: tides"),
    ),
    Shape(
        "an error of a busy server in the stream",
        sent(chat({"content": "High"}, done=False, finish=None, usage=None).body + chunks(BUSY)),
        sent(messages(*spoken("High")[:2], reason=None, end=False).body + events({"type": "error", **BUSY})),
        sent(responses(*wrote("High"), end=False).body + events({"type": "error", **BUSY})),
        fails=("retry", "Too busy now"),
    ),
    Shape(
        "an event that is no JSON",
        sent(b"data: {never ends\n\n"),
        sent(b"event: message_start\ndata: {never ends\n\n"),
        sent(b"event: response.created\ndata: {never ends\n\n"),
        fails=("retry", "no valid JSON"),
    ),
    Shape(
        "two answers at once",
        sent(
            chunks(
                {"id": "c", "choices": [{"index": 1, "delta": {"content": "Low."}}]},
                {"id": "c", "choices": [{"index": 0, "delta": {"content": TIDE}}]},
                {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            )
        ),
        CHAT_ALONE,
        CHAT_ALONE,
        text=TIDE,
    ),
]

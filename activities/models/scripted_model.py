"""A model that answers from a file, offline and always the same: for demos, tests and benchmarks.

The file has JSON lines, one reply each; the user's documentation describes them. A summary that the script has no
line for is always the same for one request.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from longhaul.activities.models.failures.status_table import ProviderError, ScriptError
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest, scrub_json
from longhaul.agent.plain.values import Value
from longhaul.agent.values.conversation.messages import (
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)


class Fault(Value):
    kind: Literal[
        "rate_limited",
        "overloaded",
        "server_error",
        "connection_reset",
        "context_overflow",
        "auth",
        "invalid_request",
    ]
    retry_after: float | None = Field(default=None, ge=0)
    """Seconds."""


class ScriptedCall(Value):
    name: str
    input: dict[str, Any] | str = Field(default_factory=dict)
    """An object, or the raw text that the model writes, broken or not."""
    id: str = ""


class ScriptedUsage(Value):
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    cache_input_tokens: int = Field(default=0, ge=0)
    cache_creation_input_tokens: int = Field(default=0, ge=0)


class Expectation(Value):
    messages: int | None = None
    last_contains: str | None = None
    system_contains: str | None = None
    tools: tuple[str, ...] = ()
    """Each of these is offered to the model; others may be too."""


class ScriptLine(Value):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    usage: ScriptedUsage = Field(default_factory=ScriptedUsage)
    stop_reason: str = ""
    """A provider's word, such as max_tokens or refusal; empty: as the reply is, end_turn or tool_use."""
    chunk_chars: int = Field(default=8, ge=1)
    delay_ms: float = Field(default=0, ge=0)
    """Before each piece."""
    faults: tuple[Fault, ...] = ()
    """One per attempt, before the reply is given. After `context_overflow` the conversation is made shorter, and the
    attempts go on with the fault behind it."""
    expect: Expectation = Field(default_factory=Expectation)
    purpose: Literal["reply", "summary"] = Field(default="reply", alias="for")


@dataclass(frozen=True, slots=True)
class Script:
    replies: tuple[ScriptLine, ...]
    summaries: tuple[ScriptLine, ...]
    """For the calls that summarise a conversation: a script of their own."""


def read_script(name: str) -> Script:
    """The script in file `name`, parsed again only when it has changed. Raises ScriptError, naming file and line."""
    path = Path(name).expanduser()
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return _parse(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=64)
def _parse(path: Path, _modified_ns: int, _size: int) -> Script:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    numbered = enumerate(text.split("\n"), start=1)
    lines = [_line(path, number, written) for number, written in numbered if written.strip()]
    replies = tuple(line for line in lines if line.purpose == "reply")
    return Script(replies, tuple(line for line in lines if line.purpose == "summary"))


def _line(path: Path, number: int, written: str) -> ScriptLine:
    try:
        return ScriptLine.model_validate(scrub_json(json.loads(written)))
    except json.JSONDecodeError as error:
        raise ScriptError(f"Line {number} of script {str(path)!r} is not JSON: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(step) for step in first["loc"]) or "the line"
        raise ScriptError(f"Line {number} of script {str(path)!r}: {field}: {first['msg']}.") from error


def _unreadable(path: Path, error: Exception) -> ScriptError:
    reason = getattr(error, "strerror", None) or str(error)
    return ScriptError(
        f"Script {str(path)!r} can't be read: {reason}. Give the path of a file on the worker's machine."
    )


def made_up_summary(request: ModelRequest) -> ScriptLine:
    """Every field of the answer's schema filled in, or a sentence where no form was asked for."""
    number = request.call_number + 1
    if request.answer is None:
        return ScriptLine(text=f"Summary {number} of the script.")
    fields = request.answer.schema.get("properties", {})
    filled = {name: _filled(field, f"{name} of summary {number} of the script") for name, field in fields.items()}
    return ScriptLine(tool_calls=(ScriptedCall(name=request.answer.name, input=filled),))


def _filled(schema: Any, said: str) -> Any:
    if not isinstance(schema, dict):
        return said
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case "array":
            return [_filled(schema.get("items"), said)]
        case "object":
            return {name: _filled(field, said) for name, field in schema.get("properties", {}).items()}
        case "null":
            return None
        case _:
            return said


_ENDED = ScriptLine(text="(script ended)")
_CHARS_PER_TOKEN = 3

_STATUS_AND_CODE = {
    "rate_limited": (429, "rate_limit_error"),
    "overloaded": (529, "overloaded_error"),
    "server_error": (500, "server_error"),
    "context_overflow": (400, "context_length_exceeded"),
    "auth": (401, "authentication_error"),
    "invalid_request": (400, "invalid_request_error"),
}

Block = TextBlock | ThinkingBlock | ToolCallBlock

_LENGTH = attrgetter("text_length")
"""In C: it is asked of every message of the context with every call."""


class ScriptedModel:
    """Line n answers the session's n-th call, whatever was retried or replayed in between; summaries are counted by
    themselves and answered by lines of their own.

    Raises ScriptError (broken file, or an expectation that does not hold) and the faults of the line.
    """

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        script = read_script(request.model)
        is_reply = request.purpose != "summary"
        lines = script.replies if is_reply else script.summaries
        if request.call_number < len(lines):
            line = lines[request.call_number]
        elif is_reply:
            line = _ENDED
        else:
            line = made_up_summary(request)
        # The attempts of one that is asked again with less are counted again: what came before does not come again.
        kinds = [fault.kind for fault in line.faults]
        done = kinds.index("context_overflow") + 1 if request.shortened and "context_overflow" in kinds else 0
        faults = line.faults[done:]
        if request.attempt <= len(faults):
            raise _failure(faults[request.attempt - 1])
        if complaint := _unmet(line, request):
            kind = "Summary" if request.purpose == "summary" else "Call"
            raise ScriptError(f"{kind} {request.call_number + 1} of script {request.model!r} expected {complaint}.")
        calls = tuple(
            ToolCallBlock(
                id=call.id or f"call_{request.call_number}_{place}",
                name=call.name,
                input=call.input if isinstance(call.input, str) else json.dumps(call.input, ensure_ascii=False),
            )
            for place, call in enumerate(line.tool_calls)
        )
        thinking = (ThinkingBlock(thinking=line.thinking),) if line.thinking else ()
        text = (TextBlock(text=line.text),) if line.text else ()
        content = (*thinking, *text, *calls)
        for delta in _pieces(content, line.chunk_chars):
            # Without a delay too: a long reply must not keep heartbeats and cancellation waiting.
            await asyncio.sleep(line.delay_ms / 1000)
            on_delta(delta)
        stop_reason = line.stop_reason or ("tool_use" if line.tool_calls else "end_turn")
        return ModelReply(content, _usage(line, request, content), "scripted", stop_reason)

    async def close(self) -> None:
        """Nothing is held open."""


def _failure(fault: Fault) -> Exception:
    if fault.kind == "connection_reset":
        return ConnectionResetError("The script resets the connection.")
    status, code = _STATUS_AND_CODE[fault.kind]
    return ProviderError(status, code, f"the script asks for the fault {fault.kind!r}", fault.retry_after)


def _unmet(line: ScriptLine, request: ModelRequest) -> str:
    """What was expected and what was seen instead; empty when all holds."""
    expect = line.expect
    last = _text_of(request.messages[-1]) if request.messages else ""
    names = [tool.name for tool in request.tools]
    if expect.messages is not None and expect.messages != len(request.messages):
        return f"{expect.messages} messages and saw {len(request.messages)}"
    if expect.last_contains is not None and expect.last_contains not in last:
        return f"{expect.last_contains!r} in the last message and saw {_short(last)!r}"
    if expect.system_contains is not None and expect.system_contains not in request.system:
        return f"{expect.system_contains!r} in the system prompt and saw {_short(request.system)!r}"
    if missing := [name for name in expect.tools if name not in names]:
        return f"the tools {missing} and saw only {names}"
    return ""


def _pieces(content: tuple[Block, ...], chunk_chars: int) -> Iterator[Delta]:
    for index, block in enumerate(content):
        kind, written, call_id, name = _written(block)
        for start in range(0, len(written), chunk_chars):
            yield Delta(kind, index, written[start : start + chunk_chars], call_id, name)


def _written(block: Block) -> tuple[Literal["text", "thinking", "tool_call"], str, str, str]:
    match block:
        case TextBlock():
            return "text", block.text, "", ""
        case ThinkingBlock():
            return "thinking", block.thinking, "", ""
        case ToolCallBlock():
            return "tool_call", block.input, block.id, block.name


def _usage(line: ScriptLine, request: ModelRequest, content: tuple[Block, ...]) -> Usage:
    given = line.usage
    read = given.input_tokens
    if read is None:
        tools = sum(len(tool.name) + len(tool.description) for tool in request.tools)
        read = _tokens(len(request.system) + tools + sum(map(_LENGTH, request.messages)))
    wrote = given.output_tokens
    if wrote is None:
        wrote = _tokens(sum(len(_written(block)[1]) for block in content))
    cached, written = given.cache_input_tokens, given.cache_creation_input_tokens
    return Usage(input_tokens=read, output_tokens=wrote, cache_input_tokens=cached, cache_creation_input_tokens=written)


def _tokens(chars: int) -> int:
    return -(-chars // _CHARS_PER_TOKEN)


def _text_of(message: Msg) -> str:
    """All that the model can read in a message, calls and results too."""
    texts: list[str] = []
    for block in message.content:
        match block:
            case TextBlock() | ThinkingBlock() | ToolCallBlock():
                texts.append(_written(block)[1])
            case ToolResultBlock():
                texts.append(block.get_text())
            case HintBlock() if isinstance(block.hint, str):
                texts.append(block.hint)
            case _:
                pass  # attachments have no text
    return "\n".join(texts)


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"

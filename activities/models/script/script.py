"""The file of a scripted model: JSON lines, one reply each. Its fields are described in the user's documentation."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from longhaul.activities.models.failures.errors import ScriptError
from longhaul.activities.models.requests.text import scrub_json
from longhaul.agent.plain.values import Value


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
    """One per attempt, before the reply is given."""
    expect: Expectation = Field(default_factory=Expectation)
    purpose: Literal["reply", "summary"] = Field(default="reply", alias="for")


@dataclass(frozen=True, slots=True)
class Script:
    replies: tuple[ScriptLine, ...]
    summaries: tuple[ScriptLine, ...]
    """For the calls that summarise a conversation: a script of their own."""


def read_script(name: str) -> Script:
    """The script in file `name`, parsed anew only when it has changed. Raises ScriptError, naming file and line."""
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

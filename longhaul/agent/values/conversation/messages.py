"""Keeps with a block what its provider wants back, and nobody else can read: signatures, phases.

Messages and the blocks they are made of: what the model, a person and the journal all read.

Names and states are AgentScope v2's (agentscope/message). Two differences, both for the sake of the journal:
ids and times come from outside (the workflow's clock), never from a global; and the unit is one message per
model call and per tool result, because each crosses the history once. `agent.views.transcript` folds them into the
one assistant message per reply that a reader expects.

Guesses from its bytes how large a message is for a model, where no worker has counted it yet.

A tool's result that is the reply itself: `response_msg` in its metadata.

Titles: how requests begin, on one line. Lists tell sessions apart by them, and requests that wait.

Tells whether messages can stand in a context: no provider takes a call without its result, or the other way
round.

The reasons why a model stopped speaking, the same for every provider.

Questions of an MCP server to a person, before it goes on with a call (elicitation): part of the call that waits.

Whatever stands here was written by a server: workers have bounded it, and have checked that each schema is one.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, Self, assert_never

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError

from longhaul.agent.plain.measures import outside_estimate
from longhaul.agent.plain.values import Given, Many, OpenValue, digest_of, sparse
from longhaul.agent.values.permission import PermissionRule

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


class ToolCallState(StrEnum):
    PENDING = "pending"
    ASKING = "asking"
    ALLOWED = "allowed"
    SUBMITTED = "submitted"
    FINISHED = "finished"


class ToolResultState(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    DENIED = "denied"
    UNKNOWN = "unknown"
    """Outcome unknown: a `once` call was started and its worker lost. AgentScope has no such state."""


ResultStateName = Literal["running", "success", "error", "interrupted", "denied", "unknown"]


class FinishedReason(StrEnum):
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    EXCEED_MAX_ITERS = "exceed_max_iters"
    ERROR = "error"
    STUCK = "stuck"
    """The agent went round in circles. AgentScope has no such end; OpenHands calls a conversation so."""
    REFUSED = "refused"  # No model was willing, or allowed, to answer; not AgentScope's, nor is the next one.
    OUT_OF_BUDGET = "out_of_budget"  # Not AgentScope's either: what the session may spend does not do for another call.
    INCOMPLETE = "incomplete"  # The model's last message is not whole, and it was asked to go on often enough.
    UNSTRUCTURED = "unstructured"  # An answer in a form was asked for, and the model gave words; not AgentScope's.
    REJECTED = "rejected"
    """A person has denied a call, or let its time run out, where `stop_on_reject` is set; not AgentScope's."""


class Base64Source(OpenValue):
    type: Literal["base64"] = "base64"
    data: str
    media_type: str


class URLSource(OpenValue):
    type: Literal["url"] = "url"
    url: str
    media_type: str


class TextBlock(OpenValue):
    type: Literal["text"] = "text"
    text: str
    extras: Extras = sparse({})


class ThinkingBlock(OpenValue):
    """The model's thinking. The provider's extras (Anthropic's `signature`, `redacted_thinking_data`) are kept, and
    sent back unchanged."""

    model_config = ConfigDict(frozen=True, extra="allow")
    type: Literal["thinking"] = "thinking"
    thinking: str


class DataBlock(OpenValue):
    type: Literal["data"] = "data"
    source: Annotated[Base64Source | URLSource, Field(discriminator="type")]
    name: str | None = sparse(None)


class HintBlock(OpenValue):
    """A reminder: text for the model that no person wrote. It is sent as a user turn."""

    type: Literal["hint"] = "hint"
    hint: Given[str | tuple[TextBlock | DataBlock, ...], str | Sequence[TextBlock | DataBlock]]
    source: str | None = sparse(None)
    tools: Many[str] = sparse(())
    """Names of tools that the model has from here on, and not from the beginning of the conversation."""


class ToolCallBlock(OpenValue):
    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    input: str
    """The arguments as a JSON string, as the model wrote them. The string may be broken, or say why the arguments are
    not known (`not_to_run`)."""
    extras: Extras = sparse({})
    state: ToolCallState = sparse(ToolCallState.PENDING)
    suggested_rules: Many[PermissionRule] = sparse(())
    indirect: bool = sparse(False)
    """The model made the call through `call_tool`, and sees it that way."""


_NOT_TO_RUN = re.compile(r"\(not run: ([^()]{1,400})\)")


def not_to_run(why: str, arrived: str) -> str:
    """The input of a call whose arguments are not known for certain: no JSON, so that nothing can run it. `why`: a
    clause for the model, without brackets; `arrived`: what came in the place of arguments."""
    return f"(not run: {why}) {arrived}".rstrip()


def why_not_to_run(arguments: str) -> str:
    """Empty for an input that is none of these."""
    found = _NOT_TO_RUN.match(arguments)
    return found[1] if found else ""


class ToolResultBlock(OpenValue):
    type: Literal["tool_result"] = "tool_result"
    id: str
    """Id of the call that the result answers."""
    name: str
    output: Given[
        str | tuple[Annotated[TextBlock | DataBlock, Field(discriminator="type")], ...],
        str | Sequence[TextBlock | DataBlock],
    ]
    state: Given[ToolResultState, ToolResultState | ResultStateName] = sparse(ToolResultState.SUCCESS)
    metadata: dict[str, Any] = sparse({})

    def get_text(self) -> str:
        """The text parts, joined by newlines. Data blocks are left out."""
        if isinstance(self.output, str):
            return self.output
        return "\n".join(part.text for part in self.output if isinstance(part, TextBlock))


ContentBlock = Annotated[
    TextBlock | ThinkingBlock | DataBlock | HintBlock | ToolCallBlock | ToolResultBlock,
    Field(discriminator="type"),
]


class Usage(OpenValue):
    """Tokens as the provider reported them. `input_tokens` includes cached ones, `output_tokens` includes reasoning."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_input_tokens: int = sparse(0)
    cache_creation_input_tokens: int = sparse(0)
    cache_creation_1h_input_tokens: int = sparse(0)
    """Of the tokens written to the cache, those that the provider keeps for an hour, at a higher price."""
    reasoning_tokens: int = sparse(0)
    estimated: bool = sparse(False)
    """The provider left counts out, and the worker counted instead."""

    def __add__(self, other: "Usage") -> "Usage":
        # Spelt out: each entry of a session adds some up, and so does each replay.
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_input_tokens=self.cache_input_tokens + other.cache_input_tokens,
            cache_creation_input_tokens=self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            cache_creation_1h_input_tokens=self.cache_creation_1h_input_tokens + other.cache_creation_1h_input_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            estimated=self.estimated or other.estimated,
        )


class ErrorInfo(OpenValue):
    """Why a reply failed, for a person."""

    type: str
    """authentication, permission, rate_limit, invalid_request, context_overflow, upstream, connection, internal,
    setup, middleware, kind, stuck, refused, filtered, incomplete, unstructured or overdue."""
    message: str


def _as_blocks(content: object) -> object:
    return ({"type": "text", "text": content},) if isinstance(content, str) else content


IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Media types that providers take as images."""


class Msg(OpenValue):
    """One message. `content` may be given as a string: it becomes one text block."""

    name: str
    role: Literal["user", "assistant", "system"]
    content: Given[Annotated[tuple[ContentBlock, ...], BeforeValidator(_as_blocks)], str | Sequence[ContentBlock]]
    id: str = sparse("")
    metadata: dict[str, Any] = sparse({})
    created_at: str = sparse("")
    """ISO 8601 time with zone. Empty until the journal sets it."""
    usage: Usage | None = sparse(None)
    finished_at: str = sparse("")
    finished_reason: FinishedReason | None = sparse(None)
    structured_output: dict[str, Any] | None = sparse(None)
    error: ErrorInfo | None = sparse(None)

    def get_text_content(self, separator: str = "\n") -> str:
        """The text blocks joined by `separator`; thinking, calls and results are left out. Of a reply with tools: what
        was said last, behind the last result, as the seed's `reply` returns it. What a model went on with where its
        answer had broken off is joined by nothing."""
        said: list[str] = []
        for block in reversed(self.content):
            if isinstance(block, ToolResultBlock):
                break
            if isinstance(block, TextBlock):
                said += [block.text, "" if CONTINUES in block.extras else separator]
        return "".join(reversed(said[:-1]))

    @cached_property
    def text_length(self) -> int:
        """Characters of what the model reads, attachments at a flat 100. Kept, for a long session asks it often; a
        `model_copy` keeps it too, so never copy with other content."""
        parts = (part for block in self.content for part in parts_of(block))
        return sum(len(part) if isinstance(part, str) else 100 for part in parts)

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is words, calls and results alone, with nothing that one provider takes and another refuses:
        attachments, thoughts, extras. Kept as the length is: each request looks at all messages."""
        return not any(_is_particular(block) for block in self.content)

    def get_tool_calls(self) -> tuple[ToolCallBlock, ...]:
        return tuple([block for block in self.content if isinstance(block, ToolCallBlock)])

    def get_tool_results(self) -> tuple[ToolResultBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolResultBlock))


def with_content(message: Msg, content: Sequence[ContentBlock]) -> Msg:
    """The message with other content, made again: a copy would keep what was measured."""
    return Msg.model_validate({**dict(message), "content": tuple(content)})


def _is_particular(block: ContentBlock) -> bool:
    if isinstance(block, ThinkingBlock) or (isinstance(block, TextBlock | ToolCallBlock) and block.extras):
        return True
    return any(isinstance(part, DataBlock) for part in parts_of(block))


def parts_of(block: ContentBlock) -> tuple[str | DataBlock, ...]:
    """What a model reads of a block, in order: texts and attachments; of a call its arguments alone."""
    match block:
        case TextBlock():
            return (block.text,)
        case ThinkingBlock():
            return (block.thinking,)
        case ToolCallBlock():
            return (block.input,)
        case DataBlock():
            return (block,)
        case HintBlock():
            return parts_of_output(block.hint)
        case ToolResultBlock():
            return parts_of_output(block.output)
        case _ as never:
            assert_never(never)


def parts_of_output(output: str | tuple[TextBlock | DataBlock, ...]) -> tuple[str | DataBlock, ...]:
    """The same of what a tool gives, or a hint tells."""
    if isinstance(output, str):
        return (output,)
    return tuple(part.text if isinstance(part, TextBlock) else part for part in output)


Content = str | Iterable[ContentBlock | dict[str, Any]]


def UserMsg(name: str, content: Content, **fields: Any) -> Msg:  # noqa: N802  the seed's name
    return Msg.model_validate({"name": name, "role": "user", "content": _as_tuple(content), **fields})


def AssistantMsg(name: str, content: Content, **fields: Any) -> Msg:  # noqa: N802  the seed's name
    return Msg.model_validate({"name": name, "role": "assistant", "content": _as_tuple(content), **fields})


def SystemMsg(name: str, content: Content, **fields: Any) -> Msg:  # noqa: N802  the seed's name
    return Msg.model_validate({"name": name, "role": "system", "content": _as_tuple(content), **fields})


def _as_tuple(content: Content) -> object:
    return content if isinstance(content, str) else tuple(content)


SEEN_BY_THE_MODEL = {"role", "name", "content"}


def message_digest(message: Msg) -> str:
    """Digest of what the model sees of a message: ids, times and usage are not part of it."""
    return digest_of(message.model_dump(mode="json", include=SEEN_BY_THE_MODEL))


DATA_TOKENS = 1_600
"""An image, whatever its bytes: providers scale it down to about this."""
FRAME_TOKENS = 8
"""Role, name and what stands around a message."""


def outside_tokens(message: Msg) -> int:
    """Tokens of a message that came from outside or that the journal made itself."""
    names = sum(text_tokens(call.name) for call in message.get_tool_calls())
    parts = (part for block in message.content for part in parts_of(block))
    return FRAME_TOKENS + names + sum(text_tokens(part) if isinstance(part, str) else DATA_TOKENS for part in parts)


def text_tokens(text: str) -> int:
    """Tokens of a text, guessed from its bytes."""
    # A lone surrogate has no UTF-8: it is counted as what stands in its place.
    return outside_estimate(len(text.encode("utf-8", "replace")))


RESPONSE_MSG = "response_msg"


def response_in(result: ToolResultBlock) -> str:
    """The text of the message, or the text itself; empty where there is none, or the tool did not succeed."""
    said = result.metadata.get(RESPONSE_MSG)
    if said is None or result.state is not ToolResultState.SUCCESS:
        return ""
    if isinstance(said, str):
        return said
    try:
        return Msg.model_validate(said).get_text_content()
    except ValidationError:
        return ""


TITLE_CHARS = 120
_LOOKED_AT = 20
"""Times as many characters of each text as are shown: blanks are left out, and a megabyte would take its time."""


def title_of(messages: Iterable[Msg], chars: int = TITLE_CHARS) -> str:
    """Up to so many characters of the first of a user's messages that says something, and the names of what came with
    it; empty where none does. It may hold anything that a person can type but line breaks and lone surrogates."""
    return next(filter(None, (_beginning(message, chars) for message in messages if message.role == "user")), "")


def _beginning(message: Msg, chars: int) -> str:
    said: list[str] = []
    for block in message.content:
        if isinstance(block, TextBlock):
            said += block.text[: chars * _LOOKED_AT].split()
        elif isinstance(block, DataBlock):
            said.append(f"[{block.name or block.source.media_type}]")
    whole = " ".join(said).encode("utf-8", "replace").decode("utf-8")
    return whole if len(whole) <= chars else f"{whole[: chars - 1]}…"


def problem(context: Sequence[Msg], waiting: Collection[str] = ()) -> str:
    """What is wrong with the first message that is; empty when all may stand. Calls that are `waiting` have no result,
    and stand in the last turn."""
    open_calls: dict[str, int] = {}
    seen = set[str]()
    for index, message in enumerate(context):
        results = message.get_tool_results()
        if open_calls and not results:
            call_id, at = next(iter(open_calls.items()))
            return f"call {call_id!r} of message {at} has no result before message {index}"
        for result in results:
            if open_calls.pop(result.id, None) is None:
                return f"message {index} holds a result for {result.id!r}, which is no open call before it"
        for call in message.get_tool_calls():
            if call.id in seen:
                return f"message {index} uses the call id {call.id!r} a second time"
            seen.add(call.id)
            open_calls[call.id] = index
    for call_id, at in open_calls.items():
        if call_id not in waiting:
            return f"call {call_id!r} of message {at} has no result"
    missing = [call_id for call_id in waiting if call_id not in open_calls]
    return f"call {missing[0]!r} waits, and is not among the calls without a result" if missing else ""


class StopReason(StrEnum):
    """Of one message of a model."""

    END = "end"
    """It has said what it wanted to say, calls included."""
    LENGTH = "length"
    """The limit of output tokens: the message is not whole."""
    PAUSED = "paused"
    """The provider has stopped it in the midst and wants to be asked again."""
    WINDOW = "window"
    """The model's window is full: the message is not whole."""
    REFUSED = "refused"
    """The model, or a classifier of its provider, does not answer this."""
    FILTERED = "filtered"
    """A content filter has stopped it."""
    UNKNOWN = "unknown"
    """A word of the provider's that we do not know; the message is taken as it came."""


BROKEN_OFF = frozenset({StopReason.LENGTH, StopReason.PAUSED, StopReason.WINDOW})
"""The message is not whole, and the model is asked to go on with it."""
REFUSALS = frozenset({StopReason.REFUSED, StopReason.FILTERED})
"""Another model may answer; the same one would say the same again, and be paid for it."""


WHERE = {
    StopReason.LENGTH: "at the limit of output tokens",
    StopReason.PAUSED: "because the provider paused it",
    StopReason.WINDOW: "because the model's window was full",
}
"""Where a message broke off, for a person."""


def ends_as(stop: StopReason) -> FinishedReason:
    """How a model call has ended that stopped so."""
    if stop in BROKEN_OFF:
        return FinishedReason.INCOMPLETE
    return FinishedReason.REFUSED if stop in REFUSALS else FinishedReason.COMPLETED


MOST_ROUNDS = 20
"""Questions of one call, one after the other."""
WARNING = "The answer goes to that server, and stands in this session's journal: give no passwords."


class ServerQuestion(OpenValue):
    """One form to fill in, or one address to open."""

    message: str
    fields: dict[str, Any] = sparse({})
    """JSON Schema of the answer's `content`, an object, in the words of `agent.plain.json_schemas`."""
    url: str = sparse("")
    """To be opened by the person, and never by us; such a question has no fields."""


class ServerAsked(OpenValue):
    """The questions of one round, and how the call goes on with the answers."""

    server: str
    questions: dict[str, ServerQuestion]
    """By the server's own keys."""
    state: str = sparse("")
    """What the server wants back with the answers, as it is; nobody is shown it."""
    from_start: bool = sparse(False)
    """The server keeps nothing of the call: it is made from its beginning, with all answers so far."""
    round: int = sparse(1)
    waits: bool = sparse(True)
    """No answer has come yet."""
    answers: dict[str, dict[str, Any]] = sparse({})
    """By key: `action` (accept, decline, cancel) and, of a form that is accepted, `content`."""

    def shown(self) -> Self | None:
        """For those who look at the call: without what the server wants back; None once it is answered."""
        return self.model_copy(update={"state": "", "answers": {}}) if self.waits else None


def in_words(asked: ServerAsked) -> str:
    """What a person reads who is to answer; of several questions each with its key."""
    several = len(asked.questions) > 1
    told = [f"{f'{key}: ' if several else ''}{_question(one)}" for key, one in asked.questions.items()]
    return f"The MCP server {asked.server!r} asks: {' '.join(told)} {WARNING}"


def example(asked: ServerAsked) -> str:
    """An answer that accepts, as JSON with a place for each value."""
    answers = {key: _accepted(one) for key, one in asked.questions.items()}
    return json.dumps(next(iter(answers.values())) if len(answers) == 1 else answers, ensure_ascii=False)


def _question(one: ServerQuestion) -> str:
    if one.url:
        return f"{one.message} (It wants you to open {one.url} yourself, and then to accept.)"
    required = one.fields.get("required", ())
    fields = [_field(name, field, needed=name in required) for name, field in one.fields.get("properties", {}).items()]
    return f"{one.message} ({'; '.join(fields) or 'no fields: accept, decline or cancel'})"


def _field(name: str, field: dict[str, Any], *, needed: bool) -> str:
    kind = field.get("type", "any")
    choices = field.get("enum") or field.get("items", {}).get("enum")
    words = [str(kind), *([] if needed else ["may be left out"])]
    words += [f"one of {json.dumps(choices, ensure_ascii=False)}"] if choices else []
    words += [
        f"{word} {field[word]}" for word in ("format", "minimum", "maximum", "minLength", "maxLength") if word in field
    ]
    words += [str(field[word]) for word in ("title", "description") if field.get(word)]
    return f"{name}: {', '.join(words)}"


def _accepted(one: ServerQuestion) -> dict[str, Any]:
    if one.url:
        return {"action": "accept"}
    return {"action": "accept", "content": dict.fromkeys(one.fields.get("properties", {}), "…")}

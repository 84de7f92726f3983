"""The bodies that signals and updates may carry: plain JSON that a person can type, and the seed's own events."""

from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, field_validator

from agent.canonical import canonical_json
from agent.decision_bodies import CallDecision as CallDecision
from agent.decision_bodies import Confirm as Confirm
from agent.decision_bodies import ConfirmResult as ConfirmResult
from agent.decision_bodies import UserConfirmResultEvent as UserConfirmResultEvent
from agent.depth import MAX_DEPTH, too_deep
from agent.entries_requests import When
from agent.messages import (
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ToolResultBlock,
    ToolResultState,
)
from agent.upkeep_bodies import (
    MAX_ID_CHARS,
    ChangeRules,
    Compact,
    Configure,
    PauseSession,
    ReplaceState,
    Resume,
    Settle,
    TakeStep,
    WorkerLeft,
)
from agent.values import Guest, Value

MAX_REFUSAL_CHARS = 500
"""Refusals quote what was sent and are carried along: unbounded ones would make a session too large to carry."""
MAX_CONTEXT_BYTES = 4_000
"""Of what comes with a request for hooks and tools: it is sent with each call of the reply."""


class Unusable(Exception):
    """A body that can't be used; the sentence names the field, the value and what to do.

    `kind` is a word for programs, where they may want to tell this refusal from others.
    """

    def __init__(self, sentence: str, kind: str = "") -> None:
        self.kind = kind
        cut = len(sentence) > MAX_REFUSAL_CHARS
        super().__init__(f"{sentence[: MAX_REFUSAL_CHARS - 1]}…" if cut else sentence)


def _as_messages(value: object) -> object:
    if value is None:
        return ()
    if isinstance(value, str):
        return ({"name": "user", "role": "user", "content": value},)
    if isinstance(value, dict | Msg):
        return cast(object, (value,))
    return value


def _from_outside(messages: tuple[Msg, ...]) -> tuple[Msg, ...]:
    """Who said what, and nothing that only the record may say (ids, times, usage, how it ended)."""
    for message in messages:
        if message.role == "system":
            raise ValueError("a message with role 'system' can't come from outside; set the agent's system_prompt")
        if all(isinstance(block, TextBlock) and not block.text.strip() for block in message.content):
            raise ValueError("a message from outside needs some text or data; this one is empty")
        for block in message.content:
            if not isinstance(block, TextBlock | DataBlock | HintBlock):
                raise ValueError(f"a message from outside can't hold a {block.type!r} block; send text, data or hint")
    return tuple(
        Msg(name=message.name, role=message.role, content=message.content, metadata=message.metadata)
        for message in messages
    )


Messages = Annotated[tuple[Msg, ...], BeforeValidator(_as_messages)]


def _fits(context: dict[str, Any]) -> dict[str, Any]:
    size = len(canonical_json(context))
    if size > MAX_CONTEXT_BYTES:
        raise ValueError(f"it has {size:,} bytes as JSON, and the most is {MAX_CONTEXT_BYTES:,}; send what names it")
    return context


RequestContext = Annotated[dict[str, Any], AfterValidator(_fits)]


class Submit(Value):
    """Ask for a reply. Without messages the agent goes on from where it stands. `when`: while another one is made."""

    request_id: str = Field(default="", max_length=MAX_ID_CHARS)
    """Sent again, it gives the same reply."""
    messages: Messages = ()
    """Text, one message, or a list of them."""
    context: RequestContext = Field(default_factory=dict[str, Any])
    """For hooks and tools; the model does not see it."""
    when: When = "queue"
    """While another reply is being made: it waits for its turn, is told at that reply's next step, or ends it."""

    _checked = field_validator("messages")(_from_outside)


class Observe(Value):
    messages: Messages = Field(min_length=1)
    """Text, one message, or a list of them."""

    _checked = field_validator("messages")(_from_outside)


class Interrupt(Value):
    """End the reply that is being made, or drop the named request that waits."""

    reply_id: str | None = None
    """Just this reply."""
    request_id: str | None = None
    """Just this request; one that waits is dropped."""
    message: Messages = ()
    """Becomes the next request."""

    _checked = field_validator("message")(_from_outside)


class ExternalResultItem(Value):
    id: str
    output: Any
    """Text; or a list of text and data blocks; or any JSON value, which the model then reads as JSON."""
    state: Literal["success", "error"] = "success"
    partial: bool = False


class ExternalResult(Value):
    reply_id: str | None = None
    results: tuple[ExternalResultItem, ...] = Field(min_length=1)
    by: str = Field(default="", max_length=MAX_ID_CHARS)


class ExternalExecutionResultEvent(Guest):
    """The seed's event, valid as it stands (agentscope/event)."""

    type: Literal["EXTERNAL_EXECUTION_RESULT"] = "EXTERNAL_EXECUTION_RESULT"
    reply_id: str
    execution_results: tuple[ToolResultBlock, ...] = Field(min_length=1)

    @field_validator("execution_results")
    @classmethod
    def _ended(cls, results: tuple[ToolResultBlock, ...]) -> tuple[ToolResultBlock, ...]:
        for result in results:
            if result.state not in (ToolResultState.SUCCESS, ToolResultState.ERROR):
                raise ValueError(f"state {result.state.value!r} can't come from outside; send 'success' or 'error'")
        return results


Body = (
    Submit
    | Observe
    | Interrupt
    | Configure
    | ChangeRules
    | Compact
    | PauseSession
    | Resume
    | TakeStep
    | ReplaceState
    | Settle
    | WorkerLeft
    | Confirm
    | UserConfirmResultEvent
    | ExternalResult
    | ExternalExecutionResultEvent
)

SHAPES: dict[str, tuple[type[Body], ...]] = {
    "submit": (Submit,),
    "confirm": (Confirm, UserConfirmResultEvent),
    "external_result": (ExternalResult, ExternalExecutionResultEvent),
    "interrupt": (Interrupt,),
    "observe": (Observe,),
    "configure": (Configure,),
    "rules": (ChangeRules,),
    "compact": (Compact,),
    "pause": (PauseSession,),
    "resume": (Resume,),
    "step": (TakeStep,),
    "replace_state": (ReplaceState,),
    "settle": (Settle,),
    "worker_left": (WorkerLeft,),
}
_SEED_FIELDS: dict[str, type[Body]] = {
    "confirm_results": UserConfirmResultEvent,
    "execution_results": ExternalExecutionResultEvent,
}
_OPTIONAL_BODY = {"interrupt", "submit", "compact", "pause", "resume", "step"}


def parse(name: str, arguments: list[Any]) -> Body:
    """The body of a signal or update; raises Unusable for any other name, number of arguments or shape."""
    shapes = SHAPES.get(name)
    if shapes is None:
        raise Unusable(f"there is no signal or update {name!r}; there are: {', '.join(SHAPES)}")
    if len(arguments) > 1 or (not arguments and name not in _OPTIONAL_BODY):
        raise Unusable(f"{name} takes one JSON object, and {len(arguments)} arguments came")
    given = arguments[0] if arguments else None
    if given is None and name in _OPTIONAL_BODY:
        given = {}
    if not isinstance(given, dict):
        raise Unusable(f"{name} takes one JSON object, not {_brief(given)}")
    body = cast(dict[str, Any], given)
    if too_deep(body):
        raise Unusable(f"{name}: the body nests deeper than {MAX_DEPTH} levels; send a flatter JSON object")
    shape = next((seed for key, seed in _SEED_FIELDS.items() if key in body and seed in shapes), shapes[0])
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        raise Unusable(f"{name}: {what_is_wrong(error)}") from error


def what_is_wrong(error: ValidationError) -> str:
    """The first complaint as `field: what (value); n more`, short enough for a log line."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "body"
    more = f"; {error.error_count() - 1} more" if error.error_count() > 1 else ""
    message = first["msg"].removeprefix("Value error, ")
    return f"{field}: {message} (it is {_brief(first.get('input'))}){more}"


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

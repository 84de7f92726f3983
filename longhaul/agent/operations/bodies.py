"""An operation is one signal or update as it came; it is received as entries and an answer.

The bodies that signals and updates may carry: plain JSON that a person can type, and the seed's own events.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, field_validator

from longhaul.agent import entries as e
from longhaul.agent.entries import ProviderOutage, When
from longhaul.agent.plain.ids import MAX_ID_CHARS
from longhaul.agent.plain.json_schemas import why_unusable
from longhaul.agent.plain.values import Given, Many, OpenValue, Value, canonical_json, stated
from longhaul.agent.values.budget import NO_CALLS_BEFORE, Amount, CallsBefore, End, Raise, bounded
from longhaul.agent.values.conversation.messages import (
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    Usage,
)
from longhaul.agent.values.deadlines import MOST_EVENT_CHARS, MOST_PAYLOAD_CHARS
from longhaul.agent.values.permission import Analyzers, Confirming, PermissionMode, PermissionRule, only_known_keys
from longhaul.agent.values.spec.agent_spec import ContextConfig, Middlewares
from longhaul.agent.values.spec.known_names import FullModelName
from longhaul.agent.values.subagents import LONGEST_REPORT_CHARS


@dataclass(frozen=True, slots=True)
class Received:
    """Entries to record, and what to tell a caller who waits for an answer."""

    entries: tuple[e.AnyEntry, ...]
    answer: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReceivedOperation:
    """One signal or update as it came."""

    name: str
    arguments: list[Any]
    """Decoded JSON values."""
    fresh_id: str
    """For a request that brings none."""
    reply_id_of: Callable[[str], str]
    """The id of the reply to the request with this id."""


Rules = Annotated[tuple[PermissionRule, ...], BeforeValidator(only_known_keys)]
Binding = Annotated[str, Field(min_length=1)]
"""What says which one is meant, or was looked at. An empty one says neither, and nothing may be taken for less: whoever
does not know it leaves the field out."""

LEAVING = "Leaving"
"""Error type of an activity whose worker is shut down: it is repeated elsewhere."""
WORKER_LEFT = "worker_left"
"""The signal with which it says so."""

WORKER_LACKS = "worker_lacks"
"""The signal with which a worker says that it can't do what the session waits for."""

CHILD_REPORTED = "child_reported"
"""The signal with which a sub-agent says how its task ended."""
ASK = "ask"
"""The signal with which a workflow of an application asks a session that is open."""
ANSWERED = "longhaul_answered"
"""The signal with which a session tells that workflow how it ended."""
REPORT_AGAIN = "report_again"
"""The signal with which a session asks a sub-agent for that once more."""


class Configure(Value):
    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)
    mode: PermissionMode | None = None
    rules: Rules = ()
    max_iters: int | None = Field(default=None, ge=1, le=1_000_000)
    model: FullModelName | None = Field(default=None, min_length=1, max_length=1_000)
    llm_config: dict[str, JsonValue] | None = Field(default=None, alias="model_config", max_length=50)
    """Fields of `model_config` to change, from the next model call on. Null sets a field to its default."""
    confirm: Confirming | None = None
    analyzers: Analyzers | None = None
    middlewares: Middlewares | None = None
    by: str = Field(default="", max_length=MAX_ID_CHARS)


class ChangeRules(Value):
    """Add rules to a session and revoke others, all at once or not at all."""

    add: Rules = ()
    revoke: tuple[Binding, ...] = ()
    """Ids, as the list of rules shows them."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)
    why: str = Field(default="", max_length=2_000)


class Notify(Value):
    """Send an external event. It wakes the call that waits for it, or is kept until a call does."""

    event: str = Field(min_length=1, max_length=MOST_EVENT_CHARS)
    payload: str = Field(default="", max_length=MOST_PAYLOAD_CHARS)
    """Text for the model, which reads that the text comes from outside."""
    request_id: str = Field(default="", max_length=MAX_ID_CHARS)
    """Sent again, it counts once."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)


class PauseSession(Value):
    """Start nothing new until somebody resumes the session."""

    by: str = Field(default="", max_length=MAX_ID_CHARS)
    why: str = Field(default="", max_length=2_000)


class TakeStep(Value):
    """Let a paused session take one step."""

    by: str = Field(default="", max_length=MAX_ID_CHARS)


class ChangeBudget(Value):
    """Raise limits of a session's budget, or say how a reply that waits for budget ends: one of the two."""

    more: Raise = Field(default=Raise())
    end: End = ""
    child: Binding | None = Field(default=None, max_length=MAX_ID_CHARS)
    """Id of a call. Its sub-agent gets the amounts, out of what this session has left."""
    allotted: bool = False
    """Of a sub-agent: so much more is put aside for it. Sessions send it."""
    request_id: str = Field(default="", max_length=MAX_ID_CHARS)
    """Sent again with the same one, it changes nothing more."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)


class Resume(Value):
    """Continue a session that is paused or quarantined."""

    by: str = Field(default="", max_length=MAX_ID_CHARS)


class ReplaceState(Value):
    """Replace the state of a session that is idle or waits for somebody."""

    state: dict[str, Any]
    """AgentState as JSON."""
    expected_seq: int | None = None
    """As `status` gave it: when something has been recorded since, nothing is replaced. None = whatever it is."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)
    why: str = Field(default="", max_length=20_000)
    note: str = Field(default="", max_length=20_000)
    """`show` and `status` say it from now on."""
    before: CallsBefore = NO_CALLS_BEFORE
    """Of a copy: calls of models by the session that it is a copy of, whose numbers it goes on with."""


class Resolve(Value):
    """Say whether a call of unknown outcome happened."""

    call_id: Binding
    happened: bool
    output: str = Field(default="", max_length=20_000)
    """The call's result, if it is known. The model reads it."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)
    reason: str = Field(default="", max_length=2_000)


class Compact(Value):
    """Shorten the context at the next step boundary, if it is above its threshold."""

    context_config: ContextConfig | None = None
    """Settings for this time only. None = the session's own."""
    instructions: str = Field(default="", max_length=20_000)
    """What the summary should look after."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)


class TellWorkerLeft(Value):
    """A worker was shut down while it worked for this session. Workers send it."""

    worker: Binding = Field(max_length=MAX_ID_CHARS)
    """As Temporal knows it: its process and host."""
    doing: str = Field(default="", max_length=MAX_ID_CHARS)
    """The activity that was cut short: a tool, or one of ours."""
    call_id: str = Field(default="", max_length=MAX_ID_CHARS)
    """Of a tool's call."""


class TellWorkerLacks(Value):
    """A worker lacks what the session's next step needs; it is tried again, also by others. Workers send it."""

    worker: Binding = Field(max_length=MAX_ID_CHARS)
    """As Temporal knows it: its process and host."""
    doing: str = Field(default="", max_length=MAX_ID_CHARS)
    """The activity that can't begin: a tool, or one of ours."""
    call_id: str = Field(default="", max_length=MAX_ID_CHARS)
    """Of a tool's call."""
    why: str = Field(max_length=4_000)
    """What is missing, and where."""
    away: ProviderOutage | None = None
    """It is the model's provider that can't be had."""


class ChildReport(Value):
    """How a sub-agent's task ended. Sessions send it."""

    call_id: Binding = Field(max_length=MAX_ID_CHARS)
    """Of the call that gave the task."""
    session_id: Binding = Field(max_length=MAX_ID_CHARS)
    """The sub-agent's."""
    state: Literal["success", "error", "interrupted"]
    output: str = Field(max_length=2 * LONGEST_REPORT_CHARS)
    """What the model reads: its last words, or how it ended otherwise."""
    tainted: str = Field(default="", max_length=1_000)
    """As `AgentState.tainted`."""
    spent: Annotated[Amount, AfterValidator(bounded)] | None = None
    """With what is of unknown outcome, and what sub-agents of its own may still spend; without a budget nobody
    counts it."""
    doubtful: Annotated[Amount, AfterValidator(bounded)] = Amount()


class UnknownOutcomeRow(OpenValue):
    """A tool call of which nobody knows yet whether it happened."""

    call_id: str
    tool: str
    why: str = ""


class AskAnswer(OpenValue):
    """How a request of a workflow has ended. Sessions send it, and return it when they close with it."""

    request_id: str
    session_id: str
    state: Literal["success", "error", "interrupted", "busy", "refused"]
    words: str = ""
    """The last words of the reply; where it did not complete, or was not started, the reason before them."""
    value: dict[str, Any] | None = None
    """Of a request for one."""
    usage: Usage = Usage()
    cost: float | None = None
    """Dollars; None where no worker knows the price."""
    unknown: tuple[UnknownOutcomeRow, ...] = ()


class ReportAgain(Value):
    """Of a sub-agent: say once more how its task ended, if it has. Sessions send it."""

    call_id: Binding = Field(max_length=MAX_ID_CHARS)


def _as_json_text(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


class CallDecision(Value):
    """`rules`: true adds all suggested rules, a list adds those in the list."""

    call_id: Binding
    decision: Literal["allow", "deny"]
    reason: str = Field(default="", max_length=20_000)
    input: Annotated[str | None, BeforeValidator(_as_json_text)] = None
    rules: bool | Rules = ()
    digest: Binding | None = None
    signature: Binding | None = Field(default=None, max_length=300)
    """As `agent.operations.approval_operations` makes it; then the decision counts when a worker has checked it."""


class Confirm(Value):
    reply_id: Binding | None = None
    decisions: tuple[CallDecision, ...] = Field(min_length=1)
    approver: str = Field(default="", max_length=MAX_ID_CHARS)


class ConfirmResult(OpenValue):
    """The seed's answer to one call: the block comes back, perhaps with other arguments."""

    confirmed: bool
    tool_call: ToolCallBlock
    rules: Given[tuple[PermissionRule, ...] | None, Sequence[PermissionRule] | None] = stated(None)


class UserConfirmResultEvent(OpenValue):
    """The seed's event, valid as it stands (agentscope/event)."""

    type: Literal["USER_CONFIRM_RESULT"] = "USER_CONFIRM_RESULT"
    reply_id: Binding
    confirm_results: Many[ConfirmResult] = Field(min_length=1)


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


def _shown_message(message: Msg) -> Msg:
    said = tuple(block for block in message.content if isinstance(block, TextBlock | DataBlock | HintBlock))
    return Msg(name=message.name, role=message.role, content=said, metadata=message.metadata)


def from_outside(messages: tuple[Msg, ...]) -> tuple[Msg, ...]:
    """Who said what, and nothing that only the journal may say (ids, times, usage, how it ended). Of what another agent
    said the text and data are taken: what it thought, called and was answered is its own."""
    messages = tuple(_shown_message(message) if message.role == "assistant" else message for message in messages)
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


def _can_be_asked(schema: object) -> object:
    if why := why_unusable(schema):
        raise ValueError(why)
    return schema


AskedSchema = Annotated[dict[str, Any], BeforeValidator(_can_be_asked)]


def _as_sent(schema: dict[str, Any]) -> None:
    """Text alone, or one message, will do too."""
    several = schema["properties"]["messages"]
    one = several["items"]
    schema["properties"]["messages"] = {
        "anyOf": [{"type": "string", "pattern": r"\S"}, one, several],
        "title": "Messages",
    }


class Submit(Value):
    """Ask for a reply. Without messages the agent continues where it is. `when`: what to do while another reply is
    under way."""

    model_config = ConfigDict(json_schema_extra=_as_sent)
    request_id: str = Field(default="", max_length=MAX_ID_CHARS)
    """The same id sent again gives the same reply."""
    messages: Messages = ()
    """Text, one message, or a list of them."""
    context: RequestContext = Field(default_factory=dict[str, Any])
    """For hooks and tools; the model does not see it."""
    when: When = "queue"
    """During another reply: the message waits (`queue`), joins at the next step (`now`) or ends it (`interrupt`)."""
    unless_busy: bool = False
    """While another reply is being made, or a request waits, nothing is asked for."""

    structured_schema: AskedSchema | None = None
    """JSON Schema of an object that the answer has to fit, up to 32 kB; then it is in the message's `metadata`."""

    _checked = field_validator("messages")(from_outside)


class AskFromWorkflow(Value):
    """Ask for a reply, and have its end told to a workflow of an application. Workflows send it."""

    request_id: Binding = Field(max_length=MAX_ID_CHARS)
    """Sent again, it has the same end told once more."""
    workflow_id: Binding = Field(max_length=MAX_ID_CHARS)
    """Of whoever asks."""
    messages: Messages = Field(min_length=1)
    structured_schema: AskedSchema | None = None
    unless_busy: bool = False
    """While another reply is being made, or a request waits, nothing is asked for."""

    _checked = field_validator("messages")(from_outside)


class Observe(Value):
    """Add messages to the context without asking for a reply."""

    model_config = ConfigDict(json_schema_extra=_as_sent)
    messages: Messages = Field(min_length=1)
    """Text, one message, or a list of messages."""

    _checked = field_validator("messages")(from_outside)


class Interrupt(Value):
    """End the reply that is under way, or drop the named request that waits."""

    reply_id: Binding | None = None
    """End only this reply."""
    request_id: Binding | None = None
    """Just this request; one that waits is dropped."""
    message: Messages = ()
    """Becomes the next request."""

    _checked = field_validator("message")(from_outside)


class StopBackground(Value):
    """Stop background work: what this call started, or all of it."""

    call_id: Binding | None = Field(default=None, max_length=MAX_ID_CHARS)
    """Id of the call that started the command or sub-agent. Without it, all are stopped."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)


class ExternalResultItem(Value):
    id: Binding
    output: Any
    """Text, a list of text and data blocks, or any JSON value, which the model reads as JSON."""
    state: Literal["success", "error"] = "success"
    partial: bool = False


class ExternalResult(Value):
    reply_id: Binding | None = None
    results: tuple[ExternalResultItem, ...] = Field(min_length=1)
    by: str = Field(default="", max_length=MAX_ID_CHARS)


class ExternalExecutionResultEvent(OpenValue):
    """The seed's event, valid as it stands (agentscope/event)."""

    type: Literal["EXTERNAL_EXECUTION_RESULT"] = "EXTERNAL_EXECUTION_RESULT"
    reply_id: Binding
    execution_results: Many[ToolResultBlock] = Field(min_length=1)

    @field_validator("execution_results")
    @classmethod
    def _ended(cls, results: tuple[ToolResultBlock, ...]) -> tuple[ToolResultBlock, ...]:
        for result in results:
            if result.state not in (ToolResultState.SUCCESS, ToolResultState.ERROR):
                raise ValueError(f"state {result.state.value!r} can't come from outside; send 'success' or 'error'")
        return results

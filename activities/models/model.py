"""A model takes one request and gives one reply, with pieces on the way.

The table of stop reasons has every word that a provider, or a server that speaks like one, is known to use. Servers
pass each other's words on, so there is one table for all. What an API can't express is said once in a session.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any, Literal, Protocol

from longhaul.agent.values.conversation.messages import Msg, StopReason, TextBlock, ThinkingBlock, ToolCallBlock, Usage
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.profiles import ModelProfile


def scrub(text: str) -> str:
    """`text` with surrogate pairs joined and each lone surrogate replaced by U+FFFD; all else is kept, also NUL."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def scrub_json(value: Any) -> Any:
    """`value` (JSON: dicts, lists, scalars) with every string and key scrubbed."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {scrub(str(key)): scrub_json(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [scrub_json(child) for child in value]
    return value


REFUSAL = "refusal"
"""Our word for an answer that OpenAI's APIs mark as one by its parts."""

_WORDS: Mapping[StopReason, str] = {
    StopReason.END: "end_turn stop_sequence tool_use stop tool_calls function_call completed"
    " eos eos_token stop_token complete tool_call end_of_turn finished",
    StopReason.LENGTH: "max_tokens length max_output_tokens max_length token_limit error_limit continuation",
    # Stopped in the midst for no limit of ours, or with a call that the server itself could not read: asked again, the
    # model may do better.
    StopReason.PAUSED: "pause_turn compaction steered max_messages incomplete malformed_function_call"
    " unexpected_tool_call too_many_tool_calls malformed_model_output malformed_tool_use malformed_response"
    " missing_thought_signature repetition",
    StopReason.WINDOW: "model_context_window_exceeded model_length context_length_exceeded",
    StopReason.REFUSED: REFUSAL,
    StopReason.FILTERED: "content_filter content_filtered guardrail_intervened safety recitation language blocklist"
    " prohibited_content spii image_safety image_recitation image_prohibited_content sensitive error_toxic"
    " content_policy_violation",
    StopReason.UNKNOWN: "other image_other no_image finish_reason_unspecified",
}

_STOPS: Mapping[str, StopReason] = {word: stop for stop, words in _WORDS.items() for word in words.split()}

_FAILED_WORDS = (
    "error abort aborted network_error insufficient_system_resource failed cancelled queued in_progress server_error"
    " timeout user_cancel"
)
_FAILED = frozenset(_FAILED_WORDS.split())
_NOTHING = frozenset({"", "null", "none"})


def stop_of(stop_reason: str) -> StopReason:
    """What a provider's word comes to. Case does not count; of `filter: WORD`, as Gemini has it, the last word does."""
    word = _plain(stop_reason)
    return StopReason.END if word in _NOTHING else _STOPS.get(word, StopReason.UNKNOWN)


def has_failed(stop_reason: str) -> bool:
    """Whether the word says that the server itself failed in the midst: worth another attempt."""
    return _plain(stop_reason) in _FAILED


def tells_nothing(stop_reason: str) -> bool:
    """Whether the stream has not told how it ended: some servers write so in every piece but the last."""
    return _plain(stop_reason) in _NOTHING


def is_known(stop_reason: str) -> bool:
    """Whether the word stands in a table here."""
    return _plain(stop_reason) in {*_STOPS, *_FAILED, *_NOTHING}


def _plain(stop_reason: str) -> str:
    return stop_reason.rpartition(":")[2].strip().lower().replace("-", "_")


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The schema that an answer has to fit. The provider must call a tool of this name with these arguments."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of an object."""


@dataclass(slots=True)
class KeptAnswer:
    """An answer that its provider makes whether or not somebody listens, and keeps for some minutes. Who sends the same
    request again picks it up, and it is paid for once. An attempt's heartbeats tell the next one of it."""

    request: str = ""
    """Digest of the request, to the byte."""
    response: str = ""
    """The provider's id of the answer; empty while it has not started."""
    sequence: int = -1
    """Of the newest event that was read."""
    picked_up: bool = False
    """It was started by an earlier attempt."""
    stop: Callable[[], Awaitable[object]] | None = None
    """Ends it at its provider: nobody wants it any more."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call.

    `messages` are the recorded messages in order, one for each model call and each tool result. Join neighbours of one
    role for a provider that wants roles in turn. The results of one turn's calls follow the assistant message that made
    them, in any order, with nothing in between.
    """

    model: str
    """The provider's name of the model, without Longhaul's prefix. With a profile, the name that tells the model's
    family; the server gets the profile's name."""
    system: str
    messages: Sequence[Msg]
    tools: Sequence[ToolDescriptor]
    config: ModelConfig
    call_number: int = 0
    """Number of model calls that the session made before this one. A scripted model answers with that line."""
    attempt: int = 1
    shortened: bool = False
    """The provider refused the same call as too long; this call has a shorter context."""
    answer: AnswerSchema | None = None
    """Schema to ask for instead of a free reply. `activities.models.requests.answer_form.answer_of` reads the
    answer."""
    no_calls: bool = False
    """The request has the tools, for the provider's prompt cache, but the model may call none."""
    must_call: str = ""
    """The tool that the model must call, if the provider can be told so. Empty: the model decides."""
    purpose: Literal["reply", "summary", "judgement", "sampling"] = "reply"
    """What the answer is for: the conversation, a shorter context, the risk of a tool call, or a server. Each purpose
    is counted separately; a scripted model has separate lines for summaries."""
    behind_prefix: Literal["", "cached", "cold"] = ""
    """For a question that is not part of the conversation. All messages but the last are sent as in the conversation,
    so that the provider reads them from its cache. The schema is then requested in words, because another tool would
    change what comes before the messages. `cold`: the provider's cache no longer has the messages."""
    cache_key: str = ""
    """Key that all calls of one session share, and no other session's calls. It leads them to the machine with the
    session's cache."""
    kept: KeptAnswer | None = None
    """Set for a call whose answer a later attempt may fetch."""
    refused: frozenset[str] = frozenset()
    """What the provider has refused for this model, by the names of `requests.refused_parameters`."""
    late_tools: Sequence[ToolDescriptor] = ()
    """Tools that come where the hint with their names stands, for a model that takes them there. `tools` lacks them."""
    profile: ModelProfile | None = None
    """The profile, if the model was called by a profile's name. `activities.models.providers` sets it."""

    @property
    def is_of_conversation(self) -> bool:
        """Whether what stands before its last message is what other calls have sent or will send."""
        return self.purpose == "reply" or bool(self.behind_prefix)

    @property
    def reads_cache(self) -> bool:
        """Whether marks for a provider's cache pay: a call has written what stands here, or one will read it."""
        return self.purpose == "reply" or self.behind_prefix == "cached"

    def with_messages(self, messages: Sequence[Msg]) -> "ModelRequest":
        """The same request where each of these is the one that it has."""
        same = all(map(is_, messages, self.messages))
        return self if same else replace(self, messages=messages)


@dataclass(frozen=True, slots=True)
class Delta:
    """A part of a reply, while the reply streams."""

    kind: Literal["text", "thinking", "tool_call"]
    index: int
    """Index of the reply's block that the delta belongs to."""
    text: str
    tool_call_id: str = ""
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    content: tuple[TextBlock | ThinkingBlock | ToolCallBlock, ...]
    """Blocks in the order in which the model produced them. `ToolCallBlock.input` is the raw string, valid JSON or
    not."""
    usage: Usage
    model: str
    """The provider's name of the model that answered."""
    stop_reason: str = ""
    """Why the model stopped, in the provider's word: end_turn, tool_use, max_tokens, refusal, …."""
    notes: tuple[str, ...] = field(default=())
    """What the provider's API could not express, so that Longhaul left it out or changed it. For the log."""
    refusal: str = ""
    """What the provider says about a refusal besides the content, for a person."""
    cache_miss: str = ""
    """The provider's word for why its cache could not serve the earlier request. Empty: it says nothing."""

    @property
    def stop(self) -> StopReason:
        """The stop reason as one of Longhaul's."""
        return stop_of(self.stop_reason)


class Model(Protocol):
    """A provider's API. Raises the errors of the provider's SDK, which `failures.failure_classification` reads."""

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply: ...

    async def close(self) -> None: ...


log = logging.getLogger(__name__)

MOST_NOTES = 20
"""Of one reply, that are recorded."""
SESSIONS_KEPT = 1_000
"""Of one that was forgotten it is said again."""


class SaidOnce:
    """What this worker has said, by session."""

    def __init__(self) -> None:
        self._said: dict[str, set[tuple[str, str]]] = {}

    def tell(self, session: str, model: str, reply: ModelReply) -> None:
        """Log those notes of the reply that are new in this session, for whoever looks after the worker."""
        said = self._said.pop(session, set[tuple[str, str]]())
        self._said[session] = said
        for note in reply.notes:
            if (model, note) not in said:
                said.add((model, note))
                log.warning("%s in session %s: %s", model, session, note)
        if len(self._said) > SESSIONS_KEPT:
            del self._said[next(iter(self._said))]

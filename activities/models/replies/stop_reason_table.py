"""The table of stop reasons: every word that a provider, or a server that speaks like one, is known to use.

Servers pass each other's words on, so there is one table for all three APIs; no word means two things. Sources: the
types of both SDKs (a test compares), and for the others their API references: Gemini, Mistral, DeepSeek, Zhipu, Cohere,
Bedrock, TGI, Together, vLLM, SGLang.
"""

from collections.abc import Mapping

from longhaul.agent.values.conversation.messages import StopReason

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

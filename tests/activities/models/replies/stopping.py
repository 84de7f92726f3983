"""Answers of the three APIs that stop for a given reason, as bytes on the wire."""

from typing import Any

from tests.activities.models.wire import chat_chunk, chunks, claude_message, events, response_event

CLAUDE, RESPONSES, CHAT = "anthropic:claude-haiku-4-5", "openai:gpt-4.1", "openai-chat:qwen3"
APIS = (CLAUDE, RESPONSES, CHAT)


def stopping(model: str, reason: str, words: str = "Fair wi", **more: Any) -> bytes:
    """`words` and then that reason, as the API of this model tells it."""
    if model == CLAUDE:
        return _claude(reason, words, **more)
    return _response(reason, words) if model == RESPONSES else chunks(*_said(words), chat_chunk({}, reason))


def _claude(reason: str, words: str, **more: Any) -> bytes:
    text = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}},
        {"type": "content_block_stop", "index": 0},
    ]
    return events(
        {"type": "message_start", "message": claude_message(input_tokens=11, output_tokens=1)},
        *(text if words else []),
        {"type": "message_delta", "delta": {"stop_reason": reason, **more}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )


def _response(reason: str, words: str) -> bytes:
    """Its reasons are a status, or why one is incomplete."""
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    if reason == "incomplete":
        end = response_event("response.incomplete", status="incomplete", usage=usage)
    elif reason in ("completed", "failed", "in_progress", "cancelled", "queued"):
        end = response_event("response.completed", status=reason, usage=usage)
    else:
        details = {"reason": reason}
        end = response_event("response.incomplete", status="incomplete", usage=usage, incomplete_details=details)
    item = {"type": "message", "id": "msg_9", "role": "assistant", "status": "in_progress", "content": []}
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_9"}
    said = [
        {"type": "response.output_item.added", "output_index": 0, "item": item, "sequence_number": 2},
        {**delta, "delta": words, "sequence_number": 3},
    ]
    return events(*(said if words else []), end)


def _said(words: str) -> list[dict[str, Any]]:
    return [chat_chunk({"role": "assistant", "content": words})] if words else []


def half_a_call(model: str, arguments: str, tool: str = "fetch", reason: str = "") -> bytes:
    """A call in the midst of whose arguments the limit of output tokens was reached."""
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    if model == CLAUDE:
        block = {"type": "tool_use", "id": "c-half", "name": tool, "input": {}}
        piece = {"type": "input_json_delta", "partial_json": arguments}
        return events(
            {"type": "message_start", "message": claude_message(input_tokens=11, output_tokens=1)},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": piece},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 7}},
            {"type": "message_stop"},
        )
    if model == CHAT:
        call = {"index": 0, "id": "c-half", "type": "function", "function": {"name": tool, "arguments": arguments}}
        return chunks(chat_chunk({"role": "assistant", "tool_calls": [call]}), chat_chunk({}, reason or "length"))
    item = {"type": "function_call", "id": "fc_1", "call_id": "c-half", "name": tool, "arguments": ""}
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1"}
    details = {"reason": "max_output_tokens"}
    return events(
        {"type": "response.output_item.added", "output_index": 0, "item": item, "sequence_number": 2},
        {**delta, "delta": arguments, "sequence_number": 3},
        response_event("response.incomplete", status="incomplete", usage=usage, incomplete_details=details),
    )


def refusing_in_parts(model: str, words: str, *, streamed: bool = True) -> bytes:
    """A refusal of OpenAI's: the reason says nothing of it. Not `streamed`: the finished item alone has the text."""
    if model == CHAT:
        return chunks(chat_chunk({"role": "assistant", "refusal": words}), chat_chunk({}, "stop"))
    item = {"type": "message", "id": "msg_9", "role": "assistant", "status": "in_progress", "content": []}
    done = {**item, "status": "completed", "content": [{"type": "refusal", "refusal": words}]}
    delta = {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "item_id": "msg_9"}
    return events(
        {"type": "response.output_item.added", "output_index": 0, "item": item, "sequence_number": 2},
        *([{**delta, "delta": words, "sequence_number": 3}] if streamed else []),
        {"type": "response.output_item.done", "output_index": 0, "item": done, "sequence_number": 4},
        response_event("response.completed", status="completed"),
    )

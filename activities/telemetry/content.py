"""Words of people, models and tools on spans: none, unless `LONGHAUL_OTEL_CONTENT=on`, and masked then."""

import json
from collections.abc import Sequence
from typing import Any

from opentelemetry.trace import Span

from longhaul.activities.masking.masker import Masker
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.agent.values.conversation.messages import ContentBlock, Msg, ToolResultBlock

LONGEST_CHARS = 100_000
"""Of one attribute: an exporter keeps spans in memory until they are sent."""


class Content:
    def __init__(self, masker: Masker, *, wanted: bool) -> None:
        self._masker = masker
        self._wanted = wanted

    def asked(self, span: Span, request: ModelRequest) -> None:
        if self._wanted:
            self._put(span, "gen_ai.system_instructions", [{"type": "text", "content": request.system}])
            self._put(span, "gen_ai.input.messages", [_message(each) for each in request.messages])

    def answered(self, span: Span, reply: ModelReply) -> None:
        if self._wanted:
            said = {"role": "assistant", "parts": _parts(reply.content), "finish_reason": reply.stop_reason}
            self._put(span, "gen_ai.output.messages", [said])

    def called(self, span: Span, arguments: str | None) -> None:
        if self._wanted and arguments is not None:
            self._put(span, "gen_ai.tool.call.arguments", arguments)

    def returned(self, span: Span, result: ToolResultBlock) -> None:
        if self._wanted:
            self._put(span, "gen_ai.tool.call.result", result.model_dump(mode="json")["output"])

    def _put(self, span: Span, name: str, value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        span.set_attribute(name, self._masker.masked(text)[:LONGEST_CHARS].encode("utf-8", "replace").decode())


def _message(message: Msg) -> dict[str, Any]:
    return {"role": message.role, "parts": _parts(message.content)}


def _parts(blocks: Sequence[ContentBlock]) -> list[dict[str, Any]]:
    return [block.model_dump(mode="json") for block in blocks]

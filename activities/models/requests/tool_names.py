"""Names of tools as every provider takes them, and back: what a model calls by such a name is called by its own.

Providers take 64 letters, digits, `_` and `-` (OpenAI, Bedrock), and not all of them a digit (Gemini) or `_` (Kimi) in
front.
Another name is sent with what can't be in it replaced, and with a digest, so that two never become one.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.agent.values.conversation.messages import ToolCallBlock

_TAKEN = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_LONGEST = 64
_DIGEST_CHARS = 8


def wire_name(name: str) -> str:
    """The name of a tool as it is sent, also of one that is no longer offered, or that the model has invented."""
    if _TAKEN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
    plain = plain if re.match(r"[A-Za-z]", plain) else f"tool_{plain}"
    return f"{plain[: _LONGEST - _DIGEST_CHARS - 1]}_{digest}"


class ToolNames:
    """Of one request's tools."""

    def __init__(self, names: Sequence[str]) -> None:
        self._own: Mapping[str, str] = {sent: name for name in names if (sent := wire_name(name)) != name}

    def into(self, request: ModelRequest) -> ModelRequest:
        """The request with its tools as they are sent; the same one where every name is taken as it is."""
        if not self._own:
            return request
        tools = [tool.model_copy(update={"name": wire_name(tool.name)}) for tool in request.tools]
        return replace(request, tools=tools)

    def out_of(self, reply: ModelReply) -> ModelReply:
        """The reply, its calls by the tools' own names."""
        if not self._own:
            return reply
        content = tuple(
            block.model_copy(update={"name": self._own.get(block.name, block.name)})
            if isinstance(block, ToolCallBlock)
            else block
            for block in reply.content
        )
        return replace(reply, content=content)

    def heard(self, on_delta: Callable[[Delta], None]) -> Callable[[Delta], None]:
        """`on_delta`, which hears the tools' own names."""
        if not self._own:
            return on_delta
        return lambda delta: on_delta(replace(delta, tool_name=self._own.get(delta.tool_name, delta.tool_name)))

"""Has a model asked in the name of an MCP server (sampling): words alone, masked both ways, within the agent's bounds.

The server sees what the model answers to its own words, and nothing of the session.
"""

from collections.abc import Mapping
from typing import Any

import mcp_types as types

from longhaul.activities.masking.masker import Masker
from longhaul.activities.models.side_model import NotAsked, SideModel
from longhaul.activities.process.progress import progress
from longhaul.agent.plain.text import harmless
from longhaul.agent.values.conversation.messages import BROKEN_OFF, AssistantMsg, Msg, TextBlock, UserMsg

MOST_MESSAGES = 100
SHOWN_CHARS = 300
REFUSED = -1
"""Code of the protocol for what a client does not want."""


class Samples:
    """Of one call of a tool."""

    def __init__(self, server: str, model: SideModel | None, masker: Masker) -> None:
        self._server, self._model, self._masker = server, model, masker
        self.told = list[dict[str, str]]()
        """What was asked and answered, cut short: for the record."""

    async def answer(self, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        """Raises NotAsked."""
        if self._model is None:
            raise NotAsked("its agent does not let it have a model asked (sampling)")
        messages = self._messages(params)
        system = self._masker.masked(params.system_prompt or "")
        progress(f"[the MCP server {harmless(self._server)!r} has {self._model.name} asked]\n")
        reply = await self._model.answer(system, messages, params.max_tokens)
        text = self._masker.masked("".join(block.text for block in reply.content if isinstance(block, TextBlock)))
        asked = messages[-1].get_text_content() if messages else ""
        self.told.append({"asked": asked[:SHOWN_CHARS], "answered": text[:SHOWN_CHARS], "model": reply.model})
        why = "maxTokens" if reply.stop in BROKEN_OFF else "endTurn"
        content = types.TextContent(type="text", text=text)
        return types.CreateMessageResult(role="assistant", content=content, model=reply.model, stop_reason=why)

    async def answers(self, asked: Mapping[str, types.CreateMessageRequestParams]) -> dict[str, dict[str, Any]]:
        """By key, as they are sent with the call. Raises NotAsked."""
        found = {key: await self.answer(params) for key, params in asked.items()}
        return {key: one.model_dump(mode="json", by_alias=True, exclude_none=True) for key, one in found.items()}

    async def answer_meanwhile(
        self, context: object, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """The same for a server that asks while its call runs."""
        try:
            return await self.answer(params)
        except NotAsked as error:
            return types.ErrorData(code=REFUSED, message=str(error))

    def _messages(self, params: types.CreateMessageRequestParams) -> tuple[Msg, ...]:
        if params.tools or params.max_tokens < 1 or not 0 < len(params.messages) <= MOST_MESSAGES:
            raise NotAsked(
                f"it asks with tools of its own, for no token, or with none of 1 to {MOST_MESSAGES} messages"
            )
        return tuple(self._message(message) for message in params.messages)

    def _message(self, message: types.SamplingMessage) -> Msg:
        texts = [block.text for block in message.content_as_list if isinstance(block, types.TextContent)]
        if len(texts) < len(message.content_as_list):
            raise NotAsked("it asks about more than words (an image, a sound or a tool's call), which is not sent")
        text = self._masker.masked("\n".join(texts))
        return AssistantMsg(self._server, text) if message.role == "assistant" else UserMsg(self._server, text)


def model_requests(result: types.InputRequiredResult) -> dict[str, types.CreateMessageRequestParams]:
    """What a call came to that wants models to be asked and nothing else; empty for any other."""
    asked = result.input_requests or {}
    wanted = {key: one.params for key, one in asked.items() if isinstance(one, types.CreateMessageRequest)}
    return wanted if len(wanted) == len(asked) else {}

"""OpenAI's Chat Completions API and the many servers that speak it (DashScope, vLLM, llama.cpp, …), always streamed.

Compatible servers leave out what OpenAI always sends (usage, call ids, names in time), so every field is optional here.
"""

from collections.abc import Callable
from typing import Any

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from longhaul.activities.models.apis.chat_thoughts import HeardReasoning
from longhaul.activities.models.apis.openai_chat_prompt import build_payload
from longhaul.activities.models.apis.streams import finish, read_all, silence_of, timeout_of
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.profiles import is_told_to_reason, profiled
from longhaul.activities.models.replies.assembly import Assembly, dict_of, id_of, list_of, text_of
from longhaul.activities.models.replies.stop_reason_table import REFUSAL, tells_nothing
from longhaul.activities.models.replies.usage import usage_of_chunk
from longhaul.activities.models.requests.openai_parts import is_reasoning_model
from longhaul.activities.models.requests.sampling_parameters import noted, refused_by_chat
from longhaul.activities.models.requests.structured_output import forced_or_in_words
from longhaul.activities.models.requests.wire_items import mapped, sent
from longhaul.activities.models.sign_in import signing_in
from longhaul.agent.values.conversation.messages import Usage

_OF_A_CALL = ("index", "id", "type", "function")


class OpenAIChatModel:
    """Raises the SDK's errors and `activities.models.failures.errors`; nothing is retried here, Temporal does that."""

    def __init__(self, client: openai.AsyncOpenAI, *, dashscope: bool = False, rewrites: bool = False) -> None:
        """`rewrites`: the client makes another address of the model's name in what it is given."""
        self._client = client
        self._sent = mapped if rewrites else sent
        self._dashscope = dashscope
        self._host = self._client.base_url.host
        self._official = self._host == "api.openai.com"

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forced_or_in_words(request, lambda asked, notes: self._call(asked, notes, on_delta))

    async def _call(self, request: ModelRequest, notes: list[str], on_delta: Callable[[Delta], None]) -> ModelReply:
        official = self._official or is_told_to_reason(request)
        payload = build_payload(request, notes, official=official, dashscope=self._dashscope)
        without = noted(request.profile, refused_by_chat(request.model, official=official), notes)
        payload = profiled(payload, request, without=without)
        reply = ChatReply(on_delta, request, notes)
        with signing_in():
            stream = await self._client.post(
                "/chat/completions",
                cast_to=ChatCompletion,
                stream=True,
                stream_cls=openai.AsyncStream[ChatCompletionChunk],
                **self._sent(payload, "messages", timeout_of(request.config)),
            )
        thinks = is_reasoning_model(request.model)
        await read_all(stream, reply, silence_of(request.config, self._host, thinks_unseen=thinks))
        return reply.finish(request)

    async def close(self) -> None:
        await self._client.close()


class ChatReply:
    """Puts an answer together from its events, which are plain JSON: nothing in it is certain with a compatible
    server."""

    def __init__(self, on_delta: Callable[[Delta], None], request: ModelRequest, notes: list[str]) -> None:
        self.assembly = Assembly(on_delta, request)
        self.usage = Usage()
        self._reasoning = HeardReasoning(self.assembly)
        self._notes = notes
        self._model = ""
        self._stop_reason = ""
        self._has_stopped = False
        """Nothing of the answer has come since it said so."""
        self._refused = False
        """The API says "stop" of such an answer, and tells it by the field of its text alone."""
        self.is_over = False

    @property
    def is_whole(self) -> bool:
        return self.is_over or self._has_stopped

    def end(self) -> None:
        self.is_over = True

    @staticmethod
    def events_of(body: dict[str, Any]) -> list[dict[str, Any]]:
        told = [dict_of(choice) for choice in list_of(body.get("choices"))]
        is_answer = any(isinstance(choice.get("message"), dict) for choice in told)
        return [body] if is_answer else []

    def take(self, event: dict[str, Any]) -> None:
        self._model = text_of(event.get("model")) or self._model
        self.usage = usage_of_chunk(event) or self.usage
        for choice in map(dict_of, list_of(event.get("choices"))):
            if _index(choice.get("index")):
                continue  # of several answers
            stop_reason = text_of(choice.get("finish_reason"))
            # A server that does not stream sends a message.
            said = dict_of(choice.get("delta")) or dict_of(choice.get("message"))
            if said.get("content") or said.get("tool_calls"):
                self._has_stopped = False
            self._add(said, is_whole="message" in choice)
            self._stop_reason = stop_reason or self._stop_reason
            self._has_stopped = self._has_stopped or not tells_nothing(stop_reason)

    def _add(self, said: dict[str, Any], *, is_whole: bool) -> None:
        self._reasoning.take(said)
        self._say(said.get("content"))
        self._say(said.get("refusal"))
        self._refused = self._refused or bool(said.get("refusal"))
        for place, piece in enumerate(map(dict_of, list_of(said.get("tool_calls")))):
            function = dict_of(piece.get("function"))
            index = _index(piece.get("index"))
            draft = self.assembly.call_piece(
                ("place", place) if is_whole and index is None else index,
                id_of(piece.get("id")),
                text_of(function.get("name")),
                function.get("arguments"),
            )
            if draft is not None:
                draft.beside |= {name: value for name, value in piece.items() if name not in _OF_A_CALL}
                self._reasoning.take_call(draft, piece)

    def _say(self, content: object) -> None:
        text, thought = said_in_content(content)
        if thought:
            self._reasoning.think(thought)
        if text:
            self.assembly.say("text", "text", text)

    def finish(self, request: ModelRequest, assembly: Assembly | None = None) -> ModelReply:
        """`assembly`: with the same calls, where the other blocks were read by somebody else."""
        for each in (self.assembly, *([assembly] if assembly else [])):
            each.close_all()
        return finish(
            assembly or self.assembly,
            request,
            model=self._model,
            usage=self.usage,
            stop_reason=REFUSAL if self._refused and self.is_whole else self._stop_reason if self.is_whole else "",
            notes=self._notes,
            is_whole=self.is_whole,
        )


def _index(value: object) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def said_in_content(content: object) -> tuple[str, str]:
    """Words and thoughts: text, or a list of parts as Mistral's models that think have it."""
    words, thoughts = list[str](), list[str]()
    for part in content if isinstance(content, list) else [content]:
        told = dict_of(part)
        words.append(text_of(part) or text_of(told.get("text")) or text_of(told.get("refusal")))
        inner = told.get("thinking")
        for each in inner if isinstance(inner, list) else [inner]:
            thoughts.append(text_of(each) or text_of(dict_of(each).get("text")))
    return "".join(words), "".join(thoughts)

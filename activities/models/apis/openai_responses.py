"""OpenAI through its Responses API, always streamed and stateless: the whole conversation goes with each call."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import openai
from openai.types.responses import Response, ResponseStreamEvent

from longhaul.activities.models.apis.openai_responses_prompt import PHASE, PHASES, build_payload
from longhaul.activities.models.apis.streams import finish, read_all, silence_of, timeout_of
from longhaul.activities.models.failures.errors import ProviderError
from longhaul.activities.models.failures.status_table import STATUS_OF_TYPE
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.profiles import profiled
from longhaul.activities.models.replies.assembly import Assembly
from longhaul.activities.models.replies.stop_reason_table import REFUSAL
from longhaul.activities.models.replies.usage import openai_usage
from longhaul.activities.models.requests.openai_parts import is_reasoning_model
from longhaul.activities.models.requests.sampling_parameters import noted, refused_by_responses
from longhaul.activities.models.requests.structured_output import forced_or_in_words
from longhaul.activities.models.requests.wire_items import sent
from longhaul.activities.models.sign_in import signing_in
from longhaul.agent.values.conversation.messages import Usage

NOT_ENCRYPTED = "The server gives out no reasoning that it would take back."
NOT_SUMMARISED = "The server gives out no summaries of its model's reasoning, so that none are shown."
_NOT_GIVEN: Mapping[str, tuple[re.Pattern[str], str]] = {
    "encrypted": (
        re.compile(r"encrypted.content is not supported|['`\"]include['`\"\[]", re.IGNORECASE),
        NOT_ENCRYPTED,
    ),
    "summarised": (re.compile(r"reasoning.{0,3}summar", re.IGNORECASE), NOT_SUMMARISED),
}
"""How servers refuse to give out what a request asks for beside the answer, and what is said of it. The first: Azure's
deployments of models that do not reason, and servers that know no such field; the second: OpenAI, to organisations that
it has not verified."""


class OpenAIResponsesModel:
    """Raises the SDK's errors and `activities.models.failures.errors`; nothing is retried here, Temporal does that."""

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self._client = client
        self._not_given = set[tuple[str, str]]()
        """Models, and what their servers have refused to give out."""

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forced_or_in_words(request, lambda asked, notes: self._call(asked, notes, on_delta))

    async def _call(self, request: ModelRequest, notes: list[str], on_delta: Callable[[Delta], None]) -> ModelReply:
        wanted = {what: (request.model, what) not in self._not_given for what in _NOT_GIVEN}
        payload = build_payload(request, notes, **wanted)
        without = noted(request.profile, refused_by_responses(request.model), notes)
        payload = profiled(payload, request, without=without)
        reply = _Reply(on_delta, notes)
        try:
            with signing_in():
                stream = await self._client.post(
                    "/responses",
                    cast_to=Response,
                    stream=True,
                    stream_cls=openai.AsyncStream[ResponseStreamEvent],
                    **sent(payload, "input", timeout_of(request.config)),
                )
        except openai.APIStatusError as error:
            for what, (words, note) in _NOT_GIVEN.items():
                if wanted[what] and words.search(str(error)):
                    # Remembered: each call of the session would be refused once.
                    self._not_given.add((request.model, what))
                    return await self._call(request, [*notes, note], on_delta)
            raise
        host, thinks = self._client.base_url.host, is_reasoning_model(request.model)
        await read_all(stream, reply.take, silence_of(request.config, host, thinks_unseen=thinks))
        return reply.finish(request)

    async def close(self) -> None:
        await self._client.close()


class _Reply:
    def __init__(self, on_delta: Callable[[Delta], None], notes: list[str]) -> None:
        self._assembly = Assembly(on_delta)
        self._notes = notes
        self._model = ""
        self._stop_reason = ""
        self._refused = False
        """The API says "completed" of such an answer, and tells it by the type of its parts alone."""
        self._usage = Usage()

    def take(self, event: ResponseStreamEvent) -> None:
        match event.type:
            case "response.output_item.added":
                self._open(event.output_index, event.item)
            case "response.output_text.delta" | "response.refusal.delta":
                self._assembly.add(event.output_index, "text", event.delta)
                self._refused = self._refused or event.type == "response.refusal.delta"
            case "response.reasoning_summary_part.added" if self._assembly.text_of(event.output_index):
                self._assembly.add(event.output_index, "thinking", "\n\n")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._assembly.add(event.output_index, "thinking", event.delta)
            case "response.function_call_arguments.delta":
                self._assembly.add(event.output_index, "tool_call", event.delta)
            case "response.output_item.done":
                self._complete(event.output_index, event.item)
            case "response.completed" | "response.incomplete":
                self._end(event.response)
            case "response.failed":
                error = event.response.error
                raise _failure(getattr(error, "code", None), getattr(error, "message", None))
            case "error":
                raise _failure(event.code, event.message)
            case _:
                pass  # progress, annotations, and tools that the provider runs itself

    def _open(self, index: int, item: Any) -> None:
        match item.type:
            case "function_call":
                self._assembly.open(index, "tool_call", call_id=item.call_id or "", tool_name=item.name or "")
            case "reasoning":
                self._assembly.open(index, "thinking")
            case "message":
                self._assembly.open(index, "text")
                self._keep_phase(index, item)
            case other:
                self._notes.append(f"An item of type {other!r} in the reply was left out.")

    def _complete(self, index: int, item: Any) -> None:
        """The finished item repeats all of it: it fills in what a compatible server did not stream."""
        match item.type:
            case "function_call":
                self._assembly.open(index, "tool_call", call_id=item.call_id or "", tool_name=item.name or "")
                if not self._assembly.text_of(index):
                    self._assembly.add(index, "tool_call", item.arguments or "")
            case "reasoning":
                self._assembly.open(index, "thinking")
                if not self._assembly.text_of(index):
                    self._assembly.add(index, "thinking", "\n\n".join(part.text for part in item.summary or ()))
                if item.encrypted_content:
                    self._assembly.keep(index, item_id=item.id, encrypted_content=item.encrypted_content)
            case "message":
                self._assembly.open(index, "text")
                self._keep_phase(index, item)
                self._refused = self._refused or any(part.type == "refusal" for part in item.content or ())
                for part in () if self._assembly.text_of(index) else item.content or ():
                    self._assembly.add(
                        index, "text", getattr(part, "text", None) or getattr(part, "refusal", None) or ""
                    )

    def _keep_phase(self, index: int, item: Any) -> None:
        if (phase := getattr(item, PHASE, None)) in PHASES:
            self._assembly.keep(index, **{PHASE: phase})

    def _end(self, response: Any) -> None:
        self._model = response.model or ""
        reason = getattr(response.incomplete_details, "reason", None)
        self._stop_reason = reason or response.status or "completed"
        self._usage = openai_usage(response.usage)

    def finish(self, request: ModelRequest) -> ModelReply:
        return finish(
            self._assembly,
            request,
            model=self._model,
            usage=self._usage,
            stop_reason=REFUSAL if self._refused and self._stop_reason else self._stop_reason,
            notes=self._notes,
        )


def _failure(code: str | None, message: str | None) -> ProviderError:
    # The codes that name the request (a bad image, a policy) have no status of their own: they are refusals.
    unknown = 400 if code else 500
    return ProviderError(STATUS_OF_TYPE.get(code or "", unknown), code or "", message or "")

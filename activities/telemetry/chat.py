"""Spans of model calls, `chat MODEL`: of replies, summaries and judgements alike, for all go through the providers."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.key_places import KeyPlace
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.telemetry.content import Content
from longhaul.activities.telemetry.model_calls import CountedProviders, named
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.profiles import ModelProfile


class WatchedProviders(CountedProviders):
    """Calls models as providers do, counts them where that is wanted, and makes a span of each call."""

    def __init__(
        self,
        tracer: Tracer,
        content: Content,
        environ: Mapping[str, str] = os.environ,
        places: Sequence[KeyPlace] = (),
        counted_to: str = "",
        profiles: Mapping[str, ModelProfile] | None = None,
    ) -> None:
        super().__init__(environ, places, counted_to, profiles)
        self._tracer = tracer
        self._content = content

    async def call(self, full_model_name: str, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        provider, model = named(self.true_name(full_model_name, request.config))
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "longhaul.purpose": request.purpose,
        }
        with self._tracer.start_as_current_span(
            f"chat {model}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            self._content.asked(span, request)
            try:
                reply = await super().call(full_model_name, request, _timed(span, on_delta))
            except Exception as error:
                span.set_attribute("error.type", judge(error).error_type)
                span.set_status(Status(StatusCode.ERROR))
                raise
            _describe(span, reply)
            self._content.answered(span, reply)
            return reply


def _timed(span: Span, on_delta: Callable[[Delta], None]) -> Callable[[Delta], None]:
    began, first = time.perf_counter(), True

    def heard(delta: Delta) -> None:
        nonlocal first
        if first:
            first = False
            span.set_attribute("gen_ai.response.time_to_first_chunk", time.perf_counter() - began)
        on_delta(delta)

    return heard


def _describe(span: Span, reply: ModelReply) -> None:
    span.set_attributes({"gen_ai.response.model": named(f"scripted:{reply.model}")[1], **_tokens(reply.usage)})
    if reply.stop_reason:
        span.set_attribute("gen_ai.response.finish_reasons", [reply.stop_reason])


def _tokens(usage: Usage) -> dict[str, Any]:
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_input_tokens,
    }

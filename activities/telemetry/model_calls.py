"""Counts calls of models by OpenTelemetry's conventions, `gen_ai.client.…`: of replies, summaries and judgements alike,
for all go through the providers."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from temporalio import activity

from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.key_places import KeyPlace
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.known_names import split_model
from longhaul.agent.values.spec.profiles import ModelProfile

PROVIDER_NAMES = {
    "openai-chat": "openai",
    "azure": "azure.ai.openai",
    "azure-chat": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock-mantle": "aws.bedrock",
    "foundry": "azure.ai.inference",
    "vertex": "gcp.vertex_ai",
    "ai:azure": "azure.ai.openai",
    "ai:bedrock": "aws.bedrock",
    "ai:google": "gcp.gemini",
    "ai:google-vertex": "gcp.vertex_ai",
    "ai:mistral": "mistral_ai",
}
"""Where the convention has another name than our prefix."""

TOKENS = {"otlp": "gen_ai.client.token.usage", "prometheus": "gen_ai_client_token_usage"}
SECONDS = {"otlp": "gen_ai.client.operation.duration", "prometheus": "gen_ai_client_operation_duration_seconds"}
"""By who takes them: Prometheus knows no dots, and has the unit in the name."""


class CountedProviders(Providers):
    """Calls models as providers do, and counts each call, also one that fails. Only within activities.

    `to`: `otlp` or `prometheus`; empty: nothing is counted.
    """

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        places: Sequence[KeyPlace] = (),
        to: str = "",
        profiles: Mapping[str, ModelProfile] | None = None,
    ) -> None:
        super().__init__(environ, places, profiles)
        self._to = to

    async def call(self, full_model_name: str, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        if not self._to:
            return await super().call(full_model_name, request, on_delta)
        provider, model = named(self.true_name(full_model_name, request.config))
        labels = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model}
        began = time.perf_counter()
        try:
            reply = await super().call(full_model_name, request, on_delta)
        except (Exception, asyncio.CancelledError) as error:
            kind = judge(error).error_type if isinstance(error, Exception) else "cancelled"
            self._took(time.perf_counter() - began, {**labels, "error.type": kind})
            raise
        labels["gen_ai.response.model"] = named(f"scripted:{reply.model}")[1]
        self._took(time.perf_counter() - began, labels)
        if reply.usage != Usage():
            self._read(reply.usage.input_tokens, {**labels, "gen_ai.token.type": "input"})
            self._read(reply.usage.output_tokens, {**labels, "gen_ai.token.type": "output"})
        return reply

    def _took(self, seconds: float, labels: Mapping[str, str]) -> None:
        meter = activity.metric_meter()
        meter.create_histogram_float(SECONDS[self._to], unit="s").record(seconds, self._spelled(labels))

    def _read(self, tokens: int, labels: Mapping[str, str]) -> None:
        meter = activity.metric_meter()
        meter.create_histogram(TOKENS[self._to], unit="{token}").record(tokens, self._spelled(labels))

    def _spelled(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {name.replace(".", "_") if self._to == "prometheus" else name: each for name, each in labels.items()}


def named(full_model_name: str) -> tuple[str, str]:
    """Provider and model as the conventions call them. Of a script's file the name, and not where it lies."""
    prefix, model = split_model(full_model_name)
    return PROVIDER_NAMES.get(prefix, prefix.removeprefix("ai:")), PurePath(
        model
    ).name if prefix == "scripted" else model

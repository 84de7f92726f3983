"""Metrics of what a worker does, counted where an activity ends: nothing is counted at a replay.

Calls of models are counted by OpenTelemetry's conventions, `gen_ai.client.…`: of replies, summaries and judgements
alike, for all go through the providers.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from temporalio import activity
from temporalio.common import MetricMeter
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.custom_agents.custom_agent_turns import CODE
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.profiles import KeyPlace
from longhaul.activities.models.providers import Providers
from longhaul.activities.telemetry import attempts
from longhaul.activities.telemetry.attempts import class_of, read_along
from longhaul.activities.telemetry.prices import Prices
from longhaul.agent.entries import (
    AnyEntry,
    BudgetExhausted,
    Checkpointed,
    ContextCompressed,
    ModelSaid,
    ReplyFinished,
    ToolReturned,
)
from longhaul.agent.journal import Journal
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.known_names import split_model
from longhaul.agent.values.spec.profiles import ModelProfile
from longhaul.agent.views.session_views import BudgetStanding, standing

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


class CountedActivities(Interceptor):
    def __init__(self, prices: Prices | None) -> None:
        self._prices = prices

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Counted(next, self._prices)


class _Counted(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, prices: Prices | None) -> None:  # noqa: A002  the SDK's name
        super().__init__(next)
        self._prices = prices

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        counting = _Counting(activity.metric_meter(), self._prices)
        attempts.listen(counting)
        try:
            result = await super().execute_activity(input)
        except (Exception, asyncio.CancelledError) as error:
            counting.add("longhaul_failures", 1, error_type=class_of(error))
            raise
        counting.count(result)
        return result


class _Counting:
    """Of one attempt. The SDK keeps one instrument to each name, however often it is made."""

    def __init__(self, meter: MetricMeter, prices: Prices | None) -> None:
        self._meter = meter
        self._prices = prices
        self._ended: list[ReplyFinished] = []
        self._seconds: dict[str, float] = {}
        self._exhausted: list[str] = []
        self._budget: BudgetStanding | None = None

    def written(self, entries: Sequence[AnyEntry], session: SessionState) -> None:
        """Counted when the checkpoint has succeeded: one that failed is made again."""
        began = {entry.reply_id: entry.at for entry in entries if entry.kind == "started"}
        self._ended = [entry for entry in entries if isinstance(entry, ReplyFinished)]
        self._seconds = {
            entry.reply_id: (entry.at - began[entry.reply_id]) / 1000
            for entry in self._ended
            if entry.reply_id in began
        }
        self._exhausted = [lack.name for entry in entries if isinstance(entry, BudgetExhausted) for lack in entry.lacks]
        self._budget = standing(Journal.over(session)) if session.spec.budget is not None else None

    def count(self, result: Any) -> None:
        match result:
            case ModelSaid() if result.model.startswith(CODE):
                self.add("longhaul_steps", 1, kind="code")
            case ModelSaid():
                self.add("longhaul_steps", 1, kind="model")
                self.add("longhaul_model_calls", 1, model=result.model)
                self._add_usage(usage := result.message.usage or Usage(), result.model)
                served = "miss" if result.cache_missed else "hit" if usage.cache_input_tokens else "none"
                self.add("longhaul_prompt_cache", 1, model=result.model, result=served, reason=result.cache_reason)
                self.add("longhaul_tokens", result.cache_missed, model=result.model, token_type="cache_missed")  # noqa: S106
                for _, read in read_along(result):
                    self.count(read)
            case ToolReturned():
                self.add("longhaul_steps", 1, kind="tool")
                self.add("longhaul_tool_calls", 1, tool=result.result.name, state=result.result.state.value)
            case ContextCompressed():
                self.add("longhaul_steps", 1, kind="compression")
                self.add("longhaul_compressions", 1, condenser=result.condenser)
                if result.usage is not None:
                    self._add_usage(result.usage, result.model)
            case Checkpointed():
                self.add("longhaul_notify_failures", 1 if result.notify_error else 0)
                self.add("longhaul_store_failures", 1 if result.store_error else 0)
                for entry in self._ended:
                    error_type = entry.error.type if entry.error else ""
                    self.add("longhaul_replies", 1, finish_reason=entry.reason.value, error_type=error_type)
                    if entry.reply_id in self._seconds:
                        seconds = self._meter.create_histogram_float("longhaul_reply_seconds", unit="s")
                        seconds.record(self._seconds[entry.reply_id], {"finish_reason": entry.reason.value})
                self._add_budget()
            case _:
                pass

    def _add_usage(self, usage: Usage, model: str) -> None:
        cached = usage.cache_input_tokens
        self.add("longhaul_tokens", usage.input_tokens, model=model, token_type="input")  # noqa: S106  no password
        self.add("longhaul_tokens", usage.output_tokens, model=model, token_type="output")  # noqa: S106
        self.add("longhaul_tokens", cached, model=model, token_type="cached")  # noqa: S106
        self.add("longhaul_tokens", usage.cache_creation_input_tokens, model=model, token_type="cache_write")  # noqa: S106
        if self._prices is not None and (cost := self._prices.cost(model, usage)) is not None:
            self._meter.create_histogram_float("longhaul_cost").record(cost, {"model": model})

    def _add_budget(self) -> None:
        for name in self._exhausted:
            self.add("longhaul_budget_exhausted", 1, limit=name)
        if self._budget is None:
            return
        shares = self._meter.create_histogram_float("longhaul_budget_share")
        for name, limit in self._budget.limits.items():
            for part in ("spent", "reserved", "left"):
                amounts: dict[str, float] = getattr(self._budget, part)
                shares.record(amounts.get(name, 0) / limit, {"limit": name, "part": part})

    def add(self, name: str, value: int, **labels: str) -> None:
        self._meter.create_counter(name).add(value, labels)

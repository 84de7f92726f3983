"""Metrics of what a worker does, counted where an activity ends: nothing is counted at a replay."""

import asyncio
from collections.abc import Sequence
from typing import Any

from temporalio import activity
from temporalio.common import MetricMeter
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.attempt import measures
from longhaul.activities.kinds.kind_turns import CODE
from longhaul.activities.telemetry.attempt_names import read_along
from longhaul.activities.telemetry.failure_class import class_of
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
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.views.session_views import BudgetStanding, standing


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
        measures.listen(counting)
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

    def written(self, entries: Sequence[AnyEntry], ledger: Ledger) -> None:
        """Counted when the checkpoint has succeeded: one that failed is made again."""
        began = {entry.reply_id: entry.at for entry in entries if entry.kind == "started"}
        self._ended = [entry for entry in entries if isinstance(entry, ReplyFinished)]
        self._seconds = {
            entry.reply_id: (entry.at - began[entry.reply_id]) / 1000
            for entry in self._ended
            if entry.reply_id in began
        }
        self._exhausted = [lack.name for entry in entries if isinstance(entry, BudgetExhausted) for lack in entry.lacks]
        self._budget = standing(Record.over(ledger)) if ledger.spec.budget is not None else None

    def count(self, result: Any) -> None:
        match result:
            case ModelSaid() if result.model.startswith(CODE):
                self.add("longhaul_steps", 1, kind="code")
            case ModelSaid():
                self.add("longhaul_steps", 1, kind="model")
                self.add("longhaul_model_calls", 1, model=result.model)
                self._add_usage(result.message.usage or Usage(), result.model)
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
                self._add_replies()
                self._add_budget()
            case _:
                pass

    def _add_usage(self, usage: Usage, model: str) -> None:
        cached = usage.cache_input_tokens
        self.add("longhaul_tokens", usage.input_tokens, model=model, token_type="input")  # noqa: S106  no password
        self.add("longhaul_tokens", usage.output_tokens, model=model, token_type="output")  # noqa: S106
        self.add("longhaul_tokens", cached, model=model, token_type="cached")  # noqa: S106
        self.add("longhaul_tokens", usage.cache_creation_input_tokens, model=model, token_type="cache_write")  # noqa: S106
        self.add("longhaul_prompt_cache", 1, model=model, result="hit" if cached else "miss")
        if self._prices is not None and (cost := self._prices.cost(model, usage)) is not None:
            self._meter.create_histogram_float("longhaul_cost").record(cost, {"model": model})

    def _add_replies(self) -> None:
        for entry in self._ended:
            error_type = entry.error.type if entry.error else ""
            self.add("longhaul_replies", 1, finish_reason=entry.reason.value, error_type=error_type)
            if entry.reply_id in self._seconds:
                seconds = self._meter.create_histogram_float("longhaul_reply_seconds", unit="s")
                seconds.record(self._seconds[entry.reply_id], {"finish_reason": entry.reason.value})

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

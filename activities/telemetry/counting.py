"""Metrics of what a worker does, counted where an activity ends: nothing is counted at a replay."""

import asyncio
from typing import Any

from temporalio import activity
from temporalio.common import MetricMeter
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.failure_kind import kind_of
from agent.entries import Checkpointed, ContextCompressed, ModelSaid, ToolReturned
from agent.messages import Usage


class CountedActivities(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Counted(next)


class _Counted(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        meter = activity.metric_meter()
        try:
            result = await super().execute_activity(input)
        except (Exception, asyncio.CancelledError) as error:
            _add(meter, "longhaul_failures", 1, error_type=kind_of(error))
            raise
        _count(meter, result)
        return result


def _count(meter: MetricMeter, result: Any) -> None:
    match result:
        case ModelSaid():
            _add(meter, "longhaul_model_calls", 1, model=result.model)
            _add_tokens(meter, result.message.usage or Usage(), result.model)
        case ToolReturned():
            _add(meter, "longhaul_tool_calls", 1, tool=result.result.name, state=result.result.state.value)
        case ContextCompressed():
            _add(meter, "longhaul_compressions", 1, condenser=result.condenser)
            _add_tokens(meter, result.usage or Usage(), result.model)
        case Checkpointed():
            _add(meter, "longhaul_notify_failures", 1 if result.notify_error else 0)
            _add(meter, "longhaul_store_failures", 1 if result.store_error else 0)
        case _:
            pass


def _add_tokens(meter: MetricMeter, usage: Usage, model: str) -> None:
    _add(meter, "longhaul_tokens", usage.input_tokens, model=model, token_type="input")  # noqa: S106  no password
    _add(meter, "longhaul_tokens", usage.output_tokens, model=model, token_type="output")  # noqa: S106
    _add(meter, "longhaul_tokens", usage.cache_input_tokens, model=model, token_type="cached")  # noqa: S106


def _add(meter: MetricMeter, name: str, value: int, **labels: str) -> None:
    """The SDK keeps one counter to each name, however often it is made."""
    meter.create_counter(name).add(value, labels)

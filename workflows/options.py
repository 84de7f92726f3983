"""Every timeout and retry policy, each with its reason. Seconds unless the type says otherwise."""

from datetime import timedelta
from typing import assert_never

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType, ActivityConfig

from activities.contract import MODEL_FAILED, PROBE_SECONDS
from agent.settings import ModelConfig
from agent.tools import Effect, ToolDescriptor

FIRST_RETRY = timedelta(seconds=0.2)
"""A killed worker's successor should not wait for the stock second."""

MODEL_HEARTBEAT = timedelta(seconds=2)
"""A dead worker is noticed after it: the call is paid for twice, but a person is waiting."""

_HEARTBEATS = {Effect.READ: 2.0, Effect.IDEMPOTENT: 5.0, Effect.ONCE: 30.0}
"""`once` is patient: a worker that only stalls must not turn a call that ran into an unknown outcome."""

LOST = ["TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat", "BlobsUnavailable"]
"""The server's names for a lost attempt, and ours for a result that could not be stored. With them a `once` call is
never started again after it was started; only NotHere, raised before anything was done, is tried again."""

GIVE_UP_AFTER = 30
"""Attempts. As NotHere they take about a minute (`activities.workspaces.not_here`): long enough for a worker to
restart, short enough that a misspelt tool is heard of. And a call that takes its worker down each time does not do so
for ever."""

_LOOK_AGAIN = RetryPolicy(
    initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=5), maximum_attempts=GIVE_UP_AFTER
)


def prepare() -> ActivityConfig:
    return ActivityConfig(
        summary="find tools and workspace",
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=timedelta(seconds=5),
        retry_policy=_LOOK_AGAIN,
    )


def examine(calls: int, *, analyzed: bool = False) -> ActivityConfig:
    """Analyzers have half a minute for each call, and look at eight calls together."""
    return ActivityConfig(
        summary=f"look again at {calls} call{'s' if calls > 1 else ''}",
        start_to_close_timeout=timedelta(seconds=60 + (30 * (1 + calls // 8) if analyzed else 0)),
        heartbeat_timeout=timedelta(seconds=5),
        retry_policy=_LOOK_AGAIN,
    )


def call_model(config: ModelConfig, summary: str) -> ActivityConfig:
    """The provider's Retry-After comes as the failure's own next delay and wins over the interval."""
    return ActivityConfig(
        summary=summary,
        start_to_close_timeout=timedelta(seconds=config.call_timeout_seconds),
        heartbeat_timeout=MODEL_HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=FIRST_RETRY,
            maximum_interval=timedelta(seconds=60),
            maximum_attempts=config.max_retries + 1,
            non_retryable_error_types=[MODEL_FAILED],
        ),
    )


def compress(config: ModelConfig) -> ActivityConfig:
    """As a model call, for it makes one or two."""
    return {**call_model(config, "summarise older messages")}


def handle_interrupt() -> ActivityConfig:
    """Somebody wants the reply to end, so that nothing is waited for long."""
    return ActivityConfig(
        summary="what to say to the interrupt",
        schedule_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=timedelta(seconds=5),
        retry_policy=RetryPolicy(initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=5)),
    )


def take_result(tool: str) -> ActivityConfig:
    return ActivityConfig(
        summary=f"take in the result of {tool[:40]}",
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=timedelta(seconds=5),
        retry_policy=_LOOK_AGAIN,
    )


def probe(tool: str) -> ActivityConfig:
    """The reply waits for it, so it is short; a look changes nothing and may be repeated."""
    return ActivityConfig(
        summary=f"look whether {tool[:40]} happened",
        schedule_to_close_timeout=timedelta(seconds=60),
        start_to_close_timeout=timedelta(seconds=PROBE_SECONDS + 5),
        heartbeat_timeout=timedelta(seconds=5),
        retry_policy=_LOOK_AGAIN,
    )


def verify() -> ActivityConfig:
    """The calls wait for it; where no worker has a key, that is said after some seconds."""
    return ActivityConfig(
        summary="check signed decisions",
        start_to_close_timeout=timedelta(seconds=10),
        retry_policy=RetryPolicy(initial_interval=FIRST_RETRY, maximum_attempts=5),
    )


def checkpoint() -> ActivityConfig:
    """Beside everything else, so it may take its time; a store that stays away is heard of in half a minute."""
    return ActivityConfig(
        summary="write down what is new",
        schedule_to_close_timeout=timedelta(seconds=30),
        heartbeat_timeout=timedelta(seconds=5),
        retry_policy=RetryPolicy(initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=5)),
    )


def restore(*, prepares: bool = False) -> ActivityConfig:
    """A session can't begin without knowing whether it has begun before: it waits for the store for two minutes."""
    return ActivityConfig(
        summary="look for an earlier life, tools and workspace" if prepares else "look for an earlier life",
        schedule_to_close_timeout=timedelta(seconds=120),
        heartbeat_timeout=timedelta(seconds=5),
        retry_policy=RetryPolicy(initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=5)),
    )


def run_tool(tool: ToolDescriptor, effect: Effect, summary: str) -> ActivityConfig:
    return ActivityConfig(
        summary=summary,
        start_to_close_timeout=timedelta(seconds=tool.timeout_seconds + 30),
        heartbeat_timeout=timedelta(seconds=_HEARTBEATS[effect]),
        retry_policy=_tool_retry(effect),
        # An interrupted call's result is what it came to, so its end is awaited.
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def _tool_retry(effect: Effect) -> RetryPolicy:
    match effect:
        case Effect.ONCE:
            return RetryPolicy(
                initial_interval=FIRST_RETRY,
                maximum_interval=timedelta(seconds=30),
                maximum_attempts=GIVE_UP_AFTER,
                non_retryable_error_types=LOST,
            )
        case Effect.READ | Effect.IDEMPOTENT:
            return RetryPolicy(
                initial_interval=FIRST_RETRY,
                maximum_interval=timedelta(seconds=30),
                maximum_attempts=GIVE_UP_AFTER,
            )
        case _ as never:
            assert_never(never)

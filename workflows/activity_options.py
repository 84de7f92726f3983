"""Every timeout and retry policy, each with its reason. Seconds unless the type says otherwise."""

from datetime import timedelta
from typing import assert_never

from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.workflow import (
    ActivityCancellationType,
    ActivityConfig,
    ChildWorkflowCancellationType,
    ChildWorkflowConfig,
    LocalActivityConfig,
    ParentClosePolicy,
)

from longhaul.activities.contract import MODEL_FAILED, PROBE_SECONDS, WORKER_LOST
from longhaul.agent.values.conversation.tools import Effect, TemporalTarget, ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.subagents import LONGEST_SECONDS

HEARTBEAT = timedelta(seconds=30)
"""Without a heartbeat for so long, a call's worker counts as lost. Workers find each other's death much sooner and tell
the server (`activities.attempt.worker_leases`); this is for a host that is gone with all that looked after it, and for
a worker that hangs. Shorter, it would cost a billed action every few seconds, and a worker that only stalls would turn
a `once` call that ran into an unknown outcome."""

FIRST_RETRY = timedelta(seconds=0.2)
"""A killed worker's successor should not wait for the stock second."""

LOST = ["TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat", WORKER_LOST, "BlobsUnavailable"]
"""The server's names for a lost attempt, ours for one whose worker was found dead, and for a result that could not be
stored: final for a `once` call. After any other kind the next attempt sees that it was not NotHere, and begins nothing
(`activities.attempt.call_attempts`)."""

GIVE_UP_AFTER = 30
"""Attempts. As NotHere they take about a minute (`activities.attempt.workspaces.not_here`): long enough for a worker to
restart, short enough that a misspelt tool is heard of. And a call that takes its worker down each time does not do so
for ever."""

FUSED_SECONDS = 1.0
"""Of a read within the session's own task. Four seconds would make it longer than the server waits for a task."""

AT_ONCE_SECONDS = 2.5
"""Of what a sub-agent does within its first and its last task: a hundred may do so together."""

AWAY_SECONDS = 3.0
"""How long the workers of a host may leave a task untaken before it counts as away."""

_LOOK_AGAIN = RetryPolicy(
    initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=5), maximum_attempts=GIVE_UP_AFTER
)


def prepare() -> ActivityConfig:
    return ActivityConfig(
        summary="find tools and workspace",
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=_LOOK_AGAIN,
    )


def examine(calls: int, *, analyzed: bool = False) -> ActivityConfig:
    """Analyzers have half a minute for each call, and look at eight calls together."""
    return ActivityConfig(
        summary=f"look again at {calls} call{'s' if calls > 1 else ''}",
        start_to_close_timeout=timedelta(seconds=60 + (30 * (1 + calls // 8) if analyzed else 0)),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=_LOOK_AGAIN,
    )


def call_model(config: ModelConfig, summary: str, *, waits: bool = False) -> ActivityConfig:
    """The pause before the next try comes with the failure: `activities.attempt.model_attempts` makes it of these
    intervals and of the provider's Retry-After.

    `waits`: no other model could take the call, so an outage is waited out. Then attempts are not counted here, but by
    the activity, which tells an outage from what no waiting fixes (`activities.attempt.model_attempts`).
    """
    if waits and config.outage_wait_seconds:
        longest = config.outage_wait_seconds + config.call_timeout_seconds
        return ActivityConfig(
            summary=summary,
            schedule_to_close_timeout=timedelta(seconds=longest),
            start_to_close_timeout=timedelta(seconds=config.call_timeout_seconds),
            heartbeat_timeout=HEARTBEAT,
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            retry_policy=RetryPolicy(
                initial_interval=FIRST_RETRY,
                # So many hours cost few attempts, and a provider that is back is noticed in two minutes.
                maximum_interval=timedelta(seconds=120),
                non_retryable_error_types=[MODEL_FAILED],
            ),
        )
    return ActivityConfig(
        summary=summary,
        start_to_close_timeout=timedelta(seconds=config.call_timeout_seconds),
        heartbeat_timeout=HEARTBEAT,
        # What an interrupted call had said is its answer, so its end is awaited.
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        retry_policy=RetryPolicy(
            initial_interval=FIRST_RETRY,
            maximum_interval=timedelta(seconds=60),
            maximum_attempts=config.max_retries + 1,
            non_retryable_error_types=[MODEL_FAILED],
        ),
    )


def compress(config: ModelConfig, *, waits: bool = False) -> ActivityConfig:
    """As a model call, for it makes one or two."""
    how = call_model(config, "summarise older messages", waits=waits)
    return {**how, "cancellation_type": ActivityCancellationType.TRY_CANCEL}


def handle_interrupt() -> ActivityConfig:
    """Somebody wants the reply to end, so that nothing is waited for long."""
    return ActivityConfig(
        summary="what to say to the interrupt",
        schedule_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RetryPolicy(initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=5)),
    )


def record_memory() -> ActivityConfig:
    """Of what the store says, the activity itself makes an end; a worker that is lost is waited for."""
    return ActivityConfig(
        summary="write the reply down in the long-term memory",
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RetryPolicy(initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=5)),
    )


def greet_host(host: str) -> ActivityConfig:
    """Waited for as long as the host is away: nothing bounds it but an interrupt."""
    return ActivityConfig(
        summary=f"wait for host {host[:60]}",
        start_to_close_timeout=timedelta(seconds=10),
        # Nobody has started it yet, so there is no end to wait for.
        cancellation_type=ActivityCancellationType.TRY_CANCEL,
        retry_policy=_LOOK_AGAIN,
    )


def take_result(tool: str) -> ActivityConfig:
    return ActivityConfig(
        summary=f"take in the result of {tool[:40]}",
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=_LOOK_AGAIN,
    )


def probe(tool: str) -> ActivityConfig:
    """The reply waits for it, so it is short; a look changes nothing and may be repeated."""
    return ActivityConfig(
        summary=f"look whether {tool[:40]} happened",
        schedule_to_close_timeout=timedelta(seconds=60),
        start_to_close_timeout=timedelta(seconds=PROBE_SECONDS + 5),
        heartbeat_timeout=HEARTBEAT,
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
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RetryPolicy(initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=5)),
    )


def restore(*, prepares: bool = False) -> ActivityConfig:
    """A session can't begin without knowing whether it has started before: it waits for the store for two minutes."""
    return ActivityConfig(
        summary="look for an earlier incarnation, tools and workspace"
        if prepares
        else "look for an earlier incarnation",
        schedule_to_close_timeout=timedelta(seconds=120),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RetryPolicy(initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=5)),
    )


def run_tool(tool: ToolDescriptor, effect: Effect, summary: str) -> ActivityConfig:
    return ActivityConfig(
        summary=summary,
        start_to_close_timeout=timedelta(seconds=tool.timeout_seconds + 30),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=_tool_retry(effect),
        # An interrupted call's result is what it came to, so its end is awaited.
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


QUEUE_SECONDS = 3_600
"""How long a call waits for a worker of the user's: a deployment or an outage may pass, and a misspelt task queue is
noticed."""
TARGET_ATTEMPTS = 3
"""Of an activity of the user's that may run twice, whatever an attempt ends in."""
UNREGISTERED_PAUSES = (1, 2, 4, 8, 15, 30, 30, 30, 60)
"""Seconds until a call is started again that met a worker without its code: some workers may still be of an older
build."""


def run_activity(
    tool: ToolDescriptor, target: TemporalTarget, effect: Effect, activity_id: str, summary: str
) -> ActivityConfig:
    """An activity of the user's, on the user's workers."""
    silence = target.heartbeat_seconds
    return ActivityConfig(
        task_queue=target.queue,
        activity_id=activity_id,
        summary=summary,
        schedule_to_start_timeout=timedelta(seconds=QUEUE_SECONDS),
        start_to_close_timeout=timedelta(seconds=tool.timeout_seconds),
        heartbeat_timeout=None if silence is None else timedelta(seconds=silence),
        retry_policy=RetryPolicy(
            initial_interval=FIRST_RETRY,
            maximum_interval=timedelta(seconds=30),
            maximum_attempts=1 if effect is Effect.ONCE else TARGET_ATTEMPTS,
        ),
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def run_workflow(tool: ToolDescriptor, target: TemporalTarget, workflow_id: str, summary: str) -> ChildWorkflowConfig:
    """A workflow of the user's, as a child of the session. It is told to end where the session ends before it."""
    return ChildWorkflowConfig(
        id=workflow_id,
        task_queue=target.queue,
        static_summary=summary,
        execution_timeout=timedelta(seconds=tool.timeout_seconds),
        id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
        cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def run_operation(tool: ToolDescriptor, workflow_id: str, summary: str) -> ChildWorkflowConfig:
    """A Nexus operation, by a workflow of Longhaul's. It has a minute more than the operation, to say that its time was
    up."""
    return ChildWorkflowConfig(
        id=workflow_id,
        static_summary=summary,
        execution_timeout=timedelta(seconds=tool.timeout_seconds + 60),
        id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
        cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def run_in_background(effect: Effect, summary: str) -> ActivityConfig:
    """Of a command that nobody waits for: its worker ends it in time."""
    return ActivityConfig(
        summary=summary,
        start_to_close_timeout=timedelta(seconds=LONGEST_SECONDS + 60),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=_tool_retry(effect),
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def await_command() -> ActivityConfig:
    """Of one that an earlier run has started: tried again until its worker is asked, or so often that nobody has it."""
    return ActivityConfig(
        summary="await a command in the background",
        start_to_close_timeout=timedelta(seconds=LONGEST_SECONDS + 60),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=_LOOK_AGAIN,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def fused_read(summary: str) -> LocalActivityConfig:
    """Tried once: what fails goes its own way, with retries of its own. No interrupt is heard meanwhile."""
    return LocalActivityConfig(
        summary=summary,
        # The first bound counts from when a worker has room for it, the second from now.
        start_to_close_timeout=timedelta(seconds=FUSED_SECONDS),
        schedule_to_close_timeout=timedelta(seconds=FUSED_SECONDS + 0.5),
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def at_once(summary: str) -> LocalActivityConfig:
    """As `fused_read`, where nobody waits for the session to hear him."""
    return {
        **fused_read(summary),
        "start_to_close_timeout": timedelta(seconds=AT_ONCE_SECONDS),
        "schedule_to_close_timeout": timedelta(seconds=AT_ONCE_SECONDS + 0.5),
    }


def hear_child() -> ActivityConfig:
    """Without an answer within the time a sub-agent counts as lost, and what it has said with it."""
    return ActivityConfig(
        summary="what a sub-agent said last",
        schedule_to_close_timeout=timedelta(minutes=10),
        start_to_close_timeout=timedelta(seconds=20),
        retry_policy=RetryPolicy(initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=10)),
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

"""The worker: settings in, a polling worker out. The one place that knows every room; nobody imports it."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Interceptor, UnsandboxedWorkflowRunner, Worker

from activities.act import Acting
from activities.analysis.opening import open_analyzers
from activities.checkpoint import Checkpointing
from activities.compress.compressing import Compressing
from activities.compress.condensers import CondenserSetupError, load_condensers
from activities.compress.offloading import offload_to
from activities.contexts import Contexts
from activities.departure import Departures
from activities.examine import Examination
from activities.interrupting import Interrupting
from activities.masked_failures import MaskedFailures
from activities.masked_logs import mask_logs
from activities.masked_output import masked_output
from activities.masking import Masker
from activities.middlewares.registry import load_middlewares
from activities.middlewares.wrapping import Wrapping
from activities.models.providers import Providers
from activities.notify.opening import BadNotifySetting, open_notifying
from activities.offload.opening import Offloaders, OffloadSetupError, load_offloaders
from activities.prepare import Preparation
from activities.probe import Probing
from activities.prompt_hooks import HookSetupError, load_hooks
from activities.prompting import Prompting
from activities.restore import Restoring
from activities.returning import Returning
from activities.secrets import Secrets, SecretsSetupError
from activities.segments import Segments
from activities.specs import Specs
from activities.stores.opening import open_store
from activities.stores.store import BadStoreSetting, StateStore
from activities.stores.user_rules import UserRules
from activities.streaming import Waking, waking_through
from activities.streams.opening import open_streams
from activities.streams.streams import BadStreamsSetting
from activities.take_in import TakingIn
from activities.telemetry.opening import begin_logs, counting, logged, watched_providers, watching
from activities.think import Thinking
from activities.tokens import TokenCounter
from activities.tools.box import Box, Limits
from activities.tools.inside import inside_tools
from activities.tools.recall import Recall
from activities.tools.registry import Toolbox, ToolSetupError, default_tools, load_modules
from activities.verify import Verifying
from activities.workspaces import Workspaces
from agent.index import ALL_INDEXED
from starter import event_loop
from starter.announcing import announce, version_of
from starter.attributes import NotRegistered, register_search_attributes
from starter.builds import BadBuild, build_of
from starter.connection import Unreachable, blobs_of, connect, let_go
from starter.metrics import BadTelemetrySetting
from starter.own_process import keep_to_itself
from starter.secret_values import BadSecrets, read_secrets
from starter.settings import Settings
from starter.sharing import Refusal, check_shared
from starter.stopping import asked_to_stop
from starter.telemetry import logs_wanted, metrics_wanted, runtime_with, traces_wanted
from workflows.contract import stored_in
from workflows.runner import ForgetfulRunner
from workflows.session import AgentSession
from workflows.tracing import CarriedTraces

READY = "longhaul worker: polling"
"""Printed when the worker polls; `longhaul dev` and the tests wait for it."""


@asynccontextmanager
async def build(client: Client, settings: Settings, providers: Providers) -> AsyncIterator[Worker]:
    """A worker that polls, of all activities and the session workflow; its state store is closed when it has ended.

    Blobs are those of the client, and closed with it. Raises BadStoreSetting, and what a module of the operator's does.
    """
    async with AsyncExitStack() as opened:
        store = open_store(settings.store, data_dir=settings.data_dir)
        opened.push_async_callback(store.close)
        blobs = stored_in(client.data_converter)
        if blobs is None:
            blobs = blobs_of(settings)
            opened.push_async_callback(blobs.close)
        streams = open_streams(settings.redis_url, data_dir=settings.data_dir)
        waking = await opened.enter_async_context(waking_through(streams, Secrets(read_secrets(settings)).masker))
        async with _assembled(client, settings, providers, store, Segments(blobs), waking) as worker:
            yield worker


def toolbox_of(settings: Settings, segments: Segments) -> Toolbox:
    """The tools of this worker; around commands stands the box that it wants, and its own files are hidden in there."""
    box = Box(settings.sandbox, settings.sandbox_network, Limits(*settings.limits), settings.own_places)
    return Toolbox([*default_tools(box=box), *inside_tools(), Recall(segments), *load_modules(settings.tools)])


def _assembled(
    client: Client, settings: Settings, providers: Providers, store: StateStore, segments: Segments, waking: Waking
) -> Worker:
    toolbox, risks = toolbox_of(settings, segments), open_analyzers(settings.analyzers, providers)
    workspaces, contexts, specs, counter = Workspaces(settings.data_dir), Contexts(), Specs(), TokenCounter()
    secrets, rules, live = Secrets(read_secrets(settings)), UserRules(store), waking.streaming
    examination = Examination(contexts, toolbox, workspaces, secrets, rules, risks)
    offloaders = Offloaders(settings.data_dir, settings.redis_url, load_offloaders(settings.offloaders))
    returning, offload = Returning(offloaders, counter, secrets), offload_to(offloaders)
    # Whoever works without search attributes has not seen to it that the server knows them.
    told, indexed = Prompting(settings.prompt_templates), ALL_INDEXED if settings.search_attributes else 1
    wrapping = Wrapping(load_middlewares(settings.middlewares))
    hooks, condensers = load_hooks(settings.hooks), load_condensers(settings.condensers)
    compressing = Compressing(contexts, specs, providers, offload, condensers=condensers, count=counter.count_text)
    preparation = Preparation(
        toolbox, workspaces, specs, counter, told, secrets, rules=rules, indexed=indexed, wrapping=wrapping
    )
    worker = Worker(
        client,
        task_queue=settings.task_queue,
        workflows=[AgentSession],
        activities=[
            preparation.prepare_reply,
            Thinking(
                contexts, specs, providers, workspaces, examination, counter, live, hooks, secrets, wrapping
            ).call_model,
            examination.examine_calls,
            Restoring(store, preparation).restore,
            Checkpointing(store, segments, open_notifying(settings.notify, secrets.masker)).checkpoint,
            compressing.compress,
            TakingIn(contexts, returning).take_result,
            Interrupting(wrapping, secrets).handle_interrupt,
            Verifying(settings.approval_key.get_secret_value()).verify_decisions,
            Probing(toolbox, workspaces, secrets).probe_call,
            Acting(contexts, toolbox, workspaces, examination, returning, live, secrets, wrapping).run_tool,
        ],
        interceptors=[Departures(), *around_activities(settings, secrets.masker), waking],
        # The sandbox would enter and leave for every payload: a quarter of the worker's CPU. What it guards against
        # is kept out by import-linter and ruff, and the replay tests run every history inside it.
        workflow_runner=ForgetfulRunner(UnsandboxedWorkflowRunner(), lambda run_id: forget(worker, run_id)),
        # A killed worker's sessions move on after this instead of the stock ten seconds.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        # Cancellation arrives with a heartbeat; the stock throttle would hold both back for seconds.
        max_heartbeat_throttle_interval=timedelta(seconds=0.1),
        default_heartbeat_throttle_interval=timedelta(seconds=0.1),
        graceful_shutdown_timeout=timedelta(seconds=settings.graceful_shutdown_timeout),
        max_cached_workflows=1_000,
        **version_of(settings),
    )
    return worker


def around_activities(settings: Settings, masker: Masker) -> list[Interceptor]:
    """None where traces, metrics and structured logs are off, and no secret has to be masked."""
    traced, counted = bool(traces_wanted()), bool(metrics_wanted(settings.metrics))
    watched = watching(masker, wanted=traced, content=settings.otel_content)
    told = [*watched, *logged(wanted=logs_wanted().structured, traced=traced)]
    masked = [MaskedFailures(masker)] if masker else []
    return [*counting(settings.prices, wanted=counted), *told, *([CarriedTraces()] if told else []), *masked]


def forget(worker: Worker, run_id: str) -> None:
    """Drop a run from the worker's memory; the SDK has no public word for it."""
    worker._bridge_worker.request_workflow_eviction(run_id)  # noqa: SLF001


async def serve(settings: Settings) -> None:
    """Poll until SIGINT or SIGTERM, then let running activities end; the second signal ends the process at once."""
    check_shared(settings)
    masker = Secrets(read_secrets(settings)).masker
    mask_logs(logging.getLogger(), masker)
    with masked_output(masker):
        await _serve(settings, masker)


async def _serve(settings: Settings, masker: Masker) -> None:
    client = await connect(settings=settings, runtime=runtime_with(settings.metrics))
    if settings.search_attributes:
        await register_search_attributes(client)
    providers = watched_providers(masker, wanted=bool(traces_wanted()), content=settings.otel_content)
    stop = asked_to_stop(settings.graceful_shutdown_timeout)
    own = build_of(settings)
    try:
        async with build(client, settings, providers):
            # Past the masking, which may keep the end of a line back: others wait for this one.
            print(f"{READY} {settings.task_queue!r}", file=sys.__stdout__, flush=True)
            beside = asyncio.gather(providers.warm(), *([announce(client, own)] if own else []))
            await stop.wait()
            beside.cancel()
    finally:
        await providers.close()
        await let_go(client)


_OF_THE_OPERATOR = (
    Refusal,
    NotRegistered,
    Unreachable,
    BadStoreSetting,
    BadStreamsSetting,
    BadNotifySetting,
    BadTelemetrySetting,
    ToolSetupError,
    OffloadSetupError,
    CondenserSetupError,
    HookSetupError,
    BadBuild,
    BadSecrets,
    SecretsSetupError,
)


def main() -> int:
    """Exit code 0 after a signal, 1 with a sentence when it could not start."""
    keep_to_itself()
    try:
        logs = logs_wanted()
        begin_logs(logs.level, structured=logs.structured)
        with asyncio.Runner(loop_factory=event_loop.new) as runner:
            runner.run(serve(Settings()))
    except _OF_THE_OPERATOR as error:
        print(f"longhaul worker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then (SIGABRT after all work is done).
    os._exit(code)

"""The worker: settings in, a polling worker out. The one place that knows every room; nobody imports it."""

if __name__ == "__main__":  # before all that needs the extra
    import gc
    import signal

    from longhaul.starter.worker_host.worker_extra import leave_without

    leave_without()
    gc.disable()  # until `collect_rarely`: a sixth of a start was spent in looking at what will stay
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until it polls nothing has to be ended in order: Ctrl-C would show where it was in loading, and nothing else.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.worker import Interceptor, PollerBehaviorSimpleMaximum, UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.call_attempts import Departures
from longhaul.activities.attempt.fused_reads import FusedBounds, ReadingAlong
from longhaul.activities.attempt.heartbeat import CancelHints
from longhaul.activities.attempt.own_session import Waking, waking_through
from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.attempt.worker_capabilities import Lacking, Offered, own_keys
from longhaul.activities.attempt.worker_leases import WorkerLeases
from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.call_model import Thinking
from longhaul.activities.call_results import Awaiting, Probing, TakingIn
from longhaul.activities.checkpoint import Checkpointing
from longhaul.activities.compress import Compressing, offload_to
from longhaul.activities.compression.condensers import BUILT_IN, load_condensers
from longhaul.activities.context.context_cache import Contexts
from longhaul.activities.context.prompt_hooks import load_hooks
from longhaul.activities.context.system_prompt import Prompting
from longhaul.activities.context.tool_results import Returning
from longhaul.activities.custom_agents.custom_agent_registry import load_custom_agents
from longhaul.activities.custom_agents.custom_agent_turns import CustomAgentTurns
from longhaul.activities.custom_agents.program import has_interpreter
from longhaul.activities.examine_calls import Examination
from longhaul.activities.masker import Masker
from longhaul.activities.mcp.allowed_servers import open_servers
from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.memory import Retrieval, memory_tools
from longhaul.activities.middlewares.middleware_chain import load_middlewares
from longhaul.activities.middlewares.session_middlewares import SideModels, Wrapping
from longhaul.activities.models.embeddings import open_meaning
from longhaul.activities.models.profiles import KeyPlace, keys_of, read_key_places, read_profiles
from longhaul.activities.models.providers import Providers
from longhaul.activities.notify.notifications import open_notifying
from longhaul.activities.prepare_reply import Preparation
from longhaul.activities.process.container import Limits, read_images
from longhaul.activities.process.sandbox import SandboxPolicy
from longhaul.activities.process.threads import NotingPool
from longhaul.activities.restore import Restoring
from longhaul.activities.risk_analysis import open_analyzers
from longhaul.activities.run_tool import Acting
from longhaul.activities.short_activities import (
    Interrupting,
    Memorising,
    Surroundings,
    Verifying,
    greet_host,
    hear_child,
)
from longhaul.activities.telemetry.prices import load_prices
from longhaul.activities.telemetry.setup import begin_logs, counting, logged, watched_providers, watching
from longhaul.activities.tools.bash import Outputs
from longhaul.activities.tools.recall import Recall
from longhaul.activities.tools.registry import Toolbox, default_tools, load_modules, load_postprocessors
from longhaul.activities.tools.sandbox_call import Sandboxes
from longhaul.activities.tools.session_tools import RunProgram, StartAgent, in_workflow_tools
from longhaul.activities.tools.skills import SkillLoaders, load_skill_loaders
from longhaul.activities.worker_output import MaskedFailures, mask_logs, masked_output
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.plain.errors import LonghaulError
from longhaul.agent.values.spec.mcp import worker_queue
from longhaul.agent.values.spec.workspace import host_queue
from longhaul.agent.views.session_views import ALL_INDEXED
from longhaul.starter.connection.connect import connect, keyring_in, let_go, opened_blobs
from longhaul.starter.connection.storage_places import TheirBlobs, own_identity
from longhaul.starter.settings import Settings
from longhaul.starter.telemetry.switches import logs_wanted, metrics_wanted, runtime_with, traces_wanted
from longhaul.starter.worker_host.activity_slots import limits_of
from longhaul.starter.worker_host.deliveries import HubOperations, ScheduledRequests
from longhaul.starter.worker_host.open_tasks import OpenTasks
from longhaul.starter.worker_host.own_build import announce, build_of, own_build_id, version_of
from longhaul.starter.worker_host.own_process import asked_to_stop, collect_rarely, keep_to_itself, new_event_loop
from longhaul.starter.worker_host.requirements import (
    check_keys,
    check_lasting,
    check_shared,
    register_search_attributes,
)
from longhaul.starter.worker_host.secret_values import read_secrets
from longhaul.starter.worker_host.workflow_tasks import LIMITS, FallingBehind, ParkedRuns, watch_backlog
from longhaul.stores.keys.encrypted_store import EncryptedStore
from longhaul.stores.memories.open_memories import LongTerm, open_knowledge, open_memories
from longhaul.stores.offload.offloaders import Offloaders, load_offloaders
from longhaul.stores.offload.session_blobs import SessionBlobs
from longhaul.stores.segments import Segments
from longhaul.stores.state.open_store import open_store
from longhaul.stores.state.store import StateStore, UserRules
from longhaul.stores.streams.open_streams import EncryptedStreams, open_streams
from longhaul.workflows.contract import ENVIRONMENT, HUB, OPERATION, SCHEDULED, WORKFLOW, keys_in
from longhaul.workflows.hubs import AgentHub
from longhaul.workflows.momentary_workflows import EnvironmentQuestion, ScheduledRequestRun
from longhaul.workflows.payload_passes import leave_out_needless
from longhaul.workflows.sdk_internals import check_sdk, check_worker, forget, let_tasks_take
from longhaul.workflows.session import AgentSession
from longhaul.workflows.subagents import SharedKeys
from longhaul.workflows.temporal_calls import NexusCall
from longhaul.workflows.tracing import CarriedTraces
from longhaul.workflows.unbegun_task_guard import ForgetfulRunner, RunnerOfBoth

TASK_SECONDS = 8
"""Less than `TASK_TIMEOUT`, or the server would give up first and say nothing."""
READY = "longhaul worker: polling"
"""Printed when the worker polls; `longhaul dev` and the tests wait for it."""


@dataclass(frozen=True)
class Application:
    """Workflows and activities of somebody's own, for one worker that registers them beside ours on one task queue."""

    workflows: tuple[type, ...] = ()
    activities: tuple[Callable[..., Any], ...] = ()


NO_APPLICATION = Application()
OURS = (AgentSession, ScheduledRequestRun, AgentHub, EnvironmentQuestion, NexusCall)


@dataclass(frozen=True)
class _Resources:
    """What a worker keeps open as long as it polls, and by what it was made."""

    client: Client
    settings: Settings
    providers: Providers
    secrets: WorkerSecrets
    store: StateStore
    segments: Segments
    of_session: Callable[[], SessionBlobs]
    """What the session of the running activity keeps there."""
    lasting: LongTerm
    waking: Waking
    hints: CancelHints
    leases: WorkerLeases
    mcp: McpServers
    identity: str
    application: Application


@asynccontextmanager
async def build(
    client: Client,
    settings: Settings,
    providers: Providers,
    secrets: WorkerSecrets | None = None,
    application: Application = NO_APPLICATION,
) -> AsyncIterator[Worker]:
    """A worker that polls, of all activities and the session workflow; its state store is closed when it has ended.

    `secrets`: as its output is masked with, if it is; None = those of the settings. `application`: what else is on this
    task queue, whose workflows run in the SDK's sandbox. Blobs are those of the client, and closed with it. Raises
    BadStoreSetting, and what a module of the operator's does.
    """
    check_sdk()
    secrets = secrets or secrets_of(settings)
    leave_out_needless()
    async with AsyncExitStack() as opened:
        keys = keyring_in(client)
        await check_keys(keys)
        # Through all of it activities read and write their own session.
        store = EncryptedStore(open_store(settings.store, data_dir=settings.data_dir), keys, own_session.blobs_prefix)
        opened.push_async_callback(store.close)
        meaning = open_meaning(settings.embeddings, settings.retrieval, providers, secrets.masker.masked)
        lasting = LongTerm(
            open_memories(settings.memory, settings.data_dir, meaning),
            open_knowledge(settings.knowledge, settings.data_dir, meaning),
        )
        opened.push_async_callback(lasting.close)
        blobs = await opened.enter_async_context(opened_blobs(client, settings))
        if isinstance(blobs, TheirBlobs):
            blobs.are_our_own()
        streams = open_streams(settings.redis_url, data_dir=settings.data_dir)
        told = streams if keys is None else EncryptedStreams(streams, keys)
        offered = open_servers(
            settings.mcp, settings.mcp_allow, secrets, settings.data_dir / "mcp", settings.own_places
        )
        mcp = McpServers(offered, secrets, worker=uuid4().hex[:12] if settings.mcp or settings.mcp_allow else "")
        opened.push_async_callback(mcp.close)
        resources = _Resources(
            client=client,
            settings=settings,
            providers=providers,
            secrets=secrets,
            store=store,
            segments=Segments(blobs, keys=keys),
            of_session=lambda: SessionBlobs(blobs, keys, own_session.blobs_prefix()),
            lasting=lasting,
            waking=await opened.enter_async_context(waking_through(told, secrets.masker)),
            hints=CancelHints(streams, client.namespace, settings.task_queue),
            leases=WorkerLeases(
                client,
                settings.redis_url,
                data_dir=settings.data_dir,
                task_queue=settings.task_queue,
                theirs=application.activities,
            ),
            mcp=mcp,
            identity=await own_identity(settings, store, blobs),
            application=application,
        )
        made = _assembled(resources)
        async with resources.leases.watched(), resources.hints.heard(), _polling(made):
            yield made[0]


@asynccontextmanager
async def _polling(workers: list[Worker]) -> AsyncIterator[None]:
    """They stop together: one after the other each would grant its calls the whole time once more, and the last one
    would take new work until then."""
    async with AsyncExitStack() as running:
        for worker in workers:
            await running.enter_async_context(worker)
        try:
            yield
        finally:
            await asyncio.gather(*(worker.shutdown() for worker in workers))


def secrets_of(settings: Settings) -> WorkerSecrets:
    """What its operator names for agents, and the worker's own keys, which nobody is given."""
    own = {
        "LONGHAUL_APPROVAL_KEY": settings.approval_key.get_secret_value(),
        "LONGHAUL_ID_KEY": settings.id_key.get_secret_value(),
        "LONGHAUL_REDIS_URL": settings.redis_url,
        "LONGHAUL_STORE": settings.store,
        "LONGHAUL_BLOBS": settings.blobs,
        "LONGHAUL_KEYS": settings.keys,
        "LONGHAUL_MASTER_KEY": settings.master_key.get_secret_value(),
    }
    return WorkerSecrets(read_secrets(settings), own_keys(os.environ, key_places_of(settings), own))


def key_places_of(settings: Settings) -> list[KeyPlace]:
    """Which keys its operator has named for which addresses."""
    return [*read_key_places(settings.model_keys), *keys_of(read_profiles(settings.models))]


def sandbox_of(settings: Settings) -> SandboxPolicy:
    images = read_images(settings.images)
    return SandboxPolicy(
        settings.sandbox, settings.sandbox_network, Limits(*settings.limits), settings.own_places, images=images
    )


def toolbox_of(
    settings: Settings,
    segments: Segments,
    lasting: LongTerm,
    kept: Callable[[], SessionBlobs],
    outputs: Outputs | None = None,
    loaders: SkillLoaders | None = None,
) -> Toolbox:
    """The tools of this worker; around commands stands the box that it wants, and its own files are hidden in there."""
    # Above, its packages would be read by each process that imports a worker.
    from longhaul.activities.tools.web import web_tools  # noqa: PLC0415

    ours = [
        *default_tools(sandbox=sandbox_of(settings), outputs=outputs, loaders=loaders),
        *in_workflow_tools(),
        StartAgent(),
        *([RunProgram()] if has_interpreter() else []),
        Recall(segments, kept),
        *memory_tools(lasting),
        *web_tools(settings.web_search, settings.web_private, robots=settings.web_robots),
    ]
    return Toolbox([*ours, *load_modules(settings.tools)])


@dataclass(frozen=True)
class _Activities:
    run_tool: Callable[..., Any]
    of_host: tuple[Callable[..., Any], ...]
    """Those that need the files of a workspace, or what a worker there knows of its sessions; `run_tool` is one."""
    of_queue: tuple[Callable[..., Any], ...]
    """Those that any worker can do."""


def _activities(resources: _Resources) -> _Activities:
    client, settings, providers, secrets = resources.client, resources.settings, resources.providers, resources.secrets
    outputs, loaders = Outputs(), load_skill_loaders(settings.tools)
    offloaders = Offloaders(
        settings.data_dir,
        settings.redis_url,
        load_offloaders(settings.offloaders),
        of_session=resources.of_session,
        in_clear_text=keyring_in(client) is None,
    )
    parts = WorkerParts(
        workspaces=Workspaces(settings.data_dir, offloaders, settings.host),
        toolbox=toolbox_of(settings, resources.segments, resources.lasting, resources.of_session, outputs, loaders),
        contexts=Contexts(marked=secrets.out_of_message),
        secrets=secrets,
        wrapping=Wrapping(load_middlewares(settings.middlewares)),
        mcp=resources.mcp,
    )
    risks, rules = open_analyzers(settings.analyzers, providers), UserRules(resources.store)
    behind, custom_agents = load_postprocessors(settings.tools), load_custom_agents(settings.tools)
    condensers = load_condensers(settings.condensers)
    turns, sandbox, live = CustomAgentTurns(custom_agents), sandbox_of(settings), resources.waking.streaming
    examination = Examination(parts, rules, risks)
    returning = Returning(offloaders, parts.counter, secrets, behind)
    acting = Acting(parts, examination, returning, live, SideModels(providers), Sandboxes(sandbox))
    hooks = load_hooks(settings.hooks)
    thinking = Thinking(
        parts,
        providers,
        examination,
        live,
        hooks=hooks,
        custom_agents=turns,
        along=ReadingAlong(acting.read),
        keeping=resources.of_session,
    )
    compressing = Compressing(
        parts,
        providers,
        offload_to(offloaders),
        condensers=condensers,
        count=parts.counter.count_text,
        hooks=hooks,
    )
    preparation = Preparation(
        parts,
        Prompting(settings.prompt_templates, loaders),
        rules=rules,
        # Whoever works without search attributes has not seen to it that the server knows them.
        indexed=ALL_INDEXED if settings.search_attributes else 1,
        providers=providers,
        offered=Offered(
            offloaders.names,
            (*BUILT_IN, *condensers),
            risks.names,
            providers.profile_names,
            behind.names,
            custom_agents.names,
            tuple(image.name for image in sandbox.images),
        ),
        prices=load_prices(settings.prices, read_profiles(settings.models)),
        retrieval=Retrieval(resources.lasting),
    )
    notifying = open_notifying(settings.notify, secrets.masker)
    return _Activities(
        run_tool=acting.run_tool,
        of_host=(
            preparation.prepare_reply,
            thinking.call_model,
            examination.examine_calls,
            compressing.compress,
            TakingIn(parts, returning).take_result,
            Probing(parts).probe_call,
            Awaiting(parts, returning, outputs).await_command,
            acting.run_tool,
        ),
        of_queue=(
            Memorising(resources.lasting.memories, secrets).record_memory,
            Restoring(resources.store, parts.workspaces, preparation).restore,
            Checkpointing(resources.store, resources.segments, notifying).checkpoint,
            Interrupting(parts.wrapping, secrets, turns).handle_interrupt,
            hear_child,
            Verifying(settings.approval_key.get_secret_value()).verify_decisions,
            ScheduledRequests(client, settings).request,
            HubOperations(client, settings).tell_member,
            Surroundings((place.key_env for place in key_places_of(settings)), sandbox).tell_environment,
        ),
    )


def _assembled(resources: _Resources) -> list[Worker]:
    """That of the queue first; then that of this host's own queue, where the host has a name, and that of its own."""
    client, settings, activities = resources.client, resources.settings, _activities(resources)

    def dropped(run_id: str) -> None:
        forget(worker, run_id)

    around: dict[str, Any] = {
        "identity": resources.identity,
        "interceptors": [
            Departures(),
            Lacking(),
            *around_activities(settings, resources.secrets.masker),
            resources.waking,
            resources.leases,
            FusedBounds(),
            *around_workflows(client),
        ],
        # Cancellation arrives with a heartbeat, which comes when a hint does; the stock throttle would hold it back.
        "max_heartbeat_throttle_interval": timedelta(seconds=0.1),
        "default_heartbeat_throttle_interval": timedelta(seconds=0.1),
        "graceful_shutdown_timeout": timedelta(seconds=settings.graceful_shutdown_timeout),
    }
    versioned = {**around, **version_of(settings)}
    worker = Worker(
        client,
        task_queue=settings.task_queue,
        workflows=[*OURS, *resources.application.workflows],
        activities=[*activities.of_host, *activities.of_queue, *resources.application.activities],
        # The sandbox would enter and leave for every payload: a quarter of the worker's CPU. What it guards against
        # is kept out by import-linter and ruff, and the replay tests run every history inside it.
        workflow_runner=RunnerOfBoth(
            ForgetfulRunner(
                UnsandboxedWorkflowRunner(),
                dropped,
                OpenTasks(client, resources.identity),
                resources.hints.tell,
                ParkedRuns(dropped),
            ),
            frozenset((WORKFLOW, SCHEDULED, HUB, ENVIRONMENT, OPERATION)),
            SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules("longhaul")),
        ),
        # A killed worker's sessions move on after this instead of the stock ten seconds.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        max_cached_workflows=1_000,
        **LIMITS,
        **limits_of(settings),
        # More at once is a task and a lock for each payload of every task, and hardly any lies outside the history.
        max_workflow_task_external_storage_concurrency=1,
        **versioned,
    )
    check_worker(worker)
    let_tasks_take(worker, TASK_SECONDS)
    beside: list[Worker] = []
    if settings.host:
        of_queue = host_queue(settings.task_queue, settings.host)
        of_host = [*activities.of_host, greet_host]
        beside.append(Worker(client, task_queue=of_queue, activities=of_host, **limits_of(settings), **versioned))
    if resources.mcp.worker:
        # Few pollers: what comes there is about the servers that this one keeps for sessions. Of no version: no other
        # worker ever polls there, and a build is not promoted while a queue of the one before is missing.
        beside.append(
            Worker(
                client,
                task_queue=worker_queue(settings.task_queue, resources.mcp.worker),
                activities=[activities.run_tool],
                **around,
                build_id=own_build_id(),
                **limits_of(settings, PollerBehaviorSimpleMaximum(2)),
            )
        )
    return [worker, *beside]


def around_workflows(client: Client) -> list[Interceptor]:
    """None where nothing is encrypted."""
    keys = keys_in(client.data_converter)
    return [] if keys is None else [SharedKeys(client.namespace, keys)]


def around_activities(settings: Settings, masker: Masker) -> list[Interceptor]:
    """None where traces, metrics and structured logs are off, and no secret has to be masked."""
    traced, counted = bool(traces_wanted()), bool(metrics_wanted(settings.metrics))
    watched = watching(masker, wanted=traced, content=settings.otel_content)
    told = [*watched, *logged(wanted=logs_wanted().structured, traced=traced)]
    masked = [MaskedFailures(masker)] if masker else []
    count = counting(settings.prices, wanted=counted, profiles=read_profiles(settings.models) if counted else None)
    return [*count, *told, *([CarriedTraces()] if told else []), *masked]


async def serve(settings: Settings) -> None:
    """Poll until SIGINT or SIGTERM, then let running activities end; the second signal ends the process at once."""
    check_shared(settings)
    await check_lasting(settings)
    secrets = secrets_of(settings)
    mask_logs(logging.getLogger(), secrets.masker)
    with masked_output(secrets.masker):
        await _serve(settings, secrets)


async def _serve(settings: Settings, secrets: WorkerSecrets) -> None:
    asyncio.get_running_loop().set_default_executor(NotingPool(thread_name_prefix="longhaul"))
    client = await connect(settings=settings, runtime=runtime_with(settings.metrics))
    stop = asked_to_stop(settings.graceful_shutdown_timeout)
    try:
        async with hosted(client, settings, secrets):
            collect_rarely()
            # Past the masking, which may keep the end of a line back: others wait for this one.
            print(f"{READY} {settings.task_queue!r}", file=sys.__stdout__, flush=True)
            await stop.wait()
    finally:
        await let_go(client)


@asynccontextmanager
async def hosted(client: Client, settings: Settings, secrets: WorkerSecrets) -> AsyncIterator[None]:
    """A worker that polls within the block, and what goes with it: the search attributes that its sessions need, its
    providers, its build's place among the others, and a look at how much work waits. Changes nothing of the process.

    Raises NotRegistered, and what `build` does.
    """
    if settings.search_attributes:
        await register_search_attributes(client)
    places, profiles = read_key_places(settings.model_keys), read_profiles(settings.models)
    counted, traced = metrics_wanted(settings.metrics), bool(traces_wanted())
    content = settings.otel_content
    providers = watched_providers(secrets.masker, places, counted, traced=traced, content=content, profiles=profiles)
    own = build_of(settings)
    runtime = client.service_client.config.runtime or Runtime.default()
    try:
        async with build(client, settings, providers, secrets):
            behind = FallingBehind(settings.task_queue, runtime.metric_meter)
            beside = asyncio.gather(
                providers.warm(),
                watch_backlog(client, settings.task_queue, behind),
                *([announce(client, own)] if own else []),
            )
            try:
                yield
            finally:
                beside.cancel()
                await asyncio.gather(beside, return_exceptions=True)  # or its cancellation is logged as an error
    finally:
        await providers.close()


def main() -> int:
    """Exit code 0 after a signal, 1 with a sentence when it could not start."""
    keep_to_itself()
    try:
        logs = logs_wanted()
        begin_logs(logs.level, structured=logs.structured)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(serve(Settings()))
    except LonghaulError as error:
        print(f"longhaul worker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then (SIGABRT after all work is done).
    os._exit(code)

"""`longhaul doctor` on the Temporal server, and on the places where sessions are written down: the state store and the
blobs.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    GetSystemInfoRequest,
    PollWorkflowTaskQueueRequest,
)
from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError

from longhaul.agent.plain.errors import MissingExtra
from longhaul.starter.cli.doctor.local_checks import Check, why_not_writable
from longhaul.starter.connection.connect import BadConnection, Unreachable, blobs_of, connect, keyring_of
from longhaul.starter.connection.pollers import workers
from longhaul.starter.connection.storage_places import why_another_store, why_other_blobs
from longhaul.starter.dev_server.search_attributes import compare
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.own_build import BadBuild, build_of, current_build, describe
from longhaul.stores.blobs.blobs import BlobsUnavailable, session_prefix
from longhaul.stores.keys.keyring import BadKeysSetting, KeysUnavailable
from longhaul.stores.state.open_store import open_store, why_not_shared
from longhaul.stores.state.store import BadStoreSetting, StoreError
from longhaul.workflows.contract import ENVIRONMENT, SEARCH_ATTRIBUTES, WorkerEnvironment

NOBODY = "longhaul doctor"
"""A user and a session that nobody has: asking for them shows whether there are answers."""
WANTED = {"maxmemory-policy": "noeviction", "appendonly": "yes"}


async def on_the_stores(settings: Settings) -> AsyncIterator[Check]:
    """Whether both can be used, and keep what they are given."""
    yield await store(settings)
    yield await blobs(settings)
    if (encryption := await keys(settings)) is not None:
        yield encryption
    for name, setting in (
        ("store keeps", settings.store),
        ("blobs keep", settings.blobs),
        ("keys keep", settings.keys),
    ):
        if _scheme(setting).partition("+")[0] in ("redis", "rediss"):
            yield await durable(name, setting)


async def store(settings: Settings) -> Check:
    """The same that a worker opens, asked for a user that nobody is."""
    fix = "fix LONGHAUL_STORE, here and for the workers, or start what it names"
    try:
        if settings.shared and (alone := why_not_shared(settings.store)):
            return Check("store", ok=False, detail=alone, fix=fix, essential=True)
        opened = open_store(settings.store, data_dir=settings.data_dir)
        try:
            await opened.list_sessions(NOBODY)
        finally:
            await opened.close()
    except (BadStoreSetting, StoreError) as error:
        return Check("store", ok=False, detail=str(error), fix=fix, essential=True)
    kind = _scheme(settings.store)
    wrong = why_not_writable(Path(unquote(urlsplit(settings.store).path))) if kind == "file" else ""
    return Check("store", not wrong, wrong or f"{kind or settings.store} answers", fix, essential=True)


async def blobs(settings: Settings) -> Check:
    """Asked for the blobs of a session that nobody has."""
    fix = "fix LONGHAUL_BLOBS, here and for the workers, or start what it names"
    try:
        opened = blobs_of(settings)
        try:
            await opened.keys(session_prefix(NOBODY, NOBODY))
        finally:
            await opened.close()
    except (Unreachable, BlobsUnavailable) as error:
        return Check("blobs", ok=False, detail=str(error), fix=fix, essential=True)
    is_folder = _scheme(settings.blobs) in ("", "file")
    wrong = why_not_writable(Path(opened.place)) if is_folder else ""
    return Check("blobs", not wrong, wrong or opened.place, fix, essential=True)


async def keys(settings: Settings) -> Check | None:
    """With which keys sessions are encrypted; None where they are not."""
    fix = "fix LONGHAUL_MASTER_KEY and LONGHAUL_KEYS, here and for the workers, or start what they name"
    try:
        opened = keyring_of(settings)
        if opened is None:
            return None
        try:
            await opened.check()
        finally:
            await opened.close()
    except (BadKeysSetting, KeysUnavailable, MissingExtra) as error:
        return Check("encryption", ok=False, detail=str(error), fix=fix, essential=True)
    return Check("encryption", ok=True, detail=f"on, with keys in {opened.place}", essential=True)


async def same_places(client: Client, settings: Settings) -> AsyncIterator[Check]:
    """Whether the workers that poll now keep sessions and large values where these settings lead."""
    try:
        async with open_store(settings.store, data_dir=settings.data_dir) as store:
            yield _same("workers' store", await why_another_store(client, settings, store))
        large = blobs_of(settings)
        try:
            yield _same("workers' blobs", await why_other_blobs(client, settings, large))
        finally:
            await large.close()
    except (BadStoreSetting, StoreError, Unreachable, BlobsUnavailable):
        return  # said by the checks of the places themselves


def _same(name: str, why: str) -> Check:
    detail, _, fix = why.partition(": set ")
    return Check(name, not why, detail or "no worker has another", f"set {fix}")


async def durable(name: str, url: str) -> Check:
    """Whether a Redis neither forgets what it holds when memory is short, nor with its process."""
    from redis.exceptions import RedisError  # noqa: PLC0415  only who uses Redis waits for it

    from longhaul.stores.state.redis_connection import connect, target_of  # noqa: PLC0415

    try:
        client, sentinels = connect(target_of(url)[0])
    except BadStoreSetting as error:
        return Check(name, ok=False, detail=str(error), fix="fix the address")
    try:
        found = await client.config_get(*WANTED)
    except (RedisError, OSError) as error:
        # Many that are rented out let nobody ask.
        return Check(name, ok=True, detail=f"unknown: {type(error).__name__}")
    finally:
        for opened in (client, *sentinels):
            await opened.aclose()
    read = {_text(key): _text(value) for key, value in found.items()}
    wrong = [f"{key} {value}" for key, value in WANTED.items() if read.get(key, value) != value]
    shown = ", ".join(f"{key} is {read.get(key, 'unknown')}" for key in WANTED)
    return Check(name, not wrong, shown, " and ".join(f"redis-cli CONFIG SET {each}" for each in wrong))


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _scheme(setting: str) -> str:
    """Empty for what is no URL."""
    scheme, found, _ = setting.partition("://")
    return scheme if found else ""


TIMER = timedelta(milliseconds=20)
SLOW_SECONDS = 0.4
"""A stock server rounds the 20 ms up to about a second; ours needs a few milliseconds more than 20."""
CONNECT_SECONDS = 10.0
WORKERS_KEYS = "worker's keys"
ANSWER_TIME = timedelta(seconds=10)
"""For a worker to say what it has around it."""


async def on_the_server(settings: Settings) -> AsyncIterator[Check]:
    """Reachable, set up, quick."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            # With its settings only where they are needed to read what a worker answers.
            client = await connect(settings=settings if settings.master_key.get_secret_value() else None)
            info = await client.workflow_service.get_system_info(GetSystemInfoRequest())
    except (Unreachable, BadConnection, BadKeysSetting, TimeoutError, RPCError) as error:
        detail, _, fix = str(error).partition("; ")
        fix = fix or "start one with `longhaul dev`, or set TEMPORAL_ADDRESS"
        yield Check("server", ok=False, detail=detail or "no answer", fix=fix, essential=True)
        return
    where = f"{client.service_client.config.target_host}, namespace {client.namespace}, version {info.server_version}"
    yield Check("server", ok=True, detail=where, essential=True)
    found = await worker(client, settings)
    yield found
    if found.ok:
        async for check in environment(client, settings):
            yield check
    async for check in same_places(client, settings):
        yield check
    if settings.deployment:
        yield await versions(client, settings)
    yield await search_attributes(client, settings)
    yield await timers(client)


async def worker(client: Client, settings: Settings) -> Check:
    """Whether anybody works for the sessions of this queue."""
    queue = settings.task_queue
    try:
        found = await workers(client, queue)
    except RPCError as error:
        return Check("worker", ok=True, detail=f"unknown: {error.message}")
    seen = f"{len(found)} polled the task queue {queue!r} in the last minute"
    fix = "start one with `longhaul worker`, or set LONGHAUL_TASK_QUEUE to theirs"
    return Check("worker", bool(found), seen if found else f"none polls the task queue {queue!r}", fix)


async def environment(client: Client, settings: Settings) -> AsyncIterator[Check]:
    """What a worker has around it, by its own word: where this command runs may be another place."""
    name = f"longhaul-doctor-{uuid.uuid4().hex[:12]}"
    try:
        told = await client.execute_workflow(
            ENVIRONMENT,
            id=name,
            task_queue=settings.task_queue,
            result_type=WorkerEnvironment,
            execution_timeout=ANSWER_TIME,
        )
        await _forget(client, name)
    except (RPCError, WorkflowFailureError) as error:
        yield Check("worker's environment", ok=False, detail=f"no worker reports it ({error})", fix="its log says why")
        return
    yield Check("worker's release", ok=True, detail=told.release or "not installed as a package")
    yield Check(WORKERS_KEYS, ok=True, detail=", ".join(told.keys) or "no key of a model provider is set")
    fix = "run `make setup`, or install ripgrep, where the worker runs"
    yield Check("worker's rg", bool(told.ripgrep), told.ripgrep or "not found: it lacks the tool Grep", fix)
    detail = told.sandbox or "bubblewrap works there"
    yield Check("worker's sandbox", not told.sandbox or settings.sandbox == "off", detail, "install bubblewrap there")
    fix = "start its engine there, and build or load the image; no worker fetches one"
    for image, problem in told.images.items():
        yield Check(f"worker's image {image}", not problem, problem or "a command ran in it", fix)


async def _forget(client: Client, name: str) -> None:
    execution = WorkflowExecution(workflow_id=name)
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=execution)
    )


async def versions(client: Client, settings: Settings) -> Check:
    """Whether workers of this build get any work, where workers are versioned."""
    try:
        build = build_of(settings)
    except BadBuild as error:
        return Check("version", ok=False, detail=str(error), fix="unset it, or give it another name")
    if build is None:
        return Check("version", ok=True, detail="workers are not versioned")
    try:
        current = current_build(await describe(client, build.deployment))
    except RPCError as error:
        return Check("version", ok=True, detail=f"unknown: {error.message}")
    detail = f"this is build {build.id!r} of {build.deployment!r}; the current one is {current or 'not set'!r}"
    return Check("version", current == build.id, detail, fix=f"run `{build.promote_command}` where its workers run")


async def search_attributes(client: Client, settings: Settings) -> Check:
    """Whether `sessions` and `inbox` can look sessions up."""
    name = "search attributes"
    if not settings.search_attributes:
        return Check(name, ok=True, detail="not used (LONGHAUL_SEARCH_ATTRIBUTES is off)")
    try:
        compared = await compare(client, SEARCH_ATTRIBUTES)
    except RPCError as error:
        fix = "ask the server's operator, or set LONGHAUL_SEARCH_ATTRIBUTES=off"
        return Check(name, ok=False, detail=f"can't be listed: {error.message}", fix=fix)
    if compared.others:
        return Check(name, ok=False, detail="; ".join(map(str, compared.others)), fix=compared.remedy)
    flags = " ".join(f"--name {key} --type {kind}" for key, kind in compared.missing.items())
    fix = f"start a worker, or run `temporal operator search-attribute create {flags}`"
    missing = f"missing: {', '.join(compared.missing)}"
    return Check(name, compared.is_complete, "registered" if compared.is_complete else missing, fix)


async def timers(client: Client) -> Check:
    """How late a timer of 20 ms fires: a workflow that starts delayed, on a queue that only we poll."""
    name, run = f"longhaul-doctor-{uuid.uuid4().hex[:12]}", "timer speed"
    try:
        # Written once before, so that a cold database is not taken for a slow timer.
        began = time.monotonic()
        handle = await client.start_workflow(
            "LonghaulDoctor", id=name, task_queue=name, start_delay=TIMER, execution_timeout=timedelta(seconds=10)
        )
        await client.workflow_service.poll_workflow_task_queue(
            PollWorkflowTaskQueueRequest(
                namespace=client.namespace, task_queue=TaskQueue(name=name), identity="longhaul doctor"
            ),
            timeout=timedelta(seconds=5),
        )
        seconds = time.monotonic() - began
        await handle.terminate("measured")
        await _forget(client, name)
    except RPCError as error:
        return Check(run, ok=True, detail=f"not measured: {error.message}")
    detail = f"a timer of 20 ms took {seconds * 1000:.0f} ms"
    fix = "a stock server; run it with deploy/dynamicconfig.yaml, or use `longhaul dev`"
    return Check(run, seconds < SLOW_SECONDS, detail, fix)

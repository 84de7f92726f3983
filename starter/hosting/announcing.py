"""Versioned workers: how they are, and that one which gets no work says so instead of sitting silent."""

import asyncio
from typing import Any

from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError
from temporalio.worker import WorkerDeploymentConfig

from longhaul.starter.hosting.own_build import Build, build_of, current_build, describe, own_build_id, why_idle
from longhaul.starter.hosting.saying import say
from longhaul.starter.settings import Settings

REGISTERED_SECONDS = 2.0
"""The server knows a build some moments after its first poll."""
LOOK_SECONDS = 30.0


def version_of(settings: Settings) -> dict[str, Any]:
    """What a worker says of its version, as arguments of the SDK's `Worker`. Raises BadBuild."""
    build = build_of(settings)
    if build is None:
        # Without any the SDK hashes the code of every module that is loaded: a third of a worker's start.
        return {"build_id": own_build_id()}
    version = WorkerDeploymentVersion(build.deployment, build.id)
    # Sessions live for weeks and go on with the newest code: they are not pinned to the build that began them.
    behaviour = VersioningBehavior.AUTO_UPGRADE
    return {
        "deployment_config": WorkerDeploymentConfig(
            version, use_worker_versioning=True, default_versioning_behavior=behaviour
        )
    }


async def announce(client: Client, build: Build) -> None:
    """Say on stderr whether this build is the current one, and again whenever that has changed; until cancelled."""
    said = ""
    await asyncio.sleep(REGISTERED_SECONDS)
    while True:
        told = await _standing(client, build)
        if told != said:
            said = told
            say(told)
        await asyncio.sleep(LOOK_SECONDS)


async def _standing(client: Client, build: Build) -> str:
    try:
        current = current_build(await describe(client, build.deployment))
    except RPCError as error:
        return f"whether build {build.id!r} is the current one can't be told: {error.message}"
    return why_idle(build, current) or f"build {build.id!r} is the current one of {build.deployment!r}"

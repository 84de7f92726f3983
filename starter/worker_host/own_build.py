"""Versioned workers: the build that this installation is, what the server knows of the others, and a sentence from one
that gets no work.
"""

import asyncio
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from temporalio.api.deployment.v1 import WorkerDeploymentInfo
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from longhaul.agent.plain.errors import BadSetup
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.own_process import say

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
"""The server writes a version as one word, with a dot or a colon between the two names."""
_BUILD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_PACKAGE = Path(__file__).parents[2]
"""By the name that this module has in the package. Resolved, it would be a folder without half of the rooms."""
_ROOMS = ("agent", "stores", "workflows", "activities", "starter")


class BadBuild(BadSetup):
    """A deployment or build with a name that the server would misread; the sentence says which."""


@dataclass(frozen=True, slots=True)
class Build:
    """One version of the workers of a deployment."""

    deployment: str
    id: str

    @property
    def promote_command(self) -> str:
        return f"longhaul rollout promote {self.id}"


def build_of(settings: Settings) -> Build | None:
    """This installation; None where workers are not versioned. Raises BadBuild."""
    if not settings.deployment:
        return None
    if not _NAME.fullmatch(settings.deployment):
        raise BadBuild(f"LONGHAUL_DEPLOYMENT is {settings.deployment!r}; use letters, digits, '-' and '_', at most 100")
    build = settings.build or own_build_id()
    if not _BUILD.fullmatch(build):
        raise BadBuild(f"LONGHAUL_BUILD is {build!r}; use letters, digits, '.', '+', '-' and '_', at most 100")
    return Build(settings.deployment, build)


@cache
def own_build_id() -> str:
    """The package's version and a digest of the code, so that a host with other code is never taken for the same."""
    try:
        release = version("longhaul-agents")
    except PackageNotFoundError:
        release = "0"
    files = [_PACKAGE / "worker.py", *(file for room in _ROOMS for file in (_PACKAGE / room).rglob("*.py"))]
    digest = hashlib.sha256()
    for file in sorted(file for file in files if file.is_file()):
        digest.update(file.relative_to(_PACKAGE).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return f"{release}-{digest.hexdigest()[:12]}"


async def describe(client: Client, deployment: str) -> WorkerDeploymentInfo | None:
    """As the server knows it; None before its first worker has polled. Raises RPCError."""
    try:
        described = await client.workflow_service.describe_worker_deployment(
            DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=deployment)
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    return described.worker_deployment_info


def current_build(info: WorkerDeploymentInfo | None) -> str:
    """The build that sessions go to; empty when there is none, and then no versioned worker gets any work."""
    return info.routing_config.current_deployment_version.build_id if info else ""


def why_idle(build: Build, current: str) -> str:
    """Why workers of this build get no work, with the command that changes it; empty when they get some."""
    if current == build.id:
        return ""
    told = f"build {current!r} is the current one" if current else "no build is the current one"
    return (
        f"this worker is build {build.id!r} of deployment {build.deployment!r} and gets no work, for {told}; run\n"
        f"  {build.promote_command}"
    )


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
        return f"whether build {build.id!r} is the current one is unknown: {error.message}"
    return why_idle(build, current) or f"build {build.id!r} is the current one of {build.deployment!r}"

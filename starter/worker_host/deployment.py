"""The builds of a deployment: which one sessions go to, how many each has, making another one the current one, and
sessions that stay with the build that they have.
"""

from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.enums.v1 import WorkerDeploymentVersionStatus
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionOptions, WorkflowExecutionVersioningInfo
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentVersionRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    UpdateWorkflowExecutionOptionsRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.values.spec.workspace import host_of
from longhaul.starter.client.cards import query
from longhaul.starter.worker_host.own_build import current_build, describe

_STATUS = "WORKER_DEPLOYMENT_VERSION_STATUS_"


@dataclass(frozen=True, slots=True)
class Version:
    """One build, as the server knows it."""

    build: str
    status: str
    """current, ramping, draining, drained, inactive: without work; created: no worker has polled yet."""
    sessions: int
    """Open ones whose newest step it has made."""
    since: str
    """ISO time at which it became the current one; empty for one that is not."""


async def versions(client: Client, deployment: str) -> list[Version]:
    """Newest first; empty before the first worker has polled. Raises RPCError."""
    info = await describe(client, deployment)
    if info is None:
        return []
    found: list[Version] = []
    for summary in sorted(info.version_summaries, key=lambda each: -each.create_time.ToNanoseconds()):
        build = summary.deployment_version.build_id
        status = WorkerDeploymentVersionStatus.Name(summary.status).removeprefix(_STATUS).lower()
        since = summary.current_since_time.ToJsonString() if summary.HasField("current_since_time") else ""
        counted = await client.count_workflows(
            f"{query()} AND TemporalWorkerDeploymentVersion = '{deployment}:{build}'"
        )
        found.append(Version(build, status, counted.count, since))
    return found


async def hosts_without(client: Client, deployment: str, build: str) -> list[str]:
    """Hosts with a task queue of their own at which workers of the current build have polled, and none of this one.
    Raises RPCError."""
    current = current_build(await describe(client, deployment))
    if not current:
        return []
    queues = await _queues(client, deployment, current) - await _queues(client, deployment, build)
    return sorted(host for queue in queues if (host := host_of(queue)))


async def _queues(client: Client, deployment: str, build: str) -> set[str]:
    version = WorkerDeploymentVersion(deployment_name=deployment, build_id=build)
    described = await client.workflow_service.describe_worker_deployment_version(
        DescribeWorkerDeploymentVersionRequest(namespace=client.namespace, deployment_version=version)
    )
    return {queue.name for queue in described.worker_deployment_version_info.task_queue_infos}


async def set_current(client: Client, deployment: str, build: str, *, without_hosts: bool = False) -> None:
    """Send all sessions of the deployment to this build. RPCError where none of its workers has polled, or, unless
    it may go `without_hosts`, none at the queue of a host that has work."""
    await client.workflow_service.set_worker_deployment_current_version(
        SetWorkerDeploymentCurrentVersionRequest(
            namespace=client.namespace,
            deployment_name=deployment,
            build_id=build,
            identity=client.identity,
            ignore_missing_task_queues=without_hosts,
        )
    )


class Standing(NamedTuple):
    """With which build of a deployment a session is; empty where it is another deployment's, or no versioned worker has
    made a step of it."""

    build: str
    bound: bool
    """It stays there. Otherwise that is the build which has made its newest step."""


async def standing_of(client: Client, deployment: str, workflow_id: str) -> Standing:
    """Raises RPCError."""
    versioning = await _versioning(client, workflow_id)
    kept = versioning.versioning_override
    bound = kept.HasField("pinned")
    version = kept.pinned.version if bound else versioning.deployment_version
    return Standing(version.build_id, bound) if version.deployment_name == deployment else Standing("", bound)


async def keep_with(client: Client, deployment: str, build: str, workflow_id: str) -> bool:
    """Bind a session to that build, whichever is the current one, until its history begins again; False where it has
    closed. Raises RPCError."""
    version = WorkerDeploymentVersion(deployment_name=deployment, build_id=build)
    pinned = VersioningOverride.PinnedOverride(
        behavior=VersioningOverride.PinnedOverrideBehavior.PINNED_OVERRIDE_BEHAVIOR_PINNED, version=version
    )
    return await _override(client, workflow_id, VersioningOverride(pinned=pinned))


async def let_move(client: Client, workflow_id: str) -> bool:
    """The reverse; False where it was not bound. Raises RPCError."""
    if not (await _versioning(client, workflow_id)).HasField("versioning_override"):
        return False
    return await _override(client, workflow_id, None)


async def _versioning(client: Client, workflow_id: str) -> WorkflowExecutionVersioningInfo:
    described = await client.get_workflow_handle(workflow_id).describe()
    return described.raw_description.workflow_execution_info.versioning_info


async def _override(client: Client, workflow_id: str, override: VersioningOverride | None) -> bool:
    request = UpdateWorkflowExecutionOptionsRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=workflow_id),
        workflow_execution_options=WorkflowExecutionOptions(versioning_override=override),
        update_mask=FieldMask(paths=["versioning_override"]),
        identity=client.identity,
    )
    try:
        await client.workflow_service.update_workflow_execution_options(request)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True

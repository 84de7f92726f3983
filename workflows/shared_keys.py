"""Has a sub-agent encrypt with the key of the session that starts it: who deletes that key deletes the whole tree.

Whose child a workflow is has to be known before its first payload is encrypted, which is when its start leaves the
worker. So it is noted here, beside the workflow's code, which decides nothing by it and sees no key.
"""

from collections.abc import Callable
from typing import Any, cast

from temporalio import workflow
from temporalio.worker import (
    Interceptor,
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from longhaul.workflows.encryption import SessionKeys, owner_of

_BELONGS = "longhaul_key_belongs"


class SharedKeys(Interceptor):
    def __init__(self, namespace: str, keys: SessionKeys) -> None:
        self._namespace, self._keys = namespace, keys

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002  the SDK's name
    ) -> type[WorkflowInboundInterceptor] | None:
        functions = cast(dict[str, Any], input.unsafe_extern_functions)
        functions[_BELONGS] = self._belongs
        return _Inbound

    def _belongs(self, child: str, parent: str) -> None:
        self._keys.belongs(owner_of(self._namespace, child), owner_of(self._namespace, parent))


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class _Outbound(WorkflowOutboundInterceptor):
    async def start_child_workflow(self, input: StartChildWorkflowInput) -> workflow.ChildWorkflowHandle[Any, Any]:  # noqa: A002  the SDK's name
        belongs = cast(Callable[[str, str], None], workflow.extern_functions()[_BELONGS])
        belongs(input.id, workflow.info().workflow_id)
        return await super().start_child_workflow(input)

"""Lists what this codebase uses of Temporal's SDK beyond its promises, and says at start what is gone.

Each name is used in the one file that its reason names. A part that is overridden here and is not called there any more
would be missed by nobody: sessions would stop at the first forged reference. So a worker does not start without it.
"""

import importlib
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from temporalio.worker import Worker

from longhaul.agent.plain.errors import BadSetup

VERSIONS = ">=1.35,<1.36"
"""Of the SDK: those that the tests have run with, as in pyproject.toml."""

PRIVATE: Mapping[str, str] = {
    "temporalio.bridge.worker:decode_activation": "payload_passes leaves out passes over payloads",
    "temporalio.bridge.worker:encode_completion": "payload_passes leaves out passes over payloads",
    "temporalio.bridge.worker:Worker.request_workflow_eviction": "a run is dropped from a worker's memory",
    "temporalio.bridge.proto.workflow_activation:WorkflowActivation": "unbegun_task_guard reads what a task brings",
    "temporalio.bridge.proto.workflow_commands:WorkflowCommand": "unbegun_task_guard reads what a run begins",
    "temporalio.bridge.proto.workflow_completion:WorkflowActivationCompletion": "unbegun_task_guard answers a task",
    "temporalio.converter._extstore:StorageOperationMetrics": "payload_passes answers in place of a pass",
    "temporalio.converter:DataConverter._decode_reference_payload_sequence": "payload_converter leaves forged ones",
    "temporalio.converter:DataConverter._external_retrieve_payload_sequence": "payload_converter reads only own blobs",
    "temporalio.converter:DataConverter._external_store_payload_sequence": "payload_converter keeps results inline",
    "temporalio.converter:DataConverter._with_store_context": "payload_converter has said whose blobs these are",
    "temporalio.worker._workflow:_CommandAwareDataConverter._ca_context_free_dc": "payload_passes knows ours",
    "temporalio.workflow:_Runtime.current": "web_ui writes details when asked",
    "temporalio.workflow:_Runtime.workflow_get_current_details": "web_ui writes details when asked",
}
"""By module and path within it, why it is used."""
OF_A_WORKER: Mapping[str, str] = {
    "_bridge_worker": "a run is dropped from a worker's memory",
    "_workflow_worker": "a workflow task may take as long as the server waits",
    "_workflow_worker._deadlock_timeout_seconds": "a workflow task may take as long as the server waits",
}
"""The same of a worker that was made and polls workflows."""


class ChangedSdk(BadSetup):
    """The installed Temporal SDK has not all that sessions rest on; the sentence names what is gone and what to do."""


def check_sdk(names: Iterable[str] = PRIVATE) -> None:
    """Raise ChangedSdk for the first of these names that the installed SDK does not have."""
    for name in names:
        module, _, path = name.partition(":")
        try:
            found: Any = importlib.import_module(module)
        except ImportError as error:
            raise _gone(name, PRIVATE.get(name, "")) from error
        for part in path.split("."):
            # A field of a dataclass without a default is no attribute of the class.
            if not hasattr(found, part) and part not in getattr(found, "__dataclass_fields__", {}):
                raise _gone(name, PRIVATE.get(name, ""))
            found = getattr(found, part, None)


def check_worker(worker: Worker) -> None:
    """The same of a worker that polls workflows."""
    for path, why in OF_A_WORKER.items():
        found: Any = worker
        for part in path.split("."):
            if not hasattr(found, part):
                raise _gone(f"temporalio.worker:Worker.{path}", why)
            found = getattr(found, part)


def _gone(name: str, why: str) -> ChangedSdk:
    reason = f", by which {why}" if why else ""
    return ChangedSdk(
        f"temporalio {version('temporalio')} has no {name.replace(':', '.')}{reason}; install temporalio{VERSIONS}"
    )


def forget(worker: Worker, run_id: str) -> None:
    """Drop a run from the worker's memory; the SDK has no public word for it."""
    worker._bridge_worker.request_workflow_eviction(run_id)  # noqa: SLF001


def let_tasks_take(worker: Worker, seconds: int) -> None:
    """Let a workflow task take as long as the server does. Ten thousand operations that came while no worker looked are
    a second's work for the SDK alone, and more on a busy machine: given up after the stock two seconds, they would be
    tried again for ever. The SDK has no public word for it."""
    if worker._workflow_worker is not None:  # noqa: SLF001
        worker._workflow_worker._deadlock_timeout_seconds = seconds  # noqa: SLF001

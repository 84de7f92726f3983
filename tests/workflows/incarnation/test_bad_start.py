"""A run that is started with malformed input ends at once and says why; it is not tried again for ever."""

from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from longhaul.workflows.contract import TASK_TIMEOUT, WORKFLOW
from tests.workflows.conftest import Stage
from tests.workflows.operations import json_text, raw

pytestmark = pytest.mark.server

GOOD = json_text('{"session_id": "lighthouse"}')

BAD: dict[str, tuple[str, list[Any], str]] = {
    "nothing": (WORKFLOW, [], "takes one argument, a SessionStart, and 0 came"),
    "two arguments": (WORKFLOW, [GOOD, GOOD], "takes one argument, a SessionStart, and 2 came"),
    "two that are not JSON": (WORKFLOW, [json_text("hi"), raw(b"\xff", "odd")], "and 2 came"),
    "not JSON": (WORKFLOW, [json_text("hello")], "not a SessionStart: body: Invalid JSON"),
    "another encoding": (WORKFLOW, [raw(b"\x01\x02", "binary/zstd")], "not a SessionStart: body: Invalid JSON"),
    "null": (WORKFLOW, [raw(b"", "binary/null")], "not a SessionStart: body: Invalid JSON"),
    "a list": (WORKFLOW, [json_text("[]")], "not a SessionStart: body: Input should be an object"),
    "no session id": (WORKFLOW, [json_text("{}")], "not a SessionStart: session_id: Field required"),
    "a forged reference": (
        WORKFLOW,
        [raw(b"{}", "json/protobuf", messageType=b"temporal.api.sdk.v1.ExternalStorageReference")],
        "not a SessionStart: session_id: Field required",
    ),
    "something that no run left": (
        WORKFLOW,
        [json_text('{"session_id": "s", "carried": {"session": {"state": {"session_id": "s"}}}}')],
        "not a SessionStart: carried.session.spec: Field required",
    ),
}  # fmt: skip


@pytest.mark.proves("S9")
async def test_a_bad_start_fails_with_a_sentence(unserved: Stage) -> None:
    """One worker for all, in a process of its own: the SDK leaves a coroutine behind for each."""
    handles = {
        label: await unserved.client.start_workflow(
            name,
            args=arguments,
            id=f"{unserved.name}-{label}",
            task_queue=unserved.settings.task_queue,
            task_timeout=TASK_TIMEOUT,
        )
        for label, (name, arguments, _) in BAD.items()
    }
    said: dict[str, str] = {}

    async with unserved.worker_process():
        for label, handle in handles.items():
            with pytest.raises(WorkflowFailureError) as failure:
                await handle.result()
            assert isinstance(failure.value.cause, ApplicationError)
            said[label] = failure.value.cause.message

    assert {label: BAD[label][2] in message for label, message in said.items()} == dict.fromkeys(BAD, True), said

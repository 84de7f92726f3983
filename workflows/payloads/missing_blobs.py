"""Decides once about what came by reference and can't be had: it is written into the history, and the same at each
replay.

A blob that was absent may come back, and one that was there may be deleted. Neither may change what a session has
decided, or its history would not replay. So the first to miss one leaves a marker in the history; a replay that finds
the marker misses it again, whatever lies there now. A replay that finds no marker, and no blob, stands before a history
whose text is lost, and can't go on: the task fails, and says so, until the blob is put back.
"""

from typing import TypeVar

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, ApplicationError

from longhaul.workflows.payloads.converter import HISTORY_LOST, BlobGone, check_had
from longhaul.workflows.payloads.large_payloads import KEY, MISSING, WITH_KEY

Answer = TypeVar("Answer")

RESULT_LOST = "ResultLost"
"""Error type of an activity whose result went by reference and was not there."""


def why_missed(payload: Payload, once: str = "") -> str | None:
    """Why the session does without this payload; None for one that it has. Raises BlobGone, at replay only.

    `once` names the marker, and has to be the only one of its kind in a run. Without it a random name is drawn: whoever
    drew none before may not begin to, or all ids that are drawn later would differ at replay.

    To be asked once for each payload that arrives, in the order of arrival, by code that may schedule commands.
    """
    key = payload.metadata.get(KEY)
    absent = payload.metadata.get("encoding") == MISSING
    if key is None and not absent:
        return None
    if not key:
        # Nobody's, or another session's: that shows by the reference alone, so every replay sees it too.
        return payload.data.decode("utf-8", "replace")[:300]
    marker = f"blob-missed-{once or workflow.uuid4()}"
    was_absent = workflow.patched(marker) if absent or workflow.unsafe.is_replaying() else False
    if not was_absent:
        _check_still_had(payload)
        return None
    if key.startswith(WITH_KEY):
        key_id = key.removeprefix(WITH_KEY).decode("ascii", "replace")[:40]
        return f"the key {key_id} that it was encrypted with was not there"
    return f"what was stored for it as blob {key.decode('ascii', 'replace')[-64:]} was not there, or not whole"


def why_start_missed(payload: Payload) -> str | None:
    """The same for the input of a run. What a roll-over has carried is the session itself, which nobody could forge
    and nothing can stand in for: the task fails until it is there."""
    if workflow.info().continued_run_id is None:
        return why_missed(payload)
    _check_still_had(payload)
    return None


def result_of(arrived: RawValue, answer: type[Answer], once: str = "") -> Answer:
    """What an activity has answered. Raises ActivityError for an answer that was lost on its way."""
    why = why_missed(arrived.payload, once)
    if why is None:
        return workflow.payload_converter().from_payload(arrived.payload, answer)
    lost = ApplicationError(f"It has ended, but {why}: its outcome is lost.", type=RESULT_LOST)
    raise ActivityError(
        "an activity's result is lost",
        scheduled_event_id=0,
        started_event_id=0,
        identity="",
        activity_type="",
        activity_id="",
        retry_state=None,
    ) from lost


def _check_still_had(payload: Payload) -> None:
    try:
        check_had(payload)
    except BlobGone as gone:
        raise BlobGone(f"{HISTORY_LOST}: {gone}") from gone

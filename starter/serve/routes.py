"""The table of routes. Those that send an operation are made of its row (`agent.operations.all_operations`)."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from longhaul.agent.operations.all_operations import OPERATION_ROWS, OperationRow, row_of
from longhaul.starter.serve import acts, event_stream, reads, schedule_requests
from longhaul.starter.serve.hub_requests import HUBS
from longhaul.starter.serve.memory_requests import MEMORIES
from longhaul.starter.serve.request_bodies import (
    LONGEST_WAIT_SECONDS,
    Copy,
    Decision,
    Decisions,
    Edits,
    FromEntry,
    Listing,
    Nothing,
    Paging,
    Reading,
    Requesting,
    Results,
    Sorting,
    Starting,
    StepPaging,
    Whose,
)
from longhaul.starter.serve.requests import IDEMPOTENCY_KEY, REQUEST_SECONDS, Handler, Operation
from longhaul.starter.serve.response_bodies import (
    Alive,
    Copied,
    Decided,
    DecidedAll,
    InboxBody,
    LastDayBody,
    Page,
    Rows,
    RunBody,
    StandingBody,
    StateBody,
    Steps,
    Taken,
    Workers,
)
from longhaul.workflows.contract import ReplyResult

S = "/v1/sessions/{agent}/{session}"
KEY = (IDEMPOTENCY_KEY, "Names the request: sent again, it gives the same reply and runs once")
LAST_SEEN = (event_stream.LAST_EVENT_ID, "The id of the last event that you saw: the stream continues after it")
COMPACT_SECONDS = 120.0
"""It waits for a model call."""
OPERATION_NAMES = {"budget": "changeBudget", "rules": "changeRules"}
"""Of operations that are not called as they are: to read these has the plain name."""
NOTHING: Mapping[int, None] = {204: None}


def _get(
    path: str, name: str, summary: str, handler: Handler, answer: type[BaseModel], query: type[BaseModel] = Whose
) -> Operation:
    return Operation("GET", path, name, summary, handler, "read", {200: answer}, query)


def _in_one_word(name: str) -> str:
    """As in `wouldPass`: operations are called so."""
    return re.sub("[-_](.)", lambda found: found[1].upper(), name)


def _of_operation(row: OperationRow[Any]) -> Operation:
    """As the operation's row says."""
    name = OPERATION_NAMES.get(row.name) or _in_one_word(row.name)
    return Operation(
        "POST",
        f"{S}/{row.path}",
        name,
        row.help,
        acts.by_operation(row),
        row.scope,
        NOTHING if row.answer is None else {200: row.answer},
        Starting if row.begins else Whose,
        row.body,
        (KEY,) if row.once else (),
        COMPACT_SECONDS if row.name == "compact" else REQUEST_SECONDS,
    )


def _spelt_out(
    operation: str, name: str, handler: Handler, answers: Mapping[int, type[BaseModel] | None], **more: Any
) -> Operation:
    row = row_of(operation)
    usual: dict[str, Any] = {"query": Whose, "body": row.body}
    return Operation("POST", f"{S}/{row.path}", name, row.help, handler, row.scope, answers, **usual | more)


def _of_schedule(
    what: str,
    summary: str,
    handler: Handler,
    body: type[BaseModel] = Nothing,
    answers: Mapping[int, type[BaseModel] | None] = NOTHING,
) -> Operation:
    path = f"/v1/schedules/{{schedule}}/{what}"
    return Operation("POST", path, f"{what}Schedule", summary, handler, "answer", answers, Whose, body)


SCHEDULES: tuple[Operation, ...] = (
    _get(
        "/v1/schedules",
        "schedules",
        "Requests at set times",
        schedule_requests.schedules,
        schedule_requests.ScheduleRows,
    ),
    Operation(
        "POST",
        "/v1/schedules",
        "addSchedule",
        "Add a schedule",
        schedule_requests.add_schedule,
        "answer",
        {201: schedule_requests.ScheduleBody},
        Whose,
        schedule_requests.NewSchedule,
    ),
    _get(
        "/v1/schedules/{schedule}",
        "schedule",
        "One schedule, and the results of its newest runs",
        schedule_requests.schedule,
        schedule_requests.ScheduleWithRuns,
    ),
    _of_schedule("pause", "Pause it until it is resumed", schedule_requests.pause_schedule, schedule_requests.Why),
    _of_schedule("resume", "Resume it", schedule_requests.resume_schedule),
    _of_schedule(
        "trigger",
        "Start a run now, also while it is paused; returns the result",
        schedule_requests.trigger_schedule,
        answers={200: schedule_requests.ScheduledRunBody},
    ),
    _of_schedule("remove", "Remove it; its sessions stay", schedule_requests.remove_schedule),
)
SPELT_OUT: tuple[Operation, ...] = (
    _spelt_out(
        "submit",
        "message",
        acts.message,
        {202: Taken, 200: Taken},
        query=Requesting,
        headers=(KEY,),
        seconds=REQUEST_SECONDS + LONGEST_WAIT_SECONDS,
    ),
    _spelt_out(
        "confirm",
        "decide",
        acts.decide,
        {200: Decided},
        body=Decision,
        fields={"input": "edit", "rules": "steer"},
    ),
    _spelt_out("external_result", "externalResults", acts.external_results, NOTHING, body=Results),
)
"""Operations that are told here otherwise than by their rows: what is answered depends on what comes of them, or each
call may be a sub-agent's."""
_SAID = {one.path for one in SPELT_OUT}
OF_OPERATIONS = (
    *SPELT_OUT,
    *(_of_operation(row) for row in OPERATION_ROWS if row.path and f"{S}/{row.path}" not in _SAID),
)
OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/health", "health", "Whether the server is alive", reads.health, None, {200: Alive}),
    Operation("GET", "/ready", "ready", "Whether it can reach the sessions", reads.ready, None, {200: Alive}),
    _get("/v1/sessions", "sessions", "Open sessions", reads.sessions, Rows, Listing),
    _get("/v1/inbox", "inbox", "Everything that waits for somebody", reads.inbox, InboxBody, Sorting),
    _get("/v1/standing", "standing", "How many sessions work, wait, sleep or are paused", reads.standing, StandingBody),
    _get("/v1/last-day", "lastDay", "What the sessions of the last 24 hours cost", reads.last_day, LastDayBody),
    Operation("GET", "/v1/workers", "workers", "Workers, and their builds", reads.workers, "admin", {200: Workers}),
    *(
        _get(f"{S}/{row.path}", _in_one_word(row.path), row.help, reads.by_read(row), row.answer, row.query)
        for row in reads.READS
    ),
    _get(f"{S}/transcript", "transcript", "What was said", reads.transcript, Page, Paging),
    _get(f"{S}/context", "context", "What the model reads now", reads.context, Page, Paging),
    _get(f"{S}/history", "history", "What was said and done, step by step", reads.history, Steps, StepPaging),
    _get(f"{S}/run", "run", "What took time: replies, calls, waits and sub-agents", reads.run, RunBody, FromEntry),
    _get(f"{S}/result/{{reply_id}}", "result", "The status of a reply", reads.result, ReplyResult),
    Operation(
        "GET",
        f"{S}/events",
        "events",
        "What happens, as server-sent events",
        event_stream.events,
        "read",
        {200: "text/event-stream"},
        Reading,
        None,
        (LAST_SEEN,),
    ),
    _get(f"{S}/state", "state", "The state, as JSON", acts.state, StateBody),
    Operation(
        "POST",
        f"{S}/state/edits",
        "editState",
        "Edit the state of a session that is idle or waits",
        acts.edit_state,
        "steer",
        NOTHING,
        Whose,
        Edits,
    ),
    *OF_OPERATIONS,
    Operation(
        "POST",
        f"{S}/decisions/all",
        "decideAll",
        "Allow or deny several calls that wait for a person: all of them, or none",
        acts.decide_all,
        "approve",
        {200: DecidedAll},
        Whose,
        Decisions,
    ),
    *SCHEDULES,
    *HUBS,
    Operation(
        "POST",
        f"{S}/copies",
        "copy",
        "Start a new session from this one's state",
        acts.copy,
        "steer",
        {201: Copied},
        Whose,
        Copy,
    ),
    *MEMORIES,
)

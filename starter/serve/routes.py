"""The table of routes."""

from agent.bodies import Interrupt
from agent.upkeep_bodies import ChangeRules, Compact, Configure, Resume, Settle
from starter.serve import doing, looking, streaming
from starter.serve.bodies import (
    LONGEST_WAIT_SECONDS,
    Added,
    Alive,
    Calls,
    Compacted,
    Decided,
    Decision,
    InboxBody,
    Interrupted,
    Listing,
    Message,
    Observation,
    Page,
    Paging,
    Reading,
    Results,
    Rows,
    RulesBody,
    Sorting,
    Taken,
    Waiting,
    Whose,
)
from starter.serve.operation import REQUEST_SECONDS, Operation
from workflows.contract import ReplyResult, Status

S = "/v1/sessions/{agent}/{session}"
KEY = (doing.IDEMPOTENCY_KEY, "Names the request: sent again, it gives the same reply and is made once")
LAST_SEEN = (streaming.LAST_EVENT_ID, "The id of the last event that was seen: the stream goes on after it")
COMPACT_SECONDS = 120.0
"""It waits for a model call."""


OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/health", "health", "Whether the server is alive", looking.health, None, {200: Alive}),
    Operation("GET", "/ready", "ready", "Whether it can reach the sessions", looking.ready, None, {200: Alive}),
    Operation("GET", "/v1/sessions", "sessions", "Open sessions", looking.sessions, "read", {200: Rows}, Listing),
    Operation(
        "GET", "/v1/inbox", "inbox", "All that waits for somebody", looking.inbox, "read", {200: InboxBody}, Sorting
    ),
    Operation(
        "POST",
        f"{S}/messages",
        "message",
        "Ask for a reply; the first message begins the session",
        doing.message,
        "write",
        {202: Taken, 200: Taken},
        Waiting,
        Message,
        (KEY,),
        REQUEST_SECONDS + LONGEST_WAIT_SECONDS,
    ),
    Operation("GET", f"{S}/status", "status", "One session at a glance", looking.status, "read", {200: Status}, Whose),
    Operation("GET", f"{S}/pending", "pending", "Calls that wait", looking.pending, "read", {200: Calls}, Whose),
    Operation("GET", f"{S}/transcript", "transcript", "What was said", looking.transcript, "read", {200: Page}, Paging),
    Operation(
        "GET",
        f"{S}/result/{{reply_id}}",
        "result",
        "How a reply stands",
        looking.result,
        "read",
        {200: ReplyResult},
        Whose,
    ),
    Operation(
        "GET",
        f"{S}/events",
        "events",
        "What happens, as server-sent events",
        streaming.events,
        "read",
        {200: "text/event-stream"},
        Reading,
        None,
        (LAST_SEEN,),
    ),
    Operation(
        "POST",
        f"{S}/decisions",
        "decide",
        "Allow or deny a call, in the name of whoever asks",
        doing.decide,
        "approve",
        {200: Decided},
        Whose,
        Decision,
    ),
    Operation(
        "POST",
        f"{S}/external-results",
        "externalResults",
        "Hand in results of external tools",
        doing.external_results,
        "write",
        {204: None},
        Whose,
        Results,
    ),
    Operation(
        "POST",
        f"{S}/settle",
        "settle",
        "Say whether a call happened whose outcome is unknown",
        doing.settle,
        "approve",
        {204: None},
        Whose,
        Settle,
    ),
    Operation(
        "POST",
        f"{S}/interrupt",
        "interrupt",
        "End a reply",
        doing.interrupt,
        "write",
        {200: Interrupted},
        Whose,
        Interrupt,
    ),
    Operation(
        "POST", f"{S}/observe", "observe", "Add to the context", doing.observe, "write", {204: None}, Whose, Observation
    ),
    Operation(
        "POST",
        f"{S}/configure",
        "configure",
        "Change settings",
        doing.configure,
        "approve",
        {204: None},
        Whose,
        Configure,
    ),
    Operation(
        "POST",
        f"{S}/compact",
        "compact",
        "Make the context shorter, and wait for it",
        doing.compact,
        "write",
        {200: Compacted},
        Whose,
        Compact,
        (),
        COMPACT_SECONDS,
    ),
    Operation(
        "POST", f"{S}/resume", "resume", "Let a held session go on", doing.resume, "write", {204: None}, Whose, Resume
    ),
    Operation("GET", f"{S}/rules", "rules", "What it may do unasked", looking.rules, "read", {200: RulesBody}, Whose),
    Operation(
        "POST",
        f"{S}/rules",
        "changeRules",
        "Add and revoke rules",
        doing.change_rules,
        "approve",
        {200: Added},
        Whose,
        ChangeRules,
    ),
)

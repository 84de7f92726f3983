"""Tells what waits beside calls: one whose outcome is unknown, a reply that needs more budget, the queue."""

from longhaul.agent.entries import Doubt
from longhaul.agent.letters import request_operations
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import title_of
from longhaul.agent.views.session_views import CALL_ID, path
from longhaul.workflows.contract import PendingCall, WaitingRequest

SHOWN_REQUESTS = 20
REQUEST_CHARS = 600


def lacking_budget(record: Record) -> list[PendingCall]:
    """No call of a model, but somebody has to answer all the same."""
    question = record.account.question if record.account else None
    if question is None or record.reply is None:
        return []
    lacks = {"lacks": [lack.model_dump(mode="json") for lack in question.lacks]}
    return [
        PendingCall(
            path=path(record, CALL_ID),
            reply_id=record.reply.reply_id,
            call_id=CALL_ID,
            tool=CALL_ID,
            input=canonical_json(lacks),
            waits_for="budget",
            reason=question.why,
            asked_at=iso(question.at),
        )
    ]


def in_doubt(doubt: Doubt, where: str) -> PendingCall:
    return PendingCall(
        path=where,
        reply_id=doubt.reply_id,
        call_id=doubt.call_id,
        tool=doubt.tool,
        input=doubt.input,
        waits_for="settlement",
        reason=doubt.why,
        asked_at=iso(doubt.at),
    )


def first_requests(record: Record) -> tuple[WaitingRequest, ...]:
    """Those that have not begun, in their order."""
    joins = len(record.requests.steering)
    return tuple(
        WaitingRequest(
            request_id=each.request_id,
            reply_id=each.reply_id,
            when=each.when,
            joins=place < joins,
            text=title_of(each.messages, REQUEST_CHARS),
        )
        for place, each in enumerate(request_operations.waiting(record)[:SHOWN_REQUESTS])
    )

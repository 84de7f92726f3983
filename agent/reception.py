"""What comes in from outside: bodies become entries, or are refused with a sentence that changes nothing.

Rules of this file: it reads the record and never changes it; a refusal is the only exception it raises.
"""

from collections.abc import Callable
from typing import Any, assert_never

from agent import answers, offers, outside, pausing, rule_letters, settling, upkeep
from agent import entries as e
from agent.bodies import (
    Body,
    Confirm,
    ExternalExecutionResultEvent,
    ExternalResult,
    Interrupt,
    Observe,
    Submit,
    Unusable,
    UserConfirmResultEvent,
    parse,
)
from agent.canonical import digest_of
from agent.decision import FULL
from agent.keeping import CARRY_LIMIT
from agent.ledger import RESTORING, SUPERVISED
from agent.letters import Letter, Received
from agent.record import Record
from agent.upkeep_bodies import (
    ChangeRules,
    Compact,
    Configure,
    PauseSession,
    ReplaceState,
    Resume,
    Settle,
    TakeStep,
    WorkerLeft,
)

MAX_QUEUE = 500
MAX_QUEUE_BYTES = 32_000_000
"""Of the requests that wait, as JSON, before the newest one: each worker that runs the session holds them, and each
roll-over carries them."""


def receive(  # noqa: C901, PLR0911, PLR0912  one arm per kind of body
    record: Record, letter: Letter, reply_id_of: Callable[[str], str]
) -> Received:
    """Read one letter; raises Unusable with the reason when it can't be acted on."""
    body = parse(letter.name, letter.arguments)
    if record.format < RESTORING and record.weight + letter.weight > CARRY_LIMIT and not _ends_something(body):
        raise Unusable(FULL.message)
    offers.refuse_unsigned(record, body)
    match body:
        case Submit():
            return _submit(record, body, letter, reply_id_of)
        case Observe():
            entry = e.Observed(messages=body.messages)
            return Received((entry,), {"observed": len(body.messages)})
        case Interrupt():
            return _interrupt(record, body)
        case Configure():
            return rule_letters.configure(record, body)
        case ChangeRules():
            return rule_letters.change(record, body)
        case Compact() | ReplaceState() | WorkerLeft():
            return upkeep.receive(record, body)
        case PauseSession():
            return pausing.pause(record, body)
        case Resume():
            return pausing.resume(record, body)
        case TakeStep():
            return pausing.take_step(record, body)
        case Settle():
            return settling.settle(record, body)
        case Confirm():
            return offers.decide(record, body)
        case UserConfirmResultEvent():
            decisions = tuple(answers.as_decision(record, result) for result in body.confirm_results)
            return answers.confirm(record, body.reply_id, decisions, "")
        case ExternalResult():
            return outside.external(record, body)
        case ExternalExecutionResultEvent():
            return outside.external_event(record, body)
        case _ as never:
            assert_never(never)


def _ends_something(body: Body) -> bool:
    """What a full session still takes: else a call that waits could neither be decided on nor be interrupted."""
    match body:
        case Confirm() | UserConfirmResultEvent() | Configure() | ChangeRules() | Compact():
            return True
        case PauseSession() | Resume() | TakeStep() | WorkerLeft():
            return True
        case Interrupt():
            return not body.message
        case _:
            return False


def _submit(record: Record, body: Submit, letter: Letter, reply_id_of: Callable[[str], str]) -> Received:
    request_id = body.request_id or letter.fresh_id
    sent = [message.model_dump(mode="json") for message in body.messages]
    digest = digest_of([*sent, {"context": body.context}] if body.context else sent)
    if before := record.handled.get(request_id):
        if before.body_digest != digest:
            raise Unusable(f"request_id {request_id!r} was used before for another message; take a new id")
        return Received((), _receipt(record, request_id, before.reply_id))
    if len(record.queue) >= MAX_QUEUE:
        raise Unusable(f"{MAX_QUEUE} requests wait already; send this one again when some are done")
    _check_room(record)
    if not body.messages and not record.state.context:
        raise Unusable("messages: there is nothing to go on from yet; send a first message")
    entry = e.RequestAccepted(
        request_id=request_id,
        reply_id=reply_id_of(request_id),
        body_digest=digest,
        messages=body.messages,
        context=body.context,
    )
    return Received((entry,), {**_receipt(record, request_id, entry.reply_id), "position": len(record.queue)})


def _check_room(record: Record) -> None:
    if record.state.behaviour < SUPERVISED:
        return
    waiting = sum(request.size_bytes for request in record.queue)
    if waiting >= MAX_QUEUE_BYTES:
        raise Unusable(
            f"the requests that wait have {waiting // 1000} kB, and from {MAX_QUEUE_BYTES // 1000} kB on none is "
            "added; send this one again when some are done, and put large content into files that you name"
        )


def _receipt(record: Record, request_id: str, reply_id: str) -> dict[str, Any]:
    waiting = [entry.request_id for entry in record.queue]
    position = waiting.index(request_id) if request_id in waiting else 0
    return {"request_id": request_id, "reply_id": reply_id, "position": position}


def _interrupt(record: Record, body: Interrupt) -> Received:
    reply = record.reply
    if reply is None:
        raise Unusable("there is nothing to interrupt: no reply is being made")
    if body.reply_id not in (None, reply.reply_id):
        raise Unusable(f"reply_id: {body.reply_id!r} is not the reply being made; that is {reply.reply_id!r}")
    if reply.interrupted:
        raise Unusable(f"reply {reply.reply_id!r} has been interrupted already")
    entry = e.InterruptAsked(reply_id=reply.reply_id, messages=body.message)
    return Received((entry,), {"interrupted": reply.reply_id})

"""What comes in from outside: bodies become entries, or are refused with a sentence that changes nothing.

Rules of this file: it reads the record and never changes it; a refusal is the only exception it raises.
"""

from collections.abc import Callable
from typing import assert_never

from agent import answers, offers, outside, pausing, requests, rule_letters, settling, upkeep
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
from agent.decision import FULL
from agent.keeping import CARRY_LIMIT
from agent.ledger import RESTORING
from agent.letters import Letter, Received
from agent.record import Record
from agent.two_people import refuse_alone
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


def receive(  # noqa: C901, PLR0911, PLR0912  one arm per kind of body
    record: Record, letter: Letter, reply_id_of: Callable[[str], str]
) -> Received:
    """Read one letter; raises Unusable with the reason when it can't be acted on."""
    body = parse(letter.name, letter.arguments)
    if record.format < RESTORING and record.weight + letter.weight > CARRY_LIMIT and not _ends_something(body):
        raise Unusable(FULL.message)
    offers.refuse_unsigned(record, body)
    refuse_alone(record, body)
    match body:
        case Submit():
            return requests.submit(record, body, letter, reply_id_of)
        case Observe():
            entry = e.Observed(messages=body.messages)
            return Received((entry,), {"observed": len(body.messages)})
        case Interrupt():
            return requests.interrupt(record, body)
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

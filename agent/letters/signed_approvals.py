"""Signed decisions from when they come in until they count, or do not: a worker checks them, which is recorded."""

from typing import Any

from pydantic import ValidationError

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.ledger.agent_state import AgentState
from longhaul.agent.letters.approvals import confirm
from longhaul.agent.letters.bodies import (
    ChangeRules,
    Configure,
    Confirm,
    ReplaceState,
    Unusable,
    UserConfirmResultEvent,
)
from longhaul.agent.letters.letter import Received
from longhaul.agent.permission.foreign_rules import understood
from longhaul.agent.plain.import_problem import ImportProblem
from longhaul.agent.record import Record
from longhaul.agent.values.permission import Behavior

MOST_OFFERS = 20
"""That wait to be checked: each costs an activity, also those that somebody makes up."""


def must_sign(record: Record) -> bool:
    return record.state.permission_context.approvals == "signed"


def decide(record: Record, body: Confirm) -> Received:
    """Decisions that count at once, or signed ones that are put down to be checked. All is checked that can be here."""
    signed = [one for one in body.decisions if one.signature is not None]
    if not signed and not must_sign(record):
        return confirm(record, body.reply_id, body.decisions, body.approver)
    for one in body.decisions:
        if one.signature is None:
            raise Unusable(
                f"decisions: the one on {one.call_id!r} has no signature, and only signed ones are taken here; decide "
                "with LONGHAUL_APPROVAL_KEY set"
            )
        if one.digest is None or body.reply_id is None:
            raise Unusable(
                f"decisions: a signed one names reply_id and digest, and the one on {one.call_id!r} does not"
            )
    confirm(record, body.reply_id, body.decisions, body.approver)
    if len(record.offers.waiting) >= MOST_OFFERS:
        raise Unusable(f"{MOST_OFFERS} signed decisions wait to be checked; send this one again in a moment")
    offered = e.DecisionsOffered(body=body.model_dump(mode="json"))
    return Received((offered,), {"checking": [one.call_id for one in body.decisions], "offer": record.seq + 1})


def settle(record: Record, number: int, why: str, key: str) -> tuple[e.AnyEntry, ...]:
    """What is recorded of an offer that was checked: meanwhile somebody else may have decided, or the world changed."""
    offer = record.offers.waiting.get(number)
    if offer is None:
        return ()
    if not why:
        try:
            body = Confirm.model_validate(offer.body)
            received = confirm(record, body.reply_id, body.decisions, body.approver, key)
        except Unusable as refusal:
            why = str(refusal)
        else:
            return (e.OfferSettled(offer=number), *received.entries)
    refused = e.LetterRefused(name="confirm", reason=why, count=record.refused.count + 1)
    return (e.OfferSettled(offer=number, why=why), refused)


def refuse_unsigned(record: Record, body: object) -> None:
    """Where decisions must be signed, nothing that comes without a signature may loosen what needs one."""
    if not must_sign(record):
        return
    match body:
        case UserConfirmResultEvent():
            raise Unusable("confirm_results: only signed decisions are taken here, and this event has no signature")
        case Configure() if _may_loosen(body):
            raise Unusable(
                "configure: mode, allow rules, confirm, analyzers and middlewares stay as they are where "
                "decisions must be signed"
            )
        case ChangeRules() if body.revoke or any(rule.behavior is Behavior.ALLOW for rule in body.add):
            raise Unusable("rules: where decisions must be signed, deny and ask rules can be added, and none revoked")
        case ReplaceState() if kept := _loosened(record, body.state):
            raise Unusable(f"state.{kept}: it stays as it is where decisions must be signed")
        case _:
            pass


def _may_loosen(body: Configure) -> bool:
    allows = any(rule.behavior is Behavior.ALLOW for rule in body.rules)
    # A middleware may be there to stop calls.
    given = (body.mode, body.confirm, body.analyzers, body.middlewares)
    return allows or any(value is not None for value in given)


_KEPT = ("permission_context", "plan_mode_context", "tainted")
"""Of a state, what decides what runs unasked."""


def _loosened(record: Record, state: dict[str, Any]) -> str:
    """The first of these parts that would not be as it is now, read as the letter will be: rules that others spell
    otherwise are rules too. A state that can't be read is refused as that."""
    try:
        given = AgentState.model_validate(understood(state))
    except (ImportProblem, ValidationError):
        return ""
    return next((name for name in _KEPT if getattr(given, name) != getattr(record.state, name)), "")

"""Letters about a session as a whole: make its context shorter, give it another state."""

from typing import Any, assert_never

from pydantic import ValidationError

from agent import entries as e
from agent.bodies import Unusable, what_is_wrong
from agent.compaction import threshold, tokens, too_big_without_context
from agent.ledger import COMPRESSING, SUPERVISED
from agent.letters import Received
from agent.permission.checks import BadRule
from agent.permission.rulebook import check_book
from agent.record import Record
from agent.state import AgentState
from agent.upkeep_bodies import Compact, ReplaceState, WorkerLeft
from agent.wellformed import problem

TOO_BIG = "too_big"
"""Kind of refusal: no compression could help, for the system prompt and the tools alone are too large."""
MOVED_ON = "moved_on"
"""Kind of refusal: the state is not what whoever sent this had read."""


def receive(record: Record, body: Compact | ReplaceState | WorkerLeft) -> Received:
    match body:
        case Compact():
            return compact(record, body)
        case ReplaceState():
            return replace_state(record, body)
        case WorkerLeft():
            return worker_left(record, body)
        case _ as never:
            assert_never(never)


def compact(record: Record, body: Compact) -> Received:
    config = body.context_config or record.spec.context_config
    if record.state.behaviour < COMPRESSING or not record.window:
        raise Unusable("there is nothing to compact: this session has made no reply yet")
    if too_big := too_big_without_context(record, config):
        raise Unusable(too_big.message, TOO_BIG)
    used, limit = tokens(record), threshold(record, config)
    answer = {"compacting": used > limit, "context_tokens": used, "threshold": limit, "epoch": record.epoch}
    if used <= limit:
        return Received((), answer)
    asked = e.CompressAsked(config=body.context_config, instructions=body.instructions, by=body.by)
    return Received((asked,), answer)


def worker_left(record: Record, body: WorkerLeft) -> Received:
    """Nothing is recorded of a session that is at nothing: there is nothing to go on with."""
    if record.state.behaviour < SUPERVISED:
        raise Unusable("worker_left: this session's reply was begun by an earlier release, which does not record it")
    if record.reply is None:
        return Received((), {"recorded": False})
    return Received((e.WorkerLeft(worker=body.worker, doing=body.doing, call_id=body.call_id),), {"recorded": True})


def replace_state(record: Record, body: ReplaceState) -> Received:
    """Only of an idle session: what is open in a reply would hang on a context that is gone."""
    if record.reply is not None or record.queue:
        raise Unusable("the session is at work; wait for its reply, or interrupt it, and send this again")
    if body.expected_seq is not None and body.expected_seq != record.changed:
        raise Unusable(
            f"expected_seq: {body.expected_seq} is not where the session stands; that is {record.changed}. Read its "
            "state again and make the change there",
            MOVED_ON,
        )
    try:
        state = AgentState.model_validate(body.state)
    except ValidationError as error:
        raise Unusable(f"state.{what_is_wrong(error)}") from error
    if wrong := problem(state.context):
        raise Unusable(f"state.context: {wrong}")
    if record.state.behaviour >= SUPERVISED:
        try:
            check_book(state.permission_context.rules)
        except BadRule as error:
            raise Unusable(f"state.permission_context.{error}") from error
    replaced = e.StateReplaced(state=state.model_dump(mode="json"), by=body.by, why=body.why)
    return Received((replaced,), {"replaced": True, "messages": len(state.context)})


def shutdown(record: Record) -> dict[str, Any]:
    """What a session's status says of a worker that has left it, as far as the log still tells of it."""
    interrupted = record.state.shutdown_interrupted
    left = (entry.worker for entry in reversed(record.log) if interrupted and isinstance(entry, e.WorkerLeft))
    return {"shutdown_interrupted": interrupted, "left_by": next(left, "")}

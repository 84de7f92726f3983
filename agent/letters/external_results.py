"""Results that outside systems hand in: joined with the pieces before them, checked and measured, or refused."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.letters.approvals import waiting_call
from longhaul.agent.letters.bodies import ExternalExecutionResultEvent, ExternalResult, Unusable
from longhaul.agent.letters.letter import Received
from longhaul.agent.letters.server_questions import answered
from longhaul.agent.plain.result_schema import wrong_places
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import DataBlock, TextBlock, ToolResultBlock, ToolResultState
from longhaul.agent.values.conversation.server_questions import ServerAsked

RESULT_LIMIT_KB = 5_000
"""Of one result with all of its pieces: it is carried along until a worker has shortened it."""
BLOCKS_LIMIT = 100
PIECES_LIMIT = 1_000
"""Each is an entry, and carried until the call has its result."""

Output = str | tuple[TextBlock | DataBlock, ...]
_Entry = e.ToolReturned | e.ResultReceived | e.PieceReceived | e.InputAnswered


class Handed(NamedTuple):
    """One result, or a piece of one, as it came."""

    result: ToolResultBlock
    value: Any
    """The output as a JSON value: what a schema is for."""
    partial: bool = False
    by: str = ""


def external(record: Record, body: ExternalResult) -> Received:
    handed = [
        Handed(_block(record, item.id, item.output, failed=item.state == "error"), item.output, item.partial, body.by)
        for item in body.results
    ]
    return _received(record, body.reply_id, handed)


def external_event(record: Record, body: ExternalExecutionResultEvent) -> Received:
    """The seed's own event."""
    return _received(record, body.reply_id, [Handed(result, result.get_text()) for result in body.execution_results])


def _received(record: Record, reply_id: str | None, handed: Sequence[Handed]) -> Received:
    """All of them, or none."""
    ids = [one.result.id for one in handed]
    if len(set(ids)) != len(ids):
        raise Unusable(f"results: {ids} names a call twice; hand in one result for each")
    entries = tuple(_entry(record, waiting_call(record, reply_id, one.result.id, "outside"), one) for one in handed)
    answer = {"received": [one.result.id for one in handed if not one.partial]}
    pieces = [one.result.id for one in handed if one.partial]
    return Received(entries, {**answer, "pieces": pieces} if pieces else answer)


def _entry(record: Record, call: OpenCall, handed: Handed) -> _Entry:
    result = handed.result
    if result.name != call.block.name:
        raise Unusable(f"results: call {result.id!r} is of {call.block.name!r}, not of {result.name!r}")
    if call.asked is not None:
        return _answer(call, call.asked, handed)
    whole = result.model_copy(update={"output": _joined(call.pieces, result.output)})
    _check_size(call, whole)
    _check_schema(record, call, handed)
    if handed.partial:
        return e.PieceReceived(call_id=result.id, text=_piece(call, handed))
    # A token has at least one byte: what has fewer bytes than tokens are allowed need not be looked at.
    limit = record.spec.context_config.tool_result_limit
    if len(whole.model_dump_json().encode()) <= limit:
        return e.ToolReturned(result=whole, outside=True)
    return e.ResultReceived(result=whole)


def _answer(call: OpenCall, asked: ServerAsked, handed: Handed) -> e.InputAnswered:
    if handed.partial or handed.result.state is not ToolResultState.SUCCESS:
        raise Unusable(
            f"results: {call.block.id!r} waits for an answer to {asked.server!r}, whole and without an error; to "
            "refuse it, answer decline or cancel"
        )
    return answered(call.block.id, asked, handed.value, handed.by)


def _piece(call: OpenCall, handed: Handed) -> str:
    result = handed.result
    if not isinstance(handed.value, str) or result.state is not ToolResultState.SUCCESS:
        raise Unusable(f"partial: a piece of {result.id!r} is text, without an error; the last one may be anything")
    if len(call.pieces) >= PIECES_LIMIT:
        raise Unusable(f"partial: {result.id!r} has {PIECES_LIMIT} pieces, and that is the most; hand in the last one")
    return handed.value


def _joined(pieces: Sequence[str], last: Output) -> Output:
    if not pieces:
        return last
    before = "".join(pieces)
    return before + last if isinstance(last, str) else (TextBlock(text=before), *last)


def _check_size(call: OpenCall, whole: ToolResultBlock) -> None:
    size = len(whole.model_dump_json().encode()) // 1000
    if size > RESULT_LIMIT_KB:
        raise Unusable(
            f"results: {call.block.id!r} would have {size} kB with all of its pieces, and the most is "
            f"{RESULT_LIMIT_KB} kB; put the content where the agent can read it, and say where"
        )
    if not isinstance(whole.output, str) and len(whole.output) > BLOCKS_LIMIT:
        raise Unusable(f"results: {call.block.id!r} has {len(whole.output)} blocks, and the most is {BLOCKS_LIMIT}")


def _check_schema(record: Record, call: OpenCall, handed: Handed) -> None:
    tool = record.provided.tools.get(call.block.name)
    schema = tool.result_schema if tool is not None else None
    if schema is None or handed.result.state is not ToolResultState.SUCCESS:
        return
    if handed.partial:
        raise Unusable(f"partial: results of {call.block.name!r} have a schema, so that they come in one piece")
    wrong = wrong_places(handed.value, schema)
    if wrong and isinstance(handed.value, str):
        wrong = _wrong_text(handed.value, schema, wrong)
    if wrong:
        places = "; ".join(wrong)
        raise Unusable(f"results: {call.block.id!r} does not fit what {call.block.name} answers with: {places}")


def _wrong_text(text: str, schema: dict[str, Any], wrong: list[str]) -> list[str]:
    """Where text came, it may be JSON that was written down."""
    try:
        return wrong_places(json.loads(text), schema)
    except (ValueError, RecursionError):
        return wrong


def _block(record: Record, call_id: str, output: Any, *, failed: bool) -> ToolResultBlock:
    state = ToolResultState.ERROR if failed else ToolResultState.SUCCESS
    name = record.calls.names.get(call_id, "")
    return ToolResultBlock(id=call_id, name=name, output=_as_output(output), state=state)


def _as_output(output: Any) -> Output:
    if isinstance(output, str):
        return output
    try:
        return _BLOCKS.validate_python(output)
    except ValidationError:
        return json.dumps(output, ensure_ascii=False)


_BLOCKS = TypeAdapter(
    Annotated[tuple[Annotated[TextBlock | DataBlock, Field(discriminator="type")], ...], Field(min_length=1)]
)

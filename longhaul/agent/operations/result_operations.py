"""Results that come from outside: of external tools, of people who answer an MCP server, and about calls with an
unknown outcome. They are joined with the pieces before them, checked, measured, or refused.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, cast

from pydantic import Field, TypeAdapter, ValidationError

from longhaul.agent import entries as e
from longhaul.agent.entries import InputAnswered, UnknownOutcome
from longhaul.agent.journal import Journal
from longhaul.agent.operations.approval_operations import waiting_call
from longhaul.agent.operations.bodies import ExternalExecutionResultEvent, ExternalResult, Received, Resolve, Unusable
from longhaul.agent.plain.errors import short_form
from longhaul.agent.plain.json_schemas import wrong_places
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.values.conversation.messages import (
    DataBlock,
    ServerAsked,
    ServerQuestion,
    TextBlock,
    ToolResultBlock,
    ToolResultState,
    example,
)

ACTIONS = ("accept", "decline", "cancel")
LONGEST_ANSWER_BYTES = 20_000


def answered(call_id: str, asked: ServerAsked, given: object, by: str) -> InputAnswered:
    """`given`: JSON or a value. `{"action": …, "content": …}`; one for each key where there are several questions; or
    one word for all."""
    value = _parsed(given)
    if isinstance(value, str) and value in ACTIONS:
        value = {key: {"action": value} for key in asked.questions}
    if not isinstance(value, dict):
        raise Unusable(
            f"results: {short_form(given)} is no answer to {asked.server!r}; write {example(asked)}, or decline"
        )
    answers = cast(dict[str, Any], value)
    if len(asked.questions) == 1 and isinstance(answers.get("action"), str):
        answers = dict.fromkeys(asked.questions, answers)
    if unknown := [key for key in answers if key not in asked.questions]:
        raise Unusable(f"results: {short_form(unknown[0])} was not asked; answer {', '.join(asked.questions)}")
    if missing := [key for key in asked.questions if key not in answers]:
        raise Unusable(f"results: {short_form(missing[0])} has no answer; write {example(asked)}")
    checked = {key: _checked(key, one, answers[key]) for key, one in asked.questions.items()}
    try:
        text = canonical_json(checked).decode()
    except (ValueError, RecursionError):
        raise Unusable(
            "results: the answer is no plain JSON; send texts, numbers, true, false and lists of texts"
        ) from None
    if len(text) > LONGEST_ANSWER_BYTES:
        raise Unusable(f"results: the answer has {len(text):,} bytes, and the most is {LONGEST_ANSWER_BYTES:,}")
    return InputAnswered(call_id=call_id, answers=text, by=by)


def _checked(key: str, question: ServerQuestion, answer: object) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise Unusable(f"results: {key}: {short_form(answer)} is no answer; write an object with action and content")
    given = cast(dict[str, Any], answer)
    if other := sorted(set(given) - {"action", "content"}):
        raise Unusable(f"results: {key}: {short_form(other[0])} is not known here; there are action and content")
    action, content = given.get("action"), given.get("content")
    if action not in ACTIONS:
        raise Unusable(f"results: {key}: action: {short_form(action)} is none of {', '.join(ACTIONS)}")
    if action != "accept" or question.url:
        if content is not None:
            raise Unusable(f"results: {key}: content: there is nothing to fill in; leave it out")
        return {"action": action}
    content = {} if content is None else content
    if wrong := wrong_places(content, question.fields):
        raise Unusable(f"results: {key}: content does not fit what was asked: {'; '.join(wrong)}")
    return {"action": action, "content": content}


def _parsed(given: object) -> object:
    if not isinstance(given, str) or given.strip() in ACTIONS:
        return given.strip() if isinstance(given, str) else given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


RESULT_LIMIT_KB = 5_000
"""Of one result with all of its pieces: it is carried along until a worker has shortened it."""
BLOCKS_LIMIT = 100
PIECES_LIMIT = 1_000
"""Each is an entry, and carried until the call has its result."""

Output = str | tuple[TextBlock | DataBlock, ...]
_Entry = e.ToolReturned | e.ResultReceived | e.DeltaReceived | e.InputAnswered


class Handed(NamedTuple):
    """One result, or a piece of one, as it came."""

    result: ToolResultBlock
    value: Any
    """The output as a JSON value: what a schema is for."""
    partial: bool = False
    by: str = ""


def external(journal: Journal, body: ExternalResult) -> Received:
    handed = [
        Handed(_block(journal, item.id, item.output, failed=item.state == "error"), item.output, item.partial, body.by)
        for item in body.results
    ]
    return _received(journal, body.reply_id, handed)


def external_event(journal: Journal, body: ExternalExecutionResultEvent) -> Received:
    """The seed's own event."""
    return _received(journal, body.reply_id, [Handed(result, result.get_text()) for result in body.execution_results])


def _received(journal: Journal, reply_id: str | None, handed: Sequence[Handed]) -> Received:
    """All of them, or none."""
    ids = [one.result.id for one in handed]
    if len(set(ids)) != len(ids):
        raise Unusable(f"results: {ids} names a call twice; hand in one result for each")
    entries = tuple(_entry(journal, waiting_call(journal, reply_id, one.result.id, "outside"), one) for one in handed)
    answer = {"received": [one.result.id for one in handed if not one.partial]}
    pieces = [one.result.id for one in handed if one.partial]
    return Received(entries, {**answer, "pieces": pieces} if pieces else answer)


def _entry(journal: Journal, call: OpenCall, handed: Handed) -> _Entry:
    result = handed.result
    if result.name != call.block.name:
        raise Unusable(f"results: call {result.id!r} is of {call.block.name!r}, not of {result.name!r}")
    if call.asked is not None:
        return _answer(call, call.asked, handed)
    whole = result.model_copy(update={"output": _joined(call.pieces, result.output)})
    _check_size(call, whole)
    _check_schema(journal, call, handed)
    if handed.partial:
        return e.DeltaReceived(call_id=result.id, text=_piece(call, handed))
    # A token has at least one byte: what has fewer bytes than tokens are allowed need not be looked at.
    limit = journal.spec.context_config.tool_result_limit
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


def _check_schema(journal: Journal, call: OpenCall, handed: Handed) -> None:
    tool = journal.provided.tools.get(call.block.name)
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


def _block(journal: Journal, call_id: str, output: Any, *, failed: bool) -> ToolResultBlock:
    state = ToolResultState.ERROR if failed else ToolResultState.SUCCESS
    name = journal.calls.names.get(call_id, "")
    return ToolResultBlock(id=call_id, name=name, output=as_output(output), state=state)


def as_output(output: Any) -> Output:
    """A JSON value as a result holds it: text, blocks, or the value as JSON."""
    if isinstance(output, str):
        return output
    try:
        return _BLOCKS.validate_python(output)
    except ValidationError:
        return json.dumps(output, ensure_ascii=False)


_BLOCKS = TypeAdapter(
    Annotated[tuple[Annotated[TextBlock | DataBlock, Field(discriminator="type")], ...], Field(min_length=1)]
)


def unresolved_outcomes(journal: Journal, reply_id: str | None = None) -> list[UnknownOutcome]:
    """Those that nobody has settled, the oldest first; with `reply_id`, those of that reply."""
    return [
        unknown_outcome
        for unknown_outcome in journal.unknown_outcomes.values()
        if unknown_outcome.open and reply_id in (None, unknown_outcome.reply_id)
    ]


def to_probe(journal: Journal) -> UnknownOutcome | None:
    """The unknown outcome that its tool is to look into next."""
    return next(
        (
            unknown_outcome
            for unknown_outcome in journal.unknown_outcomes.values()
            if unknown_outcome.due and _can_look(journal, unknown_outcome)
        ),
        None,
    )


def _can_look(journal: Journal, unknown_outcome: UnknownOutcome) -> bool:
    tool = journal.provided.tools.get(unknown_outcome.tool)
    return unknown_outcome.open and tool is not None and tool.probes


def blocking(journal: Journal) -> list[UnknownOutcome]:
    """The unknown outcomes without whose settlement the reply does not go on: none, unless the agent asks a person."""
    reply = journal.reply
    if (
        journal.spec.on_unknown_outcome != "ask"
        or reply is None
        or reply.calls
        or reply.answered
        or journal.interrupted
    ):
        return []
    return [
        unknown_outcome
        for unknown_outcome in unresolved_outcomes(journal, reply.reply_id)
        if not (unknown_outcome.due and _can_look(journal, unknown_outcome))
    ]


def resolve(journal: Journal, body: Resolve) -> Received:
    unknown_outcome = journal.unknown_outcomes.get(body.call_id)
    if unknown_outcome is None:
        waiting = [each.call_id for each in unresolved_outcomes(journal)]
        told = "never had an unknown outcome" if journal.had_call(body.call_id) else "is no call here"
        raise Unusable(f"call {body.call_id!r} {told}; of unknown outcome: {waiting or 'none'}")
    if not unknown_outcome.open:
        word = "happened" if unknown_outcome.happened else "did not happen"
        raise Unusable(f"call {body.call_id!r} is resolved: it {word}, on the word of {unknown_outcome.by}")
    if body.output and not body.happened:
        raise Unusable(f"output: a call that did not happen ({body.call_id!r}) has none; leave it out")
    entry = e.OutcomeResolved(
        call_id=body.call_id, happened=body.happened, output=body.output, by=body.by, reason=body.reason
    )
    return Received((entry,), {"resolved": body.call_id, "happened": body.happened})

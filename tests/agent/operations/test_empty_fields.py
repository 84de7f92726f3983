"""Each text of each operation may be empty, or may not: what says which one is meant, or was looked at, never is. An
empty text there would stand for any of them, or for none, and the operation would do more than somebody meant."""

import typing
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from longhaul.agent.operations.all_operations import OPERATION_ROWS, OperationRow, read
from longhaul.agent.operations.bodies import Unusable

SAID = [{"name": "user", "role": "user", "content": "x"}]
RULE = {"tool_name": "Bash", "rule_content": "ls", "behavior": "deny"}
CALL = {"type": "tool_call", "id": "c-1", "name": "Bash", "input": "{}"}
RESULT = {"type": "tool_result", "id": "c-1", "name": "Bash", "output": "x", "state": "success"}
DECISION = {"call_id": "c-1", "decision": "allow", "reason": "r", "input": "{}", "digest": "d", "signature": "s"}
WORD = {"number": 2, "by": "ben", "message": SAID[0]}
WORKER = {"worker": "7@host", "doing": "Bash", "call_id": "c-1"}
BY = {"by": "ana"}

BODIES: tuple[dict[str, Any], ...] = (
    {"request_id": "r-1", "messages": SAID, "context": {"a": 1}},
    {"reply_id": "m-1", "decisions": [DECISION], "approver": "ana"},
    {"reply_id": "m-1", "confirm_results": [{"confirmed": True, "tool_call": CALL, "rules": [RULE]}]},
    {"reply_id": "m-1", "results": [{"id": "c-1", "output": "x"}], **BY},
    {"reply_id": "m-1", "execution_results": [RESULT]},
    {"call_id": "c-1", "happened": True, "output": "o", "reason": "r", **BY},
    {"reply_id": "m-1", "request_id": "r-1", "message": SAID},
    {"call_id": "c-1", **BY},
    {"messages": SAID},
    {"event": "light", "payload": "p", "request_id": "r-1", **BY},
    {"model": "openai:m", "rules": [RULE], "model_config": {"a": 1}, **BY},
    {"instructions": "i", **BY},
    {"why": "w", **BY},
    BY,
    BY,
    {"child": "c-1", "request_id": "r-1", **BY},
    {"add": [RULE], "revoke": ["rule-1"], "why": "w", **BY},
    {"state": {"a": 1}, "why": "w", "note": "n", **BY},
    WORKER,
    {**WORKER, "why": "w"},
    {"call_id": "c-1", "session_id": "s-1", "state": "success", "output": "o", "tainted": "t"},
    {"request_id": "r-1", "workflow_id": "order-17", "messages": SAID},
    {"call_id": "c-1"},
    {
        "hub": "h",
        "incarnation": "l",
        "name": "n",
        "member": "m",
        "user_id": "u",
        "joined": 1,
        "through": 2,
        "words": [WORD],
    },
)
FULL = {row.body: body for row, body in zip(OPERATION_ROWS, BODIES, strict=True)}
"""A body of each operation, with all that is text in it."""

BINDS = "it says which one is meant, or was looked at"
REFUSED: dict[str, str] = dict.fromkeys(
    (
        "Confirm.reply_id",
        "Confirm.decisions.call_id",
        "Confirm.decisions.digest",
        "Confirm.decisions.signature",
        "UserConfirmResultEvent.reply_id",
        "ExternalResult.reply_id",
        "ExternalResult.results.id",
        "ExternalExecutionResultEvent.reply_id",
        "Resolve.call_id",
        "Interrupt.reply_id",
        "Interrupt.request_id",
        "StopBackground.call_id",
        "ChangeBudget.child",
        "Notify.event",
        "Configure.model",
        "ChangeRules.revoke",
        "TellWorkerLeft.worker",
        "TellWorkerLacks.worker",
        "ChildReport.call_id",
        "ChildReport.session_id",
        "ReportAgain.call_id",
        "AskFromWorkflow.request_id",
        "AskFromWorkflow.workflow_id",
        "HubSays.hub",
        "HubSays.incarnation",
        "HubSays.member",
    ),
    BINDS,
)
NOBODY = "nobody says who it is: it is nobody's decision, and counts for no second approval"
NO_ID = "none is given: it is a request of its own, and nothing is taken for a repetition"
WORDS = "words, of which there may be none"
LEGAL: dict[str, str] = {
    **{f"{row.body.__name__}.by": NOBODY for row in OPERATION_ROWS},
    "Confirm.approver": NOBODY,
    "Submit.request_id": NO_ID,
    "Notify.request_id": NO_ID,
    "ChangeBudget.request_id": NO_ID,
    "Confirm.decisions.reason": WORDS,
    "Confirm.decisions.input": "it is no JSON object, which the session says",
    "Resolve.output": WORDS,
    "Resolve.reason": WORDS,
    "Notify.payload": WORDS,
    "ChangeRules.why": WORDS,
    "PauseSession.why": WORDS,
    "ReplaceState.why": WORDS,
    "ReplaceState.note": WORDS,
    "Compact.instructions": WORDS,
    "TellWorkerLeft.doing": "it is not said what was cut short",
    "TellWorkerLeft.call_id": "what was cut short is no call",
    "TellWorkerLacks.doing": "it is not said what can't begin",
    "TellWorkerLacks.call_id": "what can't begin is no call",
    "TellWorkerLacks.why": WORDS,
    "ChildReport.output": WORDS,
    "ChildReport.tainted": "nothing has tainted it",
    "HubSays.name": WORDS,
    "HubSays.user_id": "a user's name is compared with the session's: of no other name is it taken for that",
}
CONTENT = (
    "AskFromWorkflow.messages",
    "Submit.messages", "Observe.messages", "Interrupt.message", "HubSays.words", "Configure.rules", "ChangeRules.add",
    "Confirm.decisions.rules", "UserConfirmResultEvent.confirm_results.rules", "Configure.analyzers",
    "Configure.middlewares", "Compact.context_config", "UserConfirmResultEvent.confirm_results.tool_call",
    "ExternalExecutionResultEvent.execution_results",
)  # fmt: skip
"""Values with checks of their own; of a call and a result, a call of that id has to wait."""


def texts(row: OperationRow[Any]) -> Iterator[str]:
    return _of_model(row.body, row.body.__name__)


def _of_model(model: type[BaseModel], path: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield from _of_type(field.annotation, f"{path}.{field.alias or name}")


def _of_type(kind: Any, path: str) -> Iterator[str]:
    if path in CONTENT:
        return
    if kind is str:
        yield path
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from _of_model(kind, path)
    elif typing.get_origin(kind) is not dict:
        for part in typing.get_args(kind):
            yield from _of_type(getattr(part, "__value__", part), path)


def emptied(body: Any, path: list[str]) -> Any:
    """The same, with an empty text there."""
    if isinstance(body, list):
        return [emptied(body[0], path)]
    if not path:
        return ""
    return {**body, path[0]: emptied(body[path[0]], path[1:])}


ALL = sorted({path for row in OPERATION_ROWS for path in texts(row)})
ROWS = {row.body.__name__: row for row in OPERATION_ROWS}


def test_there_is_a_row_for_each_text() -> None:
    rows = {path for path in LEGAL if not path.endswith(".by") or path in ALL} | REFUSED.keys()

    assert set(ALL) == rows, set(ALL) ^ rows
    assert not LEGAL.keys() & REFUSED.keys()


@pytest.mark.parametrize("row", OPERATION_ROWS, ids=lambda row: row.body.__name__)
def test_the_full_body_is_taken(row: OperationRow[Any]) -> None:
    assert read(row.name, [FULL[row.body]])[0] is row


@pytest.mark.parametrize("path", ALL)
def test_an_empty_one_is_refused_where_it_binds_and_taken_elsewhere(path: str) -> None:
    name, *place = path.split(".")
    row = ROWS[name]
    body = emptied(FULL[row.body], place)

    if path in LEGAL:
        assert read(row.name, [body])[0] is row
    else:
        with pytest.raises(Unusable, match=place[-1]):
            read(row.name, [body])

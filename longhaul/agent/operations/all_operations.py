"""Every operation that a session takes, one row each: its name, body and answer, and how people send it.

`receive` turns what came in into entries, or refuses it with a sentence that changes nothing; it raises nothing
else. `longhaul serve` makes its routes of the rows, which call the methods of `Session` with the fields of the
bodies; tests hold these methods, the commands of `longhaul` and the table in docs/people/steering.md to them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

from longhaul.agent.journal import Journal
from longhaul.agent.operations import (
    answers,
    approval_operations,
    bodies,
    peer_operations,
    request_operations,
    result_operations,
    settings_operations,
)
from longhaul.agent.operations.approval_operations import refuse_alone
from longhaul.agent.operations.bodies import Received, ReceivedOperation, Unusable
from longhaul.agent.operations.sentences import SENTENCES
from longhaul.agent.plain.errors import shortened, what_is_wrong
from longhaul.agent.plain.json_schemas import MAX_DEPTH, too_deep

B = TypeVar("B", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class OperationRow(Generic[B]):
    """One operation, or one more body that an operation of that name may have."""

    name: str
    """Of the signal, and of the update."""
    body: type[B]
    receive: Callable[[Journal, B, ReceivedOperation], Received]
    bare: bool = False
    """It may come without a body."""
    known_by: str = ""
    """The field that tells this body, one of the seed's own events, from the operation's first."""
    method: str = ""
    """Of `Session`; empty for what workers send."""
    commands: tuple[str, ...] = ()
    """Of `longhaul`."""
    path: str = ""
    """Of `longhaul serve`, below the session's own."""
    scope: Literal["answer", "approve", "steer"] = "steer"
    """What a token must be for, to post it there."""
    answer: type[BaseModel] | None = None
    """What is answered there, of one field: what the method gives. None: nothing is."""
    begins: bool = False
    """The session begins with it when there is none."""
    once: bool = False
    """Sent again with the same `request_id`, it counts once."""
    tool_fields: tuple[str, ...] | None = None
    """Fields of its body that clients by MCP may send; None: it is no tool of theirs."""
    from_sessions: frozenset[str] = frozenset()
    """Fields that sessions alone send, to each other."""

    @property
    def help(self) -> str:
        return SENTENCES[self.name]


def _by_body(receive: Callable[[Journal, B], Received]) -> Callable[[Journal, B, ReceivedOperation], Received]:
    """For what needs no more of an operation than its body."""
    return lambda journal, body, _: receive(journal, body)


OPERATION_ROWS: tuple[OperationRow[Any], ...] = (
    OperationRow(
        "submit",
        bodies.Submit,
        request_operations.submit,
        bare=True,
        method="submit",
        commands=("run", "say"),
        path="messages",
        scope="answer",
        begins=True,
        once=True,
    ),
    OperationRow(
        "confirm",
        bodies.Confirm,
        _by_body(approval_operations.decide),
        method="confirm",
        commands=("approve", "deny"),
        path="decisions",
        scope="approve",
    ),
    OperationRow(
        "confirm",
        bodies.UserConfirmResultEvent,
        _by_body(approval_operations.confirm_event),
        known_by="confirm_results",
    ),
    OperationRow(
        "external_result",
        bodies.ExternalResult,
        _by_body(result_operations.external),
        method="external_result",
        commands=("result",),
        path="external-results",
        scope="answer",
    ),
    OperationRow(
        "external_result",
        bodies.ExternalExecutionResultEvent,
        _by_body(result_operations.external_event),
        known_by="execution_results",
    ),
    OperationRow(
        "resolve",
        bodies.Resolve,
        _by_body(result_operations.resolve),
        method="resolve",
        commands=("resolve",),
        path="resolve",
        scope="approve",
    ),
    OperationRow(
        "interrupt",
        bodies.Interrupt,
        _by_body(request_operations.interrupt),
        bare=True,
        method="interrupt",
        commands=("interrupt",),
        path="interrupt",
        scope="answer",
        answer=answers.Interrupted,
        tool_fields=("request_id",),
    ),
    OperationRow(
        "stop_background",
        bodies.StopBackground,
        _by_body(peer_operations.stop),
        bare=True,
        method="stop_background",
        commands=("stop",),
        path="stop-background",
        scope="answer",
        answer=answers.BackgroundEnds,
        tool_fields=("call_id",),
    ),
    OperationRow(
        "observe",
        bodies.Observe,
        _by_body(request_operations.observe),
        method="observe",
        commands=("observe",),
        path="observe",
        scope="answer",
        begins=True,
    ),
    OperationRow(
        "notify",
        bodies.Notify,
        request_operations.notify,
        method="notify",
        commands=("notify",),
        path="notify",
        scope="answer",
        answer=answers.Notified,
        once=True,
    ),
    OperationRow(
        "configure",
        bodies.Configure,
        _by_body(settings_operations.configure),
        method="configure",
        path="configure",
        begins=True,
    ),
    OperationRow(
        "compact",
        bodies.Compact,
        _by_body(request_operations.compact),
        bare=True,
        method="compress_context",
        commands=("compact",),
        path="compact",
        answer=answers.Compacted,
    ),
    OperationRow(
        "pause",
        bodies.PauseSession,
        _by_body(request_operations.pause),
        bare=True,
        method="pause",
        commands=("pause",),
        path="pause",
        answer=answers.Paused,
        tool_fields=("why",),
    ),
    OperationRow(
        "step",
        bodies.TakeStep,
        _by_body(request_operations.take_step),
        bare=True,
        method="step",
        commands=("step",),
        path="step",
        answer=answers.Stepping,
    ),
    OperationRow(
        "resume",
        bodies.Resume,
        _by_body(request_operations.resume),
        bare=True,
        method="resume",
        commands=("resume",),
        path="resume",
        tool_fields=(),
    ),
    OperationRow(
        "budget",
        bodies.ChangeBudget,
        _by_body(settings_operations.change_budget),
        method="change_budget",
        commands=("budget",),
        path="budget",
        answer=answers.BudgetLimits,
        from_sessions=frozenset({"allotted"}),
        once=True,
    ),
    OperationRow(
        "rules",
        bodies.ChangeRules,
        _by_body(settings_operations.change_rules),
        method="rules.change",
        commands=("rules add", "rules revoke"),
        path="rules",
        answer=answers.Added,
    ),
    OperationRow(
        "replace_state",
        bodies.ReplaceState,
        _by_body(settings_operations.replace_state),
        method="stored.import_state",
        commands=("state import", "state edit", "state fork"),
        path="state",
        begins=True,
        from_sessions=frozenset({"before"}),
    ),
    OperationRow(
        "worker_left",
        bodies.TellWorkerLeft,
        _by_body(peer_operations.worker_left),
    ),
    OperationRow(
        "worker_lacks",
        bodies.TellWorkerLacks,
        _by_body(peer_operations.worker_lacks),
    ),
    OperationRow("child_reported", bodies.ChildReport, peer_operations.reported),
    OperationRow("ask", bodies.AskFromWorkflow, request_operations.ask),
    OperationRow(
        "report_again",
        bodies.ReportAgain,
        _by_body(peer_operations.report_again),
    ),
    OperationRow(
        "hub_says",
        peer_operations.HubSays,
        _by_body(peer_operations.hear_hub),
    ),
)

NAMES = tuple(dict.fromkeys(row.name for row in OPERATION_ROWS))


def row_of(name: str) -> OperationRow[Any]:
    """The first row of that name; KeyError when there is none."""
    return _BY_NAME[name][0]


def read(name: str, arguments: list[Any]) -> tuple[OperationRow[Any], BaseModel]:
    """The row of a signal or update, and its body; raises Unusable for any other name, number of arguments or shape."""
    rows = _BY_NAME.get(name)
    if rows is None:
        raise Unusable(f"there is no signal or update {name!r}; there are: {', '.join(NAMES)}")
    if len(arguments) > 1 or (not arguments and not rows[0].bare):
        raise Unusable(f"{name} takes one JSON object, and {len(arguments)} arguments came")
    given = arguments[0] if arguments else None
    if given is None and rows[0].bare:
        given = {}
    if not isinstance(given, dict):
        raise Unusable(f"{name} takes one JSON object, not {shortened(given)}")
    body = cast(dict[str, Any], given)
    if too_deep(body):
        raise Unusable(f"{name}: the body nests deeper than {MAX_DEPTH} levels; send a flatter JSON object")
    row = next((row for row in rows if row.known_by and row.known_by in body), rows[0])
    try:
        return row, row.body.model_validate(body)
    except ValidationError as error:
        raise Unusable(f"{name}: {what_is_wrong(error)}") from error


_BY_NAME: dict[str, Sequence[OperationRow[Any]]] = {
    name: [row for row in OPERATION_ROWS if row.name == name] for name in NAMES
}


def receive(journal: Journal, operation: ReceivedOperation) -> Received:
    """Read one operation; raises Unusable with the reason when it can't be acted on."""
    row, body = read(operation.name, operation.arguments)
    approval_operations.refuse_unsigned(journal, body)
    refuse_alone(journal, body)
    return row.receive(journal, body, operation)

"""Every operation that a session takes, one row each: what it is called, holds and does, and how people send it.

`receive` turns what came in into entries, or refuses it with a sentence that changes nothing; it raises nothing
else. `longhaul serve` makes its routes of the rows; tests hold the methods of `Session`, the commands of
`longhaul` and the table in docs/people/steering.md to them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

from longhaul.agent.letters import (
    approval_operations,
    bodies,
    peer_operations,
    request_operations,
    result_operations,
    settings_operations,
)
from longhaul.agent.letters.approval_operations import refuse_alone
from longhaul.agent.letters.bodies import Letter, Received, Unusable
from longhaul.agent.plain.errors import shortened, what_is_wrong
from longhaul.agent.plain.json_schemas import MAX_DEPTH, too_deep
from longhaul.agent.record import Record

B = TypeVar("B", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class LetterRow(Generic[B]):
    """One letter, or one more body that a letter of that name may have."""

    name: str
    """Of the signal, and of the update."""
    body: type[B]
    receive: Callable[[Record, B, Letter], Received]
    does: str
    """For people, without a full stop."""
    bare: bool = False
    """It may come without a body."""
    known_by: str = ""
    """The field that tells this body, one of the seed's own events, from the letter's first."""
    method: str = ""
    """Of `Session`; empty for what workers send."""
    commands: tuple[str, ...] = ()
    """Of `longhaul`."""
    path: str = ""
    """Of `longhaul serve`, below the session's own."""
    scope: Literal["answer", "approve", "steer"] = "steer"
    """What a token must be for, to post it there."""


def _by_body(receive: Callable[[Record, B], Received]) -> Callable[[Record, B, Letter], Received]:
    """For what needs no more of a letter than its body."""
    return lambda record, body, _: receive(record, body)


LETTERS: tuple[LetterRow[Any], ...] = (
    LetterRow(
        "submit",
        bodies.Submit,
        request_operations.submit,
        "Ask for a reply; the first message begins the session",
        bare=True,
        method="submit",
        commands=("run", "say"),
        path="messages",
        scope="answer",
    ),
    LetterRow(
        "confirm",
        bodies.Confirm,
        _by_body(approval_operations.decide),
        "Allow or deny a call, in the name of whoever asks",
        method="confirm",
        commands=("approve", "deny"),
        path="decisions",
        scope="approve",
    ),
    LetterRow(
        "confirm",
        bodies.UserConfirmResultEvent,
        _by_body(approval_operations.confirm_event),
        "The same as the seed's own event",
        known_by="confirm_results",
    ),
    LetterRow(
        "external_result",
        bodies.ExternalResult,
        _by_body(result_operations.external),
        "Hand in results of external tools",
        method="external_result",
        commands=("result",),
        path="external-results",
        scope="answer",
    ),
    LetterRow(
        "external_result",
        bodies.ExternalExecutionResultEvent,
        _by_body(result_operations.external_event),
        "The same as the seed's own event",
        known_by="execution_results",
    ),
    LetterRow(
        "settle",
        bodies.Settle,
        _by_body(result_operations.settle),
        "Say whether a call happened whose outcome is unknown",
        method="settle",
        commands=("settle",),
        path="settle",
        scope="approve",
    ),
    LetterRow(
        "interrupt",
        bodies.Interrupt,
        _by_body(request_operations.interrupt),
        "End a reply",
        bare=True,
        method="interrupt",
        commands=("interrupt",),
        path="interrupt",
        scope="answer",
    ),
    LetterRow(
        "stop_background",
        bodies.StopBackground,
        _by_body(peer_operations.stop),
        "Stop what works in the background",
        bare=True,
        method="stop_background",
        commands=("stop",),
        path="stop-background",
        scope="answer",
    ),
    LetterRow(
        "observe",
        bodies.Observe,
        _by_body(request_operations.observe),
        "Add to the context",
        method="observe",
        commands=("observe",),
        path="observe",
        scope="answer",
    ),
    LetterRow(
        "notify",
        bodies.Notify,
        request_operations.notify,
        "Tell of an event, which wakes the call that waits for it",
        method="notify",
        commands=("notify",),
        path="notify",
        scope="answer",
    ),
    LetterRow(
        "configure",
        bodies.Configure,
        _by_body(settings_operations.configure),
        "Change settings",
        method="configure",
        path="configure",
    ),
    LetterRow(
        "compact",
        bodies.Compact,
        _by_body(request_operations.compact),
        "Make the context shorter, and wait for it",
        bare=True,
        method="compress_context",
        commands=("compact",),
        path="compact",
    ),
    LetterRow(
        "pause",
        bodies.PauseSession,
        _by_body(request_operations.pause),
        "Begin nothing new until somebody resumes",
        bare=True,
        method="pause",
        commands=("pause",),
        path="pause",
    ),
    LetterRow(
        "step",
        bodies.TakeStep,
        _by_body(request_operations.take_step),
        "Take one step",
        bare=True,
        method="step",
        commands=("step",),
        path="step",
    ),
    LetterRow(
        "resume",
        bodies.Resume,
        _by_body(request_operations.resume),
        "Let a held session go on",
        bare=True,
        method="resume",
        commands=("resume",),
        path="resume",
    ),
    LetterRow(
        "budget",
        bodies.ChangeBudget,
        _by_body(settings_operations.change_budget),
        "Raise what a session may spend, or end a reply that waits for more",
        method="change_budget",
        commands=("budget",),
        path="budget",
    ),
    LetterRow(
        "rules",
        bodies.ChangeRules,
        _by_body(settings_operations.change_rules),
        "Add and revoke rules",
        method="rules.change",
        commands=("rules add", "rules revoke"),
        path="rules",
    ),
    LetterRow(
        "replace_state",
        bodies.ReplaceState,
        _by_body(settings_operations.replace_state),
        "Put a state in the place of a session's that is idle or waits; begins the session when there is none",
        method="stored.import_state",
        commands=("state import", "state edit", "state fork"),
        path="state",
    ),
    LetterRow(
        "worker_left",
        bodies.TellWorkerLeft,
        _by_body(peer_operations.worker_left),
        "A worker was shut down in the midst of it",
    ),
    LetterRow(
        "worker_lacks",
        bodies.TellWorkerLacks,
        _by_body(peer_operations.worker_lacks),
        "A worker can't do what the session waits for",
    ),
    LetterRow("child_reported", bodies.ChildReport, peer_operations.reported, "A sub-agent's task has ended"),
    LetterRow(
        "report_again",
        bodies.ReportAgain,
        _by_body(peer_operations.report_again),
        "Its sub-agent is to say so once more",
    ),
    LetterRow(
        "hub_says",
        peer_operations.HubSays,
        _by_body(peer_operations.said),
        "What was said in a hub that the session is in",
    ),
)

NAMES = tuple(dict.fromkeys(row.name for row in LETTERS))


def row_of(name: str) -> LetterRow[Any]:
    """The first row of that name; KeyError when there is none."""
    return _BY_NAME[name][0]


def read(name: str, arguments: list[Any]) -> tuple[LetterRow[Any], BaseModel]:
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


_BY_NAME: dict[str, Sequence[LetterRow[Any]]] = {name: [row for row in LETTERS if row.name == name] for name in NAMES}


def receive(record: Record, letter: Letter) -> Received:
    """Read one letter; raises Unusable with the reason when it can't be acted on."""
    row, body = read(letter.name, letter.arguments)
    approval_operations.refuse_unsigned(record, body)
    refuse_alone(record, body)
    return row.receive(record, body, letter)

"""Changes the ledger by pauses and single steps."""

from typing import assert_never

from longhaul.agent.entries import all_entries as e
from longhaul.agent.entries.pausing import Pause
from longhaul.agent.fold.ledger.ledger import Ledger

END_A_STEP = (
    e.ModelSaid,
    e.ModelFailed,
    e.ContextCompressed,
    e.NotCompressed,
    e.ToolReturned,
    e.CallAnswered,
    e.SleepBegun,
    e.CallUnsettled,
    e.ReplyFinished,
)
"""What comes of a model call, of a compression, of the first of some calls; or nothing, for the reply has ended."""


def apply(ledger: Ledger, entry: e.PauseEntry) -> None:
    match entry:
        case e.PauseBegun():
            before = ledger.pause
            ledger.pause = before.model_copy(update={"step": ""}) if before else _new(entry)
        case e.PauseEnded():
            ledger.pause = None
        case e.StepAsked():
            _set_step(ledger, "asked")
        case e.StepBegun():
            _set_step(ledger, "begun")
        case _ as never:
            assert_never(never)


def end_of_step(ledger: Ledger, entry: e.AnyEntry) -> None:
    """To be called behind each entry."""
    if ledger.pause is not None and ledger.pause.step == "begun" and isinstance(entry, END_A_STEP):
        _set_step(ledger, "")


def _new(entry: e.PauseBegun) -> Pause:
    return Pause(at=entry.at, by=entry.by, why=entry.why)


def _set_step(ledger: Ledger, step: str) -> None:
    if ledger.pause is not None:
        ledger.pause = ledger.pause.model_copy(update={"step": step})

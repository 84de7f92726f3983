"""Going back to a step: what a session was after its n-th model call, and the state that a copy of it begins with."""

from collections.abc import Iterable

from agent import entries as e
from agent.imports import read_state
from agent.ledger import Ledger
from agent.record import Record
from agent.state import AgentState


class NoSuchStep(ValueError):
    """A step that the session has not made; the sentence says how many there are."""


class StepFold:
    """Folds entries up to the end of a step: a model call and the results of all that it called for."""

    def __init__(self, step: int) -> None:
        if step < 1:
            raise NoSuchStep(f"step {step}: steps count from 1, the first model call")
        self.step = step
        self._record: Record | None = None

    def take(self, entry: e.AnyEntry) -> bool:
        """Fold the next entry, the session's first one first. True: the step had ended, and it was not folded."""
        if self._record is None:
            self._record = Record.of([entry])
            return False
        if self._ended(self._record):
            return True
        self._record.take(entry)
        return False

    def _ended(self, record: Record) -> bool:
        return record.model_calls == self.step and not record.calls

    @property
    def ledger(self) -> Ledger:
        """What the session was then; results that have not come yet are missing. Raises NoSuchStep."""
        made = self._record.model_calls if self._record else 0
        if self._record is None or made < self.step:
            raise NoSuchStep(f"step {self.step}: this session has made {made} model calls; take a step up to {made}")
        return self._record


def after_step(entries: Iterable[e.AnyEntry], step: int) -> Ledger:
    """The session after its `step`-th model call and all of its results. Raises NoSuchStep."""
    fold = StepFold(step)
    for entry in entries:
        if fold.take(entry):
            break
    return fold.ledger


def state_of_copy(ledger: Ledger) -> AgentState:
    """What a copy begins with: nothing is open in it, and what was open here is closed with a result that says so.

    Requests that wait in the queue are not taken along: the copy was not asked for them.
    """
    state = read_state(ledger.state.model_dump_json())
    # They wait for results that will never come to the copy.
    state.context.extend(ledger.deferred)
    return state

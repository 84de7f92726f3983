"""Decides what a session does that has a budget: what is put aside before a model is asked, and what becomes of a reply
when there is not enough left.

A call may take all that it reads and the most that its model writes; so much is put aside, and what it really took is
spent in its place. So no more is spent than the budget allows, but for a call that reads more than was estimated, and
attempts that were lost.
"""

from longhaul.agent import entries as e
from longhaul.agent.decisions.continue_as_new import Load, should_save
from longhaul.agent.decisions.model_turn import config_for
from longhaul.agent.journal import Journal
from longhaul.agent.reducer.budget_state import tariff_of
from longhaul.agent.reducer.context_state import tokens
from longhaul.agent.steps import Book, Checkpoint, Compress, Finish, Park, Remind, Step, Think
from longhaul.agent.values.budget import NEW_ACCOUNT, NOTHING, Account, Amount, Budget, Lack
from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason, HintBlock
from longhaul.agent.values.conversation.prompt import hint_message

MOST_ATTEMPTS = 1_000
SOURCE = "budget"
SPENT = (
    "The budget of this session is spent. Do not call tools any more: say what you have found and done so far, and "
    "what is left to do."
)
_LAST_WORDS = (FinishedReason.COMPLETED, FinishedReason.EXCEED_MAX_ITERS)


def within_budget(step: Step, journal: Journal, load: Load) -> Step:
    """The step, or what a session with a budget does in its place."""
    budget = journal.spec.budget
    if budget is None:
        return step
    account = journal.account or NEW_ACCOUNT
    match step:
        case Finish(reply_id, reason, error, closing, said) if account.closed and reason in _LAST_WORDS:
            return Finish(reply_id, FinishedReason.OUT_OF_BUDGET, error, closing, said)
        case Think(model):
            return _before_call(step, model, journal, load, budget, account)
        case Compress():
            return _before_call(step, journal.spec.model, journal, load, budget, account)
        case _:
            return step


def _before_call(
    step: Think | Compress, model: str, journal: Journal, load: Load, budget: Budget, account: Account
) -> Step:
    if account.open:
        if account.model != model:
            return Book(e.BudgetReleased())
        return Think(model, closing=True) if account.closed else step
    if budget.max_cost is not None and model and tariff_of(account, model).price is None:
        return _ended(journal, FinishedReason.ERROR, _unpriced(model))
    if account.question:
        return Checkpoint() if should_save(journal, load) else Park("person")
    need = need_of(journal, model)
    if account.end:
        return _last_call(step, model, journal, budget, account, need)
    # What the last call of a reply will take is kept, so that it can be made.
    spare = need if budget.on_exhaustion == "summarise" else NOTHING
    if not (lacks := lacking(budget, account, journal, load.at, need + spare)):
        return Book(e.BudgetReserved(model=model, amount=need))
    if journal.reply is None:
        return _ended(journal, FinishedReason.OUT_OF_BUDGET, _error(lacks))
    return Book(e.BudgetExhausted(lacks=lacks, then=budget.on_exhaustion))


def _last_call(
    step: Think | Compress, model: str, journal: Journal, budget: Budget, account: Account, need: Amount
) -> Step:
    """The end of a reply: at once, or with a last call. A person who asks for that one has it in any case, and the
    agent's policy as far as the budget does for it."""
    lacks = lacking(budget, account, journal, 0, need)
    fits = budget.on_exhaustion == "ask" or not any(lack.needs for lack in lacks)
    if account.end == "stop" or account.closed or isinstance(step, Compress) or not fits:
        return _ended(journal, FinishedReason.OUT_OF_BUDGET, _error(lacks))
    if not _is_told(journal):
        return Remind(e.Reminded(messages=(hint_message(SPENT, SOURCE),)))
    return Book(e.BudgetReserved(model=model, amount=need, closing=True))


def need_of(journal: Journal, model: str) -> Amount:
    """What a call of the model may take, as it would be made now; without a name, a step of code that can ask none."""
    if not model:
        return Amount(calls=1)
    account = journal.account or NEW_ACCOUNT
    return tariff_of(account, model).at_most(tokens(journal), config_for(journal, model).max_output_tokens)


def lacking(budget: Budget, account: Account, journal: Journal, at: int, need: Amount) -> tuple[Lack, ...]:
    """The limits that a call might pass which takes so much. `at`: milliseconds since 1970."""
    held, found = account.spending.held, list[Lack]()
    for name, limit in budget.limits():
        if name in ("tokens", "cost", "calls"):
            if (held + need).of(name) > limit:
                found.append(Lack(name=name, limit=limit, held=held.of(name), needs=need.of(name)))
            continue
        passed = steps_of(account, journal) + held.steps if name == "steps" else seconds_of(account, journal, at)
        if passed >= limit or (name == "steps" and passed + need.steps > limit):
            found.append(Lack(name=name, limit=limit, held=passed))
    return tuple(found)


def steps_of(account: Account, journal: Journal) -> int:
    """Without those of sub-agents."""
    return account.steps + (journal.reply.cur_iter if journal.reply else 0)


def seconds_of(account: Account, journal: Journal, at: int) -> float:
    """`at`: milliseconds since 1970; of a reply that waits for budget, it counts until it began to."""
    if journal.reply is None:
        return account.ms / 1000
    now = account.question.at if account.question else max(at, journal.latest_at)
    return (account.ms + max(now - journal.reply.started_at - account.waited_ms, 0)) / 1000


def attempts_paid(journal: Journal) -> int:
    """How often the call that is about to be made can be lost and made again, itself included; 0 = there is no budget.

    At least once: what is put aside for it is there.
    """
    budget, account = journal.spec.budget, journal.account
    if budget is None or account is None:
        return 0
    one, held, most = account.spending.reserved.get(account.open, NOTHING), account.spending.held, MOST_ATTEMPTS
    for name, limit in budget.limits():
        if name in ("tokens", "cost", "calls") and (each := one.of(name)):
            most = min(most, 1 + int(max(limit - held.of(name), 0) / each))
    return most


def _ended(journal: Journal, reason: FinishedReason, error: ErrorInfo) -> Step:
    """The end of the reply; between replies, of the compression that somebody has asked for."""
    return (
        Book(e.NotCompressed(error=error)) if journal.reply is None else Finish(journal.reply.reply_id, reason, error)
    )


def _unpriced(model: str) -> ErrorInfo:
    return ErrorInfo(
        type="setup",
        message=f"No price of {model!r} is known in this reply, and what it costs is not guessed. Models that are "
        "changed in the midst of a reply have one from the next reply on, if the workers know it.",
    )


def _error(lacks: tuple[Lack, ...]) -> ErrorInfo:
    told = f": {'; '.join(lack.told() for lack in lacks)}" if lacks else ""
    return ErrorInfo(
        type="budget",
        message=f"What this session may spend does not do for another call of a model{told}. Raise it "
        "(`longhaul budget`), or the limits under [budget] of the agent's file.",
    )


def _is_told(journal: Journal) -> bool:
    last = journal.state.context[-1].content if journal.state.context else ()
    return any(isinstance(block, HintBlock) and block.source == SOURCE for block in last)

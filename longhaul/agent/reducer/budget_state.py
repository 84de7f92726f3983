"""Changes the account of a session by each entry: what each model has used, and what is spent and reserved of a
budget.

An answer settles what was reserved for it; a call that nobody answered is settled by the attempts that may have
been billed. So each attempt counts once, in whatever order entries come.
"""

from longhaul.agent import entries as e
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.budget import (
    GIVEN_BACK,
    KEPT_CHANGES,
    NEW_ACCOUNT,
    NOTHING,
    UNKNOWN_TARIFF,
    Account,
    Amount,
    BudgetQuestion,
    ModelSpent,
    Tariff,
    child_key,
)
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.mcp import Sampled


def settle_budget(session: SessionState, entry: e.AnyEntry) -> None:
    """To be called before the entry is folded: the reply that it may end still stands."""
    budget = session.spec.budget
    if budget is None:
        return
    account = session.account or NEW_ACCOUNT
    if isinstance(entry, e.BudgetChanged):
        session.spec = session.spec.model_copy(update={"budget": budget.raised(entry.more)})
    session.account = _after(account, session, entry)


def tariff_of(account: Account, model: str) -> Tariff:
    return account.tariffs.get(model, UNKNOWN_TARIFF)


def _after(account: Account, session: SessionState, entry: e.AnyEntry) -> Account:  # noqa: C901, PLR0911, PLR0912  one per kind
    match entry:
        case e.Prepared():
            return account.model_copy(update={"tariffs": entry.tariffs})
        case e.BudgetReserved():
            key = str(entry.seq)
            spending = account.spending.reserve(key, entry.amount)
            update = {
                "spending": spending,
                "open": key,
                "model": entry.model,
                "closed": account.closed or entry.closing,
            }
            return account.model_copy(update=update)
        case e.BudgetReleased():
            return _settled(account, None, entry.lost)
        case e.ModelSaid():
            # Of one that was cut short nobody has reported anything.
            usage = None if entry.cut_short else entry.message.usage
            return _settled(account, usage, entry.lost_attempts + (usage is None))
        case e.ModelFailed():
            return _settled(account, None, 0)
        case e.ContextCompressed() | e.NotCompressed():
            return _settled(account, entry.usage, entry.lost_attempts)
        case e.CallsExamined() if entry.usage is not None:
            used = tariff_of(account, judge_of(session)).of(entry.usage)
            judged = used.model_copy(update={"calls": len(entry.analysis)})
            return account.model_copy(update={"spending": account.spending.add(judged)})
        case e.BudgetExhausted():
            return _exhausted(account, entry)
        case e.BudgetChanged():
            return _changed(account, entry)
        case e.ReplyFinished() | e.StateReplaced():
            return _unused(_ended(account, session, entry), session, None)
        case e.BudgetAllotted():
            return _allotted(account, entry)
        case e.ToolReturned():
            return _unused(_with_sampled(account, entry.sampled), session, entry.result.id)
        case e.InputAsked():
            return _with_sampled(account, entry.sampled)
        case e.ChildEnded():
            return _asked_no_more(_child_ended(account, entry), session, entry.at)
        case e.ParentTold() if session.parent is not None and session.parent.allotted:
            return _given_back(account, session)
        case e.Checkpointed(closing=True) if session.parent is not None and session.parent.by_result:
            return _given_back(account, session) if session.parent.allotted else account
        case _:
            return account


def _with_sampled(account: Account, sampled: Sampled | None) -> Account:
    if sampled is None:
        return account
    used = tariff_of(account, sampled.model).of(sampled.usage).model_copy(update={"calls": sampled.calls})
    return account.model_copy(update={"spending": account.spending.add(used)})


def judge_of(session: SessionState) -> str:
    """The model that is asked how risky calls are."""
    return session.permission.analyzer_model or session.spec.model


def _settled(account: Account, usage: Usage | None, lost: int) -> Account:
    if not account.open:
        return account
    used = NOTHING if usage is None else tariff_of(account, account.model).of(usage)
    spending = account.spending.settle(account.open, used, lost)
    return account.model_copy(update={"spending": spending, "open": "", "model": ""})


def _allotted(account: Account, entry: e.BudgetAllotted) -> Account:
    handled = (*account.handled, entry.request_id)[-KEPT_CHANGES:] if entry.request_id else account.handled
    spending = account.spending.reserve(child_key(entry.call_id), entry.amount)
    return account.model_copy(update={"spending": spending, "handled": handled})


def _child_ended(account: Account, entry: e.ChildEnded) -> Account:
    key, spending = child_key(entry.call_id), account.spending
    if entry.spent is None:
        spending = spending.settle(key, NOTHING, lost=1)
    else:
        spending = spending.settle(key, entry.spent, doubtful=entry.doubtful)
    return account.model_copy(update={"spending": spending})


def _asked_no_more(account: Account, session: SessionState, at: int) -> Account:
    """What a sub-agent left may do for what the reply waits for: then nobody is asked."""
    question, budget = account.question, session.spec.budget
    if question is None or budget is None:
        return account
    held = account.spending.held + Amount(steps=account.steps + (session.reply.cur_iter if session.reply else 0))
    limits = dict(budget.limits())
    for lack in question.lacks:
        if lack.name == "seconds" or held.of(lack.name) + (lack.needs or 1) > limits[lack.name]:
            return account
    return account.model_copy(update={"question": None, "waited_ms": account.waited_ms + at - question.at})


def _unused(account: Account, session: SessionState, call_id: str | None) -> Account:
    """What was put aside for a sub-agent that was never started comes back. None: of whichever call."""
    spending = account.spending
    for held in tuple(session.open_calls) if call_id is None else (call_id,):
        if held not in session.children:
            spending = spending.settle(child_key(held), NOTHING)
    return account if spending is account.spending else account.model_copy(update={"spending": spending})


def _given_back(account: Account, session: SessionState) -> Account:
    """The session that started this one may spend what is left: here it counts as put aside for good."""
    budget, spending = session.spec.budget, account.spending
    if budget is None or GIVEN_BACK in spending.reserved:
        return account
    return account.model_copy(
        update={"spending": spending.reserve(GIVEN_BACK, budget.rest(spending.held, account.steps))}
    )


def _exhausted(account: Account, entry: e.BudgetExhausted) -> Account:
    if entry.then != "ask":
        return account.model_copy(update={"end": entry.then})
    return account.model_copy(update={"question": BudgetQuestion(at=entry.at, lacks=entry.lacks)})


def _changed(account: Account, entry: e.BudgetChanged) -> Account:
    handled = (*account.handled, entry.request_id)[-KEPT_CHANGES:] if entry.request_id else account.handled
    question = account.question
    waited = account.waited_ms + (entry.at - question.at if question else 0)
    return account.model_copy(
        update={"handled": handled, "question": None, "waited_ms": waited, "end": entry.end or account.end}
    )


def _ended(account: Account, session: SessionState, entry: e.AnyEntry) -> Account:
    """Of a reply that ended in the midst of a call nobody has heard what that took."""
    account = _settled(account, None, 1)
    reply = session.reply
    if reply is None:
        return account
    waited = account.waited_ms + (entry.at - account.question.at if account.question else 0)
    return account.model_copy(
        update={
            "steps": account.steps + reply.cur_iter,
            "ms": account.ms + max(entry.at - reply.started_at - waited, 0),
            "waited_ms": 0,
            "question": None,
            "end": "",
            "closed": False,
        }
    )


MOST_MODELS = 50
"""Names of further ones, which a provider may make up, are counted as one."""
OTHERS = "others"
NAME_CHARS = 200


def count_amounts(session: SessionState, entry: e.AnyEntry) -> None:
    if isinstance(entry, e.ModelSaid) and entry.lost_attempts:
        before = session.spent.lost
        usage = before.usage + (entry.lost or Usage(estimated=True))
        session.spent.lost = ModelSpent(calls=before.calls + entry.lost_attempts, usage=usage)
    match entry:
        case e.ModelSaid() if not entry.cut_short or entry.message.usage is not None:
            _count(
                session, entry.model or session.spec.model, entry.message.usage or Usage(), _model_under_way(session)
            )
        case e.ContextCompressed() if entry.usage is not None:
            _count(session, entry.model or session.spec.model, entry.usage, _model_under_way(session))
        case e.NotCompressed() if entry.usage is not None:
            _count(session, _model_under_way(session) or session.spec.model, entry.usage, _model_under_way(session))
        case e.CallsExamined() if entry.usage is not None:
            judge = judge_of(session)
            _count(session, judge, entry.usage, judge, len(entry.analysis))
        case e.ToolReturned(sampled=Sampled() as taken) | e.InputAsked(sampled=Sampled() as taken):
            _count(session, taken.model, taken.usage, taken.model, taken.calls)
        case _:
            pass


def _model_under_way(session: SessionState) -> str:
    """The model of the call that is under way, as the agent names it; known where there is a budget."""
    return session.account.model if session.account else ""


def _count(session: SessionState, model: str, usage: Usage, priced_as: str, calls: int = 1) -> None:
    known = session.spent.by_model
    name = model[:NAME_CHARS]
    if name not in known and len(known) >= MOST_MODELS:
        name = OTHERS
    nanos = tariff_of(session.account, priced_as).of(usage).nanos if session.account else 0
    before = known.get(name, ModelSpent())
    now = ModelSpent(calls=before.calls + calls, usage=before.usage + usage, nanos=before.nanos + nanos)
    # A new table: a copy of the session state has the same one.
    session.spent.by_model = {**known, name: now}

"""Decides what is put aside for a sub-agent before it is begun, of what the session that starts it may spend.

What is put aside for one nobody else can spend; what it leaves comes back with the end of its task. So a tree of
sessions spends no more than its root allows.
"""

from longhaul.agent.decisions.budget import lacking, need_of
from longhaul.agent.decisions.checkpoints import should_save
from longhaul.agent.decisions.rollover import Load
from longhaul.agent.decisions.subagents import GivenTask
from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.synthetic_results import not_a_call
from longhaul.agent.record import Record
from longhaul.agent.steps import Act, Book, Checkpoint, Park, Step
from longhaul.agent.values.amount import NOTHING, Amount, child_key
from longhaul.agent.values.budget import NEW_ACCOUNT, Account, Budget
from longhaul.agent.values.conversation.messages import ToolCallState

LEAST = Amount(tokens=1, nanos=1, calls=1, steps=2)
"""Steps: one of the sub-agent, and the one in which it is begun."""


def put_aside_first(step: Step, record: Record, load: Load) -> Step:
    """The step, or what a session with a budget does before it."""
    if not isinstance(step, Act):
        return step
    budget, account = record.spec.budget, record.account or NEW_ACCOUNT
    call = None if budget is None else _next_task(step, record, account)
    if budget is None or call is None:
        return step
    if account.question:
        return Checkpoint() if should_save(record, load) else Park("person")
    # What the last call of the reply will take is kept, so that it can be made.
    kept = need_of(record, record.spec.model) if budget.on_exhaustion == "summarise" else NOTHING
    if not (lacks := lacking(budget, account, record, load.at, LEAST + kept)):
        return Book(e.BudgetAllotted(call_id=call.block.id, amount=_amount(call, record, budget, account, kept)))
    if budget.on_exhaustion == "ask" and not account.end:
        return Book(e.BudgetExhausted(lacks=lacks, then="ask"))
    why = f"the budget of this session does not do for a sub-agent: {'; '.join(lack.told() for lack in lacks)}"
    return Book(e.ToolReturned(result=not_a_call(call.block, why)))


def _next_task(step: Act, record: Record, account: Account) -> OpenCall | None:
    """The first sub-agent that would be begun and that nothing is put aside for."""
    for call_id in step.call_ids:
        call = record.open_calls[call_id]
        if _starts_child(call, record) and child_key(call_id) not in account.spending.reserved:
            return call
    return None


def _starts_child(call: OpenCall, record: Record) -> bool:
    tool = record.provided.tools.get(call.block.name)
    return tool is not None and tool.child


def _amount(call: OpenCall, record: Record, budget: Budget, account: Account, kept: Amount) -> Amount:
    """As its own table says, as far as it is there; where that says nothing, an even share of what is left, for the
    sub-agents of this turn that are still to be begun and for the session itself."""
    own = record.spec.agents[GivenTask.model_validate_json(call.input).agent].budget
    left = budget.rest(account.spending.held + kept, account.steps + record.current.cur_iter + 1)
    parts = 1 + sum(_is_to_begin(one, record, account) for one in record.open_calls.values())
    wanted = own.rest(NOTHING, 0) if own is not None else NOTHING
    return Amount(
        tokens=_share(wanted.tokens, left.tokens, parts),
        nanos=_share(wanted.nanos, left.nanos, parts),
        calls=_share(wanted.calls, left.calls, parts),
        steps=_share(wanted.steps, left.steps, parts),
    )


def _share(wanted: int, left: int, parts: int) -> int:
    """At least one where one is left."""
    return min(wanted or -(-left // parts), left)


def _is_to_begin(call: OpenCall, record: Record, account: Account) -> bool:
    open_still = call.state is not ToolCallState.FINISHED and call.block.id not in record.children
    return open_still and _starts_child(call, record) and child_key(call.block.id) not in account.spending.reserved

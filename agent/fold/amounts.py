"""Counts what each model has used up, from what the entries say. To be called before a budget settles the call."""

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.budget import judge_of, tariff_of
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.values.amount import ModelSpent
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.mcp_sampling import Sampled

MOST_MODELS = 50
"""Names of further ones, which a provider may make up, are counted as one."""
OTHERS = "others"
NAME_CHARS = 200


def take(ledger: Ledger, entry: e.AnyEntry) -> None:
    if isinstance(entry, e.ModelSaid) and entry.lost_attempts:
        before = ledger.spent.lost
        usage = before.usage + (entry.lost or Usage(estimated=True))
        ledger.spent.lost = ModelSpent(calls=before.calls + entry.lost_attempts, usage=usage)
    match entry:
        case e.ModelSaid() if not entry.cut_short or entry.message.usage is not None:
            _count(ledger, entry.model or ledger.spec.model, entry.message.usage or Usage(), _asked(ledger))
        case e.ContextCompressed() if entry.usage is not None:
            _count(ledger, entry.model or ledger.spec.model, entry.usage, _asked(ledger))
        case e.NotCompressed() if entry.usage is not None:
            _count(ledger, _asked(ledger) or ledger.spec.model, entry.usage, _asked(ledger))
        case e.CallsExamined() if entry.usage is not None:
            judge = judge_of(ledger)
            _count(ledger, judge, entry.usage, judge, len(entry.facts))
        case e.ToolReturned(sampled=Sampled() as taken) | e.InputAsked(sampled=Sampled() as taken):
            _count(ledger, taken.model, taken.usage, taken.model, taken.calls)
        case _:
            pass


def _asked(ledger: Ledger) -> str:
    """The model of the call that is under way, as the agent names it; known where there is a budget."""
    return ledger.account.model if ledger.account else ""


def _count(ledger: Ledger, model: str, usage: Usage, priced_as: str, calls: int = 1) -> None:
    known = ledger.spent.by_model
    name = model[:NAME_CHARS]
    if name not in known and len(known) >= MOST_MODELS:
        name = OTHERS
    nanos = tariff_of(ledger.account, priced_as).of(usage).nanos if ledger.account else 0
    before = known.get(name, ModelSpent())
    now = ModelSpent(calls=before.calls + calls, usage=before.usage + usage, nanos=before.nanos + nanos)
    # A new table: a copy of the ledger has the same one.
    ledger.spent.by_model = {**known, name: now}

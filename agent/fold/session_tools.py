"""Changes the ledger by entries that no worker has a part in."""

from typing import assert_never

from longhaul.agent.entries.all_entries import CallAnswered, InsideEntry, Reminded
from longhaul.agent.fold import background, plans
from longhaul.agent.fold import stuck_detection as fold_stuck
from longhaul.agent.fold import subagents as fold_children
from longhaul.agent.fold.calls import close, judge_again
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.fold.reminders import notebook_hints, stamped, standing_hints


def apply(ledger: Ledger, entry: InsideEntry) -> None:
    match entry:
        case CallAnswered():
            _answered(ledger, entry)
        case Reminded():
            _reminded(ledger, entry)
        case _ as never:
            assert_never(never)


def _reminded(ledger: Ledger, entry: Reminded) -> None:
    if ledger.compaction.changed_at == ledger.messages_total:
        # These words alone are no reason to compress once more.
        ledger.compaction.changed_at += len(entry.messages)
    ledger.context.reminders = ()
    fold_stuck.note_warned(ledger)
    if ledger.reply is not None:
        ledger.reply.to_go_on = ""
    ledger.append(stamped(entry.messages, entry))


def _answered(ledger: Ledger, entry: CallAnswered) -> None:
    if entry.tasks is not None or entry.plans is not None:
        ledger.state.tasks_context = plans.changed(ledger.state.tasks_context, entry)
    if entry.plan is not None:
        ledger.state.take_plan(entry.plan)
        ledger.rules.changed = entry.seq
        judge_again(ledger)
    if entry.groups is not None:
        ledger.state.tool_context.activated_groups = entry.groups
    if entry.structured_output is not None:
        ledger.current.structured_output = entry.structured_output
    fold_children.not_wanted(ledger, entry.unwanted)
    background.not_wanted(ledger, entry.unwanted)
    fold_children.say_later(ledger, entry.seq, entry.sent)
    close(ledger, ledger.current.calls[entry.result.id], entry.result, entry)
    if ledger.context.reminders:
        ledger.context.reminders = standing_hints(ledger)
    elif entry.groups is not None:
        ledger.context.reminders = notebook_hints(ledger)

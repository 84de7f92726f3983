"""Keeps what the model has to know all the while and its context may have lost: told again at the end, never in front,
where the provider would have to read everything anew."""

from collections.abc import Iterator

from longhaul.agent.entries.entry import Entry
from longhaul.agent.entries.session_tools import Reminded
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.plain.times import iso
from longhaul.agent.values.conversation.hints import (
    BROKE_OFF,
    GO_ON,
    LIMIT_OF_FORM,
    LIMIT_REACHED,
    LIMIT_SOURCE,
    hint_message,
)
from longhaul.agent.values.conversation.messages import HintBlock, Msg, ToolResultBlock
from longhaul.agent.values.plan import IS_ON, IS_OVER, PLAN_ENTER, PLAN_EXIT, on_text, over_text
from longhaul.agent.values.plan_notebook import CHANGING, CREATE_PLAN
from longhaul.agent.values.plan_texts import NO_PLAN, THE_PLAN, standing_text
from longhaul.agent.values.stuck_detection import HINTS
from longhaul.agent.values.tasks import progress, tasks_text
from longhaul.agent.values.tool_groups import hidden


def stamped(messages: tuple[Msg, ...], entry: Entry) -> tuple[Msg, ...]:
    """Messages as the record takes them: with ids and the time."""
    return tuple(
        message.model_copy(update={"id": f"m{entry.seq}.{index}", "created_at": iso(entry.at)})
        for index, message in enumerate(messages)
    )


def standing_hints(ledger: Ledger) -> tuple[Msg, ...]:
    """Hints for what holds now and stands nowhere in the context."""
    return (*plan_hints(ledger), *_task_hints(ledger), *notebook_hints(ledger))


def to_be_told(ledger: Ledger, *, closing: bool = False, must_finish: bool = False) -> Reminded | None:
    """All that the model has to hear before it is asked again. `closing`: it may call no tools any more. `must_finish`:
    it has to give its answer in the form now. The code of a kind reads no hints."""
    if ledger.spec.kind:
        return None
    pattern = ledger.state.watch.owed
    warning = (hint_message(HINTS[pattern], "stuck"),) if pattern else ()
    reached = LIMIT_OF_FORM if must_finish else LIMIT_REACHED
    told_of = (closing or must_finish) and not _knows_the_limit(ledger)
    limit = (hint_message(reached, LIMIT_SOURCE),) if told_of else ()
    go_on = ledger.reply.to_go_on if ledger.reply else ""
    broken_off = (hint_message(GO_ON[go_on], BROKE_OFF),) if go_on else ()
    told = (*ledger.context.reminders, *warning, *broken_off, *limit)
    return Reminded(messages=told, stuck=pattern) if told else None


def _knows_the_limit(ledger: Ledger) -> bool:
    """Whether it was told so last of all; what came in behind it may have asked for more."""
    last = ledger.state.context[-1].content if ledger.state.context else ()
    return any(isinstance(block, HintBlock) and block.source == LIMIT_SOURCE for block in last)


def notebook_hints(ledger: Ledger) -> tuple[Msg, ...]:
    """How things stand with the plan, for a model that has the plan notebook, when it was told something else last."""
    if not _has_notebook(ledger):
        return ()
    text = standing_text(ledger.state.tasks_context)
    told = (told for source, told in _told(ledger) if source in _OF_NOTEBOOK)
    last = next((told for told in told if NO_PLAN in told or THE_PLAN in told), "")
    return () if text in last else (hint_message(text, NOTEBOOK_SOURCE),)


def _has_notebook(ledger: Ledger) -> bool:
    hides = hidden(ledger.spec.tool_groups, ledger.state.tool_context.activated_groups)
    return CREATE_PLAN in ledger.provided.tools and CREATE_PLAN not in hides


NOTEBOOK_SOURCE = "plan_notebook"
_OF_NOTEBOOK = (NOTEBOOK_SOURCE, *CHANGING)


def _task_hints(ledger: Ledger) -> Iterator[Msg]:
    if ledger.state.tasks_context.current_plan is not None and _has_notebook(ledger):
        return
    tasks = ledger.state.tasks_context.tasks
    done, total, _ = progress(tasks)
    text = tasks_text(tasks)
    if done < total and not any(text in told for _, told in _told(ledger)):
        yield hint_message(f"Your list of tasks, as it stands:\n{text}", "tasks")


def plan_hints(ledger: Ledger) -> tuple[Msg, ...]:
    """That plan mode is on, or that it is over, when what the model was told last is something else."""
    last = next((told for source, told in _told(ledger) if source in _OF_PLANS and told.startswith(_WORDS)), "")
    if ledger.state.planning and not last.startswith(IS_ON):
        text = on_text(ledger.state.plan_mode_context, may_exit=PLAN_EXIT in ledger.provided.tools)
    elif not ledger.state.planning and last.startswith(IS_ON):
        text = over_text(ledger.state.mode.value)
    else:
        return ()
    return (hint_message(text, PLAN_SOURCE),)


PLAN_SOURCE = "plan_mode"
_OF_PLANS = (PLAN_SOURCE, PLAN_ENTER, PLAN_EXIT)
_WORDS = (IS_ON, IS_OVER)


def _told(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Source or tool, and text, of the hints and results that the model reads or is about to, newest first."""
    for message in (*reversed(ledger.context.deferred), *reversed(ledger.state.context)):
        for block in message.content:
            match block:
                case HintBlock(hint=str(hint)):
                    yield block.source or "", hint
                case ToolResultBlock():
                    yield block.name, block.get_text()
                case _:
                    pass

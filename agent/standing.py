"""What the model has to know all the while, and its context may have lost: told again at the end, never in front, where
the provider would have to read everything anew."""

from collections.abc import Iterator

from agent.entries_inside import Reminded
from agent.entry import Entry
from agent.ledger import Ledger
from agent.messages import HintBlock, Msg, ToolResultBlock
from agent.plan import IS_ON, IS_OVER, PLAN_ENTER, PLAN_EXIT, on_text, over_text
from agent.prompt import hint_message
from agent.stuck import HINTS
from agent.tasks import progress, tasks_text
from agent.times import iso


def stamped(messages: tuple[Msg, ...], entry: Entry) -> tuple[Msg, ...]:
    """Messages as the record takes them: with ids and the time."""
    return tuple(
        message.model_copy(update={"id": f"m{entry.seq}.{index}", "created_at": iso(entry.at)})
        for index, message in enumerate(messages)
    )


def standing_hints(ledger: Ledger) -> tuple[Msg, ...]:
    """Hints for what holds now and stands nowhere in the context."""
    return (*plan_hints(ledger), *_task_hints(ledger))


def to_be_told(ledger: Ledger) -> Reminded | None:
    """All that the model has to hear before it is asked again."""
    pattern = ledger.state.watch.owed
    warning = (hint_message(HINTS[pattern], "stuck"),) if pattern else ()
    told = (*ledger.reminders, *warning)
    return Reminded(messages=told, stuck=pattern) if told else None


def _task_hints(ledger: Ledger) -> Iterator[Msg]:
    tasks = ledger.state.tasks_context.tasks
    done, total, _ = progress(tasks)
    text = tasks_text(tasks)
    if done < total and not any(text in told for _, told in _told(ledger)):
        yield hint_message(f"Your list of tasks, as it stands:\n{text}", "tasks")


def plan_hints(ledger: Ledger) -> tuple[Msg, ...]:
    """That plan mode is on, or that it is over, when what the model was told last is something else."""
    last = next((told for source, told in _told(ledger) if source in _OF_PLANS and told.startswith(_WORDS)), "")
    if ledger.state.planning and not last.startswith(IS_ON):
        text = on_text(ledger.state.plan_mode_context, may_exit=PLAN_EXIT in ledger.tools)
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
    for message in (*reversed(ledger.deferred), *reversed(ledger.state.context)):
        for block in message.content:
            match block:
                case HintBlock(hint=str(hint)):
                    yield block.source or "", hint
                case ToolResultBlock():
                    yield block.name, block.get_text()
                case _:
                    pass

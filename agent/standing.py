"""What the model has to know all the while, and its context may have lost: told again at the end, never in front, where
the provider would have to read everything anew."""

from collections.abc import Iterator

from agent.entry import Entry
from agent.ledger import Ledger
from agent.messages import HintBlock, Msg, ToolResultBlock
from agent.prompt import hint_message
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
    return tuple(hint_message(hint, source) for hint, source, proof in _standing(ledger) if not _shown(ledger, proof))


def _standing(ledger: Ledger) -> Iterator[tuple[str, str, str]]:
    """Hint, source, and the text by which it is known that the context says it already."""
    tasks = ledger.state.tasks_context.tasks
    done, total, _ = progress(tasks)
    if done < total:
        text = tasks_text(tasks)
        yield f"Your list of tasks, as it stands:\n{text}", "tasks", text


def _shown(ledger: Ledger, text: str) -> bool:
    blocks = (block for message in reversed(ledger.state.context) for block in message.content)
    return any(text in _read(block) for block in blocks)


def _read(block: object) -> str:
    match block:
        case HintBlock(hint=str(hint)):
            return hint
        case ToolResultBlock():
            return block.get_text()
        case _:
            return ""

"""A session in its tree: the path to it from the root, its sub-agents, and what it reports when its task has ended."""

from collections.abc import Sequence
from typing import Any

from longhaul.agent.decisions.subagents import task_reply
from longhaul.agent.letters.bodies import ChildReport
from longhaul.agent.plain.canonical import canonical_json
from longhaul.agent.record import Record
from longhaul.agent.values.amount import GIVEN_BACK, Amount
from longhaul.agent.values.budget import NEW_ACCOUNT
from longhaul.agent.values.conversation.messages import ContentBlock, FinishedReason, Msg, ToolResultBlock
from longhaul.agent.values.spec.workspace import BRANCHES
from longhaul.agent.values.subagents import LONGEST_REPORT_CHARS
from longhaul.agent.views.transcript import reply_message

BETWEEN = " › "


def path(record: Record, tool: str) -> str:
    """`root › researcher › Bash`, of a call in a sub-agent; empty in a session that people themselves began."""
    return BETWEEN.join((*record.parent.path, record.spec.name, tool)) if record.parent else ""


def family(record: Record) -> dict[str, Any]:
    """For the status: who started it, and its sub-agents."""
    above = BETWEEN.join((*record.parent.path, record.spec.name)) if record.parent else ""
    return {"path": above, "children": tuple(record.children.values()), "commands": tuple(record.commands.values())}


def report(record: Record) -> ChildReport | None:
    """What whoever gave the task is told; None while there is nothing to tell."""
    reply = task_reply(record)
    if reply is None or record.parent is None:
        return None
    ended = record.requests.finished[reply]
    said = reply_message(record, reply)
    words = _answer(said) if said is not None else ""
    if not words:  # of an earlier life the context alone has them
        words = last_words([block for each in record.state.context if each.id == reply for block in each.content])
    return ChildReport(
        call_id=record.parent.call_id,
        session_id=record.state.session_id,
        state="error" if record.parent.overdue else _STATES.get(ended.reason, "error"),
        output=_cut(
            f"{_told(record, ended.reason, ended.error.message if ended.error else '', words)}{_files(record)}"
        ),
        tainted=record.state.tainted[:1_000],
        **_spent(record),
    )


def _spent(record: Record) -> dict[str, Amount]:
    """For whoever has put something aside for it. What sub-agents of its own may still spend counts as spent."""
    if record.spec.budget is None or record.parent is None or not record.parent.allotted:
        return {}
    account = record.account or NEW_ACCOUNT
    spending = account.spending
    held = (amount for key, amount in spending.reserved.items() if key != GIVEN_BACK)
    own = Amount(steps=account.steps)
    return {"spent": sum(held, spending.spent + own), "doubtful": spending.doubtful}


_STATES: dict[FinishedReason, Any] = {
    FinishedReason.COMPLETED: "success",
    FinishedReason.INTERRUPTED: "interrupted",
}


def _answer(said: Msg) -> str:
    """Its last words; of one that was asked for a value, that as JSON."""
    value = said.structured_output
    return last_words(said.content) if value is None else canonical_json(value).decode()


def last_words(content: Sequence[ContentBlock]) -> str:
    """The text behind the last tool result."""
    texts = list[str]()
    for block in reversed(content):
        if isinstance(block, ToolResultBlock):
            break
        if block.type == "text":
            texts.insert(0, block.text)
    return "\n".join(texts)


def _told(record: Record, reason: FinishedReason, error: str, words: str) -> str:
    if reason is FinishedReason.COMPLETED and words:
        return words
    name, session = record.spec.name, record.state.session_id
    if reason is FinishedReason.COMPLETED:
        return f"The sub-agent {name!r} has ended its task without a word; its session is {session!r}."
    how = f"The sub-agent {name!r} did not complete its task ({reason.value}{f': {error}' if error else ''})."
    done = f" What it did stands in its session {session!r}."
    return f"{how}{done} Its last words:\n{words}" if words else f"{how}{done}"


def _files(record: Record) -> str:
    """Where to find what it made, of one with a working tree of its own."""
    root = record.provided.workspace_root
    if record.spec.workspace is None or record.spec.workspace.place != "worktree" or not root:
        return ""
    branch = f"{BRANCHES}{root.rpartition('/')[2]}"
    return (
        f"\n\n[Its files lie in {root}, on branch {branch}; `longhaul worktree merge {branch}` takes them over, "
        f"`longhaul worktree discard {branch}` throws them away.]"
    )


def _cut(text: str) -> str:
    if len(text) <= LONGEST_REPORT_CHARS:
        return text
    return f"{text[:LONGEST_REPORT_CHARS]}\n(cut here: it has {len(text)} characters)"

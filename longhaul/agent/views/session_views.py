"""The standing of a session with its budget, for people and programs.

The standing of a session's plan, for people and programs.

Lists what a session has not finished, in lines that no summary of its past may lose.

Measures how long calls have waited: for people, and for systems outside, until somebody answered or their time was
over.

A session in its tree: the path to it from the root, its sub-agents, and what it reports when its task has ended.

The words of a member's session for its hub.

The index is a session's row at the server: how it stands, and what waits in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pydantic import Field

from longhaul.agent.decisions.budget_limits import seconds_of, steps_of
from longhaul.agent.decisions.deadline_steps import expires_at
from longhaul.agent.decisions.subagent_start import task_reply
from longhaul.agent.entries import AnyEntry, DeadlineReached, HumanDecided, InputAnswered, ResultReceived, ToolReturned
from longhaul.agent.journal import Journal
from longhaul.agent.operations.bodies import AskAnswer, ChildReport, UnknownOutcomeRow
from longhaul.agent.operations.result_operations import blocking, unresolved_outcomes
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.values import OpenValue, canonical_json, sparse
from longhaul.agent.reducer.all_changes import next_batch
from longhaul.agent.reducer.session_state import Finished, SessionState, Spent
from longhaul.agent.values.budget import GIVEN_BACK, LIMITS, NANOS, NEW_ACCOUNT, Account, Amount, limit_text
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    FinishedReason,
    Msg,
    ToolCallState,
    ToolResultBlock,
)
from longhaul.agent.values.conversation.tools import answered_in
from longhaul.agent.values.hubs import LONGEST_SAID_CHARS
from longhaul.agent.values.spec.workspace import BRANCHES
from longhaul.agent.values.subagents import BUSY, LONGEST_REPORT_CHARS, Asker
from longhaul.agent.values.tasks import MOST_TASKS, NotebookPlan, Task, TaskState, progress
from longhaul.agent.views.transcript import reply_message

CALL_ID = "budget"
"""In the place of a call's id, of what waits for more budget; no tool is called so by a model."""


class BudgetStanding(OpenValue):
    """By name of the limit: tokens, cost in dollars, calls, steps, seconds. `limits` and `left` have those that are
    set; `cost` is 0 where nobody has set a limit of it."""

    limits: dict[str, float]
    spent: dict[str, float]
    reserved: dict[str, float]
    """Put aside for the call that is under way, and for sub-agents at work."""
    left: dict[str, float]
    doubtful: dict[str, float] = sparse({})
    """Of what was spent: attempts that were lost or cut short, which a provider may have billed, as estimated."""
    asks: str = sparse("")
    """What a reply waits for that needs more."""
    asked_at: str = sparse("")

    def lines(self) -> Iterator[str]:
        """One to each limit, and what stands beside it."""
        for name in LIMITS:
            if (limit := self.limits.get(name)) is None:
                continue
            held = self.reserved.get(name, 0)
            aside = f", {limit_text(name, held)} put aside" if held else ""
            yield (
                f"budget: {limit_text(name, self.spent[name])} of {limit_text(name, limit)} spent{aside}, "
                f"{limit_text(name, self.left[name])} left"
            )
        if calls := self.doubtful.get("calls"):
            cost = f" and {limit_text('cost', self.doubtful['cost'])}" if "cost" in self.limits else ""
            tokens = limit_text("tokens", self.doubtful["tokens"])
            many = limit_text("calls", calls)
            yield f"of that, of unknown outcome: {tokens}{cost} of {many} that nobody heard the end of"


def standing(journal: Journal) -> BudgetStanding | None:
    """As of the newest entry; None without a budget."""
    budget, account = journal.spec.budget, journal.account or NEW_ACCOUNT
    if budget is None:
        return None
    spending, limits = account.spending, budget.told()
    reserved = sum(spending.reserved.values(), Amount())
    spent = {**_amount_view(spending.spent), **_passed(account, journal)}
    aside = _amount_view(reserved)
    return BudgetStanding(
        limits=limits,
        spent=spent,
        reserved=aside,
        left={name: max(limit - spent[name] - aside.get(name, 0), 0) for name, limit in limits.items()},
        doubtful=_amount_view(spending.doubtful) if spending.doubtful.calls else {},
        asks=account.question.why if account.question else "",
        asked_at=iso(account.question.at) if account.question else "",
    )


def _amount_view(amount: Amount) -> dict[str, float]:
    steps = {"steps": amount.steps} if amount.steps else {}
    return {"tokens": amount.tokens, "cost": amount.of("cost"), "calls": amount.calls, **steps}


def _passed(account: Account, journal: Journal) -> dict[str, float]:
    steps = steps_of(account, journal) + account.spending.spent.steps
    return {"steps": steps, "seconds": round(seconds_of(account, journal, journal.latest_at), 3)}


SHOWN_CHARS = 300
"""Of one text: what is written by hand into a state may have any length. The state has all of it."""
SHOWN_PLANS = 5


class SubtaskStanding(OpenValue):
    name: str
    state: TaskState
    outcome: str = sparse("")


class PlanStanding(OpenValue):
    """A plan in short; of one that is over no subtasks."""

    id: str
    name: str
    state: str
    description: str = sparse("")
    expected_outcome: str = sparse("")
    outcome: str = sparse("")
    created_at: str = sparse("")
    finished_at: str = sparse("")
    subtasks: tuple[SubtaskStanding, ...] = sparse(())


def tasks_told(journal: Journal) -> dict[str, Any]:
    """What a session's status says of its tasks and plans, under the names of its fields."""
    done, total, current = progress(journal.state.tasks_context.tasks)
    plans = {"plan": plan_standing(journal), "plans_over": plans_over(journal)}
    return {"tasks_done": done, "tasks_total": total, "current_task": current, **plans}


def plan_standing(journal: Journal) -> PlanStanding | None:
    """Of the current one; None without one."""
    known = journal.state.tasks_context
    if known.current_plan is None:
        return None
    subtasks = tuple(_subtask_view(task) for task in known.tasks[:MOST_TASKS])
    return _plan_view(known.current_plan).model_copy(update={"subtasks": subtasks})


def plans_over(journal: Journal) -> tuple[PlanStanding, ...]:
    """The newest of those that are over, the newest last."""
    return tuple(_plan_view(plan) for plan in journal.state.tasks_context.historical_plans[-SHOWN_PLANS:])


def _plan_view(plan: NotebookPlan) -> PlanStanding:
    texts = {name: _cut_line(text) for name, text in plan.model_dump(exclude={"subtasks"}).items()}
    return PlanStanding.model_validate(texts)


def _subtask_view(task: Task) -> SubtaskStanding:
    return SubtaskStanding(name=_cut_line(task.subject), state=task.state, outcome=_cut_line(task.outcome))


def _cut_line(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"


LINE_CHARS = 200
MOST_LINES = 20
"""They take room in each summary, and windows may be small."""


def unfinished(journal: Journal) -> tuple[str, ...]:
    """Calls whose outcome nobody knows, then tasks that are not done, the one that is being worked on first."""
    unknown_outcomes = [
        f"{unknown_outcome.tool} ({unknown_outcome.call_id}): its outcome is unknown"
        for unknown_outcome in unresolved_outcomes(journal)
    ]
    tasks = [task for task in journal.state.tasks_context.tasks if task.is_open]
    tasks.sort(key=lambda task: task.state != "in_progress")
    lines = [_one_line(line) for line in (*unknown_outcomes, *(task.subject for task in tasks))]
    left_out = len(lines) - MOST_LINES
    return (*lines[:MOST_LINES], f"and {left_out} more that are open") if left_out > 0 else tuple(lines)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1]}…"


Outcome = Literal["answered", "expired"]
_Ends = HumanDecided | ToolReturned | ResultReceived | InputAnswered | DeadlineReached


class Waited(NamedTuple):
    tool: str
    waits_for: Literal["person", "outside"]
    outcome: Outcome
    seconds: float


def waits_ended(session: SessionState, entry: AnyEntry, at: int) -> list[Waited]:
    """The waits that this entry is about to end. `at`: milliseconds since 1970. Of a call that takes two approvals each
    is a wait of its own."""
    # Asked of every entry that is written: nearly all end no wait.
    if not isinstance(entry, _Ends) or session.reply is None:
        return []
    calls = session.reply.calls
    return [
        Waited(call.block.name, call.waits_for, outcome, (at - call.asked_at) / 1000)
        for call_id, outcome in _answered(entry)
        if (call := calls.get(call_id)) is not None and call.waits_for is not None and call.waits_for != "event"
    ]


def _answered(entry: _Ends) -> Iterator[tuple[str, Outcome]]:
    """Calls by id."""
    match entry:
        case HumanDecided():
            for decision in entry.decisions:
                yield decision.call_id, "answered"
        case ToolReturned() | ResultReceived():
            yield entry.result.id, "answered"
        case InputAnswered():
            yield entry.call_id, "answered"
        case DeadlineReached():
            for due in entry.due:
                if due.closes:
                    yield due.call_id, "expired"


BETWEEN = " › "


def path(journal: Journal, tool: str) -> str:
    """`root › researcher › Bash`, of a call in a sub-agent; empty in a session that people themselves began."""
    return BETWEEN.join((*journal.parent.path, journal.spec.name, tool)) if journal.parent else ""


def family(journal: Journal) -> dict[str, Any]:
    """For the status: who started it, who waits for it, and its sub-agents."""
    above = BETWEEN.join((*journal.parent.path, journal.spec.name)) if journal.parent else ""
    return {
        "path": above,
        "askers": tuple(journal.askers.values()),
        "children": tuple(journal.children.values()),
        "commands": tuple(journal.commands.values()),
    }


def report(journal: Journal) -> ChildReport | None:
    """What whoever gave the task is told; None while there is nothing to tell."""
    reply = task_reply(journal)
    if reply is None or journal.parent is None:
        return None
    ended = journal.requests.finished[reply]
    words = _words_at_the_end(journal, ended)
    return ChildReport(
        call_id=journal.parent.call_id,
        session_id=journal.state.session_id,
        state="error" if journal.parent.overdue else _STATES.get(ended.reason, "error"),
        output=_cut_report(
            _closing_words(journal, ended.reason, ended.error.message if ended.error else "", words) + _files(journal)
        ),
        tainted=journal.state.tainted[:1_000],
        **_spent(journal),
    )


def _words_at_the_end(journal: Journal, ended: Finished) -> str:
    reply = ended.reply_id
    said = reply_message(journal, reply)
    words = _answer(said) if said is not None else ""
    if not words:  # of an earlier incarnation the context alone has them
        blocks = [block for each in journal.state.context if each.id == reply for block in each.content]
        words = last_words(blocks)
        if not words and ended.reason is not FinishedReason.COMPLETED:
            # Also those before its last call: whoever gave the task has nothing else of it.
            words = next((block.text for block in reversed(blocks) if block.type == "text"), "")
    return words


LARGEST_ANSWER_BYTES = 200_000
"""Of a value that a workflow has asked for: it stands in the history of that workflow too."""


def answer(journal: Journal, asker: Asker) -> AskAnswer:
    """What a workflow is told whose request has ended, or was not taken."""
    session = journal.state.session_id
    if asker.refused:
        state: Literal["busy", "refused"] = "busy" if asker.refused == BUSY else "refused"
        return AskAnswer(request_id=asker.request_id, session_id=session, state=state, words=asker.refused)
    ended = journal.requests.finished[journal.requests.handled[asker.request_id].reply_id]
    said, words = reply_message(journal, ended.reply_id), _words_at_the_end(journal, ended)
    if said is not None and said.content:
        content: Sequence[ContentBlock] = said.content
    else:  # of an earlier incarnation the context alone has it
        content = [block for each in journal.state.context if each.id == ended.reply_id for block in each.content]
    value: dict[str, Any] | None = answered_in(content, ended.reason).get("structured_output")
    why = ended.error.message if ended.error else ""
    if value is not None and (size := len(canonical_json(value))) > LARGEST_ANSWER_BYTES:
        most = LARGEST_ANSWER_BYTES // 1000
        why, value = f"the value has {size // 1000} kB, and the most is {most} kB; ask for a smaller one", None
    completed = ended.reason is FinishedReason.COMPLETED and not why
    reason = "" if completed else f"{ended.reason.value}{f': {why}' if why else ''}"
    return AskAnswer(
        request_id=asker.request_id,
        session_id=session,
        state="success" if completed else "interrupted" if ended.reason is FinishedReason.INTERRUPTED else "error",
        words=_cut_report("\n".join(part for part in (reason, words) if part)),
        value=value,
        usage=ended.usage,
        cost=asker.nanos / NANOS if asker.nanos else None,
        unknown=tuple(
            UnknownOutcomeRow(
                call_id=unknown_outcome.call_id, tool=unknown_outcome.tool, why=_cut_line(unknown_outcome.why)
            )
            for unknown_outcome in unresolved_outcomes(journal, ended.reply_id)
        ),
    )


def _spent(journal: Journal) -> dict[str, Amount]:
    """For whoever has put something aside for it. What sub-agents of its own may still spend counts as spent."""
    if journal.spec.budget is None or journal.parent is None or not journal.parent.allotted:
        return {}
    account = journal.account or NEW_ACCOUNT
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


def _closing_words(journal: Journal, reason: FinishedReason, error: str, words: str) -> str:
    if reason is FinishedReason.COMPLETED and words:
        return words
    name, session = journal.spec.name, journal.state.session_id
    if reason is FinishedReason.COMPLETED:
        return f"The sub-agent {name!r} has ended its task without a word; its session is {session!r}."
    how = f"The sub-agent {name!r} did not complete its task ({reason.value}{f': {error}' if error else ''})."
    done = f" What it did stands in its session {session!r}."
    return f"{how}{done} Its last words:\n{words}" if words else f"{how}{done}"


def _files(journal: Journal) -> str:
    """Where to find what it made, of one with a working tree of its own."""
    root = journal.provided.workspace_root
    if journal.spec.workspace is None or journal.spec.workspace.place != "worktree" or not root:
        return ""
    branch = f"{BRANCHES}{root.rpartition('/')[2]}"
    return (
        f"\n\n[Its files lie in {root}, on branch {branch}; `longhaul worktree merge {branch}` takes them over, "
        f"`longhaul worktree discard {branch}` throws them away.]"
    )


def _cut_report(text: str) -> str:
    if len(text) <= LONGEST_REPORT_CHARS:
        return text
    return f"{text[:LONGEST_REPORT_CHARS]}\n(cut here: it has {len(text)} characters)"


class MemberSaid(OpenValue):
    """What a member has answered, wherever it was asked. Sessions send it, each reply once."""

    workflow_id: str = Field(max_length=1_000)
    """Of the member's session."""
    incarnation: str = Field(max_length=200)
    reply_id: str = Field(max_length=1_000)
    text: str = Field(default="", max_length=2 * LONGEST_SAID_CHARS)
    """Its last words; empty: there is nothing to tell the others."""
    tainted: str = sparse("", max_length=1_000)


def member_said(journal: Journal, workflow_id: str, hub: str, reply: str) -> MemberSaid:
    ended = reply_message(journal, reply)
    return MemberSaid(
        workflow_id=workflow_id,
        incarnation=journal.hubs[hub].incarnation,
        reply_id=reply,
        text=_cut_word(last_words(ended.content)) if ended is not None else "",
        tainted=journal.state.tainted[:1_000],
    )


def _cut_word(text: str) -> str:
    if len(text) <= LONGEST_SAID_CHARS:
        return text
    return f"{text[:LONGEST_SAID_CHARS]}\n(cut here: it has {len(text)} characters)"


WAITS_INDEXED, ALL_INDEXED = 2, 3
"""A namespace with the first search attributes has 1; with those of what waits, 2; with all that `IndexRow` has, 3."""

_RISKS = ("", "low", "medium", "unknown", "high")
"""The lowest first."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """The searchable part of a session. What the namespace has no attribute for stays empty."""

    status: str
    """idle, working, waiting or paused."""
    tools: tuple[str, ...] = ()
    """Of the calls that wait, and of those of which nobody knows whether they ran."""
    risk: str = ""
    team: str = ""
    deadline: int = 0
    """Milliseconds since 1970 at which the first of them expires or wakes up; 0 = never."""
    tokens: int = field(default=0, compare=False)
    dollars: float = field(default=0.0, compare=False)
    """These are told when something else has changed: a row of their own for each step would cost an event."""


def status_word(journal: Journal) -> str:
    if journal.pause is not None:
        return "paused"
    return "waiting" if journal.incarnation.host_unavailable else reply_word(journal)


def reply_word(journal: Journal) -> str:
    """How the reply stands that is being made: a call that waits in it waits in a paused session too."""
    if journal.incarnation.quarantine:
        return "waiting"
    if journal.reply is None:
        return "working" if journal.requests.queue else "idle"
    if journal.interrupted and journal.provided.hooked_interrupts:
        return "working"  # on its last words: nobody is waited for any more
    lacks_budget = journal.account is not None and journal.account.question is not None
    return "waiting" if journal.reply.waiting() or blocking(journal) or lacks_budget else "working"


def is_left_to_subagents(journal: Journal) -> bool:
    """Whether the reply goes on only when sub-agents end: all calls that may run now wait for one. A sub-agent in the
    background keeps nothing waiting, and a tool that runs next to a sub-agent goes on without it."""
    if journal.reply is None:
        return False
    batch = next_batch(journal.reply, journal.provided.tools, parallel=journal.spec.react_config.parallel_tool_calls)
    return bool(batch) and all(call.child and call.state is ToolCallState.SUBMITTED for call in batch)


def row_of(journal: Journal) -> IndexRow:
    status = status_word(journal)
    if journal.provided.indexed < WAITS_INDEXED:
        return IndexRow(status)
    waiting = journal.reply.waiting() if journal.reply else []
    ends = [end for call in waiting if not call.expired_at and (end := expires_at(call)) is not None]
    ends += [call.sleep.until for call in waiting if call.sleep is not None]
    spent = journal.spent if journal.provided.indexed >= ALL_INDEXED else Spent()
    return IndexRow(
        status=status,
        tools=tuple(
            sorted(
                {call.block.name for call in waiting}
                | {unknown_outcome.tool for unknown_outcome in unresolved_outcomes(journal)}
            )
        ),
        risk=max((call.analysis.risk for call in waiting), key=_RISKS.index, default=""),
        team=journal.spec.team,
        deadline=min(ends, default=0),
        tokens=spent.usage.input_tokens + spent.usage.output_tokens,
        dollars=sum(model.nanos for model in spent.by_model.values()) / NANOS,
    )

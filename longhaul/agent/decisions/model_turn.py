"""Decisions around one model call of a reply: which model is asked, what the iteration limit means, how a message
that was cut off is continued, and when an answer or a step that is under way is asked for again.

Here are also the last words of an interrupted agent, when a reply is written into long-term memory, and how far
an MCP server may have the model asked.
"""

from dataclasses import dataclass
from typing import TypeVar

from longhaul.agent import entries as e
from longhaul.agent.entries import CallsExamined, ContextCompressed, ModelSaid
from longhaul.agent.journal import Journal
from longhaul.agent.reducer.agent_state import ReplyContext
from longhaul.agent.reducer.budget_state import tariff_of
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.steps import Finish, Memorise, Step
from longhaul.agent.values.budget import MILLION, NANOS, NEW_ACCOUNT
from longhaul.agent.values.conversation.messages import (
    REFUSALS,
    ErrorInfo,
    FinishedReason,
    ToolCallState,
    ToolResultState,
)
from longhaul.agent.values.conversation.prompt import hint_message
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.knowledge import is_static
from longhaul.agent.values.spec.mcp import Sampling


def next_model(journal: Journal, reply: ReplyContext) -> str | None:
    """The first of the agent's models that has not failed at this step, nor refused in this reply."""
    models = (journal.spec.model, journal.spec.llm_config.fallback_model)
    return next((model for model in models if model is not None and not reply.is_passed_over(model)), None)


def without_a_model(reply: ReplyContext) -> Finish:
    """The end of a reply that no model is left for."""
    refused = reply.model_error is not None and reply.model_error.type in REFUSALS
    return Finish(reply.reply_id, FinishedReason.REFUSED if refused else FinishedReason.ERROR, reply.model_error)


def must_close(journal: Journal, reply: ReplyContext) -> bool:
    """Whether the next model call is the last one, and gets no tools."""
    return _used_up(journal, reply) and reply.structured_schema is None


def in_grace(journal: Journal, reply: ReplyContext) -> bool:
    """Whether the next model call must give the answer in the form that was asked for."""
    return _used_up(journal, reply) and reply.structured_schema is not None


def was_closed(journal: Journal, reply: ReplyContext) -> bool:
    """Whether the answer came from the closing call, behind the last iteration."""
    return reply.cur_iter > journal.spec.react_config.max_iters


def _used_up(journal: Journal, reply: ReplyContext) -> bool:
    return reply.cur_iter >= journal.spec.react_config.max_iters


Delivered = TypeVar("Delivered", ModelSaid, ContextCompressed, CallsExamined)


def with_new_adjustments(said: Delivered, journal: Journal) -> Delivered:
    """The entry without what the session was told before of the same model."""
    if not said.adjusted:
        return said
    told = journal.context.adjusted
    new = tuple(each for each in dict.fromkeys(said.adjusted) if (said.model, each) not in told)
    return said if new == said.adjusted else said.model_copy(update={"adjusted": new})


def must_list_again(journal: Journal, reply: ReplyContext) -> bool:
    """A server offers other tools than those that the reply began with, and the model is about to be asked."""
    return bool(journal.provided.outdated) and not reply.answered


def with_tools_from_before(journal: Journal, why: str) -> e.Prepared:
    """What stands in the place of a new list that could not be had."""
    known = journal.provided
    told = f"The tools could not be listed again, and are those from before: {why}"
    return e.Prepared(
        behaviour=journal.state.behaviour,
        spec_digest=known.spec_digest,
        workspace_root=known.workspace_root,
        workspace_nonce=known.workspace_nonce,
        fixed_tokens=known.fixed_tokens,
        hints=(hint_message(told, "mcp"),),
    )


_CAME_TO_SOMETHING = (FinishedReason.COMPLETED, FinishedReason.EXCEED_MAX_ITERS)


def memorised(step: Step, journal: Journal) -> Step:
    """The step, or what comes before it."""
    reply = journal.reply
    if reply is None or reply.memorised or not isinstance(step, Finish) or step.reason not in _CAME_TO_SOMETHING:
        return step
    return Memorise() if is_static(journal.spec.long_term_memory_mode) else step


LONGEST_WORDS = 10_000
"""Characters."""


def is_stopped(journal: Journal, reply: ReplyContext) -> bool:
    """Whether the reply is to end although calls are open."""
    return journal.interrupted or (reply.rejected and journal.spec.react_config.stop_on_reject)


def must_ask_hooks(session: SessionState) -> bool:
    """Whether workers are to be asked before the reply ends. Once: a hook that failed is not asked again."""
    return session.interrupted and session.requests.parting is None and session.provided.hooked_interrupts


def parting_words(session: SessionState) -> str:
    """The last words of the reply that is being made; none of one that nobody has interrupted."""
    if not session.interrupted:
        return ""
    return session.requests.parting or session.spec.react_config.interruption_message


def task_under_way(session: SessionState) -> ReplyContext | None:
    """Of a sub-agent, the reply that its task is to end with, unless it ends already."""
    reply, parent = session.reply, session.parent
    is_it = reply is not None and parent is not None and reply.request_id == parent.call_id
    return reply if is_it and not session.interrupted else None


def task_is_over(session: SessionState) -> bool:
    """Of a sub-agent: whether the reply that its task ends with has ended."""
    asked = session.requests.handled.get(session.parent.call_id) if session.parent is not None else None
    return asked is not None and asked.reply_id in session.requests.finished


def why_overdue(session: SessionState) -> ErrorInfo | None:
    """What the end of a reply says of the time of its task, where that has ended it."""
    reply, parent = session.reply, session.parent
    if reply is None or parent is None or not (parent.overdue and reply.request_id == parent.call_id):
        return None
    return ErrorInfo(
        type="overdue",
        message=f"its time was over: `task_seconds` of its agent is {session.spec.task_seconds or 0:g}",
    )


def replaced_by(session: SessionState) -> str:
    """What was said with the interrupt: the request that is next."""
    following = session.requests.queue[0] if session.requests.queue else None
    if following is None or following.when != "interrupt":
        return ""
    return "\n".join(message.get_text_content() for message in following.messages)[:LONGEST_WORDS]


def cut_short(session: SessionState) -> tuple[str, ...]:
    """Tools of the newest turn's calls that were stopped, or never began, in their order."""
    reply, stopped = session.current, list[str]()
    for message in reversed(session.state.context):
        if message.id != reply.reply_id or message.get_tool_calls():
            break
        results = message.get_tool_results()
        stopped[:0] = [result.name for result in results if result.state is ToolResultState.INTERRUPTED]
    open_calls = (call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED)
    return (*stopped, *(call.block.name for call in open_calls))


def room_for(journal: Journal, sampling: Sampling, model: str) -> tuple[int, int]:
    """Calls and tokens. None where the model has no price that the budget could be counted in."""
    budget, account = journal.spec.budget, journal.account or NEW_ACCOUNT
    calls, tokens = sampling.max_calls, sampling.max_tokens
    if budget is None:
        return calls, tokens
    rest = budget.rest(account.spending.held, 0)
    if budget.max_calls is not None:
        calls = min(calls, rest.calls)
    if budget.max_tokens is not None:
        tokens = min(tokens, rest.tokens)
    if budget.max_cost is not None:
        price = tariff_of(account, model).price
        dearest = max(price.input, price.output, price.cache_write or 0.0) if price else 0.0
        affordable = int(rest.nanos * MILLION / (dearest * NANOS)) if dearest else tokens
        tokens = min(tokens, affordable) if price else 0
    return calls, tokens


MOST_OUTPUT_TOKENS = 128_000
"""More than this no model says at once; a limit that is set higher is left alone."""


def too_often(journal: Journal, reply: ReplyContext) -> Finish | None:
    """The end of a reply whose model does not come to an end: what it has said stands, and that it is not whole."""
    if reply.broken_off <= journal.spec.react_config.max_continuations:
        return None
    return Finish(reply.reply_id, FinishedReason.INCOMPLETE, reply.model_error)


def config_for(journal: Journal, model: str) -> ModelConfig:
    """How the model is called now: with twice the room each time that it used all of it to think, for asked with the
    same it would do the same."""
    config, reply = journal.spec.call_config.for_model(model, journal.spec.model), journal.reply
    if reply is None or not reply.wordless:
        return config
    limit = config.max_output_tokens
    # Never shifted further than it takes: the setting allows a hundred continuations.
    wanted = limit << min(reply.wordless, 17)
    return config.model_copy(update={"max_output_tokens": min(wanted, max(limit, MOST_OUTPUT_TOKENS))})


@dataclass(frozen=True, slots=True)
class StartedStep:
    """A step of the session's own that is under way, and what it was started with."""

    activity: str
    model: str | None
    config: ModelConfig


def started(activity: str, journal: Journal) -> StartedStep:
    return StartedStep(activity, journal.spec.model, journal.spec.llm_config)


def begins_again(step: StartedStep | None, entry: e.AnyEntry, journal: Journal) -> bool:
    """Whether this entry, which is not in the journal yet, shows that the step waits with a model, or a way to call it,
    that is another by now. It may wait for hours: for a provider that is away, or a worker that has what it needs."""
    if step is None:
        return False
    model, config, lacking = journal.spec.model, journal.spec.llm_config, journal.incarnation.lacking
    match entry:
        case e.Configured():
            model, config = entry.model or model, entry.llm_config or config
        case e.WorkerLacks():
            lacking = entry
        case _:
            return False
    waits = lacking is not None and lacking.doing == step.activity and not lacking.host
    return waits and (model, config) != (step.model, step.config)

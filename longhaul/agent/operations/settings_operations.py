"""Operations that change what a session may do: its mode, limits, rules and budget, or its whole state."""

from collections.abc import Sequence

from pydantic import ValidationError

from longhaul.agent import entries as e
from longhaul.agent.decisions.budget_limits import seconds_of, steps_of
from longhaul.agent.decisions.subagent_start import at_work
from longhaul.agent.journal import Journal
from longhaul.agent.operations.bodies import ChangeBudget, ChangeRules, Configure, Received, ReplaceState, Unusable
from longhaul.agent.operations.result_operations import blocking
from longhaul.agent.permission.foreign_rules import understood
from longhaul.agent.permission.rulebook import (
    BadRule,
    changed,
    check_book,
    check_count,
    check_rules,
    check_tools_of,
    id_of,
    named,
    stamped,
)
from longhaul.agent.plain.errors import ImportProblem, what_is_wrong
from longhaul.agent.reducer.agent_state import AgentState, ReplyContext
from longhaul.agent.reducer.synthetic_results import left_open
from longhaul.agent.values.budget import NANOS, NEW_ACCOUNT, Account, Amount, Budget, Raise, child_key, limit_text
from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason, ToolCallBlock, ToolCallState, problem
from longhaul.agent.values.conversation.prompt import hint_message
from longhaul.agent.values.permission import PermissionRule, Scope
from longhaul.agent.values.spec.agent_spec import ModelConfig, check_config
from longhaul.agent.values.spec.known_names import without_tool

MOVED_ON = "moved_on"
"""Kind of refusal: the state is not what whoever sent this had read."""


def replace_state(journal: Journal, body: ReplaceState) -> Received:
    """Of a session that is idle, or waits for somebody: while something runs, what comes of it would hang on a context
    that is gone. Questions that stand in the new state stay open; with another state the reply that asked them ends."""
    waits = _waits(journal)
    if not waits and (journal.reply is not None or journal.requests.queue):
        raise Unusable("the session is at work; wait for its reply, or interrupt it, and send this again")
    if body.expected_seq is not None and body.expected_seq != journal.keeping.changed:
        raise Unusable(
            f"expected_seq: {body.expected_seq} is not where the session stands; that is {journal.keeping.changed}. "
            "Read its state again and make the change there",
            MOVED_ON,
        )
    try:
        state = AgentState.model_validate(understood(body.state))
    except ImportProblem as error:
        raise Unusable(f"state.{error}") from error
    except ValidationError as error:
        raise Unusable(f"state.{what_is_wrong(error)}") from error
    open_calls = [call.block for call in journal.open_calls.values() if call.waits_for] if waits else []
    goes_on = waits and not _not_the_same(state, open_calls)
    if not goes_on and (wrong := problem(state.context)):
        raise Unusable(f"state.context: {wrong}")
    try:
        check_book(state.permission_context.rules)
        # Of a rule that was taken before, a repair of the state may not hang.
        known = (*journal.spec.all_tools, *(rule.tool_name for rule in journal.state.permission_context.rules))
        check_tools_of(state.permission_context.rules, known)
    except BadRule as error:
        raise Unusable(f"state.permission_context.{error}") from error
    note, hints = _of_the_stopped(journal)
    replaced = e.StateReplaced(
        state=state.model_dump(mode="json"),
        by=body.by,
        why=body.why,
        note=body.note or note,
        goes_on=goes_on,
        before=body.before,
    )
    ended = () if journal.reply is None or goes_on else (_ended(journal, journal.reply),)
    answer = {"replaced": True, "messages": len(state.context)}
    return Received(
        (*ended, replaced, *hints), {**answer, "ended": journal.reply.reply_id} if ended and journal.reply else answer
    )


def _of_the_stopped(journal: Journal) -> tuple[str, tuple[e.Observed, ...]]:
    """What becomes of sub-agents at work: for whoever looks at the session, and for its model, which waits for them."""
    stopped = ", ".join(f"{child.agent!r} (session {child.session_id!r})" for child in at_work(journal))
    if not stopped:
        return "", ()
    hint = (
        "This conversation was changed by somebody, and its sub-agents in the background are being stopped for that: "
        f"{stopped}. No message of theirs comes. Find out what they have done before you give their tasks again."
    )
    note = f"sub-agents were stopped when its state was changed: {stopped}"
    return note, (e.Observed(messages=(hint_message(hint, "sub-agent"),)),)


def _waits(journal: Journal) -> bool:
    """Whether nothing but somebody's answer is waited for."""
    reply = journal.reply
    if reply is None or journal.interrupted or journal.unverified.waiting:
        return False
    unfinished = [call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED]
    return all(call.waits_for for call in unfinished) if unfinished else bool(blocking(journal))


def _not_the_same(state: AgentState, waiting: Sequence[ToolCallBlock]) -> str:
    """Why the calls that wait are not the open ones of this state; empty if they are."""
    if wrong := problem(state.context, [block.id for block in waiting]):
        return wrong
    named = {block.id: block.name for message in state.context for block in message.get_tool_calls()}
    return next((f"call {block.id!r} is of another tool" for block in waiting if named[block.id] != block.name), "")


def _ended(journal: Journal, reply: ReplyContext) -> e.ReplyFinished:
    """The end of a reply whose questions are not in the new state."""
    unfinished = [call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED]
    closing = tuple(left_open(call, journal.children) for call in unfinished)
    error = ErrorInfo(type="internal", message="This reply was cut off: somebody has put another state in its place.")
    return e.ReplyFinished(reply_id=reply.reply_id, reason=FinishedReason.INTERRUPTED, error=error, closing=closing)


def configure(journal: Journal, body: Configure) -> Received:
    new = _checked(journal, body.rules, ())
    entry = e.Configured(
        mode=body.mode,
        add_rules=body.rules,
        max_iters=body.max_iters,
        model=body.model,
        llm_config=_called_otherwise(journal, body),
        confirm=body.confirm,
        analyzers=body.analyzers,
        middlewares=body.middlewares,
        by=body.by,
        no_tool=_without_tool(journal, new),
    )
    return Received((entry,), {"configured": True})


def _called_otherwise(journal: Journal, body: Configure) -> ModelConfig | None:
    """The whole of it, as it holds from now on. Raises Unusable."""
    if body.llm_config is None and body.model is None:
        return None
    try:
        config = journal.spec.llm_config
        if body.llm_config is not None:
            config = config.called_otherwise(body.llm_config)
        # Each alone fits what there was; a model and a way to call it that do not fit can be read by no later run.
        check_config(body.model or journal.spec.model, config)
    except ValidationError as error:
        raise Unusable(f"model_config.{what_is_wrong(error)}") from error
    except ValueError as error:
        raise Unusable(str(error)) from error
    return config if body.llm_config is not None else None


def change_rules(journal: Journal, body: ChangeRules) -> Received:
    """Both halves hold together or not at all; a rule that is there already is no error."""
    if not body.add and not body.revoke:
        raise Unusable("rules: there is nothing to change; give rules to `add`, or ids to `revoke`")
    new = _checked(journal, body.add, body.revoke)
    missing = _without_tool(journal, new)
    entry = e.RulesChanged(add=body.add, revoked=body.revoke, by=body.by, why=body.why, no_tool=missing)
    return Received((entry,), {"added": [id_of(rule) for rule in new], "revoked": list(body.revoke)})


def list_rules(journal: Journal) -> list[PermissionRule]:
    """All rules that the session goes by, each with its id, and whether its tool is none of the agent's."""
    rules = named(journal.permission.rules)
    missing = _without_tool(journal, rules)
    return [rule.model_copy(update={"no_tool": True}) if rule.tool_name in missing else rule for rule in rules]


def _without_tool(journal: Journal, rules: tuple[PermissionRule, ...]) -> tuple[str, ...]:
    return without_tool((rule.tool_name for rule in rules), (*journal.spec.all_tools, *journal.provided.tools))


def _checked(journal: Journal, new: tuple[PermissionRule, ...], revoke: tuple[str, ...]) -> tuple[PermissionRule, ...]:
    """The new rules as they will be kept, but for the time. Raises Unusable."""
    try:
        check_count("rules", len(new))
        rules = stamped(new, Scope.SESSION)
        check_rules(new)
        check_tools_of(new, journal.spec.all_tools)
        changed(journal.state.permission_context.rules, rules, revoke, journal.latest_at)
    except BadRule as bad:
        raise Unusable(str(bad)) from bad
    return rules


def change_budget(journal: Journal, body: ChangeBudget) -> Received:
    """The same request id twice is one change."""
    budget, account = journal.spec.budget, journal.account or NEW_ACCOUNT
    if budget is None:
        raise Unusable("the session has no budget; its agent would have to have one under [budget]")
    if body.request_id and body.request_id in account.handled:
        return Received((), {"changed": True, "already": True, "limits": budget.told()})
    if body.child is not None:
        return _allot(journal, body, body.child, budget, account)
    if (above := journal.parent) and not above.told and not body.allotted:
        put_aside = [name for name, _ in body.more.given() if name in above.allotted]
        if put_aside:
            raise Unusable(
                f"more.{put_aside[0]}: what this sub-agent may spend is put aside by the session "
                f"{above.session_id!r}; send it there, with child={above.call_id!r}"
            )
    raises = any(body.more.given())
    if raises == bool(body.end):
        raise Unusable("say by how much it is to be raised in `more`, or `end` as stop or summarise: one of the two")
    if body.end and account.question is None:
        raise Unusable(f"end: no reply waits for more budget, so none is to {body.end}; use interrupt to end one")
    try:
        raised = budget.raised(body.more)
    except ValueError as error:
        raise Unusable(f"more.{what_is_wrong(error) if isinstance(error, ValidationError) else error}") from None
    entry = e.BudgetChanged(more=body.more, end=body.end, by=body.by, request_id=body.request_id)
    return Received((entry,), {"changed": True, "already": False, "limits": raised.told()})


def _allot(journal: Journal, body: ChangeBudget, call_id: str, budget: Budget, account: Account) -> Received:
    """A sub-agent at work is given more of what is left here."""
    child, key = journal.children.get(call_id), child_key(call_id)
    if child is None or child.outcome or child.stopped or key not in account.spending.reserved:
        raise Unusable(f"child: no sub-agent with the task {call_id!r} is at work here for which anything is put aside")
    if body.end or not any(body.more.given()):
        raise Unusable("child: say in `more` how much more it is given; end its reply in its own session")
    held = account.spending.held
    for name, more in body.more.given():
        if (limit := budget.limit(name)) is None:
            raise Unusable(f"more.{name}: the budget here has no limit of it; send it to {child.session_id!r}")
        used = seconds_of(account, journal, journal.latest_at) if name == "seconds" else held.of(name)
        used += steps_of(account, journal) if name == "steps" else 0
        if used + more > limit:
            left = limit_text(name, max(limit - used, 0))
            raise Unusable(f"more.{name}: {left} of this session's own budget is left; raise that first")
    amount = account.spending.reserved[key] + _sums(body.more)
    entry = e.BudgetAllotted(call_id=call_id, amount=amount, more=body.more, by=body.by, request_id=body.request_id)
    return Received((entry,), {"changed": True, "already": False, "limits": budget.told()})


def _sums(more: Raise) -> Amount:
    return Amount(
        tokens=more.tokens or 0, nanos=round((more.cost or 0) * NANOS), calls=more.calls or 0, steps=more.steps or 0
    )

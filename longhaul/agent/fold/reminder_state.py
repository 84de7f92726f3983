"""Keeps what the model has to know and its context may have lost: reminders, the agent's tools, tasks and plans, and
whether it repeats itself.

Reminders go to the end of the context, never to its beginning, where the provider would have to read everything
again.
"""

from collections.abc import Iterator

from longhaul.agent import entries as e
from longhaul.agent.entries import CallAnswered, Entry, Reminded
from longhaul.agent.fold.ledger import Ledger, ToldPrompt
from longhaul.agent.permission.rule_matching import ruled_folders, ruled_paths
from longhaul.agent.plain.measures import iso
from longhaul.agent.values import stuck_detection
from longhaul.agent.values.conversation.messages import (
    FinishedReason,
    HintBlock,
    Msg,
    ToolCallBlock,
    ToolCallState,
    ToolResultBlock,
)
from longhaul.agent.values.conversation.prompt import (
    BROKE_OFF,
    GO_ON,
    LIMIT_OF_FORM,
    LIMIT_REACHED,
    LIMIT_SOURCE,
    hint_message,
    new_prompt,
)
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.values.plans import (
    CHANGING,
    CREATE_PLAN,
    IS_ON,
    IS_OVER,
    NO_PLAN,
    PLAN_ENTER,
    PLAN_EXIT,
    THE_PLAN,
    PlanChange,
    kept,
    on_text,
    over_text,
    standing_text,
)
from longhaul.agent.values.spec.knowledge import brought_by
from longhaul.agent.values.stuck_detection import HINTS
from longhaul.agent.values.tasks import NotebookPlan, Task, TasksContext, progress, tasks_text
from longhaul.agent.values.tool_groups import hidden
from longhaul.agent.values.tool_index import CALL_TOOL, fitting, names_text, schema_text


def stamped(messages: tuple[Msg, ...], entry: Entry) -> tuple[Msg, ...]:
    """Messages as the record takes them: with ids and the time."""
    return tuple(
        message.model_copy(update={"id": f"m{entry.seq}.{index}", "created_at": iso(entry.at)})
        for index, message in enumerate(messages)
    )


def standing_hints(ledger: Ledger) -> tuple[Msg, ...]:
    """Hints for what holds now and stands nowhere in the context."""
    return (*plan_hints(ledger), *_task_hints(ledger), *notebook_hints(ledger), *_found_hints(ledger))


def _found_hints(ledger: Ledger) -> Iterator[Msg]:
    """Schemas that the model has looked up, and that it does not read any more: the newest, as far as there is room."""
    tools = ledger.provided.tools
    known = [tools[name] for name in reversed(ledger.state.tool_context.found) if name in tools]
    shown = [text for _, text in _told(ledger)] if known else []
    gone = [tool for tool in known if not any(schema_text([tool]) in text for text in shown)]
    if gone:
        best, others = fitting(gone)
        also = f"\nAnd by name:\n{names_text(others)}" if others else ""
        yield hint_message(f"Tools that you have looked up, for {CALL_TOOL}:\n{schema_text(best)}{also}", "tools")


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


def is_watched(ledger: Ledger) -> bool:
    """Code that asks the same again, as one that polls, has been written so."""
    return ledger.spec.stuck.enabled and not ledger.spec.kind


def note_request(ledger: Ledger, *, says_something: bool) -> None:
    """A reply begins."""
    if is_watched(ledger):
        ledger.state.watch = stuck_detection.with_request(
            ledger.state.watch, ledger.spec.stuck, says_something=says_something
        )


def note_observed(ledger: Ledger) -> None:
    """Words of somebody are news: whatever went in circles may end now."""
    if is_watched(ledger):
        ledger.state.watch = ledger.state.watch.model_copy(update={**_BROKEN, "monologue": 0})


def note_words(ledger: Ledger, message: Msg) -> bool:
    """The model has spoken. Returns whether it is to be asked again, because it said nothing."""
    if not is_watched(ledger):
        return False
    ledger.state.watch = stuck_detection.with_words(ledger.state.watch, message)
    if ledger.current.structured_schema is not None:
        # Words where a form was asked for are counted by themselves.
        ledger.state.watch = ledger.state.watch.model_copy(update={"monologue": 0})
    # At the limit of iterations whatever it says is the last word.
    return stuck_detection.says_nothing(message) and ledger.current.cur_iter < ledger.spec.react_config.max_iters


def note_call(ledger: Ledger, call: ToolCallBlock, result: ToolResultBlock) -> None:
    if is_watched(ledger):
        ledger.state.watch = stuck_detection.with_call(ledger.state.watch, ledger.spec.stuck, call, result)


def note_turn(ledger: Ledger) -> None:
    if is_watched(ledger):
        ledger.state.watch = stuck_detection.with_turn(ledger.state.watch, ledger.spec.stuck)


def note_warned(ledger: Ledger) -> None:
    ledger.state.watch = ledger.state.watch.model_copy(update={"owed": ""})


def note_end(ledger: Ledger, reason: FinishedReason) -> None:
    """The next reply begins anew; only that nobody has said anything since is still counted."""
    went_on = ledger.state.watch.monologue if reason is FinishedReason.COMPLETED else 0
    ledger.state.watch = stuck_detection.Watch(monologue=went_on)


_BROKEN = {"last": None, "before": None, "same_result": 0, "same_error": 0, "ping_pong": 0, "owed": ""}


def take_rules(ledger: Ledger, rules: tuple[PermissionRule, ...]) -> None:
    """The session's own rules and its agent's are these from now on."""
    before = _folders(ledger)
    ledger.set_rules(rules)
    _doubt_findings(ledger, before)


def take_user_rules(ledger: Ledger, rules: tuple[PermissionRule, ...], digest: str) -> None:
    """The rules of its user are these from now on."""
    before = _folders(ledger)
    ledger.set_user_rules(rules, digest)
    _doubt_findings(ledger, before)


def _folders(ledger: Ledger) -> frozenset[str | tuple[str, str]]:
    folders = ruled_folders(ledger.permission, ledger.provided.workspace_root)
    return frozenset((*folders, *ruled_paths(ledger.permission)))


def _doubt_findings(ledger: Ledger, before: frozenset[str | tuple[str, str]]) -> None:
    """A new rule may be written through a link, or speak of a command's words: nobody has looked for that."""
    if ledger.reply is None or _folders(ledger) <= before:
        return
    for call in ledger.reply.calls.values():
        call.facts_stale |= call.state is not ToolCallState.FINISHED and bool(call.facts.paths or call.facts.commands)


KEPT_FROM_TOKENS = 1_024
"""Of a context. No provider caches a shorter one."""


def apply(ledger: Ledger, entry: e.Prepared) -> None:
    ledger.provided.outdated = ()
    _take_beginning(ledger, entry)
    if ledger.current.prepared:  # in the midst of the reply, for the tools alone
        _take_hints(ledger, entry, anew=True)
        return
    ledger.current.prepared = True
    ledger.state.behaviour = entry.behaviour
    if entry.user_rules is not None:
        take_user_rules(ledger, entry.user_rules, entry.user_rules_digest)
    ledger.provided.indexed = max(ledger.provided.indexed, entry.indexed)
    ledger.provided.window = entry.context_length
    ledger.provided.liveness = entry.liveness
    ledger.provided.workspace_root, ledger.provided.workspace_nonce = entry.workspace_root, entry.workspace_nonce
    ledger.state.tool_context.cwd = ledger.state.tool_context.cwd or entry.workspace_root
    ledger.provided.left_out = entry.left_out
    ledger.provided.wrapped, ledger.provided.hooked_interrupts = entry.wrapped, entry.hooked_interrupts
    _take_hints(ledger, entry)
    ledger.context.reminders = standing_hints(ledger)


def _take_beginning(ledger: Ledger, entry: e.Prepared) -> None:
    """What stands before the messages. Other tools rewrite it in any case, and a short context costs little to read
    again; else a new system prompt is told at the end, and what the provider has cached stays of use."""
    provided, context = ledger.provided, ledger.context
    if entry.tools is None and provided.told is not None and entry.system_prompt is None:
        return
    is_sent = context.anchor.length > 0 and context.tokens > max(provided.fixed_tokens, KEPT_FROM_TOKENS)
    if entry.tools is None and entry.system_prompt is not None and is_sent:
        told = ToldPrompt(entry.system_prompt, entry.prompt_digest, entry.spec_digest, entry.fixed_tokens)
        provided.told = told
        before = ledger.spec.system_prompt if provided.system_prompt is None else provided.system_prompt
        ledger.append(stamped((hint_message(new_prompt(before, told.text), "system_prompt"),), entry))
        return
    provided.take_told_prompt()
    provided.spec_digest, provided.fixed_tokens = entry.spec_digest, entry.fixed_tokens
    if entry.system_prompt is not None:
        provided.system_prompt, provided.prompt_digest = entry.system_prompt, entry.prompt_digest
    if entry.tools is not None:
        provided.tools = {tool.name: tool for tool in entry.tools}


def _take_hints(ledger: Ledger, entry: e.Prepared, *, anew: bool = False) -> None:
    """`anew`: they are about tools that are listed once more, and what the model has read of them is not said again."""
    read = [message.content for message in ledger.state.context] if anew else []
    hints = tuple(hint for hint in entry.hints if hint.content not in read)
    ledger.append(stamped(hints, entry))
    if not ledger.state.tainted:
        ledger.state.tainted = brought_by(entry.hints)


def changed(known: TasksContext, entry: CallAnswered) -> TasksContext:
    """Tasks and plans after the call, with the times of what it began and ended."""
    now = iso(entry.at)
    followed = known.current_plan is not None
    tasks = known.tasks if entry.tasks is None else tuple(_stamped(task, now, followed) for task in entry.tasks)
    after = known.model_copy(update={"tasks": tasks})
    return after if entry.plans is None else _with_plans(after, entry.plans, now)


def _stamped(task: Task, now: str, followed: bool) -> Task:  # noqa: FBT001
    times = {} if task.created_at else {"created_at": now}
    if followed and not (task.is_open or task.finished_at):
        times["finished_at"] = now
    return task.model_copy(update=times) if times else task


def _with_plans(known: TasksContext, change: PlanChange, now: str) -> TasksContext:
    past = tuple(plan for plan in known.historical_plans if plan.id != change.recovered)
    if change.filed is not None:
        past = (*past, change.filed.model_copy(update={"finished_at": now}))
    return known.model_copy(update={"current_plan": _begun(change.current, now), "historical_plans": kept(past)})


def _begun(plan: NotebookPlan | None, now: str) -> NotebookPlan | None:
    return plan.model_copy(update={"created_at": now}) if plan is not None and not plan.created_at else plan

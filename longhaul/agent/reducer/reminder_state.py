"""Keeps what the model has to know and its context may have lost: reminders, the agent's tools, tasks and plans, and
whether it repeats itself.

Reminders go to the end of the context, never to its beginning, where the provider would have to read everything
again.
"""

from collections.abc import Iterator, Sequence

from longhaul.agent import entries as e
from longhaul.agent.entries import CallAnswered, Entry, Reminded
from longhaul.agent.permission.rule_matching import ruled_folders, ruled_paths
from longhaul.agent.plain.measures import iso
from longhaul.agent.reducer.session_state import SessionState, ToldPrompt
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
    added_tools,
    hint_message,
    new_prompt,
)
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE, ToolDescriptor
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
    """Messages as the journal takes them: with ids and the time."""
    return tuple(
        message.model_copy(update={"id": f"m{entry.seq}.{index}", "created_at": iso(entry.at)})
        for index, message in enumerate(messages)
    )


def standing_reminders(session: SessionState) -> tuple[Msg, ...]:
    """Hints for what holds now and stands nowhere in the context."""
    return (*plan_reminders(session), *_task_hints(session), *notebook_reminders(session), *_found_hints(session))


def _found_hints(session: SessionState) -> Iterator[Msg]:
    """Schemas that the model has looked up, and that it does not read any more: the newest, as far as there is room."""
    tools = session.provided.tools
    known = [tools[name] for name in reversed(session.state.tool_context.found) if name in tools]
    shown = [text for _, text in _texts_read(session)] if known else []
    gone = [tool for tool in known if not any(schema_text([tool]) in text for text in shown)]
    if gone:
        best, others = fitting(gone)
        also = f"\nAnd by name:\n{names_text(others)}" if others else ""
        yield hint_message(f"Tools that you have looked up, for {CALL_TOOL}:\n{schema_text(best)}{also}", "tools")


def to_be_told(session: SessionState, *, closing: bool = False, must_finish: bool = False) -> Reminded | None:
    """All that the model has to hear before it is asked again. `closing`: it may call no tools any more. `must_finish`:
    it has to give its answer in the form now. The code of a custom agent reads no hints."""
    if session.spec.custom_agent:
        return None
    pattern = session.state.watch.owed
    warning = (hint_message(HINTS[pattern], "stuck"),) if pattern else ()
    reached = LIMIT_OF_FORM if must_finish else LIMIT_REACHED
    told_of = (closing or must_finish) and not _knows_the_limit(session)
    limit = (hint_message(reached, LIMIT_SOURCE),) if told_of else ()
    go_on = session.reply.to_go_on if session.reply else ""
    broken_off = (hint_message(GO_ON[go_on], BROKE_OFF),) if go_on else ()
    told = (*session.context.reminders, *warning, *broken_off, *limit)
    return Reminded(messages=told, stuck=pattern) if told else None


def _knows_the_limit(session: SessionState) -> bool:
    """Whether it was told so last of all; what came in behind it may have asked for more."""
    last = session.state.context[-1].content if session.state.context else ()
    return any(isinstance(block, HintBlock) and block.source == LIMIT_SOURCE for block in last)


def notebook_reminders(session: SessionState) -> tuple[Msg, ...]:
    """How things stand with the plan, for a model that has the plan notebook, when it was told something else last."""
    if not _has_notebook(session):
        return ()
    text = standing_text(session.state.tasks_context)
    told = (told for source, told in _texts_read(session) if source in _OF_NOTEBOOK)
    last = next((told for told in told if NO_PLAN in told or THE_PLAN in told), "")
    return () if text in last else (hint_message(text, NOTEBOOK_SOURCE),)


def _has_notebook(session: SessionState) -> bool:
    hides = hidden(session.spec.tool_groups, session.state.tool_context.activated_groups)
    return CREATE_PLAN in session.provided.tools and CREATE_PLAN not in hides


NOTEBOOK_SOURCE = "plan_notebook"
_OF_NOTEBOOK = (NOTEBOOK_SOURCE, *CHANGING)


def _task_hints(session: SessionState) -> Iterator[Msg]:
    if session.state.tasks_context.current_plan is not None and _has_notebook(session):
        return
    tasks = session.state.tasks_context.tasks
    done, total, _ = progress(tasks)
    text = tasks_text(tasks)
    if done < total and not any(text in told for _, told in _texts_read(session)):
        yield hint_message(f"Your list of tasks, as it stands:\n{text}", "tasks")


def plan_reminders(session: SessionState) -> tuple[Msg, ...]:
    """That plan mode is on, or that it is over, when what the model was told last is something else."""
    last = next((told for source, told in _texts_read(session) if source in _OF_PLANS and told.startswith(_WORDS)), "")
    if session.state.planning and not last.startswith(IS_ON):
        text = on_text(session.state.plan_mode_context, may_exit=PLAN_EXIT in session.provided.tools)
    elif not session.state.planning and last.startswith(IS_ON):
        text = over_text(session.state.mode.value)
    else:
        return ()
    return (hint_message(text, PLAN_SOURCE),)


PLAN_SOURCE = "plan_mode"
_OF_PLANS = (PLAN_SOURCE, PLAN_ENTER, PLAN_EXIT)
_WORDS = (IS_ON, IS_OVER)


def _texts_read(session: SessionState) -> Iterator[tuple[str, str]]:
    """Source or tool, and text, of the hints and results that the model reads or is about to, newest first."""
    for message in (*reversed(session.context.deferred), *reversed(session.state.context)):
        for block in message.content:
            match block:
                case HintBlock(hint=str(hint)):
                    yield block.source or "", hint
                case ToolResultBlock():
                    yield block.name, block.get_text()
                case _:
                    pass


def is_watched(session: SessionState) -> bool:
    """Code that asks the same again, as one that polls, has been written so."""
    return session.spec.stuck.enabled and not session.spec.custom_agent


def note_request(session: SessionState, *, says_something: bool) -> None:
    """A reply begins."""
    if is_watched(session):
        session.state.watch = stuck_detection.with_request(
            session.state.watch, session.spec.stuck, says_something=says_something
        )


def note_observed(session: SessionState) -> None:
    """Words of somebody are news: whatever went in circles may end now."""
    if is_watched(session):
        session.state.watch = session.state.watch.model_copy(update={**_BROKEN, "monologue": 0})


def note_words(session: SessionState, message: Msg) -> bool:
    """The model has spoken. Returns whether it is to be asked again, because it said nothing."""
    if not is_watched(session):
        return False
    session.state.watch = stuck_detection.with_words(session.state.watch, message)
    if session.current.structured_schema is not None:
        # Words where a form was asked for are counted by themselves.
        session.state.watch = session.state.watch.model_copy(update={"monologue": 0})
    # At the limit of iterations whatever it says is the last word.
    return stuck_detection.says_nothing(message) and session.current.cur_iter < session.spec.react_config.max_iters


def note_call(session: SessionState, call: ToolCallBlock, result: ToolResultBlock) -> None:
    if is_watched(session):
        session.state.watch = stuck_detection.with_call(session.state.watch, session.spec.stuck, call, result)


def note_turn(session: SessionState) -> None:
    if is_watched(session):
        session.state.watch = stuck_detection.with_turn(session.state.watch, session.spec.stuck)


def note_warned(session: SessionState) -> None:
    session.state.watch = session.state.watch.model_copy(update={"owed": ""})


def note_end(session: SessionState, reason: FinishedReason) -> None:
    """The next reply begins again; only that nobody has said anything since is still counted."""
    went_on = session.state.watch.monologue if reason is FinishedReason.COMPLETED else 0
    session.state.watch = stuck_detection.Watch(monologue=went_on)


_BROKEN = {"last": None, "before": None, "same_result": 0, "same_error": 0, "ping_pong": 0, "owed": ""}


def take_rules(session: SessionState, rules: tuple[PermissionRule, ...]) -> None:
    """The session's own rules and its agent's are these from now on."""
    before = _folders(session)
    session.set_rules(rules)
    _probe_findings(session, before)


def take_user_rules(session: SessionState, rules: tuple[PermissionRule, ...], digest: str) -> None:
    """The rules of its user are these from now on."""
    before = _folders(session)
    session.set_user_rules(rules, digest)
    _probe_findings(session, before)


def _folders(session: SessionState) -> frozenset[str | tuple[str, str]]:
    folders = ruled_folders(session.permission, session.provided.workspace_root)
    return frozenset((*folders, *ruled_paths(session.permission)))


def _probe_findings(session: SessionState, before: frozenset[str | tuple[str, str]]) -> None:
    """A new rule may be written through a link, or speak of a command's words: nobody has looked for that."""
    if session.reply is None or _folders(session) <= before:
        return
    for call in session.reply.calls.values():
        call.analysis_stale |= call.state is not ToolCallState.FINISHED and bool(
            call.analysis.paths or call.analysis.commands
        )


KEPT_FROM_TOKENS = 1_024
"""Of a context. No provider caches a shorter one."""


def apply(session: SessionState, entry: e.Prepared) -> None:
    session.provided.outdated = ()
    _take_beginning(session, entry)
    if session.current.prepared:  # in the midst of the reply, for the tools alone
        _take_hints(session, entry, again=True)
        return
    session.current.prepared = True
    session.state.behaviour = entry.behaviour
    if entry.user_rules is not None:
        take_user_rules(session, entry.user_rules, entry.user_rules_digest)
    session.provided.indexed = max(session.provided.indexed, entry.indexed)
    session.provided.window = entry.context_length
    session.provided.workspace_root, session.provided.workspace_nonce = entry.workspace_root, entry.workspace_nonce
    session.state.tool_context.cwd = session.state.tool_context.cwd or entry.workspace_root
    session.provided.left_out = entry.left_out
    session.provided.wrapped, session.provided.hooked_interrupts = entry.wrapped, entry.hooked_interrupts
    _take_hints(session, entry)
    session.context.reminders = standing_reminders(session)


def _take_beginning(session: SessionState, entry: e.Prepared) -> None:
    """What stands before the messages. Other tools rewrite it in any case, and a short context costs little to read
    again; else a new system prompt is told at the end, and what the provider has cached stays of use."""
    provided = session.provided
    if entry.tools is None and provided.told is not None and entry.system_prompt is None:
        return
    is_sent = _is_worth_keeping(session)
    if entry.tools is not None and entry.system_prompt is None and provided.told is None:
        tell_tools(session, entry, _only_more(session, entry.tools))
    if entry.tools is None and entry.system_prompt is not None and is_sent:
        told = ToldPrompt(entry.system_prompt, entry.prompt_digest, entry.spec_digest, entry.fixed_tokens)
        provided.told = told
        before = session.spec.system_prompt if provided.system_prompt is None else provided.system_prompt
        session.append(stamped((hint_message(new_prompt(before, told.text), "system_prompt"),), entry))
        return
    provided.take_told_prompt()
    provided.spec_digest, provided.fixed_tokens = entry.spec_digest, entry.fixed_tokens
    if entry.system_prompt is not None:
        provided.system_prompt, provided.prompt_digest = entry.system_prompt, entry.prompt_digest
    if entry.tools is not None:
        provided.tools = {tool.name: tool for tool in entry.tools}


def _is_worth_keeping(session: SessionState) -> bool:
    """Whether the messages that a provider has in its cache outweigh what stands before them."""
    context = session.context
    return context.cached_prefix.length > 0 and context.tokens > max(session.provided.fixed_tokens, KEPT_FROM_TOKENS)


def tell_tools(session: SessionState, entry: Entry, names: Sequence[str]) -> None:
    """Tell the model of more tools at the end of a long conversation, so that its beginning stays. In a short one, and
    without `call_tool`, they go to the beginning. GENERATE_RESPONSE may have to be called, and stands there."""
    tools = session.provided.tools
    if names and CALL_TOOL in tools and GENERATE_RESPONSE not in names and _is_worth_keeping(session):
        session.hear(stamped((added_tools(names),), entry))


def _only_more(session: SessionState, tools: Sequence[ToolDescriptor]) -> list[str]:
    """The names of new tools, where nothing else has changed of those that there were."""
    now, before = {tool.name: tool for tool in tools}, session.provided.tools
    hides = hidden(session.spec.tool_groups, session.state.tool_context.activated_groups)
    if any(now.get(name) != tool for name, tool in before.items()):
        return []
    return [name for name in now if name not in before and name not in hides]


def _take_hints(session: SessionState, entry: e.Prepared, *, again: bool = False) -> None:
    """`again`: they are about tools that are listed once more, and what the model has read of them is not said
    again."""
    read = [message.content for message in session.state.context] if again else []
    hints = tuple(hint for hint in entry.hints if hint.content not in read)
    session.append(stamped(hints, entry))
    if not session.state.tainted:
        session.state.tainted = brought_by(entry.hints)


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
    return known.model_copy(update={"current_plan": _started(change.current, now), "historical_plans": kept(past)})


def _started(plan: NotebookPlan | None, now: str) -> NotebookPlan | None:
    return plan.model_copy(update={"created_at": now}) if plan is not None and not plan.created_at else plan

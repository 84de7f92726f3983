"""Makes the input of each activity from the journal; bodies that an activity made go by digest."""

from collections.abc import Iterator

from longhaul.activities import contract as world
from longhaul.activities.contract import InterruptInput, MemoryInput, Runtime
from longhaul.agent import entries as e
from longhaul.agent.decision import decide
from longhaul.agent.decisions.budget_limits import attempts_paid
from longhaul.agent.decisions.compaction import must_compress
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.decisions.model_turn import config_for, cut_short, replaced_by, room_for
from longhaul.agent.entries import UnknownOutcome
from longhaul.agent.journal import Journal
from longhaul.agent.permission.decision_table import analyzers_of
from longhaul.agent.permission.rule_matching import ruled_folders, ruled_paths
from longhaul.agent.plain.text import gist
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.reducer.agent_state import OpenCall, effect_of
from longhaul.agent.reducer.approval_digest import unseen
from longhaul.agent.reducer.context_state import Cut, expected, groups_sent, is_cold, tokens
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.steps import Prepare, Think
from longhaul.agent.values.conversation.messages import ToolCallBlock
from longhaul.agent.values.conversation.prompt import summary_message
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE, Effect
from longhaul.agent.values.spec.knowledge import RETRIEVE_KNOWLEDGE, shortened, shown_skills
from longhaul.agent.values.spec.mcp import server_of
from longhaul.agent.values.tool_groups import hidden
from longhaul.agent.views.session_views import unfinished


def runtime(session: SessionState) -> Runtime | None:
    """With each call of a session that has middlewares or a context of the request: others pay no byte for it."""
    if not (session.provided.wrapped or session.spec.middlewares or session.requests.request_context):
        return None
    return runtime_of_reply(session)


def runtime_of_reply(session: SessionState) -> Runtime:
    """For the preparation of a reply, which finds out whether its workers have middlewares."""
    reply = session.reply
    return Runtime(
        session_id=session.state.session_id,
        reply_id=reply.reply_id if reply else "",
        request_id=reply.request_id if reply else "",
        given=session.requests.request_context,
        middlewares=session.spec.middlewares,
    )


def handle_interrupt(session: SessionState) -> InterruptInput:
    return InterruptInput(
        runtime=runtime_of_reply(session),
        agent=session.spec.name,
        user_id=session.state.user_id,
        reply_id=session.current.reply_id,
        message=replaced_by(session),
        tools=cut_short(session),
        custom_agent=session.spec.custom_agent,
    )


def record_memory(session: SessionState) -> MemoryInput:
    """What people said since the reply began, and what was answered last."""
    first = max(session.requests.reply_start - session.context.transcript_base, 0)
    messages = session.context.transcript[first:]
    asked = "\n".join(text for message in messages if message.role == "user" and (text := message.get_text_content()))
    reply = session.current
    if reply.structured_output is not None:
        answer = canonical_json(reply.structured_output).decode()
    else:
        said = (message.get_text_content() for message in reversed(messages) if message.id == reply.reply_id)
        answer = reply.response or next(filter(None, said), "")
    return MemoryInput(
        user_id=session.state.user_id,
        agent=session.spec.name,
        session_id=session.state.session_id,
        reply_id=session.current.reply_id,
        asked=shortened(asked),
        answered=shortened(answer),
    )


REQUEST_CHARS = 8_000
"""Of a request: where a skill's trigger is looked for."""
_WITHOUT_MODEL = {"mask_observations", "drop_oldest"}
"""Condensers that ask none."""
SUMMARY_CHARS = 100
SUMMARY_BYTES = 300
"""One line in the Web UI; the server's limit is 400 bytes of JSON."""


def _has_triggers(journal: Journal) -> bool:
    context = journal.spec.agent_context
    return bool(journal.spec.skills or (context and context.knowledge) or journal.spec.retrieves)


def prepare_reply(journal: Journal, session_key: str) -> world.PrepareReply:
    provided = journal.provided
    bound, newest = provided.workspace_root != "", provided.told or provided
    return world.PrepareReply(
        spec=journal.spec,
        session_key=session_key,
        tools_digest=newest.spec_digest,
        place=place(journal) if bound else None,
        prompt_digest=provided.told.digest if provided.told else provided.prompt_digest,
        request=_newest_request(journal) if _has_triggers(journal) else "",
        hinted=shown_skills(journal.state.context) if _has_triggers(journal) else (),
        context_tokens=tokens(journal) if journal.spec.inject_runtime_state else 0,
        user_id=journal.state.user_id,
        user_rules_digest=journal.rules.user_digest,
        runtime=runtime_of_reply(journal),
        structured_schema=journal.reply.structured_schema if journal.reply else None,
        outdated=journal.provided.outdated,
        is_under_way=journal.reply is not None and journal.reply.prepared,
    )


def _newest_request(journal: Journal) -> str:
    """Its text; of a long one the beginning and the end, for it crosses the history a second time here."""
    first, end = (max(number - journal.context.transcript_base, 0) for number in journal.context.newest)
    said = "\n".join(message.get_text_content() for message in journal.context.transcript[first:end])
    half = REQUEST_CHARS // 2
    return said if len(said) <= REQUEST_CHARS else f"{said[:half]}\n{said[-half:]}"


def place(journal: Journal) -> world.RecordedPlace:
    cwd = journal.state.tool_context.cwd
    return world.RecordedPlace(
        root=journal.provided.workspace_root,
        nonce=journal.provided.workspace_nonce,
        cwd="" if cwd == journal.provided.workspace_root else cwd,
        agent=journal.spec.name,
        user_id=journal.state.user_id,
        session_id=journal.state.session_id,
        offloader=journal.spec.offloader,
        ruled=ruled_folders(journal.permission, journal.provided.workspace_root),
        closed=ruled_paths(journal.permission),
        opened=journal.permission.working_directories,
        sandbox=journal.spec.sandbox,
        sandbox_network=journal.spec.sandbox_network,
        seal=journal.spec.seal,
        snapshots=journal.spec.workspace is not None and journal.spec.workspace.snapshots,
        skills=journal.spec.skills,
    )


def call_model(journal: Journal, step: Think, along: world.ReadsAlong | None) -> world.CallModel:
    model = step.model
    cached, lost = expected(journal, model)
    return world.CallModel(
        context=_context(journal),
        spec_digest=journal.provided.spec_digest,
        model=model,
        config=config_for(journal, model),
        call_number=journal.calls_so_far.replies,
        shortened=journal.reply is not None and journal.reply.overflow == "answered",
        closing=step.closing,
        must_call=GENERATE_RESPONSE if step.must_finish else "",
        fixed_tokens=journal.provided.fixed_tokens,
        cached_tokens=cached,
        cache_lost=lost,
        agent=journal.spec.name,
        place=place(journal),
        hidden_tools=hidden(journal.spec.tool_groups, groups_sent(journal)),
        takes_no_images=model in journal.context.takes_no_images,
        runtime=runtime(journal),
        mcps=journal.spec.mcps,
        secrets=journal.spec.secrets if journal.marks_secrets else None,
        words=unseen(journal),
        attempts_paid=attempts_paid(journal),
        # A tool of a group that is no longer active may be called, and must not read before the session has refused it.
        reads_along=None if step.closing or model != journal.spec.model or journal.context.shown_groups else along,
        custom_agent=_custom_agent_step(journal),
    )


def _custom_agent_step(journal: Journal) -> world.CustomAgentStep | None:
    if not journal.spec.custom_agent or journal.reply is None:
        return None

    def index_of(number: int) -> int:
        return bool(journal.state.summary) + sum(mark.number < number for mark in journal.context.marks)

    begins, (first, end) = journal.requests.reply_start, journal.context.newest
    if first != begins:
        first = end = begins  # a request to go on, without a message
    return world.CustomAgentStep(
        name=journal.spec.custom_agent,
        heard=int(bool(journal.state.summary)),
        since=index_of(begins),
        first=index_of(first),
        end=index_of(end),
        structured_schema=journal.reply.structured_schema,
        agents=tuple(journal.spec.agents),
        config=journal.spec.custom_agent_config,
    )


def is_last_model(journal: Journal, model: str) -> bool:
    """Whether no other one is left to ask when this one fails."""
    other = journal.spec.llm_config.fallback_model
    return other is None or other == model or (journal.reply is not None and journal.reply.is_passed_over(other))


def compress(journal: Journal, cut: Cut) -> world.CompressInput:
    asked = journal.compaction.asked
    config = asked.config if asked is not None and asked.config is not None else journal.spec.context_config
    if journal.spec.custom_agent:
        # Code reads messages, and may have no model that could sum them up.
        config = config.model_copy(update={"condensers": ("drop_oldest",)})
    return world.CompressInput(
        context=_context(journal),
        has_summary=bool(journal.state.summary),
        keep_from=cut.keep_from,
        pinned=cut.pinned,
        epoch=journal.context.epoch + 1,
        goal_tokens=cut.goal_tokens,
        spec_digest=journal.provided.spec_digest,
        model=journal.spec.model,
        config=journal.spec.call_config,
        context_config=config,
        context_length=journal.provided.window,
        call_number=journal.calls_so_far.summaries,
        context_tokens=0 if must_compress(journal) else tokens(journal),
        is_cold=is_cold(journal, journal.spec.model),
        model_calls=journal.calls_so_far.replies,
        hidden_tools=hidden(journal.spec.tool_groups, groups_sent(journal)),
        takes_no_images=journal.spec.model in journal.context.takes_no_images,
        session_id=journal.state.session_id,
        user_id=journal.state.user_id,
        agent=journal.spec.name,
        offloader=journal.spec.offloader,
        instructions=asked.instructions if asked is not None else "",
        must_mention=unfinished(journal),
        runtime=runtime(journal),
        attempts_paid=attempts_paid(journal),
    )


def needs_model(journal: Journal, ask: world.CompressInput) -> bool:
    """Whether nothing else would do where no model can be reached: no later condenser, and nobody who has asked for the
    compression and waits for an answer."""
    asks = [name for name in ask.context_config.condensers if name not in _WITHOUT_MODEL]
    return (
        journal.reply is not None and journal.compaction.asked is None and asks == [ask.context_config.condensers[-1]]
    )


def _context(journal: Journal) -> world.ContextAddress:
    prefix_digest, length = journal.context.cached_prefix
    return world.ContextAddress(
        prefix_digest=prefix_digest,
        prefix_length=length,
        tail=tuple(_tail(journal, length)),
        epoch=journal.context.epoch,
    )


def _tail(journal: Journal, start: int) -> Iterator[world.Ref | world.Inline]:
    before = bool(journal.state.summary)
    if before and not start:
        yield world.Inline(message=summary_message(journal.state.summary))
    first = max(start - before, 0)
    for message, mark in zip(journal.state.context[first:], journal.context.marks[first:], strict=True):
        yield world.Ref(digest=mark.digest) if mark.digest else world.Inline(message=message)


def examine_calls(journal: Journal, calls: list[OpenCall]) -> world.ExamineCalls:
    tools = [call.block.name for call in calls]
    mcps = tuple(client for client in journal.spec.mcps if client.name in map(server_of, tools))
    # Only where a call gives the answer: it would cross the history with each look at another one.
    gives = any(call.block.name == GENERATE_RESPONSE for call in calls)
    asked_schema = journal.reply.structured_schema if gives and journal.reply else None
    names = analyzers_of(journal.permission)
    if names:
        model = journal.permission.analyzer_model or journal.spec.model
        risk_analysis = world.RiskAnalysis(
            analyzers=names,
            tainted=journal.state.tainted,
            model=model,
            config=journal.spec.call_config.for_model(model, journal.spec.model),
            call_number=journal.calls_so_far.analyses,
            context=_context(journal),
            agent=journal.spec.name,
            runtime=runtime(journal),
        )
    else:
        risk_analysis = None
    known = journal.provided.tools
    targets = tuple(known[name] for name in dict.fromkeys(tools) if name in known and known[name].target is not None)
    return world.ExamineCalls(
        calls=tuple(_to_examine(journal, call) for call in calls),
        place=place(journal),
        said_in=_said_in(journal, calls[0]),
        user_rules_digest=journal.rules.user_digest,
        risk_analysis=risk_analysis,
        mcps=mcps,
        structured_schema=asked_schema,
        targets=targets,
    )


def _to_examine(journal: Journal, call: OpenCall) -> world.CallToExamine:
    filled = _secrets(journal, call.block.name) if journal.marks_secrets else None
    return world.CallToExamine(id=call.block.id, name=call.block.name, input=_inline(journal, call), filled=filled)


def run_tool(journal: Journal, call: OpenCall, run_id: str = "") -> world.RunTool:
    """`run_id`: of the run that asks for a call that may be `once`."""
    arguments = _inline(journal, call)
    effect = effect_of(call, journal.provided.tools[call.block.name])
    return world.RunTool(
        call_id=call.block.id,
        arguments=arguments,
        said_in=_said_in(journal, call) if arguments is None else None,
        tool_digest=journal.provided.tools[call.block.name].digest,
        effect=effect,
        run=run_id[: world.RUN_CHARS] if effect is Effect.ONCE else "",
        agent=journal.spec.name,
        analysis=call.analysis.as_run(),
        place=place(journal),
        epoch=journal.context.epoch,
        result_limit=journal.spec.context_config.tool_result_limit,
        model=journal.spec.model,
        offloader=journal.spec.offloader,
        postprocess=journal.spec.postprocess.get(call.block.name, ""),
        confined=call.confined,
        edited_by=_editor(call),
        unchanged=call.unchanged,
        secrets=_secrets(journal, call.block.name),
        filled=journal.marks_secrets,
        runtime=runtime(journal),
        mcp=journal.spec.mcp_of(call.block.name),
        connection=journal.state.tool_context.mcp_connections.get(server_of(call.block.name)),
        knowledge_bases=journal.spec.knowledge_bases if call.block.name == RETRIEVE_KNOWLEDGE else (),
        asked=call.asked,
        sampling=_sampling(journal, call.block.name),
        is_own=call.child or journal.provided.tools[call.block.name].target is not None,
    )


def _editor(call: OpenCall) -> str | None:
    if not call.edited:
        return None
    return call.approver or "the approver" if call.unchanged is None else "a middleware"


def _sampling(journal: Journal, tool: str) -> world.SamplingLeave | None:
    client = journal.spec.mcp_of(tool)
    if client is None or client.sampling is None:
        return None
    model = client.sampling.model or journal.spec.model
    calls, tokens = room_for(journal, client.sampling, model)
    config = journal.spec.call_config.for_model(model, journal.spec.model)
    number = journal.calls_so_far.samples
    return world.SamplingLeave(model=model, config=config, calls=calls, tokens=tokens, call_number=number)


def probe_call(journal: Journal, unknown_outcome: UnknownOutcome) -> world.ProbeCall:
    """Where it ran, also when the session has moved since."""
    where = place(journal)
    return world.ProbeCall(
        call_id=unknown_outcome.call_id,
        tool=unknown_outcome.tool,
        arguments=journal.calls.unmarked.get(unknown_outcome.call_id, unknown_outcome.input),
        tool_digest=journal.provided.tools[unknown_outcome.tool].digest,
        place=where.model_copy(update={"cwd": unknown_outcome.cwd}) if unknown_outcome.cwd else where,
        secrets=_secrets(journal, unknown_outcome.tool),
        filled=journal.marks_secrets,
    )


def _secrets(journal: Journal, tool: str) -> tuple[str, ...]:
    return journal.spec.secrets.given_to(tool) if journal.spec.secrets else ()


def open_call(journal: Journal, call_id: str) -> OpenCall:
    """The open call of this id; a KeyError here is a defect: steps name calls of the journal they were made from."""
    if journal.reply is None:
        raise KeyError(call_id)
    return journal.reply.calls[call_id]


def _inline(journal: Journal, call: OpenCall) -> str | None:
    if call.block.id in journal.calls.unmarked:
        return journal.calls.unmarked[call.block.id]  # it stands in no message
    return call.input if call.edited or len(call.input) <= world.INLINE_ARGUMENTS else None


def _said_in(journal: Journal, call: OpenCall) -> world.MessageAddress:
    """The current turn's assistant message is near the end of the context: look back for it."""
    for index in range(len(journal.state.context) - 1, -1, -1):
        for block in journal.state.context[index].content:
            if isinstance(block, ToolCallBlock) and block.id == call.block.id:
                before = bool(journal.state.summary)
                return world.MessageAddress(
                    index=index + before, digest=journal.context.marks[index].digest, epoch=journal.context.epoch
                )
    raise ValueError(f"open call {call.block.id!r} stands in no message")


def summary_of_thought(ask: world.CallModel) -> str:
    return _summary(f"call {ask.call_number + 1}: {ask.model.rpartition('/')[2]}")


def summary_of(call: OpenCall) -> str:
    """One line for the Web UI: what is about to run."""
    return _summary(" ".join(gist(call.input).split()))


def _summary(line: str) -> str:
    """Cut to what the server takes, and without the lone surrogates and control characters that JSON escapes can bring:
    the command of one that is longer, or can't be encoded, would fail the workflow task for ever."""
    shown = line[:SUMMARY_CHARS]
    if not shown.isprintable():
        shown = "".join(char if char.isprintable() else "\ufffd" for char in shown)
    return shown.encode("utf-8")[:SUMMARY_BYTES].decode("utf-8", "ignore")


NEWEST_SEGMENTS = 12
"""Enough to write small ones again as one, and few enough to cross the history with each checkpoint."""


def restore(journal: Journal, session_key: str, reset_run: str) -> world.RestoreInput:
    """`reset_run`: as in the input; empty where nobody has reset the session."""
    state = journal.state
    return world.RestoreInput(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=journal.spec.name,
        ahead=None if reset_run else _ahead(journal, session_key),
        reset_run=reset_run,
    )


def _ahead(journal: Journal, session_key: str) -> world.PrepareReply | None:
    """What would be asked next if there were no earlier incarnation."""
    started = Journal.of(journal.log)
    started.restore(e.Restored(incarnation=1, source="nothing"), None, journal.latest_at)
    step = decide(started, Load(at=journal.latest_at))
    if not isinstance(step, Prepare) or journal.spec.host:
        return None
    started.write(e.ReplyStarted(reply_id=step.reply_id), journal.latest_at)
    return prepare_reply(started, session_key)


def checkpoint(journal: Journal, *, closing: bool) -> world.CheckpointInput:
    state, newest = journal.state, journal.keeping.segments[-NEWEST_SEGMENTS:]
    return world.CheckpointInput(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=journal.spec.name,
        incarnation=journal.incarnation.number,
        saved=journal.keeping.saved,
        saved_boundary=journal.keeping.saved_boundary,
        segments=tuple(newest),
        segments_before=len(journal.keeping.segments) - len(newest),
        closing=closing,
    )

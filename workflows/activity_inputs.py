"""Makes the input of each activity from the record; bodies that an activity made go by digest."""

from collections.abc import Iterator

from longhaul.activities import contract as world
from longhaul.activities.contract import InterruptInput, MemoryInput, Runtime
from longhaul.agent import entries as e
from longhaul.agent.decision import decide
from longhaul.agent.decisions.budget_limits import attempts_paid
from longhaul.agent.decisions.compaction import must_compress
from longhaul.agent.decisions.model_turn import config_for, cut_short, replaced_by, room_for
from longhaul.agent.decisions.rollover import Load
from longhaul.agent.entries import Doubt
from longhaul.agent.fold.agent_state import OpenCall, effect_of
from longhaul.agent.fold.approval_digest import unseen
from longhaul.agent.fold.context_state import Cut, expected, groups_sent, is_cold, tokens
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.permission.decision_table import analyzers_of
from longhaul.agent.permission.rule_matching import ruled_folders, ruled_paths
from longhaul.agent.plain.text import gist
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.record import Record
from longhaul.agent.steps import Prepare, Think
from longhaul.agent.values.conversation.messages import ToolCallBlock
from longhaul.agent.values.conversation.prompt import summary_message
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE, Effect
from longhaul.agent.values.spec.knowledge import RETRIEVE_KNOWLEDGE, shortened, shown_skills
from longhaul.agent.values.spec.mcp import server_of
from longhaul.agent.values.tool_groups import hidden
from longhaul.agent.views.session_views import unfinished


def runtime(ledger: Ledger) -> Runtime | None:
    """With each call of a session that has middlewares or a context of the request: others pay no byte for it."""
    if not (ledger.provided.wrapped or ledger.spec.middlewares or ledger.requests.request_context):
        return None
    return runtime_of_reply(ledger)


def runtime_of_reply(ledger: Ledger) -> Runtime:
    """For the preparation of a reply, which finds out whether its workers have middlewares."""
    reply = ledger.reply
    return Runtime(
        session_id=ledger.state.session_id,
        reply_id=reply.reply_id if reply else "",
        request_id=reply.request_id if reply else "",
        given=ledger.requests.request_context,
        middlewares=ledger.spec.middlewares,
    )


def handle_interrupt(ledger: Ledger) -> InterruptInput:
    return InterruptInput(
        runtime=runtime_of_reply(ledger),
        agent=ledger.spec.name,
        user_id=ledger.state.user_id,
        reply_id=ledger.current.reply_id,
        message=replaced_by(ledger),
        tools=cut_short(ledger),
        kind=ledger.spec.kind,
    )


def record_memory(ledger: Ledger) -> MemoryInput:
    """What people said since the reply began, and what was answered last."""
    first = max(ledger.requests.reply_start - ledger.context.transcript_base, 0)
    messages = ledger.context.transcript[first:]
    asked = "\n".join(text for message in messages if message.role == "user" and (text := message.get_text_content()))
    reply = ledger.current
    if reply.structured_output is not None:
        answer = canonical_json(reply.structured_output).decode()
    else:
        said = (message.get_text_content() for message in reversed(messages) if message.id == reply.reply_id)
        answer = reply.response or next(filter(None, said), "")
    return MemoryInput(
        user_id=ledger.state.user_id,
        agent=ledger.spec.name,
        session_id=ledger.state.session_id,
        reply_id=ledger.current.reply_id,
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


def _has_triggers(record: Record) -> bool:
    context = record.spec.agent_context
    return bool(record.spec.skills or (context and context.knowledge) or record.spec.retrieves)


def prepare_reply(record: Record, session_key: str) -> world.PrepareReply:
    provided = record.provided
    bound, newest = provided.workspace_root != "", provided.told or provided
    return world.PrepareReply(
        spec=record.spec,
        session_key=session_key,
        tools_digest=newest.spec_digest,
        place=place(record) if bound else None,
        prompt_digest=provided.told.digest if provided.told else provided.prompt_digest,
        request=_newest_request(record) if _has_triggers(record) else "",
        hinted=shown_skills(record.state.context) if _has_triggers(record) else (),
        context_tokens=tokens(record) if record.spec.inject_runtime_state else 0,
        user_id=record.state.user_id,
        user_rules_digest=record.rules.user_digest,
        runtime=runtime_of_reply(record),
        structured_schema=record.reply.structured_schema if record.reply else None,
        outdated=record.provided.outdated,
        is_under_way=record.reply is not None and record.reply.prepared,
    )


def _newest_request(record: Record) -> str:
    """Its text; of a long one the beginning and the end, for it crosses the history a second time here."""
    first, end = (max(number - record.context.transcript_base, 0) for number in record.context.newest)
    said = "\n".join(message.get_text_content() for message in record.context.transcript[first:end])
    half = REQUEST_CHARS // 2
    return said if len(said) <= REQUEST_CHARS else f"{said[:half]}\n{said[-half:]}"


def place(record: Record) -> world.RecordedPlace:
    cwd = record.state.tool_context.cwd
    return world.RecordedPlace(
        root=record.provided.workspace_root,
        nonce=record.provided.workspace_nonce,
        cwd="" if cwd == record.provided.workspace_root else cwd,
        agent=record.spec.name,
        user_id=record.state.user_id,
        session_id=record.state.session_id,
        offloader=record.spec.offloader,
        ruled=ruled_folders(record.permission, record.provided.workspace_root),
        closed=ruled_paths(record.permission),
        opened=record.permission.working_directories,
        sandbox=record.spec.sandbox,
        sandbox_network=record.spec.sandbox_network,
        seal=record.spec.seal,
        snapshots=record.spec.workspace is not None and record.spec.workspace.snapshots,
        skills=record.spec.skills,
    )


def call_model(record: Record, step: Think, along: world.ReadsAlong | None) -> world.CallModel:
    model = step.model
    cached, lost = expected(record, model)
    return world.CallModel(
        context=_context(record),
        spec_digest=record.provided.spec_digest,
        model=model,
        config=config_for(record, model),
        call_number=record.calls_so_far.replies,
        shortened=record.reply is not None and record.reply.overflow == "answered",
        closing=step.closing,
        must_call=GENERATE_RESPONSE if step.must_finish else "",
        fixed_tokens=record.provided.fixed_tokens,
        cached_tokens=cached,
        cache_lost=lost,
        agent=record.spec.name,
        place=place(record),
        hidden_tools=hidden(record.spec.tool_groups, groups_sent(record)),
        takes_no_images=model in record.context.takes_no_images,
        runtime=runtime(record),
        mcps=record.spec.mcps,
        secrets=record.spec.secrets if record.marks_secrets else None,
        words=unseen(record),
        attempts_paid=attempts_paid(record),
        # A tool of a group that is no longer active may be called, and must not read before the session has refused it.
        reads_along=None if step.closing or model != record.spec.model or record.context.shown_groups else along,
        kind=_kind_step(record),
    )


def _kind_step(record: Record) -> world.KindStep | None:
    if not record.spec.kind or record.reply is None:
        return None

    def index_of(number: int) -> int:
        return bool(record.state.summary) + sum(mark.number < number for mark in record.context.marks)

    begins, (first, end) = record.requests.reply_start, record.context.newest
    if first != begins:
        first = end = begins  # a request to go on, without a message
    return world.KindStep(
        name=record.spec.kind,
        heard=int(bool(record.state.summary)),
        since=index_of(begins),
        first=index_of(first),
        end=index_of(end),
        structured_schema=record.reply.structured_schema,
        agents=tuple(record.spec.agents),
        config=record.spec.kind_config,
    )


def is_last_model(record: Record, model: str) -> bool:
    """Whether no other one is left to ask when this one fails."""
    other = record.spec.llm_config.fallback_model
    return other is None or other == model or (record.reply is not None and record.reply.is_passed_over(other))


def compress(record: Record, cut: Cut) -> world.CompressInput:
    asked = record.compaction.asked
    config = asked.config if asked is not None and asked.config is not None else record.spec.context_config
    if record.spec.kind:
        # Code reads messages, and may have no model that could sum them up.
        config = config.model_copy(update={"condensers": ("drop_oldest",)})
    return world.CompressInput(
        context=_context(record),
        has_summary=bool(record.state.summary),
        keep_from=cut.keep_from,
        pinned=cut.pinned,
        epoch=record.context.epoch + 1,
        goal_tokens=cut.goal_tokens,
        spec_digest=record.provided.spec_digest,
        model=record.spec.model,
        config=record.spec.call_config,
        context_config=config,
        context_length=record.provided.window,
        call_number=record.calls_so_far.summaries,
        context_tokens=0 if must_compress(record) else tokens(record),
        is_cold=is_cold(record, record.spec.model),
        model_calls=record.calls_so_far.replies,
        hidden_tools=hidden(record.spec.tool_groups, groups_sent(record)),
        takes_no_images=record.spec.model in record.context.takes_no_images,
        session_id=record.state.session_id,
        user_id=record.state.user_id,
        agent=record.spec.name,
        offloader=record.spec.offloader,
        instructions=asked.instructions if asked is not None else "",
        must_mention=unfinished(record),
        runtime=runtime(record),
        attempts_paid=attempts_paid(record),
    )


def needs_model(record: Record, ask: world.CompressInput) -> bool:
    """Whether nothing else would do where no model can be reached: no later condenser, and nobody who has asked for the
    compression and waits for an answer."""
    asks = [name for name in ask.context_config.condensers if name not in _WITHOUT_MODEL]
    return record.reply is not None and record.compaction.asked is None and asks == [ask.context_config.condensers[-1]]


def _context(record: Record) -> world.ContextAddress:
    prefix_digest, length = record.context.anchor
    return world.ContextAddress(
        prefix_digest=prefix_digest, prefix_length=length, tail=tuple(_tail(record, length)), epoch=record.context.epoch
    )


def _tail(record: Record, start: int) -> Iterator[world.Ref | world.Inline]:
    before = bool(record.state.summary)
    if before and not start:
        yield world.Inline(message=summary_message(record.state.summary))
    first = max(start - before, 0)
    for message, mark in zip(record.state.context[first:], record.context.marks[first:], strict=True):
        yield world.Ref(digest=mark.digest) if mark.digest else world.Inline(message=message)


def examine_calls(record: Record, calls: list[OpenCall]) -> world.ExamineCalls:
    tools = [call.block.name for call in calls]
    mcps = tuple(client for client in record.spec.mcps if client.name in map(server_of, tools))
    # Only where a call gives the answer: it would cross the history with each look at another one.
    gives = any(call.block.name == GENERATE_RESPONSE for call in calls)
    asked_schema = record.reply.structured_schema if gives and record.reply else None
    names = analyzers_of(record.permission)
    if names:
        model = record.permission.analyzer_model or record.spec.model
        analysis = world.Analysis(
            analyzers=names,
            tainted=record.state.tainted,
            model=model,
            config=record.spec.call_config.for_model(model, record.spec.model),
            call_number=record.calls_so_far.analyses,
            context=_context(record),
            agent=record.spec.name,
            runtime=runtime(record),
        )
    else:
        analysis = None
    known = record.provided.tools
    targets = tuple(known[name] for name in dict.fromkeys(tools) if name in known and known[name].target is not None)
    return world.ExamineCalls(
        calls=tuple(_to_examine(record, call) for call in calls),
        place=place(record),
        said_in=_said_in(record, calls[0]),
        user_rules_digest=record.rules.user_digest,
        analysis=analysis,
        mcps=mcps,
        structured_schema=asked_schema,
        targets=targets,
    )


def _to_examine(record: Record, call: OpenCall) -> world.CallToExamine:
    filled = _secrets(record, call.block.name) if record.marks_secrets else None
    return world.CallToExamine(id=call.block.id, name=call.block.name, input=_inline(record, call), filled=filled)


def run_tool(record: Record, call: OpenCall, run_id: str = "") -> world.RunTool:
    """`run_id`: of the run that asks for a call that may be `once`."""
    arguments = _inline(record, call)
    effect = effect_of(call, record.provided.tools[call.block.name])
    return world.RunTool(
        call_id=call.block.id,
        arguments=arguments,
        said_in=_said_in(record, call) if arguments is None else None,
        tool_digest=record.provided.tools[call.block.name].digest,
        effect=effect,
        run=run_id[: world.RUN_CHARS] if effect is Effect.ONCE else "",
        agent=record.spec.name,
        facts=call.facts.as_run(),
        place=place(record),
        epoch=record.context.epoch,
        result_limit=record.spec.context_config.tool_result_limit,
        model=record.spec.model,
        offloader=record.spec.offloader,
        postprocess=record.spec.postprocess.get(call.block.name, ""),
        confined=call.confined,
        edited_by=_editor(call),
        unchanged=call.unchanged,
        secrets=_secrets(record, call.block.name),
        filled=record.marks_secrets,
        runtime=runtime(record),
        mcp=record.spec.mcp_of(call.block.name),
        connection=record.state.tool_context.mcp_connections.get(server_of(call.block.name)),
        knowledge_bases=record.spec.knowledge_bases if call.block.name == RETRIEVE_KNOWLEDGE else (),
        asked=call.asked,
        sampling=_sampling(record, call.block.name),
        is_own=call.child or record.provided.tools[call.block.name].target is not None,
    )


def _editor(call: OpenCall) -> str | None:
    if not call.edited:
        return None
    return call.approver or "the approver" if call.unchanged is None else "a middleware"


def _sampling(record: Record, tool: str) -> world.SamplingLeave | None:
    client = record.spec.mcp_of(tool)
    if client is None or client.sampling is None:
        return None
    model = client.sampling.model or record.spec.model
    calls, tokens = room_for(record, client.sampling, model)
    config = record.spec.call_config.for_model(model, record.spec.model)
    number = record.calls_so_far.samples
    return world.SamplingLeave(model=model, config=config, calls=calls, tokens=tokens, call_number=number)


def probe_call(record: Record, doubt: Doubt) -> world.ProbeCall:
    """Where it ran, also when the session has moved since."""
    where = place(record)
    return world.ProbeCall(
        call_id=doubt.call_id,
        tool=doubt.tool,
        arguments=record.calls.unmarked.get(doubt.call_id, doubt.input),
        tool_digest=record.provided.tools[doubt.tool].digest,
        place=where.model_copy(update={"cwd": doubt.cwd}) if doubt.cwd else where,
        secrets=_secrets(record, doubt.tool),
        filled=record.marks_secrets,
    )


def _secrets(record: Record, tool: str) -> tuple[str, ...]:
    return record.spec.secrets.given_to(tool) if record.spec.secrets else ()


def open_call(record: Record, call_id: str) -> OpenCall:
    """The open call of this id; a KeyError here is a defect: steps name calls of the record they were made from."""
    if record.reply is None:
        raise KeyError(call_id)
    return record.reply.calls[call_id]


def _inline(record: Record, call: OpenCall) -> str | None:
    if call.block.id in record.calls.unmarked:
        return record.calls.unmarked[call.block.id]  # it stands in no message
    return call.input if call.edited or len(call.input) <= world.INLINE_ARGUMENTS else None


def _said_in(record: Record, call: OpenCall) -> world.MessageAddress:
    """The current turn's assistant message is near the end of the context: look back for it."""
    for index in range(len(record.state.context) - 1, -1, -1):
        for block in record.state.context[index].content:
            if isinstance(block, ToolCallBlock) and block.id == call.block.id:
                before = bool(record.state.summary)
                return world.MessageAddress(
                    index=index + before, digest=record.context.marks[index].digest, epoch=record.context.epoch
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


def restore(record: Record, session_key: str, reset_run: str) -> world.RestoreInput:
    """`reset_run`: as in the input; empty where nobody has reset the session."""
    state = record.state
    return world.RestoreInput(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=record.spec.name,
        ahead=None if reset_run else _ahead(record, session_key),
        reset_run=reset_run,
    )


def _ahead(record: Record, session_key: str) -> world.PrepareReply | None:
    """What would be asked next if there were no earlier life."""
    begun = Record.of(record.log)
    begun.restore(e.Restored(generation=1, source="nothing"), None, record.latest_at)
    step = decide(begun, Load(at=record.latest_at))
    if not isinstance(step, Prepare) or record.spec.host:
        return None
    begun.write(e.ReplyStarted(reply_id=step.reply_id), record.latest_at)
    return prepare_reply(begun, session_key)


def checkpoint(record: Record, *, closing: bool) -> world.CheckpointInput:
    state, newest = record.state, record.keeping.segments[-NEWEST_SEGMENTS:]
    return world.CheckpointInput(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=record.spec.name,
        generation=record.life.generation,
        saved=record.keeping.saved,
        saved_seam=record.keeping.saved_seam,
        segments=tuple(newest),
        segments_before=len(record.keeping.segments) - len(newest),
        closing=closing,
    )

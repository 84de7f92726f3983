"""What each activity is told: its input, made from the record. Bodies that an activity made go by digest."""

from collections.abc import Iterator

from activities import contract as world
from agent.compaction import Cut, tokens
from agent.doubts import Doubt
from agent.gist import gist
from agent.ledger import SUPERVISED
from agent.messages import ToolCallBlock
from agent.permission.policies import analyzers_of
from agent.permission.ruled import ruled_folders
from agent.prompt import summary_message
from agent.record import Record
from agent.skills import shown_skills
from agent.state import OpenCall, effect_of
from agent.tool_groups import hidden
from agent.unfinished import unfinished
from workflows.asks_runtime import runtime, runtime_of_reply

REQUEST_CHARS = 8_000
"""Of a request: where a skill's trigger is looked for."""
SUMMARY_CHARS = 100
SUMMARY_BYTES = 300
"""One line in the Web UI; the server's limit is 400 bytes of JSON."""


def _has_triggers(record: Record) -> bool:
    context = record.spec.agent_context
    return bool(record.spec.skills or (context and context.knowledge))


def prepare_reply(record: Record, session_key: str) -> world.PrepareReply:
    bound = record.workspace_root != ""
    return world.PrepareReply(
        spec=record.spec,
        session_key=session_key,
        tools_digest=record.spec_digest,
        place=place(record) if bound else None,
        prompt_digest=record.prompt_digest,
        request=_newest_request(record) if _has_triggers(record) else "",
        hinted=shown_skills(record.state.context) if _has_triggers(record) else (),
        context_tokens=tokens(record) if record.spec.inject_runtime_state else 0,
        user_id=record.state.user_id,
        user_rules_digest=record.user_rules_digest,
        runtime=runtime_of_reply(record),
    )


def _newest_request(record: Record) -> str:
    """Its text; of a long one the beginning and the end, for it crosses the history a second time here."""
    first, end = (max(number - record.transcript_base, 0) for number in record.newest)
    said = "\n".join(message.get_text_content() for message in record.transcript[first:end])
    half = REQUEST_CHARS // 2
    return said if len(said) <= REQUEST_CHARS else f"{said[:half]}\n{said[-half:]}"


def place(record: Record) -> world.Place:
    cwd = record.state.tool_context.cwd
    return world.Place(
        root=record.workspace_root,
        nonce=record.workspace_nonce,
        cwd="" if cwd == record.workspace_root else cwd,
        agent=record.spec.name,
        user_id=record.state.user_id,
        session_id=record.state.session_id,
        ruled=ruled_folders(record.permission, record.workspace_root),
    )


def call_model(record: Record, model: str, *, closing: bool = False) -> world.CallModel:
    return world.CallModel(
        context=_context(record),
        spec_digest=record.spec_digest,
        model=model,
        config=record.spec.llm_config,
        call_number=record.model_calls,
        closing=closing,
        fixed_tokens=record.fixed_tokens,
        agent=record.spec.name,
        place=place(record),
        hidden_tools=hidden(record.spec.tool_groups, record.state.tool_context.activated_groups),
        runtime=runtime(record),
    )


def compress(record: Record, cut: Cut) -> world.Compress:
    asked = record.compress_asked
    return world.Compress(
        context=_context(record),
        has_summary=bool(record.state.summary),
        keep_from=cut.keep_from,
        pinned=cut.pinned,
        epoch=record.epoch + 1,
        goal_tokens=cut.goal_tokens,
        spec_digest=record.spec_digest,
        model=record.spec.model,
        config=record.spec.llm_config,
        context_config=asked.config if asked is not None and asked.config is not None else record.spec.context_config,
        context_length=record.window,
        call_number=record.compressions,
        session_id=record.state.session_id,
        user_id=record.state.user_id,
        agent=record.spec.name,
        offloader=record.spec.offloader,
        instructions=asked.instructions if asked is not None else "",
        must_mention=unfinished(record),
    )


def _context(record: Record) -> world.ContextAddress:
    prefix_digest, length = record.anchor
    return world.ContextAddress(
        prefix_digest=prefix_digest, prefix_length=length, tail=tuple(_tail(record, length)), epoch=record.epoch
    )


def _tail(record: Record, start: int) -> Iterator[world.Ref | world.Inline]:
    before = bool(record.state.summary)
    if before and not start:
        yield world.Inline(message=summary_message(record.state.summary))
    first = max(start - before, 0)
    for message, mark in zip(record.state.context[first:], record.marks[first:], strict=True):
        yield world.Ref(digest=mark.digest) if mark.digest else world.Inline(message=message)


def examine_calls(record: Record, calls: list[OpenCall]) -> world.ExamineCalls:
    return world.ExamineCalls(
        calls=tuple(world.CallToExamine(id=call.block.id, name=call.block.name, input=_inline(call)) for call in calls),
        place=place(record),
        said_in=_said_in(record, calls[0]),
        user_rules_digest=record.user_rules_digest,
        analysis=_analysis(record),
    )


def _analysis(record: Record) -> world.Analysis | None:
    names = analyzers_of(record.permission) if record.state.behaviour >= SUPERVISED else ()
    if not names:
        return None
    return world.Analysis(
        analyzers=names,
        tainted=record.state.tainted,
        model=record.permission.analyzer_model or record.spec.model,
        config=record.spec.llm_config,
        call_number=record.analyses,
        context=_context(record),
    )


def run_tool(record: Record, call: OpenCall) -> world.RunTool:
    arguments = _inline(call)
    return world.RunTool(
        call_id=call.block.id,
        arguments=arguments,
        said_in=_said_in(record, call) if arguments is None else None,
        tool_digest=record.tools[call.block.name].digest,
        effect=effect_of(call, record.tools[call.block.name]),
        agent=record.spec.name,
        facts=call.facts.model_copy(update={"notice": "", "commands": ()}),
        place=place(record),
        epoch=record.epoch,
        result_limit=record.spec.context_config.tool_result_limit,
        model=record.spec.model,
        offloader=record.spec.offloader,
        sandbox=record.spec.sandbox,
        sandbox_network=record.spec.sandbox_network,
        edited_by=(call.approver or "the approver") if call.edited else None,
        secrets=_secrets(record, call.block.name),
        runtime=runtime(record),
    )


def probe_call(record: Record, doubt: Doubt) -> world.ProbeCall:
    """Where it ran, also when the session has moved since."""
    where = place(record)
    return world.ProbeCall(
        call_id=doubt.call_id,
        tool=doubt.tool,
        arguments=doubt.input,
        tool_digest=record.tools[doubt.tool].digest,
        place=where.model_copy(update={"cwd": doubt.cwd}) if doubt.cwd else where,
        secrets=_secrets(record, doubt.tool),
    )


def _secrets(record: Record, tool: str) -> tuple[str, ...]:
    return record.spec.secrets.given_to(tool) if record.spec.secrets else ()


def open_call(record: Record, call_id: str) -> OpenCall:
    """The open call of this id; a KeyError here is a defect: steps name calls of the record they were made from."""
    if record.reply is None:
        raise KeyError(call_id)
    return record.reply.calls[call_id]


def _inline(call: OpenCall) -> str | None:
    if call.edited or len(call.input) <= world.INLINE_ARGUMENTS:
        return call.input
    return None


def _said_in(record: Record, call: OpenCall) -> world.MessageAddress:
    """The current turn's assistant message is near the end of the context: look back for it."""
    for index in range(len(record.state.context) - 1, -1, -1):
        for block in record.state.context[index].content:
            if isinstance(block, ToolCallBlock) and block.id == call.block.id:
                before = bool(record.state.summary)
                return world.MessageAddress(index=index + before, digest=record.marks[index].digest, epoch=record.epoch)
    raise ValueError(f"open call {call.block.id!r} stands in no message")


def summary_of_thought(ask: world.CallModel) -> str:
    return _summary(f"call {ask.call_number + 1}: {ask.model.rpartition('/')[2]}")


def summary_of(call: OpenCall) -> str:
    """One line for the Web UI: what is about to run."""
    return _summary(" ".join(gist(call.input).split()))


def _summary(line: str) -> str:
    """Cut to what the server takes, and without the lone surrogates and control characters that JSON escapes can bring:
    the command of one that is longer, or can't be encoded, would fail the workflow task for ever."""
    shown = "".join(char if char.isprintable() else "\ufffd" for char in line[:SUMMARY_CHARS])
    return shown.encode("utf-8")[:SUMMARY_BYTES].decode("utf-8", "ignore")

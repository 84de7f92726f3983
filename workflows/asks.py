"""What each activity is told: its input, made from the record. Bodies that an activity made go by digest."""

from activities import contract as world
from agent.gist import gist
from agent.judgement import effect_of
from agent.messages import ToolCallBlock
from agent.record import Record
from agent.state import OpenCall
from workflows.contract import EPOCH

SUMMARY_CHARS = 100
SUMMARY_BYTES = 300
"""One line in the Web UI; the server's limit is 400 bytes of JSON."""


def prepare_reply(record: Record, session_key: str) -> world.PrepareReply:
    bound = record.workspace_root != ""
    return world.PrepareReply(
        spec=record.spec,
        session_key=session_key,
        tools_digest=record.spec_digest,
        place=place(record) if bound else None,
    )


def place(record: Record) -> world.Place:
    return world.Place(root=record.workspace_root, nonce=record.workspace_nonce, cwd=_moved(record))


def _moved(record: Record) -> str:
    cwd = record.state.tool_context.cwd
    return "" if cwd == record.workspace_root else cwd


def call_model(record: Record, model: str) -> world.CallModel:
    return world.CallModel(
        context=_context(record),
        spec_digest=record.spec_digest,
        model=model,
        config=record.spec.llm_config,
        call_number=record.model_calls,
        agent=record.spec.name,
        place=place(record),
    )


def _context(record: Record) -> world.ContextAddress:
    prefix_digest, length = record.anchor
    tail = zip(record.state.context[length:], record.digests[length:], strict=True)
    return world.ContextAddress(
        prefix_digest=prefix_digest,
        prefix_length=length,
        tail=tuple(world.Ref(digest=digest) if digest else world.Inline(message=message) for message, digest in tail),
        epoch=EPOCH,
    )


def examine_calls(record: Record, calls: list[OpenCall]) -> world.ExamineCalls:
    return world.ExamineCalls(
        calls=tuple(world.CallToExamine(id=call.block.id, name=call.block.name, input=_inline(call)) for call in calls),
        place=place(record),
        said_in=_said_in(record, calls[0]),
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
        epoch=EPOCH,
        edited_by=(call.approver or "the approver") if call.edited else None,
    )


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
                return world.MessageAddress(index=index, digest=record.digests[index], epoch=EPOCH)
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

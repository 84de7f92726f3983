"""Makes what hooks and tools are told of the call that they stand around. Sent only where there is somebody to be
told."""

from longhaul.activities.contract import InterruptInput, MemoryInput, Runtime
from longhaul.agent.decisions.model_turn import cut_short, replaced_by
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.spec.knowledge import shortened


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
    return MemoryInput(
        user_id=ledger.state.user_id,
        agent=ledger.spec.name,
        session_id=ledger.state.session_id,
        reply_id=ledger.current.reply_id,
        asked=shortened(asked),
        answered=shortened(_answer(ledger, messages)),
    )


def _answer(ledger: Ledger, messages: list[Msg]) -> str:
    reply = ledger.current
    if reply.structured_output is not None:
        return canonical_json(reply.structured_output).decode()
    said = (message.get_text_content() for message in reversed(messages) if message.id == reply.reply_id)
    return reply.response or next(filter(None, said), "")

"""What hooks and tools are told of the call that they stand around. Sent only where there is somebody to be told."""

from activities.contract import HandleInterrupt, Runtime
from agent.interrupting import cut_short, replaced_by
from agent.ledger import Ledger


def runtime(ledger: Ledger) -> Runtime | None:
    """With each call of a session that has middlewares or a context of the request: others pay no byte for it."""
    if not (ledger.wrapped or ledger.spec.middlewares or ledger.request_context):
        return None
    return runtime_of_reply(ledger)


def runtime_of_reply(ledger: Ledger) -> Runtime:
    """For the preparation of a reply, which finds out whether its workers have middlewares."""
    reply = ledger.reply
    return Runtime(
        session_id=ledger.state.session_id,
        reply_id=reply.reply_id if reply else "",
        request_id=reply.request_id if reply else "",
        given=ledger.request_context,
        middlewares=ledger.spec.middlewares,
    )


def handle_interrupt(ledger: Ledger) -> HandleInterrupt:
    return HandleInterrupt(
        runtime=runtime_of_reply(ledger),
        agent=ledger.spec.name,
        user_id=ledger.state.user_id,
        reply_id=ledger.current.reply_id,
        message=replaced_by(ledger),
        tools=cut_short(ledger),
    )

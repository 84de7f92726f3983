"""Makes what hooks and tools are told of the call that they stand around. Sent only where there is somebody to be
told."""

from longhaul.activities.contract import InterruptInput, Runtime
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.next.interrupting import cut_short, replaced_by


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
    )

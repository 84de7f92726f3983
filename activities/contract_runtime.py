"""What hooks and tools are told of the call that they stand around, and of an interrupt."""

from typing import Any

from agent.values import Guest, sparse


class Runtime(Guest):
    """Sent with each attempt anew, so that it is the same after a failover. Kept with the request, not in the state."""

    session_id: str = sparse("")
    reply_id: str = sparse("")
    request_id: str = sparse("")
    given: dict[str, Any] = sparse({})
    """What came with the request for hooks and tools."""
    middlewares: tuple[str, ...] = sparse(())
    """Those of the session, beside those that its workers put around every agent."""


HANDLE_INTERRUPT = "longhaul.handle_interrupt"
"""Its answer is `entries.InterruptHandled`."""


class HandleInterrupt(Guest):
    """Say what an agent says whose reply was interrupted."""

    runtime: Runtime
    agent: str
    user_id: str | None = sparse(None)
    reply_id: str
    message: str = sparse("")
    """What was said with the interrupt, and is answered next."""
    tools: tuple[str, ...] = sparse(())
    """Of the calls that were cut short, in their order."""

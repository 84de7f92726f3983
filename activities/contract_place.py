"""Where a session works, as its activities are told."""

from agent.values import Guest, sparse


class Place(Guest):
    """The workspace as recorded, and the session's working directory in it."""

    root: str
    nonce: str
    cwd: str = sparse("")
    """Empty: the root."""
    agent: str = sparse("")
    user_id: str | None = sparse(None)
    session_id: str = sparse("")
    """Whose place it is: a worker finds by it what was offloaded for the session. Empty: nobody's."""
    ruled: tuple[str, ...] = sparse(())
    """Folders that deny and ask rules name, which may be links."""

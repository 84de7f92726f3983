"""What the workflow asks before it works on a reply."""

from activities.contract_place import Place
from activities.contract_runtime import Runtime
from agent.settings import AgentSpec
from agent.values import Guest, sparse


class PrepareReply(Guest):
    spec: AgentSpec
    session_key: str
    """Names the session's own folder where no workspace was asked for."""
    tools_digest: str = sparse("")
    prompt_digest: str = sparse("")
    """Of what the session has recorded: texts that are the same do not come back."""
    place: Place | None = sparse(None)
    """The workspace bound before; it must still be there."""
    request: str = sparse("")
    """The newest request's text, not all of a long one, for skills that it may trigger; `hinted` are shown already."""
    hinted: tuple[str, ...] = sparse(())
    context_tokens: int = sparse(0)
    user_id: str | None = sparse(None)
    user_rules_digest: str = sparse("")
    runtime: Runtime = sparse(Runtime())

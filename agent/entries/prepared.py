"""The entry that begins the work on a reply: what the worker found for it."""

from typing import Literal

from longhaul.agent.entries.entry import Entry
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.budget import Tariff
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.values.spec.heartbeat_timeout import FAST_SECONDS


class Prepared(Entry):
    """What the worker found for this reply. `tools=None`: as before, so their schemas do not cross again."""

    kind: Literal["prepared"] = "prepared"
    behaviour: int
    spec_digest: str
    """Of the system prompt and the tool schemas: what model calls ask for by name."""
    tools: tuple[ToolDescriptor, ...] | None = sparse(None)
    system_prompt: str | None = sparse(None)
    """The agent's own with skills and all that its settings put around it. None: as before, and at first as it stands
    in the agent's settings."""
    prompt_digest: str = sparse("")
    """Of `system_prompt`, when that is given."""
    wrapped: bool = sparse(False)
    """Whether its workers put middlewares around every agent."""
    hooked_interrupts: bool = sparse(False)
    """Whether one of the reply's middlewares has something to say when it is interrupted."""
    hints: tuple[Msg, ...] = sparse(())
    """For the end of the context, behind the request: skills that it triggered, and where things stand."""
    workspace_root: str
    workspace_nonce: str
    """What the marker file in the workspace says: a worker that reads another one sees other files."""
    user_rules: tuple[PermissionRule, ...] | None = sparse(None)
    """Those of the session's user. None: as before."""
    user_rules_digest: str = sparse("")
    no_tool: tuple[str, ...] = sparse(())
    """Tools of the agent's rules, when it begins, and of its user's new ones, that the worker has never heard of."""
    fixed_tokens: int = sparse(0)
    """Of the system prompt and the tool schemas, as this worker counts."""
    indexed: int = sparse(1)
    """Which search attributes the namespace is known to have: 2 = `agent.views.search_attributes` in full. One that
    it lacks would fail a workflow task for ever."""
    context_length: int = sparse(0)
    """Tokens that the model's window holds; 0 = unknown, and nothing is compressed."""
    liveness: float = sparse(FAST_SECONDS)
    """How soon its workers want the death of one of them noticed, in seconds."""
    tariffs: dict[str, Tariff] = sparse({})
    """Of the agent's models, by its names of them, where it has a budget."""

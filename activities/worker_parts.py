"""The parts that all activities of one worker share: caches, tools, folders, and what its operator has set.

Each activity takes it as one value, and beside it what it alone needs. What is not given is as on a worker without
settings: no secrets, no middlewares, no MCP servers.
"""

from dataclasses import dataclass, field

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.context.context_cache import Contexts, Specs
from longhaul.activities.context.tokens import TokenCounter
from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.middlewares.session_middlewares import Wrapping
from longhaul.activities.tools.registry import Toolbox


@dataclass(frozen=True, kw_only=True)
class WorkerParts:
    workspaces: Workspaces
    toolbox: Toolbox = field(default_factory=lambda: Toolbox(()))
    contexts: Contexts = field(default_factory=Contexts)
    specs: Specs = field(default_factory=Specs)
    counter: TokenCounter = field(default_factory=TokenCounter)
    secrets: WorkerSecrets = field(default_factory=WorkerSecrets)
    wrapping: Wrapping = field(default_factory=Wrapping)
    mcp: McpServers = field(default_factory=McpServers)

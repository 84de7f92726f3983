"""A tool has a description for the model, a look at what a call would do, and the call itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longhaul.activities.masker import NO_SECRETS, Masker
from longhaul.agent.permission.call_analysis import CallAnalysis, Confined
from longhaul.agent.plain.errors import BadSetup, LonghaulError
from longhaul.agent.values.conversation.messages import DataBlock, ServerAsked, TextBlock
from longhaul.agent.values.conversation.tools import Effect, Finding, TemporalTarget
from longhaul.agent.values.deadlines import Deadline
from longhaul.agent.values.spec.workspace import Sandbox, Seal
from longhaul.stores.memories.memories import NOBODY, MemoryOwner

if TYPE_CHECKING:
    # It loads Temporal's SDK and all entries of a journal, which a program that only has tools would wait for.
    from longhaul.activities.models.side_model import SideModel


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call works: the workspace, and the session's working directory in it."""

    root: Path
    """Workspace root: absolute, symlinks resolved."""
    cwd: Path
    """The session's working directory, absolute. Bash may have moved it, also out of the root."""
    offloaded: tuple[Path, ...] = ()
    """Folders with the session's offloaded text, links resolved. Only Read, Grep and Glob may open them."""
    ruled: tuple[str, ...] = ()
    """Folders as the session's deny and ask rules write them, absolute or below `~`. Links in them are followed."""
    closed: tuple[tuple[str, str], ...] = ()
    """Tool and pattern of each deny and ask rule about paths. Searches leave out what they match."""
    opened: tuple[Path, ...] = ()
    """Further folders, as the agent names them, in which it works as in the workspace."""
    sandbox: Sandbox = "off"
    sandbox_network: bool | None = None
    """Whether the agent lets sandboxed commands reach the network. The worker may be stricter."""
    seal: Seal | None = None
    """The sandbox for all tools that say where a sandbox finds them."""
    skills: tuple[str, ...] = ()
    """Folders and loaders of skills, as the agent names them."""
    owner: MemoryOwner = NOBODY
    """Owner of the memories that the agent's tools may read and write."""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One run of one call."""

    id: str
    """Id of the call, unique in the session. Use it as an idempotency key."""
    arguments: dict[str, Any]
    """The arguments, valid against the tool's schema."""
    place: Place
    analysis: CallAnalysis
    """The call analysis on which the decision to run is based. If the tool finds a difference, it raises
    `NeedsDecision`."""
    attempt: int = 1
    confined: Confined = ""
    """The sandbox on which the decision to run is based. Without it, the call needs a new decision."""
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Secret values by name, for this call only. Put them into the environment of programs that you start, and nowhere
    else."""
    masker: Masker = field(default=NO_SECRETS, repr=False)
    """Masks secrets in output that is shortened while it arrives. Half of a secret could not be recognized later."""
    connection: str | None = None
    """As in `RunTool`."""
    knowledge_bases: tuple[str, ...] = ()
    """Knowledge bases that the call may search."""
    asked: ServerAsked | None = None
    """Questions of the call's MCP server to a person, with the answers."""
    model: "SideModel | None" = None
    """Model that the call's MCP server may call."""
    snapshot: str = ""
    """As of `ToolReturned`."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The result of a call. The tool itself shortens text output to its own limit."""

    output: str | tuple[TextBlock | DataBlock, ...]
    failed: bool = False
    """The tool ran but failed, as with an exit code or a missing file. The model reads the reason in `output`."""
    metadata: dict[str, Any] = field(default_factory=dict)
    cwd: Path | None = None
    """The session's new working directory, if the call changed it."""


class NeedsDecision(LonghaulError):
    """The world has changed since the call was decided: another working directory, file content or link target. Raise
    it before any effect. `analysis` is the new call analysis; the session then decides again."""

    def __init__(self, analysis: CallAnalysis, reason: str, arguments: str | None = None) -> None:
        """`arguments`: other arguments, as JSON, that the call should run with. None = the decided ones."""
        super().__init__(reason)
        self.analysis = analysis
        self.reason = reason
        self.arguments = arguments


class NeedsInput(Exception):
    """The tool's server has ended the call with a question to a person, and takes it up again with the answer."""

    def __init__(self, asked: ServerAsked) -> None:
        super().__init__(f"the MCP server {asked.server!r} asks a person")
        self.asked = asked


class ToolError(LonghaulError):
    """A mistake of the model, or a failure, in words that the model can act on. It becomes a result of state
    `error`."""


class GivenUp(Exception):
    """The call was under way when what ran it took too long or was lost: part of its work may be done, or all of it."""

    def __init__(self, why: str, *, runs_on: bool = False) -> None:
        """`runs_on`: it is known that it has not ended."""
        super().__init__(why)
        self.runs_on = runs_on


@dataclass(frozen=True, slots=True)
class Found:
    """What a probe or an examination found, in words for the model and for people."""

    finding: Finding
    detail: str = ""


class Tool:
    """A tool with its own behaviour. Subclass it, or use `@tool`."""

    name: str
    description: str
    input_schema: dict[str, Any]
    effect: Effect = Effect.ONCE
    concurrency_safe: bool = False
    read_only: bool = False
    is_external_tool: bool = False
    inside: bool = False
    """The session answers its calls itself (`agent.decisions.session_tools`)."""
    child: bool = False
    """Its calls are tasks of sub-agents, which the session starts (`agent.decisions.subagent_start`)."""
    result_schema: dict[str, Any] | None = None
    """JSON Schema of an external tool's results, as far as `agent.plain.json_schemas` knows it. None = anything."""
    timeout_seconds: float = 600.0
    untrusted: bool = False
    """The results contain untrusted text from others, such as a page or a mail."""
    quick: bool = False
    """The tool only reads, mostly in a moment, asks nothing of its session, and can't crash its worker."""
    sandboxed_from: str = ""
    """Module in which a sandbox finds the tool at the top level, as an instance or a class. Empty: the tool runs in the
    worker."""
    target: TemporalTarget | None = None
    """Your code that the session starts. No worker of Longhaul runs the tool."""
    deadline: Deadline | None = None
    """How long a call may wait for a person or an external system, if the agent's settings do not name the tool."""

    def seconds_for(self, arguments: dict[str, Any]) -> float:
        """Seconds that a call with these arguments may take."""
        return self.timeout_seconds

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        """Find out what permission needs to know, without changing anything. Must not raise for odd arguments."""
        return CallAnalysis(cwd=str(place.cwd), read_only=self.read_only)

    async def run(self, call: ToolCall) -> ToolOutput:
        """Run the call. Raises ToolError, which the model reads, or NeedsDecision; anything else becomes an error
        result.

        Cancellation arrives as `asyncio.CancelledError`; end everything that you started before you leave. Put blocking
        work into `activities.process.threads.in_own_thread`, which notes a thread that could not be ended.
        """
        raise NotImplementedError(f"{type(self).__name__}.run: an external tool is never run here")

    async def probe(self, call: ToolCall) -> Found | Finding:
        """Check whether this call happened after its outcome was lost: `happened`, `did_not` or `unknown`.

        Define it if the world can be asked, best by `call.id`. It only reads, may run several times, and has 20 s. An
        error counts as `unknown`. `call.analysis` contains nothing but the folder.
        """
        return "unknown"

    @property
    def probes(self) -> bool:
        """Whether the tool has a probe of its own."""
        return type(self).probe is not Tool.probe


class ToolSetupError(BadSetup):
    """A mistake in the worker's settings: a tool module can't be loaded, or a tool's name is wrong or taken."""

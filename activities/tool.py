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
    """Where a call works: the workspace and the session's working directory in it."""

    root: Path
    """Workspace root: absolute, symlinks resolved."""
    cwd: Path
    """Working directory of the session, absolute; Bash may have moved it, also out of the root."""
    offloaded: tuple[Path, ...] = ()
    """Folders with what was offloaded for the session, links resolved: open to Read, Grep and Glob, to nobody else."""
    ruled: tuple[str, ...] = ()
    """Folders as the session's deny and ask rules spell them, absolute or below `~`: links in them are followed."""
    closed: tuple[tuple[str, str], ...] = ()
    """Tool and pattern of each deny and ask rule about paths: searches leave out what they match."""
    opened: tuple[Path, ...] = ()
    """Further folders that the agent works in as in the workspace, as it names them."""
    sandbox: Sandbox = "off"
    sandbox_network: bool | None = None
    """What the agent wants around commands; the worker may want more."""
    seal: Seal | None = None
    """The sandbox that all tools work in which say where they are found in it."""
    skills: tuple[str, ...] = ()
    """Folders and loaders of skills, as the agent names them."""
    owner: MemoryOwner = NOBODY
    """Whose memories its tools may read and write."""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One run of one call."""

    id: str
    """Unique in the session: the idempotency key."""
    arguments: dict[str, Any]
    """Valid against the tool's schema."""
    place: Place
    analysis: CallAnalysis
    """What the decision to run was based on. A tool that finds otherwise raises `NeedsDecision`."""
    attempt: int = 1
    confined: Confined = ""
    """The sandbox that the decision to run it rests on; one that can't be had needs another decision."""
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Values by name, for this call alone: into the environment of what it starts, and nowhere else."""
    masker: Masker = field(default=NO_SECRETS, repr=False)
    """For output that is shortened while it comes: half of a secret would not be known again."""
    connection: str | None = None
    """As in `RunTool`."""
    knowledge_bases: tuple[str, ...] = ()
    """That it may search."""
    asked: ServerAsked | None = None
    """What its MCP server has asked a person, with the answers."""
    model: "SideModel | None" = None
    """What its MCP server may have asked."""
    snapshot: str = ""
    """As of `ToolReturned`."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call came to. Text output is cut by the tool itself at its own cap."""

    output: str | tuple[TextBlock | DataBlock, ...]
    failed: bool = False
    """The tool ran and says that it did not work (exit code, no such file); the model reads why in `output`."""
    metadata: dict[str, Any] = field(default_factory=dict)
    cwd: Path | None = None
    """The session's new working directory, when the call moved it."""


class NeedsDecision(LonghaulError):
    """The world is not as it was when the call was decided on (another cwd, file content, link target).

    Raised before any effect; `analysis` are the new findings, and the session decides again.
    """

    def __init__(self, analysis: CallAnalysis, reason: str, arguments: str | None = None) -> None:
        """`arguments`: others, as JSON, with which it is to run; None = those that were decided on."""
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
    """The model's mistake or bad luck, in words that it can act on: becomes a result of state `error`."""


class GivenUp(Exception):
    """The call was under way when what ran it took too long or was lost: part of its work may be done, or all of it."""

    def __init__(self, why: str, *, runs_on: bool = False) -> None:
        """`runs_on`: it is known that it has not ended."""
        super().__init__(why)
        self.runs_on = runs_on


@dataclass(frozen=True, slots=True)
class Found:
    """What a look at the world came to, and what was seen there, for the model and for people."""

    finding: Finding
    detail: str = ""


class Tool:
    """A tool with behaviour of its own. Subclass it, or use `@tool` of `activities.tools.function`."""

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
    """Of an external tool: what its results have to fit, in the words of `agent.plain.json_schemas`; None =
    anything."""
    timeout_seconds: float = 600.0
    untrusted: bool = False
    """Its results are what others wrote: a page, a mail."""
    quick: bool = False
    """It only reads, mostly in a moment, asks nothing of its session, and can't take its worker along."""
    sandboxed_from: str = ""
    """The module in which a sandbox finds it, at the top, as an instance or a class; empty: it runs in the worker."""
    target: TemporalTarget | None = None
    """The session starts this code of the user's, and no worker of Longhaul's runs the tool."""
    deadline: Deadline | None = None
    """How long a call may wait for a person or an outside system, where the agent's settings do not name the tool."""

    def seconds_for(self, arguments: dict[str, Any]) -> float:
        """How long a call with these arguments may take."""
        return self.timeout_seconds

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        """Find out what permission needs to know, without changing anything. Must not raise for odd arguments."""
        return CallAnalysis(cwd=str(place.cwd), read_only=self.read_only)

    async def run(self, call: ToolCall) -> ToolOutput:
        """Do it. Raises ToolError (the model reads it), NeedsDecision, or anything else (becomes an error result).

        Cancellation arrives as `asyncio.CancelledError`; what was started must be dead when it leaves. Blocking work
        belongs into `activities.process.threads.in_own_thread`, which notes a thread that could not be ended.
        """
        raise NotImplementedError(f"{type(self).__name__}.run: an external tool is never run here")

    async def probe(self, call: ToolCall) -> Found | Finding:
        """Look whether this call happened, after its outcome was lost: `happened`, `did_not` or `unknown`.

        Define it where the world can be asked (by `call.id`, best of all). It only reads, is called once or more, and
        has 20 s; what it raises counts as `unknown`. `call.analysis` holds nothing but the folder.
        """
        return "unknown"

    @property
    def probes(self) -> bool:
        """Whether there is a look of its own."""
        return type(self).probe is not Tool.probe


class ToolSetupError(BadSetup):
    """The operator's mistake: a module that can't be loaded, a name that is wrong or taken."""

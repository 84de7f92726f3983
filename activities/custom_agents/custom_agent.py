"""A custom agent is code of the operator's that makes an agent's replies, in the place of a model.

It runs on workers, one step at a time, and never in a session's workflow: what a step asks for is recorded, and the
next step begins the reply again and is given what was recorded. So a custom agent asks its session for all that it
needs of the world, and does the same each time; `activities.custom_agents.custom_agent_registry` looks at its module.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from longhaul.agent.plain.values import canonical_json
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.subagents import AGENT


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call of a tool came to, or the task of another agent, as it is recorded."""

    text: str
    state: str = "success"
    """success, error, denied, interrupted or unknown."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def ok(self) -> bool:
        return self.state == "success"


@dataclass(frozen=True, slots=True)
class CustomAgentCall:
    """Await it, or give it to `CustomAgentSession.together`."""

    tool: str
    arguments: str
    """JSON."""

    def __await__(self) -> Generator["Asked", Any, CallResult]:
        results: tuple[CallResult, ...] = yield (self,)
        return results[0]


@dataclass(frozen=True, slots=True)
class Together:
    calls: tuple[CustomAgentCall, ...]

    def __await__(self) -> Generator["Asked", Any, tuple[CallResult, ...]]:
        results: tuple[CallResult, ...] = yield self.calls
        return results


@dataclass(frozen=True, slots=True)
class Thought:
    prompt: str
    system: str

    def __await__(self) -> Generator["Asked", Any, str]:
        words: str = yield self
        return words


@dataclass(frozen=True, slots=True)
class CustomAgentWords:
    text: str

    def __await__(self) -> Generator["Asked", Any, None]:
        yield self


Asked = tuple[CustomAgentCall, ...] | Thought | CustomAgentWords
"""One step of a reply: what is asked of the session before the code goes on."""


class CustomAgentSession:
    """What a custom agent may ask of its session. Each thing that is awaited is one recorded step."""

    def __init__(
        self,
        heard: tuple[Msg, ...] = (),
        schema: dict[str, Any] | None = None,
        agents: tuple[str, ...] = (),
        config: Mapping[str, bool | int | float | str] | None = None,
    ) -> None:
        self.heard = heard
        """What was said before this request, by people, other agents and the agent itself, oldest first."""
        self.structured_schema = schema
        """The form that the answer has to fit; None = words. A dict that is returned is the answer in that form."""
        self.agents = agents
        """Names of the agents that it may `ask`, in the order of the agent's file."""
        self.config = dict(config or {})
        """`custom_agent_config` of the agent's file."""

    def call(self, tool: str, **arguments: Any) -> CustomAgentCall:
        """Call a tool of the agent's. Permission decides on it as on a call of a model; it may wait for a person."""
        return CustomAgentCall(tool, canonical_json(arguments).decode())

    def ask(self, agent: str, task: str) -> CustomAgentCall:
        """Give a task to one of the agent's sub-agents, which works in a session of its own."""
        return self.call(AGENT, agent=agent, task=task)

    def sleep(self, wait: str) -> CustomAgentCall:
        """Wait for so long, as in `30m` or `2d`; the agent needs the tool `sleep`."""
        return self.call("sleep", **{"for": wait})

    def together(self, *calls: CustomAgentCall) -> Together:
        """Several calls and tasks side by side; their results come in the same order."""
        return Together(calls)

    def think(self, prompt: str, system: str = "") -> Thought:
        """Ask the agent's model: it reads the prompt alone, and has no tools. It is recorded as the agent's thinking.
        `system`: in the place of the agent's own system prompt."""
        return Thought(prompt, system)

    def say(self, text: str) -> CustomAgentWords:
        """Tell whoever reads, before the reply ends."""
        return CustomAgentWords(text)


class CustomAgent:
    """Subclass it under `@custom_agent("name")`, in a module of LONGHAUL_TOOLS, and define `reply`.

    An object is made without arguments for each step, told by `observe` of what was said before, and then asked.
    """

    registered_name: str = ""

    async def reply(self, msg: Msg, session: CustomAgentSession) -> str | Msg | dict[str, Any] | None:
        """The answer to a request: a text, a message, or a value in the form that was asked for."""
        raise NotImplementedError(f"{type(self).__name__} defines no reply")

    async def observe(self, msg: Msg) -> None:
        """Told of each message of people and of other agents before this request; it may be kept in the object."""

    async def handle_interrupt(self, message: str, tools: tuple[str, ...]) -> str:
        """The last words of a reply that was interrupted. `message`: what was said with the interrupt, and is answered
        next; `tools`: of the calls that were cut short. Empty: the agent's settings say what is said."""
        return ""


Kind = TypeVar("Kind", bound=type[CustomAgent])


def custom_agent(name: str) -> Callable[[Kind], Kind]:
    """Above a subclass of CustomAgent: the name by which agents choose it, as in `custom_agent = "router"`."""

    def named(made: Kind) -> Kind:
        made.registered_name = name
        return made

    return named

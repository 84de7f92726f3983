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
    """The recorded result of a tool call, or of a sub-agent's task."""

    text: str
    state: str = "success"
    """`success`, `error`, `denied`, `interrupted` or `unknown`."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def ok(self) -> bool:
        return self.state == "success"


@dataclass(frozen=True, slots=True)
class CustomAgentCall:
    """A call to make. Await it, or pass it to `CustomAgentSession.together`."""

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
    """What a custom agent may ask of its session. Each awaited call is one recorded step."""

    def __init__(
        self,
        heard: tuple[Msg, ...] = (),
        schema: dict[str, Any] | None = None,
        agents: tuple[str, ...] = (),
        config: Mapping[str, bool | int | float | str] | None = None,
    ) -> None:
        self.heard = heard
        """Messages before this request, of people, other agents and the agent itself, the oldest first."""
        self.structured_schema = schema
        """Schema that the answer has to fit; None = text. If `reply` returns a dict, the dict is the answer."""
        self.agents = agents
        """Names of the agents that it may `ask`, in the order of the agent's file."""
        self.config = dict(config or {})
        """`custom_agent_config` of the agent's file."""

    def call(self, tool: str, **arguments: Any) -> CustomAgentCall:
        """Call one of the agent's tools. Permission decides as for a model's call, so the call may wait for a
        person."""
        return CustomAgentCall(tool, canonical_json(arguments).decode())

    def ask(self, agent: str, task: str) -> CustomAgentCall:
        """Give a task to one of the agent's sub-agents, which works in its own session."""
        return self.call(AGENT, agent=agent, task=task)

    def sleep(self, wait: str) -> CustomAgentCall:
        """Sleep for this time, such as `30m` or `2d`. The agent needs the tool `sleep`."""
        return self.call("sleep", **{"for": wait})

    def together(self, *calls: CustomAgentCall) -> Together:
        """Run several calls and tasks at once. Their results come in the same order."""
        return Together(calls)

    def think(self, prompt: str, system: str = "") -> Thought:
        """Call the agent's model. The model reads only the prompt, and has no tools. The answer is recorded as the
        agent's thinking. `system` replaces the agent's system prompt."""
        return Thought(prompt, system)

    def say(self, text: str) -> CustomAgentWords:
        """Show text to the people who follow, before the reply ends."""
        return CustomAgentWords(text)


class CustomAgent:
    """An agent whose replies come from your code. Subclass it under `@custom_agent("name")`, in a module of
    LONGHAUL_TOOLS, and define `reply`. For each step, Longhaul creates an object without arguments, calls `observe` for
    each earlier message, and then calls `reply`."""

    registered_name: str = ""

    async def reply(self, msg: Msg, session: CustomAgentSession) -> str | Msg | dict[str, Any] | None:
        """Return the answer to a request: a text, a message, or a value that fits the schema."""
        raise NotImplementedError(f"{type(self).__name__} defines no reply")

    async def observe(self, msg: Msg) -> None:
        """Called with each message of people and other agents before this request. You may keep it in the object."""

    async def handle_interrupt(self, message: str, tools: tuple[str, ...]) -> str:
        """Return the last words of an interrupted reply. `message`: the text that came with the interrupt; it is
        answered next. `tools`: tools whose calls were cut short. Empty: the agent's settings say the words."""
        return ""


Kind = TypeVar("Kind", bound=type[CustomAgent])


def custom_agent(name: str) -> Callable[[Kind], Kind]:
    """Decorates a subclass of CustomAgent. Agents choose it by this name, as in `custom_agent = "router"`."""

    def named(made: Kind) -> Kind:
        made.registered_name = name
        return made

    return named

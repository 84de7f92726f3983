"""A sub-agent is an agent that another one starts as a session of its own: the bounds, and what each knows of the
other.

A command in the background runs on while its session goes on: the bounds, and what the session knows of it.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, cast

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.budget import LimitName, Raise

AGENT = "Agent"
"""The tool that starts one."""
RUN_PROGRAM, PROGRAM = "RunProgram", "program"
"""The tool that runs a program of the model's, and the custom agent that it starts."""
AGENT_LIST, AGENT_SEND, AGENT_STOP = "AgentList", "AgentSend", "AgentStop"
LEADS_TOOLS = (AGENT, AGENT_LIST, AGENT_SEND, AGENT_STOP)
"""Of an agent that names others."""
LONGEST_WORD_CHARS = 10_000
MOST_WORDS = 20
"""That wait to be passed on to one sub-agent."""
MOST_LEVELS = 3
"""Of agents within agents, below the one that people talk with."""
MOST_AGENTS = 20
"""That one agent may name."""
LONGEST_TASK_CHARS = 30_000
LONGEST_REPORT_CHARS = 40_000
"""Of what a sub-agent says to the one that started it: it crosses two histories."""
MOST_CHILDREN = 256
"""That one reply may start; as many that have ended are remembered, for they count."""

Outcome = Literal["", "success", "error", "interrupted", "lost"]
"""Of a sub-agent; empty while it is at work. `lost`: its session was ended from outside."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Parent(OpenValue):
    """What a sub-agent's session knows of the one that started it; part of the session state."""

    workflow_id: str
    session_id: str
    call_id: str
    """Of the call there that waits for it; here the id of the request."""
    path: tuple[str, ...]
    """Names of the agents above it, the root's first."""
    tainted: str = sparse("")
    """As `AgentState.tainted` was there when it was started."""
    allotted: tuple[LimitName, ...] = sparse(())
    """Limits of which there is put aside what may be spent here."""
    told: bool = sparse(False)
    """It has been told how the task ended."""
    error: str = sparse("")
    """Why it could not be told."""
    ends_at: int = sparse(0)
    """When the task ends, whatever it is doing, in milliseconds since 1970; 0: it has no such time."""
    overdue: bool = sparse(False)
    """That time has come, and has ended it."""
    by_result: bool = sparse(False)
    """This session's workflow returns the report, and closes with the end of the task."""


class Asker(OpenValue):
    """A workflow of an application that waits for the end of a request; part of the session state."""

    workflow_id: str
    request_id: str
    by_result: bool = sparse(False)
    """It hears the answer by what this session's workflow returns, if nothing keeps the session open then."""
    refused: str = sparse("")
    """Why the session did not take the request."""
    error: str = sparse("")
    """Why the answer could not be sent: the workflow has ended."""
    nanos: int = sparse(0)
    """Billionths of a dollar that the session had spent before its reply began; after its end, what the reply cost."""


BUSY = "the session is busy"
"""As `Asker.refused`, of a workflow that did not want to wait for its turn."""
KEPT_ASKERS = 50
"""Askers that could not be told and are remembered."""


class Child(OpenValue):
    """What a session knows of a sub-agent that it has started."""

    call_id: str
    agent: str
    session_id: str
    workflow_id: str = sparse("")
    reply_id: str = sparse("")
    """Of the reply here that started it."""
    at: int = sparse(0)
    """When it was started, in milliseconds since 1970."""
    outcome: Outcome = sparse("")
    stopped: bool = sparse(False)
    """It has been told to stop."""
    paused: bool = sparse(False)
    background: bool = sparse(False)
    """Its call was answered at once: what it says last comes as a message."""
    unwanted: bool = sparse(False)
    """Of one in the background: it is to be told to stop."""
    stopped_by: str = sparse("")
    """Who asked for that from outside."""
    words: dict[str, str] = sparse({})
    """Said to it, and not passed on yet: by the number of the entry."""
    raises: dict[str, Raise] = sparse({})
    """Of its budget, that it has not been told: by the number of the entry."""
    by_result: bool = sparse(False)
    """As `Parent.by_result` was when it was started; its report may come by operation all the same."""

    @property
    def is_heard(self) -> bool:
        """Whether the model is told of its end by a message: not where the model itself, or the end of its reply, has
        stopped it."""
        return self.background and (not self.stopped or bool(self.stopped_by))


def named_by_keys(agents: object) -> object:
    """Agents as written under `[agents.NAME]`, each with that name. Raises ValueError for a name that can't be."""
    if not isinstance(agents, Mapping):
        return agents
    found: dict[str, Any] = {}
    for name, given in cast(Mapping[str, Any], agents).items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name[:100]!r} can't be an agent's name: it takes letters, digits, `.`, `_` and `-`")
        own = given.get("name", name) if isinstance(given, dict) else getattr(given, "name", name)
        if own != name:
            raise ValueError(f"{name}.name: it is {name!r} by the key that it stands under, and not {own!r}")
        found[name] = {**given, "name": name} if isinstance(given, dict) else given
    return found


def agents_text(described: Mapping[str, str], most: int, levels_left: int) -> str:
    """What the model reads of the agents that it may start, and of the bounds."""
    lines = [f"- {name}: {text or 'no description'}" for name, text in described.items()]
    below = "They start none themselves." if levels_left == 0 else f"Levels of agents below them: {levels_left}."
    bounds = f"At most {most} can be started in one reply. {below}"
    return "\n".join(("", "The agents:", *lines, bounds))


BASH, BASH_OUTPUT, KILL_SHELL = "Bash", "BashOutput", "KillShell"
MOST_COMMANDS = 8
"""That run in the background of one session at a time: each holds a place for calls on its worker."""
MOST_ON_WORKER = 24
"""Of all sessions together. Each holds one of the 100 places for activities that a worker has, which model calls and
other tools need too: without this bound a dozen sessions would take all of them, and nobody could go on."""
LONGEST_SECONDS = 24 * 3_600
"""Then it is killed."""
LONGEST_UNASKED_SECONDS = 600
"""Of one that was proven to be harmless: nobody has agreed that it holds its place for a day."""
KEPT_COMMANDS = 50
"""That have ended and are remembered."""

SOMEBODY = "somebody"
"""Whoever has asked for a stop and gave no name."""

Fate = Literal["", "ended", "stopped", "unknown"]
"""Empty while it runs. `unknown`: nobody could see how it ended, or whether it has."""


class BackgroundCommand(OpenValue):
    """What a session knows of a command that it has started in the background."""

    call_id: str
    shown: str
    """The beginning of it, as the journal shows it."""
    at: int = sparse(0)
    """When it was started, in milliseconds since 1970."""
    fate: Fate = sparse("")
    unwanted: bool = sparse(False)
    """It is to stop."""
    stopped_by: str = sparse("")
    """Who asked for that from outside."""

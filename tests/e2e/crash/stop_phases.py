"""The phases of a session in which its worker may be asked to stop, and what is told of each later.

A list of activities and of the kinds of calls: an activity that has no line here fails a test.
"""

from dataclasses import dataclass, field
from typing import Any

from longhaul.activities import contract as world
from longhaul.activities.process.sandbox import bwrap_problem
from longhaul.agent.values.conversation.messages import FinishedReason, ToolResultState
from longhaul.agent.values.permission import PermissionContext
from tests.e2e.crash.crash_stage import bash, call, says
from tests.e2e.crash.test_compression import ANSWERS, COMPRESS, SLOW, SMALL, summary
from tests.e2e.processes import a_while
from tests.workflows.operations import WORDY

UNKNOWN, SUCCESS = ToolResultState.UNKNOWN, ToolResultState.SUCCESS
DONE = says("all done")
SLEEP = a_while(91)
"""Of commands: no other process says so."""
STUBBORN = f"trap '' TERM; (trap '' TERM; setsid sleep {SLEEP} & wait) & sleep {SLEEP}"


@dataclass(frozen=True)
class Phase:
    """Where a session stands when its worker is asked to stop, and what is told of it later."""

    activity: str
    script: tuple[dict[str, Any], ...] = (DONE,)
    at: str = ""
    """The gate; empty: it has none, and runs for longer than anybody waits."""
    results: dict[str, ToolResultState] = field(default_factory=dict[str, ToolResultState])
    marked: bool | None = False
    """Whether the session records that its worker has left; None: only if it had gone its own way before."""
    agent: dict[str, Any] = field(default_factory=dict[str, Any])
    reason: FinishedReason = FinishedReason.COMPLETED
    shared: bool = False
    """Its gate is no session's."""
    opens_late: bool = False
    """Its gate is closed by the session itself."""


def calls(tool: str, **arguments: Any) -> tuple[dict[str, Any], ...]:
    return says("", {"id": tool, "name": tool, "input": arguments or {"name": tool}}), DONE


def commands(command: str, **further: Any) -> tuple[dict[str, Any], ...]:
    one = bash(command)
    return says("", {**one, "input": {**one["input"], **further}}), DONE, says("Heard.")


SCOUT = {"tools": ["look"], "stuck": {"enabled": False}, "permission": {"mode": "bypass"}}
TASK = {"agent": "scout", "task": "look"}

SEALED = (
    {}
    if bwrap_problem()
    else {
        "a command in a sandbox": Phase(
            "Bash", commands(STUBBORN), "", {"Bash": UNKNOWN}, marked=True, agent={"workspace": {"place": "sandbox"}}
        )
    }
)
OFFLOADS = {"offloader": "tests.e2e.crash.stop_parts:GatedOffloads"}

PHASES = {
    "streaming": Phase(world.CALL_MODEL, (says("Slowly. " * 99, delay_ms=500, chunk_chars=1),), marked=True),
    "reading": Phase("look", calls("look"), "look.before", {"look": SUCCESS}, marked=True),
    "reading along": Phase("glance", calls("glance"), "glance.before", {"glance": SUCCESS}, marked=None),
    "reading in the task": Phase(
        "glance",
        calls("glance"),
        "glance.before",
        {"glance": SUCCESS},
        marked=None,
        agent={"permission": {"mode": "bypass", "rules": WORDY}},
    ),
    "writing": Phase("put", calls("put"), "put.before", {"put": SUCCESS}, marked=True),
    "once": Phase("send", calls("send"), "send.after", {"send": UNKNOWN}, marked=True),
    "once on its host": Phase(
        "send",
        calls("send"),
        "send.after",
        {"send": UNKNOWN},
        marked=True,
        agent={"workspace": {"place": "local", "host": "den"}},
    ),
    "once in a thread": Phase("plain", calls("plain"), "plain", {"plain": UNKNOWN}, marked=True),
    "a command": Phase("Bash", commands(STUBBORN), "", {"Bash": UNKNOWN}, marked=True),
    "in the background": Phase("Bash", commands(STUBBORN, run_in_background=True), "", {"Bash": SUCCESS}),
    "an MCP server": Phase(
        "mcp__harbour__slow",
        calls("mcp__harbour__slow", path="/dev/null"),
        "",
        {"mcp__harbour__slow": UNKNOWN},
        marked=True,
        agent={"mcps": ({"name": "harbour"},)},
    ),
    "an MCP server by HTTP": Phase(
        "mcp__pier__slow",
        calls("mcp__pier__slow", path="/dev/null"),
        "",
        {"mcp__pier__slow": UNKNOWN},
        marked=True,
        agent={"mcps": ({"name": "pier"},)},
    ),
    **SEALED,
    "a sub-agent": Phase(
        "look", calls("Agent", **TASK), "look.before", {"Agent": SUCCESS}, agent={"agents": {"scout": SCOUT}}
    ),
    "a sub-agent in the background": Phase(
        "look",
        (*calls("Agent", **TASK, run_in_background=True), says("Heard.")),
        "look.before",
        {"Agent": SUCCESS},
        agent={"agents": {"scout": SCOUT}},
    ),
    "waiting for a person": Phase("", calls("send"), "", {"send": SUCCESS}, agent={"permission": PermissionContext()}),
    "preparing": Phase(world.PREPARE_REPLY, at="prepare"),
    "beginning": Phase(world.RESTORE, at="restore"),
    "saving": Phase(world.CHECKPOINT, calls("look"), "checkpoint", {"look": SUCCESS}),
    "looking again": Phase(
        world.EXAMINE_CALLS,
        (says("", bash("mkdir -p loft hold; touch hold/look.examine; cd loft"), call("look")), DONE),
        "look.examine",
        {"Bash": SUCCESS, "look": SUCCESS},
        opens_late=True,
    ),
    "interrupted": Phase(
        world.HANDLE_INTERRUPT,
        calls("send"),
        "interrupt",
        {"send": ToolResultState.INTERRUPTED},
        reason=FinishedReason.INTERRUPTED,
    ),
    "finding out": Phase(world.PROBE_CALL, calls("doubted"), "probe", {"doubted": UNKNOWN}),
    "taking a result in": Phase(
        world.TAKE_RESULT,
        calls("courier", parcel="oil"),
        "taken",
        {"courier": SUCCESS},
        agent=OFFLOADS,
    ),
    "remembering": Phase(
        world.RECORD_MEMORY, at="memory", agent={"long_term_memory_mode": "static_control"}, shared=True
    ),
    "compressing": Phase(COMPRESS, (*map(says, ANSWERS), SLOW), marked=True, agent={"model_config": SMALL}),
    "keeping what leaves the context": Phase(
        COMPRESS, (*map(says, ANSWERS), summary(0)), "context", marked=None, agent={"model_config": SMALL, **OFFLOADS}
    ),
}
QUICK = {
    world.AWAIT_COMMAND: "it is a test of its own",
    world.VERIFY_DECISIONS: "it computes",
    world.TELL_ENVIRONMENT: "it looks at its own process",
    world.GREET_HOST: "it says that it is there",
    world.HEAR_CHILD: "it asks the server, once",
    world.REQUEST: "it sends a request that is known by its id",
    world.TELL_MEMBER: "it sends an operation that is known by its id",
}
"""Those that have no time to be cut short in, and are made again like any other: each twice is as good as once."""

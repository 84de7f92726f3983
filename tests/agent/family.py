"""Plays a session with sub-agents, or a sub-agent, in memory: what it begins, passes on and reports is kept."""

from dataclasses import dataclass, field
from typing import Any

from longhaul.agent import entries as e
from longhaul.agent.decisions.subagent_start import Beginning, beginning, started
from longhaul.agent.journal import Journal
from longhaul.agent.operations.bodies import ChildReport
from longhaul.agent.steps import Act, Report, Step, Tell
from longhaul.agent.values.conversation.messages import ContentBlock, ToolCallBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.subagents import Parent
from longhaul.agent.views.session_views import report
from tests.agent.play import SPEC, TOOLS, Play

AGENT_TOOL = ToolDescriptor(name="Agent", child=True, read_only=True, concurrency_safe=True, effect=Effect.READ)
GLAZIER = AgentSpec(name="glazier", system_prompt="You set panes.", description="sets panes")
TILER = AgentSpec(name="tiler", description="lays tiles")
HOUSE = SPEC.model_copy(update={"agents": {"glazier": GLAZIER, "tiler": TILER}, "max_children": 3})
ABOVE = Parent(workflow_id="wall-1", session_id="hall", call_id="t1", path=("master",))


def tasks(*pairs: str) -> list[ContentBlock]:
    """`tasks("a glazier", "b tiler")`: two tasks, by call id and agent."""
    split = (pair.split(" ") for pair in pairs)
    return [
        ToolCallBlock(id=call_id, name="Agent", input=f'{{"agent": "{agent}", "task": "do {call_id}"}}')
        for call_id, agent in split
    ]


@dataclass
class Family(Play):
    tools: tuple[ToolDescriptor, ...] = (*TOOLS, AGENT_TOOL)
    spec: AgentSpec = HOUSE
    parent: Parent | None = None
    started: dict[str, Beginning] = field(default_factory=dict)
    """Sub-agents by call id."""
    passed_on: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    reports: list[ChildReport | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        opened = e.SessionOpened(
            seq=1, at=self.now, session_id="wall-7", user_id="ana", spec=self.spec, parent=self.parent
        )
        self.journal = Journal.of([opened])
        self.journal.incarnation.restored = not self.keeps

    starting: bool = False
    """Sub-agents that are started stay running: nobody knows yet whether their sessions are there."""

    def decided(self) -> Step:
        """What concerns the family is done at once."""
        step = super().decided()
        if isinstance(step, Tell | Report):
            self._speak(step)
            return step
        if not isinstance(step, Act) or self.starting:
            return step
        tasks = [call_id for call_id in step.call_ids if self.journal.calls.names[call_id] == "Agent"]
        for call_id in tasks:
            self.confirm_start(call_id)
        return Act(tuple(call_id for call_id in step.call_ids if call_id not in tasks))

    def confirm_start(self, call_id: str) -> None:
        call = self.journal.current.calls[call_id]
        self.started[call_id] = beginning(self.journal, call, "longhaul/mason/ana/wall-7")
        for entry in started(self.journal, self.started[call_id].child):
            self.write(entry)

    def _speak(self, step: Tell | Report) -> None:
        if isinstance(step, Tell):
            self.passed_on.append((step.operation, step.call_ids))
            self.write(e.ChildrenTold(operation=step.operation, call_ids=step.call_ids, through=self.journal.seq))
        else:
            self.reports.append(report(self.journal))
            self.write(e.ParentTold())

    def hear_of(self, call_id: str, output: str, state: str = "success", **more: Any) -> dict[str, Any] | str:
        """What the sub-agent with this task says of its end."""
        session = f"wall-7.{call_id}"
        body = {"call_id": call_id, "session_id": session, "state": state, "output": output, **more}
        return self.tell("child_reported", body)

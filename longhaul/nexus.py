"""Agents as a Nexus service: workflows of other namespaces, teams and languages `ask` them, `say` something to their
sessions, see which calls are `waiting`, and `decide` on them.

A worker of the application offers the agents that it names. A caller chooses among them, and can't bring another one.
`ask` is an asynchronous operation: a workflow of the application asks the agent, for weeks if need be. The others are
answered at once, by the application's client.
"""

from collections.abc import Awaitable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import nexusrpc
from nexusrpc.handler import StartOperationContext, service_handler, sync_operation
from temporalio import nexus, workflow
from temporalio.common import WorkflowIDConflictPolicy

with workflow.unsafe.imports_passed_through():
    from longhaul.agent.plain.errors import LonghaulError
    from longhaul.agent.plain.text import did_you_mean
    from longhaul.agent.values.spec.agent_spec import AgentSpec
    from longhaul.workflow import AskOptions, AskResult, ask

if TYPE_CHECKING:
    from longhaul.starter.client.session import Session
    from longhaul.starter.settings import Settings

Answered = TypeVar("Answered")


@dataclass
class AgentQuestion:
    """What an agent is asked."""

    agent: str
    text: str
    session: str = ""
    """Empty: a new session of the question's own."""
    user: str | None = None
    structured: dict[str, Any] | None = None
    """JSON Schema of an object that the answer has to fit."""
    timeout_seconds: float | None = None
    """After it the agent is interrupted; None: never."""
    when_busy: Literal["queue", "refuse"] = "queue"
    """What to do where the session makes a reply for somebody else."""


@dataclass
class AgentAnswer:
    """How the agent's reply has ended: `longhaul.workflow.AskResult`, as JSON."""

    state: str
    """success, error, interrupted, timeout, lost or busy."""
    words: str
    value: Any
    session: str
    input_tokens: int
    output_tokens: int
    cost: float | None
    unknown: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Tool calls of which nobody knows yet whether they happened."""


@dataclass
class AgentMessage:
    """Something to say to a session."""

    agent: str
    session: str
    text: str
    user: str | None = None
    when: Literal["queue", "now", "interrupt"] = "queue"
    """While the agent makes a reply: as its next request, within that reply, or in its place."""


@dataclass
class SessionName:
    agent: str
    session: str
    user: str | None = None


@dataclass
class AgentDecision:
    """A decision on a call that waits for a person."""

    agent: str
    session: str
    call_id: str
    allow: bool
    approver: str
    """Who has decided, in the caller's words."""
    digest: str = ""
    """From `waiting`: the decision counts only for what was shown then."""
    reason: str = ""
    user: str | None = None


@nexusrpc.service(name="Agents")
class AgentService:
    """The operations; callers of this language name them by this class, others by their names."""

    ask: nexusrpc.Operation[AgentQuestion, AgentAnswer]
    say: nexusrpc.Operation[AgentMessage, str]
    """Returns the id of the reply."""
    waiting: nexusrpc.Operation[SessionName, list[dict[str, Any]]]
    """The calls of a session that wait for somebody, as `Session.pending` has them."""
    decide: nexusrpc.Operation[AgentDecision, str]
    """Returns `1 of 2` for an approval that another person's has to follow, else nothing."""


@workflow.defn(name="AgentAsk")
class AgentAsk:
    """One question of a caller's, asked in the application's namespace. Register it on the worker of the service."""

    @workflow.run
    async def run(self, agent: dict[str, Any], question: AgentQuestion) -> AgentAnswer:
        seconds = question.timeout_seconds
        options: AskOptions = {"user": question.user, "when_busy": question.when_busy}
        if question.session:
            options["session"] = question.session
        if seconds is not None:
            options["timeout"] = timedelta(seconds=seconds)
        spec = AgentSpec.model_validate(agent)
        found: AskResult[Any] = await ask(spec, question.text, structured=question.structured, **options)
        unknown = [asdict(each) for each in found.unknown]
        return AgentAnswer(
            state=found.state,
            words=found.words,
            value=found.value,
            session=found.session,
            input_tokens=found.input_tokens,
            output_tokens=found.output_tokens,
            cost=found.cost,
            unknown=unknown,
        )


@service_handler(service=AgentService)
class AgentServiceHandler:
    """Offers these agents on a worker: `nexus_service_handlers=[AgentServiceHandler(REFUNDS)]`, `workflows=[AgentAsk]`.

    The client or the worker has the LonghaulPlugin. Whoever may call the endpoint may ask these agents as any user and
    decide as anybody, except where decisions have to be signed: let in only namespaces that you trust.
    """

    def __init__(self, *agents: AgentSpec, settings: "Settings | None" = None) -> None:
        """`settings`: those of the agents' worker; by default the LONGHAUL_… variables."""
        self._agents, self._settings = {agent.name: agent for agent in agents}, settings

    @nexus.workflow_run_operation
    async def ask(
        self, ctx: nexus.WorkflowRunOperationContext, question: AgentQuestion
    ) -> nexus.WorkflowHandle[AgentAnswer]:
        """Asked again with the same request id it is the same question."""
        agent = self._agent(question.agent).model_dump(mode="json")
        return await ctx.start_workflow(
            AgentAsk.run,
            args=[agent, question],
            id=f"agent-ask-{ctx.request_id}",
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )

    @sync_operation
    async def say(self, ctx: StartOperationContext, message: AgentMessage) -> str:
        session = self._session(message.agent, message.session, message.user)
        return await _answered(session.submit(message.text, when=message.when, request_id=ctx.request_id))

    @sync_operation
    async def waiting(self, ctx: StartOperationContext, name: SessionName) -> list[dict[str, Any]]:
        calls = await _answered(self._session(name.agent, name.session, name.user).pending())
        return [call.model_dump(mode="json") for call in calls]

    @sync_operation
    async def decide(self, ctx: StartOperationContext, decision: AgentDecision) -> str:
        said: dict[str, Any] = {"call_id": decision.call_id, "reason": decision.reason}
        said["decision"] = "allow" if decision.allow else "deny"
        said |= {"digest": decision.digest} if decision.digest else {}
        session = self._session(decision.agent, decision.session, decision.user)
        counts = await _answered(session.decide([decision.call_id], [said], decision.approver))
        return counts.get(decision.call_id, "")

    def _agent(self, name: str) -> AgentSpec:
        if name not in self._agents:
            raise _bad(f"agent: this service has no agent {name!r}; {did_you_mean(name, self._agents, 'it has')}")
        return self._agents[name]

    def _session(self, agent: str, name: str, user: str | None) -> "Session":
        from longhaul.starter.client.client import Longhaul  # noqa: PLC0415  no workflow's sandbox has to load it

        return Longhaul(nexus.client(), self._settings).session(name, user=user, agent=self._agent(agent))


async def _answered(work: Awaitable[Answered]) -> Answered:
    """What a session refuses is the caller's to correct: it is not tried again."""
    try:
        return await work
    except LonghaulError as error:
        raise _bad(str(error)) from error


def _bad(why: str) -> nexusrpc.HandlerError:
    return nexusrpc.HandlerError(why, type=nexusrpc.HandlerErrorType.BAD_REQUEST)

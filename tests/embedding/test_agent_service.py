"""Agents as a Nexus service: a workflow of another namespace asks them, speaks to sessions and decides on calls."""

import asyncio
import json
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.service import RPCError
from temporalio.worker import Worker

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.nexus import AgentAsk, AgentServiceHandler
from longhaul.starter.dev_server.processes import bound_to_parent
from tests.embedding.conftest import Application
from tests.embedding.nexus_callers import Call, Caller
from tests.limits import SURE_SECONDS
from tests.workflows.operations import calls, until
from tests.workflows.workers.test_nexus_tools import NAMESPACE, temporal_server

__all__ = ["temporal_server"]

pytestmark = pytest.mark.server

GO_CALLER = Path(__file__).parent / "go_caller"
SEND = calls("send", to="Ana")
FORM = {"type": "object", "required": ["late"], "properties": {"late": {"type": "integer"}}}


@dataclass
class Team:
    """Another team, with a namespace of its own and the name of an endpoint."""

    client: Client
    queue: str
    endpoint: str

    async def begin(self, operation: str, **given: Any) -> WorkflowHandle[Any, Any]:
        call = Call(self.endpoint, operation, given)
        return await self.client.start_workflow(Caller.run, call, id=uuid4().hex, task_queue=self.queue)

    async def call(self, operation: str, **given: Any) -> Any:
        async with asyncio.timeout(SURE_SECONDS):
            return await (await self.begin(operation, **given)).result()

    async def refused(self, operation: str, **given: Any) -> str:
        with pytest.raises(WorkflowFailureError) as failure:
            await self.call(operation, **given)
        cause: BaseException | None = failure.value
        while getattr(cause, "cause", None) is not None:
            cause = cause.cause  # type: ignore[union-attr]
        return str(cause)


@asynccontextmanager
async def offered(application: Application, *lines: dict[str, Any], **spec: Any) -> AsyncIterator[Team]:
    """A team that may call the application's agent, which says these lines."""
    agent = AgentSpec.model_validate(application.agent(*lines, **spec))
    endpoint = f"agents-{uuid4().hex[:6]}"
    target = EndpointTarget(worker=EndpointTarget.Worker(namespace="default", task_queue=application.queue))
    team = await Client.connect(application.address, namespace=NAMESPACE)
    queue, service = f"{application.name}-team", AgentServiceHandler(agent, settings=application.settings)
    async with application.running(AgentAsk, nexus_service_handlers=[service]) as client:
        request = CreateNexusEndpointRequest(spec=EndpointSpec(name=endpoint, target=target))
        await client.operator_service.create_nexus_endpoint(request)

        async def polls() -> bool:
            try:
                worker = Worker(team, task_queue=queue, workflows=[Caller])
                async with worker:
                    return True
            except RPCError:  # the namespace may be a moment old
                return False

        await until(polls)
        async with Worker(team, task_queue=queue, workflows=[Caller]):
            yield Team(team, queue, endpoint)


@pytest.mark.proves("X23")
async def test_another_namespace_asks_an_agent_and_gets_its_answer(application: Application) -> None:
    async with offered(application, {"text": "Three orders are late."}) as team:
        answer = await team.call("ask", agent="clerk", text="How many are late?")
    assert (answer["state"], answer["words"]) == ("success", "Three orders are late.")


async def test_an_answer_comes_in_the_form_that_was_asked_for(application: Application) -> None:
    async with offered(application, calls("generate_response", late=3), {"text": "Done."}) as team:
        answer = await team.call("ask", agent="clerk", text="How many are late?", structured=FORM)
    assert (answer["state"], answer["value"]) == ("success", {"late": 3})


async def test_another_namespace_decides_on_the_call_that_it_was_shown(application: Application) -> None:
    case: dict[str, Any] = {"agent": "clerk", "session": application.case}
    async with offered(application, SEND, {"text": "Sent."}) as team:
        asking = await team.begin("ask", text="Write to Ana", **case)
        waiting: list[dict[str, Any]] = []

        async def waits() -> bool:
            nonlocal waiting
            try:
                waiting = await team.call("waiting", **case)
            except WorkflowFailureError:  # the session may not be there yet
                return False
            return len(waiting) > 0

        await until(waits)
        (call,) = waiting
        decision = {**case, "call_id": call["call_id"], "allow": True, "approver": "ana"}
        stale = await team.refused("decide", digest=f"{call['digest']}x", **decision)
        await team.call("decide", digest=call["digest"], **decision)
        answer = await asking.result()
    assert "digest" in stale or "changed" in stale
    assert (answer["state"], answer["words"]) == ("success", "Sent.")


async def test_another_namespace_speaks_to_a_session(application: Application) -> None:
    case: dict[str, Any] = {"agent": "clerk", "session": application.case}
    async with offered(application, {"text": "Noted."}) as team:
        reply = await team.call("say", text="The address is new", **case)
        session = application.session(await application.client(), application.case)
        said = await session.wait(reply)
    assert said.get_text_content() == "Noted."


async def test_an_agent_that_is_not_offered_is_refused_by_name(application: Application) -> None:
    async with offered(application, {"text": "Hi."}) as team:
        said = await team.refused("ask", agent="clark", text="Hi")
    assert "no agent 'clark'; did you mean 'clerk'?" in said


async def test_a_caller_that_is_cancelled_interrupts_the_agent(application: Application) -> None:
    case: dict[str, Any] = {"agent": "clerk", "session": application.case}
    async with offered(application, SEND, {"text": "Sent."}) as team:
        asking = await team.begin("ask", text="Write to Ana", **case)

        async def waits() -> bool:
            try:
                return len(await team.call("waiting", **case)) > 0
            except WorkflowFailureError:
                return False

        await until(waits)
        await asking.cancel()
        with pytest.raises(WorkflowFailureError):
            await asking.result()
        assert await team.call("waiting", **case) == []


@pytest.mark.proves("X23")
@pytest.mark.chaos
async def test_a_workflow_in_go_asks_an_agent(application: Application, tmp_path: Path) -> None:
    """Go's SDK is compiled for it once, which takes minutes."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    program, question = tmp_path / "caller", {"agent": "clerk", "text": "How many are late?"}
    await output_of(go, "build", "-o", str(program), ".", cwd=GO_CALLER)
    async with offered(application, {"text": "Three orders are late."}) as team:
        said = await output_of(str(program), application.address, NAMESPACE, team.endpoint, "ask", json.dumps(question))
    answer = json.loads(next(line for line in said.splitlines() if line.startswith("{")))  # Go's SDK logs around it
    assert (answer["state"], answer["words"]) == ("success", "Three orders are late.")


async def output_of(*command: str, cwd: Path | None = None) -> str:
    process = await asyncio.create_subprocess_exec(*bound_to_parent(command), cwd=cwd, stdout=PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode()

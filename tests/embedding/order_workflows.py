"""Workflows of an application, in a file that its worker's sandbox can load."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from temporalio import workflow
from temporalio.common import RawValue

from longhaul import AgentSpec, Budget
from longhaul.workflow import AskResult, ask, session, start


@workflow.defn
class Greeting:
    @workflow.run
    async def run(self, name: str) -> str:
        return f"Hello {name}, from {'a sandbox' if workflow.unsafe.in_sandbox() else 'nowhere'}"


class Decision(BaseModel):
    refund: bool
    amount: int


@dataclass
class Order:
    """What an agent is asked about it."""

    agent: dict[str, Any]
    """Fields of its AgentSpec."""
    text: str = "Check order 17"
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    seconds: float = 0
    """The ask's timeout; 0: none."""
    max_tokens: int = 0
    wants_decision: bool = False
    task_queue: str = ""
    more: int = 0
    """Further asks at the same time."""


def options_of(order: Order) -> dict[str, Any]:
    timeout = {"timeout": timedelta(seconds=order.seconds)} if order.seconds else {}
    budget = {"budget": Budget(max_tokens=order.max_tokens, on_exhaustion="stop")} if order.max_tokens else {}
    queue = {"task_queue": order.task_queue} if order.task_queue else {}
    return {**order.options, **timeout, **budget, **queue}


def agent_of(order: Order) -> AgentSpec:
    return AgentSpec.model_validate(order.agent)


@workflow.defn
class OrderWorkflow:
    """Asks once, and returns how that ended."""

    @workflow.init
    def __init__(self, order: Order) -> None:
        self.order = order

    @workflow.run
    async def run(self, order: Order) -> AskResult[Any]:
        if order.wants_decision:
            found = await ask(agent_of(order), order.text, structured=Decision, **options_of(order))
            assert found.value is None or isinstance(found.value, Decision)
            return found
        return await ask(agent_of(order), order.text, **options_of(order))

    @workflow.signal
    async def address_changed(self, new: str) -> None:
        await self._session.say(f"The address is now {new}", when="now")

    @workflow.signal
    async def stop(self, why: str) -> None:
        await self._session.interrupt(why or None)

    @workflow.signal
    async def allowed(self, call_id: str) -> None:
        await self._session.decide(call_id, allow=True, approver="ana")

    @workflow.update
    async def said(self, text: str, name: str) -> bool:
        return await session(agent_of(self.order), name).say(text)

    @property
    def _session(self) -> Any:
        return session(agent_of(self.order), self.order.options["session"], user=self.order.options.get("user"))


@workflow.defn
class ManyOrders:
    """Asks many agents side by side; returns their states and words."""

    @workflow.run
    async def run(self, order: Order) -> list[str]:
        asked = [await start(agent_of(order), f"Check order {number}") for number in range(order.more)]
        found = await asyncio.gather(*(each.result() for each in asked))
        return [f"{each.state}: {each.words}" for each in found]


@workflow.defn
class PatientOrder:
    """Begins an ask in its first run and hears of it in its second."""

    @workflow.run
    async def run(self, order: Order, runs: int) -> str:
        asked = await start(agent_of(order), order.text, name="check", **options_of(order))
        if runs:
            workflow.continue_as_new(args=[order, runs - 1])
        return f"{(await asked.result()).words}"


@workflow.defn
class Careless:
    """Asks for what can't be asked for."""

    @workflow.run
    async def run(self, agent: Any, options: dict[str, Any]) -> str:
        given = AgentSpec.model_validate(agent) if isinstance(agent, dict) else agent
        text = options.pop("text", "Go")
        return (await ask(given, text, **options)).words


@workflow.defn(dynamic=True)
class Whatever:
    """Of an application that has a dynamic workflow; a worker can have no second one."""

    @workflow.run
    async def run(self, arguments: Sequence[RawValue]) -> str:
        return f"a dynamic workflow, asked for {workflow.info().workflow_type}"

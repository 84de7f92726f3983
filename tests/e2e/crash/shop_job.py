"""The shop of `examples/orders` as a process of its own, and complaints that are judged by what it has really paid.

`python -m tests.e2e.crash.shop_job` does as `python -m examples.orders.workers`: one process with the workers of the
shop's workflow and activities, and with the agents' worker by the plugin. It writes down each payment.
"""

import asyncio
import base64
import json
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError
from temporalio.worker import Replayer

from examples.orders import activities
from examples.orders.workers import CONVERTER, connect, working
from examples.orders.workflows import REFUNDS, Decision, Order, OrderWorkflow
from longhaul import Longhaul, LonghaulPlugin, Session, activity_tool
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState
from longhaul.starter.client.reading.queries import SILENCES, NoSession
from longhaul.starter.client.wire import Refused
from longhaul.starter.connection.connect import Unreachable
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.replay import replay_failure, replayer
from longhaul.testing import calls
from longhaul.worker import READY
from tests.e2e.crash.crash_full import UNKNOWN, Verdict, insisting
from tests.e2e.crash.crash_stage import assert_well_formed
from tests.e2e.processes import WorkerSettings

LEDGER, KEY = "SHOP_LEDGER", "ORDERS_KEY"
CENTS = 2400
ANSWER = Decision(refunded_cents=CENTS, answer="You get your money back.")
SAYS = (
    calls("look_up", order="17"),
    calls("issue_refund", order="17", cents=CENTS),
    calls("generate_response", **ANSWER.model_dump()),
)
APPROVERS = ("ana", "bo")

look_up = activities.look_up
REFUND = activity_tool(activities.issue_refund, queue="payments", timeout=timedelta(seconds=20))
"""By default the server waits ten minutes for an activity without heartbeats whose worker was killed."""


class PaidInFile(dict[str, int]):
    """The payment service: what it has paid outlives the shop's process. It pays once for a key."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def __setitem__(self, key: str, cents: int) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "cents": cents}) + "\n")


async def main() -> None:
    activities.PAID = PaidInFile(Path(os.environ[LEDGER]))
    async with working(await connect()):
        print(READY, flush=True)
        await asyncio.Event().wait()


@dataclass(frozen=True)
class Shop:
    """Its client and its folder, for workers that come one after the other."""

    app: Longhaul
    client: Client
    address: str
    directory: Path

    @classmethod
    @asynccontextmanager
    async def on(cls, address: str, directory: Path) -> AsyncIterator["Shop"]:
        os.environ.setdefault(KEY, base64.b64encode(os.urandom(32)).decode())
        settings = Settings(data_dir=directory)
        client = await connect(address, LonghaulPlugin(settings, host=False))
        async with Longhaul.connect(client=client, settings=settings) as app:
            yield cls(app, client, address, directory)

    def worker(self) -> WorkerSettings:
        script = self.directory / "says.jsonl"
        script.write_text("".join(json.dumps(line) + "\n" for line in SAYS), encoding="utf-8")
        team = {"team": {"provider": "scripted", "model": str(script), "prices": {"input": 0, "output": 0}}}
        further = {
            KEY: os.environ[KEY],
            LEDGER: str(self.directory / "paid.jsonl"),
            "LONGHAUL_MODELS": json.dumps(team),
        }
        return WorkerSettings(
            address=self.address,
            task_queue=self.app.settings.task_queue,
            directory=self.directory,
            tools=__name__,
            program=(__name__,),
            further=further,
        )

    def session(self, name: str) -> Session:
        return self.app.session(name, user="mia", agent=REFUNDS)

    async def complain(self, name: str) -> WorkflowHandle[OrderWorkflow, Decision]:
        """Start the workflow of a complaint, once however often it is tried."""
        order = Order(name, "mia", "The lamp hums.")
        try:
            return await self.client.start_workflow(
                OrderWorkflow.run,
                order,
                id=f"order-{name}",
                task_queue="orders",
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            )
        except WorkflowAlreadyStartedError:
            return self.client.get_workflow_handle_for(OrderWorkflow.run, f"order-{name}")

    async def approve(self, name: str) -> None:
        """For each of those who approve whatever waits for that person; does not end by itself."""
        session = self.session(name)
        while True:
            try:
                for call in await session.own_pending():
                    for who in APPROVERS if call.waits_for == "person" else ():
                        if who not in call.approved_by:
                            await session.confirm(call.call_id, allow=True, approver=who)
            except (RPCError, Unreachable, NoSession, Refused, *SILENCES):
                pass  # not there yet, or somebody's answer to this approval was lost with the server
            await asyncio.sleep(0.2)

    async def play(self, name: str, seconds: float) -> Verdict:
        """Complain, approve, and judge; through workers and servers that come and go."""
        approving = asyncio.create_task(self.approve(name))
        try:
            async with asyncio.timeout(seconds):
                order = await insisting(lambda: self.complain(name))
                decision = await insisting(order.result)
                return await insisting(lambda: self.judge(name, order, decision))
        except TimeoutError:
            return Verdict(name, lost=f"no answer within {seconds:g} s")
        finally:
            approving.cancel()

    def paid(self, name: str) -> Counter[str]:
        """By the key of the payment, how often it was asked for."""
        file, begin = self.directory / "paid.jsonl", f"{self.session(name).workflow_id}/"
        keys = [json.loads(line)["key"] for line in file.read_text().splitlines()] if file.exists() else []
        return Counter(key for key in keys if key.startswith(begin))

    async def judge(self, name: str, order: WorkflowHandle[OrderWorkflow, Decision], decision: Decision) -> Verdict:
        results = dict[str, ToolResultBlock]()
        transcript = [message async for message in self.session(name).transcript()]
        for message in transcript:
            results |= {result.name: result for result in message.get_tool_results()}
        payments = self.paid(name).total()
        refund = results.get("issue_refund")
        is_unknown = refund is not None and refund.state is ToolResultState.UNKNOWN
        is_true = payments == 1 if not is_unknown else refund is not None and refund.get_text().startswith(UNKNOWN)
        lost = "" if decision == ANSWER else f"the workflow ended with {decision}"
        if missing := {"look_up", "issue_refund"} - results.keys():
            lost = lost or f"no result of {sorted(missing)}"
        try:
            assert_well_formed(transcript)
            await self._replay(name, order)
        except AssertionError as error:
            lost = lost or str(error)
        return Verdict(
            name,
            lost=lost,
            doubled=("issue_refund",) if payments > 1 else (),
            unsaid=() if is_true else ("issue_refund",),
            unknown_outcomes=("issue_refund",) if is_unknown else (),
            effects={"issue_refund": payments},
        )

    async def _replay(self, name: str, order: WorkflowHandle[OrderWorkflow, Decision]) -> None:
        """Run the code of both workflows on what is recorded: the shop's by the SDK's replayer with the plugin."""
        history = await order.fetch_history()
        plugin = LonghaulPlugin(self.app.settings, host=False)
        shop = Replayer(workflows=[OrderWorkflow], data_converter=CONVERTER, plugins=[plugin], debug_mode=True)
        result = await shop.replay_workflow(history, raise_on_replay_failure=False)
        assert result.replay_failure is None, f"the order does not replay: {result.replay_failure}"
        session = await self.app.client.get_workflow_handle(self.session(name).workflow_id).fetch_history()
        why = await replay_failure(replayer(self.app.client.data_converter, self.app.client.namespace), session)
        assert not why, f"the session does not replay: {why}"


if __name__ == "__main__":
    asyncio.run(main())

"""The floor: a bare workflow with two activities a step and no agent. Ids go in, the body comes out.

Run as `python -m benchmarks.floor ADDRESS QUEUE`; prints READY and serves until it is killed.
"""

import asyncio
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from benchmarks.bodies import body

READY = "READY"
LIMIT = timedelta(seconds=60)


@activity.defn
async def model(session: str, step: int, steps: int) -> dict[str, object]:
    del session
    return {"text": "done"} if step >= steps else {"tool": "fetch", "args": {"i": step}, "id": f"call_{step:05d}"}


@activity.defn
async def fetch(session: str, step: int, chars: int) -> str:
    del session, step
    return body(chars)


@workflow.defn(name="Floor")
class Floor:
    @workflow.run
    async def run(self, steps: int, chars: int) -> str:
        session = workflow.info().workflow_id
        for step in range(steps + 1):
            said = await workflow.execute_activity(model, args=[session, step, steps], start_to_close_timeout=LIMIT)
            if "text" in said:
                return str(said["text"])
            await workflow.execute_activity(fetch, args=[session, step, chars], start_to_close_timeout=LIMIT)
        raise AssertionError("the model never finished")


@workflow.defn(name="FloorFan")
class FloorFan:
    """Bare child workflows side by side: each is a floor of its own."""

    @workflow.run
    async def run(self, children: int, steps: int, chars: int) -> list[str]:
        own = workflow.info().workflow_id
        started = [
            workflow.execute_child_workflow(Floor.run, args=[steps, chars], id=f"{own}.{number}")
            for number in range(children)
        ]
        return list(await asyncio.gather(*started))


async def serve(address: str, queue: str) -> None:
    client = await Client.connect(address, data_converter=pydantic_data_converter)
    async with Worker(client, task_queue=queue, workflows=[Floor, FloorFan], activities=[model, fetch]):
        print(READY, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))

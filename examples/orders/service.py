"""The shop's own web service: customers complain, its people approve. Start it with

uvicorn examples.orders.service:app
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from temporalio.client import Client, WorkflowExecutionStatus

from examples.orders.workers import connect
from examples.orders.workflows import REFUNDS, Order, OrderWorkflow
from longhaul import Longhaul, LonghaulError

User = Annotated[str, Header(alias="X-User")]  # put your own sign-in here


class Complaint(BaseModel):
    text: str


class Approval(BaseModel):
    customer: str
    call_id: str
    decision: str  # allow or deny
    digest: str  # names what the page has shown: a call that has changed since is not decided on


@asynccontextmanager
async def lifespan(service: FastAPI) -> AsyncIterator[None]:
    service.state.client = client = await connect()
    async with Longhaul.connect(client=client) as service.state.agents:
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(LonghaulError)
async def say_why(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 409)


@app.post("/orders/{order}/complaint", status_code=202)
async def complain(order: str, complaint: Complaint, user: User, request: Request) -> None:
    client: Client = request.app.state.client
    about = Order(order, user, complaint.text)
    await client.start_workflow(OrderWorkflow.run, about, id=f"order-{order}", task_queue="orders")


@app.put("/orders/{order}/address", status_code=202)
async def move(order: str, address: str, request: Request) -> None:
    client: Client = request.app.state.client
    await client.get_workflow_handle(f"order-{order}").signal(OrderWorkflow.address_changed, address)


@app.get("/orders/{order}")
async def look(order: str, request: Request) -> dict[str, Any]:
    client: Client = request.app.state.client
    handle = client.get_workflow_handle_for(OrderWorkflow.run, f"order-{order}")
    done = (await handle.describe()).status is WorkflowExecutionStatus.COMPLETED
    return {"decision": await handle.result() if done else None}


@app.get("/approvals")
async def approvals(request: Request) -> list[dict[str, Any]]:
    """What waits for the shop's people, in any order's session."""
    agents: Longhaul = request.app.state.agents
    inbox = await agents.inbox()
    return [{"order": card.session_id, "customer": card.user_id, **call.model_dump()} for card, call in inbox.calls]


@app.post("/orders/{order}/approval")
async def approve(order: str, approval: Approval, user: User, request: Request) -> dict[str, str]:
    """Returns `{call: "1 of 2"}` where somebody else has to approve it too."""
    agents: Longhaul = request.app.state.agents
    session = agents.session(order, user=approval.customer, agent=REFUNDS)
    return await session.decide([approval.call_id], [approval.model_dump(exclude={"customer"})], approver=user)

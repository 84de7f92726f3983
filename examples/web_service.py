"""A web service of your own around sessions: ask and watch, decide, come back. docs/web-service.md walks through it.

CLERK_MODEL=anthropic:claude-sonnet-4-5 .venv/bin/uvicorn --app-dir examples web_service:app
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from longhaul import AgentEvent, AgentSpec, Longhaul, LonghaulError, Refused, Session

CLERK = AgentSpec(name="clerk", model=os.environ.get("CLERK_MODEL", ""), tools=["Read", "Write"])
User = Annotated[str, Header(alias="X-User")]  # put your own sign-in here


class Question(BaseModel):
    text: str
    request_id: str  # made up by the page for each question, and sent again to come back to the answer


class Decision(BaseModel):
    call_id: str
    decision: str  # allow or deny
    digest: str  # names what the page has shown: a call that has changed since is not decided on


@asynccontextmanager
async def lifespan(service: FastAPI) -> AsyncIterator[None]:
    async with Longhaul.connect() as service.state.longhaul:
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(LonghaulError)
async def say_why(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 409 if isinstance(error, Refused) else 503)


@app.post("/chats/{chat}/ask")
async def ask(chat: str, question: Question, user: User, request: Request) -> StreamingResponse:
    events = session(request, chat, user).reply_stream(question.text, request_id=question.request_id)
    first = await anext(events)  # what can't be asked raises here, while the answer can still say why
    return StreamingResponse(lines(first, events), media_type="text/event-stream")


async def lines(first: AgentEvent, events: AsyncIterator[AgentEvent]) -> AsyncIterator[str]:
    yield f"data: {first.model_dump_json()}\n\n"
    async for event in events:
        yield f"data: {event.model_dump_json()}\n\n"


@app.post("/chats/{chat}/decide", status_code=204)
async def decide(chat: str, decision: Decision, user: User, request: Request) -> None:
    await session(request, chat, user).decide([decision.call_id], [decision.model_dump()], approver=user)


def session(request: Request, chat: str, user: str) -> Session:
    longhaul: Longhaul = request.app.state.longhaul
    return longhaul.session(chat, user=user, agent=CLERK)

"""What becomes of the first message of a session or a hub when the server does not take it."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.connection.connect import Unreachable
from longhaul.starter.dev_server.dev_server import DevServer

WORKER = AgentSpec(name="worker", model="scripted:none")
FIRSTS: dict[str, Callable[[Longhaul], Awaitable[object]]] = {
    "a session's": lambda app: app.session("s", agent=WORKER).submit("go"),
    "a hub's": lambda app: app.hub("h", app.session("s", agent=WORKER)).start(),
}


@pytest.mark.parametrize("first", FIRSTS)
async def test_its_error_is_raised_once_and_printed_by_nobody(temporal_server: DevServer, first: str) -> None:
    loop, printed = asyncio.get_running_loop(), list[dict[str, Any]]()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: printed.append(context))
    try:
        async with Longhaul.connect(temporal_server.address, "nowhere") as app:
            with pytest.raises(Unreachable, match="the Temporal server has no namespace 'nowhere': create it there"):
                await FIRSTS[first](app)
        gc.collect()
        await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(before)

    assert printed == []

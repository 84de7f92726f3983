"""Ask an agent, follow what it does event by event, and decide on what it wants to change.

    .venv/bin/longhaul dev
    .venv/bin/python examples/follow.py anthropic:claude-sonnet-4-5 "What is in this folder?"

Stop it at any time and start it again: with the same text it goes on with the same reply.
"""

import asyncio
import os
import sys
from pathlib import Path

from longhaul import AgentSpec, Longhaul, Session, Workspace


async def main(model: str, prompt: str) -> int:
    agent = AgentSpec(name="example", model=model, workspace=Workspace(root=str(Path.cwd())))
    async with Longhaul.connect() as app:
        session = app.session("follow", user="example", agent=agent)
        # A request id of the caller's own makes it safe to ask again after a crash of this script.
        reply_id = await session.submit(prompt, request_id=prompt)
        async for event in session.follow():
            if event.reply_id != reply_id:
                continue
            print(f"{event.seq:4} {event.type} {event.name} {event.delta}".rstrip())
            if event.type == "REQUIRE_USER_CONFIRM":
                await decide(session)
            if event.type == "REPLY_END":
                break
        status = await session.status()
        print(f"{status.input_tokens} tokens in, {status.output_tokens} out")
    return 0


async def decide(session: Session) -> None:
    """Allow what only edits files, and deny everything else with a reason that the model reads."""
    for call in await session.pending():
        print(f"     {call.tool} {call.input}\n{call.notice}")
        edits = call.tool in ("Write", "Edit")
        await session.confirm(call, allow=edits, reason="" if edits else "only edits, please", approver="example")


if __name__ == "__main__":
    code = asyncio.run(main(*sys.argv[1:3]))
    sys.stdout.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then, after all work is done.
    os._exit(code)

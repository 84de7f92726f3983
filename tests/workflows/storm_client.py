"""A client process of the storm: `python -m tests.workflows.storm_client ADDRESS QUEUE SESSION SPEC NAME COUNT`.

Asks one session COUNT things at once, and prints the replies' ids and texts as a JSON object when it has them all.
"""

import asyncio
import json
import sys

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.connection.connect import connect
from longhaul.starter.settings import Settings


async def main(address: str, queue: str, session_id: str, spec: str, name: str, count: str) -> None:
    app = Longhaul(await connect(address), Settings(task_queue=queue))
    session = app.session(session_id, agent=AgentSpec.model_validate_json(spec))
    replies = await asyncio.gather(*[session.reply(f"{name} {number}") for number in range(int(count))])
    print(json.dumps({reply.id: reply.get_text_content() for reply in replies}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

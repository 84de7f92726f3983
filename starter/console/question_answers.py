"""The answer to an MCP server that asks, from the form on its call's page."""

import asyncio

from starlette.responses import Response

from longhaul.starter.console import pages
from longhaul.starter.console.changes import or_told, then
from longhaul.starter.console.console_request import Visit
from longhaul.starter.console.question_form import answers_of
from longhaul.starter.serve.response_bodies import Calls


async def answer(visit: Visit) -> Response:
    call_id = visit.form.get("call_id", "")

    async def done() -> Response:
        waiting: Calls = await visit.ask("pending")
        asked = next((call.asked for call in waiting.calls if call.call_id == call_id), None)
        # Of a call that asks no more the session says what became of it, whatever is handed in.
        output = await asyncio.to_thread(answers_of, asked, visit.form) if asked else "decline"
        await visit.ask("externalResults", body={"results": [{"id": call_id, "output": output}]})
        return then(f"{visit.home}?told=answered")

    return await or_told(done, lambda problem: pages.call_page(visit, call_id, problem))

"""Requests about a session's state as a whole: taken out, put in, changed in places, copied."""

from starlette.responses import Response

from longhaul.agent.letters.bodies import ReplaceState
from longhaul.starter.client.states.state_paths import BadPath
from longhaul.starter.serve.problems import wrong
from longhaul.starter.serve.request_bodies import (
    Copy,
    Edits,
)
from longhaul.starter.serve.requests import Call, session_of, session_to_begin
from longhaul.starter.serve.response_bodies import (
    Copied,
)


async def state(call: Call) -> Response:
    """As it stands now; of a session that has closed, as it was stored."""
    exported = await session_of(call).stored.export()
    return Response(exported, media_type="application/json")


async def replace_state(call: Call) -> None:
    body: ReplaceState = call.body
    session = await session_to_begin(call)
    told = {"by": call.by, "why": body.why, "note": body.note}
    await session.stored.import_state(body.state, expected_seq=body.expected_seq, **told)


async def edit_state(call: Call) -> None:
    body: Edits = call.body
    try:
        await session_of(call).stored.edit_all(body.changes, by=call.by, why=body.why)
    except BadPath as error:
        raise wrong("changes", ", ".join(body.changes), str(error)) from error


async def copy(call: Call) -> tuple[int, Copied]:
    body: Copy = call.body
    if body.at is not None and body.entry is not None:
        raise wrong("entry", str(body.entry), "`at` names a step too; send one of both")
    made = await session_of(call).stored.fork(body.session, body.at, entry=body.entry or 0, by=call.by)
    return 201, Copied(session_id=made.id, files=(await made.status()).note)

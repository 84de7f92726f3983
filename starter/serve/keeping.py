"""Requests about a session's state as a whole: taken out, put in, changed in places, copied."""

from starlette.responses import Response

from agent.upkeep_bodies import ReplaceState
from starter.serve.answers import (
    Copied,
)
from starter.serve.bodies import (
    Copy,
    Edits,
)
from starter.serve.calls import Call, session_of, session_to_begin
from starter.serve.doing import only_by_the_caller
from starter.serve.problems import wrong
from starter.state_paths import BadPath
from starter.wire import check_name


async def state(call: Call) -> Response:
    """As it stands now; of a session that has closed, as it was stored."""
    exported = await session_of(call).stored.export()
    return Response(exported, headers={"Cache-Control": "no-store"}, media_type="application/json")


async def replace_state(call: Call) -> None:
    body: ReplaceState = call.body
    only_by_the_caller(body.by)
    session = await session_to_begin(call)
    await session.stored.import_state(body.state, by=call.by, why=body.why, expected_seq=body.expected_seq)


async def edit_state(call: Call) -> None:
    body: Edits = call.body
    try:
        await session_of(call).stored.edit_all(body.changes, by=call.by, why=body.why)
    except BadPath as error:
        raise wrong("changes", ", ".join(body.changes), str(error)) from error


async def copy(call: Call) -> tuple[int, Copied]:
    body: Copy = call.body
    try:
        check_name("session", body.session)
    except ValueError as error:
        raise wrong("session", body.session, str(error)) from None
    made = await session_of(call).stored.fork(body.session, body.at, by=call.by)
    return 201, Copied(session_id=made.id)

"""Sessions under hashed names: found, listed and asked by those who have the key, and unreadable in ids and index."""

import pytest
from pydantic import SecretStr

from longhaul.starter.client.client import Longhaul
from longhaul.workflows.contract import AGENT, SESSION, USER
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server


async def test_a_hashed_session_works_and_its_names_stand_in_no_id_and_no_attribute(stage: Stage) -> None:
    stage.settings = stage.settings.model_copy(update={"opaque_ids": True, "id_key": SecretStr("k" * 20)})
    name, user = f"{stage.name}-shore", f"{stage.name}-ana"
    session = stage.session(calls("send", to="Ben"), {"text": "Sent."}, id=name, user=user)
    app = Longhaul(stage.client, stage.settings)

    asked = await session.reply("Tell Ben")
    shown = await stage.handle(session).describe()
    indexed = shown.typed_search_attributes
    listed = [(card.session_id, card.user_id) for card in await app.sessions(user=user)]
    waiting = [(card.session_id, call.tool) for card, call in (await app.inbox(user=user)).calls]
    (call,) = await session.pending()
    await session.confirm(call, allow=True)
    done = await session.wait(asked.id)

    assert (listed, waiting) == ([(name, user)], [(name, "send")])
    assert done.get_text_content() == "Sent."
    assert indexed.get(AGENT) == "lamp"
    seen = f"{shown.id} {indexed.get(SESSION)} {indexed.get(USER)} {await shown.static_summary()}"
    assert name not in seen
    assert user not in seen
    assert await stage.app.sessions(user="nobody") == []

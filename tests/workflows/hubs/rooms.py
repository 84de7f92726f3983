"""Members of hubs, and what each of them has heard there."""

import re
from typing import Any

from longhaul.agent.values.conversation.messages import HintBlock, Msg
from longhaul.starter.client.session import Session
from tests.workflows.conftest import Line, Stage


def member(stage: Stage, *lines: Line, **spec: Any) -> Session:
    """A session of an agent that says these lines."""
    given = {"tools": (), **spec}
    return stage.session(*lines, **given)


async def read(session: Session) -> list[Msg]:
    """The messages of its context that are no hints."""
    said = [message async for message in session.transcript()]
    return [message for message in said if not any(isinstance(block, HintBlock) for block in message.content)]


async def heard(session: Session) -> list[str]:
    """What others have said to it, each as `name: text`; of agents without the frame."""
    framed = re.compile(r"^<said by=[^>]*>\n(.*)\n</said>$", re.DOTALL)
    told = list[str]()
    for message in await read(session):
        text = message.get_text_content()
        inner = framed.match(text)
        if message.role == "user":
            told.append(f"{message.name}: {inner[1] if inner else text}")
    return told

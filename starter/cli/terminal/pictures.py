"""Pictures, PDF files and sounds that somebody names in a message, as `@drawing.png`: the model is sent them."""

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, Msg, TextBlock, UserMsg
from longhaul.starter.client.attachments import MEDIA_TYPES
from longhaul.starter.client.wire import Refused
from longhaul.starter.visible import one_line
from longhaul.stores.names import read_regular

MOST_BYTES = 20_000_000
"""More is not sent anyway, and a link to a device has no end."""

_NAMED = re.compile(r"""(?<!\S)@(?:"([^"\n]+)"|(\S+))""")


def with_pictures(text: str) -> str | Msg:
    """The text, and behind it each picture, PDF or sound that it names, read from where we stand. Raises Refused for
    one that can't be read; other files are named only, for the agent has tools to read them."""
    parts = [_read(name) for name in _pictures_in(text)]
    return UserMsg("user", [TextBlock(text=text), *parts]) if parts else text


def _pictures_in(text: str) -> Iterator[str]:
    named = dict.fromkeys(quoted or bare.rstrip(".,;:!?)") for quoted, bare in _NAMED.findall(text))
    return (name for name in named if Path(name).suffix.lower() in MEDIA_TYPES)


def _read(name: str) -> DataBlock:
    path = Path(name).expanduser()
    try:
        data = read_regular(os.path.realpath(path), MOST_BYTES)
    except OSError as error:
        why = f"{error.strerror or f'it is no file of at most {MOST_BYTES // 1_000_000} MB'}; nothing was sent"
        raise Refused(f"@{one_line(name)}: it can't be read: {why}") from error
    source = Base64Source(data=base64.b64encode(data).decode(), media_type=MEDIA_TYPES[path.suffix.lower()])
    return DataBlock(source=source, name=path.name)

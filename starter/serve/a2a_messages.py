"""Reads a message of another agent: text, files and data for the model, or answers to what a task waits for.

Nothing of it is fetched from elsewhere, and nothing but a data part with one of three keys is an answer.
"""

import base64
import hashlib
import json
from typing import Any, cast

from a2a.types import Message, Part
from a2a.utils.errors import ContentTypeNotSupportedError
from google.protobuf import json_format

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock
from longhaul.starter.client.updates import MEDIA_TYPES
from longhaul.starter.serve.a2a_tasks import JSON
from longhaul.starter.serve.problems import wrong
from longhaul.starter.serve.routes import OPERATIONS

ANSWERS = {one.name: one for one in OPERATIONS if one.name in ("decide", "externalResults", "resolve")}
"""Operations by HTTP that answer what a task waits for: the one key of a data part, whose value is the body."""
TEXTS = ("text/plain", "text/markdown", "text/csv", "text/html", JSON)
"""Media types of files that the model reads as text."""
FILES = frozenset(MEDIA_TYPES.values())
NAME_CHARS = 24


def session_name(message: Message) -> str:
    """The context that the message names, or one of its own: the same for the same message. Raises A2AError."""
    of_task = message.task_id.rpartition("/")[0]
    if of_task and message.context_id not in ("", of_task):
        raise wrong("message.contextId", message.context_id, "the task has another; leave it out")
    if message.task_id:
        return of_task
    digest = hashlib.sha256(message.message_id.encode()).hexdigest()[:NAME_CHARS]
    return message.context_id or f"a2a-{digest}"


def answer_in(part: Part) -> tuple[str, object] | None:
    """The answer that a data part is: its one key names it."""
    if part.WhichOneof("content") != "data" or part.data.WhichOneof("kind") != "struct_value":
        return None
    (name, *others) = part.data.struct_value.fields or [""]
    if name not in ANSWERS or others:
        return None
    return name, _json_of(part)[name]


def _json_of(part: Part) -> Any:
    try:
        return _with_integers(json_format.MessageToDict(part.data))
    except (json_format.Error, ValueError) as error:  # ValueError: of NaN and infinite numbers
        raise wrong("message.parts", "", f"its data is no JSON ({error})") from None


def _with_integers(value: Any) -> Any:
    """Protobuf knows no integers: 7 comes as 7.0."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _with_integers(one) for key, one in cast(dict[str, Any], value).items()}
        case list():
            return [_with_integers(one) for one in value]
        case _:
            return value


def block_of(number: int, part: Part) -> TextBlock | DataBlock:
    """A part as the model reads it. Raises Problem and A2AError, which name the part."""
    field, kind = f"message.parts[{number}]", part.media_type.partition(";")[0].strip().lower()
    match part.WhichOneof("content"):
        case "text":
            return TextBlock(text=part.text)
        case "data":
            return TextBlock(text=json.dumps(_json_of(part), ensure_ascii=False))
        case "raw" if kind in FILES:
            data = base64.b64encode(part.raw).decode()
            return DataBlock(source=Base64Source(data=data, media_type=kind), name=part.filename or None)
        case "raw" if kind in TEXTS:
            try:
                text = part.raw.decode()
            except UnicodeDecodeError as error:
                raise wrong(f"{field}.raw", part.filename, f"it is no UTF-8 ({error})") from None
            return TextBlock(text=f"{part.filename}:\n{text}" if part.filename else text)
        case "raw":
            raise ContentTypeNotSupportedError(
                f"{field}.mediaType: {kind[:100]!r} is not taken; send one of {', '.join((*TEXTS, *sorted(FILES)))}"
            )
        case "url":
            raise ContentTypeNotSupportedError(f"{field}.url: addresses are not fetched; send the file itself as `raw`")
        case _:
            raise wrong(field, "", "it is empty; send text, data or raw")


def can_be_sent(media_type: str) -> bool:
    return media_type.partition(";")[0].strip().lower() in ("text/plain", "text/*", "*/*", JSON)

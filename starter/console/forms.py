"""Reads what a form has sent: its fields, and the files that were chosen with it."""

import base64
from collections.abc import AsyncGenerator, Sequence
from itertools import chain
from pathlib import PurePath
from typing import NamedTuple
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, Msg, TextBlock, UserMsg
from longhaul.starter.client.attachments import MEDIA_TYPES
from longhaul.starter.serve.problems import Problem, wrong
from longhaul.starter.serve.request_checks import MOST_BODY_BYTES, read_body

MOST_FIELDS = 60
MOST_FILES = 20
URL_ENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


class SentFile(NamedTuple):
    """A file that was chosen in a form."""

    name: str
    data: bytes


class Filled(NamedTuple):
    """A form as it was filled in."""

    fields: dict[str, str]
    files: tuple[SentFile, ...] = ()


async def read_form(request: Request) -> Filled:
    """Raises Problem."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (URL_ENCODED, MULTIPART):
        raise Problem("media-type", f"Content-Type: {kind!r} is not read here; send a form")
    body = await read_body(request)
    try:
        pairs, files = await _parts(request.headers, body) if kind == MULTIPART else (_pairs(body), ())
        # A charset of the sender's own may make of it what nothing could store.
        "".join((*chain(*pairs), *(file.name for file in files))).encode()
    except (ValueError, KeyError, MultiPartException) as error:
        raise Problem("malformed", f"body: it is no form ({error})") from None
    if len({name for name, _ in pairs}) < len(pairs):
        raise Problem("malformed", "body: a field is there more than once; send it once")
    return Filled({name: value.replace("\r\n", "\n") for name, value in pairs}, tuple(files))


def _pairs(body: bytes) -> list[tuple[str, str]]:
    return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")


async def _parts(headers: Headers, body: bytes) -> tuple[list[tuple[str, str]], list[SentFile]]:
    async def whole() -> AsyncGenerator[bytes]:
        yield body

    # The body is bounded already; a part may be all of it.
    parser = MultiPartParser(
        headers, whole(), max_files=MOST_FILES, max_fields=MOST_FIELDS, max_part_size=MOST_BODY_BYTES
    )
    found = await parser.parse()
    pairs, files = list[tuple[str, str]](), list[SentFile]()
    for name, value in found.multi_items():
        if isinstance(value, UploadFile):
            data = await value.read()
            # A browser sends one without a name where nothing was chosen.
            files += [SentFile(value.filename, data)] if value.filename else []
        else:
            pairs.append((name, value))
    await found.close()
    return pairs, files


def message_of(text: str, files: Sequence[SentFile]) -> str | Msg:
    """The text, and behind it what is in the files. Raises Problem for one that no model could be shown."""
    if not files:
        return text
    said = [TextBlock(text=text)] if text.strip() else []
    return UserMsg("user", [*said, *(_block(PurePath(name).name, data) for name, data in files)])


def _block(name: str, data: bytes) -> TextBlock | DataBlock:
    media_type = MEDIA_TYPES.get(PurePath(name).suffix.lower())
    if media_type is not None:
        return DataBlock(source=Base64Source(data=base64.b64encode(data).decode(), media_type=media_type), name=name)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise wrong(
            "files",
            name,
            f"is neither text in UTF-8 nor one of {', '.join(sorted(MEDIA_TYPES))}; leave it out",
        )
    return TextBlock(text=f"The file {name!r}:\n\n{text}")

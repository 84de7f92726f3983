"""`SessionBlobs`: whole outputs among the blobs of their session, encrypted where the session is, and deleted with it.

They are no files that commands could read: the tool `recall` reads them back, from any host. Before the content stands
one line of JSON that says what it is, so that nothing else of the session passes for an output.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock
from longhaul.stores.blobs.blobs import BlobStore, BlobsUnavailable, NoBlob
from longhaul.stores.keys.keyring import Keyring, KeysUnavailable, NoKey
from longhaul.stores.keys.open_keyring import get_disclosed, put_enclosed
from longhaul.stores.offload.local_workspace import result_text

POINTER = "recall output="
"""How a reference begins; behind it stand the DIGITS that the tool is given."""
DIGITS = "^[0-9a-f]{64}$"
_KIND = "longhaul-output"
_MARKER_CHARS = 400
"""In the last of these an output says that it was shortened."""
_MARKER = re.compile(rf"'{POINTER}([0-9a-f]{{64}})'(?:[^'<]*</system-reminder>|\])\Z")
_NAMED = re.compile(rf"{POINTER}([0-9a-f]{{64}})".encode())
_BEGIN = re.compile(rf'{{"kind":"{_KIND}","name":"[0-9a-z.]*"}}'.encode())


def digits_in(output: str) -> str:
    """Where the whole of an output is that was shortened; empty for any other. One that only quotes a marker never ends
    with it: a line stands behind it that says so."""
    found = _MARKER.search(output[-_MARKER_CHARS:])
    return found[1] if found else ""


def named_in(text: bytes) -> list[str]:
    """The digits of all that is named there, or quoted, each once."""
    return list(dict.fromkeys(found.decode() for found in _NAMED.findall(text)))


class SessionBlobs:
    """An `Offloader` of one session."""

    def __init__(self, blobs: BlobStore, keys: Keyring | None, prefix: str) -> None:
        """`prefix`: what the keys of the session's blobs begin with."""
        self._blobs, self._keys, self._prefix = blobs, keys, prefix

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        """Keeps nothing: the record has each message, and `recall` reads it there."""
        del session_id, msgs, kwargs
        return ""

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        """Write the whole output as text, and each attachment by itself; the same again is the same blob. Raises
        BlobsUnavailable, NoKey, and ValueError above `LARGEST_BLOB`."""
        del session_id, kwargs
        attached = dict[str, bytes]()
        places = dict[str, str]()

        def keep(name: str, data: bytes) -> str:
            attached[name] = data
            return places.get(name, "")

        await asyncio.to_thread(result_text, tool_result, keep)
        for name, data in attached.items():
            places[name] = await self._put(name, data)
        text = await asyncio.to_thread(result_text, tool_result, keep)
        return await self._put("", text.encode("utf-8", "replace"))

    async def read(self, digits: str) -> tuple[str, bytes]:
        """The name of an attachment, empty for an output's text, and the content. Raises NoBlob, BlobsUnavailable."""
        try:
            data = await get_disclosed(self._blobs, self._keys, f"{self._prefix}/{digits}")
        except NoKey as error:
            raise NoBlob(str(error)) from error
        except (NoBlob, ValueError):
            raise _nothing(digits) from None
        begin, _, content = data.partition(b"\n")
        if not _BEGIN.fullmatch(begin):
            raise _nothing(digits)
        return json.loads(begin)["name"], content

    async def take_over(self, other: "SessionBlobs", digits: str) -> str:
        """Keep here what another session keeps under these digits, with its attachments, and return the reference:
        another one where it is encrypted. Raises NoBlob, BlobsUnavailable, and ValueError above `LARGEST_BLOB`."""
        name, data = await other.read(digits)
        for each in named_in(data) if not name else ():
            with suppress(NoBlob):
                attached, content = await other.read(each)
                if attached:  # an output that is quoted within another one stays a quotation
                    data = data.replace(POINTER.encode() + each.encode(), (await self._put(attached, content)).encode())
        return await self._put(name, data)

    async def known(self) -> set[str]:
        """The digits of all that lies here, outputs and others. Raises BlobsUnavailable."""
        return {key.rpartition("/")[2] for key in await self._blobs.keys(self._prefix)}

    async def begin(self) -> None:
        """Have a key for a session that is about to begin, also where one of its name was deleted. Raises
        BlobsUnavailable."""
        if self._keys is not None:
            try:
                await self._keys.encrypt(self._prefix, b"", begins=True)
            except KeysUnavailable as error:
                raise BlobsUnavailable(str(error)) from error

    async def _put(self, name: str, data: bytes) -> str:
        """The reference."""
        begin = json.dumps({"kind": _KIND, "name": name}, separators=(",", ":")).encode()
        key = await put_enclosed(self._blobs, self._keys, self._prefix, begin + b"\n" + data)
        return POINTER + key.rpartition("/")[2]


def _nothing(digits: str) -> NoBlob:
    return NoBlob(f"this session keeps no output {digits!r}")

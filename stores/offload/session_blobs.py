"""`SessionBlobs`: whole outputs among the blobs of their session, encrypted where the session is, and deleted with it.

They are no files that commands could read: the tool `recall` reads them back, from any host. Before the content stands
one line of JSON that says what it is, so that nothing else of the session passes for an output.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock
from longhaul.stores.blobs.blobs import BlobStore, NoBlob
from longhaul.stores.keys.enclosed_blobs import get_disclosed, put_enclosed
from longhaul.stores.keys.keyring import Keyring
from longhaul.stores.keys.keys import NoKey
from longhaul.stores.offload.message_lines import result_text

POINTER = "recall output="
"""How a reference begins; behind it stand the DIGITS that the tool is given."""
DIGITS = "^[0-9a-f]{64}$"
_KIND = "longhaul-output"
_MARKER_CHARS = 400
"""In the last of these an output says that it was shortened."""
_MARKER = re.compile(rf"'{POINTER}([0-9a-f]{{64}})'[^'<]*</system-reminder>\Z")
_BEGIN = re.compile(rf'{{"kind":"{_KIND}","name":"[0-9a-z.]*"}}'.encode())


def digits_in(output: str) -> str:
    """Where the whole of an output is that was shortened; empty for any other. One that only quotes a marker never ends
    with it: a line stands behind it that says so."""
    found = _MARKER.search(output[-_MARKER_CHARS:])
    return found[1] if found else ""


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

    async def _put(self, name: str, data: bytes) -> str:
        """The reference."""
        begin = json.dumps({"kind": _KIND, "name": name}, separators=(",", ":")).encode()
        key = await put_enclosed(self._blobs, self._keys, self._prefix, begin + b"\n" + data)
        return POINTER + key.rpartition("/")[2]


def _nothing(digits: str) -> NoBlob:
    return NoBlob(f"this session keeps no output {digits!r}")

"""Updates to one session: each is sent until it is taken, or refused for a reason.

Attachments are looked into first: what no model could be shown is refused here. Decisions are signed where the
session takes no others, and then waited for until a worker has checked them.
"""

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError
from temporalio.client import WithStartWorkflowOperation, WorkflowUpdateFailedError
from temporalio.service import RPCError

from longhaul.activities.context.attachments import LONGEST_BASE64, MOST_PIXELS_A_SIDE, sound
from longhaul.agent.operations.approval_operations import BadKey, keys_of, signed
from longhaul.agent.operations.bodies import Confirm
from longhaul.agent.values.conversation.messages import DataBlock
from longhaul.starter.client.reading.queries import Asking
from longhaul.starter.client.states.deletion import look_again
from longhaul.starter.client.wire import Refused, check_size, plain, refusal_of, title_in, update_with_start
from longhaul.starter.connection.query_retries import AT_ONCE, Pauses, send_again
from longhaul.starter.settings import Settings
from longhaul.stores.blobs.blobs import BlobsUnavailable
from longhaul.workflows.contract import PendingCall

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
}
"""What a model can be shown or played, by the ending of a file's name."""
_WHAT_TO_DO = (
    "send the whole file as base64: a PDF, or a PNG, JPEG, GIF or WebP of at most "
    f"{LONGEST_BASE64 * 3 // 4000} kB and {MOST_PIXELS_A_SIDE} pixels a side; or say what is in it as text"
)
Place = tuple[str, object]
"""Where something stands in a body, and what."""


async def check_attachments(name: str, body: Mapping[str, Any]) -> None:
    """Raise Refused, which names the place, for the first one that is broken, not what it says it is, or too large.

    `name`: of the operation. What has another shape than it should is left to the session, which refuses it.
    """
    if found := list(_attachments(body)):
        await asyncio.to_thread(_check, name, found)


def _check(name: str, found: list[tuple[str, DataBlock]]) -> None:
    for place, block in found:
        try:
            sound(block)
        except (ValueError, struct.error) as error:
            shown = f"{block.name[:200]!r}, {block.source.media_type[:100]}" if block.name else block.source.media_type
            raise Refused(f"{name}: {place} ({shown[:310]}): {error}; {_WHAT_TO_DO}") from None


def _attachments(body: Mapping[str, Any]) -> Iterator[tuple[str, DataBlock]]:
    """Where messages and results hold blocks: elsewhere the same JSON would mean something else."""
    for field in ("messages", "message"):
        for place, message in _items(field, body.get(field)):
            yield from _of_blocks(f"{place}.content", _part(message, "content"))
    for field in ("results", "execution_results"):
        for place, result in _items(field, body.get(field)):
            output = _part(result, "output")
            # Anything else is JSON that the model reads.
            if all(_part(item, "type") in ("text", "data") for _, item in _items("", output)):
                yield from _of_blocks(f"{place}.output", output)


def _of_blocks(field: str, blocks: object) -> Iterator[tuple[str, DataBlock]]:
    for place, block in _items(field, blocks) if isinstance(blocks, list | tuple) else ():
        match _part(block, "type"):
            case "data":
                try:
                    yield place, DataBlock.model_validate(plain(block))
                except ValidationError:
                    continue
            case "hint":
                yield from _of_blocks(f"{place}.hint", _part(block, "hint"))
            case _:
                continue


def _items(field: str, given: object) -> Iterator[Place]:
    """One that stands alone is the first."""
    if isinstance(given, list | tuple):
        for index, item in enumerate(cast(list[object], given)):
            yield f"{field}[{index}]", item
    elif given is not None and not isinstance(given, str):
        yield field, given


def _part(whole: object, name: str) -> object:
    return cast(dict[str, object], whole).get(name) if isinstance(whole, dict) else getattr(whole, name, None)


Start = Callable[[str], WithStartWorkflowOperation[Any, Any]]
"""Of a title."""


class Sending:
    """One session's updates. Methods raise Refused with the session's own sentence, and Stuck for one that can't go
    on. What is too large for the history, and can't be stored where workers read it, is refused too, and so is an
    attachment that no model could be shown."""

    def __init__(self, asking: Asking, start: Start) -> None:
        self._asking = asking
        self._start = start
        """A new one each time: an operation is good for one sending."""
        self._under_way = asyncio.Semaphore(AT_ONCE)
        self.begin: Callable[[], Awaitable[None]] | None = None
        """What comes before the first update that may start the session."""
        self._beginning = asyncio.Lock()

    async def update(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """To a session that is open. Raises NoSession."""
        check_size(name, body, self._asking.client)
        await check_attachments(name, body)

        async def send() -> dict[str, Any]:
            answer: dict[str, Any] = await self._asking.handle.execute_update(name, body, result_type=dict)
            return answer

        try:
            return await send_again(send, repeatable=False, is_behind=self._asking.is_behind)
        except BlobsUnavailable as error:
            raise Refused(f"{name}: {error}") from error
        except WorkflowUpdateFailedError as error:
            raise refusal_of(error) from error
        except RPCError as error:
            raise await self._asking.explained(error) from error

    async def update_with_start(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """The session begins with it when there is none."""
        async with self._beginning:
            if self.begin is not None:
                await self.begin()
                self.begin = None
        return await self.start_with(name, body)

    async def start_with(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """The same, and nothing comes before it."""
        check_size(name, body, self._asking.client)
        await check_attachments(name, body)
        title = title_in(body) if name == "submit" else ""

        async def send() -> dict[str, Any]:
            look_again(self._asking.client, self._asking.workflow_id)
            return await update_with_start(self._asking.client, name, body, self._start(title))

        try:
            async with self._under_way:
                # A request carries its id, so that one sent twice is one; an observation does not.
                return await send_again(send, repeatable=name == "submit", is_behind=self._asking.is_behind)
        except BlobsUnavailable as error:
            raise Refused(f"{name}: {error}") from error
        except WorkflowUpdateFailedError as error:
            raise refusal_of(error) from error
        except RPCError as error:
            raise await self._asking.explained(error) from error


class Deciding:
    """One session's decisions."""

    def __init__(self, asking: Asking, sending: Sending, settings: Settings, workflow_id: str) -> None:
        self._asking = asking
        self._sending = sending
        self._keys = settings.approval_key
        self._workflow_id = workflow_id

    async def send(
        self, calls: Sequence[PendingCall | str], decisions: Sequence[dict[str, Any]], approver: str
    ) -> dict[str, Any]:
        """The session's answer to decisions on these calls, which count together or not at all. Raises Refused, also
        for what a worker finds wrong with a signature."""
        body: dict[str, Any] = {"decisions": list(decisions), "approver": approver}
        try:
            keys = keys_of(self._keys.get_secret_value())
        except BadKey as bad:
            raise Refused(f"LONGHAUL_APPROVAL_KEY: {bad}") from bad
        seen = await self._seen(calls) if keys else []
        if not any(call.signed for call in seen):
            return await self._sending.update("confirm", body)
        digests = {call.call_id: call.digest for call in seen}
        bound = [{"digest": digests.get(one["call_id"], ""), **one} for one in decisions]
        named = {**body, "reply_id": seen[0].reply_id, "decisions": bound}
        offered = signed(Confirm.model_validate(named), keys[0], self._workflow_id, time.time_ns() // 1_000_000)
        answer = await self._sending.update("confirm", offered.model_dump(mode="json", exclude_defaults=True))
        await self._checked(int(answer["decisions_at"]))
        return answer

    async def _seen(self, calls: Sequence[PendingCall | str]) -> list[PendingCall]:
        seen = [call for call in calls if isinstance(call, PendingCall)]
        if len(seen) == len(calls):
            return seen
        pending = await self._asking.query("pending", list[PendingCall])
        return [*seen, *(call for call in pending if call.call_id in calls)]

    async def _checked(self, decisions_at: int) -> None:
        """Wait for the worker's finding."""
        pauses = Pauses()
        while True:
            (why,) = (await self._asking.query("verification", dict[str, str | None], decisions_at)).values()
            if why:
                raise Refused(f"confirm: {why}")
            if why is not None:
                return
            await pauses.rest()

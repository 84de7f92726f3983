"""Updates to one session: sent until they are taken, and what comes back as a refusal."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio.client import WithStartWorkflowOperation, WorkflowUpdateFailedError
from temporalio.service import RPCError

from longhaul.starter.client.attachments import check_attachments
from longhaul.starter.client.reading.asking import Asking
from longhaul.starter.client.session_keys import look_again
from longhaul.starter.client.wire import Refused, check_size, refusal_of, title_in, update_with_start
from longhaul.starter.reach.query_retries import AT_ONCE, send_again
from longhaul.stores.blobs.blobs import BlobsUnavailable

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

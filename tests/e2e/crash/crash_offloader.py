"""An offloader for crash tests: once the messages are written, it can be held before it answers."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longhaul.agent.values.conversation.messages import Msg
from longhaul.stores.names import workdir_of
from longhaul.stores.offload.local_workspace import LocalWorkspace
from tests.e2e.crash.crash_tools import HOLD, POLL_SECONDS, write_down


class Held(LocalWorkspace):
    """Files as ever. While `hold/offload` is in the worker's data directory, it stands still behind what it wrote."""

    def __init__(self, owner: str) -> None:
        self._data = Path(os.environ["LONGHAUL_DATA_DIR"])
        super().__init__(workdir_of(self._data, owner))

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        reference = await super().offload_context(session_id, msgs, **kwargs)
        write_down(self._data, what="offloaded", session=session_id, worker=os.getpid(), batch=str(kwargs["batch"]))
        while (self._data / HOLD / "offload").exists():  # noqa: ASYNC110  another process removes that file
            await asyncio.sleep(POLL_SECONDS)
        return reference

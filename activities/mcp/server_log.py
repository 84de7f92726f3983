"""Writes what MCP servers log into the log of their worker: masked, harmless, and no more than a person could read."""

import json
import logging
import time
from collections.abc import Callable

import mcp_types as types

from longhaul.agent.plain.visible import visible

log = logging.getLogger(__name__)

LINE_CHARS = 500
READ_CHARS = 5_000
"""Of a line: more than is shown, so that no secret is cut before it is masked."""
MOST_LINES = 60
"""Of one connection in SECONDS: what is more is counted."""
SECONDS = 60.0
WANTED: types.LoggingLevel = "warning"
"""From which level on servers are asked to send, where they can be."""
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO, "warning": logging.WARNING}
"""All others are errors: how loud a server cries alarms nobody by itself."""


class ServerLog:
    """Of one connection."""

    def __init__(self, server: str, mask: Callable[[str], str], seconds: float = SECONDS) -> None:
        self._server, self._mask, self._seconds = server, mask, seconds
        self._since, self._lines, self._left_out = time.monotonic(), 0, 0

    async def told(self, params: types.LoggingMessageNotificationParams) -> None:
        """As the `mcp` package calls it."""
        said = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
        self._write(_LEVELS.get(params.level, logging.ERROR), said)

    def heard(self, piece: bytes) -> None:
        """Of its error output, in which programs log."""
        for line in piece.decode("utf-8", "replace").splitlines():
            if line.strip():
                self._write(logging.INFO, line)

    def _write(self, level: int, text: str) -> None:
        now = time.monotonic()
        if now - self._since >= self._seconds:
            if self._left_out:
                log.warning("MCP server %s: %d more lines of its log were left out", self._server, self._left_out)
            self._since, self._lines, self._left_out = now, 0, 0
        self._lines += 1
        if self._lines > MOST_LINES:
            self._left_out += 1
            return
        log.log(level, "MCP server %s: %s", self._server, visible(self._mask(text[:READ_CHARS]))[:LINE_CHARS])

"""Writes what MCP servers log into the log of their worker: masked, harmless, and no more than a person could read."""

import json
import logging
import time
from codecs import getincrementaldecoder

import mcp_types as types
from mcp.client import session

from longhaul.activities.masking.masker import Masker
from longhaul.activities.masking.stream import MaskedStream
from longhaul.agent.plain.text import visible

log = logging.getLogger(__name__)
logging.getLogger("mcp").setLevel(logging.CRITICAL)
"""The package writes down each line that it can't read: a server could fill the worker's log. What counts is raised."""
session.logger.addFilter(lambda record: record.pathname != session.__file__)
"""Its session does so under a name that others may have, too: `client`."""

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

    def __init__(self, server: str, masker: Masker, seconds: float = SECONDS) -> None:
        self._server, self._masker, self._seconds = server, masker, seconds
        self._decoder, self._masked = getincrementaldecoder("utf-8")("replace"), MaskedStream(masker)
        self._line = ""
        """What has come of its error output since the last end of a line, masked."""
        self._since, self._lines, self._left_out = time.monotonic(), 0, 0

    async def told(self, params: types.LoggingMessageNotificationParams) -> None:
        """As the `mcp` package calls it."""
        said = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
        self._write(_LEVELS.get(params.level, logging.ERROR), self._masker.masked(said[:READ_CHARS]))

    def heard(self, piece: bytes) -> None:
        """Of its error output, in which programs log. A secret may come in pieces, and have several lines."""
        self._take(self._masked.feed(self._decoder.decode(piece)))

    def end(self) -> None:
        """No more of it comes."""
        self._take(self._masked.end() + "\n")

    def _take(self, masked: str) -> None:
        *whole, rest = (self._line + masked).split("\n")
        for line in whole:
            if line.strip():
                self._write(logging.INFO, line)
        self._line = rest[:READ_CHARS]

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
        # One line each: what a server says must not look like lines of ours.
        log.log(level, "MCP server %s: %s", self._server, visible(" ".join(text.split()))[:LINE_CHARS])

"""Log lines without secrets: whatever is written to them, also the words of an exception."""

import logging

from longhaul.activities.masking.masker import NO_SECRETS, Masker


class MasksItself:
    """Of a formatter whose lines have an order that a mark in the wrong place would break."""

    masker: Masker = NO_SECRETS


class MaskedLines(logging.Formatter):
    """Formats as another formatter does, and masks the line that comes of it."""

    def __init__(self, inner: logging.Formatter, masker: Masker) -> None:
        super().__init__()
        self._inner = inner
        self._masker = masker

    def format(self, record: logging.LogRecord) -> str:
        return self._masker.masked(self._inner.format(record))


def mask_logs(logger: logging.Logger, masker: Masker) -> None:
    """Have every handler of this logger write masked lines."""
    for handler in logger.handlers if masker else ():
        formatter: object = handler.formatter
        if isinstance(formatter, MasksItself):
            formatter.masker = masker
            continue
        handler.setFormatter(MaskedLines(handler.formatter or logging.Formatter(), masker))

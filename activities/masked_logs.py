"""Log lines without secrets: whatever is written to them, also the words of an exception."""

import logging

from activities.masking import NO_SECRETS, Masker


class MasksItself(logging.Formatter):
    """A formatter of lines that have an order which a mark in the wrong place would break."""

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
        if isinstance(handler.formatter, MasksItself):
            handler.formatter.masker = masker
            continue
        handler.setFormatter(MaskedLines(handler.formatter or logging.Formatter(), masker))

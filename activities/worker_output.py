"""The output of a worker, without secrets: its log lines, what its process prints, and the words of an activity that
failed.

What a program that a tool has started writes to the same terminal goes past this.
"""

import codecs
import io
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.masker import NO_SECRETS, MaskedStream, Masker

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


@contextmanager
def masked_output(masker: Masker) -> Iterator[None]:
    """Within the block stdout and stderr are masked. What may be the beginning of a secret comes late, at the latest at
    the end of the block."""
    if not masker:
        yield
        return
    before = sys.stdout, sys.stderr
    masked = tuple(MaskedOutput(stream, masker) for stream in before)
    sys.stdout, sys.stderr = masked
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in masked:
            stream.end()


class MaskedOutput(io.TextIOBase):
    """In front of a stream of text. Threads may write at once."""

    def __init__(self, inner: TextIO, masker: Masker) -> None:
        self._inner = inner
        self._stream = MaskedStream(masker)
        self._lock = threading.Lock()
        self._bytes = _MaskedBytes(self)

    def write(self, text: str, /) -> int:
        with self._lock:
            self._inner.write(self._stream.feed(text))
        return len(text)

    def end(self) -> None:
        """Let out the rest."""
        with self._lock:
            self._inner.write(self._stream.end())
            self._inner.flush()

    def flush(self) -> None:
        with self._lock:
            self._inner.flush()

    @property
    def buffer(self) -> "_MaskedBytes":
        """For those who write bytes."""
        return self._bytes

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has an attribute
        return self._inner.encoding

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._inner.isatty()

    def fileno(self) -> int:
        return self._inner.fileno()


class _MaskedBytes(io.RawIOBase):
    def __init__(self, text: MaskedOutput) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: "ReadableBuffer", /) -> int:
        given = bytes(data)
        self._text.write(self._decoder.decode(given))
        return len(given)

    def flush(self) -> None:
        self._text.flush()

    def writable(self) -> bool:
        return True


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


class MaskedFailures(Interceptor):
    def __init__(self, masker: Masker) -> None:
        self._masker = masker

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Masking(next, self._masker)


class _Masking(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, masker: Masker) -> None:
        super().__init__(inner)
        self._masker = masker

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        try:
            return await super().execute_activity(input)
        except CancelledError:
            raise
        except Exception as error:
            said = [words for each in (error, *_causes(error)) for words in _words_of(each)]
            if not any(self._masker.found(words) for words in said):
                raise
            if isinstance(error, ApplicationError):
                # Its details are left out: they repeat the words, or have a secret of their own.
                masked = ApplicationError(
                    self._masker.masked(error.message),
                    type=error.type,
                    non_retryable=error.non_retryable,
                    next_retry_delay=error.next_retry_delay,
                )
            else:
                masked = ApplicationError(self._masker.masked(str(error)), type=type(error).__name__)
            raise masked from None


def _words_of(error: BaseException) -> tuple[str, ...]:
    return (str(error), *map(repr, error.details)) if isinstance(error, ApplicationError) else (str(error),)


def _causes(error: BaseException) -> list[BaseException]:
    """What the server would be told along with it."""
    causes: list[BaseException] = []
    while (cause := error.__cause__ or error.__context__) is not None and cause not in causes:
        causes.append(cause)
        error = cause
    return causes

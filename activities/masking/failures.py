"""Failures without secrets: an activity that fails leaves with its words masked."""

from typing import Any

from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.masking.masker import Masker


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
            raise _told_without(error, self._masker) from None


def _words_of(error: BaseException) -> tuple[str, ...]:
    return (str(error), *map(repr, error.details)) if isinstance(error, ApplicationError) else (str(error),)


def _causes(error: BaseException) -> list[BaseException]:
    """What the server would be told along with it."""
    causes: list[BaseException] = []
    while (cause := error.__cause__ or error.__context__) is not None and cause not in causes:
        causes.append(cause)
        error = cause
    return causes


def _told_without(error: Exception, masker: Masker) -> ApplicationError:
    if not isinstance(error, ApplicationError):
        return ApplicationError(masker.masked(str(error)), type=type(error).__name__)
    # Without its details: they repeat the words, or have a secret of their own.
    return ApplicationError(
        masker.masked(error.message),
        type=error.type,
        non_retryable=error.non_retryable,
        next_retry_delay=error.next_retry_delay,
    )

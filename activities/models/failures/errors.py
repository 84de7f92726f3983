"""Failures of a model call that no SDK has a class for. `verdicts`, beside it, reads them like the SDKs' own."""

from longhaul.agent.plain.errors import BadInput, BadSetup, LonghaulError


class SetupError(BadSetup):
    """The worker is not set up for this model: unknown provider, no key, bad address. The text says what to set."""


class ScriptError(BadInput):
    """The script of a scripted model is broken, or what it expects does not hold. Whoever wrote the file mends it."""


class IncompleteStreamError(LonghaulError):
    """The stream ended without its final event, or fell silent before it: what came so far is not a reply and must not
    be recorded as one."""


class HeldBack(Exception):
    """The call was not made: the provider limits its key, and other calls of this worker wait before it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            "The model's provider limits how often this key may be called, and other calls of the worker come first."
        )
        self.seconds = seconds
        """Until its turn may come."""


class ProviderError(LonghaulError):
    """A failure that the provider reported in a form that the SDK does not raise, or that a script asks for.

    `status` is the HTTP status that the provider uses for it elsewhere, so that one table judges both.
    """

    def __init__(self, status: int, code: str, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds

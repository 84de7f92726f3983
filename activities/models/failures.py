"""Failures of a model call that no SDK has a class for. `activities.models.verdicts` reads them like the SDKs' own."""


class SetupError(Exception):
    """The worker is not set up for this model: unknown provider, no key, bad address. The text says what to set."""


class ScriptError(Exception):
    """The script of a scripted model is broken, or what it expects does not hold. Whoever wrote the file mends it."""


class IncompleteStreamError(Exception):
    """The stream ended without its final event: what came so far is not a reply and must not be recorded as one."""


class ProviderError(Exception):
    """A failure that the provider reported in a form that the SDK does not raise, or that a script asks for.

    `status` is the HTTP status that the provider uses for it elsewhere, so that one table judges both.
    """

    def __init__(self, status: int, code: str, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds

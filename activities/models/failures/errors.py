"""Failures of a model call that no SDK has a class for. `verdicts`, beside it, reads them like the SDKs' own."""

from longhaul.agent.plain.errors import BadInput, BadSetup, LonghaulError


class SetupError(BadSetup):
    """The worker is not set up for this model: unknown provider, no key, bad address. The text says what to set."""


class ScriptError(BadInput):
    """The script of a scripted model is broken, or what it expects does not hold. Whoever wrote the file mends it."""


class IncompleteStreamError(LonghaulError):
    """The stream ended without its final event, or fell silent before it: what came so far is not a reply and must not
    be recorded as one."""


class NoReplyError(Exception):
    """The server answered with success and with something that is no reply of a model: a page to sign in at, a text,
    another JSON. Asking again helps seldom, so that it is no outage to be waited for."""

    def __init__(self, media_type: str, words: str) -> None:
        super().__init__(words)
        self.media_type = media_type
        self.words = words
        """Of the server; tags and scripts of a page are taken out."""


class ToldError(Exception):
    """An error that a server tells in an answer whose status says success."""

    def __init__(self, body: object, *, in_stream: bool) -> None:
        super().__init__(f"the server told an error in an answer with status 200: {body!s:.2000}")
        self.body = body
        """JSON."""
        self.in_stream = in_stream
        """Among the events of an answer that had begun; else in the place of an answer."""


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

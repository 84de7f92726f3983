"""Failures of the clouds' own libraries while a worker signs in, as failures that `verdicts` knows."""

from collections.abc import Iterator
from contextlib import contextmanager

from longhaul.activities.models.failures.errors import ProviderError, SetupError

_LIBRARIES = ("azure.", "botocore.", "google.auth.", "google.oauth2.", "msal.")
_NO_SIGNING_IN = "ParamValidationError"
"""Of botocore: a request that it does not send."""
_NO_SESSION = "Could not resolve"
"""How the SDKs begin the RuntimeErrors that they raise where a library has found no credentials."""
_PASSING = (
    *("TransportError", "ServiceRequestError", "ServiceResponseError", "HTTPClientError", "ConnectionError"),
    "MetadataRetrievalError",
)
"""Of their classes those that say that somebody could not be reached."""
_UNREACHED = 503


@contextmanager
def signing_in() -> Iterator[None]:
    """Around a call: what those libraries raise is told in a sentence; what may pass is tried again."""
    try:
        yield
    except Exception as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        of_libraries = f"{type(error).__module__}.".startswith(_LIBRARIES) and _NO_SIGNING_IN not in names
        if not of_libraries and not _found_nothing(error):
            raise
        told = f"The worker could not sign in to the model's provider ({names[0]})"
        if getattr(error, "retryable", False) is True or any(name in _PASSING for name in names):
            raise ProviderError(_UNREACHED, "sign_in", f"{told}.") from error
        raise SetupError(
            f"{told}: what it runs as has no credentials there, or they are refused. Give it a role, or name a "
            "variable with a key in the profile's api_key_env."
        ) from error


def _found_nothing(error: Exception) -> bool:
    return isinstance(error, RuntimeError) and str(error).startswith(_NO_SESSION)

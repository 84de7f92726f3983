"""The table of verdicts: which failure of a model call deserves what, by class, HTTP status and code.

The rows name classes instead of importing them, so that a worker that never calls a provider never loads its SDK.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from longhaul.agent.plain.errors import BadInput, BadSetup, LonghaulError


class SetupError(BadSetup):
    """The worker is not set up for this model: unknown provider, no key, or bad address. The text says what to set."""


class ScriptError(BadInput):
    """The script of a scripted model is broken, or what it expects is not true. Its author has to fix the file."""


class IncompleteStreamError(LonghaulError):
    """The stream ended, or fell silent, before its final event. What came so far is no reply, and must not be recorded
    as a reply."""


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
        super().__init__(f"the server sent an error in an answer with status 200: {body!s:.2000}")
        self.body = body
        """JSON."""
        self.in_stream = in_stream
        """Among the events of an answer that had started; else in the place of an answer."""


class HeldBack(Exception):
    """The call was not made: the provider limits its key, and other calls of this worker wait before it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            "The model's provider limits how often this key may be called, and other calls of the worker come first."
        )
        self.seconds = seconds
        """Until its turn may come."""


class ProviderError(LonghaulError):
    """A failure that the provider reported in a way that the SDK does not raise, or that a script asks for. `status`:
    the HTTP status that the provider uses for such a failure elsewhere, so that one table serves both."""

    def __init__(self, status: int, code: str, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds


Kind = Literal["retry", "retry_after", "few_tries", "fall_back", "compress", "repair", "never"]


@dataclass(frozen=True, slots=True)
class FailureRow:
    kind: Kind
    error_type: str
    sentence: str


UNREACHABLE = FailureRow("retry", "connection", "The connection to the model's provider failed.")
_TOO_SLOW = FailureRow("retry", "connection", "The model's provider did not answer in time.")
_CUT_OFF = FailureRow("retry", "connection", "The connection to the model's provider broke while it answered.")
_GARBLED = FailureRow("retry", "upstream", "The model's provider sent an answer that can't be read.")
_OUR_FAULT = FailureRow("never", "internal", "The model call failed by a mistake of ours, not of the provider.")
_NO_CREDENTIALS = FailureRow("never", "setup", "The worker's credentials for the model's provider can't be loaded.")
BAD_ADDRESS = FailureRow("never", "setup", "The address of the model's provider is wrong; correct base_url.")

BY_CLASS: Mapping[str, FailureRow] = {
    "builtins.TimeoutError": _TOO_SLOW,
    "builtins.ConnectionError": _CUT_OFF,
    "socket.gaierror": UNREACHABLE,
    "ssl.SSLError": UNREACHABLE,
    "anyio.BrokenResourceError": _CUT_OFF,
    "anyio.ClosedResourceError": _CUT_OFF,
    "anyio.EndOfStream": _CUT_OFF,
    "httpx.HTTPError": _CUT_OFF,
    "httpx.TimeoutException": _TOO_SLOW,
    "httpx.ConnectError": UNREACHABLE,
    "httpx.ProxyError": UNREACHABLE,
    "httpx.DecodingError": _GARBLED,
    "httpx.SSEError": _GARBLED,
    "httpx.LocalProtocolError": BAD_ADDRESS,
    "httpx.UnsupportedProtocol": BAD_ADDRESS,
    "httpx.TooManyRedirects": BAD_ADDRESS,
    "httpx.InvalidURL": BAD_ADDRESS,
    "httpx.StreamError": _OUR_FAULT,
    "httpx.CookieConflict": _OUR_FAULT,
    "anthropic.AnthropicError": _OUR_FAULT,
    "anthropic.APIConnectionError": UNREACHABLE,
    "anthropic.APITimeoutError": _TOO_SLOW,
    "anthropic.APIResponseValidationError": _GARBLED,
    "anthropic.APIWebhookValidationError": _OUR_FAULT,
    "anthropic.RetryableError": _CUT_OFF,
    "anthropic.CredentialsError": _NO_CREDENTIALS,
    "anthropic.WorkloadIdentityError": _NO_CREDENTIALS,
    "openai.OpenAIError": _OUR_FAULT,
    "openai.APIConnectionError": UNREACHABLE,
    "openai.APITimeoutError": _TOO_SLOW,
    "openai.APIResponseValidationError": _GARBLED,
    "openai.LengthFinishReasonError": FailureRow(
        "never", "invalid_request", "The reply hit the limit of output tokens."
    ),
    "openai.ContentFilterFinishReasonError": FailureRow(
        "fall_back", "upstream", "The provider's content filter stopped it."
    ),
    "openai.InvalidWebhookSignatureError": _OUR_FAULT,
    "openai.SubjectTokenProviderError": _NO_CREDENTIALS,
    "openai.WebSocketConnectionClosedError": _CUT_OFF,
    "openai.WebSocketQueueFullError": _CUT_OFF,
    "pydantic_ai.ModelConnectionError": UNREACHABLE,
    "pydantic_ai.ModelTimeoutError": _TOO_SLOW,
    "pydantic_ai.ModelRequestTimeout": _TOO_SLOW,
    "pydantic_ai.UnexpectedModelBehavior": _GARBLED,
    "pydantic_ai.AgentRunError": _OUR_FAULT,
    "botocore.ParamValidationError": FailureRow(
        "never", "invalid_request", "The request is not one that the model's provider takes."
    ),
}
"""Failures without an HTTP status. Keys are `package.Class`; httpx2's classes stand under httpx."""

RETRY_UPSTREAM = FailureRow("retry", "upstream", "The model's provider failed")
REFUSED = FailureRow("never", "invalid_request", "The model's provider refused the request")
NO_ACCOUNT = FailureRow("fall_back", "permission", "The account is not allowed to use this model")
LOCKED_OUT = FailureRow("fall_back", "authentication", "The model's provider did not accept the worker's key; check it")
NO_MODEL = FailureRow("fall_back", "invalid_request", "The model's provider does not know this model or address")
REPAIRABLE = FailureRow("repair", "invalid_request", "The model's provider refused part of the conversation")
_NOT_READY = FailureRow("retry", "upstream", "The model is not ready yet at its provider")
OUT_OF_CREDIT = FailureRow(
    "fall_back", "rate_limit", "The account's quota or credit at the model's provider is used up"
)
FILTERED = FailureRow("fall_back", "filtered", "The provider's content filter refused the request")
TOO_MANY_TOOLS = FailureRow(
    "fall_back",
    "invalid_request",
    "The agent has more tools than this model's provider takes: name fewer (`enable_tools` and `disable_tools` of MCP "
    "servers), or put them into tool groups",
)
TOO_LONG = FailureRow("compress", "context_overflow", "The conversation is too long for the model")

BY_STATUS: Mapping[int, FailureRow] = {
    400: REFUSED,
    401: LOCKED_OUT,
    402: OUT_OF_CREDIT,
    403: NO_ACCOUNT,
    404: NO_MODEL,
    407: FailureRow("fall_back", "setup", "A proxy before the model's provider wants user and password"),
    408: FailureRow("retry", "connection", "The model's provider gave up waiting for the request"),
    409: RETRY_UPSTREAM,
    413: TOO_LONG,
    424: RETRY_UPSTREAM,
    425: RETRY_UPSTREAM,
    429: FailureRow("retry", "rate_limit", "The model's provider limits how often it may be called"),
    499: RETRY_UPSTREAM,
    501: FailureRow("fall_back", "upstream", "The model's provider does not offer what was asked for"),
    511: FailureRow("fall_back", "setup", "The network of the worker wants somebody to sign in"),
    529: FailureRow("retry", "upstream", "The model's provider is overloaded"),
}
"""Other 4xx are refusals, other 5xx failures of the provider."""

SERVER_ERRORS = 500
"""From here on the status means that the provider failed."""

BY_CODE: Mapping[str, FailureRow] = {
    "insufficient_quota": OUT_OF_CREDIT,
    "billing_hard_limit_reached": OUT_OF_CREDIT,
    "billing_not_active": OUT_OF_CREDIT,
    "Arrearage": OUT_OF_CREDIT,
    "AllocationQuota.FreeTierOnly": OUT_OF_CREDIT,
    "contract_spend_limit_reached": OUT_OF_CREDIT,
    "enforced_spend_limit_reached": OUT_OF_CREDIT,
    "billing_error": OUT_OF_CREDIT,
    "exceeded_current_quota_error": OUT_OF_CREDIT,
    "insufficient_user_quota": OUT_OF_CREDIT,
    "credit_limit": OUT_OF_CREDIT,
    "AccountOverdueError": OUT_OF_CREDIT,
    "organization_on_hold": NO_ACCOUNT,
    "organization_type_not_supported": NO_ACCOUNT,
    "parent_organization_required": NO_ACCOUNT,
    "cmek_key_disabled": NO_ACCOUNT,
    "cmek_key_network_blocked": NO_ACCOUNT,
    "invalid_api_key": LOCKED_OUT,
    "model_not_found": NO_MODEL,
    "model_not_supported": NO_MODEL,
    "UnrecognizedClientException": LOCKED_OUT,
    "InvalidSignatureException": LOCKED_OUT,
    "ExpiredTokenException": LOCKED_OUT,
    "ModelNotReadyException": _NOT_READY,
    "MPAgreementBeingCreated": _NOT_READY,
}
"""Codes that say more than the status they come with: a quota arrives as 429, yet no waiting helps."""

STATUS_OF_TYPE: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "api_error": 500,
    "server_error": 500,
    "overloaded_error": 529,
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
    "ValidationException": 400,
    "AccessDeniedException": 403,
    "ThrottlingException": 429,
    "ServiceUnavailableException": 503,
}
"""The status of an error that arrives inside a stream, whose own HTTP status is 200."""

BY_CATEGORY: Mapping[str, tuple[int, str]] = {
    "pydantic_ai.ModelContextWindowExceededError": (400, "context_length_exceeded"),
    "pydantic_ai.ModelQuotaExceededError": (402, "insufficient_quota"),
    "pydantic_ai.ModelRateLimitError": (429, ""),
    "pydantic_ai.ModelOverloadedError": (529, ""),
    "pydantic_ai.ModelUnavailableError": (503, ""),
    "pydantic_ai.ModelServerError": (500, ""),
    "pydantic_ai.ModelAuthenticationError": (401, ""),
    "pydantic_ai.ModelNotFoundError": (404, "model_not_found"),
    "pydantic_ai.ModelRequestRejectedError": (400, ""),
    "pydantic_ai.ModelAPIError": (500, ""),
}
"""By the class that pydantic-ai has made of a vendor's error: the status where it has none, and a code that says what
it means."""
